//! JSON, as serde_json keeps it.

use serde_json::{Map, Value};

/// A JSON object (RFC 8259 §4): claims, or the members of a document from outside.
pub type JsonObject = Map<String, Value>;
