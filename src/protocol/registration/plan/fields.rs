//! Where two registrations differ, member by member.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// One member that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// Its place: `scope`, `claims.role`.
    pub key: String,
    /// What is registered; `None` where it is new.
    pub before: Option<Value>,
    /// What shall be; `None` where it goes.
    pub after: Option<Value>,
}

/// Every difference but in `name_key`, which names the object.
pub(super) fn compare(before: Option<&Value>, after: &Value, name_key: &str) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    let (nothing, before) = (Map::new(), before.and_then(Value::as_object));
    members(before.unwrap_or(&nothing), after.as_object().unwrap_or(&nothing), "", &mut changes);
    changes.retain(|change| change.key != name_key);
    changes
}

fn members(before: &Map<String, Value>, after: &Map<String, Value>, path: &str, changes: &mut Vec<FieldChange>) {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let place = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (before.get(key), after.get(key)) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => members(before, after, &place, changes),
            (Some(before), Some(after)) if is_same(before, after) => {}
            (before, after) => {
                changes.push(FieldChange { key: place, before: before.cloned(), after: after.cloned() });
            }
        }
    }
}

/// Equal as JSON: a number is itself however it is written, and Postgres writes `1e2` as `100`.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        (one, other) => one == other,
    }
}
