//! Password hashes that other programs made: PBKDF2 (RFC 8018 §5.2) in PHC form, as `$pbkdf2-sha256$i=10000,l=32$salt$key`.

use std::num::NonZeroU32;

use aws_lc_rs::pbkdf2::{self, Algorithm, PBKDF2_HMAC_SHA1, PBKDF2_HMAC_SHA256, PBKDF2_HMAC_SHA512};
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;

use crate::protocol::words::secret::{SecretBytes, SecretText};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pbkdf2Hash {
    name: &'static str,
    rounds: NonZeroU32,
    salt: Vec<u8>,
    key: SecretBytes,
}

#[rustfmt::skip]
const NAMES: [(&str, Algorithm); 3] =
    [("pbkdf2", PBKDF2_HMAC_SHA1), ("pbkdf2-sha256", PBKDF2_HMAC_SHA256), ("pbkdf2-sha512", PBKDF2_HMAC_SHA512)];
/// A check takes a worker for as long as the rounds last.
const MOST_ROUNDS: u32 = 2_000_000;

impl Pbkdf2Hash {
    /// `None` for what is none, or out of bounds.
    pub fn parse(text: &str) -> Option<Pbkdf2Hash> {
        let [name, cost, salt, key] = text.strip_prefix('$')?.split('$').collect::<Vec<_>>().try_into().ok()?;
        let (name, _) = NAMES.iter().find(|(known, _)| *known == name)?;
        let (rounds, length) = cost.strip_prefix("i=")?.split_once(",l=")?;
        let rounds = NonZeroU32::new(rounds.parse().ok()?).filter(|rounds| rounds.get() <= MOST_ROUNDS)?;
        let [salt, key] = [salt, key].map(|part| BASE64_STANDARD_NO_PAD.decode(part).unwrap_or_default());
        let fits = (16..=48).contains(&salt.len()) && (16..=64).contains(&key.len()) && length.parse() == Ok(key.len());
        fits.then(|| Pbkdf2Hash { name, rounds, salt, key: SecretBytes::new(key) })
    }

    /// One of nobody's, of that name and cost: all that the time of a check hangs on, as `pbkdf2-sha256$i=10000,l=32`.
    pub fn dummy(cost: &str) -> Option<Pbkdf2Hash> {
        let length = cost.rsplit('=').next()?.parse::<u8>().ok()?;
        let [salt, key] = [16, length].map(|length| BASE64_STANDARD_NO_PAD.encode(vec![0; length.into()]));
        Pbkdf2Hash::parse(&format!("${cost}${salt}${key}"))
    }

    /// Whether that password gives it, in constant time.
    pub fn is_of(&self, password: &SecretText) -> bool {
        let verify = |algorithm| {
            pbkdf2::verify(algorithm, self.rounds, &self.salt, password.expose().as_bytes(), self.key.expose()).is_ok()
        };
        NAMES.iter().any(|(name, algorithm)| *name == self.name && verify(*algorithm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_bounds_is_no_hash() {
        let (salt, key) = ("A".repeat(22), "A".repeat(43));
        let whole = format!("$pbkdf2-sha256$i=10000,l=32${salt}${key}");
        let hash = Pbkdf2Hash::parse(&whole).unwrap();
        assert_eq!((hash.name, hash.rounds.get(), hash.salt.len()), ("pbkdf2-sha256", 10_000, 16));
        let fits = |from: &str, to: &str| Pbkdf2Hash::parse(&whole.replacen(from, to, 1)).is_some();
        for (from, to) in [("-sha256", ""), ("-sha256", "-sha512"), ("10000", "1"), ("10000", "2000000")] {
            assert!(fits(from, to), "{to}");
        }
        for (from, to) in [
            ("10000", "0"),
            ("10000", "2000001"),
            ("10000", "99999999999"),
            ("10000", "-1"),
            ("i=10000,", ""),
            (",l=32", ""),
            ("l=32", "l=31"),
            ("-sha256", "-md5"),
            ("$pbkdf2", "pbkdf2"),
            (&salt, "AAAA"),
            (&salt, &"A".repeat(66)),
            (&salt, "!"),
            (&key, "AAAA"),
            (&key, ""),
        ] {
            assert!(!fits(from, to), "{from} {to}");
        }
        let dummy = Pbkdf2Hash::dummy("pbkdf2-sha256$i=10000,l=32").unwrap();
        assert_eq!((dummy.name, dummy.rounds, dummy.key.expose().len()), (hash.name, hash.rounds, 32));
        for text in ["", "$", "$$$$", "$pbkdf2-sha256", "$pbkdf2-sha256$i=1,l=32", "$pbkdf2-sha256$i=1,l=32$"] {
            assert_eq!(Pbkdf2Hash::parse(text), None, "{text}");
        }
    }
}
