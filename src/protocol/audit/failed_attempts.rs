//! Failed attempts on their way to the audit log: some from each source and minute one by one, the rest as a number,
//! in bounded memory. Somebody who fails on purpose neither fills the log nor hides others.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::instant::Instant;

/// One by one, from one source in one minute.
pub const TOLD_PER_MINUTE: u32 = 10;
/// Told apart in one minute; the others count together.
const MOST_SOURCES: usize = 1_000;
const MOST_WAITING: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    /// `sign_in_failed`, `client_authentication_failed`, `code_replayed`.
    pub event: &'static str,
    pub client_id: Option<ClientId>,
    pub source: IpAddr,
    pub request_id: String,
    /// Why, as a code of ours; and what else it is about.
    pub detail: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureRow {
    One(FailedAttempt),
    More { source: Option<IpAddr>, more: MoreFailures },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoreFailures {
    pub failed: u64,
    /// They were not looked at, for too many had failed before.
    pub turned_away: u64,
}

#[derive(Debug, Default)]
pub struct FailedAttempts {
    minute: i64,
    /// By source: an IPv4 address or an IPv6 /64.
    sources: BTreeMap<IpAddr, MoreFailures>,
    /// From sources that are not told apart, or when too many rows wait.
    others: MoreFailures,
    waiting: Vec<FailureRow>,
}

impl FailedAttempts {
    /// `source` may stand for many addresses.
    pub fn note(&mut self, attempt: FailedAttempt, source: IpAddr, now: Instant) {
        let counts = self.counts(source, now);
        counts.failed += 1;
        if counts.failed > u64::from(TOLD_PER_MINUTE) || !self.sources.contains_key(&source) {
            return;
        }
        if self.waiting.len() >= MOST_WAITING {
            self.others.failed += 1;
        } else {
            self.waiting.push(FailureRow::One(attempt));
        }
    }

    pub fn note_turned_away(&mut self, source: IpAddr, now: Instant) {
        self.counts(source, now).turned_away += 1;
    }

    fn counts(&mut self, source: IpAddr, now: Instant) -> &mut MoreFailures {
        self.close_minute(now.minute());
        if !self.sources.contains_key(&source) && self.sources.len() >= MOST_SOURCES {
            return &mut self.others;
        }
        self.sources.entry(source).or_default()
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn take(&mut self, now: Instant) -> Vec<FailureRow> {
        self.close_minute(now.minute());
        std::mem::take(&mut self.waiting)
    }

    /// The present minute's numbers too.
    pub fn take_all(&mut self) -> Vec<FailureRow> {
        self.close_minute(i64::MAX);
        std::mem::take(&mut self.waiting)
    }

    /// As far as there is room.
    pub fn give_back(&mut self, mut rows: Vec<FailureRow>) {
        rows.append(&mut self.waiting);
        let lost = rows.split_off(rows.len().min(MOST_WAITING));
        for lost in lost.iter().map(FailureRow::attempts) {
            self.others.failed += lost.failed;
            self.others.turned_away += lost.turned_away;
        }
        self.waiting = rows;
    }

    fn close_minute(&mut self, minute: i64) {
        if minute == self.minute {
            return;
        }
        self.minute = minute;
        let told = u64::from(TOLD_PER_MINUTE);
        let counts = std::mem::take(&mut self.sources);
        let untold = |counts: MoreFailures| MoreFailures { failed: counts.failed.saturating_sub(told), ..counts };
        let more = counts.into_iter().map(|(source, counts)| (Some(source), untold(counts)));
        let others = std::mem::take(&mut self.others);
        let more = more.chain([(None, others)]).filter(|(_, more)| *more != MoreFailures::default());
        self.waiting.extend(more.map(|(source, more)| FailureRow::More { source, more }));
    }
}

impl FailureRow {
    fn attempts(&self) -> MoreFailures {
        match self {
            FailureRow::One(_) => MoreFailures { failed: 1, turned_away: 0 },
            FailureRow::More { more, .. } => *more,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(number))
    }

    fn attempt(number: u32) -> FailedAttempt {
        FailedAttempt {
            event: "sign_in_failed",
            client_id: None,
            source: address(number),
            request_id: String::from("r"),
            detail: Value::Null,
        }
    }

    fn note(attempts: &mut FailedAttempts, number: u32, now: Instant) {
        attempts.note(attempt(number), address(number), now);
    }

    fn failed(failed: u64) -> MoreFailures {
        MoreFailures { failed, turned_away: 0 }
    }

    fn total(rows: &[FailureRow]) -> u64 {
        rows.iter().map(|row| row.attempts().failed).sum()
    }

    #[test]
    fn attempts_that_were_not_looked_at_are_counted_apart_and_nothing_waits_for_them() {
        let mut attempts = FailedAttempts::default();
        (0..12).for_each(|_| note(&mut attempts, 1, NOW));
        (0..7).for_each(|_| attempts.note_turned_away(address(1), NOW));
        attempts.note_turned_away(address(2), NOW);
        assert_eq!(attempts.take(NOW).len(), 10);
        assert!(!attempts.is_waiting());
        let more = |number, more| FailureRow::More { source: Some(address(number)), more };
        let expected =
            [more(1, MoreFailures { failed: 2, turned_away: 7 }), more(2, MoreFailures { failed: 0, turned_away: 1 })];
        assert_eq!(attempts.take(A_MINUTE_LATER), expected);
        (0..5_000).for_each(|number| attempts.note_turned_away(address(number), A_MINUTE_LATER));
        assert!(attempts.sources.len() <= MOST_SOURCES);
        assert_eq!(attempts.take_all().iter().map(|row| row.attempts().turned_away).sum::<u64>(), 5_000);
    }

    const NOW: Instant = Instant::from_seconds(1_795_132_800);
    const A_MINUTE_LATER: Instant = Instant::from_seconds(1_795_132_860);

    #[test]
    fn many_sources_take_bounded_memory_and_none_goes_uncounted() {
        let mut attempts = FailedAttempts::default();
        (0..5_000).for_each(|number| (0..3).for_each(|_| note(&mut attempts, number, NOW)));
        assert!(attempts.sources.len() <= MOST_SOURCES && attempts.waiting.len() <= MOST_WAITING);
        let rows = attempts.take_all();
        assert_eq!(rows.last(), Some(&FailureRow::More { source: None, more: failed(12_000) }));
        assert_eq!(total(&rows), 15_000);
    }

    #[test]
    fn what_cannot_be_written_waits_within_bounds() {
        let mut attempts = FailedAttempts::default();
        let rows = vec![FailureRow::One(attempt(1)); MOST_WAITING + 7];
        note(&mut attempts, 1, NOW);
        attempts.give_back(rows);
        assert_eq!(attempts.waiting.len(), MOST_WAITING);
        assert_eq!(attempts.others, failed(8));
    }
}
