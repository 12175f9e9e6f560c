//! A line that says how far long work has come.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// For people at a terminal only. Dropped, it leaves nothing behind.
pub struct Progress {
    total: usize,
    done: usize,
    shown_at: Option<Instant>,
    is_seen: bool,
}

impl Progress {
    pub fn of(total: usize) -> Progress {
        Progress {
            total,
            done: 0,
            shown_at: None,
            is_seen: total > 1 && io::stderr().is_terminal(),
        }
    }

    pub fn advance(&mut self, steps: usize) {
        self.done += steps;
        let is_due = self
            .shown_at
            .is_none_or(|shown_at| shown_at.elapsed() >= Duration::from_millis(100))
            || self.done == self.total;
        if self.is_seen && is_due {
            self.shown_at = Some(Instant::now());
            write(&format!(
                "\r\u{1b}[K{} of {} changes",
                self.done, self.total
            ));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown_at.is_some() {
            write("\r\u{1b}[K");
        }
    }
}

fn write(text: &str) {
    let mut terminal = io::stderr().lock();
    // A terminal that went away is no reason to stop.
    let _ = terminal
        .write_all(text.as_bytes())
        .and_then(|()| terminal.flush());
}
