//! `gatepost key`: signing keys. What comes after a lost master secret is in `sealed.rs`.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use serde_json::{Value, json};

use super::arguments::Invocation;
use super::imported_key::{self, ImportedKey};
use super::input::{self, unread};
use super::key_standing::{KeyStanding, KeyState, standing};
use super::operator::{EVERYWHERE, Operator};
use super::output::{self, CommandResult, Failure, misuse, note, say, time};
use super::registry::{bytes_of, called};
use gatepost_protocol::keys::key_schedule::{KeySeasons, KeyTimes, announced, current};
use gatepost_protocol::registration::names::hint;
use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::secret::SecretText;
use gatepost_registrar::events::audit_event;
use gatepost_server::app::key_keeping::{self, key_of, new_key, times_of, told_times};
use gatepost_server::keys::sealing::Sealer;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::signing_keys::{self, SigningKeyRow};

pub fn list(operator: &Operator) -> CommandResult {
    let now = operator.now()?;
    let json = operator.has("--json");
    let keys = signing_keys::load(&operator.store)?.value;
    let scheduled = key_keeping::scheduled(&keys);
    let object = |key| shown(key, &standing(&key.to_core(), &scheduled, now), json);
    output::list(operator, keys.iter().map(object).collect())
}

fn shown(key: &SigningKeyRow, standing: &KeyStanding, json: bool) -> Value {
    let (state, does) = match standing.state {
        KeyState::Announced => ("announced", "is published, signs next"),
        KeyState::Signing => ("signing", "signs"),
        KeyState::Published => ("published", "is published for what it signed"),
        KeyState::Retired => ("retired", "checks id_token_hint only"),
    };
    let since = time(standing.since);
    let until = standing.until.map(time);
    let kid = &key.kid;
    let alg = key.algorithm.as_str();
    if !json {
        let until = until.unwrap_or_else(|| String::from("another follows"));
        return json!({
            "kid": kid, "alg": alg, "state": state, "does": does,
            "since": since, "until": until,
        });
    }
    let has_private_part = key.wrapped_private.is_some();
    let mut value = json!({
        "kid": kid, "alg": alg, "state": state, "since": since, "until": until,
        "has_private_part": has_private_part,
    });
    if let (Some(members), Value::Object(times)) = (value.as_object_mut(), times_of(key)) {
        members.extend(times);
    }
    value
}

pub fn rotate(invocation: &Invocation) -> CommandResult {
    let algorithms = algorithms(invocation)?;
    if invocation.has("--now") {
        input::confirm(invocation, ERASES)?;
    }
    let mut rotation = Rotation::open(invocation)?;
    let mut lines = rotation.perform_all(&algorithms)?;
    if invocation.has("--now") {
        rotation.hasten()?;
        lines = rotation.perform_all(&algorithms)?;
    }
    say(lines.join("\n"))
}

/// All of them, unless one is named.
fn algorithms(invocation: &Invocation) -> CommandResult<Vec<SigningAlgorithm>> {
    let Some(name) = invocation.option("--algorithm") else {
        return Ok(SigningAlgorithm::ALL.to_vec());
    };
    match SigningAlgorithm::from_name(name) {
        Some(algorithm) => Ok(vec![algorithm]),
        None => misuse(format!(
            "--algorithm must be RS256, ES256 or EdDSA, not \"{}\"",
            name.escape_debug()
        )),
    }
}

const ERASES: &str = "This erases the private part of the key that signs now.";

struct Rotation {
    operator: Operator,
    seasons: KeySeasons,
    sealer: Sealer,
    now: Instant,
    /// The new key signs at once, and the old one never again.
    at_once: bool,
}

impl Rotation {
    fn open(invocation: &Invocation) -> CommandResult<Rotation> {
        let operator = Operator::open(invocation)?;
        Ok(Rotation {
            seasons: key_keeping::seasons(&operator.config),
            sealer: operator.sealers()?.signing_keys,
            now: operator.now()?,
            at_once: false,
            operator,
        })
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut RegistryWriter<'_>) -> CommandResult<T>,
    ) -> CommandResult<T> {
        self.operator.store.change_registry(change)
    }

    /// From now on the key that is announced takes over at once. Not before every process publishes
    /// it: what one of them signs, no key set of another may disown.
    fn hasten(&mut self) -> CommandResult {
        note("The new key is announced. In 2 seconds every process publishes it; then it signs.");
        thread::sleep(EVERYWHERE);
        (self.now, self.at_once) = (self.operator.now()?, true);
        Ok(())
    }

    fn perform_all(&self, algorithms: &[SigningAlgorithm]) -> CommandResult<Vec<String>> {
        self.change(|writer| {
            let mut lines = Vec::new();
            for algorithm in algorithms {
                lines.push(self.perform(writer, *algorithm, None)?);
            }
            Ok(lines)
        })
    }

    fn perform(
        &self,
        writer: &mut RegistryWriter<'_>,
        algorithm: SigningAlgorithm,
        kid: Option<&str>,
    ) -> CommandResult<String> {
        let rows = writer.reader.signing_keys()?;
        let scheduled = key_keeping::scheduled(&rows);
        let kid =
            kid.or_else(|| announced(&scheduled, algorithm, self.now).map(|key| key.kid.as_str()));
        let waiting = kid.and_then(|kid| rows.iter().find(|row| row.kid == kid));
        let successor = match waiting {
            Some(key) if !self.at_once => {
                writer.confirm()?;
                let kid = &key.kid;
                let from = time(key.times.activates_at);
                return Ok(format!(
                    "{}: {kid} is announced already and signs from {from}",
                    algorithm.as_str()
                ));
            }
            // Some clients know it already: better than a key that nobody does.
            Some(key) => {
                let times = self.seasons.active_from(key.times.announced_at, self.now);
                writer.reschedule_signing_key(&key.kid, &times)?;
                SigningKeyRow {
                    times,
                    ..key.clone()
                }
            }
            None => {
                let key = new_key(algorithm, self.times_of_new_key(), &self.sealer)?;
                writer.insert_signing_key(&key)?;
                key
            }
        };
        let replaced = self.take_over(writer, &rows, &successor)?;
        let old = rows
            .iter()
            .find(|row| row.kid == successor.kid)
            .map(times_of);
        let detail = json!({
            "kid": successor.kid,
            "alg": algorithm.as_str(),
            "old": old,
            "new": times_of(&successor),
            "replaced": replaced,
        });
        writer.audit(&audit_event("signing_key_rotated", detail))?;
        Ok(told(&successor))
    }

    fn times_of_new_key(&self) -> KeyTimes {
        if self.at_once {
            self.seasons.active_at_once(self.now)
        } else {
            self.seasons.announced_at(self.now)
        }
    }

    /// Answers what became of it, for the audit log. The key that signed until now ends when the
    /// new one begins; at once means that it must never sign again.
    fn take_over(
        &self,
        writer: &mut RegistryWriter<'_>,
        rows: &[SigningKeyRow],
        successor: &SigningKeyRow,
    ) -> CommandResult<Option<Value>> {
        let Some(old) = self.signer(rows, successor.algorithm) else {
            return Ok(None);
        };
        // Of one instant, it never signed.
        let ends = successor
            .times
            .activates_at
            .max(old.times.activates_at.plus(Duration::from_micros(1)));
        let times = self
            .seasons
            .retiring_at(old.times.announced_at, old.times.activates_at, ends);
        writer.reschedule_signing_key(&old.kid, &times)?;
        if self.at_once {
            writer.rewrap_signing_key(&old.kid, None)?;
        }
        let before = times_of(old);
        let after = told_times(&times);
        Ok(Some(
            json!({"kid": old.kid, "old": before, "new": after, "erased": self.at_once}),
        ))
    }

    /// Has the next key announced, or take over, where this one signs; answers whether it does.
    fn succeed(&self, writer: &mut RegistryWriter<'_>, kid: &str) -> CommandResult<bool> {
        let rows = writer.reader.signing_keys()?;
        let algorithm = find(&rows, kid)?.algorithm;
        let signer = self.signer(&rows, algorithm);
        let signs = signer.is_some_and(|signer| signer.kid == kid);
        if signs {
            self.perform(writer, algorithm, None)?;
        }
        Ok(signs)
    }

    /// Removes the key; answers the one that signs in its place, where it did.
    fn remove(
        &self,
        writer: &mut RegistryWriter<'_>,
        kid: &str,
        signed: bool,
    ) -> CommandResult<Option<String>> {
        let rows = writer.reader.signing_keys()?;
        let leaked = find(&rows, kid)?;
        writer.remove_signing_key(kid)?;
        let successor = self.signer(&rows, leaked.algorithm);
        let successor = successor.filter(|_| signed).map(|key| key.kid.clone());
        let detail = json!({
            "kid": kid,
            "alg": leaked.algorithm.as_str(),
            "old": times_of(leaked),
            "successor": successor,
        });
        writer.audit(&audit_event("signing_key_retired", detail))?;
        Ok(successor)
    }

    /// Answers its name, and what to tell.
    fn take_in(
        &self,
        writer: &mut RegistryWriter<'_>,
        key: &ImportedKey,
        kid: Option<&str>,
    ) -> CommandResult<(String, String)> {
        let rows = writer.reader.signing_keys()?;
        let row = key_of(
            key.algorithm,
            &key.pkcs8,
            self.times_of_new_key(),
            &self.sealer,
        )?;
        let row = SigningKeyRow {
            kid: kid.map_or(row.kid, str::to_owned),
            ..row
        };
        check_new(&rows, &row)?;
        writer.insert_signing_key(&row)?;
        let replaced = self.take_over(writer, &rows, &row)?;
        let alg = key.algorithm.as_str();
        let detail =
            json!({"kid": row.kid, "alg": alg, "new": times_of(&row), "replaced": replaced});
        writer.audit(&audit_event("signing_key_imported", detail))?;
        let line = told(&row);
        Ok((row.kid, line))
    }

    /// The key that signs.
    fn signer<'r>(
        &self,
        rows: &'r [SigningKeyRow],
        algorithm: SigningAlgorithm,
    ) -> Option<&'r SigningKeyRow> {
        let scheduled = key_keeping::scheduled(rows);
        let signer = current(&scheduled, algorithm, self.now)?;
        rows.iter().find(|row| row.kid == signer.kid)
    }
}

fn told(key: &SigningKeyRow) -> String {
    format!(
        "{}: {} signs from {}",
        key.algorithm.as_str(),
        key.kid,
        time(key.times.activates_at)
    )
}

/// After a leak.
pub fn retire(invocation: &Invocation) -> CommandResult {
    let mut rotation = Rotation::open(invocation)?;
    let kid = invocation.value(0);
    let operator = &rotation.operator;
    operator.confirmed(find(&signing_keys::load(&operator.store)?.value, kid))?;
    input::confirm(
        invocation,
        &format!("This takes {kid} out of the key set for good: what it signed is refused."),
    )?;
    let signs = rotation.change(|writer| rotation.succeed(writer, kid))?;
    if signs {
        // Published everywhere before it signs; and nobody signs with the leaked one any more when
        // that is no longer published.
        rotation.hasten()?;
        rotation.change(|writer| rotation.succeed(writer, kid))?;
        thread::sleep(EVERYWHERE);
    }
    let successor = rotation.change(|writer| rotation.remove(writer, kid, signs))?;
    let mut text = String::from(
        "it is out of the key set, and what it signed is refused here; others refuse it once they \
         read the key set anew",
    );
    if let Some(kid) = successor {
        text.push_str(&format!("\n{kid} signs from now on"));
    }
    say(text)
}

fn find<'a>(rows: &'a [SigningKeyRow], kid: &str) -> CommandResult<&'a SigningKeyRow> {
    rows.iter().find(|row| row.kid == kid).ok_or_else(|| {
        let hint = hint(kid, rows.iter().map(|row| row.kid.as_str()));
        Failure::Refused(format!(
            "there is no signing key \"{}\"{hint}",
            kid.escape_debug()
        ))
    })
}

/// Of the file, in bytes.
const LONGEST: u64 = 65_536;

pub fn import(invocation: &Invocation) -> CommandResult {
    let pem = read(invocation.value(0))?;
    let key = imported_key::read(&pem).map_err(Failure::Refused)?;
    let kid = invocation.option("--kid");
    if let Some(kid) = kid {
        check_kid(kid)?;
    }
    if invocation.has("--now") {
        input::confirm(invocation, ERASES)?;
    }
    let mut rotation = Rotation::open(invocation)?;
    let taken_in = rotation.change(|writer| rotation.take_in(writer, &key, kid));
    let (kid, mut line) = rotation.operator.confirmed(taken_in)?;
    if invocation.has("--now") {
        rotation.hasten()?;
        line = rotation.change(|writer| rotation.perform(writer, key.algorithm, Some(&kid)))?;
    }
    say(line)
}

fn check_kid(kid: &str) -> CommandResult {
    let is_printable = kid.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if (1..=200).contains(&kid.len()) && is_printable {
        return Ok(());
    }
    misuse("--kid must be 1 to 200 printable ASCII characters")
}

fn check_new(rows: &[SigningKeyRow], new: &SigningKeyRow) -> CommandResult {
    for row in rows {
        if row.kid == new.kid || row.public_jwk == new.public_jwk {
            return refuse!("signing key {} is there already", row.kid);
        }
    }
    Ok(())
}

/// From standard input, or from a file that nobody else can read: a key that others had is none.
fn read(file: &str) -> CommandResult<SecretText> {
    let name = called(file);
    let unread = |error: io::Error| unread(&name, &error);
    if file != "-" {
        let mode = fs::metadata(file).map_err(unread)?.permissions().mode() & 0o777;
        if mode & 0o037 != 0 {
            let name = Path::new(file).display();
            return refuse!("{name}: mode {mode:04o} lets others at it; chmod 0400 it, or 0440");
        }
    }
    let bytes = bytes_of(file, LONGEST).map_err(unread)?;
    let text = String::from_utf8(bytes).or_else(|_| refuse!("{name} is not PEM"))?;
    Ok(SecretText::new(text))
}
