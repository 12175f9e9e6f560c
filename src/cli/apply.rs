//! `gatepost apply`: makes the registry what a document says, in one transaction. Applying it again changes nothing.

pub(super) mod comparison;
pub(super) mod enact;
pub(super) mod functions;
pub(super) mod input;
pub(super) mod secrets;

use super::arguments::Invocation;
use super::command::{Command, CommandOption, Run};
use super::failure::Failure;
use super::operator::Operator;
use super::output;
use crate::keys::master::Purpose;
use crate::keys::sealing::Sealer;
use crate::protocol::registration::plan::{self, Plan, Verb};
use enact::Enactment;
use functions::Functions;

pub(super) const PRUNE: CommandOption = CommandOption {
    name: "--prune",
    value: None,
    meaning: "remove what the lists of the document leave out; a list that it does not have stays as it is",
};

pub(super) const COMMAND: Command = Command {
    name: "apply",
    values: &["FILE"],
    options: &[PRUNE],
    summary: "Makes the registry what a JSON document says (- reads standard input), all or nothing.",
    example: "gatepost apply registration.json",
    run: Run::Once(run),
};

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let value = input::read(invocation.value(0))?;
    let (operator, installation) = Operator::open_installed(invocation)?;
    let sealer = Sealer::new(&operator.derived_keys(&installation)?, Purpose::ClientSecret);
    let enactment = Enactment { sealer: &sealer, hashing: &operator.password_hashing()? };
    let now = operator.now()?;
    let prune = invocation.has(PRUNE.name);
    let functions = Functions::of(invocation, &operator)?;
    let report = operator.store.change_registry(|writer| {
        let defaults = &operator.config.client_defaults;
        let comparison = comparison::read(writer, &value, prune, defaults, (&sealer, &functions))?;
        let plan = plan::make(&comparison).map_err(|problems| Failure::of_document(&problems))?;
        enactment.perform(writer, &plan)?;
        if plan.changes.is_empty() {
            writer.confirm()?;
        } else {
            let horizons = operator.horizons(writer.longest_lifetimes()?);
            writer.make_partitions(&horizons, now.day())?;
        }
        Ok::<String, Failure>(report(&plan))
    })?;
    output::line(&report)
}

fn report(plan: &Plan<'_>) -> String {
    let line = |verb: Verb, kind: &str, name: &str| {
        let done = match verb {
            Verb::Add => "added",
            Verb::Change => "changed",
            Verb::Remove => "removed",
        };
        format!("{done} {kind} {}", name.escape_debug())
    };
    let mut lines: Vec<String> =
        plan.changes.iter().map(|change| line(change.verb, change.step.kind().as_str(), change.step.name())).collect();
    let (added, changed) = (plan.count(Verb::Add), plan.count(Verb::Change));
    let mut numbers = format!("{added} added, {changed} changed, {} unchanged", plan.unchanged);
    let removed = plan.count(Verb::Remove);
    if removed > 0 {
        numbers.push_str(&format!(", {removed} removed"));
    }
    lines.push(numbers);
    lines.join("\n")
}
