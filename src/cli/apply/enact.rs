//! A plan, done: within one change, with an audit event for each object.

use serde_json::{Value, json};

use super::secrets;
use crate::cli::failure::Failure;
use crate::cli::operator::audit_event;
use crate::cli::progress::Progress;
use crate::cli::user::{new_subject, told};
use crate::keys::password::PasswordHashing;
use crate::keys::sealing::Sealer;
use crate::protocol::registration::document::Entry;
use crate::protocol::registration::plan::{Change, FieldChange, Plan, SecretChanges, Step, Verb};
use crate::protocol::registration::user::{Credential, UserEntry};
use crate::protocol::registration::{Kind, Problem};
use crate::protocol::words::identifiers::{ClientId, Subject};
use crate::protocol::words::secret::{SecretBytes, SecretText};
use crate::store::StoreError;
use crate::store::audit_events::AuditEvent;
use crate::store::catalogue::CatalogueRow;
use crate::store::registry_writer::RegistryWriter;
use crate::store::users::UserRow;

const BATCH: usize = 500;

pub(super) struct Enactment<'a> {
    pub(super) sealer: &'a Sealer,
    pub(super) hashing: &'a PasswordHashing,
}

impl Enactment<'_> {
    pub(super) fn perform(&self, writer: &mut RegistryWriter<'_>, plan: &Plan<'_>) -> Result<(), Failure> {
        let mut progress = Progress::of(plan.changes.len());
        for group in plan.changes.chunk_by(go_together) {
            for batch in group.chunks(BATCH) {
                self.perform_batch(writer, batch)?;
                progress.advance(batch.len());
            }
        }
        Ok(())
    }

    /// Either one change, or many clients that come or many that go.
    fn perform_batch(&self, writer: &mut RegistryWriter<'_>, batch: &[Change<'_>]) -> Result<(), Failure> {
        let (mut clients, mut gone) = (Vec::new(), Vec::new());
        for change in batch {
            match &change.step {
                Step::Put(entry) if entry.kind == Kind::Client => {
                    clients.push((ClientId::new(entry.name.clone()), *entry, change));
                }
                Step::Put(entry) => self.put_entry(writer, entry, change)?,
                Step::Remove { kind: Kind::Client, name } => gone.push(ClientId::new(name.clone())),
                Step::Remove { kind, name } => remove_entry(writer, *kind, name)?,
                Step::AddUser { entry, index } => self.add_user(writer, entry, *index)?,
                Step::ChangeUser { subject, entry, index, password_hash } => {
                    let user = user_row((*subject).clone(), entry, password_hash.cloned());
                    writer.update_user(&user).map_err(|error| of_user(error, *index))?;
                    let mut event = audit_event("user_changed", detail(change));
                    event.sub = Some(subject);
                    writer.audit(&event)?;
                }
                Step::RemoveUser { subject, .. } => remove_user(writer, subject)?,
            }
        }
        remove_clients(writer, &gone.iter().collect::<Vec<_>>())?;
        self.put_clients(writer, &clients)
    }

    fn put_clients(
        &self,
        writer: &mut RegistryWriter<'_>,
        clients: &[(ClientId, &Entry, &Change<'_>)],
    ) -> Result<(), Failure> {
        if clients.is_empty() {
            return Ok(());
        }
        let (mut rows, mut gone, mut new, mut events) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (client_id, entry, change) in clients {
            let enabled = entry.document.get("enabled") != Some(&Value::Bool(false));
            rows.push((client_id, &entry.document, enabled));
            gone.extend(change.secrets.removed.iter().map(|id| (client_id.as_str(), *id)));
            new.extend(
                change.secrets.added.iter().map(|secret| (client_id.as_str(), secrets::sealed(secret, self.sealer))),
            );
            let mut event = audit_event("client_changed", detail(change));
            event.client_id = Some(client_id);
            events.push(event);
        }
        writer.upsert_clients(&rows)?;
        writer.remove_secrets(true, &gone)?;
        writer.put_secrets(true, &new)?;
        Ok(writer.audit_all(&events)?)
    }

    fn put_entry(&self, writer: &mut RegistryWriter<'_>, entry: &Entry, change: &Change<'_>) -> Result<(), Failure> {
        let name = &entry.name;
        let client_secret = change.secrets.client_secret.as_ref();
        let sealed_secret = client_secret.map(|text| SecretBytes::new(self.sealer.seal(text.expose().as_bytes())));
        writer.upsert_entry(&CatalogueRow {
            kind: entry.kind,
            name: name.clone(),
            document: entry.document.clone(),
            sealed_secret,
            secrets: Vec::new(),
        })?;
        let SecretChanges { removed, added, .. } = &change.secrets;
        if entry.kind == Kind::Resource && !(removed.is_empty() && added.is_empty()) {
            let gone: Vec<_> = removed.iter().map(|id| (name.as_str(), *id)).collect();
            let new: Vec<_> = added.iter().map(|one| (name.as_str(), secrets::sealed(one, self.sealer))).collect();
            writer.remove_secrets(false, &gone)?;
            writer.put_secrets(false, &new)?;
        }
        Ok(writer.audit(&audit_event("registration_changed", detail(change)))?)
    }

    fn add_user(&self, writer: &mut RegistryWriter<'_>, entry: &UserEntry, index: usize) -> Result<(), Failure> {
        let password_hash = match &entry.credential {
            Some(Credential::Password(password)) => {
                let hash = self.hashing.hash(password).map_err(Failure::Refused)?;
                Some(SecretText::new(hash))
            }
            Some(Credential::Hash(hash)) => Some(hash.clone()),
            None => None,
        };
        let new = user_row(entry.subject.clone().unwrap_or_else(new_subject), entry, password_hash);
        let mut event = audit_event("user_added", told::added(&new));
        event.sub = Some(&new.sub);
        writer.insert_user(&new, &event).map_err(|error| of_user(error, index))
    }
}

fn user_row(sub: Subject, entry: &UserEntry, password_hash: Option<SecretText>) -> UserRow {
    let UserEntry { username, tenant, enabled, claims, .. } = entry.clone();
    UserRow { sub, username, tenant, password_hash, enabled, claims, epoch: 0 }
}

/// Whether two changes that follow each other can be done by the same statements.
fn go_together(one: &Change<'_>, next: &Change<'_>) -> bool {
    let are_clients = [one, next].iter().all(|change| change.step.kind() == Kind::Client);
    are_clients && (one.verb == Verb::Remove) == (next.verb == Verb::Remove)
}

/// What only the database can refuse, with its place in the document.
fn of_user(error: StoreError, index: usize) -> Failure {
    if matches!(error, StoreError::Taken(_)) {
        let rule = "has the user name or sub of another user";
        return Failure::of_document(&[Problem::new(format!("users[{index}]"), rule)]);
    }
    Failure::from(error)
}

fn remove_entry(writer: &mut RegistryWriter<'_>, kind: Kind, name: &str) -> Result<(), Failure> {
    let old = writer.remove_entry(kind, name)?;
    let detail = json!({"kind": kind.as_str(), "name": name, "old": old});
    Ok(writer.audit(&audit_event("registration_removed", detail))?)
}

pub(in crate::cli) fn remove_clients(writer: &mut RegistryWriter<'_>, clients: &[&ClientId]) -> Result<(), Failure> {
    if clients.is_empty() {
        return Ok(());
    }
    let old = writer.remove_clients(clients)?;
    let event = |client_id| AuditEvent {
        client_id: Some(client_id),
        ..audit_event("client_removed", json!({"old": old.get(client_id)}))
    };
    let events: Vec<AuditEvent<'_>> = clients.iter().copied().map(event).collect();
    Ok(writer.audit_all(&events)?)
}

pub(in crate::cli) fn remove_user(writer: &mut RegistryWriter<'_>, subject: &Subject) -> Result<(), Failure> {
    let Some(old) = writer.user(subject)? else { return Ok(()) };
    writer.remove_user(subject)?;
    let event = AuditEvent { sub: Some(subject), ..audit_event("user_removed", told::removed(&old)) };
    Ok(writer.audit(&event)?)
}

/// Old and new of each member, and how many secrets came and went.
fn detail(change: &Change<'_>) -> Value {
    let plain = |field: &FieldChange| json!({"key": field.key, "old": field.before, "new": field.after});
    let is_user = matches!(change.step, Step::ChangeUser { .. });
    let fields = change.fields.iter().map(|field| if is_user { told::field(field) } else { plain(field) });
    json!({
        "kind": change.step.kind().as_str(),
        "name": change.step.name(),
        "fields": fields.collect::<Vec<_>>(),
        "secrets_added": change.secrets.added.len(),
        "secrets_removed": change.secrets.removed.len(),
        "client_secret_changed": change.secrets.client_secret.is_some(),
        "password_changed": change.secrets.password,
    })
}
