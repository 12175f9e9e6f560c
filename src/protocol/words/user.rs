//! A user as the core sees them, without passwords.

use std::collections::BTreeMap;

use serde_json::Value;

use super::identifiers::{Subject, TenantName};

#[derive(Clone, Debug, PartialEq)]
pub struct User {
    pub subject: Subject,
    /// None where only an identity provider knows them.
    pub username: Option<String>,
    pub tenant: Option<TenantName>,
    /// Whether they may sign in, and what they gave stands.
    pub enabled: bool,
    /// As registered or as an identity provider sent them.
    pub claims: BTreeMap<String, Value>,
    /// What stands on this user carries it.
    pub epoch: i64,
}
