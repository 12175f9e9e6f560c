//! Password hashes: Argon2id (RFC 9106) in PHC string form, and imported hashes until their user
//! signs in. Each hash takes the configured memory, so the caller bounds how many run at
//! once.

use std::fmt;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};

use super::{master, random};
use gatepost_protocol::login::imported_hash::ImportedHash;
use gatepost_protocol::login::password::{MOST_MEMORY_KIB, MOST_PASSES};
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::mutex::Mutex;

pub struct Cost {
    /// Memory, KiB.
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
}

impl Cost {
    /// The first characters of each hash that is made at this cost.
    pub fn beginning(self) -> String {
        format!(
            "$argon2id$v=19$m={},t={},p={}$",
            self.memory_kib, self.passes, self.lanes
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub enum PasswordVerdict {
    Right,
    /// The password is right, and its hash was made at another cost or in another way: store a new
    /// hash.
    RightButOutdated,
    Wrong,
}

pub struct PasswordHashing {
    params: Params,
    dummy: String,
    /// Memory that past hashes used, for the next ones. There are as many pieces as hashes ever ran
    /// at once. The allocator would keep one piece for every thread that has hashed.
    memory: Mutex<Vec<Vec<Block>>>,
}

/// glibc returns pieces above 32 MiB to the system as soon as they are free. The part of a piece
/// that is never written takes no memory.
const LEAST_CAPACITY: usize = 33 * 1_024 * 1_024 / Block::SIZE;

impl PasswordHashing {
    /// Takes the cost and makes the hash that stands in for users who do not exist. The error names
    /// the bad parameter.
    pub fn new(cost: Cost) -> Result<PasswordHashing, String> {
        let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, None)
            .map_err(|error| format!("Argon2 parameters: {error}"))?;
        let mut hashing = PasswordHashing {
            params,
            dummy: String::new(),
            memory: Mutex::default(),
        };
        hashing.dummy = hashing.hash(&SecretText::new(master::generate()))?;
        hashing.release_memory();
        Ok(hashing)
    }

    /// Gives the memory of past hashes back to the system. Called every second: taking a piece anew
    /// costs a few ms.
    pub fn release_memory(&self) {
        self.memory.lock().clear();
    }

    /// The PHC string of a password: its bytes as they are, all of them.
    pub fn hash(&self, password: &SecretText) -> Result<String, String> {
        let failed = |error: &dyn fmt::Display| format!("password hashing: {error}");
        let salt = Salt::new(&random::bytes::<16>()).map_err(|error| failed(&error))?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, self.params.clone());
        let hash = PasswordHash {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(&self.params).map_err(|error| failed(&error))?,
            hash: Some(
                self.output(&argon2, password, &salt, Params::DEFAULT_OUTPUT_LEN)
                    .ok_or_else(|| failed(&"no result"))?,
            ),
            salt: Some(salt),
        };
        Ok(hash.to_string())
    }

    /// Checks a password against a stored PHC string. Without one (no such user, no password set)
    /// the dummy is checked instead, so that the answer takes as long and is `Wrong`. While there
    /// are imported hashes, each check takes `usual`, which costs what most of them do, or its
    /// own: otherwise time would tell who was imported.
    pub fn verify(
        &self,
        stored: Option<&str>,
        usual: Option<&ImportedHash>,
        password: &SecretText,
    ) -> PasswordVerdict {
        let imported = stored.and_then(ImportedHash::parse);
        let is_it = std::hint::black_box(
            imported
                .as_ref()
                .or(usual)
                .is_some_and(|hash| hash.is_of(password)),
        );
        let parsed = stored
            .and_then(|stored| PasswordHash::new(stored).ok())
            .filter(is_bounded);
        let Some(parsed) = parsed else {
            std::hint::black_box(
                PasswordHash::new(&self.dummy).is_ok_and(|dummy| self.matches(&dummy, password)),
            );
            return if imported.is_some() && is_it {
                PasswordVerdict::RightButOutdated
            } else {
                PasswordVerdict::Wrong
            };
        };
        if !self.matches(&parsed, password) {
            return PasswordVerdict::Wrong;
        }
        if self.is_current(&parsed) {
            PasswordVerdict::Right
        } else {
            PasswordVerdict::RightButOutdated
        }
    }

    /// Whether the hash was made in the way and at the cost of new ones.
    fn is_current(&self, parsed: &PasswordHash) -> bool {
        let cost = |params: &Params| (params.m_cost(), params.t_cost(), params.p_cost());
        parsed.algorithm.as_str() == "argon2id"
            && Params::try_from(parsed).is_ok_and(|params| cost(&params) == cost(&self.params))
    }

    /// Whether a password gives that hash; `false` for anything but a hash of Argon2.
    fn matches(&self, parsed: &PasswordHash, password: &SecretText) -> bool {
        let output = self.output_as(parsed, password);
        // Outputs are compared in constant time.
        output.is_some_and(|output| Some(output) == parsed.hash)
    }

    /// What the password gives in the way in which that hash was made.
    fn output_as(&self, parsed: &PasswordHash, password: &SecretText) -> Option<Output> {
        let algorithm = Algorithm::try_from(parsed.algorithm.as_str()).ok()?;
        let version = parsed
            .version
            .map_or(Ok(Version::default()), Version::try_from)
            .ok()?;
        let argon2 = Argon2::new(algorithm, version, Params::try_from(parsed).ok()?);
        let length = parsed.hash.as_ref()?.len();
        self.output(&argon2, password, parsed.salt.as_ref()?, length)
    }

    fn output(
        &self,
        argon2: &Argon2<'_>,
        password: &SecretText,
        salt: &[u8],
        length: usize,
    ) -> Option<Output> {
        let count = argon2.params().block_count();
        let mut blocks = self
            .memory
            .lock()
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(count.max(LEAST_CAPACITY)));
        if blocks.len() < count {
            blocks.resize(count, Block::new());
        }
        let mut buffer = [0; Output::MAX_LENGTH];
        let output = buffer.get_mut(..length)?;
        let password = password.expose().as_bytes();
        let done = argon2.hash_password_into_with_memory(password, salt, output, &mut blocks);
        self.memory.lock().push(blocks);
        done.ok().and_then(|()| Output::new(output).ok())
    }
}

fn is_bounded(parsed: &PasswordHash) -> bool {
    Params::try_from(parsed)
        .is_ok_and(|params| params.m_cost() <= MOST_MEMORY_KIB && params.t_cost() <= MOST_PASSES)
}

/// The memory may hold parts of passwords: never print it.
impl fmt::Debug for PasswordHashing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PasswordHashing")
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost {
        memory_kib: 64,
        passes: 1,
        lanes: 1,
    };

    fn secret(text: impl Into<String>) -> SecretText {
        SecretText::new(text)
    }

    #[test]
    fn the_right_password_is_right_and_no_other() {
        let hashing = PasswordHashing::new(CHEAP).unwrap();
        let stored = hashing.hash(&secret("correct horse")).unwrap();
        assert!(
            stored.starts_with("$argon2id$v=19$m=64,t=1,p=1$")
                && stored.starts_with(&CHEAP.beginning()),
            "{stored}"
        );
        assert_eq!(
            hashing.verify(Some(&stored), None, &secret("correct horse")),
            PasswordVerdict::Right
        );
        for wrong in [
            "",
            "correct hors",
            "correct horse ",
            "Correct horse",
            "correct horse\0",
        ] {
            assert_eq!(
                hashing.verify(Some(&stored), None, &secret(wrong)),
                PasswordVerdict::Wrong,
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn a_hash_made_elsewhere_is_understood() {
        // The reference implementation's own: echo -n password | argon2 somesalt -id -t 2 -k 65536
        // -p 1
        let stored = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let hashing = PasswordHashing::new(CHEAP).unwrap();
        assert_eq!(
            hashing.verify(Some(stored), None, &secret("password")),
            PasswordVerdict::RightButOutdated
        );
        assert_eq!(
            hashing.verify(Some(stored), None, &secret("passwore")),
            PasswordVerdict::Wrong
        );
    }

    #[test]
    fn a_hash_of_pbkdf2_is_understood_and_outdated() {
        // aspnetcore's own; tests/service/imported_passwords.rs has the others.
        let stored = "$pbkdf2$i=1000,l=32$AAECAwQFBgcICQoLDA0ODw$rpAhDA39MskNvTWLm4IByFWNLHRFH3cnjPhNS7R9biY";
        let hashing = PasswordHashing::new(CHEAP).unwrap();
        let usual = ImportedHash::dummy("pbkdf2-sha512$i=50,l=16").unwrap();
        for usual in [None, Some(&usual)] {
            assert_eq!(
                hashing.verify(Some(stored), usual, &secret("my password")),
                PasswordVerdict::RightButOutdated
            );
            assert_eq!(
                hashing.verify(Some(stored), usual, &secret("my passwore")),
                PasswordVerdict::Wrong
            );
            assert_eq!(
                hashing.verify(None, usual, &secret("my password")),
                PasswordVerdict::Wrong
            );
        }
    }

    #[test]
    fn absent_garbled_and_monstrous_hashes_are_wrong() {
        let hashing = PasswordHashing::new(CHEAP).unwrap();
        let monstrous = "$argon2id$v=19$m=4194304,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        for stored in [
            None,
            Some(""),
            Some("plain"),
            Some("$argon2id$"),
            Some(monstrous),
        ] {
            assert_eq!(
                hashing.verify(stored, None, &secret("")),
                PasswordVerdict::Wrong,
                "{stored:?}"
            );
        }
    }
}
