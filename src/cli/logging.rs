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
            LogFormat::Text => self.text(record, &message),
            LogFormat::Json => self.json(record, &message),
        };
        // Nobody to tell when standard error is gone.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }

    fn flush(&self) {}
}

impl StandardError {
    fn text(&self, record: &Record<'_>, message: &str) -> String {
        let priority = if self.journald { format!("<{}>", priority(record.level())) } else { String::new() };
        let line: String = message.chars().flat_map(escape).collect();
        format!("{priority}{:<5} {line}\n", record.level())
    }

    fn json(&self, record: &Record<'_>, message: &str) -> String {
        let level = record.level().as_str().to_ascii_lowercase();
        format!("{}\n", json!({"level": level, "target": record.target(), "message": message}))
    }
}

/// Control characters would forge lines or move the cursor of whoever reads them.
fn escape(character: char) -> Vec<char> {
    if character.is_control() { character.escape_default().collect() } else { vec![character] }
}

/// Of syslog (RFC 5424 §6.2.1).
fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}
