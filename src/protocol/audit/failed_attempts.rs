//! Failed attempts on their way to the audit log: some of each minute one by one, the rest as
//! numbers, in bounded memory. Whoever fails on purpose can neither fill the log, from however many
//! addresses, nor hide what concerns an account or a client.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;

use serde_json::Value;

use crate::words::identifiers::{ClientId, Subject};
use crate::words::instant::Instant;

/// How many failures from one source are told one by one in a minute.
pub const TOLD_PER_MINUTE: u32 = 10;
/// How many failures from everywhere are told one by one in a minute. After them, the first of each
/// account and client is told.
const MOST_TOLD: u32 = 500;
/// How many sources are counted separately in a minute: the first to fail. The others are counted
/// together.
const MOST_SOURCES: usize = 100;
const MOST_WAITING: usize = 10_000;

#[derive(Clone, Debug, PartialEq)]
pub struct FailedAttempt {
    /// `sign_in_failed`, `client_authentication_failed`, `code_replayed`.
    pub event: &'static str,
    /// One that exists.
    pub client_id: Option<ClientId>,
    /// A user who exists.
    pub sub: Option<Subject>,
    pub source: IpAddr,
    pub request_id: String,
    /// Our code for the reason, and what else the failure is about.
    pub detail: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FailureRow {
    One(FailedAttempt),
    /// Further ones of a source.
    More {
        source: Option<IpAddr>,
        more: MoreFailures,
    },
    /// Further failures of a kind, from any source.
    NotTold {
        event: &'static str,
        count: u64,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MoreFailures {
    pub failed: u64,
    /// Attempts that were not judged, as too many had failed before.
    pub turned_away: u64,
}

#[derive(Debug, Default)]
pub struct FailedAttempts {
    minute: i64,
    /// One by one, of all sources.
    told: u32,
    /// By source: an IPv4 address or an IPv6 /64.
    sources: BTreeMap<IpAddr, OfSource>,
    /// The accounts and clients that failures of this minute concerned, for each kind of failure.
    concerned: HashSet<(&'static str, Concerned)>,
    /// By kind.
    not_told: BTreeMap<&'static str, u64>,
    /// Failures from sources that are not counted separately, or when too many rows wait.
    others: MoreFailures,
    waiting: Vec<FailureRow>,
}

#[derive(Debug, Default)]
struct OfSource {
    /// One by one.
    told: u32,
    more: MoreFailures,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Concerned {
    Account(Subject),
    Client(ClientId),
}

impl FailedAttempts {
    /// `source` may stand for many addresses.
    pub fn note(&mut self, attempt: FailedAttempt, source: IpAddr, now: Instant) {
        self.close_minute(now.minute());
        let is_first = self.is_first(&attempt);
        let has_room = self.waiting.len() < MOST_WAITING;
        let is_early = self.told < MOST_TOLD;
        let own = self.of_source(source).filter(|_| is_early);
        let is_one_of_ten = own.as_ref().is_none_or(|own| own.told < TOLD_PER_MINUTE);
        if has_room && (if is_early { is_one_of_ten } else { is_first }) {
            if let Some(own) = own {
                own.told += 1;
            }
            self.told += 1;
            self.waiting.push(FailureRow::One(attempt));
        } else if let Some(own) = own {
            own.more.failed += 1;
        } else {
            *self.not_told.entry(attempt.event).or_default() += 1;
        }
    }

    pub fn note_turned_away(&mut self, source: IpAddr, now: Instant) {
        self.close_minute(now.minute());
        match self.of_source(source) {
            Some(own) => own.more.turned_away += 1,
            None => self.others.turned_away += 1,
        }
    }

    /// Whether the failure is the first of its kind in this minute for its account, or for its
    /// client.
    fn is_first(&mut self, attempt: &FailedAttempt) -> bool {
        if self.concerned.len() >= MOST_WAITING {
            return false;
        }
        let account = attempt.sub.clone().map(Concerned::Account);
        let client = attempt.client_id.clone().map(Concerned::Client);
        let before = self.concerned.len();
        for one in account.into_iter().chain(client) {
            self.concerned.insert((attempt.event, one));
        }
        self.concerned.len() > before
    }

    /// `None` where too many sources are counted separately already.
    fn of_source(&mut self, source: IpAddr) -> Option<&mut OfSource> {
        if !self.sources.contains_key(&source) && self.sources.len() >= MOST_SOURCES {
            return None;
        }
        Some(self.sources.entry(source).or_default())
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn take(&mut self, now: Instant) -> Vec<FailureRow> {
        self.close_minute(now.minute());
        std::mem::take(&mut self.waiting)
    }

    /// Everything, the numbers of the present minute included.
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
        self.told = 0;
        self.concerned.clear();
        for (source, own) in std::mem::take(&mut self.sources) {
            self.tell_more(Some(source), own.more);
        }
        let others = std::mem::take(&mut self.others);
        self.tell_more(None, others);
        for (event, count) in std::mem::take(&mut self.not_told) {
            self.waiting.push(FailureRow::NotTold { event, count });
        }
    }

    fn tell_more(&mut self, source: Option<IpAddr>, more: MoreFailures) {
        if more != MoreFailures::default() {
            self.waiting.push(FailureRow::More { source, more });
        }
    }
}

impl FailureRow {
    fn attempts(&self) -> MoreFailures {
        match self {
            FailureRow::One(_) => MoreFailures {
                failed: 1,
                turned_away: 0,
            },
            FailureRow::More { more, .. } => *more,
            FailureRow::NotTold { count, .. } => MoreFailures {
                failed: *count,
                turned_away: 0,
            },
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
            sub: None,
            source: address(number),
            request_id: String::from("r"),
            detail: Value::Null,
        }
    }

    fn note(attempts: &mut FailedAttempts, number: u32, now: Instant) {
        attempts.note(attempt(number), address(number), now);
    }

    fn failed(failed: u64) -> MoreFailures {
        MoreFailures {
            failed,
            turned_away: 0,
        }
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
        assert!(attempts.is_waiting());
        assert_eq!(attempts.take(NOW).len(), 10);
        assert!(!attempts.is_waiting());
        let more = |number, more| FailureRow::More {
            source: Some(address(number)),
            more,
        };
        let expected = [
            more(
                1,
                MoreFailures {
                    failed: 2,
                    turned_away: 7,
                },
            ),
            more(
                2,
                MoreFailures {
                    failed: 0,
                    turned_away: 1,
                },
            ),
        ];
        assert_eq!(attempts.take(A_MINUTE_LATER), expected);
        (0..5_000).for_each(|number| attempts.note_turned_away(address(number), A_MINUTE_LATER));
        assert!(attempts.sources.len() <= MOST_SOURCES);
        assert_eq!(
            attempts
                .take_all()
                .iter()
                .map(|row| row.attempts().turned_away)
                .sum::<u64>(),
            5_000
        );
    }

    const NOW: Instant = Instant::from_seconds(1_795_132_800);
    const A_MINUTE_LATER: Instant = Instant::from_seconds(1_795_132_860);

    #[test]
    fn many_sources_take_bounded_memory_and_few_rows_and_none_goes_uncounted() {
        let mut attempts = FailedAttempts::default();
        (0..5_000).for_each(|number| (0..3).for_each(|_| note(&mut attempts, number, NOW)));
        assert!(attempts.sources.len() <= MOST_SOURCES && attempts.waiting.len() <= MOST_WAITING);
        let rows = attempts.take_all();
        assert_eq!(rows.len(), 501);
        assert_eq!(
            rows.last(),
            Some(&FailureRow::NotTold {
                event: "sign_in_failed",
                count: 14_500
            })
        );
        assert_eq!(total(&rows), 15_000);
        // Sums of sources are few, too.
        (0..900).for_each(|number| attempts.note_turned_away(address(number), NOW));
        (0..50).for_each(|_| note(&mut attempts, 1, NOW));
        let rows = attempts.take_all();
        assert_eq!(rows.len(), 10 + 100 + 1);
        assert_eq!(
            (
                total(&rows),
                rows.iter()
                    .map(|row| row.attempts().turned_away)
                    .sum::<u64>()
            ),
            (50, 900)
        );
    }

    #[test]
    fn what_is_given_back_beyond_the_room_is_counted() {
        let mut attempts = FailedAttempts::default();
        let one = FailureRow::One(attempt(1));
        let more = FailureRow::More {
            source: Some(address(2)),
            more: MoreFailures {
                failed: 3,
                turned_away: 7,
            },
        };
        let full = vec![one; MOST_WAITING];
        assert_eq!(attempts.take(NOW), []);
        attempts.give_back([full, vec![more]].concat());
        note(&mut attempts, 1, NOW);
        let sums = [
            FailureRow::More {
                source: Some(address(1)),
                more: failed(1),
            },
            FailureRow::More {
                source: None,
                more: MoreFailures {
                    failed: 3,
                    turned_away: 7,
                },
            },
        ];
        let rows = attempts.take_all();
        assert_eq!(rows[MOST_WAITING..], sums);
    }

    #[test]
    fn beyond_what_is_told_the_first_of_each_kind_is_told_of_each_account_and_client() {
        let mut attempts = FailedAttempts::default();
        let of = |event, sub: Option<&str>, client_id: Option<&str>| FailedAttempt {
            event,
            sub: sub.map(Subject::new),
            client_id: client_id.map(ClientId::new),
            ..attempt(7)
        };
        attempts.note(
            of("sign_in_failed", Some("carol"), None),
            address(9_999),
            NOW,
        );
        (0..5_000).for_each(|number| note(&mut attempts, number, NOW));
        assert_eq!(attempts.take(NOW).len(), 500);
        for (event, sub, client_id, is_told) in [
            ("sign_in_failed", None, None, false),
            ("sign_in_failed", Some("alice"), Some("web"), true),
            ("sign_in_failed", Some("alice"), Some("web"), false),
            ("sign_in_failed", Some("alice"), None, false),
            ("sign_in_failed", Some("bob"), Some("web"), true),
            ("sign_in_failed", Some("carol"), None, false),
            ("sign_in_failed", None, Some("shop"), true),
            ("code_replayed", None, Some("web"), true),
            ("code_replayed", None, Some("web"), false),
        ] {
            attempts.note(of(event, sub, client_id), address(7), NOW);
            assert_eq!(
                attempts.take(NOW).len(),
                usize::from(is_told),
                "{event} {sub:?} {client_id:?}"
            );
        }
        let more = |event, count| FailureRow::NotTold { event, count };
        assert_eq!(
            attempts.take(A_MINUTE_LATER),
            [more("code_replayed", 1), more("sign_in_failed", 4_505)]
        );
        attempts.note(
            of("sign_in_failed", Some("alice"), None),
            address(7),
            A_MINUTE_LATER,
        );
        assert_eq!(attempts.take(A_MINUTE_LATER).len(), 1, "each minute anew");
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
