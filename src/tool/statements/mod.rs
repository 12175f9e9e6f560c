//! The statements of commands, written as those of the store are, on its connections.

pub mod access;
pub mod audit_list;
pub mod audit_pages;
pub mod client_revocation;
pub mod everything_revoked;
pub mod examination;
pub mod installation_changes;
pub mod schema;
pub mod sealed_factors;
pub mod sign_up_changes;
pub mod user_list;
pub mod user_names;
