//! The user behind a token, and how they signed in: what a code remembers and every token of a grant repeats.

use serde::{Deserialize, Serialize};

use super::identifiers::{Sid, Subject, TenantName};
use super::instant::Instant;

/// A signed-in user as tokens name them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenSubject {
    /// `sub`
    pub subject: Subject,
    /// `sid`: the browser session, where there is one.
    pub sid: Option<Sid>,
    /// `tenant`: the tenant signed in within.
    pub tenant: Option<TenantName>,
    /// `idp`: the identity provider, where the request named one.
    pub identity_provider: Option<String>,
    /// `auth_time`
    pub auth_time: Instant,
    /// `amr` (RFC 8176)
    pub amr: Vec<String>,
    /// `acr`
    pub acr: String,
}
