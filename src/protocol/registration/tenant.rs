//! Tenants of a document.

use serde_json::Value;

use crate::protocol::scope::RegisteredTenant;

use super::names::{display_text, plain_name};
use super::problem::{Problem, all_or_problems};
use super::walker::Walker;

pub(super) const KEYS: &[&str] = &["name", "display_name"];

/// Reads a stored tenant.
pub fn from_json(document: &Value, path: &str) -> Result<RegisteredTenant, Vec<Problem>> {
    all_or_problems(|problems| entry(document, path, problems))
}

/// Reads one of `tenants`.
pub(super) fn entry(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<RegisteredTenant> {
    let mut walker = Walker::open(value, path, KEYS, problems)?;
    let name = walker.required("name", plain_name);
    let display_name = walker.checked("display_name", display_text).unwrap_or_else(|| name.clone());
    Some(RegisteredTenant { name, display_name })
}
