//! What commands print, and the failures that they end with.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::arguments::Invocation;
use gatepost_protocol::registration::names::is_invisible;
use gatepost_protocol::registration::{DocumentProblem, timestamp};
use gatepost_protocol::words::identifiers::in_text;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::joined::joined;
use gatepost_registrar::RegistrationFailure;
use gatepost_registration::finding::{Finding, Verdict};
use gatepost_server::app::failure::Failure as EndpointFailure;
use gatepost_server::config::{ConfigError, cause};
use gatepost_store::StoreError;

const MOST_SHOWN: usize = 100;

/// What a command answers, or why it fails.
pub type CommandResult<T = ()> = Result<T, Failure>;

/// Fails: what was asked for is not done.
pub fn refuse<T>(why: impl Into<String>) -> CommandResult<T> {
    Err(Failure::Refused(why.into()))
}

/// Fails: something else must be typed.
pub fn misuse<T>(rule: impl Into<String>) -> CommandResult<T> {
    Err(Failure::Usage(rule.into()))
}

/// A command's failure. `Display` is what the person reads; no secret stands in it.
#[derive(Debug)]
pub enum Failure {
    Refused(String),
    /// Names the nearest where there is one.
    Usage(String),
    Configuration(String),
}

impl Failure {
    pub fn refused(text: &str) -> Failure {
        Failure::Refused(text.to_owned())
    }

    pub fn usage(rule: &str) -> Failure {
        Failure::Usage(rule.to_owned())
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Refused(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Configuration(_) => 78,
        })
    }

    pub fn of_document(problems: &[DocumentProblem]) -> Failure {
        let mut lines = joined("\n", problems.iter().take(MOST_SHOWN));
        if problems.len() > MOST_SHOWN {
            lines.push_str(&format!("\nand {} more", problems.len() - MOST_SHOWN));
        }
        Failure::Refused(format!("{lines}\nnothing was applied"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(text) | Failure::Usage(text) | Failure::Configuration(text) => {
                formatter.write_str(text)
            }
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::Configuration(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Refused(error.to_string())
    }
}

impl From<EndpointFailure> for Failure {
    fn from(failure: EndpointFailure) -> Failure {
        match failure {
            EndpointFailure::Unavailable(error) => Failure::from(error),
            _ => Failure::refused("the database does not answer"),
        }
    }
}

impl From<RegistrationFailure> for Failure {
    fn from(failure: RegistrationFailure) -> Failure {
        match failure {
            RegistrationFailure::Document(problems) => Failure::of_document(&problems),
            RegistrationFailure::Store(error) => Failure::from(error),
            RegistrationFailure::Hashing(cause) => Failure::Refused(cause),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Refused(cause(&error))
    }
}

/// [`say`] of a text with values in it.
macro_rules! say {
    ($($told:tt)+) => { $crate::output::say(format!($($told)+)) };
}

/// [`refuse`] for a reason with values in it.
macro_rules! refuse {
    ($($reason:tt)+) => { $crate::output::refuse(format!($($reason)+)) };
}

/// Prints a result. A reader that closed its end early is no failure.
pub fn say(text: impl AsRef<str>) -> CommandResult {
    match write(text.as_ref()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritten(&error)),
        _ => Ok(()),
    }
}

/// Prints what cannot be had again. To be called before the commit of what it belongs to, which a
/// failure undoes: one is also that the reader is gone.
pub fn only_copy(text: &str) -> CommandResult {
    write(text).map_err(|error| unwritten(&error))
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    out.flush()
}

fn unwritten(error: &io::Error) -> Failure {
    Failure::Refused(format!(
        "standard output cannot be written: {}",
        cause(error)
    ))
}

/// Prints what is no result: what was done, what to do next.
pub fn note(text: impl Display) {
    // A closed standard error is no reason to stop.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

pub fn pretty(value: &Value) -> CommandResult<String> {
    serde_json::to_string_pretty(value).or_else(|error| refuse(error.to_string()))
}

/// Whether standard output is a terminal that shows colours, and nobody objects
/// (<https://no-color.org>).
pub fn wants_colours() -> bool {
    let objects = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal()
        && !objects
        && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Prints one object: as JSON, or a line for each member, those of objects in it by their path.
pub fn object(json: bool, value: &Value) -> CommandResult {
    if json {
        return say(pretty(value)?);
    }
    say(members_of(value))
}

pub fn members_of(value: &Value) -> String {
    let mut lines = Vec::new();
    members("", value, &mut lines);
    lines.join("\n")
}

fn members(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (key, member) in object {
                let place = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                members(&place, member, lines);
            }
        }
        Value::String(text) => lines.push(format!("{}: {}", printable(path), printable(text))),
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            lines.push(format!(
                "{}: {}",
                printable(path),
                printable(&value.to_string())
            ));
        }
    }
}

/// Prints those objects that hold the word that was typed, as many as were asked for: as JSON, or a
/// row for each with what stands in the columns of the command.
pub fn list(invocation: &Invocation, mut objects: Vec<Value>) -> CommandResult {
    let word = invocation.word().unwrap_or_default().to_lowercase();
    objects.retain(|object| holds(object, &word));
    objects.truncate(invocation.limit()?.unwrap_or(usize::MAX));
    if invocation.has("--json") {
        return say(pretty(&json!(objects))?);
    }
    let columns = &invocation.command.columns;
    let headings = columns.iter().map(|column| column.heading.to_owned());
    let mut rows = Vec::new();
    for object in &objects {
        let cells = columns.iter().map(|column| cell(object, column.place));
        rows.push(cells.collect());
    }
    table(headings.collect(), rows)
}

/// Whether a text in it has the word, whatever the case; a member's name does not count.
fn holds(value: &Value, word: &str) -> bool {
    match value {
        Value::Object(members) => members.values().any(|member| holds(member, word)),
        Value::Array(items) => items.iter().any(|item| holds(item, word)),
        Value::String(text) => text.to_lowercase().contains(word),
        Value::Null | Value::Bool(_) | Value::Number(_) => word.is_empty(),
    }
}

fn cell(object: &Value, place: &str) -> String {
    match object.pointer(place) {
        Some(Value::String(text)) if place == "/client_id" => in_text(text),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(is_so)) => String::from(if *is_so { "yes" } else { "no" }),
        Some(Value::Array(all)) => all.len().to_string(),
        Some(other @ (Value::Number(_) | Value::Object(_))) => other.to_string(),
        Some(Value::Null) | None => String::new(),
    }
}

pub fn table(headings: Vec<String>, rows: Vec<Vec<String>>) -> CommandResult {
    let mut shown: Vec<Vec<String>> = Vec::new();
    for row in [headings].into_iter().chain(rows) {
        shown.push(row.iter().map(|cell| printable(cell)).collect());
    }
    let widths = widths(&shown);
    let pad = |(cell, width): (&String, &usize)| format!("{cell:<width$}");
    let mut lines = Vec::new();
    for row in &shown {
        let line = joined("  ", row.iter().zip(&widths).map(pad));
        lines.push(line.trim_end().to_owned());
    }
    say(lines.join("\n"))
}

/// Of each column, in characters.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    (0..).map_while(width).collect()
}

/// Names come from documents and other providers: nothing in them may move the cursor, colour the
/// terminal or turn the order of what follows.
pub fn printable(cell: &str) -> String {
    let mut shown = String::new();
    for one in cell.chars() {
        if is_invisible(one) {
            shown.extend(one.escape_default());
        } else {
            shown.push(one);
        }
    }
    shown
}

pub fn time(instant: Instant) -> String {
    timestamp::format(instant)
}

/// What is registered and breaks a rule of today.
pub fn not_served(name: &str, problems: &[DocumentProblem]) -> Failure {
    let rules = joined("; ", problems);
    Failure::Refused(format!("{} is not served: {rules}", in_text(name)))
}

/// What was found about something, and what to do with it.
pub struct FindingsReport<'a> {
    pub name: &'a str,
    pub findings: &'a [Finding],
    /// What follows the findings: for people, and as a member of that name for programs.
    pub text: &'a str,
    pub member: &'a str,
    pub value: Value,
}

impl FindingsReport<'_> {
    /// Prints it. A failure where it cannot work.
    pub fn print(self, invocation: &Invocation) -> CommandResult {
        if invocation.has("--json") {
            let findings: Vec<Value> = self.findings.iter().map(finding_as_json).collect();
            say(pretty(
                &json!({"findings": findings, self.member: self.value}),
            )?)?;
        } else {
            let findings = joined("\n", self.findings.iter().map(sentence));
            say(findings + self.text)?;
        }
        if has(self.findings, Verdict::Broken) {
            refuse!("{} cannot work as it is", in_text(self.name))
        } else {
            Ok(())
        }
    }
}

pub fn has(findings: &[Finding], verdict: Verdict) -> bool {
    findings.iter().any(|finding| finding.verdict == verdict)
}

fn finding_as_json(finding: &Finding) -> Value {
    json!({"verdict": finding.verdict.as_str(), "text": finding.text})
}

fn sentence(finding: &Finding) -> String {
    let verdict = finding.verdict.as_str();
    format!("{verdict:<5} {}", printable(&finding.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_steer_the_terminal() {
        assert_eq!(
            printable("a\u{1b}[31mb\n\u{9b}\u{202e}é"),
            "a\\u{1b}[31mb\\n\\u{9b}\\u{202e}é"
        );
    }
}
