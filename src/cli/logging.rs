//! Where log lines go: standard error, one line each, for people or for collectors. Only our own targets are heard below
//! the level of warnings: a library's debug lines would show statement parameters.

use std::io::{self, Write};

use log::{Level, LevelFilter, Log, Metadata, Record};
use serde_json::json;

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
        let level = record.level().as_str().to_ascii_lowercase();
        format!("{}\n", json!({"level": level, "target": record.target(), "message": message}))
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
    fn journald_learns_the_priority() {
        assert_eq!(text(true, Level::Warn, "late"), "<4>WARN  late\n");
    }
}
