//! `gatepost secret`

use crate::crypto::master;

use super::arguments::Invocation;
use super::command::{Command, Run};
use super::failure::Failure;
use super::output;

pub(super) const COMMAND: Command = Command {
    name: "secret",
    values: &[],
    options: &[],
    summary: "Prints a new master secret; keep it in a file that only the service's user can read.",
    example: "gatepost secret",
    run: Run::Once(run),
};

fn run(_: &Invocation) -> Result<(), Failure> {
    output::line(&master::generate())
}
