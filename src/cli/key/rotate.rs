//! `gatepost key rotate`, and how one key takes over from another.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::app::key_keeping::{self, new_key, times_of, told_times};
use crate::cli::arguments::Invocation;
use crate::cli::command::{Command, CommandOption, Run};
use crate::cli::failure::Failure;
use crate::cli::operator::{Operator, audit_event};
use crate::cli::output::{self, time};
use crate::keys::master::Purpose;
use crate::keys::sealing::Sealer;
use crate::protocol::keys::key_schedule::{KeySeasons, KeyTimes, announced, current};
use crate::protocol::words::client::SigningAlgorithm;
use crate::protocol::words::instant::Instant;
use crate::store::registry_writer::RegistryWriter;
use crate::store::signing_keys::SigningKeyRow;

pub(in crate::cli) const ROTATE: Command = Command {
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
            meaning: "sign with the new key after 2 seconds, once every process publishes it, and erase the old private part; \
                      some clients will fail until they have read the new key set. After a leak: `gatepost key retire`",
        },
    ],
    summary: "Makes the next signing key and announces it; it signs once everybody can know it. Happens by itself in time.",
    example: "gatepost key rotate --algorithm ES256",
    run: Run::Once(run),
};

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let algorithms = super::algorithms(invocation)?;
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealer = Sealer::new(&operator.derived_keys(&installation)?, Purpose::SigningKey);
    let mut rotation = Rotation::open(&operator, sealer, false)?;
    let rotate = |rotation: &Rotation| {
        operator.store.change_registry(|writer| {
            algorithms.iter().map(|algorithm| rotation.perform(writer, *algorithm, None)).collect::<Result<Vec<_>, _>>()
        })
    };
    let mut lines = rotate(&rotation)?;
    if invocation.has("--now") {
        rotation.hasten(&operator)?;
        lines = rotate(&rotation)?;
    }
    output::line(&lines.join("\n"))
}

/// Every process reads once a second what is new.
pub(super) const EVERYWHERE: Duration = Duration::from_secs(2);

pub(super) struct Rotation {
    pub(super) seasons: KeySeasons,
    pub(super) sealer: Sealer,
    pub(super) now: Instant,
    /// The new key signs at once, and the old one never again.
    pub(super) at_once: bool,
}

impl Rotation {
    pub(super) fn open(operator: &Operator, sealer: Sealer, at_once: bool) -> Result<Rotation, Failure> {
        let seasons = key_keeping::seasons(&operator.config);
        Ok(Rotation { seasons, sealer, now: operator.now()?, at_once })
    }

    /// From now on the key that is announced takes over at once. Not before every process publishes it: what one of them signs,
    /// no key set of another may disown.
    pub(super) fn hasten(&mut self, operator: &Operator) -> Result<(), Failure> {
        output::note("The new key is announced. In 2 seconds every process publishes it; then it signs.");
        thread::sleep(EVERYWHERE);
        (self.now, self.at_once) = (operator.now()?, true);
        Ok(())
    }

    pub(super) fn perform(
        &self,
        writer: &mut RegistryWriter<'_>,
        algorithm: SigningAlgorithm,
        kid: Option<&str>,
    ) -> Result<String, Failure> {
        let rows = writer.signing_keys()?;
        let scheduled = key_keeping::scheduled(&rows);
        let kid = kid.or_else(|| announced(&scheduled, algorithm, self.now).map(|key| key.kid.as_str()));
        let waiting = kid.and_then(|kid| rows.iter().find(|row| row.kid == kid));
        let successor = match waiting {
            Some(key) if !self.at_once => {
                let (kid, from) = (&key.kid, time(key.times.activates_at));
                return Ok(format!("{}: {kid} is announced already and signs from {from}", algorithm.as_str()));
            }
            // Some clients know it already: better than a key that nobody does.
            Some(key) => {
                let times = self.seasons.active_from(key.times.announced_at, self.now);
                writer.reschedule_signing_key(&key.kid, &times)?;
                SigningKeyRow { times, ..key.clone() }
            }
            None => {
                let key = new_key(algorithm, self.times_of_new_key(), &self.sealer)?;
                writer.insert_signing_key(&key)?;
                key
            }
        };
        let replaced = self.take_over(writer, &rows, &successor)?;
        let old = rows.iter().find(|row| row.kid == successor.kid).map(times_of);
        let detail = json!({
            "kid": successor.kid, "alg": algorithm.as_str(), "old": old, "new": times_of(&successor), "replaced": replaced,
        });
        writer.audit(&audit_event("signing_key_rotated", detail))?;
        Ok(format!("{}: {} signs from {}", algorithm.as_str(), successor.kid, time(successor.times.activates_at)))
    }

    pub(super) fn times_of_new_key(&self) -> KeyTimes {
        if self.at_once { self.seasons.active_at_once(self.now) } else { self.seasons.announced_at(self.now) }
    }

    /// Answers what became of it, for the audit log. The key that signed until now ends when the new one begins; at once means that it must never sign again.
    pub(super) fn take_over(
        &self,
        writer: &mut RegistryWriter<'_>,
        rows: &[SigningKeyRow],
        successor: &SigningKeyRow,
    ) -> Result<Option<Value>, Failure> {
        let scheduled = key_keeping::scheduled(rows);
        let old = current(&scheduled, successor.algorithm, self.now);
        let Some(old) = old.and_then(|old| rows.iter().find(|row| row.kid == old.kid)) else { return Ok(None) };
        // Of one instant, it never signed.
        let ends = successor.times.activates_at.max(old.times.activates_at.plus(Duration::from_micros(1)));
        let times = self.seasons.retiring_at(old.times.announced_at, old.times.activates_at, ends);
        writer.reschedule_signing_key(&old.kid, &times)?;
        if self.at_once {
            writer.rewrap_signing_key(&old.kid, None)?;
        }
        let (before, after) = (times_of(old), told_times(&times));
        Ok(Some(json!({"kid": old.kid, "old": before, "new": after, "erased": self.at_once})))
    }
}
