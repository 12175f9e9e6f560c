//! Introspection (RFC 7662): the answer to a resource, or to a client about its own tokens. Any
//! other caller learns only that the token is not active, as for a token that never existed.

use serde_json::{Map, Value, json};

use super::access_token::{AccessToken, JwtForm, ScopeClaim};
use super::claims;
use crate::protocol::token::grant::Grant;
use crate::protocol::words::catalogue::Catalogue;
use crate::protocol::words::client::Client;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::session::User;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller<'a> {
    Client(&'a ClientId),
    Resource(&'a str),
}

/// The token as far as it is the caller's business: a client sees all of its own, a resource its
/// own scopes where the token is meant for it. `None` when that is nothing.
pub fn seen_by(
    caller: Caller<'_>,
    token: &AccessToken,
    catalogue: &Catalogue,
) -> Option<AccessToken> {
    match caller {
        Caller::Client(client_id) => (*client_id == token.client_id).then(|| token.clone()),
        Caller::Resource(name) => {
            let stands_behind = |scope: &str| {
                let registered = catalogue.scopes.get(scope);
                registered
                    .is_some_and(|scope| scope.resources.iter().any(|resource| resource == name))
            };
            let meant_for_it = token.audience.iter().any(|audience| audience == name);
            let scope = token.scope.retain(stands_behind);
            let seen = || AccessToken {
                audience: vec![name.to_owned()],
                scope: scope.clone(),
                ..token.clone()
            };
            (meant_for_it && !scope.is_empty()).then(seen)
        }
    }
}

/// The answer about a live access token (RFC 7662 §2.2): what its JWT form says, but for what is
/// between us and its client.
pub fn access_token_response(
    seen: &AccessToken,
    client: &Client,
    user: Option<&User>,
    catalogue: &Catalogue,
    issuer: &str,
) -> Map<String, Value> {
    let mut answer = seen.jwt_claims(JwtForm {
        issuer,
        scope_claim: ScopeClaim::Text,
        client_as_subject: client.client_credentials_sub,
        further_claims: claims::for_access_token(
            user,
            client,
            &seen.scope,
            &seen.audience,
            catalogue,
        ),
    });
    for withheld in ["amr", "userinfo_claims", "grant_claims", "exchanged_from"] {
        answer.remove(withheld);
    }
    answer.extend(claims::present(
        json!({ "active": true, "token_type": seen.token_type() }),
    ));
    answer
}

pub fn refresh_token_response(grant: &Grant, ends_at: Instant) -> Value {
    json!({
        "active": true, "scope": grant.scope.to_string(), "exp": ends_at.seconds(), "sub": grant.user.subject
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::words::samples::{self, scope};

    const ORDERS: &str = "https://orders.example.com/";

    fn token(text: &str, audience: &[&str]) -> AccessToken {
        let audience = audience.iter().map(|name| name.to_string()).collect();
        AccessToken {
            scope: scope(text),
            audience,
            ..samples::access_token()
        }
    }

    fn resource_sees(name: &str, token: &AccessToken) -> Option<String> {
        seen_by(Caller::Resource(name), token, &samples::catalogue())
            .map(|seen| seen.scope.to_string())
    }

    #[test]
    fn a_resource_sees_its_own_scopes_and_nobody_elses() {
        let both = token("openid orders.read stock ping", &[ORDERS, "stock"]);
        assert_eq!(resource_sees(ORDERS, &both).as_deref(), Some("orders.read"));
        assert_eq!(resource_sees("stock", &both).as_deref(), Some("stock"));
        for (name, token) in [
            ("nobody", &both),
            ("", &both),
            ("web", &both),
            ("STOCK", &both),
            ("stock", &token("openid orders.read", &[ORDERS])),
            ("stock", &token("openid stock", &[ORDERS])), // it has the scope, but is not meant for it
            ("stock", &token("openid", &["stock"])),
            (
                "https://op.example/resources",
                &token("openid ping", &["https://op.example/resources"]),
            ),
        ] {
            assert_eq!(resource_sees(name, token), None, "{name} {token:?}");
        }
    }
}
