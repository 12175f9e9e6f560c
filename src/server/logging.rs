//! Where log lines go: standard error, one line each, for people or for collectors. Only our own
//! targets are heard below the level of warnings: a library's debug lines would show statement
//! parameters.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::mem;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, PoisonError};
use std::time::Duration;

use log::kv::{self, Key, VisitSource};
use log::{Level, LevelFilter, Log, Metadata, Record};
use serde_json::Value;

use crate::config::{Config, LogFormat};
use gatepost_protocol::audit::audit_chain::HEADS_TARGET;
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::json::JsonObject;
use gatepost_store::AWAY_TARGET;
use gatepost_store::clock::time_of_day;
use gatepost_store::mutex::Mutex;
use gatepost_store::named_thread;

/// How many lines wait for a reader who is slow or has stopped: one or two megabytes.
const MOST_WAITING: usize = 8_192;
/// How long the end of the process waits for that reader.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

struct StandardError {
    format: LogFormat,
    level: LevelFilter,
    /// journald reads the priority from the line's beginning, takes it off, and knows the time
    /// itself.
    journald: bool,
    /// Whether a line begins with its time: where nobody else says when.
    tells_time: bool,
    /// Whether somebody keeps what is said, and with it the heads of the audit log: whoever reads a
    /// terminal does not.
    is_kept: bool,
    /// None: whoever logs writes.
    queue: Option<&'static Queue>,
}

/// Starts logging as configured, each line with its time, by a thread that writes: whoever reads
/// standard error may stop, and no request waits for that. Called once; a second call changes
/// nothing.
pub fn start(config: &Config) {
    let queue: &'static Queue = Box::leak(Box::default());
    let writer = named_thread::spawn("log", || queue.write());
    start_with(
        config.log_format,
        config.log_level,
        true,
        writer.is_ok().then_some(queue),
    );
}

/// For a command that says its few lines to whoever typed it.
pub fn start_plainly() {
    start_with(LogFormat::Text, LevelFilter::Info, false, None);
}

fn start_with(
    format: LogFormat,
    level: LevelFilter,
    tells_time: bool,
    queue: Option<&'static Queue>,
) {
    let journald = is_journal().unwrap_or(false);
    let logger = StandardError {
        format,
        level,
        journald,
        tells_time: tells_time && !journald,
        is_kept: !io::stderr().is_terminal(),
        queue,
    };
    if log::set_logger(Box::leak(Box::new(logger))).is_ok() {
        // The heads of the audit log are told at every level.
        log::set_max_level(level.max(LevelFilter::Info));
    }
}

/// Whether standard error is the stream whose device and inode systemd names (systemd.exec(5)): the
/// variable alone is handed down to whatever a service starts, terminals among them.
fn is_journal() -> Option<bool> {
    let named = std::env::var("JOURNAL_STREAM").ok()?;
    let stream = File::from(io::stderr().as_fd().try_clone_to_owned().ok()?)
        .metadata()
        .ok()?;
    Some(named == format!("{}:{}", stream.dev(), stream.ino()))
}

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let source = metadata.target().split("::").next();
        // Of each of our crates.
        let ours = source.is_some_and(|source| source.starts_with("gatepost"));
        // It logs one error alone, and hands it to a worker too, which says what it means.
        let told_twice = source == Some("tiny_http");
        let wanted = if metadata.target() == HEADS_TARGET {
            self.is_kept
        } else {
            metadata.level() <= self.level
        };
        // A command that fails by it says so at its end.
        let wanted = wanted && (metadata.target() != AWAY_TARGET || self.queue.is_some());
        wanted && !told_twice && (ours || metadata.level() <= Level::Warn)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let message = record.args().to_string();
        let time = self
            .tells_time
            .then(|| timestamp::format_to_the_millisecond(time_of_day()));
        let line = match self.format {
            LogFormat::Text => self.text(time.as_deref(), record, &message),
            LogFormat::Json => self.json(time.as_deref(), record, &message),
        };
        match self.queue {
            Some(queue) => queue.push(line, record.target() == HEADS_TARGET),
            None => write(&line),
        }
    }

    /// Waits until all is written, but no longer than [`LAST_PATIENCE`]: whoever ends the process
    /// says so first.
    fn flush(&self) {
        let Some(queue) = self.queue else { return };
        let is_busy = |waiting: &mut Waiting| !waiting.is_writer_idle || !waiting.lines.is_empty();
        let _ = queue
            .changed
            .wait_timeout_while(queue.waiting.lock(), LAST_PATIENCE, is_busy);
    }
}

/// In one piece: other processes write there, too.
fn write(line: &str) {
    // Nobody to tell when standard error is gone.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Log lines that this process dropped because nobody read them.
pub fn dropped_lines() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

static DROPPED: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// Each with whether it tells heads of the audit log.
    lines: VecDeque<(String, bool)>,
    is_writer_idle: bool,
    /// How many lines were dropped since the queue was empty. Until it is again no other gets in,
    /// so that the log has long pieces and long gaps, each gap with its line, when a reader is too
    /// slow.
    dropped: u64,
}

impl Queue {
    fn push(&self, line: String, tells_heads: bool) {
        let mut waiting = self.waiting.lock();
        let is_full = waiting.lines.len() >= MOST_WAITING;
        if is_full || (waiting.dropped > 0 && !tells_heads) {
            waiting.dropped += 1;
            DROPPED.fetch_add(1, Ordering::Relaxed);
            if !tells_heads {
                return;
            }
            // They take the place of another line or, where there is none but heads, of the oldest,
            // which are out of date.
            let place = waiting
                .lines
                .iter()
                .position(|(_, tells_heads)| !tells_heads)
                .unwrap_or(0);
            waiting.lines.remove(place);
        }
        waiting.lines.push_back((line, tells_heads));
        // Waking costs more than the line: once is enough.
        if mem::take(&mut waiting.is_writer_idle) {
            self.changed.notify_all();
        }
    }

    fn write(&self) -> ! {
        loop {
            let mut waiting = self.waiting.lock();
            if let Some((line, _)) = waiting.lines.pop_front() {
                drop(waiting);
                write(&line);
            } else if waiting.dropped > 0 {
                let dropped = mem::take(&mut waiting.dropped);
                drop(waiting);
                log::error!(
                    "{dropped} log lines were dropped here: nobody read standard error fast enough"
                );
            } else {
                waiting.is_writer_idle = true;
                self.changed.notify_all();
                let woken = self
                    .changed
                    .wait_while(waiting, |waiting| waiting.lines.is_empty());
                woken.unwrap_or_else(PoisonError::into_inner).is_writer_idle = false;
            }
        }
    }
}

impl StandardError {
    fn text(&self, time: Option<&str>, record: &Record<'_>, message: &str) -> String {
        let level = record.level();
        let mut line = String::with_capacity(message.len() + 40);
        line.extend(time.into_iter().flat_map(|time| [time, " "]));
        line.extend([self.priority(record), level.as_str(), " "]);
        // As wide as the widest, so that messages stand below each other.
        line.extend(std::iter::repeat_n(
            ' ',
            "ERROR".len().saturating_sub(level.as_str().len()),
        ));
        // Control characters would forge lines or move the cursor of whoever reads them.
        for piece in message.split_inclusive(char::is_control) {
            line.push_str(piece.strip_suffix(char::is_control).unwrap_or(piece));
            let control = piece.chars().next_back().filter(|last| last.is_control());
            line.extend(control.into_iter().flat_map(char::escape_default));
        }
        line.push('\n');
        line
    }

    fn json(&self, time: Option<&str>, record: &Record<'_>, message: &str) -> String {
        let mut members = JsonObject::new();
        members.extend(time.map(|time| (String::from("time"), time.into())));
        members.insert(
            String::from("level"),
            record.level().as_str().to_ascii_lowercase().into(),
        );
        // Readers of logs know modules, and no crates.
        let target = record.target().replacen("gatepost_server", "gatepost", 1);
        let target = target.replacen("gatepost_", "gatepost::", 1);
        members.insert(String::from("target"), target.into());
        match record.key_values().count() {
            0 => drop(members.insert(String::from("message"), message.into())),
            // The message says the same in one line.
            _ => drop(record.key_values().visit(&mut Members(&mut members))),
        }
        format!("{}{}\n", self.priority(record), Value::Object(members))
    }

    /// Of syslog (RFC 5424 §6.2.1), as journald reads it; nothing for anybody else. Heads of the
    /// audit log are for programs: `journalctl -p info` passes them over.
    fn priority(&self, record: &Record<'_>) -> &'static str {
        match record.level() {
            _ if !self.journald => "",
            _ if record.target() == HEADS_TARGET => "<7>",
            Level::Error => "<3>",
            Level::Warn => "<4>",
            Level::Info => "<6>",
            Level::Debug | Level::Trace => "<7>",
        }
    }
}

struct Members<'a>(&'a mut JsonObject);

impl<'kvs> VisitSource<'kvs> for Members<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: kv::Value<'kvs>) -> Result<(), kv::Error> {
        let value = match value.to_u64() {
            Some(number) => Value::from(number),
            None => Value::from(value.to_string()),
        };
        self.0.insert(key.to_string(), value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logger(format: LogFormat, level: LevelFilter, journald: bool) -> StandardError {
        StandardError {
            format,
            level,
            journald,
            tells_time: !journald,
            is_kept: true,
            queue: None,
        }
    }

    fn text(journald: bool, level: Level, message: &str) -> String {
        let record = Record::builder().level(level).target("gatepost").build();
        logger(LogFormat::Text, LevelFilter::Info, journald).text(None, &record, message)
    }

    #[test]
    fn a_line_is_one_line_with_its_time_or_for_journald_its_priority() {
        assert_eq!(
            text(false, Level::Info, "one\ntwo\u{1b}[0m ü\r"),
            "INFO  one\\ntwo\\u{1b}[0m ü\\r\n"
        );
        assert_eq!(text(true, Level::Warn, "late"), "<4>WARN  late\n");
        let time = Some("2027-01-31T08:00:00.250Z");
        let record = Record::builder()
            .level(Level::Info)
            .target("gatepost")
            .build();
        let text = logger(LogFormat::Text, LevelFilter::Info, false).text(time, &record, "late");
        assert_eq!(text, "2027-01-31T08:00:00.250Z INFO  late\n");
        let json = logger(LogFormat::Json, LevelFilter::Info, true).json(time, &record, "late");
        let members = r#"{"level":"info","message":"late","target":"gatepost","time":"2027-01-31T08:00:00.250Z"}"#;
        assert_eq!(json, format!("<6>{members}\n"));
    }

    #[test]
    fn json_has_the_fields_of_a_request_as_members() {
        let fields = [
            ("path", kv::Value::from("/\n\"")),
            ("status", kv::Value::from(404)),
        ];
        let request = Record::builder()
            .level(Level::Info)
            .target("gatepost::request")
            .key_values(&fields)
            .build();
        let line = logger(LogFormat::Json, LevelFilter::Info, false).json(
            None,
            &request,
            "path=... status=404",
        );
        let members =
            r#"{"level":"info","path":"/\n\"","status":404,"target":"gatepost::request"}"#;
        assert_eq!(line, format!("{members}\n"));
    }

    #[test]
    fn a_full_queue_takes_heads_of_the_audit_log_and_nothing_else() {
        let queue = Queue::default();
        let heads = |number: usize| (format!("heads {number}"), true);
        (0..MOST_WAITING + 7).for_each(|number| queue.push(format!("line {number}"), false));
        (0..3).for_each(|number| queue.push(heads(number).0, true));
        let waiting = queue.waiting.lock();
        assert_eq!((waiting.lines.len(), waiting.dropped), (MOST_WAITING, 10));
        assert_eq!(
            waiting.lines.front(),
            Some(&(String::from("line 3"), false))
        );
        assert!(
            waiting
                .lines
                .iter()
                .rev()
                .take(3)
                .rev()
                .eq(&[heads(0), heads(1), heads(2)])
        );
        drop(waiting);
        (3..MOST_WAITING + 3).for_each(|number| queue.push(heads(number).0, true));
        let waiting = queue.waiting.lock();
        assert_eq!(
            (waiting.lines.len(), waiting.lines.front()),
            (MOST_WAITING, Some(&heads(3))),
            "the oldest leave"
        );
        assert_eq!(waiting.lines.back(), Some(&heads(MOST_WAITING + 2)));
    }

    #[test]
    fn heads_of_the_audit_log_are_not_told_to_a_terminal() {
        let heads = Record::builder()
            .level(Level::Info)
            .target(HEADS_TARGET)
            .build();
        let other = Record::builder()
            .level(Level::Info)
            .target("gatepost")
            .build();
        let terminal = StandardError {
            is_kept: false,
            ..logger(LogFormat::Text, LevelFilter::Trace, false)
        };
        assert!(!terminal.enabled(heads.metadata()) && terminal.enabled(other.metadata()));
    }
}
