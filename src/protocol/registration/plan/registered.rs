//! What is registered, as a document is compared with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::kind::Kind;
use super::super::references::Stored;
use super::super::user::UserEntry;
use super::removal::Pruning;
use super::secrets::StoredSecret;
use crate::protocol::identifiers::Subject;
use crate::protocol::secret::SecretText;

#[derive(Clone, Debug, Default)]
pub struct Registered {
    pub objects: BTreeMap<(Kind, String), RegisteredObject>,
}

/// A client, or an entry of the catalogue.
#[derive(Clone, Debug)]
pub struct RegisteredObject {
    /// The registration, without secrets.
    pub document: Value,
    /// Our secret at an identity provider; `None`, too, when it does not open under the master secret.
    pub client_secret: Option<SecretText>,
    /// What a client or resource proves itself with.
    pub secrets: Vec<StoredSecret>,
}

/// The users that a document can mean.
#[derive(Clone, Debug, Default)]
pub struct RegisteredUsers {
    /// By subject: those whose subject or name stands in the document; all, when users are pruned.
    pub users: BTreeMap<Subject, UserEntry>,
    /// For each user of the document, in its order: who has that name in that tenant.
    pub named: Vec<Option<Subject>>,
    /// Subjects in the document whose user was removed: they are never given again.
    pub removed: BTreeSet<Subject>,
    /// `client_id`s in the document that are, or once were, the subject of a user.
    pub of_clients: BTreeSet<Subject>,
    /// Tenants of users that the document does not name.
    pub tenants_of_others: BTreeSet<String>,
}

impl Registered {
    /// What a document can count on: what pruning by this very document removes is not among it.
    pub fn names(&self, pruning: &Pruning) -> Stored {
        let kept = self.objects.iter().filter(|((kind, name), _)| pruning.keeps(*kind, name));
        let objects = kept.map(|(key, object)| (key.clone(), !object.secrets.is_empty())).collect();
        Stored { objects, compiled_in_grants: BTreeSet::new() }
    }
}
