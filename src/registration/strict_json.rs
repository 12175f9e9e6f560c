//! JSON in which each key stands once.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use gatepost_protocol::registration::problem::shown;
use gatepost_protocol::words::json::JsonObject;

/// Reads the text of a document. The items of its lists stay text, and `walker::parse_own` reads
/// them one by one: as trees they take six times as much memory. The error says what is wrong and
/// at which line and column. It shows no value.
pub fn parse(text: &str) -> Result<Value, String> {
    let mut text = serde_json::Deserializer::from_str(text);
    let document = Strict(0)
        .deserialize(&mut text)
        .and_then(|document| text.end().map(|()| document));
    document.map_err(|error| error.to_string())
}

/// A value at this depth: the document is at 0, an item of one of its lists at 2.
struct Strict(usize);

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let is_item = self.0 == 2;
        let value = deserializer.deserialize_any(self)?;
        if !is_item {
            return Ok(value);
        }
        let text = serde_json::to_string(&value).map_err(D::Error::custom)?;
        // A box has no spare capacity.
        Ok(Value::String(text.into_boxed_str().into()))
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(Strict(self.0 + 1))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = JsonObject::new();
        while let Some(key) = members.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!(
                    "key {} stands twice in one object",
                    shown(&key)
                )));
            }
            map.insert(key, members.next_value_seed(Strict(self.0 + 1))?);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_once_at_every_depth() {
        for text in [
            r#"{"a": 1, "a": 1}"#,
            r#"[{"b": {"a": 1, "c": 2, "a": 3}}]"#,
            r#"{"a": 1, "\u0061": 2}"#,
        ] {
            let error = parse(text).unwrap_err();
            assert!(
                error.starts_with("key \"a\" stands twice in one object at line 1"),
                "{error}"
            );
        }
        assert!(parse(r#"{"a": {"a": 1}, "b": [{"a": 1}, {"a": 1}]}"#).is_ok());
    }

    #[test]
    fn what_is_no_json_is_refused_without_showing_it() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\": hunter2}",
            "{} {}",
            "'hunter2'",
            "{\"a\": \"hunter2}",
            &"[".repeat(500),
        ] {
            let error = parse(text).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
