//! The document, from a file or from standard input.

use std::fs;
use std::io::{self, Read};

use serde_json::Value;

use crate::cli::failure::Failure;
use crate::protocol::registration::json;

/// Reads and parses it; `-` is standard input. The error says which, what is wrong, and where.
pub(in crate::cli) fn read(file: &str) -> Result<Value, Failure> {
    let (name, text) = match file {
        "-" => (String::from("standard input"), from_standard_input()),
        file => (file.escape_debug().to_string(), fs::read(file)),
    };
    let bytes = text.map_err(|error| Failure::Refused(format!("{name} cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::Refused(format!("{name} is not UTF-8")))?;
    if text.trim().is_empty() {
        return Err(Failure::Refused(format!("{name} is empty, and so is not JSON; {{}} is the smallest document")));
    }
    json::parse(text.trim_start_matches('\u{feff}'))
        .map_err(|error| Failure::Refused(format!("{name} is not JSON: {error}")))
}

fn from_standard_input() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}
