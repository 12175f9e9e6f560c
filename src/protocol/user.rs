//! A user as the core sees them: who they are and what is known about them, without passwords.

use std::collections::BTreeMap;

use serde_json::Value;

use super::identifiers::{Subject, TenantName};
use super::instant::Instant;

/// One user's row.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// `sub`
    pub subject: Subject,
    /// The name they sign in with; none where only an identity provider knows them.
    pub username: Option<String>,
    /// The tenant they belong to.
    pub tenant: Option<TenantName>,
    /// Whether they may sign in, and what they gave stands.
    pub enabled: bool,
    /// Claims by name, as registered or as an identity provider sent them.
    pub claims: BTreeMap<String, Value>,
    /// Nothing of this user issued at or before this instant is good any more.
    pub tokens_valid_after: Instant,
}
