//! `gatepost plan`: what `apply` would do with a document, and nothing done.

mod print;

use std::process::ExitCode;

use super::apply::functions::Functions;
use super::apply::{PRUNE, comparison, input};
use super::arguments::Invocation;
use super::command::{Command, JSON, Run};
use super::failure::Failure;
use super::operator::Operator;
use super::{logging, output};
use crate::keys::master::Purpose;
use crate::keys::sealing::Sealer;
use crate::protocol::registration::plan;

pub(super) const COMMAND: Command = Command {
    name: "plan",
    values: &["FILE"],
    options: &[PRUNE, JSON],
    summary: "Prints what `gatepost apply` would change (- reads standard input); exit code 3 when that is something.",
    example: "gatepost plan registration.json",
    run: Run::Stays(run),
};

const EXIT_CHANGES: u8 = 3;

fn run(invocation: &Invocation) -> Result<ExitCode, Failure> {
    logging::start_plainly();
    let value = input::read(invocation.value(0))?;
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealer = Sealer::new(&operator.derived_keys(&installation)?, Purpose::ClientSecret);
    let functions = Functions::of(invocation, &operator)?;
    let (prune, json) = (invocation.has(PRUNE.name), invocation.has(JSON.name));
    // Within a change that writes nothing, so that no other one comes in between.
    let (text, is_empty) = operator.store.change_registry(|writer| {
        let defaults = &operator.config.client_defaults;
        let comparison = comparison::read(writer, &value, prune, defaults, (&sealer, &functions))?;
        let plan = plan::make(&comparison).map_err(|problems| Failure::of_document(&problems))?;
        let text = if json { print::json(&plan)? } else { print::text(&plan, output::wants_colours()) };
        Ok::<_, Failure>((text, plan.changes.is_empty()))
    })?;
    output::line(&text)?;
    Ok(if is_empty { ExitCode::SUCCESS } else { ExitCode::from(EXIT_CHANGES) })
}
