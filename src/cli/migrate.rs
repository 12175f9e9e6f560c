//! `gatepost migrate`: the schema, the installation's row, room for what expires, and the first
//! signing keys.

use postgres::Client;
use serde_json::json;

use crate::app::key_keeping::{self, new_key};
use crate::app::registration::events::audit_event;
use crate::keys::random;
use crate::keys::sealing::Sealer;
use crate::protocol::words::client::SigningAlgorithm;
use crate::registry::Sealers;
use crate::store::migrate::{self, MIGRATIONS, Rehearsed};
use crate::store::{StoreError, clients, installation, partitions};

use super::arguments::Invocation;
use super::input;
use super::operator::Operator;
use super::output::{self, Failure};
use super::sealed::reseal;

pub(super) fn run(invocation: &Invocation) -> Result<(), Failure> {
    if invocation.has("--check") {
        rehearse(&Operator::open(invocation)?)?;
        Operator::open_installed(invocation)?;
        return output::line("The database fits this program.");
    }
    let operator = Operator::open(invocation)?;
    // Before anything is written: without the secret the keys could not be wrapped.
    operator.master_secret()?;
    let issuer = operator.config.base_url.as_str();
    // All of it alone: of several that begin at once, the others find everything made.
    operator.store.administer(|client| {
        migrate::alone(client, |client| install(client, invocation, &operator))
    })?;
    // What an earlier run did is told as done only where it holds for good.
    operator.store.confirm()?;
    operator
        .store
        .administer(|client| operator.store.committing(client, migrate::analyze))?;
    output::line(&format!("The database is ready for {issuer}."))
}

fn install(
    client: &mut Client,
    invocation: &Invocation,
    operator: &Operator,
) -> Result<(), Failure> {
    let store = &operator.store;
    for name in store.migrate(client)? {
        output::line(&format!("applied {name}"))?;
    }
    if invocation.has("--rename-issuer") {
        rename_issuer(invocation, operator)?;
    }
    let issuer = operator.config.base_url.as_str();
    let ensured = store.committing(client, |client| {
        installation::ensure(client, random::bytes(), issuer)
    });
    let installed = ensured.map_err(unless_ours)?;
    let horizons = operator.horizons(clients::longest_lifetimes(store)?.value);
    let today = operator.now()?.day();
    store.committing(client, |client| {
        partitions::make_as_leader(client, &horizons, today)
    })?;
    for kid in make_missing_keys(operator, &operator.sealers(&installed)?.signing_keys)? {
        output::line(&format!("made signing key {kid}"))?;
    }
    Ok(())
}

fn rehearse(operator: &Operator) -> Result<(), Failure> {
    let rehearsed = operator
        .store
        .administer(|client| migrate::rehearse(client, MIGRATIONS))?;
    for Rehearsed { name, took, told } in rehearsed {
        output::line(&format!("would apply {name}: {} ms", took.as_millis()))?;
        for line in told {
            output::line(&format!("  {line}"))?;
        }
    }
    Ok(())
}

/// What is stored is sealed for the issuer: all of it is sealed anew, in one change.
fn rename_issuer(invocation: &Invocation, operator: &Operator) -> Result<(), Failure> {
    let issuer = operator.config.base_url.as_str();
    let Some(found) = installation::find(&operator.store)? else {
        return Ok(());
    };
    if found.issuer == issuer {
        return output::line(&format!("{issuer} is its issuer already"));
    }
    input::confirm(
        invocation,
        &format!(
            "This renames {} to {issuer}: every code and token ends.",
            found.issuer
        ),
    )?;
    let master = operator.master_secret()?;
    let old = Sealers::new(&master.derive(&found.id, &found.issuer));
    let new = Sealers::new(&master.derive(&found.id, issuer));
    operator.store.change_registry(|writer| {
        reseal(writer, &old, &new)?;
        writer.rename_issuer(issuer)?;
        Ok::<_, Failure>(writer.audit(&audit_event(
            "issuer_renamed",
            json!({"old": found.issuer, "new": issuer}),
        ))?)
    })?;
    output::line(&format!(
        "renamed {} to {issuer}; every code and token that was out is over",
        found.issuer
    ))
}

/// A database of another issuer is a matter of settings.
fn unless_ours(error: StoreError) -> Failure {
    if let StoreError::Refused(text) = error {
        Failure::Configuration(text)
    } else {
        Failure::from(error)
    }
}

/// One key per algorithm that has none; signing at once, as nobody can hold an older key set yet.
fn make_missing_keys(operator: &Operator, sealer: &Sealer) -> Result<Vec<String>, Failure> {
    let times = key_keeping::seasons(&operator.config).active_at_once(operator.now()?);
    operator.store.change_registry(|writer| {
        let present = writer.reader.signing_keys()?;
        let mut made = Vec::new();
        for algorithm in SigningAlgorithm::ALL {
            if present.iter().any(|key| key.algorithm == algorithm) {
                continue;
            }
            let key = new_key(algorithm, times, sealer)?;
            writer.insert_signing_key(&key)?;
            let times = key_keeping::times_of(&key);
            let detail = json!({"kid": key.kid, "alg": algorithm.as_str(), "new": times});
            writer.audit(&audit_event("signing_key_made", detail))?;
            made.push(format!("{} ({})", key.kid, algorithm.as_str()));
        }
        Ok(made)
    })
}
