//! Walks one object of a document, remembering where it is and what is wrong. Every reading method leaves a note when the
//! member is not what it should be, and answers as if it were absent: so all mistakes are found in one go.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::protocol::localized_text::{LocalizedText, is_language_tag};
use crate::protocol::nearest::hint;

use super::problem::{Problem, shown};

/// A rule for a text: `Err` says what it must be.
pub(super) type Check = fn(&str) -> Result<(), &'static str>;

/// An object being read.
pub(super) struct Walker<'v, 'p> {
    path: String,
    members: &'v Map<String, Value>,
    problems: &'p mut Vec<Problem>,
    /// Whether every value read so far was in order. Contradictions are only looked for then: beside a value that could
    /// not be read they would be guesses.
    pub(super) values_hold: bool,
}

impl<'v, 'p> Walker<'v, 'p> {
    /// Opens `value`; notes unknown keys. `None`, with a note, when it is no object.
    pub(super) fn open(
        value: &'v Value,
        path: &str,
        known: &[&str],
        problems: &'p mut Vec<Problem>,
    ) -> Option<Walker<'v, 'p>> {
        let Value::Object(members) = value else {
            problems.push(Problem::new(path, expected("an object", value)));
            return None;
        };
        let walker = Walker { path: path.to_owned(), members, problems, values_hold: true };
        // `client_name#` stands for `client_name#de` and every other language.
        let untagged = |key: &str| key.split_inclusive('#').next().unwrap_or_default().to_owned();
        for key in members.keys().filter(|key| !known.contains(&untagged(key).as_str())) {
            let rule = format!("unknown key {}{}", shown(key), hint(key, known.iter().copied()));
            walker.problems.push(Problem::new(&walker.path, rule));
        }
        Some(walker)
    }

    /// The place of a member.
    pub(super) fn place(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Notes a problem with a member.
    pub(super) fn problem(&mut self, key: &str, rule: impl Into<String>) {
        self.note(self.place(key), rule);
    }

    /// A member as it is; `null` counts as absent.
    pub(super) fn value(&self, key: &str) -> Option<&'v Value> {
        self.members.get(key).filter(|value| !value.is_null())
    }

    /// The whole object.
    pub(super) fn members(&self) -> &'v Map<String, Value> {
        self.members
    }

    /// A text.
    pub(super) fn string(&mut self, key: &str) -> Option<&'v str> {
        let value = self.value(key)?;
        if value.as_str().is_none() {
            self.problem(key, expected("a string", value));
        }
        value.as_str()
    }

    /// A text that keeps a rule.
    pub(super) fn checked(&mut self, key: &str, check: Check) -> Option<String> {
        let text = self.string(key)?;
        match check(text) {
            Ok(()) => Some(text.to_owned()),
            Err(rule) => {
                self.problem(key, rule);
                None
            }
        }
    }

    /// A text that keeps a rule, with what it is in single languages; `unsaid` where it is not there.
    pub(super) fn localized(&mut self, key: &str, check: Check, unsaid: &str) -> LocalizedText {
        let mut text = LocalizedText::from(unsaid);
        text.plain = self.checked(key, check).unwrap_or(text.plain);
        let members = self.members;
        for member in members.keys() {
            let Some((_, tag)) = member.split_once('#').filter(|(name, _)| *name == key) else { continue };
            if !is_language_tag(tag) {
                let place = member.escape_debug().to_string();
                self.problem(&place, format!("must name a language behind the #, as {key}#de"));
            } else if let Some(translation) = self.checked(member, check)
                && text.by_language.insert(tag.to_ascii_lowercase(), translation).is_some()
            {
                self.problem(member, "names a language that is there in other letters");
            }
        }
        text
    }

    /// A text that keeps a rule and must be there. After a note: the empty text, in an object that will not be used.
    pub(super) fn required(&mut self, key: &str, check: Check) -> String {
        if self.value(key).is_none() {
            self.problem(key, "is required");
        }
        self.checked(key, check).unwrap_or_default()
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let value = self.value(key)?;
        if value.as_bool().is_none() {
            self.problem(key, expected("true or false", value));
        }
        value.as_bool()
    }

    /// A whole number between `min` and `max`.
    pub(super) fn number(&mut self, key: &str, (min, max): (u64, u64), unit: &str) -> Option<u64> {
        let value = self.value(key)?;
        if !value.is_number() {
            self.problem(key, expected(&format!("a whole number{unit}"), value));
            return None;
        }
        let number = value.as_u64().filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.problem(key, format!("must be a whole number{unit} from {min} to {max}"));
        }
        number
    }

    /// A number of seconds.
    pub(super) fn seconds(&mut self, key: &str, bounds: (u64, u64)) -> Option<Duration> {
        self.number(key, bounds, " of seconds").map(Duration::from_secs)
    }

    /// One of the named choices.
    pub(super) fn one_of<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.string(key)?;
        let chosen = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice);
        if chosen.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.problem(key, with_nearest(&format!("must be one of {}", names.join(", ")), text, &names));
        }
        chosen
    }

    /// The items of an array, each with its place.
    pub(super) fn items(&mut self, key: &str) -> Option<Vec<(String, &'v Value)>> {
        let value = self.value(key)?;
        let Value::Array(items) = value else {
            self.problem(key, expected("an array", value));
            return None;
        };
        let place = self.place(key);
        Some(items.iter().enumerate().map(|(index, item)| (format!("{place}[{index}]"), item)).collect())
    }

    /// An array of texts that keep a rule, each there once.
    pub(super) fn strings(&mut self, key: &str, check: Check) -> Option<Vec<String>> {
        self.strings_of(key, check, &[])
    }

    /// The same, where whoever breaks the rule probably meant one of those.
    pub(super) fn strings_of(&mut self, key: &str, check: Check, choices: &[&str]) -> Option<Vec<String>> {
        let mut seen = BTreeSet::new();
        let mut texts = Vec::new();
        for (place, item) in self.items(key)? {
            match item.as_str().map(|text| (text, check(text))) {
                Some((text, Ok(()))) if seen.insert(text) => texts.push(text.to_owned()),
                Some((_, Ok(()))) => self.note(place, "stands in the list twice"),
                Some((text, Err(rule))) => self.note(place, with_nearest(rule, text, choices)),
                None => self.note(place, expected("a string", item)),
            }
        }
        Some(texts)
    }

    /// The same, where an empty array is refused with `rule`.
    pub(super) fn filled_strings(&mut self, key: &str, check: Check, rule: &str) -> Option<Vec<String>> {
        self.filled_strings_of(key, check, &[], rule)
    }

    /// Both at once.
    pub(super) fn filled_strings_of(
        &mut self,
        key: &str,
        check: Check,
        choices: &[&str],
        rule: &str,
    ) -> Option<Vec<String>> {
        if self.value(key).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            self.problem(key, rule);
        }
        self.strings_of(key, check, choices)
    }

    /// The same, where absence means "every one".
    pub(super) fn strings_or_all(&mut self, key: &str, check: Check) -> Option<BTreeSet<String>> {
        let texts = self.filled_strings(key, check, "must not be empty: leave it out to allow every one");
        texts.map(BTreeSet::from_iter)
    }

    /// The members of an object.
    pub(super) fn object(&mut self, key: &str) -> Option<&'v Map<String, Value>> {
        let value = self.value(key)?;
        if value.as_object().is_none() {
            self.problem(key, expected("an object", value));
        }
        value.as_object()
    }

    /// An array of objects, each read by `parse`.
    pub(super) fn list<T>(
        &mut self,
        key: &str,
        parse: impl Fn(&Value, &str, &mut Vec<Problem>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.items(key)?;
        let before = self.problems.len();
        let parsed = items.iter().filter_map(|(place, item)| parse(item, place, self.problems)).collect();
        self.values_hold &= self.problems.len() == before;
        Some(parsed)
    }

    /// One member read by `parse`.
    pub(super) fn nested<T>(
        &mut self,
        key: &str,
        parse: impl FnOnce(&Value, &str, &mut Vec<Problem>) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(key)?;
        let before = self.problems.len();
        let parsed = parse(value, &self.place(key), self.problems);
        self.values_hold &= self.problems.len() == before;
        parsed
    }

    /// Notes a problem with a place further down.
    pub(super) fn note(&mut self, place: String, rule: impl Into<String>) {
        self.values_hold = false;
        self.problems.push(Problem::new(place, rule));
    }
}

/// `must be one of jwt, reference; the nearest is "jwt"`
fn with_nearest(rule: &str, text: &str, choices: &[&str]) -> String {
    format!("{rule}{}", hint(text, choices.iter().copied()))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn any(_: &str) -> Result<(), &'static str> {
        Ok(())
    }

    #[test]
    fn wrong_types_are_named_with_their_place() {
        let value = json!({"a": 1, "b": "x", "c": {}, "d": [1], "e": -1, "f": 1.5, "g": "1", "h": null});
        let mut problems = Vec::new();
        let mut walker =
            Walker::open(&value, "o[0]", &["a", "b", "c", "d", "e", "f", "g", "h"], &mut problems).unwrap();
        assert_eq!(walker.string("a"), None);
        assert_eq!(walker.flag("b"), None);
        assert_eq!(walker.items("c"), None);
        assert_eq!(walker.strings("d", any), Some(vec![]));
        assert_eq!(walker.seconds("e", (1, 5)), None);
        assert_eq!(walker.seconds("f", (1, 5)), None);
        assert_eq!(walker.seconds("g", (1, 5)), None);
        assert_eq!(walker.string("h"), None);
        assert!(!walker.values_hold);
        let texts: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(
            texts,
            [
                "o[0].a: expected a string, found a number",
                "o[0].b: expected true or false, found a string",
                "o[0].c: expected an array, found an object",
                "o[0].d[0]: expected a string, found a number",
                "o[0].e: must be a whole number of seconds from 1 to 5",
                "o[0].f: must be a whole number of seconds from 1 to 5",
                "o[0].g: expected a whole number of seconds, found a string",
            ]
        );
    }

    #[test]
    fn unknown_keys_get_the_nearest_known_one() {
        let value = json!({"redirect_uri": []});
        let mut problems = Vec::new();
        let walker = Walker::open(&value, "clients[3]", &["scope", "redirect_uris"], &mut problems).unwrap();
        assert!(walker.values_hold);
        let rule = "clients[3]: unknown key \"redirect_uri\"; the nearest is \"redirect_uris\"";
        assert_eq!(problems[0].to_string(), rule);
    }
}
