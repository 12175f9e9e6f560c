//! Paths to attributes, in filters and in PATCH (RFC 7644 §3.5.2, §3.10):
//! `userName`, `name.givenName`, `emails[type eq "work"].value`, and each after the URN of its
//! schema.

use super::attribute::{SCHEMAS, USER_SCHEMA, UserAttribute};
use super::error::{ScimError, ScimType};
use super::filter::element_filter;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// One attribute.
    Attribute(UserAttribute),
    /// Those elements of the attribute whose value is this one.
    Element(UserAttribute, String),
    /// `name`, or all of an extension: the attributes below it, and their common beginning.
    Attributes(&'static str),
    /// A part of an attribute of which nothing is kept, as `emails.type`.
    NotKept,
}

/// The parts of an element beside its value: the one that is kept always has the same.
const PARTS_NOT_KEPT: [&str; 3] = ["type", "primary", "display"];

/// Reads a path of PATCH. Anything that is not kept is `invalidPath`.
pub fn target(path: &str) -> Result<Target, ScimError> {
    let path = path.trim();
    if let Some(schema) = SCHEMAS
        .into_iter()
        .find(|one| one.eq_ignore_ascii_case(path))
    {
        return Ok(Target::Attributes(schema));
    }
    let Some((before, filter_and_rest)) = path.split_once('[') else {
        return unfiltered(path);
    };
    let (filter, after) = filter_and_rest.rsplit_once(']').ok_or_else(unknown)?;
    let attribute = element_attribute(before).ok_or_else(unknown)?;
    let part = after.strip_prefix('.').unwrap_or(after);
    if PARTS_NOT_KEPT
        .iter()
        .any(|one| one.eq_ignore_ascii_case(part))
    {
        return Ok(Target::NotKept);
    }
    if !part.is_empty() && !part.eq_ignore_ascii_case("value") {
        return Err(unknown());
    }
    let filter = element_filter(filter)?;
    Ok(match filter.value {
        _ if filter.is_of_another => Target::NotKept,
        Some(value) => Target::Element(attribute, value),
        None => Target::Attribute(attribute),
    })
}

fn unfiltered(path: &str) -> Result<Target, ScimError> {
    if let Some(attribute) = attribute_at(path) {
        return Ok(Target::Attribute(attribute));
    }
    let local = below_core(path);
    if local.eq_ignore_ascii_case("name") {
        return Ok(Target::Attributes("name"));
    }
    let Some((before, part)) = local.rsplit_once('.') else {
        return Err(unknown());
    };
    let is_not_kept = PARTS_NOT_KEPT
        .iter()
        .any(|one| one.eq_ignore_ascii_case(part));
    if (is_not_kept && element_attribute(before).is_some())
        || local.eq_ignore_ascii_case("name.formatted")
    {
        return Ok(Target::NotKept);
    }
    Err(unknown())
}

/// The attribute of that path, in any case: with its part, or without the part `value`.
pub fn attribute_at(path: &str) -> Option<UserAttribute> {
    let path = below_core(path);
    let whole = UserAttribute::ALL
        .into_iter()
        .find(|one| one.as_str().eq_ignore_ascii_case(path));
    whole.or_else(|| element_attribute(path))
}

fn element_attribute(path: &str) -> Option<UserAttribute> {
    let path = below_core(path);
    UserAttribute::ALL.into_iter().find(|one| {
        let name = one.name();
        name.part == Some("value") && name.attribute.eq_ignore_ascii_case(path)
    })
}

/// The same path without the URN of the core schema, which need not be there.
fn below_core(path: &str) -> &str {
    match path.get(..USER_SCHEMA.len()) {
        Some(urn) if urn.eq_ignore_ascii_case(USER_SCHEMA) => path
            .get(USER_SCHEMA.len()..)
            .and_then(|rest| rest.strip_prefix(':'))
            .unwrap_or(path),
        Some(_) | None => path,
    }
}

fn unknown() -> ScimError {
    let rule = "a path must name an attribute that /Schemas lists";
    ScimError::bad_request(ScimType::InvalidPath, rule)
}
