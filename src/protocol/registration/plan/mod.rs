//! What applying a document would change: the document compared with what is registered. `gatepost plan` prints it, and
//! `gatepost apply` does exactly that.

mod fields;
mod providers;
mod references;
mod registered;
mod removal;
mod secrets;
mod users;

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::catalogue_kind::CatalogueKind;
use super::client::ClientEntry;
use super::document::Document;
use super::problem::Problem;
use super::user::UserEntry;
use crate::protocol::identifiers::{ClientId, Subject};
use crate::protocol::secret::SecretText;

pub use fields::FieldChange;
pub use references::{Referent, mentions};
pub use registered::{Registered, RegisteredClient, RegisteredEntry, RegisteredUser, RegisteredUsers};
pub use removal::Pruning;
pub use secrets::{GivenSecret, GivenSecrets, SecretChanges, StoredSecret};

/// Everything that would change, removals first, then in the order of the document.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Plan<'d> {
    /// In the order in which they can be done.
    pub changes: Vec<Change<'d>>,
    /// Objects of the document that are registered just so.
    pub unchanged: usize,
}

/// What happens to one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'d> {
    /// Whether it is new, another, or gone.
    pub verb: Verb,
    /// What is to be done.
    pub step: Step<'d>,
    /// What differs, secrets apart. Empty for what is removed.
    pub fields: Vec<FieldChange>,
    /// Secrets that come and go.
    pub secrets: SecretChanges,
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It is not there yet.
    Add,
    /// It is there, and other than the document says.
    Change,
    /// It is there, and the document leaves it out (`--prune`).
    Remove,
}

/// What is to be done, with all that is needed to do it.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<'d> {
    /// Write an entry of the catalogue.
    PutEntry {
        /// What it is.
        kind: CatalogueKind,
        /// Its name.
        name: &'d str,
        /// The registration, without secrets.
        document: &'d Value,
    },
    /// Remove an entry of the catalogue.
    RemoveEntry {
        /// What it is.
        kind: CatalogueKind,
        /// Its name.
        name: String,
    },
    /// Write a client.
    PutClient(&'d ClientEntry),
    /// Remove a client.
    RemoveClient(ClientId),
    /// Add a user.
    AddUser {
        /// Who.
        entry: &'d UserEntry,
        /// Where in `users`.
        index: usize,
    },
    /// Change a user.
    ChangeUser {
        /// Who.
        subject: Subject,
        /// Who they shall be.
        entry: &'d UserEntry,
        /// Where in `users`.
        index: usize,
        /// `None` leaves the present one.
        password_hash: Option<&'d SecretText>,
    },
    /// Remove a user.
    RemoveUser {
        /// Who.
        subject: Subject,
        /// Under which name, or under their subject.
        username: String,
    },
}

impl Step<'_> {
    /// The kind of the object: `client`, `user`, or the catalogue's word.
    pub fn kind(&self) -> &'static str {
        match self {
            Step::PutEntry { kind, .. } | Step::RemoveEntry { kind, .. } => kind.as_str(),
            Step::PutClient(_) | Step::RemoveClient(_) => "client",
            Step::AddUser { .. } | Step::ChangeUser { .. } | Step::RemoveUser { .. } => "user",
        }
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        match self {
            Step::PutEntry { name, .. } => name,
            Step::RemoveEntry { name, .. } => name,
            Step::PutClient(entry) => entry.client.client_id.as_str(),
            Step::RemoveClient(client_id) => client_id.as_str(),
            Step::AddUser { entry, .. } | Step::ChangeUser { entry, .. } => entry.designation(),
            Step::RemoveUser { username, .. } => username,
        }
    }
}

impl Plan<'_> {
    /// How many objects are added, changed or removed.
    pub fn count(&self, verb: Verb) -> usize {
        self.changes.iter().filter(|change| change.verb == verb).count()
    }
}

/// Compares. Refused are names that are somebody else's, and removals that something kept still names.
pub fn make<'d>(
    document: &'d Document,
    given: &GivenSecrets,
    registered: &Registered,
    users: &RegisteredUsers,
    pruning: &Pruning,
) -> Result<Plan<'d>, Vec<Problem>> {
    let mut problems = Vec::new();
    let removals = removal::removals(document, registered, users, pruning, &mut problems);
    providers::check(document, given, registered, &mut problems);
    users::keep_apart(document, registered, users, pruning, &mut problems);
    let mut plan = Plan { changes: removals, unchanged: 0 };
    for wanted in catalogue(document, given) {
        let stored = registered.entries.get(&(wanted.kind, wanted.name.to_owned()));
        plan.take(entry_change(wanted, stored));
    }
    for (index, entry) in document.clients.iter().enumerate() {
        let stored = registered.clients.get(entry.client.client_id.as_str());
        let secrets = given.clients.get(index).and_then(Option::as_deref);
        plan.take(client_change(entry, secrets, stored));
    }
    for change in users::changes(&document.users, users, pruning, &mut problems) {
        plan.take(change);
    }
    if problems.is_empty() { Ok(plan) } else { Err(problems) }
}

impl<'d> Plan<'d> {
    fn take(&mut self, change: Option<Change<'d>>) {
        match change {
            Some(change) => self.changes.push(change),
            None => self.unchanged += 1,
        }
    }
}

/// An entry as it shall be.
struct WantedEntry<'d, 'g> {
    kind: CatalogueKind,
    name: &'d str,
    document: &'d Value,
    secrets: Option<&'g [GivenSecret]>,
    client_secret: Option<&'g SecretText>,
}

fn catalogue<'d, 'g>(document: &'d Document, given: &'g GivenSecrets) -> Vec<WantedEntry<'d, 'g>> {
    let mut wanted = Vec::new();
    let mut plain = |kind, name, document| {
        wanted.push(WantedEntry { kind, name, document, secrets: None, client_secret: None });
    };
    for entry in &document.tenants {
        plain(CatalogueKind::Tenant, entry.object.name.as_str(), &entry.document);
    }
    for entry in &document.identity_scopes {
        plain(CatalogueKind::IdentityScope, &entry.object.name, &entry.document);
    }
    for entry in &document.resource_scopes {
        plain(CatalogueKind::ResourceScope, &entry.object.name, &entry.document);
    }
    for entry in &document.assertion_issuers {
        plain(CatalogueKind::AssertionIssuer, &entry.object.issuer, &entry.document);
    }
    for entry in &document.extension_grants {
        plain(CatalogueKind::ExtensionGrant, &entry.object.name, &entry.document);
    }
    for (index, entry) in document.resources.iter().enumerate() {
        let secrets = given.resources.get(index).and_then(Option::as_deref);
        let (kind, name) = (CatalogueKind::Resource, entry.object.resource.name.as_str());
        wanted.push(WantedEntry { kind, name, document: &entry.document, secrets, client_secret: None });
    }
    for (index, entry) in document.identity_providers.iter().enumerate() {
        let client_secret = given.providers.get(index).and_then(Option::as_ref);
        let (kind, name) = (CatalogueKind::IdentityProvider, entry.object.name.as_str());
        wanted.push(WantedEntry { kind, name, document: &entry.document, secrets: None, client_secret });
    }
    wanted
}

fn entry_change<'d>(wanted: WantedEntry<'d, '_>, stored: Option<&RegisteredEntry>) -> Option<Change<'d>> {
    let fields = fields::compare(stored.map(|stored| &stored.document), wanted.document, wanted.kind.name_key());
    let present = stored.map(|stored| stored.secrets.as_slice()).unwrap_or_default();
    let mut secrets = wanted.secrets.map(|given| secrets::compare(present, given)).unwrap_or_default();
    let present = stored.and_then(|stored| stored.client_secret.as_ref());
    secrets.client_secret = wanted.client_secret.filter(|wanted| Some(*wanted) != present).cloned();
    let step = Step::PutEntry { kind: wanted.kind, name: wanted.name, document: wanted.document };
    change(stored.is_some(), step, fields, secrets)
}

fn client_change<'d>(
    entry: &'d ClientEntry,
    given: Option<&[GivenSecret]>,
    stored: Option<&RegisteredClient>,
) -> Option<Change<'d>> {
    let fields = fields::compare(stored.map(|stored| &stored.metadata), &entry.metadata, "client_id");
    let present = stored.map(|stored| stored.secrets.as_slice()).unwrap_or_default();
    let secrets = given.map(|given| secrets::compare(present, given)).unwrap_or_default();
    change(stored.is_some(), Step::PutClient(entry), fields, secrets)
}

fn change(is_stored: bool, step: Step<'_>, fields: Vec<FieldChange>, secrets: SecretChanges) -> Option<Change<'_>> {
    if is_stored && fields.is_empty() && secrets.is_empty() {
        return None;
    }
    Some(Change { verb: if is_stored { Verb::Change } else { Verb::Add }, step, fields, secrets })
}
