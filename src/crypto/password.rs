//! Password hashing: Argon2id (RFC 9106) in PHC strings. A hash takes 16 ms and 19 MiB: how many run at once is the
//! caller's to bound.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};

use super::{CryptoError, random};
use crate::protocol::secret::SecretText;

/// An imported hash that wants more memory than this (KiB) is refused: one sign-in must not be able to exhaust us.
const MOST_MEMORY_KIB: u32 = 262_144;
/// The same for passes over that memory.
const MOST_PASSES: u32 = 16;

/// How costly new hashes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordCost {
    /// KiB; 19,456 by default.
    pub memory_kib: u32,
    /// Passes; 2 by default.
    pub passes: u32,
    /// Lanes; 1 by default.
    pub lanes: u32,
}

impl Default for PasswordCost {
    fn default() -> PasswordCost {
        PasswordCost { memory_kib: 19_456, passes: 2, lanes: 1 }
    }
}

/// What a password turned out to be.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordVerdict {
    /// The user's.
    Right,
    /// The user's, but hashed at another cost than is set now: hash it anew.
    RightButOutdated,
    /// Not the user's.
    Wrong,
}

/// Hashes at one cost, and checks hashes of any.
pub struct Passwords {
    argon2: Argon2<'static>,
    /// Of a password nobody knows: what unknown users are checked against, so that they take as long.
    nobody: SecretText,
}

impl Passwords {
    /// Refuses a cost that Argon2 has no meaning for.
    pub fn new(cost: PasswordCost) -> Result<Passwords, CryptoError> {
        let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, None);
        let params = params.map_err(|_| CryptoError::new("Argon2 settings: memory, passes or lanes out of range"))?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let nobody = hash_with(&argon2, random::token().as_bytes())?;
        Ok(Passwords { argon2, nobody })
    }

    /// Hashes a password, all of it.
    pub fn hash(&self, password: &SecretText) -> Result<SecretText, CryptoError> {
        hash_with(&self.argon2, password.expose().as_bytes())
    }

    /// Checks a password; without a hash (nobody of that name, or one who signs in elsewhere) it takes as long and is wrong.
    pub fn verify(&self, hash: Option<&SecretText>, password: &SecretText) -> PasswordVerdict {
        let Some(hash) = hash.and_then(|hash| supported(hash.expose())) else {
            let _spent = supported(self.nobody.expose()).is_some_and(|nobody| self.matches(&nobody, password));
            return PasswordVerdict::Wrong;
        };
        match (self.matches(&hash, password), self.is_of_this_cost(&hash)) {
            (true, true) => PasswordVerdict::Right,
            (true, false) => PasswordVerdict::RightButOutdated,
            (false, _) => PasswordVerdict::Wrong,
        }
    }

    fn matches(&self, hash: &PasswordHash, password: &SecretText) -> bool {
        self.argon2.verify_password(password.expose().as_bytes(), hash).is_ok()
    }

    fn is_of_this_cost(&self, hash: &PasswordHash) -> bool {
        let (own, params) = (self.argon2.params(), Params::try_from(hash));
        hash.algorithm == Algorithm::Argon2id.ident()
            && hash.version == Some(Version::V0x13.into())
            && params.is_ok_and(|params| {
                (params.m_cost(), params.t_cost(), params.p_cost()) == (own.m_cost(), own.t_cost(), own.p_cost())
            })
    }
}

/// Whether a hash from elsewhere can be checked here: an Argon2 PHC string of bearable cost.
pub fn is_supported(hash: &str) -> bool {
    supported(hash).is_some()
}

fn supported(hash: &str) -> Option<PasswordHash> {
    let hash = PasswordHash::new(hash).ok()?;
    let params = Params::try_from(&hash).ok()?;
    let bearable = params.m_cost() <= MOST_MEMORY_KIB && params.t_cost() <= MOST_PASSES;
    let known = Algorithm::new(hash.algorithm.as_str()).is_ok() && hash.salt.is_some() && hash.hash.is_some();
    (known && bearable).then_some(hash)
}

fn hash_with(argon2: &Argon2<'_>, password: &[u8]) -> Result<SecretText, CryptoError> {
    let hash = argon2.hash_password_with_salt(password, &random::bytes::<16>());
    hash.map(|hash| SecretText::new(hash.to_string())).map_err(|_| CryptoError::new("password hashing failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As cheap as Argon2 goes: the tests are about verdicts.
    const CHEAP: PasswordCost = PasswordCost { memory_kib: 8, passes: 1, lanes: 1 };

    fn passwords(cost: PasswordCost) -> Passwords {
        Passwords::new(cost).unwrap()
    }

    fn secret(text: &str) -> SecretText {
        SecretText::new(text)
    }

    #[test]
    fn the_default_cost_stands_in_the_hash() {
        let hash = passwords(PasswordCost::default()).hash(&secret("correct horse")).unwrap();
        assert!(hash.expose().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.expose());
    }

    #[test]
    fn only_the_right_password_is_right() {
        let passwords = passwords(CHEAP);
        let hash = passwords.hash(&secret("correct horse")).unwrap();
        assert_eq!(passwords.verify(Some(&hash), &secret("correct horse")), PasswordVerdict::Right);
        for wrong in ["", "correct hors", "correct horse ", "Correct horse", "correct horse\0"] {
            assert_eq!(passwords.verify(Some(&hash), &secret(wrong)), PasswordVerdict::Wrong, "{wrong:?}");
        }
    }

    #[test]
    fn nothing_is_cut_off() {
        let passwords = passwords(CHEAP);
        let (one, other) = ("a".repeat(80) + "b" + &"a".repeat(19), "a".repeat(80) + "c" + &"a".repeat(19));
        let hash = passwords.hash(&secret(&one)).unwrap();
        assert_eq!(passwords.verify(Some(&hash), &secret(&one)), PasswordVerdict::Right);
        assert_eq!(passwords.verify(Some(&hash), &secret(&other)), PasswordVerdict::Wrong);
        let hash = passwords.hash(&secret("abc\0x")).unwrap();
        assert_eq!(passwords.verify(Some(&hash), &secret("abc")), PasswordVerdict::Wrong);
    }

    #[test]
    fn another_cost_is_outdated_and_still_right() {
        let old = passwords(CHEAP).hash(&secret("x")).unwrap();
        for cost in [PasswordCost { memory_kib: 16, ..CHEAP }, PasswordCost { passes: 2, ..CHEAP }] {
            assert_eq!(passwords(cost).verify(Some(&old), &secret("x")), PasswordVerdict::RightButOutdated);
            assert_eq!(passwords(cost).verify(Some(&old), &secret("y")), PasswordVerdict::Wrong);
        }
    }

    #[test]
    fn unknown_users_and_unreadable_hashes_are_wrong() {
        let passwords = passwords(CHEAP);
        assert_eq!(passwords.verify(None, &secret("x")), PasswordVerdict::Wrong);
        for hash in [
            "",
            "x",
            "$argon2id$v=19$m=8,t=1,p=1$",
            "$2b$12$abcdefghijklmnopqrstuv",
            "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ",
        ] {
            assert_eq!(passwords.verify(Some(&secret(hash)), &secret("x")), PasswordVerdict::Wrong, "{hash}");
        }
    }

    #[test]
    fn a_hash_that_would_exhaust_memory_is_not_supported() {
        let tail = "$c2FsdHNhbHRzYWx0c2FsdA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        assert!(is_supported(&format!("$argon2id$v=19$m=65536,t=3,p=4{tail}")));
        assert!(!is_supported(&format!("$argon2id$v=19$m=4194304,t=3,p=4{tail}")));
        assert!(!is_supported(&format!("$argon2id$v=19$m=65536,t=1000,p=4{tail}")));
    }

    #[test]
    fn the_same_password_never_hashes_alike() {
        let passwords = passwords(CHEAP);
        assert_ne!(passwords.hash(&secret("x")).unwrap(), passwords.hash(&secret("x")).unwrap());
    }
}
