//! The events of changes to what is registered, and what they tell.

use serde_json::{Value, json};

use gatepost_protocol::registration::timestamp;
use gatepost_protocol::token::claims::is_personal;
use gatepost_protocol::words::identifiers::{ClientId, Subject};
use gatepost_protocol::words::json::JsonObject;
use gatepost_registration::plan::FieldChange;
use gatepost_registration::user::Identity;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::linked_identities::Link;
use gatepost_store::users::UserRow;

pub fn audit_event(event: &str, detail: Value) -> AuditEvent<'_> {
    AuditEvent {
        event,
        detail,
        ..AuditEvent::default()
    }
}

pub fn user_event<'a>(event: &'a str, sub: &'a Subject, detail: Value) -> AuditEvent<'a> {
    AuditEvent {
        event,
        detail,
        sub: Some(sub),
        ..AuditEvent::default()
    }
}

pub fn client_event<'a>(event: &'a str, client_id: &'a ClientId, detail: Value) -> AuditEvent<'a> {
    AuditEvent {
        event,
        detail,
        client_id: Some(client_id),
        ..AuditEvent::default()
    }
}

/// A link, and the event that tells of it.
pub fn told_link<'a>(
    event: &'a str,
    identity: &'a Identity,
    sub: &'a Subject,
) -> (Link<'a>, AuditEvent<'a>) {
    let Identity {
        issuer,
        subject: upstream_subject,
    } = identity;
    let detail = json!({"by": "operator", "issuer": issuer, "upstream_subject": upstream_subject});
    (
        Link {
            issuer,
            upstream_subject,
            sub,
            provider: None,
        },
        user_event(event, sub, detail),
    )
}

/// What the audit log tells of a user in place of what says who somebody is (`name`, `email`, ...):
/// events are kept for long and outlive the user. Passwords it never tells.
const WITHHELD: &str = "(withheld)";

pub fn told_added(new: &UserRow) -> Value {
    json!({"username": new.username, "new": form(new)})
}

pub fn told_removed(old: &UserRow) -> Value {
    json!({"username": old.username, "old": form(old)})
}

pub fn told_field(change: &FieldChange) -> Value {
    let claim = change.key.strip_prefix("claims.").unwrap_or_default();
    let is_personal = is_personal(claim.split('.').next().unwrap_or_default());
    let told = |value: &Option<Value>| match value {
        Some(_) if is_personal => Some(json!(WITHHELD)),
        Some(Value::Object(all)) if change.key == "claims" => Some(claims(all)),
        other => other.clone(),
    };
    json!({"key": change.key, "old": told(&change.before), "new": told(&change.after)})
}

fn form(user: &UserRow) -> Value {
    json!({
        "tenant": user.tenant,
        "enabled": user.enabled,
        "valid_until": user.valid_until.map(timestamp::format),
        "has_password": user.password_hash.is_some(),
        "claims": claims(&user.claims),
    })
}

fn claims(all: &JsonObject) -> Value {
    let mut told = all.clone();
    for (name, value) in &mut told {
        if is_personal(name) {
            *value = json!(WITHHELD);
        }
    }
    Value::Object(told)
}
