//! The statements of a change of the registry, written as those of the store are, in its
//! transaction.

pub mod applications;
pub mod catalogue_changes;
pub mod client_changes;
pub mod identities;
pub mod role_removal;
pub mod user_changes;
