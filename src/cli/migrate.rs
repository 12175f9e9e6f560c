//! `gatepost migrate`: the schema, the installation's row, room for what expires, and the first signing keys.

use serde_json::json;

use crate::crypto::master::Purpose;
use crate::crypto::random;
use crate::crypto::sealing::Sealer;
use crate::protocol::client::SigningAlgorithm;
use crate::store::{StoreError, clients, installation, migrate, partitions};

use super::arguments::Invocation;
use super::command::{Command, CommandOption, Run};
use super::failure::Failure;
use super::key::new_key;
use super::operator::{Operator, audit_event};
use super::output;

pub(super) const COMMAND: Command = Command {
    name: "migrate",
    values: &[],
    options: &[CommandOption {
        name: "--check",
        value: None,
        meaning: "change nothing; exit 1 when the database does not fit this program",
    }],
    summary: "Brings the database to this program's schema and makes its first signing keys. Safe to repeat.",
    example: "gatepost migrate",
    run: Run::Once(run),
};

fn run(invocation: &Invocation) -> Result<(), Failure> {
    if invocation.has("--check") {
        Operator::open_installed(invocation)?;
        return output::line("The database fits this program.");
    }
    let operator = Operator::open(invocation)?;
    // Before anything is written: without the secret the keys could not be wrapped.
    operator.master_secret()?;
    let mut client = operator.store.connect_for_administration()?;
    for name in migrate::migrate(&mut client)? {
        output::line(&format!("applied {name}"))?;
    }
    let issuer = operator.config.base_url.as_str();
    let installed = installation::ensure(&mut client, random::bytes(), issuer).map_err(unless_ours)?;
    let horizons = operator.horizons(clients::longest_lifetimes(&operator.store)?);
    partitions::make_missing(&mut client, &horizons, operator.now()?.day())?;
    drop(client);
    let sealer = Sealer::new(&operator.derived_keys(&installed)?, Purpose::SigningKey);
    for kid in make_missing_keys(&operator, &sealer)? {
        output::line(&format!("made signing key {kid}"))?;
    }
    output::line(&format!("The database is ready for {issuer}."))
}

/// A database of another issuer is a matter of settings.
fn unless_ours(error: StoreError) -> Failure {
    if let StoreError::Refused(text) = error { Failure::Configuration(text) } else { Failure::from(error) }
}

/// One key per algorithm that has none; signing at once, as nobody can hold an older key set yet.
fn make_missing_keys(operator: &Operator, sealer: &Sealer) -> Result<Vec<String>, Failure> {
    let times = operator.key_seasons().active_at_once(operator.now()?);
    operator.store.change_registry(|writer| {
        let present = writer.signing_keys()?;
        let mut made = Vec::new();
        for algorithm in SigningAlgorithm::ALL {
            if present.iter().any(|key| key.algorithm == algorithm) {
                continue;
            }
            let key = new_key(algorithm, times, sealer)?;
            writer.insert_signing_key(&key)?;
            writer.audit(&audit_event("signing_key_made", json!({"kid": key.kid, "alg": algorithm.as_str()})))?;
            made.push(format!("{} ({})", key.kid, algorithm.as_str()));
        }
        Ok(made)
    })
}
