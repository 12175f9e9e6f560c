//! JSON, as serde_json keeps it.

use serde_json::{Map, Value};

/// A JSON object (RFC 8259 §4): claims, or the members of a document from outside.
pub type JsonObject = Map<String, Value>;

/// Members of what was written elsewhere. One of another type counts as absent.
pub trait Members {
    fn member(&self, name: &str) -> Option<&Value>;

    fn text(&self, name: &str) -> Option<&str> {
        self.member(name)?.as_str()
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
