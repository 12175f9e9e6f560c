//! `gatepost revoke --everything`: after a leak, or after the database was restored from a copy that does not know the
//! latest revocations.

use serde_json::json;

use crate::store::installation;

use super::arguments::Invocation;
use super::command::{Command, CommandOption, Run};
use super::failure::Failure;
use super::operator::{Operator, audit_event};
use super::output;
use super::prompt::{self, YES};

pub(super) const COMMAND: Command = Command {
    name: "revoke",
    values: &["--everything"],
    options: &[
        CommandOption {
            name: "--everything",
            value: None,
            meaning: "say so in so many words; `user revoke`, `client revoke` and `grant revoke` end less",
        },
        YES,
    ],
    summary: "Ends every session, grant and token of everybody at once: after a leak, or after restoring a backup.",
    example: "gatepost revoke --everything",
    run: Run::Once(run),
};

fn run(invocation: &Invocation) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let question =
        format!("This ends every session, grant and token of {}: everybody signs in again.", installation.issuer);
    prompt::confirm(invocation, &question)?;
    installation::revoke_everything(&operator.store, &audit_event("everything_revoked", json!({})))?;
    output::line("every session, grant and token until now is over; people sign in again")
}
