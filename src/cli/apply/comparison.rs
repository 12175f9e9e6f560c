//! Reads what a plan is made of: a document, its secrets, and what is registered.

use std::collections::BTreeMap;

use serde_json::Value;

use super::functions::Functions;
use super::secrets;
use crate::cli::failure::Failure;
use crate::keys::sealing::Sealer;
use crate::protocol::registration::Kind;
use crate::protocol::registration::defaults::ClientDefaults;
use crate::protocol::registration::document::Document;
use crate::protocol::registration::plan::{
    Comparison, Pruning, Registered, RegisteredObject, RegisteredUsers, StoredSecret,
};
use crate::protocol::registration::user::{Credential, UserEntry};
use crate::protocol::words::identifiers::Subject;
use crate::protocol::words::secret::SecretText;
use crate::store::StoreError;
use crate::store::clients::SecretRow;
use crate::store::registry_writer::RegistryWriter;
use crate::store::users::UserRow;

/// Judges the document and fetches its secrets. `prune` also names what is left out.
pub(in crate::cli) fn read(
    writer: &mut RegistryWriter<'_>,
    value: &Value,
    prune: bool,
    defaults: &ClientDefaults,
    (sealer, functions): (&Sealer, &Functions),
) -> Result<Comparison, Failure> {
    let refused = |problems: Vec<_>| Failure::of_document(&problems);
    let pruning = if prune { Pruning::of(value) } else { Pruning::default() };
    let registered = registered(writer, Some(sealer))?;
    let mut stored = registered.names(&pruning);
    stored.compiled_in_grants = functions.compiled_in().collect();
    let document = Document::from_json(value, defaults, &stored).map_err(refused)?;
    functions.check(&document)?;
    let given = secrets::gather(&document).map_err(refused)?;
    let users = users_of(writer, &document, &pruning)?;
    Ok(Comparison { document, given, registered, users, pruning })
}

/// Catalogue and clients, with their secrets opened where there is what opens them.
pub(in crate::cli) fn registered(
    writer: &mut RegistryWriter<'_>,
    sealer: Option<&Sealer>,
) -> Result<Registered, StoreError> {
    let mut objects = BTreeMap::new();
    for row in writer.catalogue()?.entries {
        let opened = row.sealed_secret.as_ref().and_then(|sealed| sealer?.open(sealed.expose()));
        let client_secret = opened.and_then(|bytes| String::from_utf8(bytes).ok()).map(SecretText::new);
        let secrets = stored_secrets(&row.secrets, sealer);
        objects.insert((row.kind, row.name), RegisteredObject { client_secret, secrets, document: row.document });
    }
    for row in writer.clients()? {
        let secrets = stored_secrets(&row.secrets, sealer);
        let object = RegisteredObject { client_secret: None, secrets, document: row.metadata };
        objects.insert((Kind::Client, row.client_id.to_string()), object);
    }
    Ok(Registered { objects })
}

fn stored_secrets(rows: &[SecretRow], sealer: Option<&Sealer>) -> Vec<StoredSecret> {
    let stored = |row: &SecretRow| StoredSecret {
        id: row.id,
        digest: sealer.and_then(|sealer| secrets::opened(row, sealer)),
        description: row.description.clone(),
    };
    rows.iter().map(stored).collect()
}

fn users_of(
    writer: &mut RegistryWriter<'_>,
    document: &Document,
    pruning: &Pruning,
) -> Result<RegisteredUsers, StoreError> {
    let mut users = RegisteredUsers { named: vec![None; document.users.len()], ..RegisteredUsers::default() };
    for found in writer.find_users(&document.users)? {
        if let Some(named) = users.named.get_mut(found.index).filter(|_| found.by_name) {
            *named = Some(found.user.sub.clone());
        }
        users.users.extend([registered_user(found.user)]);
    }
    if pruning.covers(Kind::User) {
        users.users = all_users(writer)?;
    }
    let given: Vec<&str> =
        document.users.iter().filter_map(|user| user.subject.as_ref().map(Subject::as_str)).collect();
    users.removed = writer.removed_subjects(&given)?;
    let clients = document.entries.iter().filter(|entry| entry.kind == Kind::Client);
    let client_ids: Vec<&str> = clients.map(|entry| entry.name.as_str()).collect();
    users.of_clients = writer.subjects_among(&client_ids)?;
    if pruning.covers(Kind::Tenant) {
        let known: Vec<&str> = users.users.keys().map(Subject::as_str).collect();
        users.tenants_of_others = writer.tenants_of_others(&known)?;
    }
    Ok(users)
}

pub(in crate::cli) fn all_users(writer: &mut RegistryWriter<'_>) -> Result<BTreeMap<Subject, UserEntry>, StoreError> {
    Ok(writer.users()?.into_iter().map(registered_user).collect())
}

fn registered_user(row: UserRow) -> (Subject, UserEntry) {
    let user = UserEntry {
        subject: Some(row.sub.clone()),
        username: row.username,
        tenant: row.tenant,
        credential: row.password_hash.map(Credential::Hash),
        enabled: row.enabled,
        claims: row.claims,
    };
    (row.sub, user)
}
