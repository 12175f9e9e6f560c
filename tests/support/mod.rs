//! What the black-box tests share.

pub mod door;
pub mod flow;
pub mod gatepost;
pub mod http;
pub mod postgres;
pub mod proxy;
