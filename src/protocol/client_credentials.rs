//! The scope of a client's own token (RFC 6749 §4.4): resource scopes only, since there is no user to speak of.

use super::client::Client;
use super::errors::{TokenError, TokenErrorCode};
use super::reason::Reason;
use super::scope::{Catalogue, ScopeKind, ScopeSet};

/// What the request gets: the scopes it asks for, all of them or none; where it asks for none, every resource scope the
/// client may have. `invalid_scope` otherwise.
pub fn granted_scope(
    requested: Option<&ScopeSet>,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<ScopeSet, TokenError> {
    match requested {
        Some(scope) => match scope.iter().find_map(|name| objection(name, client, catalogue)) {
            Some(reason) => Err(invalid_scope(reason)),
            None => Ok(scope.clone()),
        },
        None => {
            let scope = client.scope.retain(|name| catalogue.kind(name) == Some(ScopeKind::Resource));
            if scope.is_empty() { Err(invalid_scope(Reason::NoScopeLeft)) } else { Ok(scope) }
        }
    }
}

fn objection(name: &str, client: &Client, catalogue: &Catalogue) -> Option<Reason> {
    match catalogue.kind(name) {
        Some(ScopeKind::Identity) => Some(Reason::IdentityScopeForClient),
        Some(ScopeKind::Resource) if client.scope.contains(name) => None,
        Some(ScopeKind::Resource) | None => Some(Reason::UnknownScope),
    }
}

fn invalid_scope(reason: Reason) -> TokenError {
    TokenError::new(TokenErrorCode::InvalidScope, reason)
}
