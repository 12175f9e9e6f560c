//! Users of a document on their way into the database.

use serde_json::{Map, Value, json};

use crate::crypto::password::PasswordHashing;
use crate::protocol::registration::Problem;
use crate::protocol::registration::user::{Credential, UserEntry};
use crate::protocol::secret::SecretText;
use crate::store::StoreError;
use crate::store::registry_writer::{RegistryWriter, UserChange};
use crate::store::users::{NewUser, UserRow};

use super::Outcome;
use crate::cli::failure::Failure;
use crate::cli::operator::audit_event;
use crate::cli::user::new_subject;

/// Adds the user, or makes the stored one like it.
pub(super) fn apply(
    writer: &mut RegistryWriter<'_>,
    entry: &UserEntry,
    place: &str,
    hashing: &PasswordHashing,
) -> Result<Outcome, Failure> {
    let stored = match &entry.subject {
        Some(subject) => writer.user(subject)?,
        None => writer.user_by_name(entry.tenant.as_ref(), &entry.username)?,
    };
    let outcome = match stored {
        Some(stored) => change(writer, entry, &stored),
        None => add(writer, entry, hashing),
    };
    outcome.map_err(|failure| match failure {
        Change::Taken => Failure::of_document(&[Problem::new(place, "has the user name or sub of another user")]),
        Change::Failed(failure) => failure,
    })
}

enum Change {
    Taken,
    Failed(Failure),
}

impl From<StoreError> for Change {
    fn from(error: StoreError) -> Change {
        if matches!(error, StoreError::Taken(_)) { Change::Taken } else { Change::Failed(Failure::from(error)) }
    }
}

fn add(writer: &mut RegistryWriter<'_>, entry: &UserEntry, hashing: &PasswordHashing) -> Result<Outcome, Change> {
    let password_hash = match &entry.credential {
        Some(Credential::Password(password)) => {
            let hash = hashing.hash(password).map_err(|error| Change::Failed(Failure::Refused(error)))?;
            Some(SecretText::new(hash))
        }
        Some(Credential::Hash(hash)) => Some(hash.clone()),
        None => None,
    };
    let new = NewUser {
        sub: entry.subject.clone().unwrap_or_else(new_subject),
        username: entry.username.clone(),
        tenant: entry.tenant.clone(),
        password_hash,
        enabled: entry.enabled,
        claims: claims(entry),
    };
    let mut event = audit_event("user_added", json!({"username": new.username}));
    event.sub = Some(&new.sub);
    writer.insert_user(&new, &event)?;
    Ok(Outcome::Added)
}

/// A `password` does not count here: it is only the first one.
fn change(writer: &mut RegistryWriter<'_>, entry: &UserEntry, stored: &UserRow) -> Result<Outcome, Change> {
    let password_hash = match &entry.credential {
        Some(Credential::Hash(hash)) => Some(hash).filter(|hash| stored.password_hash.as_ref() != Some(hash)),
        Some(Credential::Password(_)) | None => None,
    };
    let claims = claims(entry);
    let is_same = stored.username == entry.username
        && stored.tenant == entry.tenant
        && stored.enabled == entry.enabled
        && stored.claims == claims
        && password_hash.is_none();
    if is_same {
        return Ok(Outcome::Unchanged);
    }
    writer.update_user(&UserChange {
        sub: &stored.sub,
        username: &entry.username,
        tenant: entry.tenant.as_ref(),
        enabled: entry.enabled,
        claims: &claims,
        password_hash,
    })?;
    let mut event = audit_event("user_changed", json!({"enabled": entry.enabled, "password": password_hash.is_some()}));
    event.sub = Some(&stored.sub);
    writer.audit(&event)?;
    Ok(Outcome::Changed)
}

fn claims(entry: &UserEntry) -> Map<String, Value> {
    entry.claims.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}
