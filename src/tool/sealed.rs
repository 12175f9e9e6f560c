//! Everything that stands in the database sealed under the master secret: signing keys, digests of
//! the secrets of clients and resources, secrets of ours at identity providers. And the commands
//! that make, change or have lost that secret.

use serde_json::json;

use super::arguments::Invocation;
use super::input;
use super::operator::Operator;
use super::output::{self, CommandResult, Failure, say};
use crate::statements::sealed_factors::{self, ResealedFactor};
use gatepost_protocol::keys::key_schedule::{KeySeasons, KeyTimes, current};
use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::secret::SecretBytes;
use gatepost_registrar::events::audit_event;
use gatepost_registrar::statements::{catalogue_changes, client_changes};
use gatepost_server::app::key_keeping::{self, new_key};
use gatepost_server::keys::master;
use gatepost_server::keys::sealing::Sealer;
use gatepost_server::registry::Sealers;
use gatepost_store::Result;
use gatepost_store::authenticators::Authenticator;
use gatepost_store::catalogue::CatalogueRow;
use gatepost_store::clients::SecretRow;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::signing_keys::SigningKeyRow;

/// How many second factors `secret rotate` seals anew in one statement.
const FACTORS_AT_ONCE: usize = 100;

/// Something that is sealed, and whose it is.
struct Sealed {
    name: String,
    /// What to do where it is lost, behind a colon.
    remedy: String,
    of: Holder,
    sealed: SecretBytes,
}

enum Holder {
    Key(SigningKeyRow),
    /// The digest of a client's secret, or of a resource's.
    Secret {
        is_of_client: bool,
        owner: String,
        row: SecretRow,
    },
    Provider(CatalogueRow),
    Factor(Subject, Authenticator),
}

impl Sealed {
    fn all(writer: &mut RegistryWriter<'_>) -> Result<Vec<Sealed>> {
        let mut all = Vec::new();
        let mut add = |sealed: Option<SecretBytes>, name: &str, remedy: &str, of| {
            all.extend(sealed.map(|sealed| Sealed {
                name: name.to_owned(),
                remedy: remedy.to_owned(),
                of,
                sealed,
            }));
        };
        for row in writer.reader.signing_keys()? {
            let name = format!("signing key {}", row.kid);
            add(row.wrapped_private.clone(), &name, "", Holder::Key(row));
        }
        let secret_of = |is_of_client, owner: &str, row: SecretRow| Holder::Secret {
            is_of_client,
            owner: owner.to_owned(),
            row,
        };
        for client in writer.reader.clients()? {
            let id = client.client_id.in_text();
            let name = format!("a secret of client {id}");
            let remedy = format!(": `gatepost client secret {id}` makes another");
            for row in client.secrets {
                let sealed = Some(row.sealed_digest.clone());
                let of = secret_of(true, client.client_id.as_str(), row);
                add(sealed, &name, &remedy, of);
            }
        }
        for mut entry in writer.reader.catalogue()?.entries {
            let name = format!("a secret of resource {}", entry.name);
            for row in std::mem::take(&mut entry.secrets) {
                let sealed = Some(row.sealed_digest.clone());
                let of = secret_of(false, &entry.name, row);
                let remedy = ": apply a document that gives it another";
                add(sealed, &name, remedy, of);
            }
            let name = format!("the client_secret of identity provider {}", entry.name);
            let remedy = ": apply a document that gives it again";
            let sealed = entry.sealed_secret.clone();
            add(sealed, &name, remedy, Holder::Provider(entry));
        }
        for (sub, row) in sealed_factors::sealed_authenticators(&mut writer.reader)? {
            let name = format!("a second factor ({}) of user {sub}", row.kind.as_str());
            let remedy = format!(
                ": `gatepost user factors {sub} --remove-all`, once you know that it is them, lets \
                 them in by their password"
            );
            add(row.secret.clone(), &name, &remedy, Holder::Factor(sub, row));
        }
        Ok(all)
    }

    fn sealer<'s>(&self, sealers: &'s Sealers) -> &'s Sealer {
        match self.of {
            Holder::Key(_) => &sealers.signing_keys,
            Holder::Factor(..) => &sealers.authenticators,
            Holder::Secret { .. } | Holder::Provider(_) => &sealers.client_secrets,
        }
    }

    fn opened(&self, sealers: &Sealers) -> Option<SecretBytes> {
        let plain = self.sealer(sealers).open(self.sealed.expose());
        plain.map(SecretBytes::new)
    }

    /// The same under the current line of `to`; `None` where that is the line it is under.
    fn anew(&self, from: &Sealers, to: &Sealers) -> Option<SecretBytes> {
        let sealer = self.sealer(to);
        if sealer.seals_alike(self.sealed.expose()) {
            return None;
        }
        let plain = self.opened(from).or_else(|| self.opened(to))?;
        Some(SecretBytes::new(sealer.seal(plain.expose())))
    }

    /// Keeps it as it is sealed now; removes it without that. A key's public part stays, for the
    /// tokens that it signed.
    fn put(&self, writer: &mut RegistryWriter<'_>, sealed: Option<SecretBytes>) -> Result {
        match (&self.of, sealed) {
            (Holder::Key(row), sealed) => {
                let rewrapped = writer.rewrap_signing_key(&row.kid, sealed.as_ref());
                rewrapped.map(drop)
            }
            (
                Holder::Secret {
                    is_of_client,
                    owner,
                    row,
                },
                Some(sealed_digest),
            ) => {
                let row = SecretRow {
                    sealed_digest,
                    ..row.clone()
                };
                client_changes::put_secrets(writer, *is_of_client, &[(owner, row)])
            }
            (
                Holder::Secret {
                    is_of_client,
                    owner,
                    row,
                },
                None,
            ) => client_changes::remove_secrets(writer, *is_of_client, &[(owner, row.id)]),
            (Holder::Provider(row), None) => {
                catalogue_changes::erase_entry_secret(writer, row.kind, &row.name)
            }
            (Holder::Provider(row), sealed_secret) => {
                let row = CatalogueRow {
                    sealed_secret,
                    ..row.clone()
                };
                catalogue_changes::upsert_entry(writer, &row)
            }
            // Their password alone is not enough from then on, either: the operator sees to them.
            (Holder::Factor(sub, row), None) => {
                sealed_factors::drop_authenticator(writer, sub, row)
            }
            (Holder::Factor(sub, factor), Some(sealed)) => {
                let resealed = ResealedFactor {
                    sub: sub.clone(),
                    factor: factor.clone(),
                    sealed,
                };
                sealed_factors::reseal_authenticator(writer, &resealed)
            }
        }
    }
}

/// Everything that is sealed; refused where there is any that does not open.
fn all_open(
    writer: &mut RegistryWriter<'_>,
    from: &Sealers,
    to: &Sealers,
) -> CommandResult<Vec<Sealed>> {
    let all = Sealed::all(writer)?;
    let is_lost = |one: &&Sealed| one.opened(from).or_else(|| one.opened(to)).is_none();
    let lost = Vec::from_iter(all.iter().filter(is_lost).map(|one| one.name.as_str()));
    if !lost.is_empty() {
        return refuse!(
            "these open under no line of GATEPOST_SECRET_FILE, and nothing was changed:\n{}\n\
             add the line that they were sealed under; if it is lost for good: `gatepost key \
             reset`",
            lost.join("\n")
        );
    }
    Ok(all)
}

/// Seals everything under the current line of `to` that is not yet. Answers how many were sealed
/// anew, and how many were so already; when there is any that does not open, nothing is written.
pub fn reseal(
    writer: &mut RegistryWriter<'_>,
    from: &Sealers,
    to: &Sealers,
) -> CommandResult<(u64, u64)> {
    let mut moved = 0;
    let mut current = 0;
    for one in all_open(writer, from, to)? {
        match one.anew(from, to) {
            Some(sealed) => {
                one.put(writer, Some(sealed))?;
                moved += 1;
            }
            None => current += 1,
        }
    }
    Ok((moved, current))
}

/// The second factors that are not sealed under the current line yet, and how they will be.
fn stale_factors(
    writer: &mut RegistryWriter<'_>,
    sealers: &Sealers,
) -> CommandResult<Vec<ResealedFactor>> {
    let mut stale = Vec::new();
    for one in all_open(writer, sealers, sealers)? {
        let Holder::Factor(sub, factor) = &one.of else {
            continue;
        };
        if let Some(sealed) = one.anew(sealers, sealers) {
            stale.push(ResealedFactor {
                sub: sub.clone(),
                factor: factor.clone(),
                sealed,
            });
        }
    }
    Ok(stale)
}

pub fn generate(_: &Invocation) -> CommandResult {
    say(master::generate())
}

pub fn rotate(operator: &Operator) -> CommandResult {
    let sealers = operator.unchecked_sealers()?;
    let store = &operator.store;
    // Processes serve meanwhile: they replace factors, and sign people in by them. So factors are
    // no part of the one transaction, which would hold them until its end.
    let stale = store.change_registry(|writer| stale_factors(writer, &sealers))?;
    let mut factors = 0;
    for few in stale.chunks(FACTORS_AT_ONCE) {
        factors += sealed_factors::reseal(store, few)?;
    }
    let (moved, current) = store.change_registry(|writer| {
        let (others, current) = reseal(writer, &sealers, &sealers)?;
        let moved = factors + others;
        if moved > 0 {
            writer.audit(&audit_event(
                "master_secret_rotated",
                json!({"sealed_anew": moved}),
            ))?;
        } else {
            writer.confirm()?;
        }
        Ok::<_, Failure>((moved, current.saturating_sub(factors)))
    })?;
    say!("{moved} sealed anew under the first line, {current} were already")
}

const ALSO_LOST: &str = "\
Also lost: every authorization code, refresh token and reference access token that is out; \
people sign in again, or\napplications ask again. \
Access tokens that are JWTs stay good until they expire. Passwords, sessions and consents stay.";

/// The master secret is lost.
pub fn reset(operator: &Operator) -> CommandResult {
    let sealers = operator.unchecked_sealers()?;
    let lost = lost(operator, &sealers)?;
    if lost.is_empty() {
        return say("everything opens under this master secret: there is nothing to reset");
    }
    // The wrong file looks just like a lost secret.
    input::confirm(
        operator,
        &format!(
            "These do not open under GATEPOST_SECRET_FILE, and would be dropped:\n{}\nWith the \
             right secret they would open. Is it lost for good?",
            lost.join("\n")
        ),
    )?;
    let now = operator.now()?;
    let seasons = key_keeping::seasons(&operator.config);
    // What is dropped is named nowhere else for people.
    operator.store.change_registry(|writer| {
        let lines = drop_lost(writer, &sealers, &seasons, now)?;
        output::only_copy(&lines.join("\n"))
    })
}

/// Names everything that does not open.
pub fn lost(operator: &Operator, sealers: &Sealers) -> CommandResult<Vec<String>> {
    operator.store.change_registry(|writer| {
        let mut names = Vec::new();
        for one in Sealed::all(writer)? {
            if one.opened(sealers).is_none() {
                names.push(one.name);
            }
        }
        Ok(names)
    })
}

fn drop_lost(
    writer: &mut RegistryWriter<'_>,
    sealers: &Sealers,
    seasons: &KeySeasons,
    now: Instant,
) -> CommandResult<Vec<String>> {
    let mut lines = Vec::new();
    for one in Sealed::all(writer)? {
        if one.opened(sealers).is_some() {
            continue;
        }
        one.put(writer, None)?;
        if let Holder::Key(row) = &one.of {
            end(writer, row, seasons, now)?;
        }
        lines.push(format!("dropped {}{}", one.name, one.remedy));
    }
    let scheduled = key_keeping::scheduled(&writer.reader.signing_keys()?);
    let lacks = |algorithm| current(&scheduled, algorithm, now).is_none();
    let times = seasons.active_at_once(now);
    for key in make_keys(writer, &sealers.signing_keys, times, lacks)? {
        let name = key.algorithm.as_str();
        lines.push(format!(
            "made {name} key {}, which signs from now on",
            key.kid
        ));
    }
    writer.audit(&audit_event("keys_reset", json!({"done": lines})))?;
    lines.push(String::from(ALSO_LOST));
    Ok(lines)
}

/// A key that never signed goes; one that did stays published for what it signed.
fn end(
    writer: &mut RegistryWriter<'_>,
    row: &SigningKeyRow,
    seasons: &KeySeasons,
    now: Instant,
) -> CommandResult {
    if now <= row.times.activates_at {
        writer.remove_signing_key(&row.kid)?;
    } else if now < row.times.retires_at {
        let times = seasons.retiring_at(row.times.announced_at, row.times.activates_at, now);
        writer.reschedule_signing_key(&row.kid, &times)?;
    }
    Ok(())
}

/// Makes a key for each algorithm that lacks one.
pub fn make_keys(
    writer: &mut RegistryWriter<'_>,
    sealer: &Sealer,
    times: KeyTimes,
    lacks: impl Fn(SigningAlgorithm) -> bool,
) -> CommandResult<Vec<SigningKeyRow>> {
    let mut made = Vec::new();
    for algorithm in SigningAlgorithm::ALL.into_iter().filter(|one| lacks(*one)) {
        let key = new_key(algorithm, times, sealer)?;
        writer.insert_signing_key(&key)?;
        made.push(key);
    }
    Ok(made)
}
