//! Which attributes of a user are kept (RFC 7643 §4.1, §4.3), and which claim each one is.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::{Result, ScimError};
use gatepost_protocol::words::named::named;

pub const USER_SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
pub const ENTERPRISE_SCHEMA: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
pub const GATEPOST_SCHEMA: &str = "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User";

/// Of one attribute.
const MOST_ELEMENTS: usize = 200;
/// Of an external id, in characters: an index holds it, whose rows have a limit.
const LONGEST_EXTERNAL_ID: usize = 256;

pub const SCHEMAS: [&str; 3] = [USER_SCHEMA, ENTERPRISE_SCHEMA, GATEPOST_SCHEMA];

named! {
    /// Each with its path (RFC 7644 §3.10).
    #[derive(PartialOrd, Ord)]
    pub enum UserAttribute {
        UserName = "userName",
        ExternalId = "externalId",
        Active = "active",
        Password = "password",
        DisplayName = "displayName",
        GivenName = "name.givenName",
        FamilyName = "name.familyName",
        MiddleName = "name.middleName",
        NickName = "nickName",
        Locale = "locale",
        Timezone = "timezone",
        Email = "emails.value",
        PhoneNumber = "phoneNumbers.value",
        Roles = "roles.value",
        EmployeeNumber =
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:employeeNumber",
        Department = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department",
        Division = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:division",
        EmailVerified = "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User:emailVerified",
        Tenant = "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User:tenant",
        ValidUntil = "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User:validUntil",
        Invite = "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User:invite",
    }
}

/// The attributes that are claims, each with its claim.
pub fn claims() -> impl Iterator<Item = (UserAttribute, &'static str)> {
    include_str!("claims.txt").lines().filter_map(|line| {
        let (path, claim) = line.split_once(' ')?;
        Some((UserAttribute::from_name(path)?, claim))
    })
}

/// What a user has: a string, `true` or `false`, and for roles an array of strings.
pub type UserAttributes = BTreeMap<UserAttribute, Value>;

/// What may stand in an attribute.
#[derive(Clone, Copy)]
pub enum Shape {
    Text,
    Flag,
    /// Several elements on the wire, of which one is kept: the primary, else the first.
    OneElement,
    /// Several elements, of which each one's `value` is kept.
    Elements,
}

impl UserAttribute {
    pub fn shape(self) -> Shape {
        match self {
            UserAttribute::Active | UserAttribute::EmailVerified => Shape::Flag,
            UserAttribute::Email | UserAttribute::PhoneNumber => Shape::OneElement,
            UserAttribute::Roles => Shape::Elements,
            _ => Shape::Text,
        }
    }

    /// The schema that describes it.
    pub fn schema(self) -> &'static str {
        let path = self.as_str();
        let is_of = |schema: &&str| path.starts_with(*schema);
        SCHEMAS.into_iter().find(is_of).unwrap_or(USER_SCHEMA)
    }

    /// Its path without the part that each of its elements has.
    pub fn whole(self) -> &'static str {
        let path = self.as_str();
        path.strip_suffix(".value").unwrap_or(path)
    }

    /// The members of a resource that lead to it, from the outermost on: that of its extension,
    /// that of a complex attribute, its own.
    pub fn members(self) -> Vec<&'static str> {
        let whole = self.whole();
        match whole.strip_prefix(self.schema()) {
            Some(rest) => vec![self.schema(), rest.trim_start_matches(':')],
            None => whole.split('.').collect(),
        }
    }

    /// What is kept of a value that was sent for it. `None` where the value says that there is
    /// none: `null`, an empty text, an empty array (RFC 7643 §2.5).
    pub fn read(self, value: &Value) -> Result<Option<Value>> {
        if value.is_null() {
            return Ok(None);
        }
        match self.shape() {
            Shape::Text => self.read_text(value),
            Shape::Flag => {
                let told = read_flag(value).map(|flag| Some(Value::from(flag)));
                told.ok_or_else(|| self.invalid("must be true or false"))
            }
            Shape::OneElement => self.read_text(value_of(primary_element(value))),
            Shape::Elements => {
                let mut values: Vec<Value> = Vec::new();
                for element in elements(value) {
                    match self.read_element(element)? {
                        Some(one) if !values.contains(&one) => values.push(one),
                        _ => {}
                    }
                    self.check_number(&values)?;
                }
                Ok((!values.is_empty()).then_some(Value::Array(values)))
            }
        }
    }

    /// What is kept of one of several elements. Entra writes the whole role as a text in JSON where
    /// its name is asked for.
    pub fn read_element(self, element: &Value) -> Result<Option<Value>> {
        let read = self.read_text(value_of(element))?;
        let Some(text) = read.as_ref().and_then(text_of_object) else {
            return Ok(read);
        };
        let whole: Value = serde_json::from_str(text).unwrap_or_default();
        let name = self.read_text(value_of(&whole))?;
        let name = name.filter(|name| text_of_object(name).is_none());
        name.map(Some)
            .ok_or_else(|| self.invalid("must be a name, or an object that has it as value"))
    }

    /// A user with very many roles would be a long row in each statement that reads them.
    pub fn check_number(self, values: &[Value]) -> Result {
        if values.len() > MOST_ELEMENTS {
            return Err(self.invalid("there may be 200 of them at most"));
        }
        Ok(())
    }

    fn read_text(self, value: &Value) -> Result<Option<Value>> {
        if value.is_null() {
            return Ok(None);
        }
        let Some(text) = value.as_str() else {
            return Err(self.invalid("must be a string"));
        };
        if text.contains('\0') {
            return Err(self.invalid("must not hold NUL"));
        }
        if self == UserAttribute::ExternalId && text.chars().count() > LONGEST_EXTERNAL_ID {
            return Err(self.invalid("must be 256 characters at most"));
        }
        Ok((!text.is_empty()).then(|| Value::from(text)))
    }

    pub fn invalid(self, rule: &str) -> ScimError {
        ScimError::invalid_value(format!("{}: {rule}", self.as_str()))
    }
}

/// `true` or `false`. Entra sends `"False"`.
pub fn read_flag(value: &Value) -> Option<bool> {
    let text = value.as_str().unwrap_or_default();
    let by_text = text.to_ascii_lowercase().parse().ok();
    value.as_bool().or(by_text)
}

/// Whoever sends one element alone means an array of it.
pub fn elements(value: &Value) -> &[Value] {
    match value {
        Value::Array(elements) => elements,
        _ => std::slice::from_ref(value),
    }
}

/// `null` where there is none.
fn primary_element(value: &Value) -> &Value {
    let elements = elements(value);
    let is_primary =
        |element: &&Value| member(element, "primary").and_then(read_flag) == Some(true);
    let found = elements.iter().find(is_primary).or(elements.first());
    found.unwrap_or(&Value::Null)
}

/// The text, if it begins as an object in JSON does.
fn text_of_object(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    text.trim_start().starts_with('{').then_some(text)
}

/// The `value` of an element; an element that is no object is its own.
pub fn value_of(element: &Value) -> &Value {
    if element.is_object() {
        member(element, "value").unwrap_or(&Value::Null)
    } else {
        element
    }
}

/// A member by its name in any case (RFC 7643 §2.1).
pub fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let mut members = object.as_object()?.iter();
    let (_, value) = members.find(|(other, _)| other.eq_ignore_ascii_case(name))?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scim::error::ScimType;

    #[test]
    fn attributes_are_the_claims_of_the_standard() {
        assert_eq!(claims().count(), 14);
        for (attribute, claim) in [
            (UserAttribute::DisplayName, Some("name")),
            (UserAttribute::GivenName, Some("given_name")),
            (UserAttribute::FamilyName, Some("family_name")),
            (UserAttribute::Timezone, Some("zoneinfo")),
            (UserAttribute::Email, Some("email")),
            (UserAttribute::EmailVerified, Some("email_verified")),
            (UserAttribute::PhoneNumber, Some("phone_number")),
            (UserAttribute::Roles, Some("role")),
            (UserAttribute::UserName, None),
            (UserAttribute::Password, None),
        ] {
            let found = claims().find(|(known, _)| *known == attribute);
            assert_eq!(found.map(|(_, claim)| claim), claim, "{attribute:?}");
        }
    }

    #[test]
    fn of_several_elements_the_primary_is_kept_or_the_first() {
        let [home, work] = ["home@a.example", "work@a.example"];
        for (elements, kept) in [
            (json!([{"value": home}, {"value": work}]), home),
            (
                json!([{"value": home}, {"value": work, "primary": true}]),
                work,
            ),
            (
                json!([{"value": home}, {"value": work, "primary": "True"}]),
                work,
            ),
            (
                json!([{"value": home, "primary": false}, {"value": work}]),
                home,
            ),
            (json!({"value": work}), work),
        ] {
            let read = UserAttribute::Email.read(&elements);
            assert_eq!(read, Ok(Some(json!(kept))), "{elements}");
        }
    }

    #[test]
    fn a_role_that_comes_twice_is_one() {
        let roles = json!([{"value": "cook"}, {"value": "clerk"}, {"value": "cook"}]);
        let read = UserAttribute::Roles.read(&roles);
        assert_eq!(read, Ok(Some(json!(["cook", "clerk"]))));
    }

    #[test]
    fn a_role_in_json_is_its_name_and_no_other_object_is_a_role() {
        let role = |text: &str| UserAttribute::Roles.read(&json!([{"value": text}]));
        for text in [
            r#"{"id":"1","value":"editor","displayName":"Editor"}"#,
            r#" {"Value":"editor"}"#,
            "editor",
        ] {
            assert_eq!(role(text), Ok(Some(json!(["editor"]))), "{text}");
        }
        for text in [
            r#"{"id":"1"}"#,
            r#"{"value":""}"#,
            r#"{"value":7}"#,
            r#"{"value":{"value":"editor"}}"#,
            r#"{"value":"{\"value\":\"editor\"}"}"#,
            "{editor}",
            "{",
            "\u{a0}{}",
        ] {
            let refused = role(text).map_err(|error| error.scim_type);
            assert_eq!(refused, Err(Some(ScimType::InvalidValue)), "{text}");
        }
        let read = UserAttribute::Email.read(&json!([{"value": "{a}@example.com"}]));
        assert_eq!(read, Ok(Some(json!("{a}@example.com"))));
    }

    #[test]
    fn an_external_id_has_256_characters_at_most_and_nothing_else_that_limit() {
        let text = |length: usize| json!("x".repeat(length));
        let is_read = |attribute: UserAttribute, length| attribute.read(&text(length)).is_ok();
        assert!(is_read(UserAttribute::ExternalId, 255) && is_read(UserAttribute::ExternalId, 256));
        assert!(!is_read(UserAttribute::ExternalId, 257));
        assert!(is_read(UserAttribute::NickName, 257) && is_read(UserAttribute::NickName, 256));
    }
}
