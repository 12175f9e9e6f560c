//! Names as types: a subject cannot be passed where a client is expected.

use std::fmt::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::words::instant::Day;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> $name {
                $name(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    )* };
}

names! {
    /// A registered client's name (RFC 6749 §2.2). At most 200 characters.
    ClientId;
    /// A user's identifier towards clients (OpenID Connect Core §2, `sub`): at most 255 ASCII
    /// characters, never reused.
    Subject;
    /// A browser session's public name (`sid`, OpenID Connect Front-Channel Logout §3). Unrelated
    /// to the cookie's handle.
    Sid;
    TenantName;
}

/// A client's name as text for people has it: in quotes where it has a space.
pub fn in_text(client_id: &str) -> String {
    if client_id.contains(' ') {
        format!("\"{client_id}\"")
    } else {
        client_id.to_owned()
    }
}

impl ClientId {
    /// As text for people has it.
    pub fn in_text(&self) -> String {
        in_text(self.as_str())
    }
}

impl Subject {
    /// base64url of 127 random bits. The first bit is zero, so that the text never begins with `-`,
    /// which a command would take for a flag.
    pub fn of_random([first, rest @ ..]: [u8; 16]) -> Subject {
        Subject(URL_SAFE_NO_PAD.encode([&[first & 0x7f][..], &rest].concat()))
    }
}

impl Sid {
    /// base64url of the day (4 bytes, big-endian) and 128 random bits. The day says in which
    /// partition the session's row lies.
    pub fn of_day(day: Day, random: [u8; 16]) -> Sid {
        Sid(URL_SAFE_NO_PAD.encode([day.0.to_be_bytes().as_slice(), &random].concat()))
    }

    /// The day in the name; `None` for a name that [`Sid::of_day`] did not make.
    pub fn day(&self) -> Option<Day> {
        let bytes = URL_SAFE_NO_PAD
            .decode(&self.0)
            .ok()
            .filter(|bytes| bytes.len() == 20)?;
        bytes
            .first_chunk::<4>()
            .map(|day| Day(i32::from_be_bytes(*day)))
    }
}

/// A grant's name: the UTC day of its absolute expiry (which names the partition) and 128 random
/// bits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrantId {
    pub day: Day,
    pub random: [u8; 16],
}

impl GrantId {
    /// The day (4 bytes, big-endian) and the random bytes. Every handle of the grant begins with
    /// them.
    pub fn to_bytes(self) -> Vec<u8> {
        [self.day.0.to_be_bytes().as_slice(), &self.random].concat()
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<GrantId> {
        let (day, random) = bytes.split_first_chunk()?;
        Some(GrantId {
            day: Day(i32::from_be_bytes(*day)),
            random: random.try_into().ok()?,
        })
    }

    /// The name in base64url, as commands print it.
    pub fn to_text(self) -> String {
        URL_SAFE_NO_PAD.encode(self.to_bytes())
    }

    pub fn from_text(text: &str) -> Option<GrantId> {
        GrantId::from_bytes(&URL_SAFE_NO_PAD.decode(text).ok()?)
    }
}

/// The name of a public key (RFC 7638): the SHA-256 over its required members.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyThumbprint(pub [u8; 32]);

impl KeyThumbprint {
    /// In base64url, as `jkt` and `dpop_jkt` have it.
    pub fn to_text(self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    pub fn from_text(text: &str) -> Option<KeyThumbprint> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        bytes.try_into().ok().map(KeyThumbprint)
    }
}

pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut digits = text.bytes();
    let mut bytes = Vec::new();
    while let Some(high) = digits.next() {
        bytes.push((nibble(high)? << 4) + nibble(digits.next()?)?);
    }
    Some(bytes)
}

fn nibble(digit: u8) -> Option<u8> {
    let nibble = char::from(digit).to_digit(16)?;
    u8::try_from(nibble).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_subject_is_no_flag() {
        for first in 0..=u8::MAX {
            let subject = Subject::of_random([first; 16]);
            assert_eq!(subject.as_str().len(), 22);
            assert!(
                subject
                    .as_str()
                    .starts_with(|letter: char| letter.is_ascii_alphabetic()),
                "{}",
                subject.as_str()
            );
        }
    }

    #[test]
    fn a_thumbprint_and_hexadecimal_digits_are_read_back() {
        let thumbprint = KeyThumbprint([0xfb; 32]);
        let text = "-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s";
        assert_eq!(thumbprint.to_text(), text);
        assert_eq!(KeyThumbprint::from_text(text), Some(thumbprint));
        assert_eq!(KeyThumbprint::from_text("-_v7"), None);
        assert_eq!(encode(&[0x00, 0x9f, 0xff]), "009fff");
        assert_eq!(decode("009fFF"), Some(vec![0x00, 0x9f, 0xff]));
        assert_eq!((decode("009"), decode("0g")), (None, None));
    }

    #[test]
    fn a_sid_tells_its_day_and_a_foreign_one_has_none() {
        assert_eq!(Sid::of_day(Day(20_777), [7; 16]).day(), Some(Day(20_777)));
        for text in ["", "abc", "AAAAAAAAAAAAAAAAAAAAAAAAAAAA", "!!!!"] {
            assert_eq!(Sid::new(text).day(), None, "{text}");
        }
    }

    #[test]
    fn a_grants_name_is_read_back_and_nothing_else_is_one() {
        let grant = GrantId {
            day: Day(20_777),
            random: [0xfb; 16],
        };
        assert_eq!(GrantId::from_text(&grant.to_text()), Some(grant));
        let text = grant.to_text();
        for other in [
            "",
            "abc",
            &text[1..],
            &format!("{text}A"),
            &format!("{text}="),
            &text.replace('-', "+"),
        ] {
            assert_eq!(GrantId::from_text(other), None, "{other}");
        }
    }

    mod hex {
        use super::super::*;

        #[test]
        fn anything_else_is_not() {
            for text in ["0", "0g", "g0", "0x", " 0", "00 ", "é", "+1", "0é0"] {
                assert_eq!(decode(text), None, "{text}");
            }
        }
    }
}
