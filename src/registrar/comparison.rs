//! A document beside what is registered: everything that a plan is made of. Its secrets are fetched
//! from where they are, and hashed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{DocumentOrigin, Registrar, RegistrationFailure};
use crate::statements::{identities, user_changes};
use gatepost_protocol::registration::walker::parse_own;
use gatepost_protocol::registration::{self, DocumentProblem, ObjectKind, catalogue};
use gatepost_protocol::token::client_secret::{DigestAlgorithm, SecretDigest};
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::Members;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_registration::client_secret::{
    RegisteredSecret, SecretMaterial, SecretSource, check_own, secret_text,
};
use gatepost_registration::document::{
    Document, DocumentEntry, JudgedDocument, name_problems, refused_over_http,
};
use gatepost_registration::plan::{
    self, Comparison, GivenSecret, GivenSecrets, Pruning, RegisteredObject, RegisteredObjects,
    RegisteredUsers, StoredSecret,
};
use gatepost_registration::user::{Credential, Identity, Owners, UserEntry};
use gatepost_server::app;
use gatepost_server::app::password_rules::PasswordRules;
use gatepost_server::config::environment_secret;
use gatepost_server::keys::random;
use gatepost_server::keys::sealing::Sealer;
use gatepost_server::registry::open_secret_digest;
use gatepost_store::catalogue::{FoundFunction, look_up_function};
use gatepost_store::clients::SecretRow;
use gatepost_store::registry_writer::RegistryReader;
use gatepost_store::users::UserRow;
use gatepost_store::{Result, Store};

/// Judges the document, which was judged in itself, against what is registered, and fetches its
/// secrets. With `prunes` also names what is left out.
pub(super) fn read(
    registrar: &Registrar<'_>,
    reader: &mut RegistryReader<'_>,
    value: Value,
    judged: JudgedDocument,
    prunes: bool,
) -> Result<Comparison, RegistrationFailure> {
    let pruning = if prunes {
        Pruning::of(&value)
    } else {
        Pruning::default()
    };
    let registered = registered(reader, Some(&registrar.sealers.client_secrets))?;
    let mut stored = registered.names(&pruning);
    // Names that need no registration and can have none.
    stored.compiled_in_grants = registrar
        .compiled_in_grants
        .iter()
        .map(|grant| grant.name.to_owned())
        .collect();
    let JudgedDocument {
        document,
        mut problems,
    } = judged.beside(&value, &stored);
    let Some(document) = document else {
        return Err(RegistrationFailure::Document(problems));
    };
    match &registrar.origin {
        DocumentOrigin::Command { functions } => {
            check_functions(&document, functions, &mut problems)?;
        }
        DocumentOrigin::Client(_) | DocumentOrigin::Reader => {
            problems.extend(refused_over_http(&value, prunes));
        }
    }
    problems.extend(document.own_tokens(registrar.config.base_url.as_str()));
    let origin = &registrar.origin;
    let entries = document.entries.iter();
    let given = entries.map(|entry| given_secrets(entry, origin, &mut problems));
    let given = Vec::from_iter(given);
    if problems.is_empty() {
        drop((value, stored));
        let comparison = comparison(registrar, reader, pruning, registered, document, given)?;
        let mut unfit = unfit_passwords(registrar, &comparison);
        comparison.document.name_problems(&mut unfit);
        return if unfit.is_empty() {
            Ok(comparison)
        } else {
            Err(RegistrationFailure::Document(unfit))
        };
    }
    // An item that is no object has no place among those that were read.
    if value.items("users").len() == document.users.len() {
        let comparison = comparison(registrar, reader, pruning, registered, document, given)?;
        problems.extend(plan::conflicts(&comparison));
        problems.extend(unfit_passwords(registrar, &comparison));
    }
    name_problems(&mut problems, &value);
    Err(RegistrationFailure::Document(problems))
}

/// By the rules for new passwords of this installation.
fn unfit_passwords(registrar: &Registrar<'_>, comparison: &Comparison) -> Vec<DocumentProblem> {
    let rules = PasswordRules::new(registrar.config);
    let Comparison {
        users, document, ..
    } = comparison;
    users.unfit_passwords(document, |password| rules.check(password))
}

/// The same with the users that it is about.
fn comparison(
    registrar: &Registrar<'_>,
    reader: &mut RegistryReader<'_>,
    pruning: Pruning,
    registered: RegisteredObjects,
    document: Document,
    given: Vec<GivenSecrets>,
) -> Result<Comparison, RegistrationFailure> {
    let users = users_of(reader, &registrar.origin, &document, &pruning)?;
    Ok(Comparison {
        document: users.settled(document),
        users,
        given,
        registered,
        pruning,
        flow_uses: reader.flow_uses()?,
        administration: registrar.config.administration.clone(),
        bound_sessions: registrar.config.bound_sessions,
        own_hash: app::cost(registrar.config).beginning(),
    })
}

/// Whether the SQL functions that the extension grants of a document name can answer.
fn check_functions(
    document: &Document,
    store: &Store,
    problems: &mut Vec<DocumentProblem>,
) -> Result<(), RegistrationFailure> {
    for entry in document
        .entries
        .iter()
        .filter(|entry| entry.kind == ObjectKind::ExtensionGrant)
    {
        let read = registration::stored(
            &parse_own(&entry.document),
            "",
            catalogue::read_extension_grant,
        );
        let Ok(grant) = read else { continue };
        let name = format!("{}.{}", grant.schema, grant.function);
        let rule = match look_up_function(store, &grant)? {
            FoundFunction::Callable => continue,
            FoundFunction::Forbidden => {
                format!("names {name}, which the role that will call it may not execute")
            }
            FoundFunction::Missing => {
                format!(
                    "names {name}, and there is no such function (jsonb, jsonb) returning jsonb"
                )
            }
        };
        problems.push(DocumentProblem::new(
            format!("{}.function", entry.place),
            rule,
        ));
    }
    Ok(())
}

/// Catalogue and clients, with their secrets opened where there is what opens them.
pub fn registered(
    reader: &mut RegistryReader<'_>,
    sealer: Option<&Sealer>,
) -> Result<RegisteredObjects> {
    let mut objects = BTreeMap::new();
    for row in reader.catalogue()?.entries {
        let object = RegisteredObject {
            client_secret: opened_text(row.sealed_secret.as_ref(), sealer),
            secrets: stored_secrets(&row.secrets, sealer),
            document: row.document.to_string().into(),
        };
        objects.insert((row.kind, row.name), object);
    }
    for row in reader.clients()? {
        let object = RegisteredObject {
            client_secret: None,
            secrets: stored_secrets(&row.secrets, sealer),
            document: row.metadata.into(),
        };
        objects.insert((ObjectKind::Client, row.client_id.to_string()), object);
    }
    Ok(RegisteredObjects { objects })
}

fn opened_text(sealed: Option<&SecretBytes>, sealer: Option<&Sealer>) -> Option<SecretText> {
    let opened = sealer?.open(sealed?.expose())?;
    String::from_utf8(opened).ok().map(SecretText::new)
}

fn stored_secrets(rows: &[SecretRow], sealer: Option<&Sealer>) -> Vec<StoredSecret> {
    let stored = |row: &SecretRow| StoredSecret {
        id: row.id,
        digest: sealer.and_then(|sealer| open_secret_digest(row, sealer)),
        description: row.description.clone(),
    };
    rows.iter().map(stored).collect()
}

fn users_of(
    reader: &mut RegistryReader<'_>,
    origin: &DocumentOrigin<'_>,
    document: &Document,
    pruning: &Pruning,
) -> Result<RegisteredUsers> {
    let mut users = RegisteredUsers {
        named: vec![None; document.users.len()],
        ..RegisteredUsers::default()
    };
    for found in user_changes::find_users(reader, &document.users)? {
        if let Some(named) = users.named.get_mut(found.index).filter(|_| found.by_name) {
            *named = Some(found.user.sub.clone());
        }
        users.users.extend([registered_user(found.user)]);
    }
    if pruning.covers(ObjectKind::User) {
        users.users = all_users(reader)?;
    }
    if document.users.iter().any(|user| user.identities.is_some()) {
        let given = document
            .users
            .iter()
            .flat_map(|user| user.identities.iter().flatten());
        users.owners = add_identities(reader, &mut users.users, &given.collect::<Vec<_>>())?;
    }
    let given: Vec<&str> = document
        .users
        .iter()
        .filter_map(|user| user.subject.as_ref().map(Subject::as_str))
        .collect();
    users.removed = user_changes::removed_subjects(reader, &given)?;
    let clients = document
        .entries
        .iter()
        .filter(|entry| entry.kind == ObjectKind::Client);
    let client_ids = clients.map(|entry| entry.name.as_str());
    // A document with mistakes may hold what Postgres does not take.
    let client_ids: Vec<&str> = client_ids.filter(|name| !name.contains('\0')).collect();
    // It would tell a reader which of the names that they guess are those of users.
    if !matches!(origin, DocumentOrigin::Reader) {
        users.of_clients = user_changes::subjects_among(reader, &client_ids)?;
    }
    if pruning.covers(ObjectKind::Tenant) {
        let known: Vec<&str> = users.users.keys().map(Subject::as_str).collect();
        users.tenants_of_others = user_changes::tenants_of_others(reader, &known)?;
    }
    Ok(users)
}

pub fn all_users(reader: &mut RegistryReader<'_>) -> Result<BTreeMap<Subject, UserEntry>> {
    Ok(user_changes::users(reader)?
        .into_iter()
        .map(registered_user)
        .collect())
}

/// Reads who these users are elsewhere; answers whose the identities are, theirs and the `given`
/// ones.
pub fn add_identities(
    reader: &mut RegistryReader<'_>,
    users: &mut BTreeMap<Subject, UserEntry>,
    given: &[&Identity],
) -> Result<Owners> {
    let owners = identities::identities(reader, &users.keys().collect::<Vec<_>>(), given)?;
    for user in users.values_mut() {
        user.identities = Some(BTreeSet::new());
    }
    for (identity, owner) in &owners {
        let owner = users.get_mut(owner);
        if let Some(own) = owner.and_then(|user| user.identities.as_mut()) {
            own.insert(identity.clone());
        }
    }
    Ok(owners)
}

fn registered_user(row: UserRow) -> (Subject, UserEntry) {
    let user = UserEntry {
        subject: Some(row.sub.clone()),
        username: row.username,
        tenant: row.tenant,
        credential: row.password_hash.map(Credential::Hash),
        enabled: row.enabled,
        valid_until: row.valid_until,
        claims: row.claims,
        totp: None,
        identities: None,
    };
    (row.sub, user)
}

/// Fetches and hashes the secrets of one object; notes every one that cannot be had.
fn given_secrets(
    entry: &DocumentEntry,
    origin: &DocumentOrigin<'_>,
    problems: &mut Vec<DocumentProblem>,
) -> GivenSecrets {
    let DocumentEntry { place, secrets, .. } = entry;
    let mut given = GivenSecrets {
        secrets: secrets.as_ref().map(|all| Vec::with_capacity(all.len())),
        client_secret: None,
    };
    for (index, secret) in secrets.iter().flatten().enumerate() {
        match hash(secret, origin, &format!("{place}.secrets[{index}]")) {
            Ok(secret) => given.secrets.get_or_insert_default().push(secret),
            Err(problem) => problems.push(problem),
        }
    }
    if let Some(source) = &entry.client_secret {
        match fetch(source, origin, &format!("{place}.client_secret")) {
            Ok(text) => given.client_secret = Some(text),
            Err(problem) => problems.push(problem),
        }
    }
    given
}

fn fetch(
    source: &SecretSource,
    origin: &DocumentOrigin<'_>,
    place: &str,
) -> Result<SecretText, DocumentProblem> {
    let is_command = matches!(origin, DocumentOrigin::Command { .. });
    let text = match source {
        SecretSource::Value(text) => text.clone(),
        SecretSource::Environment(_) | SecretSource::File(_) if !is_command => {
            let rule = "is on the server, and is not read over HTTP: send the value or its digest";
            return Err(DocumentProblem::new(place, rule));
        }
        SecretSource::Environment(name) => from_environment(name, place)?,
        SecretSource::File(path) => from_file(path, place)?,
    };
    match secret_text(text.expose()) {
        Ok(()) => Ok(text),
        Err(rule) => Err(DocumentProblem::new(place, rule)),
    }
}

fn from_environment(name: &str, place: &str) -> Result<SecretText, DocumentProblem> {
    environment_secret(name).ok_or_else(|| {
        let rule = format!("names {name}, which is not set");
        DocumentProblem::new(format!("{place}.env"), rule)
    })
}

fn from_file(path: &str, place: &str) -> Result<SecretText, DocumentProblem> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(SecretText::new(text.trim_end_matches(['\r', '\n']))),
        Err(error) => {
            let rule = format!("names a file that cannot be read: {error}");
            Err(DocumentProblem::new(format!("{place}.file"), rule))
        }
    }
}

fn hash(
    secret: &RegisteredSecret,
    origin: &DocumentOrigin<'_>,
    place: &str,
) -> Result<GivenSecret, DocumentProblem> {
    let (algorithm, digest) = match &secret.material {
        SecretMaterial::Text(source) => {
            let text = fetch(source, origin, place)?;
            check_own(text.expose()).map_err(|rule| DocumentProblem::new(place, rule))?;
            (DigestAlgorithm::Sha256, sha256(&text))
        }
        SecretMaterial::Sha256(digest) => (DigestAlgorithm::Sha256, digest.clone()),
        SecretMaterial::Sha512(digest) => (DigestAlgorithm::Sha512, digest.clone()),
    };
    let digest = SecretDigest {
        algorithm,
        digest,
        expires_at: secret.expires_at,
    };
    Ok(GivenSecret {
        digest,
        description: secret.description.clone(),
    })
}

fn sha256(text: &SecretText) -> SecretBytes {
    SecretBytes::new(Sha256::digest(text.expose()).to_vec())
}

pub fn sealed_text(
    text: &SecretText,
    description: &str,
    expires_at: Option<Instant>,
    sealer: &Sealer,
) -> SecretRow {
    let digest = SecretDigest {
        algorithm: DigestAlgorithm::Sha256,
        digest: sha256(text),
        expires_at,
    };
    sealed(
        &GivenSecret {
            digest,
            description: description.to_owned(),
        },
        sealer,
    )
}

/// Under an id of its own.
pub fn sealed(secret: &GivenSecret, sealer: &Sealer) -> SecretRow {
    SecretRow {
        id: random::bytes(),
        sealed_digest: SecretBytes::new(sealer.seal(secret.digest.encode().expose())),
        description: secret.description.clone(),
        expires_at: secret.digest.expires_at,
    }
}
