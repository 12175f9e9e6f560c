//! Scopes of a document.

use serde_json::Value;

use crate::protocol::scope::{RegisteredScope, ScopeKind};

use super::names::{BUILT_IN_SCOPES, display_text, is_invisible, released_claim, token_name};
use super::problem::{Problem, all_or_problems};
use super::released_claims::released_claims;
use super::walker::Walker;

pub(super) const RESOURCE_KEYS: &[&str] = &[
    "name",
    "display_name",
    "display_name#",
    "description",
    "description#",
    "claims",
    "required",
    "emphasize",
    "show_in_discovery",
    "resources",
];
/// All but the last.
pub(super) const IDENTITY_KEYS: &[&str] = match RESOURCE_KEYS.split_last() {
    Some((_resources, keys)) => keys,
    None => &[],
};

/// Reads a stored identity scope.
pub fn identity_from_json(document: &Value, path: &str) -> Result<RegisteredScope, Vec<Problem>> {
    all_or_problems(|problems| identity_entry(document, path, problems))
}

/// Reads a stored resource scope.
pub fn resource_from_json(document: &Value, path: &str) -> Result<RegisteredScope, Vec<Problem>> {
    all_or_problems(|problems| resource_entry(document, path, problems))
}

/// Reads one of `identity_scopes`.
pub(super) fn identity_entry(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<RegisteredScope> {
    let mut walker = Walker::open(value, path, IDENTITY_KEYS, problems)?;
    Some(scope(&mut walker, ScopeKind::Identity))
}

/// Reads one of `resource_scopes`.
pub(super) fn resource_entry(value: &Value, path: &str, problems: &mut Vec<Problem>) -> Option<RegisteredScope> {
    let mut walker = Walker::open(value, path, RESOURCE_KEYS, problems)?;
    let scope = scope(&mut walker, ScopeKind::Resource);
    if BUILT_IN_SCOPES.contains(&scope.name.as_str()) {
        walker.problem("name", "is the name of a built-in identity scope");
    }
    Some(scope)
}

fn scope(walker: &mut Walker<'_, '_>, kind: ScopeKind) -> RegisteredScope {
    let name = walker.required("name", token_name);
    let (claims, renamed) = released_claims(walker, released_claim);
    RegisteredScope {
        kind,
        display_name: walker.localized("display_name", display_text, &name),
        description: walker.localized("description", description, ""),
        claims,
        renamed,
        required: walker.flag("required").unwrap_or(false),
        emphasize: walker.flag("emphasize").unwrap_or(false),
        show_in_discovery: walker.flag("show_in_discovery").unwrap_or(true),
        resources: walker.strings("resources", token_name).unwrap_or_default(),
        name,
    }
}

fn description(text: &str) -> Result<(), &'static str> {
    let acceptable = text.chars().count() <= 1_000 && !text.chars().any(is_invisible);
    if acceptable { Ok(()) } else { Err("must be at most 1000 characters, without control characters") }
}
