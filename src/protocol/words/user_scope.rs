//! The scope of a request that speaks for a user without an authorization endpoint (RFC 6749 §4.3.2, RFC 8628 §3.1).

use super::client::{Client, GrantType};
use super::errors::{TokenError, TokenErrorCode};
use super::reason::Reason;
use super::scope::{Catalogue, OFFLINE_ACCESS, ScopeSet};

/// What it asks for, all of it or nothing (`invalid_scope`); where it leaves the choice to us, all of the client's
/// scope that is registered. `offline_access` only where the client may refresh.
pub fn requested_scope(
    requested: Option<&ScopeSet>,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<ScopeSet, TokenError> {
    let may_refresh = client.allows_grant(&GrantType::RefreshToken);
    let allowed = |name: &str| {
        client.scope.contains(name) && catalogue.kind(name).is_some() && (may_refresh || name != OFFLINE_ACCESS)
    };
    match requested {
        Some(scope) => match scope.iter().find(|name| !allowed(name)) {
            Some(refused) => Err(TokenError::about_scope(Reason::UnknownScope, refused)),
            None => Ok(scope.clone()),
        },
        None => {
            let scope = client.scope.retain(allowed);
            if scope.is_empty() { Err(invalid_scope(Reason::NoScopeLeft)) } else { Ok(scope) }
        }
    }
}

fn invalid_scope(reason: Reason) -> TokenError {
    TokenError::new(TokenErrorCode::InvalidScope, reason)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, catalogue, scope};
    use super::*;

    fn asked(requested: Option<&str>, allowed: &str, may_refresh: bool) -> Result<String, Reason> {
        let mut client = Client { scope: scope(allowed), ..samples::client() };
        if may_refresh {
            client.grant_types.insert(GrantType::RefreshToken);
        }
        let answer = requested_scope(requested.map(scope).as_ref(), &client, &catalogue());
        answer.map(|scope| scope.to_string()).map_err(|error| error.reason)
    }

    #[test]
    fn without_scope_everything_allowed_is_meant() {
        let all = "openid stock gone offline_access profile";
        assert_eq!(asked(None, all, true), Ok(String::from("openid stock offline_access profile")));
        assert_eq!(asked(None, all, false), Ok(String::from("openid stock profile")));
        assert_eq!(asked(Some("stock openid"), all, false), Ok(String::from("stock openid")));
        assert_eq!(asked(Some("offline_access"), all, true), Ok(String::from("offline_access")));
    }

    #[test]
    fn everything_else_is_an_invalid_scope() {
        #[rustfmt::skip]
        let rows = [
            (None, "", Reason::NoScopeLeft), (None, "gone", Reason::NoScopeLeft),
            (None, "offline_access", Reason::NoScopeLeft), (Some("stock orders.read"), "stock", Reason::UnknownScope),
            (Some("gone"), "gone", Reason::UnknownScope),
            (Some("openid offline_access"), "openid", Reason::UnknownScope),
            (Some("openid offline_access"), "openid offline_access", Reason::UnknownScope),
            (Some("Stock"), "stock", Reason::UnknownScope),
        ];
        for (requested, allowed, reason) in rows {
            assert_eq!(asked(requested, allowed, false), Err(reason), "{requested:?} of {allowed}");
        }
    }
}
