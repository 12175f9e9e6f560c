//! Filters of a list (RFC 7644 §3.4.2.2): attributes compared by `eq`, joined by `and`. That is
//! what provisioning asks for: whether a user is there.

use serde_json::Value;

use super::attribute::UserAttribute;
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
        add(&mut filter, comparison)?;
    }
    Ok(filter)
}

fn add(filter: &mut UserFilter, comparison: AttributeComparison) -> Result {
    let AttributeComparison { path, value } = comparison;
    if path.eq_ignore_ascii_case("id") {
        return set(&mut filter.id, value.into_text()?);
    }
    let place = match attribute_at(&path) {
        Some(UserAttribute::Active) => return set(&mut filter.active, value.into_flag()?),
        Some(UserAttribute::UserName) => &mut filter.user_name,
        Some(UserAttribute::ExternalId) => &mut filter.external_id,
        Some(UserAttribute::Email) => &mut filter.email,
        _ => return Err(refused()),
    };
    set(place, value.into_text()?)
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
    pub value: Literal,
}

pub enum Literal {
    Text(String),
    Flag(bool),
}

impl Literal {
    fn into_text(self) -> Result<String> {
        match self {
            Literal::Text(text) if !text.contains('\0') => Ok(text),
            Literal::Text(_) | Literal::Flag(_) => Err(refused()),
        }
    }

    /// Entra sends `"False"`.
    fn into_flag(self) -> Result<bool> {
        match self {
            Literal::Flag(flag) => Ok(flag),
            Literal::Text(text) => text.to_ascii_lowercase().parse().map_err(|_| refused()),
        }
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
    for AttributeComparison { path, value } in comparisons(filter)? {
        if path.eq_ignore_ascii_case("value") {
            set(&mut wanted.value, value.into_text()?)?;
        } else if path.eq_ignore_ascii_case("type") {
            wanted.is_of_another |= !value.into_text()?.eq_ignore_ascii_case("work");
        } else if path.eq_ignore_ascii_case("primary") {
            wanted.is_of_another |= !value.into_flag()?;
        } else {
            return Err(refused());
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
                let value = Literal::Text(wanted.ok_or_else(refused)?);
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
    fn literal(&mut self) -> Result<Literal> {
        self.rest = self.rest.trim_start();
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<Value>();
        let value = values.next().and_then(Result::ok);
        let end = values.byte_offset();
        self.take(end);
        match value {
            Some(Value::String(text)) => Ok(Literal::Text(text)),
            Some(Value::Bool(flag)) => Ok(Literal::Flag(flag)),
            _ => Err(refused()),
        }
    }
}

fn refused() -> ScimError {
    let rule = "a filter compares id, userName, externalId, emails or active by eq, joined by and";
    ScimError::bad_request(ScimType::InvalidFilter, rule)
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
