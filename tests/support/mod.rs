//! What the black-box tests share.

pub mod blocks;
pub mod claims;
pub mod cluster;
pub mod device;
pub mod flow;
pub mod gatepost;
pub mod house;
pub mod http;
pub mod jwt;
pub mod mailbox;
pub mod offline;
pub mod phone;
pub mod postgres;
pub mod proofs;
pub mod proxy;
pub mod readings;
pub mod record;
pub mod scim;
pub mod secrets;
pub mod shared;
pub mod signer;
pub mod template;
pub mod timing;
pub mod traveller;
pub mod upstream;
pub mod waiting;
