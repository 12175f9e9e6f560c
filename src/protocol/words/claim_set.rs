//! Claims on their way out, into a token or an answer, and the members of other answers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// A claims set (RFC 7519 §2), to be written as a JSON object. What the values borrow is not
/// copied. Of two claims of one name the first stays.
#[derive(Default, Serialize)]
pub struct ClaimSet<'a>(BTreeMap<&'a str, ClaimValue<'a>>);

#[derive(Serialize)]
#[serde(untagged)]
pub enum ClaimValue<'a> {
    Text(&'a str),
    Texts(&'a [String]),
    Json(Cow<'a, Value>),
}

impl<'a> ClaimSet<'a> {
    /// `None` sets nothing.
    pub fn text(&mut self, name: &'a str, text: impl Into<Option<&'a str>>) -> &mut Self {
        if let Some(text) = text.into() {
            self.add(name, ClaimValue::Text(text));
        }
        self
    }

    /// A value that is made for this. Null sets nothing.
    pub fn set(&mut self, name: &'a str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        if !value.is_null() {
            self.add(name, ClaimValue::Json(Cow::Owned(value)));
        }
        self
    }

    /// A value that is never null.
    pub fn add(&mut self, name: &'a str, value: ClaimValue<'a>) -> &mut Self {
        self.0.entry(name).or_insert(value);
        self
    }

    pub fn remove(&mut self, name: &str) -> &mut Self {
        self.0.remove(name);
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_claim_of_a_name_stays_and_none_is_null() {
        let texts = [String::from("pwd"), String::from("otp")];
        let email = json!("alice@example.com");
        let mut claims = ClaimSet::default();
        claims
            .text("sub", "alice")
            .add("amr", ClaimValue::Texts(&texts))
            .set("exp", 7)
            .text("sid", None)
            .set("jti", None::<String>)
            .add("email", ClaimValue::Json(Cow::Borrowed(&email)))
            .set("sub", "mallory")
            .add("exp", ClaimValue::Json(Cow::Owned(json!(8))));
        let written = serde_json::to_string(&claims).unwrap();
        let expected = r#"{"amr":["pwd","otp"],"email":"alice@example.com","exp":7,"sub":"alice"}"#;
        assert_eq!(written, expected);
        claims.remove("amr").remove("email").remove("nonce");
        assert_eq!(json!(claims), json!({"exp": 7, "sub": "alice"}));
    }
}
