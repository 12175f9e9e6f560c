//! The audit log: a chain that shows what was taken out of it.

pub mod audit_chain;
pub mod audit_verification;
pub mod failed_attempts;
