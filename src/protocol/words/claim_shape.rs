//! The types of claim values (OpenID Connect Core §5.1). A stored value of the wrong type is left
//! out.

use std::borrow::Cow;
use std::slice;

use serde_json::Value;

use super::scope::is_language_tag;
use crate::words::json::{JsonObject, is_empty};

/// Claims of the scope `profile` (OpenID Connect Core §5.4).
pub const PROFILE: [&str; 14] = [
    "name",
    "family_name",
    "given_name",
    "middle_name",
    "nickname",
    "preferred_username",
    "profile",
    "picture",
    "website",
    "gender",
    "birthdate",
    "zoneinfo",
    "locale",
    "updated_at",
];

/// Members of `address` (OpenID Connect Core §5.1.1).
const ADDRESS: [&str; 6] = [
    "formatted",
    "street_address",
    "locality",
    "region",
    "postal_code",
    "country",
];

/// The value as a claim of that name has it; `None` where it cannot be one.
pub fn shaped<'a>(name: &str, value: Cow<'a, Value>) -> Option<Cow<'a, Value>> {
    let read = match name {
        "role" if !is_list_of_texts(&value) => roles(&value),
        // One group is an array, too, so that clients read one type. What stands in an array is
        // the registration's own.
        "groups" if value.is_string() => text(&value).map(|group| Value::Array(vec![group])),
        "email_verified" | "phone_number_verified" if !value.is_boolean() => {
            value.as_str()?.parse().ok().map(Value::Bool)
        }
        "updated_at" if !value.is_number() => value.as_str()?.parse::<i64>().ok().map(Value::from),
        "address" => address(&value),
        _ => return fits(name, &value).then_some(value),
    };
    read.map(Cow::Owned)
}

fn fits(name: &str, value: &Value) -> bool {
    match name {
        "profile" | "picture" | "website" => value.as_str().is_some_and(is_web_address),
        "locale" => value.as_str().is_some_and(is_locale),
        "updated_at" => value.is_number(),
        _ if is_standard_text(name) => is_text(value),
        _ => is_present(value),
    }
}

/// A language tag, in which `_` may stand for `-` (OpenID Connect Core §5.1). Libraries that read a
/// tag fail over anything else, and the whole sign-in fails with them.
pub fn is_locale(text: &str) -> bool {
    is_language_tag(&text.replace('_', "-"))
}

fn is_standard_text(name: &str) -> bool {
    PROFILE.contains(&name) || matches!(name, "email" | "phone_number")
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

fn text(value: &Value) -> Option<Value> {
    is_text(value).then(|| value.clone())
}

/// An address with http or https. Clients turn it into a link, and `javascript:` would run there.
fn is_web_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let is_web = ["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known));
    let is_whole = !rest.is_empty()
        && !rest.contains(|character: char| character.is_control() || character == ' ');
    is_web && is_whole
}

/// The items of an array; of any other value, that value alone.
pub fn listed(value: &Value) -> &[Value] {
    value
        .as_array()
        .map_or(slice::from_ref(value), Vec::as_slice)
}

/// A member that is there, and is not what it must be.
pub struct UnreadableMember;

/// Reads a member that may be absent.
pub fn optional<T>(
    value: Option<&Value>,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, UnreadableMember> {
    value
        .map(|value| read(value).ok_or(UnreadableMember))
        .transpose()
}

fn is_list_of_texts(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|items| items.iter().all(is_text))
}

/// The roles as an array, also where there is only one: clients then read one type.
fn roles(value: &Value) -> Option<Value> {
    let roles: Vec<Value> = listed(value).iter().filter_map(text).collect();
    (!roles.is_empty()).then_some(Value::Array(roles))
}

fn address(value: &Value) -> Option<Value> {
    let members: JsonObject = match value.as_object() {
        Some(members) => address_members(members),
        None => text(value)
            .map(|text| (String::from("formatted"), text))
            .into_iter()
            .collect(),
    };
    (!members.is_empty()).then_some(Value::Object(members))
}

fn address_members(members: &JsonObject) -> JsonObject {
    ADDRESS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), text(members.get(*name)?)?)))
        .collect()
}

fn is_present(value: &Value) -> bool {
    let is_blank = value.as_str().is_some_and(|text| text.trim().is_empty());
    !is_blank && !is_empty(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_take_the_shape_of_their_claim() {
        for (name, value, expected) in [
            ("role", json!("admin"), json!(["admin"])),
            ("role", json!(["a", "", null, 7, "b"]), json!(["a", "b"])),
            ("groups", json!("staff"), json!(["staff"])),
            ("groups", json!(["/staff", 7]), json!(["/staff", 7])),
            ("email_verified", json!(false), json!(false)),
            ("email_verified", json!("true"), json!(true)),
            ("phone_number_verified", json!("false"), json!(false)),
            ("updated_at", json!(1_795_132_800), json!(1_795_132_800)),
            ("updated_at", json!("1795132800"), json!(1_795_132_800)),
            (
                "address",
                json!("1 High Street\nTown"),
                json!({ "formatted": "1 High Street\nTown" }),
            ),
            (
                "address",
                json!({ "locality": "Town", "region": "", "planet": "Earth" }),
                json!({ "locality": "Town" }),
            ),
            ("name", json!(" Alice "), json!(" Alice ")),
            (
                "picture",
                json!("HTTPS://cdn.example/a|b.png#c"),
                json!("HTTPS://cdn.example/a|b.png#c"),
            ),
            (
                "website",
                json!("http://\u{e9}.example"),
                json!("http://\u{e9}.example"),
            ),
            ("department", json!({ "id": 7 }), json!({ "id": 7 })),
            ("locale", json!("de"), json!("de")),
            ("locale", json!("pt_BR"), json!("pt_BR")),
            ("locale", json!("zh-Hans-CN"), json!("zh-Hans-CN")),
            ("level", json!(0), json!(0)),
            ("member", json!(false), json!(false)),
        ] {
            assert_eq!(
                shaped(name, Cow::Borrowed(&value)).as_deref(),
                Some(&expected),
                "{name} {value}"
            );
        }
    }

    #[test]
    fn what_has_no_such_shape_is_left_out() {
        #[rustfmt::skip]
        let rows = [
            ("role", json!([])), ("role", json!("")), ("role", json!([null, ""])), ("role", json!(null)),
            ("role", json!({ "admin": true })), ("email_verified", json!("yes")), ("email_verified", json!(1)),
            ("updated_at", json!("yesterday")), ("updated_at", json!("")), ("updated_at", json!(true)),
            ("address", json!("")), ("address", json!({})), ("address", json!({ "locality": null })),
            ("address", json!(["Town"])), ("name", json!("")), ("name", json!(" ")), ("name", json!(7)),
            ("email", json!(["a@b.example"])), ("groups", json!(" ")), ("picture", json!("javascript:alert(1)")),
            ("picture", json!("javascript://x.example/%0aalert(1)")), ("picture", json!("data:text/html,x")),
            ("website", json!(" https://alice.example")), ("website", json!("java\nscript:alert(1)//https://x")),
            ("website", json!("https://a.example/\nb")), ("website", json!("alice.example")),
            ("profile", json!("https://")), ("profile", json!("//alice.example")),
            ("profile", json!(["https://alice.example"])), ("department", json!(null)), ("department", json!("")),
            ("department", json!([])), ("department", json!({})), ("locale", json!("de_DE.UTF-8")), ("locale", json!("German")),
            ("locale", json!("de-DE,en")), ("locale", json!("C")), ("locale", json!("")), ("locale", json!(["de"])),
        ];
        for (name, value) in rows {
            assert_eq!(shaped(name, Cow::Borrowed(&value)), None, "{name} {value}");
        }
    }

    proptest! {
        #[test]
        fn a_shaped_value_keeps_its_shape(name in prop::sample::select(vec!["role", "email_verified", "updated_at", "address", "name"]), text in ".{0,12}", number in any::<i64>()) {
            for value in [json!(text), json!(number), json!([text, number]), json!({ "locality": text }), json!(null), json!(true)] {
                if let Some(first) = shaped(name, Cow::Borrowed(&value)) {
                    prop_assert_eq!(shaped(name, first.clone()), Some(first));
                }
            }
        }
    }
}
