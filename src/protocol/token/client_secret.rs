//! Client secrets: only their digests are kept, and comparing takes the same time whichever matches, if any.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use sha2::{Digest, Sha256, Sha512};

use crate::protocol::words::instant::Instant;
use crate::protocol::words::secret::{SecretBytes, SecretText};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestAlgorithm {
    Sha256,
    Sha512,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretDigest {
    pub algorithm: DigestAlgorithm,
    pub digest: SecretBytes,
    /// From here on it does not count.
    pub expires_at: Option<Instant>,
}

impl SecretDigest {
    /// What is sealed and stored: 1 for SHA-256 or 2 for SHA-512, then the digest.
    pub fn encode(&self) -> SecretBytes {
        let name = match self.algorithm {
            DigestAlgorithm::Sha256 => 1,
            DigestAlgorithm::Sha512 => 2,
        };
        SecretBytes::new([&[name], self.digest.expose()].concat())
    }

    pub fn decode(bytes: &[u8], expires_at: Option<Instant>) -> Option<SecretDigest> {
        let (name, digest) = bytes.split_first()?;
        let algorithm = match (name, digest.len()) {
            (1, 32) => DigestAlgorithm::Sha256,
            (2, 64) => DigestAlgorithm::Sha512,
            _ => return None,
        };
        Some(SecretDigest { algorithm, digest: SecretBytes::new(digest), expires_at })
    }
}

/// Where there is none to compare with, one that nothing matches is compared, so that an unknown client takes as long
/// as a wrong secret.
pub fn matches_any(shown: Option<&SecretText>, registered: &[SecretDigest], now: Instant) -> bool {
    let dummy = [SecretDigest {
        algorithm: DigestAlgorithm::Sha256,
        digest: SecretBytes::new([0; 32]),
        expires_at: Some(Instant::from_micros(i64::MIN)),
    }];
    let compared = if registered.is_empty() { &dummy } else { registered };
    let digests = ShownDigests::of(shown);
    // No early exit: the time taken does not tell which one matched.
    let found = compared.iter().fold(false, |found, secret| found | digests.matches(secret, now));
    found & shown.is_some_and(|shown| !shown.is_empty())
}

/// By either algorithm, whatever the registered ones are.
struct ShownDigests {
    sha256: [u8; 32],
    sha512: [u8; 64],
}

impl ShownDigests {
    fn of(secret: Option<&SecretText>) -> ShownDigests {
        let secret = secret.map(SecretText::expose).unwrap_or_default().as_bytes();
        ShownDigests { sha256: Sha256::digest(secret).into(), sha512: Sha512::digest(secret).into() }
    }

    fn matches(&self, secret: &SecretDigest, now: Instant) -> bool {
        let shown: &[u8] = match secret.algorithm {
            DigestAlgorithm::Sha256 => &self.sha256,
            DigestAlgorithm::Sha512 => &self.sha512,
        };
        let equal = verify_slices_are_equal(shown, secret.digest.expose()).is_ok();
        equal & secret.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::words::samples::NOW;

    fn sha256(secret: &str, expires_at: Option<Instant>) -> SecretDigest {
        let digest = SecretBytes::new(Sha256::digest(secret.as_bytes()).to_vec());
        SecretDigest { algorithm: DigestAlgorithm::Sha256, digest, expires_at }
    }

    fn sha512(secret: &str) -> SecretDigest {
        let digest = SecretBytes::new(Sha512::digest(secret.as_bytes()).to_vec());
        SecretDigest { algorithm: DigestAlgorithm::Sha512, digest, expires_at: None }
    }

    #[test]
    fn any_registered_secret_counts_until_it_expires_and_nothing_else_does() {
        let cut = SecretDigest { digest: SecretBytes::new(Sha256::digest(b"cut").to_vec()), ..sha512("cut") };
        let empty = SecretDigest { digest: SecretBytes::new([]), ..sha512("cut") };
        let registered = [sha256("old", None), sha512("new"), sha256("", None), sha256("ends", Some(NOW)), cut, empty];
        let before = Instant::from_micros(NOW.micros() - 1);
        for (shown, now, counts) in [
            (Some("old"), NOW, true),
            (Some("new"), NOW, true),
            (Some("ends"), before, true),
            (Some("ends"), NOW, false),
            (Some("cut"), NOW, false),
            (Some(""), NOW, false),
            (Some("olD"), NOW, false),
            (Some("old "), NOW, false),
            (Some("oldnew"), NOW, false),
            (Some("\0"), NOW, false),
            (None, NOW, false),
        ] {
            assert_eq!(matches_any(shown.map(SecretText::new).as_ref(), &registered, now), counts, "{shown:?}");
        }
        assert!(!matches_any(Some(&SecretText::new("old")), &[], NOW));
    }
}
