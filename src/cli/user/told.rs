//! What the audit log tells of a user. Events are kept for long and outlive the user, so of what says who somebody is
//! (`name`, `email`, ...) it tells that it is there, and not what it is; passwords it never tells.

use serde_json::{Map, Value, json};

use crate::protocol::registration::plan::FieldChange;
use crate::protocol::token::claims::is_personal;
use crate::protocol::words::identifiers::TenantName;
use crate::store::users::UserRow;

const WITHHELD: &str = "(withheld)";

pub(in crate::cli) fn added(new: &UserRow) -> Value {
    let form = form(new.tenant.as_ref(), new.enabled, new.password_hash.is_some(), &new.claims);
    json!({"username": new.username, "new": form})
}

pub(in crate::cli) fn removed(old: &UserRow) -> Value {
    let form = form(old.tenant.as_ref(), old.enabled, old.password_hash.is_some(), &old.claims);
    json!({"username": old.username, "old": form})
}

pub(in crate::cli) fn field(change: &FieldChange) -> Value {
    let claim = change.key.strip_prefix("claims.").unwrap_or_default();
    let is_personal = is_personal(claim.split('.').next().unwrap_or_default());
    let told = |value: &Option<Value>| match value {
        Some(_) if is_personal => Some(json!(WITHHELD)),
        Some(Value::Object(all)) if change.key == "claims" => Some(claims(all)),
        other => other.clone(),
    };
    json!({"key": change.key, "old": told(&change.before), "new": told(&change.after)})
}

fn form(tenant: Option<&TenantName>, enabled: bool, has_password: bool, all: &Map<String, Value>) -> Value {
    let tenant = tenant.map(TenantName::as_str);
    json!({"tenant": tenant, "enabled": enabled, "has_password": has_password, "claims": claims(all)})
}

fn claims(all: &Map<String, Value>) -> Value {
    let told = |(name, value): (&String, &Value)| {
        (name.clone(), if is_personal(name) { json!(WITHHELD) } else { value.clone() })
    };
    Value::Object(all.iter().map(told).collect())
}
