//! The one clock: this machine's monotonic time plus an offset learnt from the database, so that several processes on
//! several machines judge by the same instants.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::protocol::instant::Instant;

/// Database time, readable without a round trip.
#[derive(Debug)]
pub struct Clock {
    started: std::time::Instant,
    /// Database time (microseconds since the Unix epoch) at `started`.
    base_micros: AtomicI64,
}

impl Clock {
    /// A clock that goes by this machine's time until the database has told its own.
    pub fn new() -> Clock {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
        Clock { started: std::time::Instant::now(), base_micros: AtomicI64::new(micros) }
    }

    /// The present moment by the database's clock.
    pub fn now(&self) -> Instant {
        Instant::from_micros(self.base_micros.load(Ordering::Relaxed).saturating_add(self.elapsed_micros()))
    }

    /// Takes over the database's reading of its clock; answers how far off this clock was, in microseconds.
    pub fn adjust(&self, database_now: Instant) -> i64 {
        let offset = database_now.micros().saturating_sub(self.now().micros());
        self.base_micros.store(database_now.micros().saturating_sub(self.elapsed_micros()), Ordering::Relaxed);
        offset
    }

    /// How far this machine's own time of day is from the database's, in microseconds.
    pub fn skew_micros(&self) -> i64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.now().micros().saturating_sub(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }

    fn elapsed_micros(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn follows_the_database_after_adjustment() {
        let clock = Clock::new();
        let ahead = clock.now().plus(Duration::from_secs(3_600));
        assert!((clock.adjust(ahead) - 3_600_000_000).abs() < 1_000_000);
        assert!(clock.now().since(ahead) < Duration::from_secs(1) && clock.now() >= ahead);
    }
}
