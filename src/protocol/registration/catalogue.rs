//! Tenants, scopes and resources of a document.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::protocol::words::scope::{RegisteredResource, RegisteredScope, RegisteredTenant, ScopeKind};

use super::names::{BUILT_IN_SCOPES, display_text, is_invisible, own_claim, plain_name, released_claim, token_name};
use super::walker::{Check, Walker, expected};

/// One of `tenants`, as every reading here stored or of a document.
pub fn tenant(walker: &mut Walker<'_, '_>) -> RegisteredTenant {
    let name = walker.required("name", plain_name);
    let display_name = walker.checked("display_name", display_text).unwrap_or_else(|| name.clone());
    RegisteredTenant { name, display_name }
}

pub fn identity_scope(walker: &mut Walker<'_, '_>) -> RegisteredScope {
    let name = walker.required("name", token_name);
    let (claims, renamed) = released_claims(walker, released_claim);
    RegisteredScope {
        kind: ScopeKind::Identity,
        display_name: walker.localized("display_name", display_text, &name),
        description: walker.localized("description", description, ""),
        claims,
        renamed,
        required: walker.flag("required").unwrap_or(false),
        emphasize: walker.flag("emphasize").unwrap_or(false),
        show_in_discovery: walker.flag("show_in_discovery").unwrap_or(true),
        resources: Vec::new(),
        name,
    }
}

pub fn resource_scope(walker: &mut Walker<'_, '_>) -> RegisteredScope {
    let scope = identity_scope(walker);
    if BUILT_IN_SCOPES.contains(&scope.name.as_str()) {
        walker.problem("name", "is the name of a built-in identity scope");
    }
    let resources = walker.strings("resources", token_name).unwrap_or_default();
    RegisteredScope { kind: ScopeKind::Resource, resources, ..scope }
}

pub fn resource(walker: &mut Walker<'_, '_>) -> RegisteredResource {
    let name = walker.required("name", token_name);
    let (claims, renamed) = released_claims(walker, own_claim);
    let display_name = walker.checked("display_name", display_text).unwrap_or_else(|| name.clone());
    RegisteredResource { display_name, claims, renamed, name }
}

/// `claims`: an array of names, or an object from the name a user's claim has to the one it goes out under. Answers the
/// names that go out, and for those that differ the user's.
fn released_claims(walker: &mut Walker<'_, '_>, check: Check) -> (Vec<String>, BTreeMap<String, String>) {
    if !walker.value("claims").is_some_and(Value::is_object) {
        return (walker.strings("claims", check).unwrap_or_default(), BTreeMap::new());
    }
    let pairs: BTreeMap<String, String> = walker.map("claims", |source, name| {
        let name = name.as_str().ok_or_else(|| expected("a string", name))?;
        own_claim(source).and_then(|()| check(name))?;
        Ok(name.to_owned())
    });
    let (mut names, mut renamed) = (Vec::new(), BTreeMap::new());
    for (source, name) in pairs {
        if names.contains(&name) {
            walker.problem(&format!("claims.{}", source.escape_debug()), "goes out under a name that another has");
        } else if name != source {
            renamed.insert(name.clone(), source);
        }
        names.push(name);
    }
    (names, renamed)
}

fn description(text: &str) -> Result<(), &'static str> {
    let acceptable = text.chars().count() <= 1_000 && !text.chars().any(is_invisible);
    if acceptable { Ok(()) } else { Err("must be at most 1000 characters, without control characters") }
}
