//! How fast server processes may follow each other.

use std::time::{Duration, Instant};

/// A process that served this long was not a failure.
pub const STEADY: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(5);
/// Least time between two starts that a server process asked for.
const RECYCLING: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Pace {
    failures: u32,
    last_start: Option<Instant>,
}

impl Pace {
    pub fn new() -> Pace {
        Pace { failures: 0, last_start: None }
    }

    pub fn note_start(&mut self, now: Instant) {
        self.last_start = Some(now);
    }

    pub fn note_success(&mut self) {
        self.failures = 0;
    }

    /// Takes note of a failure; answers how long to wait before the next start: 200 ms, doubled each time, at most 5 s.
    pub fn next_delay(&mut self) -> Duration {
        let delay = SHORTEST.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    pub fn earliest_recycling(&self, now: Instant) -> Instant {
        self.last_start.map_or(now, |last| (last + RECYCLING).max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_seconds_and_begin_anew_after_a_success() {
        let mut pace = Pace::new();
        let waits: Vec<u128> = (0..7).map(|_| pace.next_delay().as_millis()).collect();
        assert_eq!(waits, [200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert!((0..100).all(|_| pace.next_delay() <= LONGEST));
        pace.note_success();
        assert_eq!(pace.next_delay(), Duration::from_millis(200));
    }

    #[test]
    fn recycling_waits_for_five_seconds_after_the_last_start() {
        let mut pace = Pace::new();
        let now = Instant::now();
        assert_eq!(pace.earliest_recycling(now), now);
        pace.note_start(now);
        assert_eq!(pace.earliest_recycling(now), now + RECYCLING);
        let later = now + Duration::from_secs(60);
        assert_eq!(pace.earliest_recycling(later), later);
    }
}
