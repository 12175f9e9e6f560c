//! Filters of a list (RFC 7644 §3.4.2.2): attributes compared by `eq`, joined by `and`. That is
//! what provisioning asks for: whether a user is there.

use serde_json::Value;

use super::attribute::{UserAttribute, read_flag};
use super::attribute_path::attribute_at;
use super::error::{Result, ScimError, ScimType};
use crate::statements::scim_users::UserFilter;

/// Whether it asks for something that a few users have at most.
pub fn names_somebody(filter: &UserFilter) -> bool {
    let names = [
        &filter.id,
        &filter.user_name,
        &filter.external_id,
        &filter.email,
    ];
    names.into_iter().any(Option::is_some)
}

pub fn parse(text: &str) -> Result<UserFilter> {
    let mut filter = UserFilter::default();
    for comparison in comparisons(text)? {
        add(&mut filter, &comparison)?;
    }
    Ok(filter)
}

fn add(filter: &mut UserFilter, comparison: &AttributeComparison) -> Result {
    if comparison.path.eq_ignore_ascii_case("id") {
        return set(&mut filter.id, comparison.text()?);
    }
    let place = match attribute_at(&comparison.path) {
        Some(UserAttribute::Active) => return set(&mut filter.active, comparison.flag()?),
        Some(UserAttribute::UserName) => &mut filter.user_name,
        Some(UserAttribute::ExternalId) => &mut filter.external_id,
        Some(UserAttribute::Email) => &mut filter.email,
        _ => return Err(refused()),
    };
    set(place, comparison.text()?)
}

/// An attribute that is named twice would need a third answer beside "this" and "any".
fn set<T: PartialEq>(place: &mut Option<T>, value: T) -> Result {
    if place.as_ref().is_some_and(|before| *before != value) {
        return Err(refused());
    }
    *place = Some(value);
    Ok(())
}

/// `path eq value`.
pub struct AttributeComparison {
    /// As it was written; of `emails[value eq "x"]` it is `emails.value`.
    pub path: String,
    /// A text, `true` or `false`.
    pub value: Value,
}

impl AttributeComparison {
    fn text(&self) -> Result<String> {
        let text = self.value.as_str().filter(|text| !text.contains('\0'));
        text.map(str::to_owned).ok_or_else(refused)
    }

    fn flag(&self) -> Result<bool> {
        read_flag(&self.value).ok_or_else(refused)
    }
}

/// Reads comparisons that `and` joins; anything else is `invalidFilter`.
pub fn comparisons(text: &str) -> Result<Vec<AttributeComparison>> {
    let mut reader = FilterReader { rest: text };
    let mut found = vec![reader.comparison()?];
    while !reader.is_at_end() {
        if !reader.word().eq_ignore_ascii_case("and") {
            return Err(refused());
        }
        found.push(reader.comparison()?);
    }
    Ok(found)
}

/// Which element a filter in brackets is about.
#[derive(Default)]
pub struct ElementFilter {
    /// One with this value; `None` for any.
    pub value: Option<String>,
    /// It is of another type than the one element that is kept, which is of type work and primary.
    pub is_of_another: bool,
}

pub fn element_filter(filter: &str) -> Result<ElementFilter> {
    let mut wanted = ElementFilter::default();
    for comparison in comparisons(filter)? {
        match comparison.path.to_ascii_lowercase().as_str() {
            "value" => set(&mut wanted.value, comparison.text()?)?,
            "type" => wanted.is_of_another |= !comparison.text()?.eq_ignore_ascii_case("work"),
            "primary" => wanted.is_of_another |= !comparison.flag()?,
            _ => return Err(refused()),
        }
    }
    Ok(wanted)
}

/// What is not read yet.
struct FilterReader<'a> {
    rest: &'a str,
}

impl<'a> FilterReader<'a> {
    fn is_at_end(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.is_empty()
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Up to the next space or bracket.
    fn word(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        let ends = |character: char| character.is_whitespace() || matches!(character, '[' | ']');
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn comparison(&mut self) -> Result<AttributeComparison> {
        let mut path = self.word().to_owned();
        if let Some(inside) = self.brackets()? {
            let wanted = element_filter(inside)?.value;
            let part = self.word();
            if part.is_empty() {
                let value = Value::from(wanted.ok_or_else(refused)?);
                path.push_str(".value");
                return Ok(AttributeComparison { path, value });
            }
            if wanted.is_some() {
                return Err(refused());
            }
            path.push_str(part);
        }
        if !self.word().eq_ignore_ascii_case("eq") {
            return Err(refused());
        }
        let value = self.literal()?;
        Ok(AttributeComparison { path, value })
    }

    /// What stands between brackets, where one opens here. A bracket within a text closes nothing.
    fn brackets(&mut self) -> Result<Option<&'a str>> {
        let Some(inside) = self.rest.strip_prefix('[') else {
            return Ok(None);
        };
        let mut is_in_text = false;
        let mut is_escaped = false;
        for (place, character) in inside.char_indices() {
            if character == ']' && !is_in_text {
                self.rest = inside;
                let inside = self.take(place);
                self.take(1);
                return Ok(Some(inside));
            }
            is_in_text ^= character == '"' && !is_escaped;
            is_escaped = character == '\\' && !is_escaped;
        }
        Err(refused())
    }

    /// A text as JSON writes it, `true` or `false`.
    fn literal(&mut self) -> Result<Value> {
        self.rest = self.rest.trim_start();
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<Value>();
        let value = values.next().and_then(Result::ok);
        let end = values.byte_offset();
        self.take(end);
        let literal = value.filter(|value| value.is_string() || value.is_boolean());
        literal.ok_or_else(refused)
    }
}

fn refused() -> ScimError {
    ScimType::InvalidFilter.because(
        "a filter compares id, userName, externalId, emails or active by eq, joined by and",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_email(email: &str) -> UserFilter {
        UserFilter {
            email: Some(email.to_owned()),
            ..UserFilter::default()
        }
    }

    #[test]
    fn what_provisioning_asks_is_understood() {
        let alice = UserFilter {
            user_name: Some(String::from("alice")),
            ..UserFilter::default()
        };
        let urn = r#"urn:ietf:params:scim:schemas:core:2.0:User:userName eq "alice""#;
        for text in [r#"userName eq "alice""#, r#" USERNAME  EQ "alice" "#, urn] {
            assert_eq!(parse(text), Ok(alice.clone()), "{text}");
        }
        for text in [
            r#"emails eq "a]b@c.example""#,
            r#"emails.value eq "a]b@c.example""#,
            r#"emails[value eq "a]b@c.example"]"#,
            r#"emails[type eq "work" and value eq "a]b@c.example"]"#,
            r#"emails[type eq "work"].value eq "a]b@c.example""#,
        ] {
            assert_eq!(parse(text), Ok(of_email("a]b@c.example")), "{text}");
        }
        let both = UserFilter {
            external_id: Some(String::from("1\"2")),
            active: Some(false),
            ..UserFilter::default()
        };
        let text = r#"externalId eq "1\"2" and active eq "False""#;
        assert_eq!(parse(text), Ok(both));
    }

    #[test]
    fn a_quote_within_a_text_closes_nothing() {
        let text = r#"emails[value eq "a\"]b@c.example"]"#;
        assert_eq!(parse(text), Ok(of_email("a\"]b@c.example")));
    }

    #[test]
    fn whoever_is_named_is_few_and_whether_they_are_active_names_nobody() {
        for (text, names) in [
            (r#"id eq "1""#, true),
            (r#"userName eq "alice""#, true),
            (r#"externalId eq "1" and active eq true"#, true),
            (r#"emails eq "a@b.example""#, true),
            ("active eq true", false),
        ] {
            let filter = parse(text).unwrap();
            assert_eq!(names_somebody(&filter), names, "{text}");
        }
    }

    #[test]
    fn an_element_of_another_type_is_told_by_any_of_its_marks() {
        for (text, is_of_another) in [
            (r#"type eq "Work" and primary eq true"#, false),
            (r#"type eq "home" and primary eq true"#, true),
            (r#"type eq "work" and primary eq false"#, true),
            (r#"primary eq false and type eq "work""#, true),
        ] {
            let told = element_filter(text).unwrap().is_of_another;
            assert_eq!(told, is_of_another, "{text}");
        }
    }

    #[test]
    fn nothing_else_is() {
        for text in [
            "",
            "userName",
            "userName eq",
            "userName eq alice",
            r#"userName co "alice""#,
            r#"userName eq "alice" or active eq true"#,
            r#"userName eq "alice" and"#,
            r#"userName eq "alice" and userName eq "bob""#,
            r#"not (userName eq "alice")"#,
            r#"(userName eq "alice")"#,
            r#"password eq "x""#,
            r#"title eq "x""#,
            "userName eq true",
            "userName eq 1",
            "active eq null",
            r#"emails[value eq "x""#,
            r#"emails[value eq "x"].value eq "y""#,
            r#"emails[display eq "x"]"#,
            r#"emails[type eq "work"]"#,
            "emails[]",
            r#"userName eq "\u0000""#,
            "[[[[[[[[",
            r#"emails[emails[value eq "x"]]"#,
        ] {
            let refused = parse(text).map_err(|error| error.scim_type);
            assert_eq!(refused, Err(Some(ScimType::InvalidFilter)), "{text}");
        }
    }
}
