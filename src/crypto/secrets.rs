//! Client and resource secrets: 256 random bits, so that a plain SHA-256 of them can be kept without a slow hash.

use aws_lc_rs::constant_time;
use sha2::{Digest, Sha256, Sha512};

use super::random;
use crate::protocol::secret::{SecretBytes, SecretText};

/// A new secret: `gps_` and 43 base64url characters.
pub fn generate() -> SecretText {
    SecretText::new(format!("gps_{}", random::token()))
}

/// What is kept of a secret, before it is sealed.
pub fn digest(secret: &SecretText) -> SecretBytes {
    SecretBytes::new(Sha256::digest(secret.expose()).as_slice())
}

/// Whether a secret has this digest: 32 bytes of SHA-256 or, imported, 64 of SHA-512. Compared in constant time.
#[must_use]
pub fn matches(unverified_secret: &SecretText, digest: &SecretBytes) -> bool {
    let bytes = unverified_secret.expose().as_bytes();
    let (sha256, sha512) = (Sha256::digest(bytes), Sha512::digest(bytes));
    let same = |presented: &[u8]| constant_time::verify_slices_are_equal(presented, digest.expose()).is_ok();
    // Slices of unequal length are unequal at once; the length of a digest is no secret.
    same(&sha256) | same(&sha512)
}

/// SHA-256, for handles as stored.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Compares in constant time.
#[must_use]
pub fn are_equal(one: &[u8], other: &[u8]) -> bool {
    constant_time::verify_slices_are_equal(one, other).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_secret_holds_256_bits_and_matches_its_digest_alone() {
        let (secret, other) = (generate(), generate());
        assert_eq!(secret.expose().len(), 47);
        assert!(matches(&secret, &digest(&secret)));
        assert!(!matches(&other, &digest(&secret)));
        assert!(!matches(&SecretText::new(""), &digest(&secret)));
    }

    #[test]
    fn imported_sha512_digests_match() {
        let secret = SecretText::new("legacy");
        assert!(matches(&secret, &SecretBytes::new(Sha512::digest("legacy").as_slice())));
        assert!(!matches(&secret, &SecretBytes::new(Sha512::digest("other").as_slice())));
        assert!(!matches(&secret, &SecretBytes::new(Vec::new())));
    }
}
