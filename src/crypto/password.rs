//! Password hashes: Argon2id (RFC 9106) in PHC string form. How many run at once is the caller's to bound: each takes
//! the configured memory.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};

use super::random;
use crate::protocol::secret::SecretText;

/// Cost of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Memory, KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

/// What a password is against a stored hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum PasswordVerdict {
    /// It is the one.
    Right,
    /// It is the one, and the hash was made at another cost: store a new one.
    RightButOutdated,
    /// It is not.
    Wrong,
}

/// Makes and checks hashes at one cost.
#[derive(Debug)]
pub struct PasswordHashing {
    argon2: Argon2<'static>,
    dummy: String,
}

impl PasswordHashing {
    /// Takes the cost and makes the hash that stands in for users who do not exist. The error names the bad parameter.
    pub fn new(cost: Cost) -> Result<PasswordHashing, String> {
        let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, None)
            .map_err(|error| format!("Argon2 parameters: {error}"))?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let dummy = hash(&argon2, &random::bytes::<32>())?;
        Ok(PasswordHashing { argon2, dummy })
    }

    /// The PHC string of a password: its bytes as they are, all of them.
    pub fn hash(&self, password: &SecretText) -> Result<String, String> {
        hash(&self.argon2, password.expose().as_bytes())
    }

    /// Checks a password against a stored PHC string. Without one (no such user, no password set) the dummy is checked
    /// instead, so that the answer takes as long and is `Wrong`.
    pub fn verify(&self, stored: Option<&str>, password: &SecretText) -> PasswordVerdict {
        let parsed = stored.and_then(|stored| PasswordHash::new(stored).ok()).filter(is_bounded);
        match parsed {
            Some(parsed) if self.matches(&parsed, password) => {
                if self.is_current(&parsed) {
                    PasswordVerdict::Right
                } else {
                    PasswordVerdict::RightButOutdated
                }
            }
            Some(_) => PasswordVerdict::Wrong,
            None => {
                let spent = PasswordHash::new(&self.dummy).is_ok_and(|dummy| self.matches(&dummy, password));
                std::hint::black_box(spent);
                PasswordVerdict::Wrong
            }
        }
    }

    fn matches(&self, parsed: &PasswordHash, password: &SecretText) -> bool {
        self.argon2.verify_password(password.expose().as_bytes(), parsed).is_ok()
    }

    fn is_current(&self, parsed: &PasswordHash) -> bool {
        let params = Params::try_from(parsed).ok();
        let same_cost = params.is_some_and(|params| {
            let ours = self.argon2.params();
            (params.m_cost(), params.t_cost(), params.p_cost()) == (ours.m_cost(), ours.t_cost(), ours.p_cost())
        });
        same_cost && parsed.algorithm.as_str() == "argon2id"
    }
}

/// An imported hash must not be able to take more memory or time than a setting could.
fn is_bounded(parsed: &PasswordHash) -> bool {
    Params::try_from(parsed).is_ok_and(|params| params.m_cost() <= 1_048_576 && params.t_cost() <= 20)
}

fn hash(argon2: &Argon2<'_>, password: &[u8]) -> Result<String, String> {
    let salt: [u8; 16] = random::bytes();
    let hash: PasswordHash =
        argon2.hash_password_with_salt(password, &salt).map_err(|error| format!("password hashing: {error}"))?;
    Ok(hash.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost { memory_kib: 64, passes: 1, lanes: 1 };

    fn secret(text: impl Into<String>) -> SecretText {
        SecretText::new(text)
    }

    #[test]
    fn the_right_password_is_right_and_no_other() {
        let hashing = PasswordHashing::new(CHEAP).unwrap();
        let stored = hashing.hash(&secret("correct horse")).unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{stored}");
        assert_eq!(hashing.verify(Some(&stored), &secret("correct horse")), PasswordVerdict::Right);
        for wrong in ["", "correct hors", "correct horse ", "Correct horse", "correct horse\0"] {
            assert_eq!(hashing.verify(Some(&stored), &secret(wrong)), PasswordVerdict::Wrong, "{wrong:?}");
        }
    }

    #[test]
    fn nothing_is_cut_off() {
        let hashing = PasswordHashing::new(CHEAP).unwrap();
        let (one, two) =
            (format!("{}a{}", "x".repeat(79), "y".repeat(20)), format!("{}b{}", "x".repeat(79), "y".repeat(20)));
        let stored = hashing.hash(&secret(one.clone())).unwrap();
        assert_eq!(hashing.verify(Some(&stored), &secret(one)), PasswordVerdict::Right);
        assert_eq!(hashing.verify(Some(&stored), &secret(two)), PasswordVerdict::Wrong);
        let stored = hashing.hash(&secret("abc\0x")).unwrap();
        assert_eq!(hashing.verify(Some(&stored), &secret("abc")), PasswordVerdict::Wrong);
    }

    #[test]
    fn a_hash_of_another_cost_is_outdated() {
        let stored = PasswordHashing::new(Cost { passes: 2, ..CHEAP }).unwrap().hash(&secret("p")).unwrap();
        let hashing = PasswordHashing::new(CHEAP).unwrap();
        assert_eq!(hashing.verify(Some(&stored), &secret("p")), PasswordVerdict::RightButOutdated);
        assert_eq!(hashing.verify(Some(&stored), &secret("q")), PasswordVerdict::Wrong);
    }

    #[test]
    fn absent_garbled_and_monstrous_hashes_are_wrong() {
        let hashing = PasswordHashing::new(CHEAP).unwrap();
        let monstrous =
            "$argon2id$v=19$m=4194304,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        for stored in [None, Some(""), Some("plain"), Some("$argon2id$"), Some(monstrous)] {
            assert_eq!(hashing.verify(stored, &secret("")), PasswordVerdict::Wrong, "{stored:?}");
        }
    }
}
