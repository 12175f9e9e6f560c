//! What they wrote: an object of their document, read by tables.

use serde_json::Value;

use super::{ImportedObject, Read};
use gatepost_protocol::registration::client::LONGEST_LIFETIME;
use gatepost_protocol::registration::walker::expected;
use gatepost_protocol::words::json::JsonObject;

/// How each member of theirs is copied, in tables of three columns: our name, their name, and the
/// kind. `flag=true`: a flag that is told where it differs from what they leave unsaid. `lifetime`:
/// seconds, at most as long as ours may be, and absent for 0. `texts=Column`: an array of texts, or
/// of rows with a text in that column. `text=USUAL`: a text that is absent where it is the usual
/// one. `secret`: a text that is absent where it is masked.
pub const MEMBERS: &str = include_str!("members.txt");

pub fn table(name: &str) -> impl Iterator<Item = [&'static str; 3]> {
    let mut tables = MEMBERS.split("\n\n");
    let lines = tables.find_map(|table| table.strip_prefix(name)?.strip_prefix('\n'));
    let words = |line: &'static str| line.split_whitespace().collect::<Vec<_>>().try_into().ok();
    lines.unwrap_or_default().lines().filter_map(words)
}

/// An object of their document. Their tools write a number as a text and a truth as 0 or 1, so both
/// are read.
pub struct Row<'v> {
    pub place: String,
    pub members: &'v JsonObject,
}

impl<'v> Row<'v> {
    pub fn of(place: String, value: &'v Value) -> Read<Row<'v>> {
        let members = value
            .as_object()
            .ok_or_else(|| format!("{place}: {}", expected("an object", value)))?;
        Ok(Row { place, members })
    }

    pub fn value(&self, key: &str) -> Option<&'v Value> {
        self.members.get(key).filter(|value| !value.is_null())
    }

    /// Absent where it is empty.
    pub fn text(&self, key: &str) -> Read<Option<String>> {
        let text = self
            .value(key)
            .map(|value| plain(&format!("{}.{key}", self.place), value))
            .transpose()?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    pub fn required(&self, key: &str) -> Read<String> {
        self.text(key)?
            .ok_or_else(|| format!("{}: has no {key}", self.place))
    }

    /// Whether the member is the second of two names. The names may be written as 0 and 1.
    pub fn second(&self, key: &str, names: [&str; 2], unsaid: bool) -> Read<bool> {
        let Some(text) = self.text(key)? else {
            return Ok(unsaid);
        };
        let [first, second] = names;
        if text.eq_ignore_ascii_case(first) || text == "0" {
            Ok(false)
        } else if text.eq_ignore_ascii_case(second) || text == "1" {
            Ok(true)
        } else {
            let place = &self.place;
            Err(format!("{place}.{key}: is neither {first} nor {second}"))
        }
    }

    pub fn flag(&self, key: &str) -> Read<bool> {
        self.flag_or(key, false)
    }

    pub fn flag_or(&self, key: &str, unsaid: bool) -> Read<bool> {
        self.second(key, ["false", "true"], unsaid)
    }

    pub fn seconds(&self, key: &str) -> Read<Option<u64>> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let Ok(seconds) = text.parse::<i64>() else {
            return Err(format!("{}.{key}: is no number of seconds", self.place));
        };
        // Consoles write -1 for what has no end of its own.
        Ok(match u64::try_from(seconds) {
            Ok(0) | Err(_) => None,
            Ok(seconds) => Some(seconds.min(LONGEST_LIFETIME)),
        })
    }

    /// The items of the lists of these names, each with its place.
    fn list(&self, keys: &str) -> Read<Vec<(String, &'v Value)>> {
        let mut all = Vec::new();
        for key in keys.split(',') {
            let Some(value) = self.value(key) else {
                continue;
            };
            let place = format!("{}.{key}", self.place);
            let items = value
                .as_array()
                .ok_or_else(|| format!("{place}: {}", expected("an array", value)))?;
            for (index, item) in items.iter().enumerate() {
                all.push((format!("{place}[{index}]"), item));
            }
        }
        Ok(all)
    }

    pub fn texts(&self, keys: &str, column: &str) -> Read<Vec<String>> {
        let mut texts = Vec::new();
        for (place, value) in self.list(keys)? {
            texts.push(match value.as_object() {
                Some(members) => Row { place, members }.required(column)?,
                None => plain(&place, value)?,
            });
        }
        Ok(texts)
    }

    pub fn rows(&self, keys: &str) -> Read<Vec<Row<'v>>> {
        self.list(keys)?
            .into_iter()
            .map(|(place, value)| Row::of(place, value))
            .collect()
    }

    /// The objects of the list, without what else stands in it.
    pub fn objects(&self, key: &str) -> Read<Vec<Row<'v>>> {
        let mut all = self.list(key)?;
        all.retain(|(_, value)| value.is_object());
        all.into_iter()
            .map(|(place, value)| Row::of(place, value))
            .collect()
    }

    pub fn nested(&self, key: &str) -> Read<Option<Row<'v>>> {
        self.value(key)
            .map(|value| Row::of(format!("{}.{key}", self.place), value))
            .transpose()
    }

    pub fn copy(&self, members: &str, into: &mut ImportedObject) -> Read {
        for [ours, theirs, how] in table(members) {
            let value = match how.split_once('=') {
                Some(("texts", column)) => Value::from(self.texts(theirs, column)?),
                Some(("text", usual)) => {
                    let text = self.text(theirs)?;
                    Value::from(text.filter(|text| text != usual))
                }
                Some((_, unsaid)) => {
                    let unsaid = unsaid == "true";
                    Value::from(Some(self.flag_or(theirs, unsaid)?).filter(|flag| *flag != unsaid))
                }
                None if how == "lifetime" => Value::from(self.seconds(theirs)?),
                None => Value::from(
                    self.text(theirs)?
                        .filter(|text| how != "secret" || is_clear(text)),
                ),
            };
            into.set(ours, value);
        }
        Ok(())
    }
}

pub fn plain(place: &str, value: &Value) -> Read<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(format!("{place}: {}", expected("a text", value)))
        }
    }
}

/// Whether it is one of these, which have spaces between them.
pub fn is_among(names: &str, name: &str) -> bool {
    names.split(' ').any(|one| one == name)
}

/// Whether a secret is there: not masked as `**********`, and not a reference such as `${vault.x}`.
pub fn is_clear(secret: &str) -> bool {
    !secret.starts_with("${") && !secret.bytes().all(|byte| byte == b'*')
}
