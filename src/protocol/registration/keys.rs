//! Public keys that clients and assertion issuers register (RFC 7517 §5).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::protocol::keys::key_set::{KeySet, read};

use super::problem::Problem;
use super::walker::Walker;

/// Reads a JWK set of public keys. Keys for something else than signatures may be in it.
pub(super) fn jwks(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<Value> {
    Walker::object(value, path, problems, |walker| {
        let keys = walker.list("keys", |key, place, _| Some((place.to_owned(), read(key)))).unwrap_or_default();
        if keys.is_empty() {
            walker.problem("keys", "must be an array of at least one key");
        }
        let mut seen = BTreeSet::new();
        for (place, key) in keys {
            match key {
                Err(rule) => walker.note(place, rule),
                Ok(Some(named)) if !seen.insert(named.key.thumbprint()) => {
                    walker.note(place, "is a key that stands in the set before");
                }
                Ok(Some(_) | None) => {}
            }
        }
        match KeySet::parse(value) {
            Some(set) if set.has_ambiguous_names() => walker.problem("keys", "must give each key a kid of its own"),
            Some(_) => {}
            None => walker.problem("keys", "must not be more than 100"),
        }
        value.clone()
    })
}
