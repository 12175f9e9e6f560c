//! Whether somebody may try a password now. Wrong ones are counted per (account, source), per source, and per account
//! from everywhere; nothing ever locks an account, and accounts that do not exist are treated as those that do.

use std::time::Duration;

use super::instant::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failures {
    /// In the present window.
    pub count: u32,
    pub last_at: Instant,
    pub window_ends_at: Instant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// This account, from this source.
    pub account_and_source: Option<Failures>,
    pub source: Option<Failures>,
    /// This account, from everywhere, over an hour.
    pub account: Option<Failures>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordLimits {
    pub account_and_source: u32,
    pub source: u32,
    /// Per account and hour: beyond it, sources that are new to the account wait.
    pub account: u32,
    pub new_source_wait: Duration,
}

/// The verdict on an attempt, before the password is looked at.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Admit,
    Wait(Duration),
    /// Likewise, and the source must be noted as having asked: the account is under attack and the source new to it.
    Introduce(Duration),
}

pub fn admit(counters: &Counters, limits: &PasswordLimits, now: Instant) -> Admission {
    let exhausted = |failures: Option<Failures>, limit: u32| {
        failures.filter(|failures| failures.count >= limit).map(|failures| failures.window_ends_at.since(now))
    };
    let waits =
        [exhausted(counters.account_and_source, limits.account_and_source), exhausted(counters.source, limits.source)];
    if let Some(wait) = waits.into_iter().flatten().max().filter(|wait| !wait.is_zero()) {
        return Admission::Wait(wait);
    }
    if counters.account.is_none_or(|failures| failures.count <= limits.account) {
        return Admission::Admit;
    }
    match counters.account_and_source {
        None => Admission::Introduce(limits.new_source_wait),
        Some(failures) => {
            let wait = failures.last_at.plus(limits.new_source_wait).since(now);
            if wait.is_zero() { Admission::Admit } else { Admission::Wait(wait) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PasswordLimits =
        PasswordLimits { account_and_source: 10, source: 50, account: 300, new_source_wait: Duration::from_secs(60) };

    fn at(seconds: i64) -> Instant {
        Instant::from_seconds(seconds)
    }

    fn failures(count: u32) -> Option<Failures> {
        (count > 0).then_some(Failures { count, last_at: at(1_000), window_ends_at: at(1_600) })
    }

    #[test]
    fn whoever_failed_too_often_waits_and_an_attack_from_everywhere_locks_nobody() {
        use Admission::{Admit, Introduce, Wait};
        let seconds = Duration::from_secs;
        for ([account_and_source, source, account], now, expected) in [
            ([9, 9, 9], 1_001, Admit),
            ([10, 10, 10], 1_001, Wait(seconds(599))),
            ([10, 10, 10], 1_600, Admit),
            ([0, 50, 0], 1_100, Wait(seconds(500))),
            ([0, 0, 300], 1_001, Admit),
            ([0, 0, 301], 1_001, Introduce(seconds(60))),
            ([1, 0, 301], 1_001, Wait(seconds(59))),
            ([1, 0, 301], 1_060, Admit),
        ] {
            let counters = Counters {
                account_and_source: failures(account_and_source),
                source: failures(source),
                account: failures(account),
            };
            assert_eq!(admit(&counters, &LIMITS, at(now)), expected, "{counters:?} {now}");
        }
    }
}
