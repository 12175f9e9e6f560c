//! Introspection (RFC 7662): what a resource, or a client of its own tokens, is told. Whoever a token is not for learns
//! only that it is not active, as of a token that never was.

use serde_json::{Map, Value, json};

use super::access_token::AccessToken;
use super::claims;
use super::client::Client;
use super::grant::Grant;
use super::identifiers::{ClientId, Sid, TenantName};
use super::instant::Instant;
use super::scope::{Catalogue, ScopeSet};
use super::user::User;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller<'a> {
    /// A client.
    Client(&'a ClientId),
    /// The resource of that name.
    Resource(&'a str),
}

/// What an access token means to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The scopes that are the caller's business.
    pub scope: ScopeSet,
    /// Of the token's audience, what is.
    pub audience: Vec<String>,
}

/// `{"active": false}`
pub fn inactive() -> Map<String, Value> {
    Map::from_iter([(String::from("active"), json!(false))])
}

/// What the caller may see of the token: a client all of its own, a resource its own scopes where the token is meant for
/// it. `None` when that is nothing.
pub fn seen_by(caller: Caller<'_>, token: &AccessToken, catalogue: &Catalogue) -> Option<Seen> {
    match caller {
        Caller::Client(client_id) => (*client_id == token.client_id)
            .then(|| Seen { scope: token.scope.clone(), audience: token.audience.clone() }),
        Caller::Resource(name) => {
            let stands_behind = |scope: &str| {
                let registered = catalogue.scopes.get(scope);
                registered.is_some_and(|scope| scope.resources.iter().any(|resource| resource == name))
            };
            let meant_for_it = token.audience.iter().any(|audience| audience == name);
            let scope = token.scope.retain(stands_behind);
            (meant_for_it && !scope.is_empty()).then(|| Seen { scope, audience: vec![name.to_owned()] })
        }
    }
}

/// The answer about a live access token (RFC 7662 §2.2): the token's own members, then the claims it carries.
pub fn access_token_response(
    token: &AccessToken,
    seen: &Seen,
    (client, user): (&Client, Option<&User>),
    catalogue: &Catalogue,
    issuer: &str,
) -> Map<String, Value> {
    let of_user = token.user.as_ref();
    let subject = of_user.map(|user| user.subject.as_str());
    let client_as_subject = (of_user.is_none() && client.client_credentials_sub).then_some(client.client_id.as_str());
    let audience = match seen.audience.as_slice() {
        [only] => json!(only),
        several => json!(several),
    };
    let members = [
        ("active", Some(json!(true))),
        ("scope", Some(json!(seen.scope.to_string()))),
        ("client_id", Some(json!(token.client_id.as_str()))),
        ("token_type", Some(json!("Bearer"))),
        ("exp", Some(json!(token.expires_at.seconds()))),
        ("iat", Some(json!(token.issued_at.seconds()))),
        ("nbf", Some(json!(token.issued_at.seconds()))),
        ("sub", subject.or(client_as_subject).map(Value::from)),
        ("aud", Some(audience)),
        ("iss", Some(json!(issuer))),
        ("jti", Some(json!(token.jti.to_text()))),
        ("sid", of_user.and_then(|user| user.sid.as_ref()).map(Sid::as_str).map(Value::from)),
        ("auth_time", of_user.map(|user| json!(user.auth_time.seconds()))),
        ("acr", of_user.map(|user| json!(user.acr))),
        ("tenant", of_user.and_then(|user| user.tenant.as_ref()).map(TenantName::as_str).map(Value::from)),
    ];
    let mut answer: Map<String, Value> =
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    if let Some(delegation) = &token.delegation {
        answer.insert(String::from("act"), delegation.act());
    }
    answer.extend(token.claims.clone());
    let carried = claims::for_access_token(user, client, &seen.scope, &seen.audience, catalogue);
    claims::add_unreserved(&mut answer, carried);
    answer
}

/// The answer about a live refresh token, to its client.
pub fn refresh_token_response(grant: &Grant, ends_at: Instant) -> Map<String, Value> {
    let members = [
        ("active", json!(true)),
        ("scope", json!(grant.scope.to_string())),
        ("exp", json!(ends_at.seconds())),
        ("sub", json!(grant.user.subject.as_str())),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, NOW, scope};
    use super::*;

    const ISSUER: &str = "https://op.example";
    const ORDERS: &str = "https://orders.example.com/";

    fn token(text: &str, audience: &[&str]) -> AccessToken {
        let audience = audience.iter().map(|name| name.to_string()).collect();
        AccessToken { scope: scope(text), audience, ..samples::access_token() }
    }

    fn resource_sees(name: &str, token: &AccessToken) -> Option<String> {
        seen_by(Caller::Resource(name), token, &samples::catalogue()).map(|seen| seen.scope.to_string())
    }

    fn answer(caller: Caller<'_>, token: &AccessToken, client: &Client, user: Option<&User>) -> Value {
        let catalogue = samples::catalogue();
        let seen = seen_by(caller, token, &catalogue).unwrap();
        Value::Object(access_token_response(token, &seen, (client, user), &catalogue, ISSUER))
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
            ("https://op.example/resources", &token("openid ping", &["https://op.example/resources"])),
        ] {
            assert_eq!(resource_sees(name, token), None, "{name} {token:?}");
        }
    }

    #[test]
    fn a_client_sees_all_of_its_own_tokens_and_nothing_of_others() {
        let token = token("openid orders.read stock", &[ORDERS, "stock"]);
        let seen = seen_by(Caller::Client(&ClientId::new("web")), &token, &samples::catalogue()).unwrap();
        assert_eq!((seen.scope, seen.audience), (token.scope.clone(), token.audience.clone()));
        for name in ["other", "WEB", ORDERS, ""] {
            assert_eq!(seen_by(Caller::Client(&ClientId::new(name)), &token, &samples::catalogue()), None, "{name}");
        }
    }

    #[test]
    fn the_answer_names_what_the_caller_may_know() {
        let token = token("openid orders.read stock", &[ORDERS, "stock"]);
        let (client, alice) = (samples::client(), samples::alice());
        let to_orders = answer(Caller::Resource(ORDERS), &token, &client, Some(&alice));
        let expected = json!({
            "active": true, "scope": "orders.read", "client_id": "web", "token_type": "Bearer", "exp": NOW.seconds() + 3600,
            "iat": NOW.seconds(), "nbf": NOW.seconds(), "sub": "alice-subject", "aud": ORDERS, "iss": ISSUER,
            "jti": token.jti.to_text(), "sid": "sid-1", "auth_time": NOW.seconds() - 10, "acr": "1", "tenant": "acme", "role": ["admin"], "email": "alice@example.com"
        });
        assert_eq!(to_orders, expected);
        let to_stock = answer(Caller::Resource("stock"), &token, &client, Some(&alice));
        assert_eq!((&to_stock["scope"], to_stock.get("role"), to_stock.get("email")), (&json!("stock"), None, None));
        let to_client = answer(Caller::Client(&client.client_id), &token, &client, Some(&alice));
        assert_eq!(to_client["scope"], "openid orders.read stock");
        assert_eq!(to_client["aud"], json!([ORDERS, "stock"]));
    }

    #[test]
    fn no_claim_overwrites_a_member_of_the_answer() {
        let mut client = samples::client();
        for name in ["active", "scope", "exp", "sub", "client_id", "token_type", "tenant"] {
            client.claims.insert(name.to_owned(), json!("forged"));
        }
        client.claims.insert(String::from("plan"), json!("gold"));
        let answer = answer(Caller::Resource("stock"), &token("stock", &["stock"]), &client, None);
        assert_eq!((&answer["plan"], &answer["active"]), (&json!("gold"), &json!(true)));
        assert!(!answer.to_string().contains("forged"), "{answer}");
    }

    #[test]
    fn the_subject_of_a_clients_token_is_the_client_unless_its_registration_says_otherwise() {
        let mut client = samples::client();
        let of_client = AccessToken { user: None, ..token("stock", &["stock"]) };
        assert_eq!(answer(Caller::Resource("stock"), &of_client, &client, None)["sub"], "web");
        client.client_credentials_sub = false;
        assert_eq!(answer(Caller::Resource("stock"), &of_client, &client, None).get("sub"), None);
    }
}
