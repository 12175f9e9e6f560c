//! `gatepost apply`: makes the registry what a document says, in one transaction. Applying it again changes nothing.

mod catalogue;
mod functions;
pub(super) mod secrets;
mod users;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};

use serde_json::Value;

use crate::app::extension_grant::ExtensionGrant;
use crate::crypto::master::Purpose;
use crate::crypto::password::PasswordHashing;
use crate::crypto::sealing::Sealer;
use crate::protocol::instant::Instant;
use crate::protocol::registration::client::ClientEntry;
use crate::protocol::registration::document::Document;
use crate::protocol::registration::json;
use crate::protocol::registration::references::Stored;
use crate::protocol::scope::ScopeKind;
use crate::store::Store;
use crate::store::catalogue::{CatalogueKind, CatalogueRow};
use crate::store::clients::ClientRow;
use crate::store::registry_writer::RegistryWriter;

use super::arguments::Invocation;
use super::command::{Command, Run};
use super::failure::Failure;
use super::operator::{Operator, audit_event};
use super::output;
use super::serve::function_settings;
use secrets::HashedSecret;

pub(super) const COMMAND: Command = Command {
    name: "apply",
    values: &["FILE"],
    options: &[],
    summary: "Makes the registry what a JSON document says (- reads standard input), all or nothing.",
    example: "gatepost apply registration.json",
    run: Run::Once(run),
};

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Added,
    Changed,
    Unchanged,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Outcome::Added => "added",
            Outcome::Changed => "changed",
            Outcome::Unchanged => "unchanged",
        }
    }
}

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let value = read(invocation.value(0))?;
    let (operator, installation) = Operator::open_installed(invocation)?;
    let application = Application {
        sealer: Sealer::new(&operator.derived_keys(&installation)?, Purpose::ClientSecret),
        hashing: operator.password_hashing()?,
        now: operator.now()?,
        functions: Store::open_for_functions(&function_settings(&operator.config))?,
        extension_grants: invocation.extension_grants,
        operator,
    };
    let outcomes = application.operator.store.change_registry(|writer| application.perform(writer, &value))?;
    report(&outcomes)
}

fn read(file: &str) -> Result<Value, Failure> {
    let mut text = String::new();
    let outcome = if file == "-" {
        io::stdin().lock().read_to_string(&mut text).map(drop)
    } else {
        fs::read_to_string(file).map(|read| text = read)
    };
    outcome.map_err(|error| Failure::Refused(format!("{file} cannot be read: {error}")))?;
    json::parse(&text).map_err(|error| Failure::Refused(format!("{file} is not JSON: {error}")))
}

fn report(outcomes: &[(String, Outcome)]) -> Result<(), Failure> {
    let count = |wanted| outcomes.iter().filter(|(_, outcome)| *outcome == wanted).count();
    let mut lines: Vec<String> = outcomes
        .iter()
        .filter(|(_, outcome)| *outcome != Outcome::Unchanged)
        .map(|(name, outcome)| format!("{} {}", outcome.word(), name.escape_debug()))
        .collect();
    let numbers = [Outcome::Added, Outcome::Changed, Outcome::Unchanged];
    lines.push(numbers.map(|outcome| format!("{} {}", count(outcome), outcome.word())).join(", "));
    output::line(&lines.join("\n"))
}

struct Application {
    operator: Operator,
    sealer: Sealer,
    hashing: PasswordHashing,
    now: Instant,
    /// Where SQL functions of extension grants are called.
    functions: Store,
    extension_grants: &'static [ExtensionGrant],
}

type Outcomes = Vec<(String, Outcome)>;

impl Application {
    fn perform(&self, writer: &mut RegistryWriter<'_>, value: &Value) -> Result<Outcomes, Failure> {
        let (entries, clients) = (writer.catalogue()?.entries, writer.clients()?);
        let defaults = &self.operator.config.client_defaults;
        let mut stored = stored_names(&entries, &clients);
        stored.compiled_in_grants = self.extension_grants.iter().map(|grant| grant.name.to_owned()).collect();
        let document =
            Document::from_json(value, defaults, &stored).map_err(|problems| Failure::of_document(&problems))?;
        let mut problems = Vec::new();
        let items = catalogue::items(&document, &mut problems);
        functions::check(&self.functions, &document, &mut problems)?;
        let client_secrets: Vec<_> = document
            .clients
            .iter()
            .enumerate()
            .map(|(index, entry)| {
                secrets::hash_all(entry.secrets.as_ref(), &format!("clients[{index}]"), &mut problems)
            })
            .collect();
        if !problems.is_empty() {
            return Err(Failure::of_document(&problems));
        }
        let mut outcomes = Vec::new();
        for item in &items {
            let stored = entries.iter().find(|entry| entry.kind == item.kind && entry.name == item.name);
            let outcome = catalogue::apply(writer, item, stored, &self.sealer)?;
            outcomes.push((format!("{} {}", item.kind.as_str(), item.name), outcome));
        }
        self.apply_clients(writer, &document.clients, &client_secrets, &clients, &mut outcomes)?;
        for (index, entry) in document.users.iter().enumerate() {
            let outcome = users::apply(writer, entry, &format!("users[{index}]"), &self.hashing)?;
            outcomes.push((format!("user {}", entry.username), outcome));
        }
        Ok(outcomes)
    }

    fn apply_clients(
        &self,
        writer: &mut RegistryWriter<'_>,
        clients: &[ClientEntry],
        secrets: &[Option<Vec<HashedSecret>>],
        stored: &[ClientRow],
        outcomes: &mut Outcomes,
    ) -> Result<(), Failure> {
        let stored: BTreeMap<&str, &ClientRow> = stored.iter().map(|row| (row.client_id.as_str(), row)).collect();
        let mut anything_changed = false;
        for (entry, secrets) in clients.iter().zip(secrets) {
            let name = entry.client.client_id.as_str();
            let outcome = self.apply_client(writer, entry, secrets.as_deref(), stored.get(name).copied())?;
            anything_changed |= outcome != Outcome::Unchanged;
            outcomes.push((format!("client {name}"), outcome));
        }
        if anything_changed {
            let horizons = self.operator.horizons(writer.longest_lifetimes()?);
            writer.make_partitions(&horizons, self.now.day())?;
        }
        Ok(())
    }

    fn apply_client(
        &self,
        writer: &mut RegistryWriter<'_>,
        entry: &ClientEntry,
        secrets: Option<&[HashedSecret]>,
        stored: Option<&ClientRow>,
    ) -> Result<Outcome, Failure> {
        let (client_id, enabled) = (&entry.client.client_id, entry.client.enabled);
        let registration_changed =
            stored.is_none_or(|stored| stored.metadata != entry.metadata || stored.enabled != enabled);
        if registration_changed {
            writer.upsert_client(client_id, &entry.metadata, enabled)?;
        }
        let present = stored.map(|stored| stored.secrets.as_slice()).unwrap_or_default();
        let changes = secrets.map(|wanted| secrets::compare(present, wanted, &self.sealer));
        let secrets_changed = changes.as_ref().is_some_and(|changes| !changes.is_empty());
        if let Some(changes) = changes {
            for id in &changes.removed {
                writer.remove_client_secret(client_id, id)?;
            }
            for secret in &changes.added {
                writer.upsert_client_secret(client_id, secret)?;
            }
        }
        if !registration_changed && !secrets_changed {
            return Ok(Outcome::Unchanged);
        }
        let mut event =
            audit_event("client_changed", serde_json::json!({"enabled": enabled, "secrets": secrets_changed}));
        event.client_id = Some(client_id);
        writer.audit(&event)?;
        Ok(if stored.is_some() { Outcome::Changed } else { Outcome::Added })
    }
}

fn stored_names(entries: &[CatalogueRow], clients: &[ClientRow]) -> Stored {
    let mut stored = Stored::default();
    for entry in entries {
        let name = entry.name.clone();
        match entry.kind {
            CatalogueKind::IdentityScope => drop(stored.scopes.insert(name, ScopeKind::Identity)),
            CatalogueKind::ResourceScope => drop(stored.scopes.insert(name, ScopeKind::Resource)),
            CatalogueKind::Resource => drop(stored.resources.insert(name)),
            CatalogueKind::Tenant => drop(stored.tenants.insert(name)),
            CatalogueKind::IdentityProvider => drop(stored.identity_providers.insert(name)),
            CatalogueKind::ExtensionGrant => drop(stored.extension_grants.insert(name)),
            CatalogueKind::AssertionIssuer => {}
        }
    }
    stored.clients = clients.iter().map(|row| (row.client_id.to_string(), !row.secrets.is_empty())).collect();
    stored
}
