//! What is registered beside a document: what applying it would change, and doing so, in one
//! transaction. Applying it again changes nothing.

pub mod comparison;
pub mod enactment;
pub mod events;
pub mod examined_client;
pub mod explanation;
pub mod role_removal;
pub mod statements;

use serde_json::{Value, json};

use events::told_link;
use gatepost_protocol::registration::DocumentProblem;
use gatepost_protocol::words::instant::Day;
use gatepost_registration::document::Document;
use gatepost_registration::plan::{self, Plan, PlannedChange, Verb};
use gatepost_server::app;
use gatepost_server::app::extension_grant::ExtensionGrant;
use gatepost_server::app::failure::Failure;
use gatepost_server::config::Config;
use gatepost_server::keys::password::PasswordHashing;
use gatepost_server::registry::Sealers;
use gatepost_store::audit_events::{AuditEvent, EventAuthor};
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::{Result, Store, StoreError, sessions};
use statements::identities::{self, StraySession};

/// What a document is compared and enacted with.
pub struct Registrar<'a> {
    pub config: &'a Config,
    pub store: &'a Store,
    pub sealers: &'a Sealers,
    pub compiled_in_grants: &'a [ExtensionGrant],
    pub origin: DocumentOrigin<'a>,
}

/// Where a document comes from.
pub enum DocumentOrigin<'a> {
    /// An operator, on this machine.
    Command {
        /// Where the SQL functions of extension grants are.
        functions: &'a Store,
    },
    /// A client, over HTTP. No file and no variable of this machine is read for it, and what
    /// reaches further than the registration is refused.
    Client(EventAuthor),
    /// The same of a client that only reads: it must not learn who is a user.
    Reader,
}

pub enum RegistrationFailure {
    /// Every mistake of the document.
    Document(Vec<DocumentProblem>),
    Store(StoreError),
    Hashing(String),
}

impl From<StoreError> for RegistrationFailure {
    fn from(error: StoreError) -> RegistrationFailure {
        RegistrationFailure::Store(error)
    }
}

impl From<RegistrationFailure> for Failure {
    fn from(failure: RegistrationFailure) -> Failure {
        match failure {
            RegistrationFailure::Document(problems) => Failure::MistakenDocument(problems),
            RegistrationFailure::Store(error) => Failure::from(error),
            RegistrationFailure::Hashing(cause) => Failure::Internal(cause),
        }
    }
}

impl Registrar<'_> {
    /// Tells `tell` what the document would change, and at which version of the registry. With
    /// `prunes` what it leaves out is removed, list by list. That nothing would change is told only
    /// once a standby has what is there.
    pub fn planned<T, E>(
        &self,
        document: Value,
        prunes: bool,
        tell: impl FnOnce(&Plan<'_>, i64) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<StoreError> + From<RegistrationFailure>,
    {
        let judged = Document::judge(&document, &self.config.client_defaults);
        self.store.read_registry(|reader| {
            let comparison = comparison::read(self, reader, document, judged, prunes)?;
            let plan = plan::make(&comparison).map_err(RegistrationFailure::Document)?;
            if plan.changes.is_empty() {
                reader.confirm();
            }
            tell(&plan, reader.version())
        })
    }

    /// Does `act`, which enacts the plan, alone among changes. Afterwards ends the sessions that
    /// began through an identity while a change took it away. Whoever repeats a change after that
    /// failed finds it done, so they end where nothing changes, too.
    pub fn applied<T, E>(
        &self,
        document: Value,
        prunes: bool,
        act: impl FnOnce(&mut RegistryWriter<'_>, &Plan<'_>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<StoreError> + From<RegistrationFailure>,
    {
        // Before the change begins. While it is under way, no other change of the registry can be.
        let judged = Document::judge(&document, &self.config.client_defaults);
        let mut subs = Vec::new();
        let done = self.store.change_registry(|writer| {
            if let DocumentOrigin::Client(author) = &self.origin {
                writer.author = Some(author.clone());
            }
            let reader = &mut writer.reader;
            let comparison = comparison::read(self, reader, document, judged, prunes)?;
            let plan = plan::make(&comparison).map_err(RegistrationFailure::Document)?;
            subs.clone_from(&plan.identified);
            act(writer, &plan)
        })?;
        for stray in identities::stray_sessions(self.store, &subs)? {
            self.end_session(&stray)?;
        }
        Ok(done)
    }

    fn end_session(&self, stray: &StraySession) -> Result {
        let (_, event) = told_link("session_ended", &stray.identity, &stray.sub);
        let event = AuditEvent {
            sid: Some(&stray.sid),
            ..event
        };
        let event = match &self.origin {
            DocumentOrigin::Client(author) => author.signed(&event),
            DocumentOrigin::Command { .. } | DocumentOrigin::Reader => event,
        };
        if let Some(day) = stray.sid.day() {
            sessions::end(self.store, day, &stray.sid, &event)?;
        }
        Ok(())
    }

    /// Does what is planned. `advance` is told how many changes are done since it was told last.
    pub fn enact(
        &self,
        writer: &mut RegistryWriter<'_>,
        plan: &Plan<'_>,
        hashing: &PasswordHashing,
        today: Day,
        advance: impl FnMut(usize),
    ) -> Result<(), RegistrationFailure> {
        enactment::perform(writer, plan, self.sealers, hashing, advance)?;
        let horizons = app::horizons(self.config, &writer.reader.longest_lifetimes()?);
        writer.make_partitions(&horizons, today)?;
        Ok(())
    }
}

/// For programs: an object for each change, removals first.
pub fn told(plan: &Plan<'_>) -> Value {
    let changes = plan.changes.iter();
    let changes: Vec<Value> = changes.map(|change| told_change(change, plan)).collect();
    json!({
        "changes": changes,
        "added": plan.count(Verb::Add),
        "changed": plan.count(Verb::Change),
        "removed": plan.count(Verb::Remove),
        "unchanged": plan.unchanged,
        "warnings": plan.warnings,
    })
}

fn told_change(change: &PlannedChange<'_>, plan: &Plan<'_>) -> Value {
    let fields: Vec<Value> = change
        .fields()
        .iter()
        .map(|field| json!({"key": field.key, "before": field.before, "after": field.after}))
        .collect();
    json!({
        "action": change.verb().as_str(),
        "kind": change.step.kind().as_str(),
        "name": change.step.name(),
        "fields": fields,
        "secrets": {"added": change.secrets.added.len(), "removed": change.secrets.removed.len()},
        "client_secret_changed": change.secrets.client_secret.is_some(),
        "password_changed": change.secrets.password,
        "opens": plan.opened_by(change),
    })
}
