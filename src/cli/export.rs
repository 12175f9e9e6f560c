//! `gatepost export`: what is registered, as the document that `apply` would take.

use super::apply::comparison;
use super::arguments::Invocation;
use super::command::{Command, Run};
use super::failure::Failure;
use super::operator::Operator;
use super::output;
use crate::protocol::registration::export;

pub(super) const COMMAND: Command = Command {
    name: "export",
    values: &[],
    options: &[],
    summary: "Prints all that is registered as a document for `gatepost apply`, without secrets and passwords.",
    example: "gatepost export > registration.json",
    run: Run::Once(run),
};

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, _) = Operator::open_installed(invocation)?;
    // Within a change that writes nothing, so that all of it is of one moment.
    let document = operator.store.change_registry(|writer| {
        let registered = comparison::registered(writer, None)?;
        Ok::<_, Failure>(export::document(&registered, &comparison::all_users(writer)?))
    })?;
    output::line(&output::pretty(&document)?)
}
