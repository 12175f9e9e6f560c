//! Introspection (RFC 7662): the answer to a resource, or to a client about its own tokens. Any
//! other caller learns only that the token is not active, as for a token that never existed.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::access_token::{AccessToken, JwtForm, ScopeClaim};
use super::claims;
use crate::token::grant::Grant;
use crate::words::catalogue::Catalogue;
use crate::words::claim_set::ClaimSet;
use crate::words::client::Client;
use crate::words::identifiers::ClientId;
use crate::words::instant::Instant;
use crate::words::session::User;

#[derive(Clone, Copy)]
pub enum Caller<'a> {
    Client(&'a ClientId),
    Resource(&'a str),
}

/// The token as far as it is the caller's business: a client sees all of its own, a resource its
/// own scopes where the token is meant for it. `None` when that is nothing.
pub fn seen_by<'a>(
    caller: Caller<'_>,
    token: &'a AccessToken,
    catalogue: &Catalogue,
) -> Option<Cow<'a, AccessToken>> {
    match caller {
        Caller::Client(client_id) => {
            (*client_id == token.client_id).then_some(Cow::Borrowed(token))
        }
        Caller::Resource(name) => {
            let stands_behind = |scope: &str| {
                let registered = catalogue.scopes.get(scope);
                registered
                    .is_some_and(|scope| scope.resources.iter().any(|resource| resource == name))
            };
            let meant_for_it = token.audience.iter().any(|audience| audience == name);
            let scope = token.scope.retain(stands_behind);
            if !meant_for_it || scope.is_empty() {
                return None;
            }
            Some(Cow::Owned(AccessToken {
                audience: vec![name.to_owned()],
                scope,
                ..token.clone()
            }))
        }
    }
}

/// The answer about a live access token (RFC 7662 §2.2): what its JWT form says, but for what is
/// between us and its client.
pub fn access_token_response<'a>(
    seen: &'a AccessToken,
    client: &'a Client,
    user: Option<&'a User>,
    catalogue: &'a Catalogue,
    issuer: &'a str,
) -> ClaimSet<'a> {
    let mut answer = seen.jwt_claims(JwtForm {
        issuer,
        scope_claim: ScopeClaim::Text,
        client_as_subject: client.client_credentials_sub,
    });
    claims::add_for_access_token(
        &mut answer,
        user,
        client,
        &seen.scope,
        &seen.audience,
        catalogue,
    );
    answer
        .remove("amr")
        .remove("userinfo_claims")
        .remove("grant_claims")
        .remove("exchanged_from")
        // The first claim of a name stays, and these two are the answer's own.
        .remove("active")
        .remove("token_type")
        .set("active", true)
        .text("token_type", seen.token_type());
    answer
}

pub fn refresh_token_response(grant: &Grant, ends_at: Instant) -> Value {
    json!({
        "active": true,
        "scope": grant.scope.to_string(),
        "exp": ends_at.seconds(),
        "sub": grant.user.subject
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::samples::{self, scope};

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
    fn a_client_sees_all_of_its_own_and_nothing_of_others() {
        let token = token("openid orders.read", &[ORDERS]);
        let seen = |name: &str| {
            let client_id = ClientId::new(name);
            seen_by(Caller::Client(&client_id), &token, &samples::catalogue())
        };
        assert_eq!(seen("web").as_deref(), Some(&token));
        assert_eq!(seen("app"), None);
    }

    #[test]
    fn an_answer_keeps_back_what_is_between_us_and_the_client() {
        use crate::token::delegation::{Actor, Delegation, TokenOrigin};

        let mut token = token("openid orders.read", &[ORDERS]);
        token.delegation = Some(Delegation {
            actors: vec![Actor::Client(ClientId::new("gateway"))],
            origins: vec![TokenOrigin::of(&samples::access_token())],
        });
        token.claims.insert(String::from("tier"), json!("gold"));
        let (client, alice, catalogue) =
            (samples::client(), samples::alice(), samples::catalogue());
        let answer = json!(access_token_response(
            &token,
            &client,
            Some(&alice),
            &catalogue,
            "https://op.example",
        ));
        for (name, value) in [
            ("active", json!(true)),
            ("token_type", json!("Bearer")),
            ("scope", json!("openid orders.read")),
            ("aud", json!(ORDERS)),
            ("client_id", json!("web")),
            ("sub", json!("alice-subject")),
            ("acr", json!("1")),
            ("tier", json!("gold")),
            ("role", json!(["admin"])),
            ("email", json!("alice@example.com")),
        ] {
            assert_eq!(answer.get(name), Some(&value), "{name}");
        }
        assert!(answer.get("act").is_some());
        for name in ["amr", "userinfo_claims", "grant_claims", "exchanged_from"] {
            assert!(answer.get(name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_refresh_token_is_told_by_scope_subject_and_end() {
        let grant = samples::given("openid offline_access");
        let response = refresh_token_response(&grant, samples::NOW);
        let expected = json!({
            "active": true, "scope": "openid offline_access", "sub": "alice-subject",
            "exp": samples::NOW.seconds(),
        });
        assert_eq!(response, expected);
    }

    #[test]
    fn a_resource_sees_its_own_scopes_and_nobody_elses() {
        let both = token("openid orders.read stock ping", &[ORDERS, "stock"]);
        assert_eq!(resource_sees(ORDERS, &both).as_deref(), Some("orders.read"));
        assert_eq!(resource_sees("stock", &both).as_deref(), Some("stock"));
        let seen = seen_by(Caller::Resource("stock"), &both, &samples::catalogue());
        assert_eq!(seen.unwrap().audience, ["stock"]);
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
