//! The audit log: a chain of hashes that shows missing rows.

pub mod audit_chain;
pub mod failed_attempts;
