//! Back-channel logouts that this process made, counted for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct LogoutCalls {
    told: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
}

impl LogoutCalls {
    pub fn note_told(&self) {
        self.told.fetch_add(1, Ordering::Relaxed);
    }

    /// It did not, and is called again unless this was the `last` try.
    pub fn note_failed(&self, last: bool) {
        let count = if last { &self.given_up } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn by_outcome(&self) -> [(&'static str, u64); 3] {
        [("told", &self.told), ("failed", &self.failed), ("given_up", &self.given_up)]
            .map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)))
    }
}
