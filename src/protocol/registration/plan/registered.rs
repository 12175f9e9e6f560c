//! What is registered, as a document is compared with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::catalogue_kind::CatalogueKind;
use super::super::references::Stored;
use super::removal::Pruning;
use super::secrets::StoredSecret;
use crate::protocol::identifiers::{Subject, TenantName};
use crate::protocol::scope::ScopeKind;
use crate::protocol::secret::SecretText;

/// Everything registered but the users.
#[derive(Clone, Debug, Default)]
pub struct Registered {
    /// The catalogue.
    pub entries: BTreeMap<(CatalogueKind, String), RegisteredEntry>,
    /// The clients.
    pub clients: BTreeMap<String, RegisteredClient>,
}

/// An entry of the catalogue.
#[derive(Clone, Debug)]
pub struct RegisteredEntry {
    /// The registration, without secrets.
    pub document: Value,
    /// Our secret at an identity provider; `None`, too, when it does not open under the master secret.
    pub client_secret: Option<SecretText>,
    /// What a resource proves itself with.
    pub secrets: Vec<StoredSecret>,
}

/// A client.
#[derive(Clone, Debug)]
pub struct RegisteredClient {
    /// The registration, without secrets.
    pub metadata: Value,
    /// What it proves itself with.
    pub secrets: Vec<StoredSecret>,
}

/// The users that a document can mean.
#[derive(Clone, Debug, Default)]
pub struct RegisteredUsers {
    /// By subject: those whose subject or name stands in the document; all, when users are pruned.
    pub users: BTreeMap<Subject, RegisteredUser>,
    /// For each user of the document, in its order: who has that name in that tenant.
    pub named: Vec<Option<Subject>>,
    /// Subjects in the document whose user was removed: they are never given again.
    pub removed: BTreeSet<Subject>,
    /// `client_id`s in the document that are, or once were, the subject of a user.
    pub of_clients: BTreeSet<Subject>,
    /// Tenants of users that the document does not name.
    pub tenants_of_others: BTreeSet<String>,
}

/// A user.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredUser {
    /// `username`
    pub username: Option<String>,
    /// `tenant`
    pub tenant: Option<TenantName>,
    /// PHC string.
    pub password_hash: Option<SecretText>,
    /// `enabled`
    pub enabled: bool,
    /// `claims`
    pub claims: Map<String, Value>,
}

impl Registered {
    /// The names that a document can count on: those that pruning by this very document removes are not among them.
    pub fn names(&self, pruning: &Pruning) -> Stored {
        let mut stored = Stored::default();
        for (kind, name) in self.entries.keys().filter(|(kind, name)| pruning.keeps(kind.list(), name)) {
            let name = name.clone();
            match kind {
                CatalogueKind::IdentityScope => drop(stored.scopes.insert(name, ScopeKind::Identity)),
                CatalogueKind::ResourceScope => drop(stored.scopes.insert(name, ScopeKind::Resource)),
                CatalogueKind::Resource => drop(stored.resources.insert(name)),
                CatalogueKind::Tenant => drop(stored.tenants.insert(name)),
                CatalogueKind::IdentityProvider => drop(stored.identity_providers.insert(name)),
                CatalogueKind::ExtensionGrant => drop(stored.extension_grants.insert(name)),
                CatalogueKind::AssertionIssuer => {}
            }
        }
        let clients = self.clients.iter().filter(|(name, _)| pruning.keeps("clients", name));
        stored.clients = clients.map(|(name, client)| (name.clone(), !client.secrets.is_empty())).collect();
        stored
    }
}
