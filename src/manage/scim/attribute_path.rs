//! Paths to attributes, in filters and in PATCH (RFC 7644 §3.5.2, §3.10):
//! `userName`, `name.givenName`, `emails[type eq "work"].value`, and each after the URN of its
//! schema.

use super::attribute::{SCHEMAS, USER_SCHEMA, UserAttribute};
use super::error::{Result, ScimError, ScimType};
use super::filter::{comparisons, element_filter};

/// What a path leads to.
#[derive(Debug, PartialEq)]
pub enum Target {
    /// One attribute.
    Attribute(UserAttribute),
    /// Those elements of the attribute whose value is this one.
    Element(UserAttribute, String),
    /// `name`, or all of an extension: the attributes below it, and their common beginning.
    Attributes(&'static str),
    /// What is not kept here, as `title`, or as the part `emails.type`.
    NotKept,
}

/// Attributes that no client writes (RFC 7643 §3.1, §4.1.2). A program that tries is mistaken.
const READ_ONLY: [&str; 4] = ["id", "schemas", "meta", "groups"];

/// Reads a path of PATCH. What is malformed is `invalidPath`, and so is what no client writes.
pub fn target(path: &str) -> Result<Target> {
    let path = path.trim();
    if let Some(schema) = SCHEMAS
        .into_iter()
        .find(|one| one.eq_ignore_ascii_case(path))
    {
        return Ok(Target::Attributes(schema));
    }
    let Some((before, filter_and_part)) = path.split_once('[') else {
        return unfiltered(path);
    };
    let (filter, part) = filter_and_part.rsplit_once(']').ok_or_else(invalid)?;
    if !part.is_empty() && !part.starts_with('.') {
        return Err(invalid());
    }
    match unfiltered(&format!("{before}{part}"))? {
        Target::Attribute(attribute) if has_elements(attribute) => filtered(attribute, filter),
        Target::NotKept => comparisons(filter).map(|_| Target::NotKept),
        Target::Attribute(_) | Target::Attributes(_) | Target::Element(..) => Err(invalid()),
    }
}

fn filtered(attribute: UserAttribute, filter: &str) -> Result<Target> {
    let filter = element_filter(filter)?;
    Ok(match filter.value {
        _ if filter.is_of_another => Target::NotKept,
        Some(value) => Target::Element(attribute, value),
        None => Target::Attribute(attribute),
    })
}

fn unfiltered(path: &str) -> Result<Target> {
    if let Some(attribute) = attribute_at(path) {
        return Ok(Target::Attribute(attribute));
    }
    let local = below_core(path);
    if local.eq_ignore_ascii_case("name") {
        return Ok(Target::Attributes("name"));
    }
    let (parent, _) = local.rsplit_once('.').unwrap_or((local, ""));
    let is_read_only = READ_ONLY.iter().any(|one| one.eq_ignore_ascii_case(parent));
    // Ignored, a change of `active.value` would be answered as if it had been made.
    let has_no_parts = attribute_at(parent).is_some_and(|parent| !has_elements(parent));
    if is_read_only || has_no_parts || !is_well_formed(local) {
        return Err(invalid());
    }
    Ok(Target::NotKept)
}

/// Whether it is written as the path of an attribute, or of a part of one.
fn is_well_formed(path: &str) -> bool {
    let is_in_word = |letter: char| letter.is_ascii_alphanumeric() || "-_$".contains(letter);
    let is_word = |word: &str| !word.is_empty() && word.chars().all(is_in_word);
    let (_, name) = path.rsplit_once(':').unwrap_or(("", path));
    path.split([':', '.']).all(is_word)
        && name.split('.').count() <= 2
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// Whether it has elements with parts, of which the value is kept.
fn has_elements(attribute: UserAttribute) -> bool {
    attribute.whole() != attribute.as_str()
}

/// The attribute of that path, in any case: with its part, or without the part `value`.
pub fn attribute_at(path: &str) -> Option<UserAttribute> {
    let path = below_core(path);
    let mut all = UserAttribute::ALL.into_iter();
    all.find(|one| {
        [one.whole(), one.as_str()]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(path))
    })
}

/// The same path without the URN of the core schema, which need not be there.
pub fn below_core(path: &str) -> &str {
    match path.get(..USER_SCHEMA.len()) {
        Some(urn) if urn.eq_ignore_ascii_case(USER_SCHEMA) => path
            .get(USER_SCHEMA.len()..)
            .and_then(|rest| rest.strip_prefix(':'))
            .unwrap_or(path),
        _ => path,
    }
}

fn invalid() -> ScimError {
    ScimType::InvalidPath
        .because("a path must lead to an attribute of a user that clients may write")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_urn_of_the_core_schema_need_not_be_there_and_no_other_stands_for_it() {
        let core = format!("{USER_SCHEMA}:nickName");
        let other = format!("{}x:nickName", &USER_SCHEMA[..USER_SCHEMA.len() - 1]);
        for (path, found) in [
            ("nickName", Some(UserAttribute::NickName)),
            (&core, Some(UserAttribute::NickName)),
            (&core.to_uppercase(), Some(UserAttribute::NickName)),
            (&other, None),
            (USER_SCHEMA, None),
        ] {
            assert_eq!(attribute_at(path), found, "{path}");
        }
    }
}
