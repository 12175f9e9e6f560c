//! Names registered in several languages (OpenID Connect Dynamic Client Registration §2.1): `client_name`,
//! `client_name#de`.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalizedText {
    /// For every language that has none of its own.
    pub plain: String,
    /// By BCP 47 language tag, in lower case.
    pub by_language: BTreeMap<String, String>,
}

impl From<&str> for LocalizedText {
    fn from(plain: &str) -> LocalizedText {
        LocalizedText { plain: plain.to_owned(), by_language: BTreeMap::new() }
    }
}

/// A well-formed BCP 47 tag, as far as a misspelt one can be told (RFC 5646 §2.1).
pub fn is_language_tag(tag: &str) -> bool {
    let mut subtags = tag.split('-');
    let is_language = |subtag: &str| (2..=3).contains(&subtag.len()) && subtag.bytes().all(|b| b.is_ascii_alphabetic());
    let is_subtag = |subtag: &str| (1..=8).contains(&subtag.len()) && subtag.bytes().all(|b| b.is_ascii_alphanumeric());
    tag.len() <= 35 && subtags.next().is_some_and(is_language) && subtags.all(is_subtag)
}
