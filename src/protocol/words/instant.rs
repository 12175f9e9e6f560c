//! Points in time as plain numbers. The core never reads a clock: `now` is always an argument.

use std::time::Duration;

use serde::{Deserialize, Serialize};

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Microseconds since 1970-01-01T00:00:00Z: the precision Postgres stores, so comparing here and
/// there agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Instant(i64);

impl Instant {
    pub const fn from_micros(micros: i64) -> Instant {
        Instant(micros)
    }

    /// Takes whole seconds since the Unix epoch, as in a JWT's `NumericDate` (RFC 7519 §2).
    /// Saturates.
    pub const fn from_seconds(seconds: i64) -> Instant {
        Instant(seconds.saturating_mul(MICROS_PER_SECOND))
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since the Unix epoch, rounded down: the precision in which `max_age` is judged.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Whole seconds since the Unix epoch, rounded down: a JWT's `NumericDate`.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(MICROS_PER_SECOND)
    }

    /// The minute this instant lies in, counted from the Unix epoch: midnight begins one.
    pub const fn minute(self) -> i64 {
        self.seconds().div_euclid(60)
    }

    /// The same for the hour.
    pub const fn hour(self) -> i32 {
        self.seconds().div_euclid(3_600) as i32
    }

    pub const fn day(self) -> Day {
        // An i64 of microseconds spans about 292,000 years, so the day number always fits.
        Day(self.seconds().div_euclid(SECONDS_PER_DAY) as i32)
    }

    /// This instant moved `lifetime` ahead. Saturates instead of wrapping: a token never ends
    /// before it began.
    pub fn plus(self, lifetime: Duration) -> Instant {
        let micros = i64::try_from(lifetime.as_micros()).unwrap_or(i64::MAX);
        Instant(self.0.saturating_add(micros))
    }

    pub fn minus(self, lifetime: Duration) -> Instant {
        let micros = i64::try_from(lifetime.as_micros()).unwrap_or(i64::MAX);
        Instant(self.0.saturating_sub(micros))
    }

    /// How long after `earlier` this is; zero when it is not.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Days since 1970-01-01 in UTC: the key that partitions what expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Day(pub i32);

impl Day {
    pub const fn start(self) -> Instant {
        Instant::from_seconds(self.0 as i64 * SECONDS_PER_DAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_down_before_the_epoch_too() {
        assert_eq!(Instant::from_micros(-1).seconds(), -1);
        assert_eq!(Instant::from_micros(-1).day(), Day(-1));
        assert_eq!(Instant::from_micros(1_999_999).seconds(), 1);
        assert_eq!(Instant::from_micros(2_999).millis(), 2);
        assert_eq!(Instant::from_seconds(179).minute(), 2);
        assert_eq!(Instant::from_micros(-1).minute(), -1);
        assert_eq!(Instant::from_seconds(7_199).hour(), 1);
        assert_eq!(Instant::from_micros(7).micros(), 7);
        assert_eq!(Day(2).start(), Instant::from_seconds(172_800));
    }

    #[test]
    fn arithmetic_saturates() {
        let end = Instant::from_micros(i64::MAX);
        assert_eq!(end.plus(Duration::from_secs(1)), end);
        assert_eq!(Instant::from_micros(5).plus(Duration::MAX), end);
        assert_eq!(Instant::from_seconds(i64::MAX), end);
        assert_eq!(
            Instant::from_micros(9).since(Instant::from_micros(2)),
            Duration::from_micros(7)
        );
        assert_eq!(
            Instant::from_micros(1).since(Instant::from_micros(2)),
            Duration::ZERO
        );
    }
}
