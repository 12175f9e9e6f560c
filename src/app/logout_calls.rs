//! Back-channel logouts that this process made, counted for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct LogoutCalls {
    pub told: AtomicU64,
    /// Called again, as it was not the last try.
    pub failed: AtomicU64,
    pub given_up: AtomicU64,
}

impl LogoutCalls {
    pub fn by_outcome(&self) -> [(&'static str, u64); 3] {
        [("told", &self.told), ("failed", &self.failed), ("given_up", &self.given_up)]
            .map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)))
    }
}
