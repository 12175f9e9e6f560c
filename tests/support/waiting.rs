//! Waiting for what comes about by itself, and asking again where one was turned away.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::http::Answer;
use super::record;

/// Only against hangs: what comes about takes a second or two where nothing else runs.
pub const SOON: Duration = Duration::from_secs(60);

/// Waits until `condition` holds; fails after `patience`.
pub fn await_that(what: &str, patience: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !record::without(&mut condition) {
        assert!(Instant::now() < deadline, "not within {patience:?}: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// What so many threads come to that act at the same time, each with its number.
pub fn all_at_once<T: Send>(threads: usize, act: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let act = &act;
    thread::scope(|scope| {
        let acting = (0..threads).map(|number| scope.spawn(move || act(number)));
        let acting: Vec<_> = acting.collect();
        acting.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// The first answer that is none of a server too busy to ask: 503 acknowledges nothing, and any
/// client comes again.
pub fn until_served(mut ask: impl FnMut() -> Answer) -> Answer {
    let mut answer = record::without(&mut ask);
    while answer.status == 503 {
        sleep(Duration::from_millis(50));
        answer = record::without(&mut ask);
    }
    answer
}

/// Says that all is over when it is dropped: also when a test fails, the load comes to its end.
pub struct OverAtLast<'a>(pub &'a AtomicBool);

impl Drop for OverAtLast<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits until these processes have written what they have logged so far: lines gather for five
/// milliseconds.
pub fn await_lines_of<P: IntoIterator<Item = u32>>(processes: impl Fn() -> P) {
    sleep(Duration::from_millis(10));
    await_that("log lines are written", SOON, || {
        !processes().into_iter().any(writes_log_lines)
    });
}

fn writes_log_lines(process: u32) -> bool {
    let mut stats = threads_of(process, "stat").into_iter();
    stats.any(|stat| stat.contains(" (log) R "))
}

/// What the kernel tells of each thread of a process.
pub fn threads_of(process: u32, file: &str) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.path().join(file)).ok())
        .collect()
}
