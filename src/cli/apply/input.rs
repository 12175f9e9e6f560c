//! The document, from a file or from standard input.

use std::fs;
use std::io::{self, Read};

use serde_json::Value;

use crate::cli::failure::Failure;
use crate::cli::reading::{unread, utf8};
use crate::protocol::registration::json;

/// Reads and parses it; `-` is standard input. The error says which, what is wrong, and where.
pub(in crate::cli) fn read(file: &str) -> Result<Value, Failure> {
    let (name, bytes) = match file {
        "" => return Err(Failure::Usage(String::from("FILE is an empty name; - is standard input"))),
        "-" => {
            let mut bytes = Vec::new();
            (String::from("standard input"), io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes))
        }
        file => (file.escape_debug().to_string(), fs::read(file)),
    };
    let bytes = bytes.map_err(|error| unread(&name, &error))?;
    let text = utf8(&name, bytes)?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err(Failure::Refused(format!("{name} is empty, and so is not JSON; {{}} is the smallest document")));
    }
    let begins = if text.trim_start().starts_with('{') { "" } else { "; a document is an object, and begins with {" };
    json::parse(text).map_err(|error| Failure::Refused(format!("{name} is not JSON: {error}{begins}")))
}
