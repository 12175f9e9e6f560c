//! What is registered, as the document that would register it: without secrets and passwords, which applying leaves as
//! they are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client;
use super::kind::Kind;
use super::plan::Registered;
use super::user::UserEntry;
use crate::protocol::words::identifiers::{Subject, TenantName};

/// The document. Applied to the installation it came from, it changes nothing.
pub fn document(registered: &Registered, users: &BTreeMap<Subject, UserEntry>) -> Value {
    let mut lists: BTreeMap<&str, Vec<Value>> = Kind::ALL.into_iter().map(|kind| (kind.list(), Vec::new())).collect();
    for ((kind, _), object) in &registered.objects {
        let is_client = *kind == Kind::Client;
        let document = if is_client { client::exported(&object.document) } else { object.document.clone() };
        lists.entry(kind.list()).or_default().push(document);
    }
    lists.insert(Kind::User.list(), users.values().map(user).collect());
    json!(lists)
}

fn user(user: &UserEntry) -> Value {
    json!({
        "sub": user.subject.as_ref().map(Subject::as_str),
        "username": user.username,
        "tenant": user.tenant.as_ref().map(TenantName::as_str),
        "enabled": user.enabled,
        "claims": user.claims,
    })
}
