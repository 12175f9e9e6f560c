//! `gatepost completions`: scripts that let shells complete what is typed, made from the table of commands.

mod shells;

use super::arguments::Invocation;
use super::command::{Command, Run};
use super::failure::Failure;
use super::{COMMANDS, output};
use crate::protocol::words::nearest::hint;
use shells::{bash, fish, zsh};

pub(super) const COMMAND: Command = Command {
    name: "completions",
    values: &["SHELL"],
    options: &[],
    summary: "Prints a completion script for bash, zsh or fish; its first lines say where it goes.",
    example: "gatepost completions bash > /etc/bash_completion.d/gatepost",
    run: Run::Once(run),
};

fn run(invocation: &Invocation) -> Result<(), Failure> {
    output::line(&match invocation.value(0) {
        "bash" => bash(COMMANDS),
        "zsh" => zsh(COMMANDS),
        "fish" => fish(COMMANDS),
        other => {
            let hint = hint(other, ["bash", "zsh", "fish"]);
            let rule = format!("SHELL must be bash, zsh or fish, not \"{}\"{hint}", other.escape_debug());
            return Err(Failure::Usage(rule));
        }
    })
}
