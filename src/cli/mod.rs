//! The commands, one file each.

pub mod dev;
pub mod logging;
pub mod serve;
