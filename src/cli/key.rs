//! `gatepost key`: signing keys.

use serde_json::{Value, json};

use crate::crypto::master::Purpose;
use crate::crypto::sealing::Sealer;
use crate::crypto::signing::{SigningKey, generate};
use crate::protocol::client::SigningAlgorithm;
use crate::protocol::instant::Instant;
use crate::protocol::key_schedule::{KeySeasons, KeyTimes};
use crate::protocol::secret::SecretBytes;
use crate::store::registry_writer::RegistryWriter;
use crate::store::signing_keys::{self, SigningKeyRow};

use super::arguments::Invocation;
use super::command::{Command, CommandOption, JSON, Run};
use super::failure::Failure;
use super::operator::{Operator, audit_event};
use super::output::{self, time};

pub(super) const LIST: Command = Command {
    name: "key list",
    values: &[],
    options: &[JSON],
    summary: "Lists the signing keys and their times.",
    example: "gatepost key list",
    run: Run::Once(list),
};

pub(super) const ROTATE: Command = Command {
    name: "key rotate",
    values: &[],
    options: &[
        CommandOption {
            name: "--algorithm",
            value: Some("ALG"),
            meaning: "RS256, ES256 or EdDSA alone; otherwise all",
        },
        CommandOption {
            name: "--now",
            value: None,
            meaning: "sign with the new key at once and erase the old one: after a leak; some clients will fail until they \
                      have read the new key set",
        },
    ],
    summary: "Makes the next signing key and announces it; it signs once everybody can know it.",
    example: "gatepost key rotate --algorithm ES256",
    run: Run::Once(rotate),
};

/// A new key with its private part wrapped, ready to be stored.
pub(super) fn new_key(algorithm: SigningAlgorithm, times: KeyTimes, sealer: &Sealer) -> Result<SigningKeyRow, Failure> {
    let pkcs8 = generate(algorithm).map_err(Failure::Refused)?;
    let key = SigningKey::from_pkcs8(algorithm, &pkcs8).map_err(Failure::Refused)?;
    Ok(SigningKeyRow {
        kid: key.kid().to_owned(),
        algorithm,
        wrapped_private: Some(SecretBytes::new(sealer.seal(pkcs8.expose()))),
        public_jwk: key.public_key().to_jwk(),
        announced_at: times.announced_at,
        activates_at: times.activates_at,
        retires_at: times.retires_at,
        unpublished_at: times.unpublished_at,
        forgotten_at: times.forgotten_at,
    })
}

fn list(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    let now = operator.now()?;
    let keys = signing_keys::load(&operator.store)?.value;
    let rows: Vec<(Vec<String>, Value)> = keys.iter().map(|key| row(key, &keys, now)).collect();
    output::list(invocation.has("--json"), &["KID", "ALG", "STATE", "SIGNS FROM", "UNTIL", "PUBLISHED UNTIL"], &rows)
}

fn row(key: &SigningKeyRow, keys: &[SigningKeyRow], now: Instant) -> (Vec<String>, Value) {
    let (alg, state) = (key.algorithm.as_str(), state(key, keys, now));
    let times = [key.activates_at, key.retires_at, key.unpublished_at].map(time);
    let cells = [key.kid.as_str(), alg, state].into_iter().map(str::to_owned).chain(times).collect();
    let value = json!({
        "kid": key.kid,
        "alg": alg,
        "state": state,
        "announced_at": time(key.announced_at),
        "activates_at": time(key.activates_at),
        "retires_at": time(key.retires_at),
        "unpublished_at": time(key.unpublished_at),
        "forgotten_at": time(key.forgotten_at),
    });
    (cells, value)
}

/// The youngest key that may sign does, even past its time when nothing follows it.
fn state(key: &SigningKeyRow, keys: &[SigningKeyRow], now: Instant) -> &'static str {
    if now < key.activates_at {
        "announced"
    } else if current(keys, key.algorithm, now).is_some_and(|current| current.kid == key.kid) {
        "signing"
    } else if now < key.unpublished_at {
        "published"
    } else {
        "retired"
    }
}

fn current(keys: &[SigningKeyRow], algorithm: SigningAlgorithm, now: Instant) -> Option<&SigningKeyRow> {
    let able =
        |key: &&SigningKeyRow| key.algorithm == algorithm && key.wrapped_private.is_some() && key.activates_at <= now;
    keys.iter().filter(able).max_by_key(|key| key.activates_at)
}

fn rotate(invocation: &Invocation) -> Result<(), Failure> {
    let algorithms = match invocation.option("--algorithm") {
        None => SigningAlgorithm::ALL.to_vec(),
        Some(name) => vec![SigningAlgorithm::from_name(name).ok_or_else(|| {
            Failure::Usage(format!("--algorithm must be RS256, ES256 or EdDSA, not \"{}\"", name.escape_debug()))
        })?],
    };
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealer = Sealer::new(&operator.derived_keys(&installation)?, Purpose::SigningKey);
    let rotation =
        Rotation { seasons: operator.key_seasons(), sealer, now: operator.now()?, at_once: invocation.has("--now") };
    let lines = operator.store.change_registry(|writer| {
        algorithms.iter().map(|algorithm| rotation.perform(writer, *algorithm)).collect::<Result<Vec<_>, _>>()
    })?;
    output::line(&lines.join("\n"))
}

struct Rotation {
    seasons: KeySeasons,
    sealer: Sealer,
    now: Instant,
    at_once: bool,
}

impl Rotation {
    fn perform(&self, writer: &mut RegistryWriter<'_>, algorithm: SigningAlgorithm) -> Result<String, Failure> {
        let keys = writer.signing_keys()?;
        let announced = keys.iter().find(|key| key.algorithm == algorithm && self.now < key.activates_at);
        let successor = match announced {
            Some(key) if !self.at_once => {
                let (kid, from) = (&key.kid, time(key.activates_at));
                return Ok(format!("{}: {kid} is announced already and signs from {from}", algorithm.as_str()));
            }
            // Some clients know it already: better than a key that nobody does.
            Some(key) => {
                let times = self.seasons.active_from(key.announced_at, self.now);
                let key = rescheduled(key, times);
                writer.reschedule_signing_key(&key)?;
                key
            }
            None => {
                let key = new_key(algorithm, self.times_of_new_key(), &self.sealer)?;
                writer.insert_signing_key(&key)?;
                key
            }
        };
        if let Some(old) = current(&keys, algorithm, self.now) {
            self.retire(writer, old, successor.activates_at)?;
        }
        let detail =
            json!({"kid": successor.kid, "alg": algorithm.as_str(), "activates_at": time(successor.activates_at)});
        writer.audit(&audit_event("signing_key_rotated", detail))?;
        Ok(format!("{}: {} signs from {}", algorithm.as_str(), successor.kid, time(successor.activates_at)))
    }

    fn times_of_new_key(&self) -> KeyTimes {
        if self.at_once { self.seasons.active_at_once(self.now) } else { self.seasons.announced_at(self.now) }
    }

    /// The old key ends when the new one begins; at once means that it must never sign again.
    fn retire(&self, writer: &mut RegistryWriter<'_>, old: &SigningKeyRow, at: Instant) -> Result<(), Failure> {
        let times = self.seasons.retiring_at(old.announced_at, old.activates_at, at);
        writer.reschedule_signing_key(&rescheduled(old, times))?;
        if self.at_once {
            writer.rewrap_signing_key(&old.kid, None)?;
        }
        Ok(())
    }
}

fn rescheduled(key: &SigningKeyRow, times: KeyTimes) -> SigningKeyRow {
    SigningKeyRow {
        activates_at: times.activates_at,
        retires_at: times.retires_at,
        unpublished_at: times.unpublished_at,
        forgotten_at: times.forgotten_at,
        ..key.clone()
    }
}
