//! What applying a document would change: the document compared with what is registered. `gatepost plan` prints it, and
//! `gatepost apply` does exactly that.

mod fields;
mod providers;
mod registered;
mod removal;
mod secrets;
mod users;

#[cfg(test)]
mod tests;

use super::document::{Document, Entry};
use super::kind::Kind;
use super::problem::Problem;
use super::user::UserEntry;
use crate::protocol::identifiers::Subject;
use crate::protocol::secret::SecretText;

pub use fields::FieldChange;
pub use registered::{Registered, RegisteredObject, RegisteredUsers};
pub use removal::Pruning;
pub use secrets::{GivenSecret, GivenSecrets, SecretChanges, StoredSecret};

/// Everything that would change, removals first, then in the order of the document.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Plan<'d> {
    pub changes: Vec<Change<'d>>,
    /// Objects of the document that are registered just so.
    pub unchanged: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Change<'d> {
    /// Whether it is new, another, or gone.
    pub verb: Verb,
    pub step: Step<'d>,
    pub fields: Vec<FieldChange>,
    pub secrets: SecretChanges,
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Add,
    /// It is there, and other than the document says.
    Change,
    /// It is there, and the document leaves it out (`--prune`).
    Remove,
}

/// What is to be done, with all that is needed to do it.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<'d> {
    Put(&'d Entry),
    Remove {
        kind: Kind,
        name: String,
    },
    AddUser {
        entry: &'d UserEntry,
        index: usize,
    },
    ChangeUser {
        subject: Subject,
        /// Who they shall be.
        entry: &'d UserEntry,
        index: usize,
        /// `None` leaves the present one.
        password_hash: Option<&'d SecretText>,
    },
    RemoveUser {
        subject: Subject,
        /// Under which name, or under their subject.
        username: String,
    },
}

impl Step<'_> {
    pub fn kind(&self) -> Kind {
        match self {
            Step::Put(entry) => entry.kind,
            Step::Remove { kind, .. } => *kind,
            Step::AddUser { .. } | Step::ChangeUser { .. } | Step::RemoveUser { .. } => Kind::User,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Step::Put(entry) => &entry.name,
            Step::Remove { name, .. } => name,
            Step::AddUser { entry, .. } | Step::ChangeUser { entry, .. } => entry.designation(),
            Step::RemoveUser { username, .. } => username,
        }
    }
}

impl Plan<'_> {
    pub fn count(&self, verb: Verb) -> usize {
        self.changes.iter().filter(|change| change.verb == verb).count()
    }
}

/// Compares. `given` are the secrets of `document.entries`, in their order. Refused are names that are somebody else's, and
/// removals that something kept still names.
pub fn make<'d>(
    document: &'d Document,
    given: &[GivenSecrets],
    registered: &Registered,
    users: &RegisteredUsers,
    pruning: &Pruning,
) -> Result<Plan<'d>, Vec<Problem>> {
    let mut problems = Vec::new();
    let removals = removal::removals(document, registered, users, pruning, &mut problems);
    providers::check(document, given, registered, &mut problems);
    users::keep_apart(document, registered, users, pruning, &mut problems);
    let mut plan = Plan { changes: removals, unchanged: 0 };
    for (entry, given) in document.entries.iter().zip(given) {
        plan.take(entry_change(entry, given, registered.objects.get(&(entry.kind, entry.name.clone()))));
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

fn entry_change<'d>(entry: &'d Entry, given: &GivenSecrets, stored: Option<&RegisteredObject>) -> Option<Change<'d>> {
    let fields = fields::compare(stored.map(|stored| &stored.document), &entry.document, entry.kind.name_key());
    let present = stored.map(|stored| stored.secrets.as_slice()).unwrap_or_default();
    let mut secrets = given.secrets.as_ref().map(|given| secrets::compare(present, given)).unwrap_or_default();
    let present = stored.and_then(|stored| stored.client_secret.as_ref());
    secrets.client_secret = given.client_secret.as_ref().filter(|given| Some(*given) != present).cloned();
    change(stored.is_some(), Step::Put(entry), fields, secrets)
}

fn change(is_stored: bool, step: Step<'_>, fields: Vec<FieldChange>, secrets: SecretChanges) -> Option<Change<'_>> {
    if is_stored && fields.is_empty() && secrets.is_empty() {
        return None;
    }
    Some(Change { verb: if is_stored { Verb::Change } else { Verb::Add }, step, fields, secrets })
}
