//! When a signing key is announced, signs, stays published and is forgotten.

use std::time::Duration;

use super::instant::Instant;

/// The lengths of a key's four seasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySeasons {
    /// Published before it signs.
    pub announce: Duration,
    /// Signing.
    pub sign: Duration,
    /// Published after its last signature.
    pub publish: Duration,
    /// Kept after that, to check hints.
    pub hint: Duration,
}

/// The turning points of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTimes {
    /// From when it stands in the JWKS.
    pub announced_at: Instant,
    /// From when it may sign.
    pub activates_at: Instant,
    /// Until when it may sign.
    pub retires_at: Instant,
    /// Until when it stands in the JWKS.
    pub unpublished_at: Instant,
    /// Until when it checks hints.
    pub forgotten_at: Instant,
}

impl KeySeasons {
    /// A key announced now, for everybody to learn of before it signs.
    pub fn announced_at(&self, now: Instant) -> KeyTimes {
        self.active_from(now, now.plus(self.announce))
    }

    /// A key that signs at once: an installation's first, or one whose predecessor cannot be trusted any longer.
    pub fn active_at_once(&self, now: Instant) -> KeyTimes {
        self.active_from(now, now)
    }

    /// A key announced then and signing from `activates_at` on.
    pub fn active_from(&self, announced_at: Instant, activates_at: Instant) -> KeyTimes {
        self.retiring_at(announced_at, activates_at, activates_at.plus(self.sign))
    }

    /// The same key, ending earlier or later because its successor takes over then.
    pub fn retiring_at(&self, announced_at: Instant, activates_at: Instant, retires_at: Instant) -> KeyTimes {
        let unpublished_at = retires_at.plus(self.publish);
        KeyTimes {
            announced_at,
            activates_at,
            retires_at,
            unpublished_at,
            forgotten_at: unpublished_at.plus(self.hint),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn the_seasons_follow_each_other() {
        let seasons = KeySeasons { announce: DAY * 14, sign: DAY * 90, publish: DAY * 14, hint: DAY * 90 };
        let now = Instant::from_seconds(1_795_132_800);
        let times = seasons.announced_at(now);
        let days = [times.announced_at, times.activates_at, times.retires_at, times.unpublished_at, times.forgotten_at]
            .map(|at| at.since(now).as_secs() / 86_400);
        assert_eq!(days, [0, 14, 104, 118, 208]);
        assert_eq!(seasons.active_at_once(now).activates_at, now);
        let replaced = seasons.retiring_at(now, now, now.plus(DAY));
        assert_eq!(replaced.forgotten_at.since(now), DAY * 105);
    }
}
