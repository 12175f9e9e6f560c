//! Where log lines go: standard error, one line each, for people or for collectors. Only our own
//! targets are heard below the level of warnings: a library's debug lines would show statement
//! parameters.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
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
use gatepost_protocol::words::json::{JsonObject, SetMember};
use gatepost_store::AWAY_TARGET;
use gatepost_store::clock::time_of_day;
use gatepost_store::mutex::Mutex;
use gatepost_store::named_thread;

/// How many lines wait for a reader who is slow or has stopped: one or two megabytes.
const MOST_WAITING: usize = 8_192;
/// How long lines gather before they are written, and how many bytes of them: to wake the thread
/// that writes costs more than a line.
const GATHER_FOR: Duration = Duration::from_millis(5);
const GATHER_AT_MOST: usize = 64 * 1_024;
/// So many bytes reach a pipe in one piece (`PIPE_BUF`), between those of other processes.
const PIECE: usize = 4_096;
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
        let time = self
            .tells_time
            .then(|| timestamp::format_to_the_millisecond(time_of_day()));
        let text = match self.format {
            LogFormat::Text => self.text(time.as_deref(), record),
            LogFormat::Json => self.json(time.as_deref(), record),
        };
        let Some(queue) = self.queue else {
            return write(&text);
        };
        queue.push(Line {
            text,
            tells_heads: record.target() == HEADS_TARGET,
            is_urgent: record.level() <= Level::Warn || !self.is_kept,
        });
    }

    /// Has all written at once, and waits for that, but no longer than [`LAST_PATIENCE`]: whoever
    /// ends the process says so first.
    fn flush(&self) {
        let Some(queue) = self.queue else { return };
        let mut waiting = queue.waiting.lock();
        waiting.is_urgent = true;
        queue.changed.notify_all();
        let is_busy = |waiting: &mut Waiting| waiting.is_being_written || !waiting.lines.is_empty();
        let _ = queue
            .changed
            .wait_timeout_while(waiting, LAST_PATIENCE, is_busy);
    }
}

/// In one piece: other processes write there, too.
fn write(lines: &str) {
    // Nobody to tell when standard error is gone.
    let _ = io::stderr().lock().write_all(lines.as_bytes());
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
    lines: VecDeque<Line>,
    /// Of all lines that wait.
    bytes: usize,
    /// Whether somebody waits for what is written, or should read it at once.
    is_urgent: bool,
    /// Whether the thread that writes is at it.
    is_being_written: bool,
    /// How many lines were dropped since the queue was empty. Until it is again no other gets in,
    /// so that the log has long pieces and long gaps, each gap with its line, when a reader is too
    /// slow.
    dropped: u64,
}

#[derive(Debug, PartialEq)]
struct Line {
    text: String,
    /// Those of the audit log.
    tells_heads: bool,
    is_urgent: bool,
}

impl Waiting {
    /// Whether lines gather no longer.
    fn is_due(&self) -> bool {
        self.is_urgent || self.bytes >= GATHER_AT_MOST
    }

    fn remove(&mut self, place: usize) -> Option<Line> {
        let line = self.lines.remove(place)?;
        self.bytes -= line.text.len();
        Some(line)
    }

    /// Moves whole lines into `piece`, one at least.
    fn fill(&mut self, piece: &mut String) {
        while let Some(next) = self.lines.front()
            && (piece.is_empty() || piece.len() + next.text.len() <= PIECE)
        {
            piece.extend(self.remove(0).map(|line| line.text));
        }
    }
}

impl Queue {
    fn push(&self, line: Line) {
        let mut waiting = self.waiting.lock();
        let is_full = waiting.lines.len() >= MOST_WAITING;
        if is_full || (waiting.dropped > 0 && !line.tells_heads) {
            waiting.dropped += 1;
            DROPPED.fetch_add(1, Ordering::Relaxed);
            if !line.tells_heads {
                return;
            }
            // They take the place of another line or, where there is none but heads, of the oldest,
            // which are out of date.
            let place = waiting.lines.iter().position(|line| !line.tells_heads);
            waiting.remove(place.unwrap_or(0));
        }
        waiting.bytes += line.text.len();
        waiting.is_urgent |= line.is_urgent;
        waiting.lines.push_back(line);
        let is_due = waiting.is_due();
        if !waiting.is_being_written && (is_due || waiting.lines.len() == 1) {
            waiting.is_being_written = is_due;
            self.changed.notify_all();
        }
    }

    fn write(&self) -> ! {
        let mut piece = String::with_capacity(PIECE);
        self.waiting.lock().is_being_written = true;
        loop {
            let mut waiting = self.waiting.lock();
            waiting.fill(&mut piece);
            if !piece.is_empty() {
                drop(waiting);
                write(&piece);
                piece.clear();
            } else if waiting.dropped > 0 {
                let dropped = mem::take(&mut waiting.dropped);
                drop(waiting);
                log::error!(
                    "{dropped} log lines were dropped here: nobody read standard error fast enough"
                );
            } else {
                waiting.is_being_written = false;
                waiting.is_urgent = false;
                self.changed.notify_all();
                let woken = self
                    .changed
                    .wait_while(waiting, |waiting| waiting.lines.is_empty());
                let gathered = self.changed.wait_timeout_while(
                    woken.unwrap_or_else(PoisonError::into_inner),
                    GATHER_FOR,
                    |waiting| !waiting.is_due(),
                );
                let (mut waiting, _) = gathered.unwrap_or_else(PoisonError::into_inner);
                waiting.is_being_written = true;
            }
        }
    }
}

impl StandardError {
    fn text(&self, time: Option<&str>, record: &Record<'_>) -> String {
        let level = record.level();
        let mut line = String::with_capacity(256);
        line.extend(time.into_iter().flat_map(|time| [time, " "]));
        line.extend([self.priority(record), level.as_str(), " "]);
        // As wide as the widest, so that messages stand below each other.
        line.extend(std::iter::repeat_n(
            ' ',
            "ERROR".len().saturating_sub(level.as_str().len()),
        ));
        // Writing to memory does not fail.
        let _ = write!(Escaped(&mut line), "{}", record.args());
        line.push('\n');
        line
    }

    fn json(&self, time: Option<&str>, record: &Record<'_>) -> String {
        let mut members = JsonObject::new();
        if let Some(time) = time {
            members.set("time", time);
        }
        members.set("level", record.level().as_str().to_ascii_lowercase());
        // Readers of logs know modules, and no crates.
        let target = record.target().replacen("gatepost_server", "gatepost", 1);
        let target = target.replacen("gatepost_", "gatepost::", 1);
        members.set("target", target);
        match record.key_values().count() {
            0 => members.set("message", record.args().to_string()),
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

/// Control characters would forge lines or move the cursor of whoever reads them.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.split_inclusive(char::is_control) {
            self.0
                .push_str(piece.strip_suffix(char::is_control).unwrap_or(piece));
            let control = piece.chars().next_back().filter(|last| last.is_control());
            self.0
                .extend(control.into_iter().flat_map(char::escape_default));
        }
        Ok(())
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

    fn text(journald: bool, level: Level, time: Option<&str>, message: &str) -> String {
        let mut record = Record::builder();
        record.level(level).target("gatepost");
        let logger = logger(LogFormat::Text, LevelFilter::Info, journald);
        logger.text(time, &record.args(format_args!("{message}")).build())
    }

    #[test]
    fn a_line_is_one_line_with_its_time_or_for_journald_its_priority() {
        assert_eq!(
            text(false, Level::Info, None, "one\ntwo\u{1b}[0m ü\r"),
            "INFO  one\\ntwo\\u{1b}[0m ü\\r\n"
        );
        assert_eq!(text(true, Level::Warn, None, "late"), "<4>WARN  late\n");
        let time = Some("2027-01-31T08:00:00.250Z");
        assert_eq!(
            text(false, Level::Info, time, "late"),
            "2027-01-31T08:00:00.250Z INFO  late\n"
        );
        let json = logger(LogFormat::Json, LevelFilter::Info, true).json(
            time,
            &Record::builder()
                .level(Level::Info)
                .target("gatepost")
                .args(format_args!("late"))
                .build(),
        );
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
        let line = logger(LogFormat::Json, LevelFilter::Info, false).json(None, &request);
        let members =
            r#"{"level":"info","path":"/\n\"","status":404,"target":"gatepost::request"}"#;
        assert_eq!(line, format!("{members}\n"));
    }

    fn line(text: &str, number: usize) -> Line {
        Line {
            text: format!("{text} {number}"),
            tells_heads: text == "heads",
            is_urgent: text == "urgent",
        }
    }

    #[test]
    fn a_full_queue_takes_heads_of_the_audit_log_and_nothing_else() {
        let queue = Queue::default();
        let heads = |number| line("heads", number);
        (0..MOST_WAITING + 7).for_each(|number| queue.push(line("line", number)));
        (0..3).for_each(|number| queue.push(heads(number)));
        let waiting = queue.waiting.lock();
        assert_eq!((waiting.lines.len(), waiting.dropped), (MOST_WAITING, 10));
        assert_eq!(waiting.lines.front(), Some(&line("line", 3)));
        let last = waiting.lines.range(MOST_WAITING - 3..);
        assert!(last.eq(&[heads(0), heads(1), heads(2)]));
        drop(waiting);
        (3..MOST_WAITING + 3).for_each(|number| queue.push(heads(number)));
        let waiting = queue.waiting.lock();
        assert_eq!(
            (waiting.lines.len(), waiting.lines.front()),
            (MOST_WAITING, Some(&heads(3))),
            "the oldest leave"
        );
        assert_eq!(waiting.lines.back(), Some(&heads(MOST_WAITING + 2)));
        let bytes: usize = waiting.lines.iter().map(|line| line.text.len()).sum();
        assert_eq!(waiting.bytes, bytes);
    }

    #[test]
    fn lines_gather_until_one_is_urgent_or_they_are_many() {
        let is_written = |lines: &[&str]| {
            let queue = Queue::default();
            for (number, text) in lines.iter().enumerate() {
                queue.push(line(text, number));
            }
            queue.waiting.lock().is_being_written
        };
        let long = "a".repeat(GATHER_AT_MOST / 2);
        assert!(!is_written(&["line", "heads", "line"]));
        assert!(is_written(&["line", "urgent"]));
        assert!(!is_written(&[&long]));
        assert!(is_written(&[&long, &long]));
    }

    #[test]
    fn what_is_written_at_once_is_whole_lines_and_no_more_than_a_pipe_takes_in_one_piece() {
        let queue = Queue::default();
        let long = "a".repeat(PIECE);
        let texts = ["line", "line", &long, &"b".repeat(PIECE - 20), "line"];
        for (number, text) in texts.into_iter().enumerate() {
            queue.push(line(text, number));
        }
        let lengths = (0..4).map(|_| {
            let mut piece = String::new();
            queue.waiting.lock().fill(&mut piece);
            piece.len()
        });
        assert!(lengths.eq([12, PIECE + 2, PIECE - 12, 0]));
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
