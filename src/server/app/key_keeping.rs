//! Makes, announces, erases and forgets signing keys when they are due. The leading process does
//! it, or a command.

use std::time::Duration;

use serde_json::{Value, json};

use crate::config::Config;
use crate::keys::sealing::Sealer;
use crate::keys::signing::{SigningKey, generate};
use gatepost_protocol::keys::key_schedule::{KeySeasons, KeyStep, KeyTimes, ScheduledKey, due};
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::secret::SecretBytes;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::signing_keys::{self, SigningKeyRow};
use gatepost_store::{Result, Store, StoreError};

const DAY: Duration = Duration::from_secs(86_400);

pub fn seasons(config: &Config) -> KeySeasons {
    let days = config.key_days;
    KeySeasons {
        announce: DAY * days.announce,
        sign: DAY * days.sign,
        publish: DAY * days.publish,
        hint: DAY * days.hint,
    }
}

/// A new key with its private part wrapped, ready to be stored.
pub fn new_key(
    algorithm: SigningAlgorithm,
    times: KeyTimes,
    sealer: &Sealer,
) -> Result<SigningKeyRow> {
    let pkcs8 = generate(algorithm).map_err(StoreError::Refused)?;
    key_of(algorithm, &pkcs8, times, sealer)
}

/// The row of a private key in PKCS#8. `Refused` when it is not one of that algorithm.
pub fn key_of(
    algorithm: SigningAlgorithm,
    pkcs8: &SecretBytes,
    times: KeyTimes,
    sealer: &Sealer,
) -> Result<SigningKeyRow> {
    let key = SigningKey::from_pkcs8(algorithm, pkcs8).map_err(StoreError::Refused)?;
    Ok(SigningKeyRow {
        kid: key.kid().to_owned(),
        algorithm,
        wrapped_private: Some(SecretBytes::new(sealer.seal(pkcs8.expose()))),
        public_jwk: key.public_key().to_jwk(),
        times,
    })
}

pub fn scheduled(keys: &[SigningKeyRow]) -> Vec<ScheduledKey> {
    keys.iter().map(SigningKeyRow::to_core).collect()
}

/// Does what is due, in one process at a time, and answers a line for each step. Usually one read
/// finds nothing to do.
pub fn keep(
    store: &Store,
    sealer: &Sealer,
    seasons: &KeySeasons,
    now: Instant,
) -> Result<Vec<String>> {
    if due(&scheduled(&signing_keys::load(store)?.value), seasons, now).is_empty() {
        return Ok(Vec::new());
    }
    store.change_registry(|writer| {
        if !writer.leads()? {
            return Ok(Vec::new());
        }
        // Another process may have done it in between.
        let keys = writer.reader.signing_keys()?;
        let steps = due(&scheduled(&keys), seasons, now);
        steps
            .iter()
            .map(|step| perform(writer, step, &keys, sealer))
            .collect()
    })
}

/// Takes one step, writes its audit event, and answers the line for the log.
pub fn perform(
    writer: &mut RegistryWriter<'_>,
    step: &KeyStep,
    keys: &[SigningKeyRow],
    sealer: &Sealer,
) -> Result<String> {
    let (event, kid, line) = match step {
        KeyStep::Make { algorithm, times } => {
            let key = new_key(*algorithm, *times, sealer)?;
            writer.insert_signing_key(&key)?;
            let from = timestamp::format(times.activates_at);
            let line = format!(
                "made {} key {}, which signs from {from}",
                algorithm.as_str(),
                key.kid
            );
            ("signing_key_made", key.kid, line)
        }
        KeyStep::Reschedule { kid, times } => {
            writer.reschedule_signing_key(kid, times)?;
            let until = timestamp::format(times.retires_at);
            (
                "signing_key_rescheduled",
                kid.clone(),
                format!("signing key {kid} signs until {until}"),
            )
        }
        KeyStep::Erase { kid } => {
            writer.rewrap_signing_key(kid, None)?;
            (
                "signing_key_erased",
                kid.clone(),
                format!("erased the private part of signing key {kid}"),
            )
        }
        KeyStep::Forget { kid } => {
            writer.remove_signing_key(kid)?;
            (
                "signing_key_forgotten",
                kid.clone(),
                format!("forgot signing key {kid}"),
            )
        }
    };
    let old = keys.iter().find(|key| key.kid == kid).map(times_of);
    let new = match step {
        KeyStep::Make { times, .. } | KeyStep::Reschedule { times, .. } => Some(told_times(times)),
        KeyStep::Erase { .. } => old.clone(),
        KeyStep::Forget { .. } => None,
    };
    let detail = json!({"kid": kid, "old": old, "new": new});
    writer.audit(&AuditEvent {
        event,
        detail,
        ..AuditEvent::default()
    })?;
    Ok(line)
}

pub fn told_times(times: &KeyTimes) -> Value {
    json!({
        "announced_at": timestamp::format(times.announced_at),
        "activates_at": timestamp::format(times.activates_at),
        "retires_at": timestamp::format(times.retires_at),
        "unpublished_at": timestamp::format(times.unpublished_at),
        "forgotten_at": timestamp::format(times.forgotten_at),
    })
}

pub fn times_of(key: &SigningKeyRow) -> Value {
    told_times(&key.times)
}
