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
        Some(Failures { count, last_at: at(1_000), window_ends_at: at(1_600) })
    }

    #[test]
    fn the_tenth_wrong_password_is_the_last_for_a_while() {
        let counters =
            |count| Counters { account_and_source: failures(count), source: failures(count), account: failures(count) };
        assert_eq!(admit(&counters(9), &LIMITS, at(1_001)), Admission::Admit);
        assert_eq!(admit(&counters(10), &LIMITS, at(1_001)), Admission::Wait(Duration::from_secs(599)));
        assert_eq!(admit(&counters(10), &LIMITS, at(1_600)), Admission::Admit);
    }

    #[test]
    fn a_source_that_tries_many_accounts_waits_for_all() {
        let counters = Counters { source: failures(50), ..Counters::default() };
        assert_eq!(admit(&counters, &LIMITS, at(1_100)), Admission::Wait(Duration::from_secs(500)));
    }

    #[test]
    fn an_attack_from_everywhere_delays_new_sources_and_locks_nobody() {
        let attacked = Counters { account: failures(301), ..Counters::default() };
        assert_eq!(admit(&attacked, &LIMITS, at(1_001)), Admission::Introduce(Duration::from_secs(60)));
        let introduced = Counters { account_and_source: failures(1), ..attacked };
        assert_eq!(admit(&introduced, &LIMITS, at(1_001)), Admission::Wait(Duration::from_secs(59)));
        assert_eq!(admit(&introduced, &LIMITS, at(1_060)), Admission::Admit);
        assert_eq!(admit(&Counters { account: failures(300), ..attacked }, &LIMITS, at(1_001)), Admission::Admit);
    }
}
