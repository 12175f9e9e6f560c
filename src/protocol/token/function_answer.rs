//! SQL functions that answer an extension grant: what they are told of the client, and how their
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

use serde_json::{Map, Value, json};

use super::claims;
use super::extension_grant::{Description, GrantAnswer, GrantRefusal, Proposal};
use crate::protocol::words::client::{Client, GrantType};
use crate::protocol::words::identifiers::Subject;
use crate::protocol::words::reason::{Reason, TokenError, TokenErrorCode};
use crate::protocol::words::scope::ScopeSet;

const MEMBERS: [&str; 6] = [
    "subject",
    "scope",
    "claims",
    "parameters",
    "error",
    "error_description",
];

/// The registration of the client, without secrets and keys.
pub fn client_metadata(client: &Client) -> Map<String, Value> {
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
        None => proposal(members).map(|proposal| GrantAnswer::Propose(Box::new(proposal))),
    }
}

fn refusal(members: &Map<String, Value>, error: &str) -> Result<GrantRefusal, String> {
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

fn proposal(members: &Map<String, Value>) -> Result<Proposal, String> {
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

fn present<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    let value = present(members, name);
    value
        .map(|value| {
            value
                .as_str()
                .ok_or_else(|| format!("a {name} that is no text"))
        })
        .transpose()
}

fn object(members: &Map<String, Value>, name: &str) -> Result<Map<String, Value>, String> {
    let value = present(members, name);
    let object = value.map(|value| {
        value
            .as_object()
            .cloned()
            .ok_or_else(|| format!("{name} that are no object"))
    });
    Ok(object.transpose()?.unwrap_or_default())
}
