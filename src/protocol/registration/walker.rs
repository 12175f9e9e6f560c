//! Walks one object of a document, and remembers where it is and what is wrong. Every reading
//! method notes a member that is not what it should be, and treats it as absent. So all mistakes
//! are found in one go. A key that nobody has asked for by the end is unknown.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::protocol::registration::names::hint;
use crate::protocol::registration::problem::{DocumentProblem, MOST_MISTAKES, shown};
use crate::protocol::registration::timestamp;
use crate::protocol::words::scope::{LocalizedText, is_language_tag};

/// For how many unknown keys of an object the nearest known one is looked for, which takes a while.
const MOST_HINTS: usize = 100;

/// A rule for a text: `Err` says what it must be.
pub(super) type Check = fn(&str) -> Result<(), &'static str>;

pub struct Walker<'v, 'p> {
    path: String,
    members: &'v Map<String, Value>,
    problems: &'p mut Vec<DocumentProblem>,
    asked: Vec<Cow<'static, str>>,
    /// Members that are stored in another form than they were given in. A time such as `15m` is
    /// stored as a number.
    pub(super) stored_as: Map<String, Value>,
    /// Whether every value read so far was in order. Only then are contradictions looked for:
    /// beside a value that could not be read they would be guesses.
    pub(super) values_hold: bool,
}

impl<'v> Walker<'v, '_> {
    /// Reads `value` with `read`, then notes unknown keys. `None`, with a note, when it is not an
    /// object.
    pub(super) fn object<T>(
        value: &'v Value,
        path: &str,
        problems: &mut Vec<DocumentProblem>,
        read: impl FnOnce(&mut Walker<'_, '_>) -> T,
    ) -> Option<T> {
        let Value::Object(members) = value else {
            problems.push(DocumentProblem::new(path, expected("an object", value)));
            return None;
        };
        let first = problems.len();
        let path_of = path.to_owned();
        let asked = Vec::new();
        let stored_as = Map::new();
        let mut walker = Walker {
            path: path_of,
            members,
            problems,
            asked,
            stored_as,
            values_hold: true,
        };
        let object = read(&mut walker);
        let asked = walker.asked;
        // `client_name#` stands for `client_name#de` and every other language.
        let is_asked = |key: &str| {
            let key = key.split_inclusive('#').next();
            asked.iter().any(|asked| Some(asked.as_ref()) == key)
        };
        let unknown = members.keys().filter(|key| !is_asked(key));
        let unknown = unknown.take(MOST_MISTAKES.saturating_sub(problems.len()));
        let notes = unknown.enumerate().map(|(number, key)| {
            let nearest = match number < MOST_HINTS {
                true => hint(key, asked.iter().map(Cow::as_ref)),
                false => String::new(),
            };
            DocumentProblem::new(path, format!("unknown key {}{nearest}", shown(key)))
        });
        problems.splice(first..first, notes);
        Some(object)
    }

    /// The members that `read` asks an object for.
    pub(super) fn keys(read: impl FnOnce(&mut Walker<'_, '_>)) -> BTreeSet<String> {
        let members = Map::new();
        let mut problems = Vec::new();
        let (path, problems, asked, stored_as) =
            (String::new(), &mut problems, Vec::new(), Map::new());
        let mut walker = Walker {
            path,
            members: &members,
            problems,
            asked,
            stored_as,
            values_hold: true,
        };
        read(&mut walker);
        walker.asked.into_iter().map(Cow::into_owned).collect()
    }

    fn place(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Notes a problem with a member; with the object itself, where the member has no name.
    pub(super) fn problem(&mut self, key: &str, rule: impl Into<String>) {
        let place = if key.is_empty() {
            self.path.clone()
        } else {
            self.place(key)
        };
        self.note(place, rule);
    }

    /// Notes a problem with a place further down.
    pub(super) fn note(&mut self, place: String, rule: impl Into<String>) {
        self.values_hold = false;
        self.problems.push(DocumentProblem::new(place, rule));
    }

    /// A member as it is; `null` counts as absent.
    pub(super) fn value(&mut self, key: &'static str) -> Option<&'v Value> {
        self.asked.push(Cow::Borrowed(key));
        self.members.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn members(&self) -> &'v Map<String, Value> {
        self.members
    }

    /// A member that `take` finds to be a `wanted`.
    fn typed<T>(
        &mut self,
        key: &'static str,
        wanted: &str,
        take: impl FnOnce(&'v Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(key)?;
        let taken = take(value);
        if taken.is_none() {
            self.problem(key, expected(wanted, value));
        }
        taken
    }

    pub(super) fn string(&mut self, key: &'static str) -> Option<&'v str> {
        self.typed(key, "a string", Value::as_str)
    }

    /// A text that keeps a rule.
    pub(super) fn checked(&mut self, key: &'static str, check: Check) -> Option<String> {
        let text = self.string(key)?;
        let broken = check(text).map_err(|rule| self.problem(key, rule));
        broken.is_ok().then(|| text.to_owned())
    }

    /// A text that keeps a rule, with its translations. `unsaid` where it is absent.
    pub(super) fn localized(
        &mut self,
        key: &'static str,
        check: Check,
        unsaid: &str,
    ) -> LocalizedText {
        let mut text = LocalizedText::from(unsaid);
        text.plain = self.checked(key, check).unwrap_or(text.plain);
        self.asked.push(Cow::Owned(format!("{key}#")));
        for (member, value) in self.members {
            let Some((_, tag)) = member.split_once('#').filter(|(name, _)| *name == key) else {
                continue;
            };
            match value
                .as_str()
                .map(|translation| (translation, check(translation)))
            {
                _ if !is_language_tag(tag) => {
                    let rule = format!("must name a language behind the #, as {key}#de");
                    self.problem(&member.escape_debug().to_string(), rule);
                }
                Some((translation, Ok(()))) => {
                    if text
                        .by_language
                        .insert(tag.to_ascii_lowercase(), translation.to_owned())
                        .is_some()
                    {
                        self.problem(member, "names a language that is there in other letters");
                    }
                }
                Some((_, Err(rule))) => self.problem(member, rule),
                None if value.is_null() => {}
                None => self.problem(member, expected("a string", value)),
            }
        }
        text
    }

    /// A text that keeps a rule and must be there. After a note it is empty, in an object that is
    /// not used.
    pub(super) fn required(&mut self, key: &'static str, check: Check) -> String {
        if self.value(key).is_none() {
            self.problem(key, "is required");
        }
        self.checked(key, check).unwrap_or_default()
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.typed(key, "true or false", Value::as_bool)
    }

    /// Whether it is there and true.
    pub(super) fn is_set(&mut self, key: &'static str) -> bool {
        self.flag(key).unwrap_or(false)
    }

    pub(super) fn seconds(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<Duration> {
        let is_time = |value: &&Value| value.is_number() || value.is_string();
        let value = self.typed(
            key,
            "a whole number of seconds, or a text as \"15m\"",
            |value| Some(value).filter(is_time),
        )?;
        let number = value
            .as_str()
            .map_or_else(|| value.as_u64(), timestamp::seconds);
        let number = number.filter(|number| range.contains(number));
        match number {
            None => self.problem(
                key,
                format!(
                    "must be a whole number of seconds from {} to {}, or as \"15m\"",
                    range.start(),
                    range.end()
                ),
            ),
            Some(number) if value.is_string() => {
                drop(self.stored_as.insert(String::from(key), number.into()))
            }
            Some(_) => {}
        }
        number.map(Duration::from_secs)
    }

    pub(super) fn one_of<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let text = self.string(key)?;
        let chosen = choices
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, choice)| *choice);
        if chosen.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.problem(
                key,
                format!(
                    "must be one of {}{}",
                    names.join(", "),
                    hint(text, names.iter().copied())
                ),
            );
        }
        chosen
    }

    /// An array of texts that keep a rule, each there once.
    pub(super) fn strings(&mut self, key: &'static str, check: Check) -> Option<Vec<String>> {
        self.strings_of(key, check, &[])
    }

    /// The same, with a hint at one of `choices` where a text breaks the rule.
    pub(super) fn strings_of(
        &mut self,
        key: &'static str,
        check: Check,
        choices: &[&str],
    ) -> Option<Vec<String>> {
        let items = self.typed(key, "an array", Value::as_array)?;
        let mut seen = BTreeSet::new();
        let mut texts = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let rule = match item.as_str().map(|text| (text, check(text))) {
                Some((text, Ok(()))) if seen.insert(text) => {
                    texts.push(text.to_owned());
                    continue;
                }
                Some((_, Ok(()))) => String::from("stands in the list twice"),
                Some((text, Err(rule))) => format!("{rule}{}", hint(text, choices.iter().copied())),
                None => expected("a string", item),
            };
            self.problem(&format!("{key}[{index}]"), rule);
        }
        Some(texts)
    }

    /// Notes an array that is there and empty.
    pub(super) fn not_empty(&mut self, key: &'static str, rule: &str) {
        if self
            .value(key)
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
        {
            self.problem(key, rule);
        }
    }

    /// An array of texts that keep a rule, where absence means "every one".
    pub(super) fn strings_or_all(
        &mut self,
        key: &'static str,
        check: Check,
    ) -> Option<BTreeSet<String>> {
        self.not_empty(key, "must not be empty: leave it out to allow every one");
        self.strings(key, check).map(BTreeSet::from_iter)
    }

    /// An object with any members, each read by `read`.
    pub(super) fn map<T, M: FromIterator<(String, T)>>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str, &Value) -> Result<T, String>,
    ) -> M {
        let members = self
            .typed(key, "an object", Value::as_object)
            .into_iter()
            .flatten();
        let read = members.filter_map(|(name, value)| match read(name, value) {
            Ok(value) => Some((name.clone(), value)),
            Err(rule) => {
                self.problem(&format!("{key}.{}", name.escape_debug()), rule);
                None
            }
        });
        read.collect()
    }

    /// An array of objects, each read by `parse`.
    pub(super) fn list<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&Value, &str, &mut Vec<DocumentProblem>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.typed(key, "an array", Value::as_array)?;
        let place = self.place(key);
        let before = self.problems.len();
        let items = items.iter().enumerate();
        let parsed = items
            .filter_map(|(index, item)| parse(item, &format!("{place}[{index}]"), self.problems));
        let mut parsed: Vec<T> = parsed.collect();
        // A list of one has allocated room for four.
        parsed.shrink_to_fit();
        self.values_hold &= self.problems.len() == before;
        Some(parsed)
    }

    /// One member read by `parse`.
    pub(super) fn nested<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Value, &str, &mut Vec<DocumentProblem>) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(key)?;
        let before = self.problems.len();
        let parsed = parse(value, &self.place(key), self.problems);
        self.values_hold &= self.problems.len() == before;
        parsed
    }
}

/// `expected a string, found a number`
pub(super) fn expected(wanted: &str, found: &Value) -> String {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    format!("expected {wanted}, found {found}")
}

/// Reads the text of a document. The items of its lists stay text, and [`parse_own`] reads them one
/// by one: as trees they take six times as much memory. The error says what is wrong and at which
/// line and column. It shows no value.
pub fn parse(text: &str) -> Result<Value, String> {
    let mut text = serde_json::Deserializer::from_str(text);
    let document = Strict(0)
        .deserialize(&mut text)
        .and_then(|document| text.end().map(|()| document));
    document.map_err(|error| error.to_string())
}

/// Reads what was a value and was kept as its text.
pub fn parse_own(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// A value at this depth: the document is at 0, an item of one of its lists at 2.
struct Strict(usize);

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let is_item = self.0 == 2;
        let value = deserializer.deserialize_any(self)?;
        // A box has no spare capacity.
        let text = |value| {
            serde_json::to_string(value).map(|text| Value::String(text.into_boxed_str().into()))
        };
        if is_item {
            text(&value).map_err(D::Error::custom)
        } else {
            Ok(value)
        }
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
        let mut map = Map::new();
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
