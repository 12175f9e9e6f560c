//! What a person is asked: passwords, typed without echo or piped in and never from the command line; and whether something
//! that cannot be undone is meant.

use std::io::{self, BufRead, IsTerminal, Read};

use crate::protocol::login::password::{LONGEST_PASSWORD, check_new};
use crate::protocol::words::secret::SecretText;

use super::arguments::Invocation;
use super::command::CommandOption;
use super::failure::Failure;
use super::output;

pub(super) const YES: CommandOption =
    CommandOption { name: "--yes", value: None, meaning: "do not ask, at a terminal, whether this is meant" };

/// Asks twice at a terminal; otherwise takes the first line of standard input.
pub(super) fn new_password() -> Result<SecretText, Failure> {
    let password = secret("Password: ")?;
    if io::stdin().is_terminal() && secret("Once more: ")? != password {
        return Err(Failure::Refused(String::from("the two passwords differ")));
    }
    check_new(password.expose()).map_err(|rule| Failure::Refused(format!("the password {rule}")))?;
    Ok(password)
}

/// Asks once, without echo; otherwise takes the first line of standard input.
pub(super) fn secret(question: &str) -> Result<SecretText, Failure> {
    if io::stdin().is_terminal() { Ok(SecretText::new(rpassword::prompt_password(question)?)) } else { piped() }
}

/// Asks at a terminal, unless `--yes` was typed; a script has nobody to ask.
pub(super) fn confirm(invocation: &Invocation, question: &str) -> Result<(), Failure> {
    if invocation.has(YES.name) || !io::stdin().is_terminal() {
        return Ok(());
    }
    output::note(&format!("{question} Type yes to go on:"));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Failure::Refused(String::from("nothing was changed"))) }
}

fn piped() -> Result<SecretText, Failure> {
    let longest = u64::try_from(LONGEST_PASSWORD).unwrap_or(u64::MAX).saturating_add(2);
    let mut line = Vec::new();
    io::stdin().lock().take(longest).read_until(b'\n', &mut line)?;
    let text = String::from_utf8(line).map_err(|_| Failure::Refused(String::from("standard input must be UTF-8")))?;
    Ok(SecretText::new(text.trim_end_matches(['\r', '\n'])))
}
