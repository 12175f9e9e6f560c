//! The scope of a client's own token (RFC 6749 §4.4): resource scopes only, since there is no user to speak of.

use crate::protocol::words::client::Client;
use crate::protocol::words::errors::{TokenError, TokenErrorCode};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::scope::{Catalogue, ScopeKind, ScopeSet};

/// What it asks for, all of it or none (`invalid_scope`); where it asks for nothing, every resource scope of the
/// client's.
pub fn granted_scope(
    requested: Option<&ScopeSet>,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<ScopeSet, TokenError> {
    match requested {
        Some(scope) => match scope.iter().find_map(|name| Some((objection(name, client, catalogue)?, name))) {
            Some((reason, refused)) => Err(TokenError::about_scope(reason, refused)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::words::samples::{self, catalogue, scope};

    fn granted(requested: Option<&str>, allowed: &str) -> Result<String, (TokenErrorCode, Reason)> {
        let client = Client { scope: scope(allowed), ..samples::client() };
        let granted = granted_scope(requested.map(scope).as_ref(), &client, &catalogue());
        granted.map(|scope| scope.to_string()).map_err(|error| (error.code, error.reason))
    }

    #[test]
    fn without_scope_a_client_gets_every_resource_scope_it_may_have() {
        assert_eq!(granted(None, "openid stock profile orders.read gone"), Ok(String::from("stock orders.read")));
        assert_eq!(granted(Some("stock"), "openid stock orders.read"), Ok(String::from("stock")));
    }

    #[test]
    fn everything_else_is_an_invalid_scope() {
        #[rustfmt::skip]
        let rows = [
            (None, "openid profile", Reason::NoScopeLeft), (None, "", Reason::NoScopeLeft),
            (None, "gone", Reason::NoScopeLeft), (Some("openid"), "openid stock", Reason::IdentityScopeForClient),
            (Some("stock offline_access"), "stock offline_access", Reason::IdentityScopeForClient),
            (Some("stock profile"), "stock", Reason::IdentityScopeForClient),
            (Some("orders.read"), "stock", Reason::UnknownScope), (Some("stock nope"), "stock", Reason::UnknownScope),
            (Some("gone"), "stock gone", Reason::UnknownScope),
        ];
        for (requested, allowed, reason) in rows {
            let expected = Err((TokenErrorCode::InvalidScope, reason));
            assert_eq!(granted(requested, allowed), expected, "{requested:?} of {allowed}");
        }
    }
}
