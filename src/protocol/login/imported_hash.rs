//! Password hashes that other programs made. Each counts until its user signs in, and is a hash of
//! Argon2id from then on.

use std::str::FromStr;

use bcrypt::HashParts;

use crate::login::pbkdf2::Pbkdf2Hash;
use crate::words::secret::SecretText;

#[derive(Clone, Debug, PartialEq)]
pub enum ImportedHash {
    Pbkdf2(Pbkdf2Hash),
    Bcrypt(BcryptHash),
}

impl ImportedHash {
    /// Reads a hash. `None` where it is of neither kind, or is out of bounds.
    pub fn parse(text: &str) -> Option<ImportedHash> {
        match BcryptHash::parse(text) {
            Some(hash) => Some(ImportedHash::Bcrypt(hash)),
            None => Pbkdf2Hash::parse(text).map(ImportedHash::Pbkdf2),
        }
    }

    /// A hash of nobody's password, of the same cost: `pbkdf2-sha256$i=10000,l=32`, `$2b$12$`.
    /// `None` where the cost is too high for every sign-in.
    pub fn dummy(cost: &str) -> Option<ImportedHash> {
        match BcryptHash::dummy(cost) {
            Some(hash) => Some(ImportedHash::Bcrypt(hash)),
            None => Pbkdf2Hash::dummy(cost).map(ImportedHash::Pbkdf2),
        }
    }

    /// Whether the password has this hash, in constant time.
    pub fn is_of(&self, password: &SecretText) -> bool {
        match self {
            ImportedHash::Pbkdf2(hash) => hash.is_of(password),
            ImportedHash::Bcrypt(hash) => hash.is_of(password),
        }
    }
}

/// `$2b$12$`, then 22 characters of salt and 31 of the hash.
#[derive(Clone, Debug, PartialEq)]
pub struct BcryptHash(SecretText);

/// `2x` marks hashes of a program with a defect.
const VERSIONS: [&str; 3] = ["$2a$", "$2b$", "$2y$"];
/// A check occupies a worker for 2^14 rounds at most, about a second.
const COSTS: [&str; 11] = [
    "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14",
];
/// The most that every sign-in may have to take while imported hashes are left: some 0.2 seconds.
const MOST_USUAL: &str = "12";
const SALT_AND_HASH: usize = 53;

impl BcryptHash {
    pub fn parse(text: &str) -> Option<BcryptHash> {
        let version = VERSIONS.iter().find(|version| text.starts_with(**version));
        let (cost, _) = text.strip_prefix(*version?)?.split_once('$')?;
        let is_one = COSTS.contains(&cost) && HashParts::from_str(text).is_ok();
        is_one.then(|| BcryptHash(SecretText::new(text)))
    }

    fn dummy(beginning: &str) -> Option<BcryptHash> {
        let cost = beginning.strip_suffix('$')?.rsplit('$').next()?;
        let salt_and_hash = ".".repeat(SALT_AND_HASH);
        let hash = BcryptHash::parse(&format!("{beginning}{salt_and_hash}"))?;
        (cost <= MOST_USUAL).then_some(hash)
    }

    /// Of a password over 72 bytes bcrypt takes the first 72.
    fn is_of(&self, password: &SecretText) -> bool {
        bcrypt::verify(password.expose(), self.0.expose()).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with Python's `crypt` (libxcrypt) at cost 4.
    const HASH: &str = "$2b$04$abcdefghijklmnopqrstuuVCZTFhDi5NuemONALFTadaLO4m9MPr2";

    fn is_of(hash: &str, password: &str) -> bool {
        let hash = ImportedHash::parse(hash).unwrap();
        hash.is_of(&SecretText::new(password))
    }

    #[test]
    fn a_password_has_its_hash_of_each_version_alone() {
        for version in VERSIONS {
            let hash = HASH.replacen("$2b$", version, 1);
            assert!(is_of(&hash, "a good password"), "{version}");
            assert!(!is_of(&hash, "a good passwore"), "{version}");
        }
    }

    #[test]
    fn what_is_cut_off_does_not_count() {
        let long = "0123456789".repeat(8);
        let cut = &long[..72];
        let of_cut = bcrypt::hash_with_salt(cut, 4, [7; 16]).unwrap().to_string();
        assert!(is_of(&of_cut, cut) && is_of(&of_cut, &long));
        assert!(!is_of(&of_cut, &long[..71]));
    }

    #[test]
    fn what_is_out_of_bounds_is_no_hash() {
        assert!(ImportedHash::parse(HASH).is_some());
        for (from, to) in [
            ("$2b$", "$2x$"),
            ("$2b$", "$2$"),
            ("$2b$", "2b$"),
            ("$04$", "$03$"),
            ("$04$", "$15$"),
            ("$04$", "$4$"),
            ("$04$", "$+4$"),
            ("$04$", "$$"),
        ] {
            let hash = HASH.replacen(from, to, 1);
            assert_eq!(ImportedHash::parse(&hash), None, "{hash}");
        }
        for text in [&HASH[..59], &format!("{HASH}."), "", "$2b$", "$2b$04$"] {
            assert_eq!(ImportedHash::parse(text), None, "{text}");
        }
        for (cost, is_usual) in [
            ("$2y$04$", true),
            ("$2b$12$", true),
            ("$2b$13$", false),
            ("$2b$12", false),
            ("pbkdf2-sha256$i=10000,l=32", true),
            ("", false),
        ] {
            assert_eq!(ImportedHash::dummy(cost).is_some(), is_usual, "{cost}");
        }
    }
}
