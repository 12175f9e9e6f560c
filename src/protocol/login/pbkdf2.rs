//! Password hashes that other programs made: PBKDF2 (RFC 8018 §5.2) in PHC form, as
//! `$pbkdf2-sha256$i=10000,l=32$salt$key`.

use std::num::NonZeroU32;

use aws_lc_rs::pbkdf2::{
    self, Algorithm, PBKDF2_HMAC_SHA1, PBKDF2_HMAC_SHA256, PBKDF2_HMAC_SHA512,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;

use crate::words::secret::{SecretBytes, SecretText};

#[derive(Clone, Debug, PartialEq)]
pub struct Pbkdf2Hash {
    name: &'static str,
    rounds: NonZeroU32,
    salt: Vec<u8>,
    key: SecretBytes,
}

/// Each name with its algorithm and the bytes of one block of the key. A longer key takes all
/// rounds for each block.
const NAMES: [(&str, Algorithm, usize); 3] = [
    ("pbkdf2", PBKDF2_HMAC_SHA1, 20),
    ("pbkdf2-sha256", PBKDF2_HMAC_SHA256, 32),
    ("pbkdf2-sha512", PBKDF2_HMAC_SHA512, 64),
];
/// A check occupies a worker for all the rounds.
const MOST_ROUNDS: u32 = 2_000_000;
/// The rounds over all blocks. Keycloak's most expensive default has 5,200,000: about a second.
const MOST_WORK: usize = 6_000_000;
/// The most rounds that every sign-in may have to take while imported hashes are left: 0.2 to 0.5
/// seconds. Django's default is one of them.
const MOST_USUAL: usize = 1_000_000;

impl Pbkdf2Hash {
    /// Reads a hash. `None` where it is not one, or is out of bounds.
    pub fn parse(text: &str) -> Option<Pbkdf2Hash> {
        let [name, cost, salt, key] = text
            .strip_prefix('$')?
            .split('$')
            .collect::<Vec<_>>()
            .try_into()
            .ok()?;
        let (name, ..) = NAMES.iter().find(|(known, ..)| *known == name)?;
        let (rounds, length) = read_cost(cost)?;
        let salt = BASE64_STANDARD_NO_PAD.decode(salt).ok()?;
        let key = BASE64_STANDARD_NO_PAD.decode(key).ok()?;
        let fits =
            (8..=48).contains(&salt.len()) && (16..=64).contains(&key.len()) && key.len() == length;
        let hash = Pbkdf2Hash {
            name,
            rounds,
            salt,
            key: SecretBytes::new(key),
        };
        (fits && hash.work() <= MOST_WORK).then_some(hash)
    }

    /// Rounds over all blocks of the key.
    fn work(&self) -> usize {
        let block = NAMES
            .iter()
            .find(|(name, ..)| *name == self.name)
            .map_or(1, |(.., block)| *block);
        self.key
            .expose()
            .len()
            .div_ceil(block)
            .saturating_mul(usize::try_from(self.rounds.get()).unwrap_or(usize::MAX))
    }

    /// A hash of nobody's password, of the same cost: `pbkdf2-sha256$i=10000,l=32`. `None` where
    /// the cost is too high for every sign-in.
    pub fn dummy(cost: &str) -> Option<Pbkdf2Hash> {
        let length = cost.rsplit('=').next()?.parse::<u8>().ok()?;
        let [salt, key] =
            [16, length].map(|length| BASE64_STANDARD_NO_PAD.encode(vec![0; length.into()]));
        Pbkdf2Hash::parse(&format!("${cost}${salt}${key}")).filter(|hash| hash.work() <= MOST_USUAL)
    }

    /// Whether the password has this hash, in constant time.
    pub fn is_of(&self, password: &SecretText) -> bool {
        let verify = |algorithm| {
            pbkdf2::verify(
                algorithm,
                self.rounds,
                &self.salt,
                password.expose().as_bytes(),
                self.key.expose(),
            )
            .is_ok()
        };
        NAMES
            .iter()
            .any(|(name, algorithm, _)| *name == self.name && verify(*algorithm))
    }
}

/// Reads `i=ROUNDS,l=LENGTH`.
fn read_cost(cost: &str) -> Option<(NonZeroU32, usize)> {
    let (rounds, length) = cost.strip_prefix("i=")?.split_once(",l=")?;
    let rounds = NonZeroU32::new(rounds.parse().ok()?)?;
    (rounds.get() <= MOST_ROUNDS).then_some((rounds, length.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [(&str, [u8; 16]); 3] = [
        (
            "pbkdf2",
            [
                0x26, 0x74, 0xa6, 0x9e, 0x1f, 0xbc, 0x4d, 0x54, 0xd7, 0x3c, 0x57, 0xd6, 0x0b, 0x6c,
                0xfa, 0x81,
            ],
        ),
        (
            "pbkdf2-sha256",
            [
                0x25, 0xb7, 0xa3, 0x4c, 0x9f, 0x24, 0x67, 0xfb, 0xd2, 0x21, 0xfe, 0xae, 0x2d, 0x42,
                0xd7, 0x6f,
            ],
        ),
        (
            "pbkdf2-sha512",
            [
                0xfa, 0x55, 0xd2, 0x4e, 0x15, 0xe3, 0xc7, 0x9c, 0xde, 0x86, 0x91, 0xdb, 0xd0, 0xcc,
                0x08, 0x17,
            ],
        ),
    ];

    /// Made with Python's `hashlib.pbkdf2_hmac`.
    #[test]
    fn a_password_has_the_hash_of_its_algorithm_alone() {
        let salt = BASE64_STANDARD_NO_PAD.encode("a salt of sixteen");
        let hash = |name: &str, key: &[u8]| {
            let length = key.len();
            let key = BASE64_STANDARD_NO_PAD.encode(key);
            Pbkdf2Hash::parse(&format!("${name}$i=1000,l={length}${salt}${key}")).unwrap()
        };
        let is_of = |name: &str, key: &[u8], password: &str| {
            hash(name, key).is_of(&SecretText::new(password))
        };
        for (name, key) in KEYS {
            assert!(is_of(name, &key, "a good password"), "{name}");
            assert!(!is_of(name, &key, "a good passwore"), "{name}");
            for (other, ..) in NAMES.iter().filter(|(other, ..)| *other != name) {
                assert!(!is_of(other, &key, "a good password"), "{name} as {other}");
            }
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_no_hash() {
        let (salt, key) = ("A".repeat(22), "A".repeat(43));
        let whole = format!("$pbkdf2-sha256$i=10000,l=32${salt}${key}");
        let hash = Pbkdf2Hash::parse(&whole).unwrap();
        assert_eq!(
            (hash.name, hash.rounds.get(), hash.salt.len()),
            ("pbkdf2-sha256", 10_000, 16)
        );
        let fits = |from: &str, to: &str| Pbkdf2Hash::parse(&whole.replacen(from, to, 1)).is_some();
        for (from, to) in [
            ("-sha256", ""),
            ("-sha256", "-sha512"),
            ("10000", "1"),
            ("10000", "2000000"),
        ] {
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
        assert_eq!(
            (dummy.name, dummy.rounds, dummy.key.expose().len()),
            (hash.name, hash.rounds, 32)
        );
        // Keycloak's of SHA-1 takes all its rounds four times, and then some more are too many.
        let long = |rounds: u32| format!("$pbkdf2$i={rounds},l=64${salt}${}", "A".repeat(86));
        assert!(
            Pbkdf2Hash::parse(&long(1_300_000)).is_some()
                && Pbkdf2Hash::parse(&long(1_500_001)).is_none()
        );
        for (cost, is_usual) in [
            ("pbkdf2-sha512$i=210000,l=64", true),
            ("pbkdf2-sha256$i=1000000,l=32", true),
            ("pbkdf2-sha256$i=1000001,l=32", false),
            ("pbkdf2-sha256$i=600000,l=33", false),
            ("pbkdf2$i=1300000,l=64", false),
        ] {
            assert_eq!(Pbkdf2Hash::dummy(cost).is_some(), is_usual, "{cost}");
        }
        for text in [
            "",
            "$",
            "$$$$",
            "$pbkdf2-sha256",
            "$pbkdf2-sha256$i=1,l=32",
            "$pbkdf2-sha256$i=1,l=32$",
        ] {
            assert_eq!(Pbkdf2Hash::parse(text), None, "{text}");
        }
    }
}
