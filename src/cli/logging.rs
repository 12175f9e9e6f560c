//! Where log lines go: standard error, one line each, for people or for collectors. Only our own targets are heard below
//! the level of warnings: a library's debug lines would show statement parameters.

use std::io::{self, Write};

use log::kv::{self, Key, VisitSource};
use log::{Level, LevelFilter, Log, Metadata, Record};
use serde_json::{Map, Value};

use crate::config::{Config, LogFormat};

struct StandardError {
    format: LogFormat,
    level: LevelFilter,
    /// journald reads the priority from the line's beginning and knows the time itself.
    journald: bool,
}

/// Starts logging as configured. Called once; a second call changes nothing.
pub fn start(config: &Config) {
    start_with(config.log_format, config.log_level);
}

/// Starts logging where there is no configuration (yet).
pub fn start_plainly() {
    start_with(LogFormat::Text, LevelFilter::Info);
}

fn start_with(format: LogFormat, level: LevelFilter) {
    let journald = std::env::var_os("JOURNAL_STREAM").is_some();
    let logger = Box::leak(Box::new(StandardError { format, level, journald }));
    if log::set_logger(logger).is_ok() {
        log::set_max_level(level);
    }
}

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = metadata.target().split("::").next() == Some("gatepost");
        metadata.level() <= self.level && (ours || metadata.level() <= Level::Warn)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let message = record.args().to_string();
        let line = match self.format {
            LogFormat::Text => self.text(record.level(), &message),
            LogFormat::Json => self.json(record, &message),
        };
        // Nobody to tell when standard error is gone.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }

    fn flush(&self) {}
}

impl StandardError {
    fn text(&self, level: Level, message: &str) -> String {
        let mut line = String::with_capacity(message.len() + 16);
        if self.journald {
            line.extend(["<", priority(level), ">"]);
        }
        line.extend([level.as_str(), " "]);
        // As wide as the widest, so that messages stand below each other.
        line.extend(std::iter::repeat_n(' ', "ERROR".len().saturating_sub(level.as_str().len())));
        // Control characters would forge lines or move the cursor of whoever reads them.
        for piece in message.split_inclusive(char::is_control) {
            let control = piece.chars().next_back().filter(|last| last.is_control());
            line.push_str(control.map_or(piece, |control| piece.strip_suffix(control).unwrap_or(piece)));
            line.extend(control.into_iter().flat_map(char::escape_default));
        }
        line.push('\n');
        line
    }

    fn json(&self, record: &Record<'_>, message: &str) -> String {
        let mut members = Map::new();
        members.insert(String::from("level"), record.level().as_str().to_ascii_lowercase().into());
        members.insert(String::from("target"), record.target().into());
        match record.key_values().count() {
            0 => drop(members.insert(String::from("message"), message.into())),
            // The message says the same in one line.
            _ => drop(record.key_values().visit(&mut Members(&mut members))),
        }
        format!("{}\n", Value::Object(members))
    }
}

/// Takes a record's fields over into a JSON object.
struct Members<'a>(&'a mut Map<String, Value>);

impl<'kvs> VisitSource<'kvs> for Members<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: kv::Value<'kvs>) -> Result<(), kv::Error> {
        let value = value.to_u64().map_or_else(|| Value::from(value.to_string()), Value::from);
        self.0.insert(key.to_string(), value);
        Ok(())
    }
}

/// Of syslog (RFC 5424 §6.2.1).
fn priority(level: Level) -> &'static str {
    match level {
        Level::Error => "3",
        Level::Warn => "4",
        Level::Info => "6",
        Level::Debug | Level::Trace => "7",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(journald: bool, level: Level, message: &str) -> String {
        StandardError { format: LogFormat::Text, level: LevelFilter::Info, journald }.text(level, message)
    }

    #[test]
    fn a_message_stays_on_its_line() {
        assert_eq!(text(false, Level::Info, "one\ntwo\u{1b}[0m ü"), "INFO  one\\ntwo\\u{1b}[0m ü\n");
        assert_eq!(text(false, Level::Error, "\r\r"), "ERROR \\r\\r\n");
    }

    #[test]
    fn json_has_the_fields_of_a_request_as_members_and_any_other_line_as_message() {
        let logger = StandardError { format: LogFormat::Json, level: LevelFilter::Info, journald: true };
        let fields = [("path", kv::Value::from("/\n\"")), ("status", kv::Value::from(404))];
        let request = Record::builder().level(Level::Info).target("gatepost::request").key_values(&fields).build();
        let line = logger.json(&request, "path=... status=404");
        assert_eq!(
            line,
            "{\"level\":\"info\",\"path\":\"/\\n\\\"\",\"status\":404,\"target\":\"gatepost::request\"}\n"
        );
        let other = Record::builder().level(Level::Warn).target("gatepost").build();
        assert_eq!(logger.json(&other, "late"), "{\"level\":\"warn\",\"message\":\"late\",\"target\":\"gatepost\"}\n");
    }

    #[test]
    fn journald_learns_the_priority() {
        assert_eq!(text(true, Level::Warn, "late"), "<4>WARN  late\n");
    }
}
