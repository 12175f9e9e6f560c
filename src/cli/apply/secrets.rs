//! Secrets of a document on their way into the database: fetched from where they are, hashed, sealed.

use std::fs;

use sha2::{Digest, Sha256};

use crate::config::environment_secret;
use crate::crypto::random;
use crate::crypto::sealing::Sealer;
use crate::protocol::client_secret::{DigestAlgorithm, SecretDigest};
use crate::protocol::instant::Instant;
use crate::protocol::registration::Problem;
use crate::protocol::registration::client_secret::{RegisteredSecret, SecretMaterial, SecretSource};
use crate::protocol::secret::{SecretBytes, SecretText};
use crate::store::clients::SecretRow;

/// A secret of a document, hashed.
pub(super) struct HashedSecret {
    digest: SecretDigest,
    description: String,
}

/// What makes the stored secrets those of the document.
pub(super) struct SecretChanges {
    pub(super) removed: Vec<[u8; 16]>,
    pub(super) added: Vec<SecretRow>,
}

/// Fetches the text of a secret from where the document says it is.
pub(super) fn fetch(source: &SecretSource, place: &str) -> Result<SecretText, Problem> {
    let text = match source {
        SecretSource::Value(text) => text.clone(),
        SecretSource::Environment(name) => {
            let missing = || Problem::new(format!("{place}.env"), format!("names {name}, which is not set"));
            environment_secret(name).ok_or_else(missing)?
        }
        SecretSource::File(path) => {
            let unread =
                |error| Problem::new(format!("{place}.file"), format!("names a file that cannot be read: {error}"));
            let text = fs::read_to_string(path).map_err(unread)?;
            SecretText::new(text.trim_end_matches(['\r', '\n']))
        }
    };
    let fits = (1..=256).contains(&text.expose().chars().count()) && !text.expose().contains('\0');
    if fits { Ok(text) } else { Err(Problem::new(place, "must be 1 to 256 characters")) }
}

/// Hashes the secrets of one object; notes those that cannot be fetched.
pub(super) fn hash_all(
    secrets: Option<&Vec<RegisteredSecret>>,
    place: &str,
    problems: &mut Vec<Problem>,
) -> Option<Vec<HashedSecret>> {
    let mut hashed = Vec::new();
    for (index, secret) in secrets?.iter().enumerate() {
        match hash(secret, &format!("{place}.secrets[{index}]")) {
            Ok(secret) => hashed.push(secret),
            Err(problem) => problems.push(problem),
        }
    }
    Some(hashed)
}

fn hash(secret: &RegisteredSecret, place: &str) -> Result<HashedSecret, Problem> {
    let (algorithm, digest) = match &secret.material {
        SecretMaterial::Text(source) => (DigestAlgorithm::Sha256, sha256(&fetch(source, place)?)),
        SecretMaterial::Sha256(digest) => (DigestAlgorithm::Sha256, digest.clone()),
        SecretMaterial::Sha512(digest) => (DigestAlgorithm::Sha512, digest.clone()),
    };
    let digest = SecretDigest { algorithm, digest, expires_at: secret.expires_at };
    Ok(HashedSecret { digest, description: secret.description.clone() })
}

fn sha256(text: &SecretText) -> SecretBytes {
    SecretBytes::new(Sha256::digest(text.expose()).to_vec())
}

/// The row of a secret that was just made.
pub(in crate::cli) fn sealed_text(
    text: &SecretText,
    description: &str,
    expires_at: Option<Instant>,
    sealer: &Sealer,
) -> SecretRow {
    let digest = SecretDigest { algorithm: DigestAlgorithm::Sha256, digest: sha256(text), expires_at };
    sealed(&HashedSecret { digest, description: description.to_owned() }, sealer)
}

fn sealed(secret: &HashedSecret, sealer: &Sealer) -> SecretRow {
    SecretRow {
        id: random::bytes(),
        sealed_digest: SecretBytes::new(sealer.seal(secret.digest.encode().expose())),
        description: secret.description.clone(),
        expires_at: secret.digest.expires_at,
    }
}

/// Compares what is stored with what is wanted. Stored digests that do not open any longer are replaced.
pub(super) fn compare(stored: &[SecretRow], wanted: &[HashedSecret], sealer: &Sealer) -> SecretChanges {
    let is_same = |row: &SecretRow, secret: &HashedSecret| {
        let opened = sealer.open(row.sealed_digest.expose());
        let digest = opened.and_then(|bytes| SecretDigest::decode(&bytes, row.expires_at));
        digest.as_ref() == Some(&secret.digest) && row.description == secret.description
    };
    let removed = stored.iter().filter(|row| !wanted.iter().any(|secret| is_same(row, secret)));
    let added = wanted.iter().filter(|secret| !stored.iter().any(|row| is_same(row, secret)));
    SecretChanges {
        removed: removed.map(|row| row.id).collect(),
        added: added.map(|secret| sealed(secret, sealer)).collect(),
    }
}

impl SecretChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }
}
