//! JSON, as serde_json keeps it.

use serde_json::{Map, Value};

/// A JSON object (RFC 8259 §4): claims, or the members of a document from outside.
pub type JsonObject = Map<String, Value>;

/// Whether a value says nothing.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Members of what was written elsewhere. One of another type counts as absent.
pub trait Members {
    fn member(&self, name: &str) -> Option<&Value>;

    fn text(&self, name: &str) -> Option<&str> {
        self.member(name)?.as_str()
    }

    /// A text that is not empty.
    fn filled(&self, name: &str) -> Option<&str> {
        self.text(name).filter(|text| !text.is_empty())
    }

    fn items(&self, name: &str) -> &[Value] {
        let items = self.member(name).and_then(Value::as_array);
        items.map(Vec::as_slice).unwrap_or_default()
    }

    /// The texts of an array.
    fn texts(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> {
        self.items(name).iter().filter_map(Value::as_str)
    }
}

/// Members of what is written here.
pub trait SetMember {
    /// Whether there is one of that name or not.
    fn set(&mut self, name: &str, value: impl Into<Value>);
}

impl SetMember for JsonObject {
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.insert(name.to_owned(), value.into());
    }
}

/// What is no object has no members, and gets none.
impl SetMember for Value {
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        if let Value::Object(members) = self {
            members.set(name, value);
        }
    }
}

impl Members for Value {
    fn member(&self, name: &str) -> Option<&Value> {
        self.get(name)
    }
}

impl Members for JsonObject {
    fn member(&self, name: &str) -> Option<&Value> {
        self.get(name)
    }
}
