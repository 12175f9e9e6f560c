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
use gatepost_protocol::registration::user::{Credential, UserEntry};
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::registration::{DocumentProblem, ObjectKind};
use gatepost_protocol::words::identifiers::{ClientId, Subject};
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_protocol::words::strength::Strength;
use gatepost_registration::document::DocumentEntry;
use gatepost_registration::plan::{Plan, PlanStep, PlannedChange, SecretChanges, Verb};
use gatepost_server::keys::password::PasswordHashing;
use gatepost_server::keys::random;
use gatepost_server::keys::sealing::Sealer;
use gatepost_server::registry::Sealers;
use gatepost_store::StoreError;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::catalogue::CatalogueRow;
use gatepost_store::clients::SecretRow;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::users::UserRow;

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
                .map(|batch| sender.send((batch, clients(batch, sealer))))
                .all(|sent| sent.is_ok())
        });
        for (batch, clients) in ready {
            perform_batch(writer, batch, sealers, hashing)?;
            put_clients(writer, clients)?;
            advance(batch.len());
        }
        Ok(())
    })
}

/// All but the clients that come: either one change, or many clients that come or many that go.
fn perform_batch(
    writer: &mut RegistryWriter<'_>,
    batch: &[PlannedChange<'_>],
    sealers: &Sealers,
    hashing: &PasswordHashing,
) -> Result<(), RegistrationFailure> {
    let mut gone = Vec::new();
    for change in batch {
        match &change.step {
            PlanStep::Put(entry, _) if entry.kind == ObjectKind::Client => {}
            PlanStep::Put(entry, _) => put_entry(writer, entry, change, &sealers.client_secrets)?,
            PlanStep::Remove {
                kind: ObjectKind::Client,
                name,
            } => gone.push(ClientId::new(name.clone())),
            PlanStep::Remove { kind, name } => {
                let old = catalogue_changes::remove_entry(writer, *kind, name)?;
                let detail = json!({"kind": kind.as_str(), "name": name, "old": old});
                writer.audit(&audit_event("registration_removed", detail))?;
            }
            PlanStep::AddUser { entry, index } => {
                add_user(writer, entry, *index, sealers, hashing)?
            }
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
                tell_of_sharing(writer, &user)?;
            }
            PlanStep::RemoveUser { subject, .. } => remove_user(writer, subject)?,
        }
    }
    remove_clients(writer, &gone.iter().collect::<Vec<_>>())
}

/// A client with its registration, its secrets that go and that come, and what is told of it.
type ReadyClient = (ClientId, Value, Vec<[u8; 16]>, Vec<SecretRow>, Value);

fn clients(batch: &[PlannedChange<'_>], sealer: &Sealer) -> Vec<ReadyClient> {
    let mut ready = Vec::new();
    for change in batch {
        let PlanStep::Put(
            entry @ DocumentEntry {
                kind: ObjectKind::Client,
                ..
            },
            _,
        ) = &change.step
        else {
            continue;
        };
        let SecretChanges { removed, added, .. } = &change.secrets;
        let added = added.iter().map(|secret| sealed(secret, sealer)).collect();
        let document = parse_own(&entry.document);
        ready.push((
            ClientId::new(entry.name.clone()),
            document,
            removed.clone(),
            added,
            detail(change),
        ));
    }
    ready
}

fn put_clients(
    writer: &mut RegistryWriter<'_>,
    mut clients: Vec<ReadyClient>,
) -> Result<(), RegistrationFailure> {
    if clients.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::new();
    let mut gone = Vec::new();
    let mut events = Vec::new();
    let mut new = Vec::new();
    for (client_id, document, removed, added, detail) in &mut clients {
        let enabled = document.get("enabled") != Some(&Value::Bool(false));
        rows.push((&*client_id, &*document, enabled));
        gone.extend(removed.iter().map(|id| (client_id.as_str(), *id)));
        new.extend(added.drain(..).map(|secret| (client_id.as_str(), secret)));
        events.push(client_event("client_changed", client_id, detail.take()));
    }
    client_changes::upsert_clients(writer, &rows)?;
    client_changes::remove_secrets(writer, true, &gone)?;
    client_changes::put_secrets(writer, true, &new)?;
    Ok(writer.audit_all(&events)?)
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
) -> Result<(), StoreError> {
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
    let new = user_row(
        entry
            .subject
            .clone()
            .unwrap_or_else(|| Subject::of_random(random::bytes())),
        entry,
        password_hash,
    );
    let event = user_event("user_added", &new.sub, told_added(&new));
    user_changes::insert_user(writer, &new, &event).map_err(|error| of_user(error, index))?;
    tell_of_sharing(writer, &new)?;
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
pub fn tell_of_sharing(
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
        claims,
        ..
    } = entry.clone();
    UserRow {
        sub,
        username,
        tenant,
        password_hash,
        enabled,
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
    are_clients && (one.verb == Verb::Remove) == (next.verb == Verb::Remove)
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

pub fn remove_clients(
    writer: &mut RegistryWriter<'_>,
    clients: &[&ClientId],
) -> Result<(), RegistrationFailure> {
    if clients.is_empty() {
        return Ok(());
    }
    let old = client_changes::remove_clients(writer, clients)?;
    let event = |id| client_event("client_removed", id, json!({"old": old.get(id)}));
    let events: Vec<AuditEvent<'_>> = clients.iter().copied().map(event).collect();
    Ok(writer.audit_all(&events)?)
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
    if let Some(members) = detail.as_object_mut() {
        members.insert(String::from("fields"), told_fields(change));
    }
    detail
}

fn told_fields(change: &PlannedChange<'_>) -> Value {
    let is_user = matches!(change.step, PlanStep::ChangeUser { .. });
    let fields = change.fields().into_iter().map(|field| match is_user {
        true => told_field(&field),
        // By way of no `json!`, which copies what it is given.
        false => Value::from_iter([
            ("key", Value::from(field.key)),
            ("old", Value::from(field.before)),
            ("new", Value::from(field.after)),
        ]),
    });
    fields.collect()
}
