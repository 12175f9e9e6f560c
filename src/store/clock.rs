//! The one clock: this machine's monotonic time plus an offset learnt from the database, so that
//! several processes on several machines judge by the same instants.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatepost_protocol::words::instant::Instant;

use super::mutex::Mutex;

/// Database time, readable without a round trip.
#[derive(Debug)]
pub struct Clock {
    started: std::time::Instant,
    reckoning: Mutex<Reckoning>,
}

/// Under one lock: whoever read the old time must not note it once the clock is set back, or the
/// clock would stand still until that time has come again.
#[derive(Debug)]
struct Reckoning {
    /// Database time (microseconds since the Unix epoch) at `started`.
    base_micros: i64,
    /// The latest moment told: small corrections never turn the clock back, or a sign-in could lie
    /// after the request that follows it.
    told_micros: i64,
}

/// This machine's own time of day: for the log, which must tell the time also before any database
/// has.
pub fn time_of_day() -> Instant {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Instant::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}

/// A machine whose clock is further off than this from the database's is not ready.
pub const MOST_SKEW_MICROS: i64 = 30_000_000;

/// A correction backwards by more than this is the database's clock being set, and is followed.
const SET_BACK_MICROS: i64 = 1_000_000;

impl Clock {
    pub fn now(&self) -> Instant {
        let mut reckoning = self.reckoning.lock();
        let reading = reckoning.base_micros.saturating_add(self.elapsed_micros());
        reckoning.told_micros = reckoning.told_micros.max(reading);
        Instant::from_micros(reckoning.told_micros)
    }

    /// Takes over the database's reading of its clock, which may be wrong by `uncertainty` in
    /// either direction: what is within that is no news, and would only make the clock waver under
    /// load. Answers how far off this clock was, in microseconds.
    pub fn adjust(&self, database_now: Instant, uncertainty: Duration) -> i64 {
        let mut reckoning = self.reckoning.lock();
        let base = database_now.micros().saturating_sub(self.elapsed_micros());
        let offset = base.saturating_sub(reckoning.base_micros);
        if u128::from(offset.unsigned_abs()) <= uncertainty.as_micros() {
            return 0;
        }
        reckoning.base_micros = base;
        if offset < -SET_BACK_MICROS {
            reckoning.told_micros = database_now.micros();
        }
        offset
    }

    /// How far this machine's own time of day is from the database's, in microseconds.
    pub fn skew_micros(&self) -> i64 {
        self.now().micros().saturating_sub(time_of_day().micros())
    }

    /// Whether one of the two clocks is wrong, and nobody knows which. Nothing is dropped for being
    /// old then.
    pub fn is_in_doubt(&self) -> bool {
        self.skew_micros().abs() > MOST_SKEW_MICROS
    }

    fn elapsed_micros(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

impl Default for Clock {
    /// A clock that goes by this machine's time until the database has told its own.
    fn default() -> Clock {
        Clock {
            started: std::time::Instant::now(),
            reckoning: Mutex::new(Reckoning {
                base_micros: time_of_day().micros(),
                told_micros: i64::MIN,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn small_corrections_never_turn_it_back_and_large_ones_do() {
        let clock = Clock::default();
        let told = clock.now();
        clock.adjust(told.minus(Duration::from_millis(200)), Duration::ZERO);
        assert!(clock.now() >= told);
        clock.adjust(told.minus(Duration::from_secs(3_600)), Duration::ZERO);
        assert!(clock.now() < told.minus(Duration::from_secs(3_000)));
    }

    #[test]
    fn who_reads_it_while_it_is_set_back_does_not_hold_it_where_it_was() {
        let clock = Clock::default();
        let hour = Duration::from_secs(3_600);
        let over = AtomicBool::new(false);
        let went_back = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    clock.now();
                }
            });
            let went_back = (0..20_000).all(|_| {
                let before = clock.now();
                clock.adjust(before.plus(hour), Duration::ZERO);
                clock.adjust(before, Duration::ZERO);
                clock.now() < before.plus(hour)
            });
            over.store(true, Ordering::Relaxed);
            went_back
        });
        assert!(went_back);
    }

    #[test]
    fn a_reading_that_took_long_moves_it_only_by_what_it_proves() {
        let clock = Clock::default();
        let told = clock.now();
        assert_eq!(
            clock.adjust(told.plus(Duration::from_secs(9)), Duration::from_secs(10)),
            0
        );
        assert!(clock.now().since(told) < Duration::from_secs(5));
        assert!(clock.adjust(told.plus(Duration::from_secs(60)), Duration::from_secs(10)) > 0);
        assert!(clock.now().since(told) >= Duration::from_secs(60));
    }

    #[test]
    fn half_a_minute_between_the_clocks_is_in_doubt_and_a_second_is_not() {
        let clock = Clock::default();
        for (seconds, in_doubt) in [(0, false), (1, false), (40, true)] {
            let ahead = time_of_day().plus(Duration::from_secs(seconds));
            clock.adjust(ahead, Duration::ZERO);
            assert_eq!(clock.is_in_doubt(), in_doubt, "{seconds} s ahead");
            let behind = time_of_day().minus(Duration::from_secs(seconds));
            clock.adjust(behind, Duration::ZERO);
            assert_eq!(clock.is_in_doubt(), in_doubt, "{seconds} s behind");
        }
    }

    #[test]
    fn follows_the_database_after_adjustment() {
        let clock = Clock::default();
        let ahead = clock.now().plus(Duration::from_secs(3_600));
        assert!((clock.adjust(ahead, Duration::ZERO) - 3_600_000_000).abs() < 1_000_000);
        assert!(clock.now().since(ahead) < Duration::from_secs(1) && clock.now() >= ahead);
    }
}
