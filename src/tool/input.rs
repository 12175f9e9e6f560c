//! What commands read: files and standard input, passwords, typed without echo or piped in and
//! never from the command line; and whether something that cannot be undone is meant.

use std::io::{self, BufRead, ErrorKind, IsTerminal, Read};

use super::arguments::Invocation;
use super::output::{CommandResult, Failure, note, refuse};
use gatepost_protocol::login::password::LONGEST_PASSWORD;
use gatepost_protocol::words::secret::SecretText;
use gatepost_server::app::password_rules::PasswordRules;

/// Asks twice at a terminal; otherwise takes the first line of standard input.
pub fn new_password(rules: &PasswordRules) -> CommandResult<SecretText> {
    let password = secret("Password: ")?;
    if io::stdin().is_terminal() && secret("Once more: ")? != password {
        return refuse("the two passwords differ");
    }
    rules
        .check(password.expose())
        .or_else(|flaw| refuse!("the password {}", flaw.rule()))?;
    Ok(password)
}

/// Asks once, without echo; otherwise takes the first line of standard input.
pub fn secret(question: &str) -> CommandResult<SecretText> {
    if io::stdin().is_terminal() {
        return Ok(SecretText::new(rpassword::prompt_password(question)?));
    }
    let longest = u64::try_from(LONGEST_PASSWORD)
        .unwrap_or(u64::MAX)
        .saturating_add(2);
    let mut line = Vec::new();
    io::stdin()
        .lock()
        .take(longest)
        .read_until(b'\n', &mut line)?;
    let text = String::from_utf8(line).or_else(|_| refuse("standard input must be UTF-8"))?;
    Ok(SecretText::new(text.trim_end_matches(['\r', '\n'])))
}

/// At a terminal, unless `--yes` was typed; a script is not asked.
pub fn asks(invocation: &Invocation) -> bool {
    !invocation.has("--yes") && io::stdin().is_terminal()
}

pub fn confirm(invocation: &Invocation, question: &str) -> CommandResult {
    if !asks(invocation) {
        return Ok(());
    }
    note(format!("{question} Type yes to go on:"));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() == "yes" {
        Ok(())
    } else {
        refuse("nothing was changed")
    }
}

/// Why a file that was named cannot be read.
pub fn unread(name: &str, error: &io::Error) -> Failure {
    let known = [
        (ErrorKind::NotFound, "there is no such file"),
        (ErrorKind::IsADirectory, "it is a directory"),
        (
            ErrorKind::PermissionDenied,
            "whoever runs this command may not",
        ),
    ];
    let reason = match known.iter().find(|(kind, _)| *kind == error.kind()) {
        Some((_, reason)) => String::from(*reason),
        None => error.to_string(),
    };
    Failure::Refused(format!("{name} cannot be read: {reason}"))
}

/// The failure says where it stops being text.
pub fn utf8(name: &str, bytes: Vec<u8>) -> CommandResult<String> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return refuse!("{name} is UTF-16: save it as UTF-8");
    }
    String::from_utf8(bytes).or_else(|error| {
        let sound = error
            .as_bytes()
            .iter()
            .take(error.utf8_error().valid_up_to());
        let line = sound.filter(|byte| **byte == b'\n').count() + 1;
        refuse!("{name} is not UTF-8, from line {line} on: save it as UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_told_with_its_line() {
        assert_eq!(utf8("x", b"{}".to_vec()).unwrap(), "{}");
        let told = |bytes: &[u8]| utf8("x", bytes.to_vec()).unwrap_err().to_string();
        assert_eq!(
            told(b"{\n\"caf\xe9\"}"),
            "x is not UTF-8, from line 2 on: save it as UTF-8"
        );
        assert_eq!(told(b"\xff\xfe{\0"), "x is UTF-16: save it as UTF-8");
    }
}
