//! Signing keys and what is signed with them.

pub mod jwt;
pub mod key_schedule;
pub mod key_set;
