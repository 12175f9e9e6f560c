//! Documents of what is registered: what operators write, read into typed objects. All mistakes are
//! found in one go, each with its place and its rule. A document with one mistake gives no objects
//! at all.
//!
//! `document` reads the whole, with the readers of `gatepost_protocol::registration`; `references`
//! checks what holds between objects. `plan` compares a document with what is registered, and
//! `client_checkup` says what keeps a registered client from working. No I/O, no clock, no
//! randomness, no logging.

pub mod client_checkup;
pub mod client_secret;
pub mod contested_claims;
pub mod document;
pub mod finding;
pub mod grade;
pub mod hash_form;
pub mod mention;
pub mod plan;
pub mod references;
pub mod strict_json;
pub mod user;

#[cfg(test)]
mod tests;
