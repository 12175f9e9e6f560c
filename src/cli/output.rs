//! What commands print.

use std::io::{self, ErrorKind, IsTerminal, Write};

use serde_json::{Value, json};

use crate::protocol::registration::names::is_invisible;
use crate::protocol::registration::timestamp;
use crate::protocol::words::instant::Instant;

use super::failure::Failure;

/// A reader that closed its end early is no failure.
pub(super) fn line(text: &str) -> Result<(), Failure> {
    match write(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritten(&error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints what cannot be had again. To be called before the commit of what it belongs to, which a failure undoes: one is
/// also that the reader is gone.
pub(super) fn only_copy(text: &str) -> Result<(), Failure> {
    write(text).map_err(|error| unwritten(&error))
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    out.flush()
}

fn unwritten(error: &io::Error) -> Failure {
    Failure::Refused(format!("standard output cannot be written: {error}"))
}

/// Prints what is no result: what was done, what to do next.
pub(super) fn note(text: &str) {
    // A closed standard error is no reason to stop.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

pub(super) fn pretty(value: &Value) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map_err(|error| Failure::Refused(error.to_string()))
}

/// Whether standard output is a terminal that shows colours, and nobody objects (<https://no-color.org>).
pub(super) fn wants_colours() -> bool {
    let objects = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !objects && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Prints one object: as JSON, or a line for each member, those of objects in it by their path.
pub(super) fn object(json: bool, value: &Value) -> Result<(), Failure> {
    if json {
        return line(&pretty(value)?);
    }
    let mut lines = Vec::new();
    members("", value, &mut lines);
    line(&lines.join("\n"))
}

fn members(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (key, member) in object {
                let place = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                members(&place, member, lines);
            }
        }
        Value::String(text) => lines.push(format!("{}: {}", printable(path), printable(text))),
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            lines.push(format!("{}: {}", printable(path), printable(&value.to_string())));
        }
    }
}

pub(super) fn list(json: bool, headings: &[&str], rows: &[(Vec<String>, Value)]) -> Result<(), Failure> {
    if json {
        let values: Vec<&Value> = rows.iter().map(|(_, value)| value).collect();
        return line(&pretty(&json!(values))?);
    }
    let cells: Vec<&[String]> = rows.iter().map(|(cells, _)| cells.as_slice()).collect();
    line(&table(headings, &cells))
}

fn table(headings: &[&str], rows: &[&[String]]) -> String {
    let headings: Vec<String> = headings.iter().map(|heading| (*heading).to_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&headings).chain(&rows).collect();
    let width = |column: usize| all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..headings.len()).map(|column| width(column).unwrap_or(0)).collect();
    let pad = |(cell, width): (&String, &usize)| format!("{cell:<width$}");
    let lines = all.iter().map(|row| row.iter().zip(&widths).map(pad).collect::<Vec<_>>().join("  "));
    lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Names come from documents and other providers: nothing in them may move the cursor, colour the terminal or turn the
/// order of what follows.
pub(super) fn printable(cell: &str) -> String {
    cell.chars()
        .flat_map(|character| {
            let escaped = is_invisible(character).then(|| character.escape_default());
            let plain = escaped.is_none().then_some(character);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

pub(super) fn time(instant: Instant) -> String {
    timestamp::format(instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let rows = [vec![String::from("alice"), String::from("yes")], vec![String::from("b"), String::new()]];
        let rows: Vec<&[String]> = rows.iter().map(Vec::as_slice).collect();
        assert_eq!(table(&["USERNAME", "ON"], &rows), "USERNAME  ON\nalice     yes\nb");
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\n\u{9b}\u{202e}é"), "a\\u{1b}[31mb\\n\\u{9b}\\u{202e}é");
    }
}
