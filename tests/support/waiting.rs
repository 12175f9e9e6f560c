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
