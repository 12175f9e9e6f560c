//! Scopes: names, and sets of names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words::joined::joined;

/// Asks for an ID token and makes the request an OpenID one (OpenID Connect Core §3.1.2.1).
pub const OPENID: &str = "openid";
/// Asks for a refresh token (OpenID Connect Core §11).
pub const OFFLINE_ACCESS: &str = "offline_access";

/// A set of scope names that keeps the order in which they were asked for and folds duplicates: one
/// text, with a space between two names. What is empty or has a space is no name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeSet(String);

impl ScopeSet {
    /// RFC 6749 §3.3; `None` when a character is not allowed in a scope token.
    pub fn parse(text: &str) -> Option<ScopeSet> {
        let is_allowed = |byte| matches!(byte, b' '..=b'!' | b'#'..=b'[' | b']'..=b'~');
        let names = text.split(' ').filter(|name| !name.is_empty());
        text.bytes().all(is_allowed).then(|| names.collect())
    }

    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|scope| scope == name)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator(' ')
    }

    pub fn is_within(&self, other: &ScopeSet) -> bool {
        self.iter().all(|name| other.contains(name))
    }

    #[must_use]
    pub fn retain(&self, keep: impl Fn(&str) -> bool) -> ScopeSet {
        self.iter().filter(|name| keep(name)).collect()
    }
}

impl<'a> FromIterator<&'a str> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> ScopeSet {
        let mut seen = BTreeSet::new();
        let is_name = |name: &&str| !name.is_empty() && !name.contains(' ');
        let names = names.into_iter().filter(is_name);
        let names = names.filter(|name| seen.insert(*name));
        ScopeSet(joined(" ", names))
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Under a seal it is a list of names.
impl Serialize for ScopeSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<Vec<_>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ScopeSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ScopeSet, D::Error> {
        Vec::<&str>::deserialize(deserializer).map(ScopeSet::from_iter)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScopeKind {
    Identity,
    Resource,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LocalizedText {
    /// The text for every language that is not in `by_language`.
    pub plain: String,
    /// By BCP 47 language tag, in lower case.
    pub by_language: BTreeMap<String, String>,
}

impl From<&str> for LocalizedText {
    fn from(plain: &str) -> LocalizedText {
        LocalizedText {
            plain: plain.to_owned(),
            by_language: BTreeMap::new(),
        }
    }
}

/// Whether this is a well-formed BCP 47 tag (RFC 5646 §2.1): a language of two or three letters,
/// then the other subtags, each kind in its place. Old tags without a language are none.
pub fn is_language_tag(tag: &str) -> bool {
    let mut subtags = tag.split('-');
    let is_language = |subtag: &str| {
        matches!(subtag.len(), 2 | 3) && subtag.bytes().all(|b| b.is_ascii_alphabetic())
    };
    if tag.len() > 35 || !subtags.next().is_some_and(is_language) {
        return false;
    }
    let mut before = SubtagKind::Language;
    for subtag in subtags {
        let Some(kind) = SubtagKind::after(before, subtag) else {
            return false;
        };
        before = kind;
    }
    before != SubtagKind::Singleton
}

/// In the order in which a tag has them.
#[derive(PartialEq, PartialOrd)]
enum SubtagKind {
    Language,
    ExtendedLanguage,
    Script,
    Region,
    Variant,
    /// One letter or digit, behind which something must stand.
    Singleton,
    OfSingleton,
}

impl SubtagKind {
    /// What a subtag is behind one of that kind; `None` where it can be nothing.
    fn after(before: SubtagKind, subtag: &str) -> Option<SubtagKind> {
        let bytes = subtag.as_bytes();
        let is_word = bytes.iter().all(u8::is_ascii_alphanumeric);
        let is_letters = bytes.iter().all(u8::is_ascii_alphabetic);
        let begins_with_digit = bytes.first().is_some_and(u8::is_ascii_digit);
        let kind = match bytes.len() {
            1..=8 if !is_word => return None,
            1 if before == SubtagKind::Singleton => return None,
            1 => return Some(SubtagKind::Singleton),
            2..=8 if before >= SubtagKind::Singleton => return Some(SubtagKind::OfSingleton),
            3 if is_letters => SubtagKind::ExtendedLanguage,
            4 if is_letters => SubtagKind::Script,
            2 if is_letters => SubtagKind::Region,
            3 if bytes.iter().all(u8::is_ascii_digit) => SubtagKind::Region,
            5..=8 => SubtagKind::Variant,
            4 if begins_with_digit => SubtagKind::Variant,
            _ => return None,
        };
        let may_repeat = matches!(kind, SubtagKind::ExtendedLanguage | SubtagKind::Variant);
        (before < kind || before == kind && may_repeat).then_some(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_folded_and_order_is_kept() {
        let scope = ScopeSet::parse("openid  profile openid").unwrap();
        assert_eq!(scope.to_string(), "openid profile");
    }

    #[test]
    fn characters_outside_the_grammar_are_refused() {
        for text in ["a\"b", "a\\b", "é", "a\tb", "a\u{0}b", "a\u{7f}"] {
            assert_eq!(ScopeSet::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_set_has_its_names_or_is_empty() {
        let scope = ScopeSet::parse("openid profile").unwrap();
        assert_eq!(scope.iter().collect::<Vec<_>>(), ["openid", "profile"]);
        assert!(!scope.is_empty() && ScopeSet::parse(" ").unwrap().is_empty());
    }

    #[test]
    fn a_typing_error_is_no_language_tag() {
        for tag in [
            "de",
            "pt-BR",
            "zh-Hans",
            "zh-cmn-Hans-CN",
            "es-419",
            "de-CH-1996",
            "sl-rozaj-biske",
            "de-u-co-phonebk",
            "sgn-x-y1",
            "de-1996",
            "mul",
        ] {
            assert!(is_language_tag(tag), "{tag}");
        }
        let long = "de-abcdefgh-abcdefgh-abcdefgh-abcdefg";
        for tag in [
            "",
            "d",
            "d1",
            "deut",
            "de_CH",
            "de-",
            "de-abcdefghi",
            long,
            "de--ch",
            "de-D",
            "de-x",
            "de-u-x",
            "en-US-1",
            "en-US-US",
            "en-US-Latn",
            "en-Latn-Latn",
            "de-1996-DE",
            "de-abc1",
        ] {
            assert!(!is_language_tag(tag), "{tag}");
        }
    }

    #[test]
    fn narrowing_compares_names_only() {
        let wide = ScopeSet::parse("a b c").unwrap();
        assert!(ScopeSet::parse("c a").unwrap().is_within(&wide));
        assert!(!ScopeSet::parse("c d").unwrap().is_within(&wide));
        assert_eq!(wide.retain(|name| name != "b").to_string(), "a c");
    }
}
