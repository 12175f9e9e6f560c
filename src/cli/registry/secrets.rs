//! Secrets of a document: fetched from where they are, hashed, sealed.

use std::fs;

use sha2::{Digest, Sha256};

use crate::config::environment_secret;
use crate::keys::random;
use crate::keys::sealing::Sealer;
use crate::protocol::registration::Problem;
use crate::protocol::registration::client_secret::{RegisteredSecret, SecretMaterial, SecretSource, check_own};
use crate::protocol::registration::document::{Document, Entry};
use crate::protocol::registration::plan::{GivenSecret, GivenSecrets};
use crate::protocol::token::client_secret::{DigestAlgorithm, SecretDigest};
use crate::protocol::words::instant::Instant;
use crate::protocol::words::secret::{SecretBytes, SecretText};
use crate::store::clients::SecretRow;

/// Fetches and hashes the secrets of each object of a document; the error holds every one that cannot be had.
pub(in crate::cli) fn gather(document: &Document) -> Result<Vec<GivenSecrets>, Vec<Problem>> {
    let (mut problems, mut all) = (Vec::new(), Vec::new());
    for Entry { place, secrets, client_secret, .. } in &document.entries {
        let mut given = GivenSecrets { secrets: secrets.as_ref().map(|_| Vec::new()), client_secret: None };
        for (index, secret) in secrets.iter().flatten().enumerate() {
            match hash(secret, &format!("{place}.secrets[{index}]")) {
                Ok(secret) => given.secrets.get_or_insert_default().push(secret),
                Err(problem) => problems.push(problem),
            }
        }
        match client_secret.as_ref().map(|source| fetch(source, &format!("{place}.client_secret"))).transpose() {
            Ok(client_secret) => given.client_secret = client_secret,
            Err(problem) => problems.push(problem),
        }
        all.push(given);
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

fn fetch(source: &SecretSource, place: &str) -> Result<SecretText, Problem> {
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

fn hash(secret: &RegisteredSecret, place: &str) -> Result<GivenSecret, Problem> {
    let (algorithm, digest) = match &secret.material {
        SecretMaterial::Text(source) => {
            let text = fetch(source, place)?;
            check_own(text.expose()).map_err(|rule| Problem::new(place, rule))?;
            (DigestAlgorithm::Sha256, sha256(&text))
        }
        SecretMaterial::Sha256(digest) => (DigestAlgorithm::Sha256, digest.clone()),
        SecretMaterial::Sha512(digest) => (DigestAlgorithm::Sha512, digest.clone()),
    };
    let digest = SecretDigest { algorithm, digest, expires_at: secret.expires_at };
    Ok(GivenSecret { digest, description: secret.description.clone() })
}

fn sha256(text: &SecretText) -> SecretBytes {
    SecretBytes::new(Sha256::digest(text.expose()).to_vec())
}

pub(in crate::cli) fn sealed_text(
    text: &SecretText,
    description: &str,
    expires_at: Option<Instant>,
    sealer: &Sealer,
) -> SecretRow {
    let digest = SecretDigest { algorithm: DigestAlgorithm::Sha256, digest: sha256(text), expires_at };
    sealed(&GivenSecret { digest, description: description.to_owned() }, sealer)
}

/// Under an id of its own.
pub(in crate::cli) fn sealed(secret: &GivenSecret, sealer: &Sealer) -> SecretRow {
    SecretRow {
        id: random::bytes(),
        sealed_digest: SecretBytes::new(sealer.seal(secret.digest.encode().expose())),
        description: secret.description.clone(),
        expires_at: secret.digest.expires_at,
    }
}

/// `None` when it does not open under the master secret.
pub(in crate::cli) fn opened(row: &SecretRow, sealer: &Sealer) -> Option<SecretDigest> {
    SecretDigest::decode(&sealer.open(row.sealed_digest.expose())?, row.expires_at)
}
