//! Walks one object of a document, and remembers where it is and what is wrong. Every reading
//! method notes a member that is not what it should be, and treats it as absent. So all mistakes
//! are found in one go. A key that nobody has asked for by the end is unknown.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::Value;

use crate::registration::names::{hint, scope_names};
use crate::registration::problem::{DocumentProblem, MOST_MISTAKES, shown};
use crate::registration::timestamp;
use crate::words::json::{JsonObject, SetMember};
use crate::words::named::Named;
use crate::words::rule::RuleKept;
use crate::words::scope::{LocalizedText, ScopeSet, is_language_tag};

/// For how many unknown keys of an object the nearest known one is looked for, which takes a while.
const MOST_HINTS: usize = 100;

/// A rule for a text: `Err` says what it must be.
pub type Check = fn(&str) -> RuleKept;

pub struct Walker<'a> {
    path: String,
    members: &'a JsonObject,
    problems: &'a mut Vec<DocumentProblem>,
    asked: Vec<Cow<'static, str>>,
    /// Members that are stored in another form than they were given in, or without being given. A
    /// time such as `15m` is stored as a number.
    pub stored_as: JsonObject,
    /// Whether every value read so far was in order. Only then are contradictions looked for:
    /// beside a value that could not be read they would be guesses.
    pub(super) values_hold: bool,
}

impl<'a> Walker<'a> {
    /// Reads `value` with `read`, then notes unknown keys. `None`, with a note, when it is not an
    /// object.
    pub fn object<T>(
        value: &Value,
        path: &str,
        problems: &mut Vec<DocumentProblem>,
        read: impl FnOnce(&mut Walker<'_>) -> T,
    ) -> Option<T> {
        let Value::Object(members) = value else {
            problems.push(DocumentProblem::new(path, expected("an object", value)));
            return None;
        };
        let first = problems.len();
        let mut walker = Walker::new(path, members, problems);
        let object = read(&mut walker);
        let unknown = walker.unknown_keys();
        problems.splice(first..first, unknown);
        Some(object)
    }

    /// The members that `read` asks an object for.
    pub fn keys<T>(read: impl FnOnce(&mut Walker<'_>) -> T) -> BTreeSet<String> {
        let members = JsonObject::new();
        let mut problems = Vec::new();
        let mut walker = Walker::new("", &members, &mut problems);
        read(&mut walker);
        walker.asked.into_iter().map(Cow::into_owned).collect()
    }

    fn new(
        path: &str,
        members: &'a JsonObject,
        problems: &'a mut Vec<DocumentProblem>,
    ) -> Walker<'a> {
        Walker {
            path: path.to_owned(),
            members,
            problems,
            asked: Vec::new(),
            stored_as: JsonObject::new(),
            values_hold: true,
        }
    }

    /// A problem for each key that nobody has asked for.
    fn unknown_keys(&self) -> Vec<DocumentProblem> {
        let mut unknown = Vec::new();
        let keys = self.members.keys().filter(|key| !self.is_asked(key));
        for key in keys.take(MOST_MISTAKES.saturating_sub(self.problems.len())) {
            let nearest = if unknown.len() < MOST_HINTS {
                hint(key, self.asked.iter().map(Cow::as_ref))
            } else {
                String::new()
            };
            let rule = format!("unknown key {}{nearest}", shown(key));
            unknown.push(DocumentProblem::new(self.path.as_str(), rule));
        }
        unknown
    }

    /// `client_name#` stands for `client_name#de` and every other language.
    fn is_asked(&self, key: &str) -> bool {
        let key = key.split_inclusive('#').next();
        self.asked.iter().any(|asked| Some(asked.as_ref()) == key)
    }

    fn place(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Notes a problem with a member; with the object itself, where the member has no name.
    pub fn problem(&mut self, key: &str, rule: impl Into<String>) {
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
    pub fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.asked.push(Cow::Borrowed(key));
        self.members.get(key).filter(|value| !value.is_null())
    }

    pub fn members(&self) -> &'a JsonObject {
        self.members
    }

    /// A member that `take` finds to be a `wanted`.
    fn typed<T>(
        &mut self,
        key: &'static str,
        wanted: &str,
        take: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(key)?;
        let taken = take(value);
        if taken.is_none() {
            self.problem(key, expected(wanted, value));
        }
        taken
    }

    pub fn string(&mut self, key: &'static str) -> Option<&'a str> {
        self.typed(key, "a string", Value::as_str)
    }

    /// A text that keeps a rule.
    pub fn checked(&mut self, key: &'static str, check: Check) -> Option<String> {
        let value = self.value(key)?;
        self.checked_value(key, value, check)
    }

    fn checked_value(&mut self, key: &str, value: &Value, check: Check) -> Option<String> {
        match checked_text(value, check, &[]) {
            Ok(text) => Some(text.to_owned()),
            Err(rule) => {
                self.problem(key, rule);
                None
            }
        }
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
            if !is_language_tag(tag) {
                let rule = format!("must name a language behind the #, as {key}#de");
                self.problem(&member.escape_debug().to_string(), rule);
            } else if !value.is_null()
                && let Some(translation) = self.checked_value(member, value, check)
            {
                let tag = tag.to_ascii_lowercase();
                if text.by_language.insert(tag, translation).is_some() {
                    self.problem(member, "names a language that is there in other letters");
                }
            }
        }
        text
    }

    /// A text that keeps a rule and must be there. After a note it is empty, in an object that is
    /// not used.
    pub fn required(&mut self, key: &'static str, check: Check) -> String {
        self.not_absent(key, "is required");
        self.checked(key, check).unwrap_or_default()
    }

    /// Notes a member that is not there.
    pub fn not_absent(&mut self, key: &'static str, rule: &str) {
        if self.value(key).is_none() {
            self.problem(key, rule);
        }
    }

    /// How many of these members are there.
    pub fn count(&mut self, keys: &[&'static str]) -> usize {
        let mut count = 0;
        for key in keys {
            count += usize::from(self.value(key).is_some());
        }
        count
    }

    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
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
        let value = self.value(key)?;
        if !value.is_number() && !value.is_string() {
            let wanted = "a whole number of seconds, or a text as \"15m\"";
            self.problem(key, expected(wanted, value));
            return None;
        }
        let number = match value.as_str() {
            Some(text) => timestamp::seconds(text),
            None => value.as_u64(),
        };
        let Some(number) = number.filter(|number| range.contains(number)) else {
            let rule = format!(
                "must be a whole number of seconds from {} to {}, or as \"15m\"",
                range.start(),
                range.end()
            );
            self.problem(key, rule);
            return None;
        };
        if value.is_string() {
            self.stored_as.set(key, number);
        }
        Some(Duration::from_secs(number))
    }

    /// A name of one of the variants.
    pub(super) fn one_of<T: Named>(&mut self, key: &'static str) -> Option<T> {
        self.choice(key, T::CHOICES)
    }

    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let text = self.string(key)?;
        for (name, choice) in choices {
            if *name == text {
                return Some(*choice);
            }
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let known = names.join(", ");
        self.problem(key, format!("must be one of {known}{}", hint(text, names)));
        None
    }

    /// An array of texts that keep a rule, each there once; empty where it is absent.
    pub(super) fn strings<C: FromIterator<String>>(
        &mut self,
        key: &'static str,
        check: Check,
    ) -> C {
        let texts = self.strings_of(key, check, &[]);
        texts.into_iter().flatten().collect()
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
            let rule = match checked_text(item, check, choices) {
                Ok(text) if seen.insert(text) => {
                    texts.push(text.to_owned());
                    continue;
                }
                Ok(_) => String::from("stands in the list twice"),
                Err(rule) => rule,
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
        self.strings_of(key, check, &[]).map(BTreeSet::from_iter)
    }

    /// Names of scopes, separated by spaces.
    pub(super) fn scopes(&mut self, key: &'static str) -> Option<ScopeSet> {
        let names = self.checked(key, scope_names)?;
        ScopeSet::parse(&names)
    }

    /// An object with any members, each read by `read`.
    pub fn map<T, M: FromIterator<(String, T)>>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str, &Value) -> Result<T, String>,
    ) -> M {
        let mut found = Vec::new();
        let members = self.typed(key, "an object", Value::as_object);
        for (name, value) in members.into_iter().flatten() {
            match read(name, value) {
                Ok(value) => found.push((name.clone(), value)),
                Err(rule) => self.problem(&format!("{key}.{}", name.escape_debug()), rule),
            }
        }
        found.into_iter().collect()
    }

    /// An array, each item read by `parse`.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&Value, &str, &mut Vec<DocumentProblem>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.typed(key, "an array", Value::as_array)?;
        let place = self.place(key);
        let before = self.problems.len();
        let mut parsed = Vec::new();
        for (index, item) in items.iter().enumerate() {
            parsed.extend(parse(item, &format!("{place}[{index}]"), self.problems));
        }
        // A list of one has allocated room for four.
        parsed.shrink_to_fit();
        self.values_hold &= self.problems.len() == before;
        Some(parsed)
    }

    /// An array of objects, each read by `read`.
    pub fn objects<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&mut Walker<'_>) -> T,
    ) -> Option<Vec<T>> {
        self.list(key, |value, path, problems| {
            Walker::object(value, path, problems, &read)
        })
    }

    /// One member read by `parse`.
    pub fn nested<T>(
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

/// A text that keeps a rule; otherwise what is wrong, with a hint at one of `choices`.
fn checked_text<'a>(value: &'a Value, check: Check, choices: &[&str]) -> Result<&'a str, String> {
    let text = text(value)?;
    match check(text) {
        Ok(()) => Ok(text),
        Err(rule) => Err(format!("{rule}{}", hint(text, choices.iter().copied()))),
    }
}

/// The text that a value is; otherwise what is wrong.
pub(super) fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| expected("a string", value))
}

/// `expected a string, found a number`
pub fn expected(wanted: &str, found: &Value) -> String {
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

/// Reads what was a value and was kept as its text.
pub fn parse_own(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
