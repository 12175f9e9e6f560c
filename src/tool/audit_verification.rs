//! Whether the audit log is as it was written. Rows go in by day, chain and number, after the heads
//! that somebody kept elsewhere. Findings come out.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use gatepost_protocol::audit::audit_chain::{AuditRow, Hash, Head, NO_HASH};
use gatepost_protocol::words::instant::{Day, Instant};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wrong {
    Changed,
    /// A row was put in: the place is taken, or lies behind the end.
    Inserted,
    /// One row or several are gone, up to this place.
    Removed {
        to: i64,
    },
    /// The whole chain is gone. It had come this far.
    ChainRemoved,
    /// Two heads disagree about one place: one of them is forged, or the chain was written anew
    /// between them.
    HeadsDiffer,
}

#[derive(PartialEq)]
pub struct ChainFinding {
    pub wrong: Wrong,
    pub chain: String,
    pub seq: i64,
    /// The time of the row, or of the last row before those that are gone.
    pub at: Option<Instant>,
}

pub struct Verification {
    today: Day,
    heads: BTreeMap<String, Expected>,
    ends: BTreeMap<String, End>,
    present: Option<Present>,
    findings: Vec<ChainFinding>,
    rows: u64,
}

/// What heads tell of a chain. A later head never replaces an earlier one.
struct Expected {
    until: Day,
    hashes: BTreeMap<i64, Vec<Hash>>,
}

#[derive(Clone, Copy)]
struct End {
    seq: i64,
    hash: Hash,
    at: Instant,
}

struct Present {
    day: Day,
    chain: String,
    next: i64,
    previous: Hash,
    at: Option<Instant>,
    /// Whether the last row was reported. If the next row does not follow it, that is the same
    /// finding.
    reported: bool,
}

pub struct ChainVerdict {
    pub rows: u64,
    pub chains: usize,
    pub findings: Vec<ChainFinding>,
}

impl Verification {
    /// Begins. A chain that a head names may be gone if it was kept until before `today`.
    pub fn new(heads: impl IntoIterator<Item = Head>, today: Day) -> Verification {
        let mut verification = Verification {
            today,
            heads: BTreeMap::new(),
            ends: BTreeMap::new(),
            present: None,
            findings: Vec::new(),
            rows: 0,
        };
        for head in heads {
            verification.expect(head);
        }
        verification
    }

    /// Takes a head: at its place stood a row with its hash.
    fn expect(&mut self, head: Head) {
        let new = Expected {
            until: head.until,
            hashes: BTreeMap::new(),
        };
        let expected = self.heads.entry(head.chain.clone()).or_insert(new);
        let hashes = expected.hashes.entry(head.seq).or_default();
        let is_known = hashes.contains(&head.hash);
        let differs = expected.until != head.until || !(hashes.is_empty() || is_known);
        expected.until = expected.until.max(head.until);
        if !is_known {
            hashes.push(head.hash);
        }
        if differs {
            self.found(Wrong::HeadsDiffer, &head.chain, head.seq, None);
        }
    }

    /// Takes the next row, with the hash stored beside it. A row that opens a chain names the head
    /// of the chain that it continues.
    pub fn row(&mut self, row: &AuditRow, hash: Hash, after: Option<Head>) {
        self.rows += 1;
        let mut present = self.chain_of(row);
        let wrong = self.judge(&present, row, hash);
        let is_inserted = matches!(wrong, Some((Wrong::Inserted, _)));
        if row.seq > present.next && !is_inserted {
            let removed = Wrong::Removed { to: row.seq - 1 };
            self.found(removed, &row.chain, present.next, present.at);
        }
        present.reported = wrong.is_some();
        if let Some((wrong, seq)) = wrong {
            self.found(wrong, &row.chain, seq, Some(row.at));
        }
        if !is_inserted {
            self.advance(&mut present, row, hash);
        }
        self.present = Some(present);
        if let Some(after) = after {
            self.check_predecessor(&after);
        }
    }

    fn chain_of(&mut self, row: &AuditRow) -> Present {
        let same = |present: &Present| present.chain == row.chain && present.day == row.day;
        self.present.take().filter(same).unwrap_or_else(|| Present {
            day: row.day,
            chain: row.chain.clone(),
            next: 0,
            previous: NO_HASH,
            at: None,
            reported: false,
        })
    }

    /// What is wrong with the row, and at which place. A row whose successor does not follow it was
    /// rewritten.
    fn judge(&self, present: &Present, row: &AuditRow, hash: Hash) -> Option<(Wrong, i64)> {
        let expected = self
            .heads
            .get(&row.chain)
            .and_then(|expected| expected.hashes.get(&row.seq));
        // No chain comes as far as the last number.
        if row.seq < present.next || row.seq == i64::MAX {
            return Some((Wrong::Inserted, row.seq));
        }
        if row.hash() != hash || expected.is_some_and(|hashes| !hashes.contains(&hash)) {
            return Some((Wrong::Changed, row.seq));
        }
        let follows =
            row.previous == present.previous || row.seq > present.next || present.reported;
        (!follows).then_some((Wrong::Changed, row.seq.saturating_sub(1).max(0)))
    }

    /// The chain has come as far as this row.
    fn advance(&mut self, present: &mut Present, row: &AuditRow, hash: Hash) {
        present.next = row.seq.saturating_add(1);
        present.previous = hash;
        present.at = Some(row.at);
        let end = End {
            seq: row.seq,
            hash,
            at: row.at,
        };
        self.ends.insert(row.chain.clone(), end);
    }

    /// A connection that continues in a new chain names the end of its old one. Nothing can follow
    /// that end.
    fn check_predecessor(&mut self, after: &Head) {
        let Some(end) = self.ends.get(&after.chain).copied() else {
            return self.expect(after.clone());
        };
        let (wrong, seq) = match end.seq.cmp(&after.seq) {
            Ordering::Less => (Wrong::Removed { to: after.seq }, end.seq.saturating_add(1)),
            Ordering::Greater => (Wrong::Inserted, after.seq.saturating_add(1)),
            Ordering::Equal if end.hash != after.hash => (Wrong::Changed, end.seq),
            Ordering::Equal => return,
        };
        self.found(wrong, &after.chain, seq, Some(end.at));
    }

    fn found(&mut self, wrong: Wrong, chain: &str, seq: i64, at: Option<Instant>) {
        self.findings.push(ChainFinding {
            wrong,
            chain: chain.to_owned(),
            seq,
            at,
        });
    }

    /// Ends. What heads name and no row was there for is gone.
    pub fn finish(mut self) -> ChainVerdict {
        for (chain, Expected { until, hashes }) in std::mem::take(&mut self.heads) {
            let Some((seq, _)) = hashes.last_key_value() else {
                continue;
            };
            match self.ends.get(&chain).copied() {
                Some(end) if end.seq < *seq => {
                    let removed = Wrong::Removed { to: *seq };
                    self.found(removed, &chain, end.seq.saturating_add(1), Some(end.at));
                }
                None if until >= self.today => self.found(Wrong::ChainRemoved, &chain, *seq, None),
                _ => {}
            }
        }
        self.findings.dedup();
        ChainVerdict {
            rows: self.rows,
            chains: self.ends.len(),
            findings: self.findings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_protocol::audit::audit_chain::{OPENED, chain_name};

    const TODAY: Day = Day(20_778);

    type Stored = (AuditRow, Hash);

    fn chain(number: u32, rows: i64) -> Vec<Stored> {
        let mut previous = NO_HASH;
        let row = |seq: i64| {
            let row = AuditRow {
                day: TODAY,
                at: Instant::from_seconds(1_795_132_800 + seq),
                chain: chain_name(TODAY, "p", number),
                seq,
                previous,
                event: String::from(if seq == 0 { OPENED } else { "signed_in" }),
                client_id: None,
                sub: Some(String::from("alice")),
                sid: None,
                source: None,
                request_id: None,
                detail: String::from("{}"),
            };
            previous = row.hash();
            (row, previous)
        };
        (0..rows).map(row).collect()
    }

    fn head(stored: &Stored) -> Head {
        Head {
            chain: stored.0.chain.clone(),
            seq: stored.0.seq,
            hash: stored.1,
            until: stored.0.day,
        }
    }

    fn verify(rows: &[Stored], heads: &[Head]) -> Vec<(Wrong, i64)> {
        let mut verification = Verification::new(heads.to_vec(), TODAY);
        rows.iter()
            .for_each(|(row, hash)| verification.row(row, *hash, None));
        verification
            .finish()
            .findings
            .iter()
            .map(|finding| (finding.wrong, finding.seq))
            .collect()
    }

    #[test]
    fn a_change_with_its_hash_made_anew_is_told_by_the_next_row_or_a_head() {
        let whole = chain(1, 5);
        let mut rows = whole.clone();
        rows[2].0.sub = Some(String::from("mallory"));
        rows[2].1 = rows[2].0.hash();
        assert_eq!(verify(&rows, &[]), [(Wrong::Changed, 2)]);
        let mut rows = whole.clone();
        rows[4].0.sub = Some(String::from("mallory"));
        rows[4].1 = rows[4].0.hash();
        // The last row of a chain is only held by a head that went elsewhere.
        assert_eq!(verify(&rows, &[]), []);
        assert_eq!(verify(&rows, &[head(&whole[4])]), [(Wrong::Changed, 4)]);
    }

    #[test]
    fn rows_that_are_missing_or_too_many_are_told_with_their_place() {
        let whole = chain(1, 5);
        let without = |places: &[usize]| -> Vec<Stored> {
            let kept = whole.iter().enumerate();
            let kept = kept.filter(|(place, _)| !places.contains(place));
            kept.map(|(_, stored)| stored.clone()).collect()
        };
        assert_eq!(verify(&whole, &[]), []);
        let gap = without(&[2, 3]);
        assert_eq!(verify(&gap, &[]), [(Wrong::Removed { to: 3 }, 2)]);
        let headless = without(&[0]);
        assert_eq!(verify(&headless, &[]), [(Wrong::Removed { to: 0 }, 0)]);
        let mut twice = whole.clone();
        twice.insert(3, whole[1].clone());
        assert_eq!(verify(&twice, &[]), [(Wrong::Inserted, 1)]);
        let mut last = whole.clone();
        let mut row = whole[4].0.clone();
        row.seq = i64::MAX;
        row.previous = whole[4].1;
        let hash = row.hash();
        last.push((row, hash));
        assert_eq!(verify(&last, &[]), [(Wrong::Inserted, i64::MAX)]);
    }

    #[test]
    fn a_finding_has_the_time_of_the_row_before_it() {
        let whole = chain(1, 5);
        let mut verification = Verification::new([], TODAY);
        for (row, hash) in [&whole[0], &whole[1], &whole[4]] {
            verification.row(row, *hash, None);
        }
        let verdict = verification.finish();
        assert_eq!((verdict.rows, verdict.chains), (3, 1));
        let times: Vec<Option<Instant>> = verdict.findings.iter().map(|one| one.at).collect();
        assert_eq!(times, [Some(whole[1].0.at)]);
    }

    #[test]
    fn heads_that_contradict_one_another_are_found_and_the_later_takes_nothing_back() {
        let rows = chain(1, 3);
        let told = head(&rows[2]);
        let forged = Head {
            hash: [7; 32],
            ..told.clone()
        };
        let old = Head {
            until: Day(0),
            ..told.clone()
        };
        let differ = (Wrong::HeadsDiffer, 2);
        assert_eq!(verify(&rows, &[told.clone(), told.clone()]), []);
        for heads in [
            [told.clone(), forged.clone()],
            [forged, told.clone()],
            [told.clone(), old.clone()],
        ] {
            assert_eq!(verify(&rows, &heads), [differ]);
        }
        for heads in [[told.clone(), old.clone()], [old, told]] {
            assert_eq!(verify(&[], &heads), [differ, (Wrong::ChainRemoved, 2)]);
            assert_eq!(
                verify(&rows[..2], &heads),
                [differ, (Wrong::Removed { to: 2 }, 2)]
            );
        }
    }

    #[test]
    fn a_chain_that_was_kept_long_enough_may_be_gone() {
        let stored = chain(1, 3);
        let head = Head {
            until: Day(TODAY.0 - 1),
            ..head(&stored[2])
        };
        assert_eq!(verify(&[], std::slice::from_ref(&head)), []);
        assert_eq!(
            verify(
                &[],
                &[Head {
                    until: TODAY,
                    ..head
                }]
            ),
            [(Wrong::ChainRemoved, 2)]
        );
    }

    #[test]
    fn a_chain_that_goes_on_in_another_cannot_lose_its_tail() {
        let first = chain(1, 4);
        let second = chain(2, 2);
        let verify = |first: &[Stored]| {
            let mut verification = Verification::new([], TODAY);
            first
                .iter()
                .for_each(|(row, hash)| verification.row(row, *hash, None));
            verification.row(&second[0].0, second[0].1, Some(head(&chain(1, 4)[3])));
            let findings = verification.finish().findings;
            findings
                .iter()
                .map(|finding| (finding.wrong, finding.seq))
                .collect::<Vec<_>>()
        };
        assert_eq!(verify(&first), []);
        assert_eq!(verify(&first[..2]), [(Wrong::Removed { to: 3 }, 2)]);
        assert_eq!(verify(&[]), [(Wrong::ChainRemoved, 3)]);
        assert_eq!(verify(&chain(1, 5)), [(Wrong::Inserted, 4)]);
        let mut rows = first;
        rows[3].0.sub = None;
        rows[3].1 = rows[3].0.hash();
        assert_eq!(verify(&rows), [(Wrong::Changed, 3)]);
    }
}
