//! E-mail addresses of an account at a provider without OpenID whose userinfo answer leaves them out: GitHub's
//! `GET /user/emails`, an array of `{"email", "primary", "verified", "visibility"}`.

use serde_json::{Map, Value};

use super::super::registration::provider::IdentityProvider;
use super::UpstreamProblem;
use super::token_exchange::{Answer, check_status, unavailable};

/// The address that somebody chose as the one to be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryEmail {
    pub email: String,
    /// `verified`; `None` where the provider does not say.
    pub verified: Option<bool>,
}

/// Whether the addresses are to be asked for: the registration maps one, or whether it is verified, and the userinfo answer
/// has not got that.
pub fn are_wanting(provider: &IdentityProvider, user_info: &Map<String, Value>) -> bool {
    let is_mapped = |name: &str| provider.claims.contains_key(name);
    let has_email = user_info.get("email").and_then(Value::as_str).is_some_and(|email| !email.is_empty());
    let has_verified = user_info.get("email_verified").is_some_and(Value::is_boolean);
    is_mapped("email") && !has_email || is_mapped("email_verified") && !(has_email && has_verified)
}

/// Reads an answer of the endpoint; `None` where no address is the primary one.
pub fn primary(answer: &Answer<'_>) -> Result<Option<PrimaryEmail>, UpstreamProblem> {
    check_status("the emails endpoint", answer.status)?;
    let addresses: Option<Vec<Map<String, Value>>> = serde_json::from_slice(answer.body).ok();
    let no_array = || unavailable("the emails endpoint's answer is no JSON array of objects");
    let is_primary = |address: &&Map<String, Value>| address.get("primary") == Some(&Value::Bool(true));
    let addresses = addresses.ok_or_else(no_array)?;
    Ok(addresses.iter().find(is_primary).and_then(|address| {
        let email = address.get("email")?.as_str().filter(|email| !email.is_empty())?.to_owned();
        Some(PrimaryEmail { email, verified: address.get("verified").and_then(Value::as_bool) })
    }))
}

/// The userinfo answer with that address in the place of its own: an address and whether it is verified come from one source.
pub fn added(mut user_info: Map<String, Value>, primary: Option<PrimaryEmail>) -> Map<String, Value> {
    let Some(PrimaryEmail { email, verified }) = primary else { return user_info };
    user_info.insert(String::from("email"), Value::from(email));
    match verified {
        Some(verified) => user_info.insert(String::from("email_verified"), Value::from(verified)),
        None => user_info.remove("email_verified"),
    };
    user_info
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::super::registration::provider;
    use super::*;

    fn hub(claims: Value) -> IdentityProvider {
        let url = |path: &str| format!("https://hub.example/{path}");
        let document = json!({
            "name": "hub", "client_id": "x", "authorization_endpoint": url("a"), "token_endpoint": url("t"),
            "userinfo_endpoint": url("u"), "subject_claim": "id", "claims": claims
        });
        provider::from_json(&document, "").unwrap()
    }

    fn members(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn read(status: u16, body: &str) -> Result<Option<PrimaryEmail>, UpstreamProblem> {
        primary(&Answer { status, content_type: Some("application/json"), body: body.as_bytes() })
    }

    fn is(email: &str, verified: Option<bool>) -> Option<PrimaryEmail> {
        Some(PrimaryEmail { email: email.to_owned(), verified })
    }

    #[test]
    fn they_are_asked_for_only_where_something_is_missing_that_is_mapped() {
        let (email, both) = (json!({"email": "email"}), json!({"email": "email", "email_verified": "email_verified"}));
        for (claims, user_info, expected) in [
            (json!({"login": "nickname"}), json!({"email": null}), false),
            (email.clone(), json!({"email": null}), true),
            (email.clone(), json!({}), true),
            (email.clone(), json!({"email": ""}), true),
            (email.clone(), json!({"email": 7}), true),
            (email, json!({"email": "a@b.example"}), false),
            (both.clone(), json!({"email": "a@b.example"}), true),
            (both.clone(), json!({"email": "a@b.example", "email_verified": "yes"}), true),
            (both.clone(), json!({"email": "a@b.example", "email_verified": false}), false),
            (both, json!({"email_verified": true}), true),
            (json!({"email": "contact"}), json!({}), true),
        ] {
            assert_eq!(
                are_wanting(&hub(claims.clone()), &members(user_info.clone())),
                expected,
                "{claims} {user_info}"
            );
        }
    }

    #[test]
    fn the_primary_one_is_taken_and_no_other() {
        for (body, expected) in [
            (json!([]), None),
            (json!([{"email": "a@b.example", "primary": false, "verified": true}]), None),
            (json!([{"email": "a@b.example", "verified": true}]), None),
            (json!([{"email": "a@b.example", "primary": "true", "verified": true}]), None),
            (json!([{"email": null, "primary": true, "verified": true}]), None),
            (json!([{"email": "", "primary": true, "verified": true}]), None),
            (json!([{"email": "a@b.example", "primary": true, "verified": "true"}]), is("a@b.example", None)),
            (json!([{"email": "a@b.example", "primary": true, "verified": false}]), is("a@b.example", Some(false))),
            (
                json!([{"email": "x@b.example", "primary": false, "verified": true, "visibility": null},
                       {"email": "a@b.example", "primary": true, "verified": true, "visibility": "private"}]),
                is("a@b.example", Some(true)),
            ),
        ] {
            assert_eq!(read(200, &body.to_string()), Ok(expected), "{body}");
        }
        for (status, body) in [(404, "[]"), (302, "[]"), (200, "{}"), (200, "[1]"), (200, "null"), (200, "<html>")] {
            assert!(matches!(read(status, body), Err(UpstreamProblem::Unavailable(_))), "{status} {body}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(status in any::<u16>(), body in ".{0,60}") {
            let _ = read(status, &body);
        }
    }
}
