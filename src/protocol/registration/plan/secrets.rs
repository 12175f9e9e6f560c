//! Secrets of clients and resources: which come, which go. They are compared by their digests.

use crate::protocol::client_secret::SecretDigest;
use crate::protocol::secret::SecretText;

/// A secret of the document, fetched and hashed.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenSecret {
    pub digest: SecretDigest,
    pub description: String,
}

/// The secrets of one object of a document.
#[derive(Clone, Debug, Default)]
pub struct GivenSecrets {
    /// `secrets`; `None` where it names none.
    pub secrets: Option<Vec<GivenSecret>>,
    pub client_secret: Option<SecretText>,
}

/// A secret that is registered.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSecret {
    pub id: [u8; 16],
    /// `None` when it does not open under the master secret.
    pub digest: Option<SecretDigest>,
    pub description: String,
}

/// What makes the registered secrets those of the document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecretChanges {
    pub removed: Vec<[u8; 16]>,
    pub added: Vec<GivenSecret>,
    /// Another `client_secret` at an identity provider.
    pub client_secret: Option<SecretText>,
    /// Whether a user gets a password, or another one.
    pub password: bool,
}

impl SecretChanges {
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty() && self.client_secret.is_none() && !self.password
    }
}

/// Those that are in both stay; what does not open any longer is replaced.
pub(super) fn compare(stored: &[StoredSecret], given: &[GivenSecret]) -> SecretChanges {
    let is_same = |stored: &StoredSecret, given: &GivenSecret| {
        stored.digest.as_ref() == Some(&given.digest) && stored.description == given.description
    };
    let removed = stored.iter().filter(|stored| !given.iter().any(|given| is_same(stored, given)));
    let added = given.iter().filter(|given| !stored.iter().any(|stored| is_same(stored, given)));
    SecretChanges {
        removed: removed.map(|stored| stored.id).collect(),
        added: added.cloned().collect(),
        ..SecretChanges::default()
    }
}
