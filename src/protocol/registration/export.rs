//! What is registered, as the document that would register it: without secrets and passwords, which applying leaves as
//! they are.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::client;
use super::document;
use super::plan::{Registered, RegisteredUser};
use crate::protocol::identifiers::{Subject, TenantName};

/// The document. Applied to the installation it came from, it changes nothing.
pub fn document(registered: &Registered, users: &BTreeMap<Subject, RegisteredUser>) -> Value {
    let mut lists: BTreeMap<&str, Vec<Value>> = document::KEYS.into_iter().map(|list| (list, Vec::new())).collect();
    for ((kind, _), entry) in &registered.entries {
        lists.entry(kind.list()).or_default().push(entry.document.clone());
    }
    let clients = registered.clients.values().map(|row| client::exported(&row.metadata));
    lists.insert("clients", clients.collect());
    lists.insert("users", users.iter().map(|(subject, row)| user(subject, row)).collect());
    let members: Map<String, Value> = lists.into_iter().map(|(list, items)| (list.to_owned(), json!(items))).collect();
    Value::Object(members)
}

fn user(subject: &Subject, user: &RegisteredUser) -> Value {
    json!({
        "sub": subject.as_str(),
        "username": user.username,
        "tenant": user.tenant.as_ref().map(TenantName::as_str),
        "enabled": user.enabled,
        "claims": user.claims,
    })
}
