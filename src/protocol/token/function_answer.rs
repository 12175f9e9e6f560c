//! SQL functions that answer an extension grant: what they get to know of the client, and how their
//! answer is read.
//!
//! ```json
//! {"subject": "..", "scope": "orders.read",
//!  "claims": {"tier": "gold"}, "parameters": {"account": 7}}
//! {"error": "invalid_grant", "error_description": "This key has expired."}
//! ```
//!
//! Every member may be left out or null. An answer has an `error` or something to issue, never
//! both.

use serde_json::{Value, json};

use super::claims;
use super::extension_grant::{Description, GrantAnswer, GrantRefusal, Proposal};
use crate::words::client::{Client, GrantType};
use crate::words::identifiers::Subject;
use crate::words::json::JsonObject;
use crate::words::reason::{Reason, TokenError, TokenErrorCode};
use crate::words::scope::ScopeSet;

const MEMBERS: [&str; 6] = [
    "subject",
    "scope",
    "claims",
    "parameters",
    "error",
    "error_description",
];

/// The registration of the client, without secrets and keys.
pub fn client_metadata(client: &Client) -> JsonObject {
    let grant_types: Vec<&str> = client.grant_types.iter().map(GrantType::as_str).collect();
    claims::present(json!({
        "client_id": client.client_id,
        "client_name": client.client_name.plain,
        "client_uri": client.links.client_uri,
        "redirect_uris": client.redirect_uris,
        "grant_types": grant_types,
        "scope": client.scope.to_string(),
        "tenants": client.tenants,
        "claims": client.claims,
    }))
}

/// Reads an answer. The error is for the log: it shows nothing of the answer but names of members.
pub fn read(answer: &Value) -> Result<GrantAnswer, String> {
    let members = answer.as_object().ok_or("something else than an object")?;
    if let Some(unknown) = members
        .keys()
        .find(|name| !MEMBERS.contains(&name.as_str()))
    {
        return Err(format!("an unknown member {unknown:?}"));
    }
    match text(members, "error")? {
        Some(error) => refusal(members, error).map(GrantAnswer::Refuse),
        None => Ok(GrantAnswer::Propose(Box::new(proposal(members)?))),
    }
}

fn refusal(members: &JsonObject, error: &str) -> Result<GrantRefusal, String> {
    if ["subject", "scope", "claims", "parameters"]
        .iter()
        .any(|name| present(members, name).is_some())
    {
        return Err(String::from("an error and something to issue"));
    }
    let known = [
        TokenErrorCode::InvalidRequest,
        TokenErrorCode::InvalidGrant,
        TokenErrorCode::UnauthorizedClient,
        TokenErrorCode::InvalidScope,
        TokenErrorCode::InvalidTarget,
    ];
    let code = known
        .into_iter()
        .find(|code| code.as_str() == error)
        .ok_or("an error that no grant can have")?;
    let description = text(members, "error_description")?.and_then(Description::new);
    Ok(GrantRefusal {
        error: TokenError::new(code, Reason::ExtensionRefused),
        description,
    })
}

fn proposal(members: &JsonObject) -> Result<Proposal, String> {
    if present(members, "error_description").is_some() {
        return Err(String::from("an error_description without error"));
    }
    let scope = text(members, "scope")?
        .map(|scope| ScopeSet::parse(scope).ok_or("a scope that is none"))
        .transpose()?;
    Ok(Proposal {
        subject: text(members, "subject")?.map(Subject::new),
        scope,
        claims: object(members, "claims")?,
        parameters: object(members, "parameters")?,
        ..Proposal::default()
    })
}

fn present<'a>(members: &'a JsonObject, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

fn text<'a>(members: &'a JsonObject, name: &str) -> Result<Option<&'a str>, String> {
    match present(members, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("a {name} that is no text")),
    }
}

fn object(members: &JsonObject, name: &str) -> Result<JsonObject, String> {
    match present(members, name) {
        None => Ok(JsonObject::new()),
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(_) => Err(format!("{name} that are no object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::samples::{self, scope};

    #[test]
    fn an_answer_proposes_what_it_names_and_null_is_as_if_it_were_left_out() {
        let proposed = |answer: Value| match read(&answer) {
            Ok(GrantAnswer::Propose(proposal)) => *proposal,
            other => panic!("{other:?}"),
        };
        let whole = proposed(json!({
            "subject": "alice", "scope": "orders.read", "claims": {"tier": "gold"},
            "parameters": {"account": 7}, "error": null,
        }));
        assert_eq!(whole.subject, Some(Subject::new("alice")));
        assert_eq!(whole.scope, Some(scope("orders.read")));
        assert_eq!(whole.claims.get("tier"), Some(&json!("gold")));
        assert_eq!(whole.parameters.get("account"), Some(&json!(7)));
        let nothing = json!({
            "subject": null, "scope": null, "claims": null, "parameters": null,
            "error_description": null,
        });
        for empty in [json!({}), nothing] {
            assert_eq!(proposed(empty), Proposal::default());
        }
    }

    #[test]
    fn an_answer_refuses_with_an_error_that_a_grant_can_have() {
        let refused = |answer: Value| match read(&answer) {
            Ok(GrantAnswer::Refuse(refusal)) => refusal,
            other => panic!("{other:?}"),
        };
        for code in [
            TokenErrorCode::InvalidRequest,
            TokenErrorCode::InvalidGrant,
            TokenErrorCode::UnauthorizedClient,
            TokenErrorCode::InvalidScope,
            TokenErrorCode::InvalidTarget,
        ] {
            let answer = json!({"error": code.as_str(), "error_description": "No \"more\"."});
            let refusal = refused(answer);
            let error = TokenError::new(code, Reason::ExtensionRefused);
            assert_eq!(refusal.error, error);
            let description = refusal.description.unwrap();
            assert_eq!(description.as_str(), "No more.");
        }
        let silent = refused(json!({"error": "invalid_grant", "subject": null}));
        assert_eq!(silent.description, None);
    }

    #[test]
    fn what_is_no_answer_is_told_without_its_values() {
        for (answer, message) in [
            (json!([]), "something else than an object"),
            (json!(null), "something else than an object"),
            (json!({"scopes": "s3cret"}), "an unknown member \"scopes\""),
            (json!({"error": 1}), "a error that is no text"),
            (
                json!({"error": "s3cret"}),
                "an error that no grant can have",
            ),
            (
                json!({"error": "invalid_client"}),
                "an error that no grant can have",
            ),
            (
                json!({"error": "invalid_grant", "error_description": ["s3cret"]}),
                "a error_description that is no text",
            ),
            (
                json!({"error_description": "s3cret"}),
                "an error_description without error",
            ),
            (json!({"subject": ["s3cret"]}), "a subject that is no text"),
            (json!({"scope": "s3cret\u{e9}"}), "a scope that is none"),
            (json!({"scope": 7}), "a scope that is no text"),
            (json!({"claims": "s3cret"}), "claims that are no object"),
            (
                json!({"parameters": ["s3cret"]}),
                "parameters that are no object",
            ),
        ] {
            assert_eq!(read(&answer), Err(message.to_owned()), "{answer}");
        }
        for name in ["subject", "scope", "claims", "parameters"] {
            let mut answer = json!({"error": "invalid_grant"});
            answer[name] = json!("s3cret");
            let message = Err(String::from("an error and something to issue"));
            assert_eq!(read(&answer), message, "{name}");
        }
    }

    #[test]
    fn a_function_is_told_the_registration_without_secrets_and_keys() {
        let client = Client {
            jwks: Some(json!({"keys": []})),
            jwks_uri: Some(String::from("https://rp1.example/jwks")),
            tenants: Some([crate::words::identifiers::TenantName::new("acme")].into()),
            ..samples::client()
        };
        let message = Value::Object(client_metadata(&client));
        assert_eq!(
            message,
            json!({
                "client_id": "web", "client_name": "Web shop",
                "redirect_uris": ["https://shop.example.com/cb"],
                "grant_types": ["authorization_code", "client_credentials"],
                "scope": client.scope.to_string(), "tenants": ["acme"], "claims": {},
            })
        );
    }
}
