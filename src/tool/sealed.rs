//! Everything that stands in the database sealed under the master secret: signing keys, digests of
//! the secrets of clients and resources, secrets of ours at identity providers. And the commands
//! that make, change or have lost that secret.

use serde_json::json;

use super::arguments::Invocation;
use super::input;
use super::operator::Operator;
use super::output::{self, Failure};
use crate::statements::sealed_factors::{self, ResealedFactor};
use gatepost_protocol::keys::key_schedule::{KeySeasons, current};
use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::identifiers::{ClientId, Subject, in_text};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::secret::SecretBytes;
use gatepost_registrar::events::audit_event;
use gatepost_registrar::statements::{catalogue_changes, client_changes};
use gatepost_server::app::key_keeping::{self, new_key};
use gatepost_server::keys::master;
use gatepost_server::keys::sealing::Sealer;
use gatepost_server::registry::Sealers;
use gatepost_store::StoreError;
use gatepost_store::authenticators::Authenticator;
use gatepost_store::catalogue::CatalogueRow;
use gatepost_store::clients::SecretRow;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::signing_keys::SigningKeyRow;

/// How many second factors `secret rotate` seals anew in one statement.
const FACTORS_AT_ONCE: usize = 100;

enum Sealed {
    Key(SigningKeyRow, SecretBytes),
    ClientSecret(ClientId, SecretRow),
    ResourceSecret(String, SecretRow),
    ProviderSecret(CatalogueRow, SecretBytes),
    Factor(Subject, Authenticator, SecretBytes),
}

impl Sealed {
    fn all(writer: &mut RegistryWriter<'_>) -> Result<Vec<Sealed>, StoreError> {
        let mut all = Vec::new();
        for row in writer.reader.signing_keys()? {
            if let Some(wrapped) = row.wrapped_private.clone() {
                all.push(Sealed::Key(row, wrapped));
            }
        }
        for row in writer.reader.clients()? {
            for secret in row.secrets {
                all.push(Sealed::ClientSecret(row.client_id.clone(), secret));
            }
        }
        for mut row in writer.reader.catalogue()?.entries {
            for secret in std::mem::take(&mut row.secrets) {
                all.push(Sealed::ResourceSecret(row.name.clone(), secret));
            }
            if let Some(sealed) = row.sealed_secret.clone() {
                all.push(Sealed::ProviderSecret(row, sealed));
            }
        }
        for (sub, row) in sealed_factors::sealed_authenticators(&mut writer.reader)? {
            if let Some(sealed) = row.secret.clone() {
                all.push(Sealed::Factor(sub, row, sealed));
            }
        }
        Ok(all)
    }

    fn name(&self) -> String {
        match self {
            Sealed::Key(row, _) => format!("signing key {}", row.kid),
            Sealed::ClientSecret(client_id, _) => {
                format!("a secret of client {}", in_text(client_id.as_str()))
            }
            Sealed::ResourceSecret(name, _) => format!("a secret of resource {name}"),
            Sealed::ProviderSecret(row, _) => {
                format!("the client_secret of identity provider {}", row.name)
            }
            Sealed::Factor(sub, row, _) => {
                format!("a second factor ({}) of user {sub}", row.kind.as_str())
            }
        }
    }

    fn sealer<'s>(&self, sealers: &'s Sealers) -> &'s Sealer {
        match self {
            Sealed::Key(..) => &sealers.signing_keys,
            Sealed::Factor(..) => &sealers.authenticators,
            Sealed::ClientSecret(..) | Sealed::ResourceSecret(..) | Sealed::ProviderSecret(..) => {
                &sealers.client_secrets
            }
        }
    }

    fn sealed(&self) -> &[u8] {
        match self {
            Sealed::Key(_, sealed)
            | Sealed::ProviderSecret(_, sealed)
            | Sealed::Factor(_, _, sealed) => sealed.expose(),
            Sealed::ClientSecret(_, row) | Sealed::ResourceSecret(_, row) => {
                row.sealed_digest.expose()
            }
        }
    }

    fn opens(&self, sealers: &Sealers) -> bool {
        self.sealer(sealers).open(self.sealed()).is_some()
    }

    /// The same under the current line of `to`; `None` where that is the line it is under.
    fn anew(&self, from: &Sealers, to: &Sealers) -> Option<SecretBytes> {
        let sealer = self.sealer(to);
        if sealer.seals_alike(self.sealed()) {
            return None;
        }
        let plain = self.sealer(from).open(self.sealed());
        let plain = SecretBytes::new(plain.or_else(|| sealer.open(self.sealed()))?);
        Some(SecretBytes::new(sealer.seal(plain.expose())))
    }

    fn write(
        &self,
        writer: &mut RegistryWriter<'_>,
        sealed: SecretBytes,
    ) -> Result<(), StoreError> {
        match self {
            Sealed::Key(row, _) => writer.rewrap_signing_key(&row.kid, Some(&sealed)).map(drop),
            Sealed::ClientSecret(client_id, row) => client_changes::put_secrets(
                writer,
                true,
                &[(client_id.as_str(), resealed(row, sealed))],
            ),
            Sealed::ResourceSecret(name, row) => {
                client_changes::put_secrets(writer, false, &[(name, resealed(row, sealed))])
            }
            Sealed::ProviderSecret(row, _) => catalogue_changes::upsert_entry(
                writer,
                &CatalogueRow {
                    sealed_secret: Some(sealed),
                    ..row.clone()
                },
            ),
            Sealed::Factor(sub, row, _) => sealed_factors::reseal_authenticator(
                writer,
                &ResealedFactor {
                    sub: sub.clone(),
                    factor: row.clone(),
                    sealed,
                },
            ),
        }
    }

    /// Removes what does not open any longer. A key's public part stays, for the tokens that it
    /// signed.
    fn erase(&self, writer: &mut RegistryWriter<'_>) -> Result<(), StoreError> {
        match self {
            Sealed::Key(row, _) => writer.rewrap_signing_key(&row.kid, None).map(drop),
            Sealed::ClientSecret(client_id, row) => {
                client_changes::remove_secrets(writer, true, &[(client_id.as_str(), row.id)])
            }
            Sealed::ResourceSecret(name, row) => {
                client_changes::remove_secrets(writer, false, &[(name, row.id)])
            }
            Sealed::ProviderSecret(row, _) => {
                catalogue_changes::erase_entry_secret(writer, row.kind, &row.name)
            }
            // Their password alone is not enough from then on, either: the operator sees to them.
            Sealed::Factor(sub, row, _) => sealed_factors::drop_authenticator(writer, sub, row),
        }
    }
}

fn resealed(row: &SecretRow, sealed: SecretBytes) -> SecretRow {
    SecretRow {
        sealed_digest: sealed,
        ..row.clone()
    }
}

/// Everything that is sealed; refused where there is any that does not open.
fn all_open(
    writer: &mut RegistryWriter<'_>,
    from: &Sealers,
    to: &Sealers,
) -> Result<Vec<Sealed>, Failure> {
    let all = Sealed::all(writer)?;
    let lost: Vec<String> = all
        .iter()
        .filter(|one| !one.opens(from) && !one.opens(to))
        .map(Sealed::name)
        .collect();
    if !lost.is_empty() {
        return Err(Failure::Refused(format!(
            "these open under no line of GATEPOST_SECRET_FILE, and nothing was changed:\n{}\n\
             add the line that they were sealed under; if it is lost for good: `gatepost key \
             reset`",
            lost.join("\n")
        )));
    }
    Ok(all)
}

/// Seals everything under the current line of `to` that is not yet. Answers how many were sealed
/// anew, and how many were so already; when there is any that does not open, nothing is written.
pub(super) fn reseal(
    writer: &mut RegistryWriter<'_>,
    from: &Sealers,
    to: &Sealers,
) -> Result<(u64, u64), Failure> {
    let mut moved = 0;
    let mut current = 0;
    for one in all_open(writer, from, to)? {
        match one.anew(from, to) {
            Some(sealed) => {
                one.write(writer, sealed)?;
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
) -> Result<Vec<ResealedFactor>, Failure> {
    let mut stale = Vec::new();
    for one in all_open(writer, sealers, sealers)? {
        let Sealed::Factor(sub, factor, _) = &one else {
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

pub(super) fn generate(_: &Invocation) -> Result<(), Failure> {
    output::line(&master::generate())
}

pub(super) fn rotate(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealers = operator.unchecked_sealers(&installation)?;
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
    output::line(&format!(
        "{moved} sealed anew under the first line, {current} were already"
    ))
}

const ALSO_LOST: &str = "\
Also lost: every authorization code, refresh token and reference access token that is out; \
people sign in again, or\napplications ask again. \
Access tokens that are JWTs stay good until they expire. Passwords, sessions and consents stay.";

/// The master secret is lost.
pub(super) fn reset(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealers = operator.unchecked_sealers(&installation)?;
    let lost = lost(&operator, &sealers)?;
    if lost.is_empty() {
        return output::line(
            "everything opens under this master secret: there is nothing to reset",
        );
    }
    // The wrong file looks just like a lost secret.
    input::confirm(
        invocation,
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
pub(super) fn lost(operator: &Operator, sealers: &Sealers) -> Result<Vec<String>, Failure> {
    operator.store.change_registry(|writer| {
        let mut names = Vec::new();
        for one in Sealed::all(writer)? {
            if !one.opens(sealers) {
                names.push(one.name());
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
) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for one in Sealed::all(writer)? {
        if one.opens(sealers) {
            continue;
        }
        one.erase(writer)?;
        if let Sealed::Key(row, _) = &one {
            end(writer, row, seasons, now)?;
        }
        lines.push(format!("dropped {}{}", one.name(), remedy(&one)));
    }
    let made = make_missing_keys(writer, &sealers.signing_keys, seasons, now)?;
    lines.extend(made);
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
) -> Result<(), Failure> {
    if now <= row.times.activates_at {
        writer.remove_signing_key(&row.kid)?;
    } else if now < row.times.retires_at {
        let times = seasons.retiring_at(row.times.announced_at, row.times.activates_at, now);
        writer.reschedule_signing_key(&row.kid, &times)?;
    }
    Ok(())
}

/// Makes a key, which signs at once, for each algorithm that has none; answers a line about each.
fn make_missing_keys(
    writer: &mut RegistryWriter<'_>,
    sealer: &Sealer,
    seasons: &KeySeasons,
    now: Instant,
) -> Result<Vec<String>, Failure> {
    let scheduled = key_keeping::scheduled(&writer.reader.signing_keys()?);
    let mut made = Vec::new();
    for algorithm in SigningAlgorithm::ALL {
        if current(&scheduled, algorithm, now).is_none() {
            let key = new_key(algorithm, seasons.active_at_once(now), sealer)?;
            writer.insert_signing_key(&key)?;
            let name = algorithm.as_str();
            made.push(format!(
                "made {name} key {}, which signs from now on",
                key.kid
            ));
        }
    }
    Ok(made)
}

fn remedy(one: &Sealed) -> String {
    match one {
        Sealed::Key(..) => String::new(),
        Sealed::ClientSecret(client_id, _) => {
            let name = in_text(client_id.as_str());
            format!(": `gatepost client secret {name}` makes another")
        }
        Sealed::ResourceSecret(..) => String::from(": apply a document that gives it another"),
        Sealed::ProviderSecret(..) => String::from(": apply a document that gives it again"),
        Sealed::Factor(sub, ..) => {
            format!(
                ": `gatepost user factors {sub} --remove-all`, once you know that it is them, lets \
                 them in by their password"
            )
        }
    }
}
