//! `gatepost secret`: the master secret, made and changed.

use serde_json::json;

use crate::keys::master;
use crate::registry::Sealers;

use super::arguments::Invocation;
use super::command::{Command, Run};
use super::failure::Failure;
use super::operator::{Operator, audit_event};
use super::output;
use super::sealed::{Resealed, reseal};

pub(super) const COMMAND: Command = Command {
    name: "secret",
    values: &[],
    options: &[],
    summary: "Prints a new master secret; keep it in a file that only the service's user can read.",
    example: "gatepost secret",
    run: Run::Once(run),
};

pub(super) const ROTATE: Command = Command {
    name: "secret rotate",
    values: &[],
    options: &[],
    summary: "Seals all that is stored anew under the first line of the master secret's file; old lines still open the rest.",
    example: "gatepost secret rotate",
    run: Run::Once(rotate),
};

fn run(_: &Invocation) -> Result<(), Failure> {
    output::line(&master::generate())
}

fn rotate(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealers = Sealers::new(&operator.master_secret()?.derive(&installation.id, &installation.issuer));
    let resealed = operator.store.change_registry(|writer| {
        let resealed = reseal(writer, &sealers, &sealers)?;
        if resealed.moved > 0 {
            writer.audit(&audit_event("master_secret_rotated", json!({"sealed_anew": resealed.moved})))?;
        }
        Ok::<Resealed, Failure>(resealed)
    })?;
    refuse_lost(&resealed)?;
    output::line(&format!("{} sealed anew under the first line, {} were already", resealed.moved, resealed.current))
}

/// What opens under no line could only be dropped.
pub(super) fn refuse_lost(resealed: &Resealed) -> Result<(), Failure> {
    if resealed.lost.is_empty() {
        return Ok(());
    }
    let names = resealed.lost.join("\n");
    Err(Failure::Refused(format!(
        "these open under no line of GATEPOST_SECRET_FILE, and nothing was changed:\n{names}\n\
         add the line that they were sealed under; if it is lost for good: `gatepost key reset`"
    )))
}
