//! Resources of a document.

use serde_json::Value;

use crate::protocol::scope::RegisteredResource;

use super::client_secret::{self, RegisteredSecret};
use super::names::{display_text, own_claim, token_name};
use super::problem::{Problem, all_or_problems};
use super::released_claims::released_claims;
use super::walker::Walker;

/// A resource and what it authenticates with at introspection.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceEntry {
    /// The resource.
    pub resource: RegisteredResource,
    /// `secrets`; `None` leaves those already stored.
    pub secrets: Option<Vec<RegisteredSecret>>,
}

pub(super) const KEYS: &[&str] = &["name", "display_name", "secrets", "claims"];

/// Reads a stored resource.
pub fn from_json(document: &Value, path: &str) -> Result<RegisteredResource, Vec<Problem>> {
    all_or_problems(|problems| entry(document, path, problems)).map(|entry| entry.resource)
}

/// Reads one of `resources`.
pub(super) fn entry(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<ResourceEntry> {
    let mut walker = Walker::open(value, path, KEYS, problems)?;
    let name = walker.required("name", token_name);
    let (claims, renamed) = released_claims(&mut walker, own_claim);
    let resource = RegisteredResource {
        display_name: walker.checked("display_name", display_text).unwrap_or_else(|| name.clone()),
        claims,
        renamed,
        name,
    };
    Some(ResourceEntry { resource, secrets: walker.list("secrets", client_secret::parse) })
}
