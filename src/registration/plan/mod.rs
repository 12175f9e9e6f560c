//! What applying a document would change: the document compared with what is registered. `gatepost
//! plan` prints it, and `gatepost apply` does exactly that.

mod providers;
mod removal;
mod users;
mod warnings;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use serde_json::Value;

use super::document::{Document, DocumentEntry};
use super::references::Stored;
use crate::user::{Credential, Owners, UserEntry};
use gatepost_protocol::login::password::PasswordFlaw;
use gatepost_protocol::registration::administration::{Administration, roles_of};
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::problem::DocumentProblem;
use gatepost_protocol::registration::verified_address;
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::token::client_secret::SecretDigest;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::instant::Day;
use gatepost_protocol::words::json::Members;
use gatepost_protocol::words::legacy_flow::FlowUse;
use gatepost_protocol::words::named::named;
use gatepost_protocol::words::secret::SecretText;

pub use removal::Pruning;
pub use warnings::UNLESS_ASKED;

pub struct RegisteredObjects {
    pub objects: BTreeMap<(ObjectKind, String), RegisteredObject>,
}

/// A client, or an entry of the catalogue.
pub struct RegisteredObject {
    /// As text: for [`parse_own`].
    pub document: Box<str>,
    /// Our secret at an identity provider; `None`, too, when it does not open under the master
    /// secret.
    pub client_secret: Option<SecretText>,
    /// What a client or resource proves itself with.
    pub secrets: Vec<StoredSecret>,
}

#[derive(Default)]
pub struct RegisteredUsers {
    /// By subject: those whose subject or name stands in the document; all, when users are pruned.
    pub users: BTreeMap<Subject, UserEntry>,
    /// For each user of the document, in its order: who has that name in that tenant.
    pub named: Vec<Option<Subject>>,
    /// Subjects in the document whose user was removed: they are never given again.
    pub removed: BTreeSet<Subject>,
    /// `client_id`s in the document that are, or once were, the subject of a user. Empty for
    /// somebody who must not learn that.
    pub of_clients: BTreeSet<Subject>,
    /// Whose the identities of the document are.
    pub owners: Owners,
    /// Tenants of users that the document does not name.
    pub tenants_of_others: BTreeSet<String>,
}

#[derive(Clone, Copy)]
struct RegisteredUser<'d> {
    subject: &'d Subject,
    before: &'d UserEntry,
}

impl RegisteredUsers {
    /// The registered user that the entry at that place of a document is about.
    fn meant(&self, index: usize, entry: &UserEntry) -> Option<RegisteredUser<'_>> {
        let named = self.named.get(index).and_then(Option::as_ref);
        let subject = entry.subject.as_ref().or(named)?;
        let (subject, before) = self.users.get_key_value(subject)?;
        Some(RegisteredUser { subject, before })
    }

    /// The passwords of new users that must not become theirs. Those of others count for nothing.
    pub fn unfit_passwords(
        &self,
        document: &Document,
        check: impl Fn(&str) -> Result<(), PasswordFlaw>,
    ) -> Vec<DocumentProblem> {
        let mut problems = Vec::new();
        for (index, entry) in document.users.iter().enumerate() {
            if let Some(Credential::Password(password)) = &entry.credential
                && self.meant(index, entry).is_none()
                && let Err(flaw) = check(password.expose())
            {
                let place = format!("users[{index}].password");
                problems.push(DocumentProblem::new(place, flaw.rule()));
            }
        }
        problems
    }

    /// The document, with what its users' `email_verified` becomes where it does not say.
    pub fn settled(&self, mut document: Document) -> Document {
        for (index, entry) in document.users.iter_mut().enumerate() {
            if let Some(RegisteredUser { before, .. }) = self.meant(index, entry) {
                let written = mem::take(&mut entry.claims);
                entry.claims = verified_address::settled(&before.claims, written);
            }
        }
        document
    }
}

impl RegisteredObjects {
    /// What a document can count on: what pruning by this very document removes is not among it.
    pub fn names(&self, pruning: &Pruning) -> Stored {
        let mut stored = Stored::default();
        for (key, object) in &self.objects {
            if pruning.keeps(key.0, &key.1) {
                let has_secret = !object.secrets.is_empty();
                stored.objects.insert(key.clone(), has_secret);
            }
        }
        stored
    }
}

/// A document beside what is registered: everything that a plan is made of.
pub struct Comparison {
    pub document: Document,
    /// The secrets of `document.entries`, in their order.
    pub given: Vec<GivenSecrets>,
    pub registered: RegisteredObjects,
    pub users: RegisteredUsers,
    pub pruning: Pruning,
    /// The flows that clients lose by `legacy_until`, with the last day on which each was used.
    pub flow_uses: BTreeMap<FlowUse, Day>,
    pub administration: Option<Administration>,
    /// `GATEPOST_BOUND_SESSIONS`
    pub bound_sessions: bool,
    /// How each password hash that is made here begins: `$argon2id$v=19$m=19456,t=2,p=1$`.
    pub own_hash: String,
}

/// A secret of the document, fetched and hashed.
#[derive(Clone)]
pub struct GivenSecret {
    pub digest: SecretDigest,
    pub description: String,
}

/// The secrets of one object of a document.
#[derive(Clone, Default)]
pub struct GivenSecrets {
    /// `secrets`; `None` where it names none.
    pub secrets: Option<Vec<GivenSecret>>,
    pub client_secret: Option<SecretText>,
}

pub struct StoredSecret {
    pub id: [u8; 16],
    /// `None` when it does not open under the master secret.
    pub digest: Option<SecretDigest>,
    pub description: String,
}

/// What makes the registered secrets those of the document.
#[derive(Default)]
pub struct SecretChanges {
    pub removed: Vec<[u8; 16]>,
    pub added: Vec<GivenSecret>,
    /// Another `client_secret` at an identity provider.
    pub client_secret: Option<SecretText>,
    /// Whether a user gets a password, or another one.
    pub password: bool,
}

impl SecretChanges {
    fn of_password(password: bool) -> SecretChanges {
        SecretChanges {
            password,
            ..SecretChanges::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.removed.is_empty()
            && self.added.is_empty()
            && self.client_secret.is_none()
            && !self.password
    }
}

pub struct FieldChange {
    /// Its place: `scope`, `claims.role`.
    pub key: String,
    /// What is registered; `None` where it is new.
    pub before: Option<Value>,
    /// What shall be; `None` where it goes.
    pub after: Option<Value>,
}

/// Everything that would change, removals first, then in the order of the document.
#[must_use]
pub struct Plan<'d> {
    pub changes: Vec<PlannedChange<'d>>,
    /// Objects of the document that are registered just so.
    pub unchanged: usize,
    /// The roles that clients ask for (`allowed_roles`), each with these clients.
    pub opening: BTreeMap<String, BTreeSet<String>>,
    /// What somebody should know before.
    pub warnings: Vec<String>,
    /// Registered users, where the document says who somebody is elsewhere.
    pub identified: Vec<Subject>,
}

pub struct PlannedChange<'d> {
    pub step: PlanStep<'d>,
    pub secrets: SecretChanges,
}

/// What is to be done, with all that is needed to do it.
pub enum PlanStep<'d> {
    /// With what is registered.
    Put(&'d DocumentEntry, Option<&'d RegisteredObject>),
    Remove {
        kind: ObjectKind,
        name: &'d str,
    },
    AddUser {
        entry: &'d UserEntry,
        index: usize,
    },
    ChangeUser {
        subject: &'d Subject,
        before: &'d UserEntry,
        entry: &'d UserEntry,
        index: usize,
        /// `None` leaves the present one.
        password_hash: Option<&'d SecretText>,
    },
    RemoveUser {
        subject: &'d Subject,
        /// Under which name, or under their subject.
        username: &'d str,
    },
}

named! {
    pub enum Verb {
        Add = "add",
        /// It is there, and other than the document says.
        Change = "change",
        /// It is there, and the document leaves it out (`--prune`).
        Remove = "remove",
    }
}

impl PlanStep<'_> {
    pub fn kind(&self) -> ObjectKind {
        match self {
            PlanStep::Put(entry, _) => entry.kind,
            PlanStep::Remove { kind, .. } => *kind,
            PlanStep::AddUser { .. }
            | PlanStep::ChangeUser { .. }
            | PlanStep::RemoveUser { .. } => ObjectKind::User,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            PlanStep::Put(entry, _) => &entry.name,
            PlanStep::Remove { name, .. } => name,
            PlanStep::AddUser { entry, .. } | PlanStep::ChangeUser { entry, .. } => {
                entry.designation()
            }
            PlanStep::RemoveUser { username, .. } => username,
        }
    }
}

impl PlannedChange<'_> {
    pub fn verb(&self) -> Verb {
        match &self.step {
            PlanStep::Put(_, None) | PlanStep::AddUser { .. } => Verb::Add,
            PlanStep::Put(_, Some(_)) | PlanStep::ChangeUser { .. } => Verb::Change,
            PlanStep::Remove { .. } | PlanStep::RemoveUser { .. } => Verb::Remove,
        }
    }

    /// What differs. Compared when somebody asks: held for everything, it takes as much memory as
    /// all else.
    pub fn fields(&self) -> Vec<FieldChange> {
        match &self.step {
            PlanStep::Put(entry, before) => {
                let before = before
                    .map(|before| parse_own(&before.document))
                    .unwrap_or_default();
                compare_fields(before, parse_own(&entry.document), entry.kind.name_key())
            }
            PlanStep::AddUser { entry, .. } => users::fields(None, entry),
            PlanStep::ChangeUser { before, entry, .. } => users::fields(Some(before), entry),
            PlanStep::Remove { .. } | PlanStep::RemoveUser { .. } => Vec::new(),
        }
    }
}

impl Plan<'_> {
    /// The roles that a change gives a user and that let them use clients, with these clients.
    pub fn opened_by(&self, change: &PlannedChange<'_>) -> BTreeMap<&str, &BTreeSet<String>> {
        let mut opened = BTreeMap::new();
        let (PlanStep::AddUser { entry, .. } | PlanStep::ChangeUser { entry, .. }) = &change.step
        else {
            return opened;
        };
        for role in roles_of(&entry.claims) {
            let opening = self.opening.get_key_value(role);
            opened.extend(opening.map(|(role, clients)| (role.as_str(), clients)));
        }
        if let PlanStep::ChangeUser { before, .. } = &change.step {
            let had = roles_of(&before.claims);
            opened.retain(|role, _| !had.contains(role));
        }
        opened
    }

    pub fn count(&self, verb: Verb) -> usize {
        self.changes
            .iter()
            .filter(|change| change.verb() == verb)
            .count()
    }
}

/// Compares. Refused are names that are somebody else's, and removals that something kept still
/// names.
pub fn make(comparison: &Comparison) -> Result<Plan<'_>, Vec<DocumentProblem>> {
    let mut problems = Vec::new();
    let mut changes = removal::removals(comparison, &mut problems);
    providers::check(comparison, &mut problems);
    users::keep_apart(comparison, &mut problems);
    let Comparison {
        document,
        given,
        registered,
        ..
    } = comparison;
    let of_entries = document
        .entries
        .iter()
        .zip(given)
        .map(|(entry, given)| entry_change(entry, given, registered));
    let mut unchanged = 0;
    for change in of_entries.chain(users::changes(comparison, &mut problems)) {
        unchanged += usize::from(change.is_none());
        changes.extend(change);
    }
    if problems.is_empty() {
        Ok(Plan {
            warnings: warnings::warnings(comparison, &changes),
            changes,
            unchanged,
            opening: opening(comparison),
            identified: identified(comparison),
        })
    } else {
        comparison.document.name_problems(&mut problems);
        Err(problems)
    }
}

/// What users of a document that has mistakes have in common with registered ones, and must not.
pub fn conflicts(comparison: &Comparison) -> Vec<DocumentProblem> {
    let mut problems = Vec::new();
    users::keep_apart(comparison, &mut problems);
    users::changes(comparison, &mut problems);
    problems
}

fn identified(comparison: &Comparison) -> Vec<Subject> {
    let all = comparison.users.users.values();
    let identified = all.filter(|user| user.identities.is_some());
    identified.filter_map(|user| user.subject.clone()).collect()
}

/// The roles that clients will ask for.
fn opening(comparison: &Comparison) -> BTreeMap<String, BTreeSet<String>> {
    let mut clients = BTreeMap::new();
    for ((kind, name), object) in &comparison.registered.objects {
        if *kind == ObjectKind::Client && comparison.pruning.keeps(*kind, name) {
            clients.insert(name, &object.document);
        }
    }
    for entry in &comparison.document.entries {
        if entry.kind == ObjectKind::Client {
            clients.insert(&entry.name, &entry.document);
        }
    }
    let mut opening = BTreeMap::<String, BTreeSet<String>>::new();
    for (name, document) in clients {
        for role in allowed_roles(document) {
            opening.entry(role).or_default().insert(name.clone());
        }
    }
    opening
}

/// Of a client. It is parsed only where it says something.
fn allowed_roles(document: &str) -> Vec<String> {
    if !document.contains("allowed_roles") {
        return Vec::new();
    }
    let document = parse_own(document);
    document.texts("allowed_roles").map(str::to_owned).collect()
}

fn entry_change<'d>(
    entry: &'d DocumentEntry,
    given: &GivenSecrets,
    registered: &'d RegisteredObjects,
) -> Option<PlannedChange<'d>> {
    let stored = registered.objects.get(&(entry.kind, entry.name.clone()));
    let mut secrets = SecretChanges::default();
    if let Some(given) = &given.secrets {
        let present = stored.map_or(&[][..], |stored| &stored.secrets);
        secrets = compare_secrets(present, given);
    }
    let present = stored.and_then(|stored| stored.client_secret.as_ref());
    if given.client_secret.is_some() && given.client_secret.as_ref() != present {
        secrets.client_secret.clone_from(&given.client_secret);
    }
    change(PlanStep::Put(entry, stored), secrets)
}

fn change(step: PlanStep<'_>, secrets: SecretChanges) -> Option<PlannedChange<'_>> {
    let change = PlannedChange { step, secrets };
    (change.verb() == Verb::Add || !change.secrets.is_empty() || !change.fields().is_empty())
        .then_some(change)
}

/// Every difference but in `name_key`, which names the object.
fn compare_fields(before: Value, after: Value, name_key: &str) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    if !is_same(&before, &after) {
        members(before, after, "", &mut changes);
    }
    changes.retain(|change| change.key != name_key);
    changes
}

fn members(before: Value, after: Value, path: &str, changes: &mut Vec<FieldChange>) {
    let mut both: BTreeMap<String, (Option<Value>, Option<Value>)> = BTreeMap::new();
    if let Value::Object(before) = before {
        for (key, value) in before {
            both.entry(key).or_default().0 = Some(value);
        }
    }
    if let Value::Object(after) = after {
        for (key, value) in after {
            both.entry(key).or_default().1 = Some(value);
        }
    }
    for (key, beside) in both {
        let key = if path.is_empty() {
            key
        } else {
            format!("{path}.{key}")
        };
        match beside {
            (Some(before @ Value::Object(_)), Some(after @ Value::Object(_))) => {
                members(before, after, &key, changes)
            }
            (Some(before), Some(after)) if is_same(&before, &after) => {}
            (before, after) => changes.push(FieldChange { key, before, after }),
        }
    }
}

/// Equal as JSON: a number is itself however it is written, and Postgres writes `1e2` as `100`.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        (one, other) => one == other,
    }
}

/// Those that are in both stay; what does not open any longer is replaced.
fn compare_secrets(stored: &[StoredSecret], given: &[GivenSecret]) -> SecretChanges {
    let is_same = |stored: &StoredSecret, given: &GivenSecret| {
        stored.digest.as_ref() == Some(&given.digest) && stored.description == given.description
    };
    let removed = stored
        .iter()
        .filter(|stored| !given.iter().any(|given| is_same(stored, given)));
    let added = given
        .iter()
        .filter(|given| !stored.iter().any(|stored| is_same(stored, given)));
    SecretChanges {
        removed: removed.map(|stored| stored.id).collect(),
        added: added.cloned().collect(),
        ..SecretChanges::default()
    }
}
