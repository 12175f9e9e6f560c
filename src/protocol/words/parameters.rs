//! `application/x-www-form-urlencoded`, read strictly. Names are case-sensitive, an empty value
//! counts as absent, a repeated one is an error (RFC 6749 §3.1, §3.2).

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words::reason::Reason;

/// All names and values in one text, and where in it they are: a request looks for many names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    text: String,
    places: Vec<Place>,
}

/// Where a name and its value stand in the text, in bytes.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    name: Range<usize>,
    value: Range<usize>,
}

impl Parameters {
    /// Bad percent-encoding, invalid UTF-8 and NUL are `MalformedParameters`.
    pub fn parse(raw: &[u8]) -> Result<Parameters, Reason> {
        if !percent_encoding_is_whole(raw) {
            return Err(Reason::MalformedParameters);
        }
        // form_urlencoded repairs invalid UTF-8 with U+FFFD, so the decoded bytes are checked
        // before it sees them.
        let decoded = percent_encoding::percent_decode(raw).decode_utf8();
        if !decoded.is_ok_and(|text| !text.contains('\0')) {
            return Err(Reason::MalformedParameters);
        }
        Ok(Parameters::from_pairs(form_urlencoded::parse(raw)))
    }

    pub fn from_pairs(
        pairs: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
    ) -> Parameters {
        let mut parameters = Parameters::default();
        for (name, value) in pairs {
            // What most requests need, at once.
            if parameters.places.is_empty() {
                parameters.text.reserve(512);
                parameters.places.reserve(12);
            }
            let place = Place {
                name: parameters.append(name.as_ref()),
                value: parameters.append(value.as_ref()),
            };
            parameters.places.push(place);
        }
        parameters
    }

    fn append(&mut self, part: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(part);
        start..self.text.len()
    }

    /// `RepeatedParameter` when it was sent more than once, empty or not.
    pub fn single(&self, name: &str) -> Result<Option<&str>, Reason> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Reason::RepeatedParameter),
            (Some(value), None) if !value.is_empty() => Ok(Some(value)),
            (Some(_) | None, None) => Ok(None),
        }
    }

    /// At most `most` Unicode scalars; longer is `OverlongParameter`.
    pub fn bounded(&self, name: &str, most: usize) -> Result<Option<&str>, Reason> {
        let value = self.single(name)?;
        if value.is_some_and(|value| value.chars().nth(most).is_some()) {
            return Err(Reason::OverlongParameter);
        }
        Ok(value)
    }

    /// `RepeatedParameter` when one of `names` was sent more than once (RFC 6749 §3.2).
    pub fn refuse_repeated(&self, names: &[&str]) -> Result<(), Reason> {
        let is_repeated = |name: &&str| self.all(name).nth(1).is_some();
        if names.iter().any(is_repeated) {
            return Err(Reason::RepeatedParameter);
        }
        Ok(())
    }

    /// Sent at all, empty or not: for what must not be mistaken for absent.
    pub fn was_sent(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Empty ones too, in order.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.iter()
            .filter(move |(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    /// The names that were sent more than once, each once; what cannot be one of ours is left out.
    pub fn repeated(&self) -> BTreeSet<&str> {
        let is_possible = |name: &str| {
            let mut letters = name.bytes();
            name.len() <= 64 && letters.all(|one| one.is_ascii_lowercase() || one == b'_')
        };
        let mut seen = BTreeSet::new();
        self.iter()
            .map(|(name, _)| name)
            .filter(|name| !seen.insert(*name) && is_possible(name))
            .collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let part = |place: &Range<usize>| self.text.get(place.clone()).unwrap_or_default();
        let pair = move |place: &Place| (part(&place.name), part(&place.value));
        self.places.iter().map(pair)
    }
}

/// Under a seal they are a list of pairs.
impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<Vec<_>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parameters, D::Error> {
        Vec::<(&str, &str)>::deserialize(deserializer).map(Parameters::from_pairs)
    }
}

/// One value by itself, decoded as strictly; `None` when the text is none.
pub fn decoded(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    let decoded = percent_encoding::percent_decode(spaced.as_bytes()).decode_utf8();
    let decoded = decoded.ok().filter(|decoded| !decoded.contains('\0'))?;
    percent_encoding_is_whole(text.as_bytes()).then(|| decoded.into_owned())
}

fn percent_encoding_is_whole(raw: &[u8]) -> bool {
    let is_digit = |digit: Option<&u8>| digit.is_some_and(u8::is_ascii_hexdigit);
    let mut pieces = raw.split(|byte| *byte == b'%').skip(1);
    pieces.all(|piece| is_digit(piece.first()) && is_digit(piece.get(1)))
}

/// Judges the headers `Origin` and `Sec-Fetch-Site` against our own origin. `null` is never ours.
pub fn check_sender(
    own_origin: &str,
    origin: Option<&str>,
    sec_fetch_site: Option<&str>,
) -> Result<(), Reason> {
    let foreign_origin = origin.is_some_and(|origin| origin != own_origin);
    let foreign_site = sec_fetch_site.is_some_and(|site| site != "same-origin" && site != "none");
    if foreign_origin || foreign_site {
        Err(Reason::ForeignFormPost)
    } else {
        Ok(())
    }
}

pub const CLIENT_ID: usize = 200;
pub const CLIENT_SECRET: usize = 256;
/// `scope` as sent; a defaulted scope has no limit.
pub const SCOPE: usize = 2000;
pub const REDIRECT_URI: usize = 2000;
pub const STATE: usize = 4096;
pub const NONCE: usize = 1024;
/// `username`, and `login_hint`, which fills it in.
pub const USERNAME: usize = 256;
/// Hashing costs by the byte.
pub const PASSWORD_BYTES: usize = 1024;
/// RFC 7636 §4.1, as [`CODE_VERIFIER`].
pub const CODE_VERIFIER_LEAST: usize = 43;
pub const CODE_VERIFIER: usize = 128;
pub const CLAIMS: usize = 4096;
pub const RESOURCE: usize = 2000;
/// How often `resource` (and `audience` in token exchange) may be sent.
pub const RESOURCES: usize = 10;
/// Codes, tokens and other handles of ours.
pub const HANDLE: usize = 8192;
pub const ID_TOKEN_HINT: usize = 16_384;
/// Also of `client_assertion` and `request`.
pub const ASSERTION: usize = 16_384;
/// Every parameter without a row of its own.
pub const OTHER: usize = 300;
pub const QUERY_BYTES: usize = 32_768;
/// A sealed authorization request; a longer one is refused when it comes in.
pub const SEALED_REQUEST: usize = 7000;
pub const AUTHORIZATION_CODE: usize = 2000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn malformed_input_is_refused_not_repaired() {
        for raw in [
            "a=%",
            "a=%4",
            "a=%zz",
            "a=%u0041",
            "a=%ff",
            "a=%C3&b=%A9",
            "a=%C3=%A9",
            "a=%00",
            "%00=a",
            "a=%c3%28",
        ] {
            assert_eq!(
                Parameters::parse(raw.as_bytes()),
                Err(Reason::MalformedParameters),
                "{raw}"
            );
        }
        assert!(Parameters::parse(b"a=\xff").is_err());
        assert!(Parameters::parse(b"a=\0").is_err());
    }

    #[test]
    fn empty_is_absent_and_repetition_is_refused_even_when_empty() {
        let parameters = Parameters::parse(b"a=&b=1&b=&c=2&C=3").unwrap();
        assert_eq!(parameters.single("a"), Ok(None));
        assert!(parameters.was_sent("a") && !parameters.was_sent("d"));
        assert_eq!(parameters.single("b"), Err(Reason::RepeatedParameter));
        assert_eq!(parameters.single("c"), Ok(Some("2")));
        assert_eq!(parameters.refuse_repeated(&["a", "c", "d"]), Ok(()));
        assert_eq!(
            parameters.refuse_repeated(&["a", "b"]),
            Err(Reason::RepeatedParameter)
        );
    }

    #[test]
    fn pairs_are_as_they_were_sent() {
        let pairs = [("a", "1"), ("b", ""), ("a", "2")];
        let parameters = Parameters::from_pairs(pairs);
        assert_eq!(parameters.iter().collect::<Vec<_>>(), pairs);
    }

    #[test]
    fn a_seal_keeps_the_pairs() {
        let pairs = [("a\0b", "1\0c\0"), ("", ""), ("ab", "")];
        let parameters = Parameters::from_pairs(pairs);
        assert_eq!(parameters.iter().collect::<Vec<_>>(), pairs);
        let sealed = postcard::to_allocvec(&parameters).unwrap();
        assert_eq!(sealed, postcard::to_allocvec(&pairs.to_vec()).unwrap());
        assert_eq!(postcard::from_bytes(&sealed), Ok(parameters));
        assert_eq!(Parameters::default().iter().next(), None);
    }

    #[test]
    fn length_counts_scalars_after_decoding() {
        let parameters = Parameters::parse("a=\u{e9}\u{e9}\u{e9}".as_bytes()).unwrap();
        assert_eq!(parameters.bounded("a", 3), Ok(Some("\u{e9}\u{e9}\u{e9}")));
        assert_eq!(parameters.bounded("a", 2), Err(Reason::OverlongParameter));
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_read_back(pairs in prop::collection::vec(("[^\0]{1,8}", "[^\0]{0,16}"), 0..6)) {
            let encoded = form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
            let parameters = Parameters::parse(encoded.as_bytes()).unwrap();
            let read: Vec<(String, String)> = parameters.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            prop_assert_eq!(read, pairs);
        }

        #[test]
        fn no_bytes_make_it_panic(raw in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Parameters::parse(&raw);
        }
    }

    mod forms {
        use super::super::*;

        const OURS: &str = "https://login.example";

        #[test]
        fn our_own_pages_and_silent_browsers_pass() {
            #[rustfmt::skip]
            let rows = [
                (None, None), (Some(OURS), None), (Some(OURS), Some("same-origin")), (None, Some("same-origin")),
                (None, Some("none")), (Some(OURS), Some("none")),
            ];
            for (origin, site) in rows {
                assert_eq!(
                    check_sender(OURS, origin, site),
                    Ok(()),
                    "{origin:?} {site:?}"
                );
            }
        }

        #[test]
        fn everyone_else_is_refused() {
            #[rustfmt::skip]
            let rows = [
                (Some("https://evil.example"), None), (Some("https://login.example.evil.example"), None),
                (Some("https://login.example:8443"), None), (Some("https://login.example/"), None),
                (Some("http://login.example"), None), (Some("HTTPS://LOGIN.EXAMPLE"), None), (Some("null"), None),
                (Some(""), None), (Some("null"), Some("same-origin")),
                (Some("https://evil.example"), Some("same-origin")), (Some(OURS), Some("cross-site")),
                (Some(OURS), Some("same-site")), (None, Some("cross-site")), (None, Some("same-site")), (None, Some("")),
                (None, Some("SAME-ORIGIN")),
            ];
            for (origin, site) in rows {
                assert_eq!(
                    check_sender(OURS, origin, site),
                    Err(Reason::ForeignFormPost),
                    "{origin:?} {site:?}"
                );
            }
        }
    }
}
