//! A plan, done: within one change, with an audit event for each object.

use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use super::RegistrationFailure;
use super::comparison::sealed;
use super::events::{
    audit_event, client_event, told_added, told_field, told_link, told_removed, user_event,
};
use crate::statements::{catalogue_changes, client_changes, user_changes};
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::registration::{DocumentProblem, ObjectKind};
use gatepost_protocol::words::identifiers::{ClientId, Subject};
use gatepost_protocol::words::json::SetMember;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_protocol::words::strength::Strength;
use gatepost_registration::document::DocumentEntry;
use gatepost_registration::plan::{
    FieldChange, Plan, PlanStep, PlannedChange, SecretChanges, Verb,
};
use gatepost_registration::user::{Credential, UserEntry};
use gatepost_server::keys::password::PasswordHashing;
use gatepost_server::keys::random;
use gatepost_server::keys::sealing::Sealer;
use gatepost_server::registry::Sealers;
use gatepost_store::catalogue::CatalogueRow;
use gatepost_store::clients::SecretRow;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::users::UserRow;
use gatepost_store::{Result, StoreError};

const BATCH: usize = 500;

/// `advance` is told how many changes are done since it was told last.
pub(super) fn perform(
    writer: &mut RegistryWriter<'_>,
    plan: &Plan<'_>,
    sealers: &Sealers,
    hashing: &PasswordHashing,
    mut advance: impl FnMut(usize),
) -> Result<(), RegistrationFailure> {
    let sealer = &sealers.client_secrets;
    let batches = plan
        .changes
        .chunk_by(go_together)
        .flat_map(|group| group.chunks(BATCH));
    thread::scope(|scope| {
        let (sender, ready) = mpsc::sync_channel(1);
        // The next batch is made ready while the database takes this one.
        scope.spawn(move || {
            batches
                .flat_map(|batch| ReadyBatch::of(batch, sealer))
                .all(|batch| sender.send(batch).is_ok())
        });
        for batch in ready {
            advance(match batch {
                ReadyBatch::PutClients(clients) => put_clients(writer, clients)?,
                ReadyBatch::RemoveClients(clients) => remove_clients(writer, &clients)?,
                ReadyBatch::Other(change) => perform_one(writer, change, sealers, hashing)?,
            });
        }
        Ok(())
    })
}

/// Changes that the same statements do.
enum ReadyBatch<'p> {
    PutClients(Vec<ReadyClient>),
    RemoveClients(Vec<ClientId>),
    Other(&'p PlannedChange<'p>),
}

struct ReadyClient {
    client_id: ClientId,
    metadata: Value,
    /// Ids of secrets that go.
    removed: Vec<[u8; 16]>,
    added: Vec<SecretRow>,
    /// What the audit log is told.
    detail: Value,
}

impl<'p> ReadyBatch<'p> {
    /// Of changes that go together.
    fn of(changes: &'p [PlannedChange<'p>], sealer: &Sealer) -> Option<ReadyBatch<'p>> {
        let first = changes.first()?;
        Some(match (first.step.kind(), first.verb()) {
            (ObjectKind::Client, Verb::Remove) => {
                let names = changes.iter().map(|change| change.step.name());
                ReadyBatch::RemoveClients(names.map(ClientId::new).collect())
            }
            (ObjectKind::Client, Verb::Add | Verb::Change) => {
                let clients = changes.iter().filter_map(|change| ready(change, sealer));
                ReadyBatch::PutClients(clients.collect())
            }
            _ => ReadyBatch::Other(first),
        })
    }
}

fn ready(change: &PlannedChange<'_>, sealer: &Sealer) -> Option<ReadyClient> {
    let PlanStep::Put(entry, _) = &change.step else {
        return None;
    };
    let SecretChanges { removed, added, .. } = &change.secrets;
    Some(ReadyClient {
        client_id: ClientId::new(entry.name.as_str()),
        metadata: parse_own(&entry.document),
        removed: removed.clone(),
        added: added.iter().map(|secret| sealed(secret, sealer)).collect(),
        detail: detail(change),
    })
}

/// Answers how many changes are done, like the two below.
fn put_clients(
    writer: &mut RegistryWriter<'_>,
    mut clients: Vec<ReadyClient>,
) -> Result<usize, RegistrationFailure> {
    let mut rows = Vec::new();
    let mut gone = Vec::new();
    let mut new = Vec::new();
    let mut events = Vec::new();
    for client in &mut clients {
        let client_id = &client.client_id;
        let enabled = client.metadata.get("enabled") != Some(&Value::Bool(false));
        rows.push((client_id, &client.metadata, enabled));
        gone.extend(client.removed.iter().map(|id| (client_id.as_str(), *id)));
        let added = client.added.drain(..);
        new.extend(added.map(|secret| (client_id.as_str(), secret)));
        events.push(client_event(
            "client_changed",
            client_id,
            client.detail.take(),
        ));
    }
    client_changes::upsert_clients(writer, &rows)?;
    client_changes::remove_secrets(writer, true, &gone)?;
    client_changes::put_secrets(writer, true, &new)?;
    writer.audit_all(&events)?;
    Ok(rows.len())
}

/// Does what is no client's.
fn perform_one(
    writer: &mut RegistryWriter<'_>,
    change: &PlannedChange<'_>,
    sealers: &Sealers,
    hashing: &PasswordHashing,
) -> Result<usize, RegistrationFailure> {
    match &change.step {
        PlanStep::Put(entry, _) => put_entry(writer, entry, change, &sealers.client_secrets)?,
        PlanStep::Remove { kind, name } => {
            let old = catalogue_changes::remove_entry(writer, *kind, name)?;
            let detail = json!({"kind": kind.as_str(), "name": name, "old": old});
            writer.audit(&audit_event("registration_removed", detail))?;
        }
        PlanStep::AddUser { entry, index } => add_user(writer, entry, *index, sealers, hashing)?,
        PlanStep::ChangeUser {
            subject,
            before,
            entry,
            index,
            password_hash,
        } => {
            // First, as what an identity said goes with it.
            relink(writer, subject, Some(before), entry, *index)?;
            let user = user_row((*subject).clone(), entry, password_hash.cloned());
            user_changes::update_user(writer, &user).map_err(|error| of_user(error, *index))?;
            writer.audit(&user_event("user_changed", subject, detail(change)))?;
            note_shared_address(writer, &user)?;
        }
        PlanStep::RemoveUser { subject, .. } => remove_user(writer, subject)?,
    }
    Ok(1)
}

fn put_entry(
    writer: &mut RegistryWriter<'_>,
    entry: &DocumentEntry,
    change: &PlannedChange<'_>,
    sealer: &Sealer,
) -> Result<(), RegistrationFailure> {
    let name = &entry.name;
    let client_secret = change.secrets.client_secret.as_ref();
    let sealed_secret =
        client_secret.map(|text| SecretBytes::new(sealer.seal(text.expose().as_bytes())));
    catalogue_changes::upsert_entry(
        writer,
        &CatalogueRow {
            kind: entry.kind,
            name: name.clone(),
            document: parse_own(&entry.document),
            sealed_secret,
            secrets: Vec::new(),
        },
    )?;
    if entry.kind == ObjectKind::Resource {
        change_secrets(writer, name, &change.secrets, sealer)?;
    }
    Ok(writer.audit(&audit_event("registration_changed", detail(change)))?)
}

fn change_secrets(
    writer: &mut RegistryWriter<'_>,
    resource: &str,
    changes: &SecretChanges,
    sealer: &Sealer,
) -> Result {
    let SecretChanges { removed, added, .. } = changes;
    if removed.is_empty() && added.is_empty() {
        return Ok(());
    }
    let gone: Vec<_> = removed.iter().map(|id| (resource, *id)).collect();
    let new: Vec<_> = added
        .iter()
        .map(|one| (resource, sealed(one, sealer)))
        .collect();
    client_changes::remove_secrets(writer, false, &gone)?;
    client_changes::put_secrets(writer, false, &new)
}

fn add_user(
    writer: &mut RegistryWriter<'_>,
    entry: &UserEntry,
    index: usize,
    sealers: &Sealers,
    hashing: &PasswordHashing,
) -> Result<(), RegistrationFailure> {
    let password_hash = match &entry.credential {
        Some(Credential::Password(password)) => Some(SecretText::new(
            hashing
                .hash(password)
                .map_err(RegistrationFailure::Hashing)?,
        )),
        Some(Credential::Hash(hash)) => Some(hash.clone()),
        None => None,
    };
    let given = entry.subject.clone();
    let sub = given.unwrap_or_else(|| Subject::of_random(random::bytes()));
    let new = user_row(sub, entry, password_hash);
    let event = user_event("user_added", &new.sub, told_added(&new));
    user_changes::insert_user(writer, &new, &event).map_err(|error| of_user(error, index))?;
    note_shared_address(writer, &new)?;
    if let Some(secret) = &entry.totp {
        let event = user_event(
            "factor_added",
            &new.sub,
            json!({"by": "operator", "factor": "totp"}),
        );
        user_changes::add_app(
            writer,
            &new.sub,
            &sealers.seal_factor(&new.sub, secret.expose()),
            &event,
        )?;
    }
    relink(writer, &new.sub, None, entry, index)
}

/// Tells the audit log where somebody else has the verified address of a user, too: it signs in
/// neither of them.
pub fn note_shared_address(
    writer: &mut RegistryWriter<'_>,
    user: &UserRow,
) -> Result<(), RegistrationFailure> {
    if user.claims.get("email_verified") != Some(&Value::Bool(true)) {
        return Ok(());
    }
    if let Some(other) = user_changes::find_sharing(&mut writer.reader, &user.sub)? {
        let detail = json!({"by": "operator", "with": other});
        writer.audit(&user_event("address_shared", &user.sub, detail))?;
    }
    Ok(())
}

fn relink(
    writer: &mut RegistryWriter<'_>,
    sub: &Subject,
    before: Option<&UserEntry>,
    entry: &UserEntry,
    index: usize,
) -> Result<(), RegistrationFailure> {
    let before = before
        .and_then(|user| user.identities.clone())
        .unwrap_or_default();
    let Some(after) = &entry.identities else {
        return Ok(());
    };
    for identity in before.difference(after) {
        let (link, event) = told_link("identity_unlinked", identity, sub);
        writer.unlink(&link, &event)?;
    }
    for identity in after.difference(&before) {
        let (link, event) = told_link("identity_linked", identity, sub);
        writer
            .link(&link, &event)
            .map_err(|error| of_user(error, index))?;
    }
    Ok(())
}

fn user_row(sub: Subject, entry: &UserEntry, password_hash: Option<SecretText>) -> UserRow {
    let UserEntry {
        username,
        tenant,
        enabled,
        valid_until,
        claims,
        ..
    } = entry.clone();
    UserRow {
        sub,
        username,
        tenant,
        password_hash,
        enabled,
        valid_until,
        has_ended: false,
        claims,
        epoch: 0,
        factors: 0,
        strongest_acr: Strength::SignedIn,
    }
}

/// Whether two changes that follow each other can be done by the same statements.
fn go_together(one: &PlannedChange<'_>, next: &PlannedChange<'_>) -> bool {
    let are_clients = [one, next]
        .iter()
        .all(|change| change.step.kind() == ObjectKind::Client);
    are_clients && (one.verb() == Verb::Remove) == (next.verb() == Verb::Remove)
}

/// What only the database can refuse, with its place in the document.
fn of_user(error: StoreError, index: usize) -> RegistrationFailure {
    if matches!(error, StoreError::Taken(_)) {
        let rule = "has the user name, the sub or an identity of another user";
        let problem = DocumentProblem::new(format!("users[{index}]"), rule);
        return RegistrationFailure::Document(vec![problem]);
    }
    RegistrationFailure::from(error)
}

/// Answers how many there were to remove.
pub fn remove_clients(
    writer: &mut RegistryWriter<'_>,
    clients: &[ClientId],
) -> Result<usize, RegistrationFailure> {
    let old = client_changes::remove_clients(writer, clients)?;
    let event = |id| client_event("client_removed", id, json!({"old": old.get(id)}));
    writer.audit_all(&clients.iter().map(event).collect::<Vec<_>>())?;
    Ok(clients.len())
}

pub fn remove_user(
    writer: &mut RegistryWriter<'_>,
    subject: &Subject,
) -> Result<(), RegistrationFailure> {
    let Some(old) = user_changes::user(&mut writer.reader, subject)? else {
        return Ok(());
    };
    user_changes::remove_user(writer, subject)?;
    Ok(writer.audit(&user_event("user_removed", subject, told_removed(&old)))?)
}

/// Old and new of each member, and how many secrets came and went.
fn detail(change: &PlannedChange<'_>) -> Value {
    let mut detail = json!({
        "kind": change.step.kind().as_str(),
        "name": change.step.name(),
        "secrets_added": change.secrets.added.len(),
        "secrets_removed": change.secrets.removed.len(),
        "client_secret_changed": change.secrets.client_secret.is_some(),
        "password_changed": change.secrets.password,
    });
    detail.set("fields", told_fields(change));
    detail
}

fn told_fields(change: &PlannedChange<'_>) -> Value {
    let is_user = matches!(change.step, PlanStep::ChangeUser { .. });
    let told = |field: FieldChange| {
        if is_user {
            return told_field(&field);
        }
        // By way of no `json!`, which copies what it is given.
        Value::from_iter([
            ("key", Value::from(field.key)),
            ("old", Value::from(field.before)),
            ("new", Value::from(field.after)),
        ])
    };
    change.fields().into_iter().map(told).collect()
}
