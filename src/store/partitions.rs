//! Room for what expires: one partition per few days for each table that grows with traffic, made
//! ahead of need and dropped when everything in it has expired. Few and wide, because a prepared
//! statement locks each one it might touch. What a partition keeps beyond its day is none of what
//! must go on that day: audit events are removed chain by chain.
//!
//! A build of before makes narrower ones, and wants as many days ahead. It may serve beside this
//! one, and lead in between. Whoever leads goes on from the first day without room, so the ranges
//! of both follow each other; Postgres refuses two that overlap. This build makes room a day
//! earlier, so that the other finds nothing missing. What the other made stays until it is over.

use std::time::Duration;

use postgres::{Client, GenericClient, Row};

use super::Store;
use super::error::StoreError;
use super::registry_writer::RegistryWriter;
use super::seen_partitions::SeenPartition;
use super::statement::bind;
use super::values::{column, read};
use crate::Result;
use gatepost_protocol::words::instant::Day;

/// A table has no more on its first day. Later one or two that are not yet over come on top.
const PARTITIONS_AT_FIRST: i32 = 4;
/// Which part of the longest lifetime there must be room for ahead.
const LIFETIME_PER_RESERVE: i32 = 8;
/// Tries per statement that loses against a lock.
const TRIES: usize = 5;

/// For how long the rows of each table can stay needed.
pub struct Horizons {
    /// `grants`: the longest refresh token or access token lifetime.
    pub grants: Duration,
    /// `sessions` and what hangs on them: session lifetime and the longest access token lifetime
    /// together.
    pub sessions: Duration,
    pub revoked_tokens: Duration,
    /// `used_assertions`: the longest assertion accepted.
    pub used_assertions: Duration,
    /// `audit_events`: `GATEPOST_AUDIT_DAYS`.
    pub audit_events: Duration,
}

#[derive(Debug, Default)]
pub struct Maintained {
    /// Whether another process was at what was due; then nothing was done.
    pub left_to_another: bool,
    pub made: Vec<String>,
    pub dropped: Vec<String>,
    /// Partitions that are over but in use by a long transaction: left for the next time.
    pub postponed: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    from: i32,
    to: i32,
}

impl Store {
    fn see_partitions(&self, horizons: &Horizons) -> Result<Vec<Partition>> {
        let names = horizons.tables().map(|table| table.name);
        let present: Vec<Partition> = self.list(bind!(LIST, tables = &names[..]), partition)?;
        let seen = present.iter().filter_map(|partition| {
            let Range { from, to } = partition.range;
            let table = names.into_iter().find(|table| *table == partition.parent)?;
            // A statement that names the table does not see a partition that is half detached.
            let is_usable = partition.attached && !partition.detaching && partition.is_ours;
            is_usable.then_some(SeenPartition { table, from, to })
        });
        *self.seen_partitions().0.lock() = seen.collect();
        Ok(present)
    }
}

#[derive(Debug)]
struct Table {
    name: &'static str,
    longest_days: i32,
}

impl Horizons {
    fn tables(&self) -> [Table; 6] {
        let table = |name, lifetime: Duration| Table {
            name,
            longest_days: days(lifetime),
        };
        [
            table("grants", self.grants),
            table("sessions", self.sessions),
            table("session_clients", self.sessions),
            table("revoked_tokens", self.revoked_tokens),
            table("used_assertions", self.used_assertions),
            table("audit_events", self.audit_events),
        ]
    }
}

fn days(lifetime: Duration) -> i32 {
    i32::try_from(lifetime.as_secs().div_ceil(86_400)).unwrap_or(i32::MAX / 4)
}

/// The days over so many parts, rounded up.
fn part(days: i32, parts: i32) -> i32 {
    (days + parts - 1) / parts
}

impl Table {
    /// Days of room beyond what can be written today, without which nothing is ready.
    fn reserve(&self) -> i32 {
        part(self.longest_days, LIFETIME_PER_RESERVE).max(1)
    }

    /// The days from today for which room is made: the longest lifetime, two reserves, and the day
    /// by which this build is earlier than those of before.
    fn days_ahead(&self) -> i32 {
        self.longest_days + 2 * self.reserve() + 1
    }

    /// Days per partition. Those of the first day begin with yesterday.
    fn width(&self) -> i32 {
        part(self.days_ahead() + 2, PARTITIONS_AT_FIRST)
    }

    /// What is missing. A clock that was ahead for a while leaves a gap behind it; it is filled,
    /// too.
    fn missing(&self, present: &[Range], today: Day) -> Vec<Range> {
        // Yesterday as well: clocks around midnight need not agree. Days missed while nobody served
        // are left out.
        let mut from = first_without(present, today.0 - 1);
        let mut missing = Vec::new();
        while from <= today.0 + self.days_ahead() {
            let later = present.iter().map(|range| range.from);
            let next = later.filter(|begin| *begin > from).min();
            let to = next.unwrap_or(i32::MAX).min(from + self.width());
            missing.push(Range { from, to });
            from = first_without(present, to);
        }
        missing
    }

    /// Whether what expires last still falls the reserve before the first day without room.
    fn is_ahead(&self, present: &[Range], today: Day) -> bool {
        first_without(present, today.0) - (today.0 + self.longest_days + 1) >= self.reserve()
    }

    fn partition(&self, range: Range) -> String {
        format!("{}_{}_{}", self.name, range.from, range.to)
    }
}

/// The first day without a partition, from this one on.
fn first_without(present: &[Range], mut day: i32) -> i32 {
    while let Some(range) = present.iter().find(|range| range.holds(day)) {
        day = range.to;
    }
    day
}

impl Range {
    fn holds(&self, day: i32) -> bool {
        (self.from..self.to).contains(&day)
    }

    /// Reads the last two numbers of a partition's name.
    fn of(partition: &str) -> Result<Range> {
        let mut parts = partition.rsplitn(3, '_').map(str::parse);
        match (parts.next(), parts.next()) {
            (Some(Ok(to)), Some(Ok(from))) => Ok(Range { from, to }),
            _ => Err(StoreError::Corrupt(format!(
                "partition {} was not made by gatepost",
                partition.escape_debug()
            ))),
        }
    }

    /// Everything in it expired a day ago or earlier.
    fn is_over(self, today: Day) -> bool {
        self.to < today.0
    }
}

const LIST: &str = "
SELECT p.relname::text AS parent, c.relname::text AS name, i.inhparent IS NOT NULL AS attached,
       coalesce(i.inhdetachpending, false) AS detaching,
       pg_has_role(c.relowner, 'USAGE') AS is_ours
FROM pg_class p
JOIN pg_class c
  ON c.relnamespace = p.relnamespace AND c.relkind = 'r'
     AND c.relname ~ ('^' || p.relname || '_[0-9]+_[0-9]+$')
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = p.oid
WHERE p.oid IN (SELECT to_regclass(name) FROM unnest(:tables::text[]) AS name)";

#[derive(Debug)]
struct Partition {
    parent: String,
    name: String,
    range: Range,
    attached: bool,
    detaching: bool,
    /// Whether this role may do all that its owner may.
    is_ours: bool,
}

fn partition(row: &Row) -> Result<Partition> {
    let name: String = column(row, "name")?;
    read!(row, Partition { parent, attached, detaching, is_ours; range: Range::of(&name)?, name })
}

fn list(client: &mut impl GenericClient, table: &Table) -> Result<Vec<Partition>> {
    let bound = bind!(LIST, tables = &[table.name][..]);
    client
        .query(&bound.text(), bound.values)?
        .iter()
        .map(partition)
        .collect()
}

fn ranges(partitions: &[Partition], table: &Table) -> Vec<Range> {
    partitions
        .iter()
        .filter(|partition| partition.attached && partition.parent == table.name)
        .map(|partition| partition.range)
        .collect()
}

/// Whether every table has its reserve of room beyond what can be written today; otherwise not
/// ready. Asks once for all tables: whoever asks for the state of a process waits for this.
pub fn are_ahead(store: &Store, horizons: &Horizons, today: Day) -> Result<bool> {
    let tables = horizons.tables();
    let present = store.see_partitions(horizons)?;
    let is_ahead = |table: &Table| table.is_ahead(&ranges(&present, table), today);
    Ok(tables.iter().all(is_ahead))
}

/// Makes what is missing, for a caller who leads. The caller's transaction, if any, holds it all.
pub fn make_missing(
    client: &mut impl GenericClient,
    horizons: &Horizons,
    today: Day,
) -> Result<Vec<String>> {
    let mut made = Vec::new();
    for table in horizons.tables() {
        let present = ranges(&list(client, &table)?, &table);
        for range in table.missing(&present, today) {
            let mut transaction = client.transaction()?;
            transaction.batch_execute(&make_sql(&table, range))?;
            transaction.commit()?;
            made.push(table.partition(range));
        }
    }
    Ok(made)
}

/// Makes what is missing, in one transaction. Waits for a maintenance that is under way.
pub fn make_as_leader(client: &mut Client, horizons: &Horizons, today: Day) -> Result<Vec<String>> {
    let mut leading = client.transaction()?;
    leading.query_one(LEAD_PATIENTLY, &[])?;
    let made = make_missing(&mut leading, horizons, today)?;
    leading.commit()?;
    Ok(made)
}

impl RegistryWriter<'_> {
    /// Whether this process leads until the end of the change; `false` while another one does.
    pub fn leads(&mut self) -> Result<bool> {
        Ok(self.reader.transaction.query_opt(LEAD, &[])?.is_some())
    }

    /// Makes room for lifetimes that this change lengthens, within it. Waits for a maintenance that
    /// is under way.
    pub fn make_partitions(&mut self, horizons: &Horizons, today: Day) -> Result<Vec<String>> {
        self.wrote = true;
        self.reader.transaction.query_one(LEAD_PATIENTLY, &[])?;
        make_missing(&mut self.reader.transaction, horizons, today)
    }
}

/// Created as a table and attached afterwards: requests never wait for it.
fn make_sql(table: &Table, range: Range) -> String {
    let parent = table.name;
    let name = table.partition(range);
    format!(
        "CREATE TABLE {name} (LIKE {parent} INCLUDING ALL);
         ALTER TABLE {parent} ATTACH PARTITION {name} FOR VALUES FROM ({}) TO ({})",
        range.from, range.to
    )
}

const LEAD_PATIENTLY: &str = "SELECT only_row FROM leader FOR UPDATE";

const LEAD: &str = "SELECT only_row FROM leader FOR UPDATE SKIP LOCKED";

/// Makes what is missing and drops what is over, unless another process is at it. Where nothing is
/// missing or over it asks nobody for the lead and opens no connection. Meant to run
/// every minute or so; what loses against a lock is left for the next time. While the clock is in
/// doubt nothing is dropped: what a clock that jumped ahead takes for over may be needed.
pub fn maintain(store: &Store, horizons: &Horizons, today: Day) -> Result<Maintained> {
    let is_in_doubt = store.clock().is_in_doubt();
    let present = store.see_partitions(horizons)?;
    // Where no standby answers, the commits that follow would wait for one, and whoever applies a
    // document would wait for them.
    store.confirm()?;
    let is_complete = |table: &Table| table.missing(&ranges(&present, table), today).is_empty();
    let is_over = |partition: &Partition| partition.range.is_over(today);
    if horizons.tables().iter().all(is_complete) && (is_in_doubt || !present.iter().any(is_over)) {
        return Ok(Maintained::default());
    }
    store.administer(|leading| {
        let mut leadership = leading.transaction()?;
        if leadership.query_opt(LEAD, &[])?.is_none() {
            return Ok(Maintained {
                left_to_another: true,
                ..Maintained::default()
            });
        }
        let mut worker = store.connect_for_partitions()?;
        let mut maintained = Maintained {
            made: make_missing(&mut worker, horizons, today)?,
            ..Maintained::default()
        };
        if !is_in_doubt {
            for table in horizons.tables() {
                // Keeps the lead from timing out as idle, and ends the work should it be lost.
                leadership.simple_query("SELECT")?;
                drop_over(&mut worker, &table, today, &mut maintained)?;
            }
        }
        // It has locked a row and written nothing: taken back, it waits for no standby.
        leadership.rollback()?;
        Ok(maintained)
    })
}

/// One partition at a time can be half detached: while that one is held up, so are those behind it.
fn drop_over(
    client: &mut Client,
    table: &Table,
    today: Day,
    maintained: &mut Maintained,
) -> Result {
    let mut over: Vec<Partition> = list(client, table)?
        .into_iter()
        .filter(|partition| partition.range.is_over(today))
        .collect();
    over.sort_by_key(|partition| (!partition.detaching, partition.range));
    let mut held_up = false;
    for partition in over {
        let dropped = if held_up {
            Ok(())
        } else {
            drop_one(client, table, &partition)
        };
        held_up |= dropped.as_ref().is_err_and(StoreError::is_conflict);
        match dropped {
            Ok(()) if !held_up => maintained.dropped.push(partition.name),
            Err(error) if !held_up => return Err(error),
            _ => maintained.postponed.push(partition.name),
        }
    }
    Ok(())
}

/// Detached first, beside running requests; a detachment that was interrupted is finished.
fn drop_one(client: &mut Client, table: &Table, partition: &Partition) -> Result {
    let detach = format!(
        "ALTER TABLE {} DETACH PARTITION {}",
        table.name, partition.name
    );
    if partition.attached && !partition.detaching {
        // Interrupted half-way it cannot be begun again, only finished; that it is so far shows in
        // the list.
        match client
            .batch_execute(&format!("{detach} CONCURRENTLY"))
            .map_err(StoreError::from)
        {
            Err(error) if !error.is_conflict() => return Err(error),
            _ => {}
        }
    }
    let is_half_detached = list(client, table)?
        .iter()
        .any(|other| other.name == partition.name && other.detaching);
    if is_half_detached {
        patiently(|| Ok(client.batch_execute(&format!("{detach} FINALIZE"))?))?;
    }
    patiently(|| Ok(client.batch_execute(&format!("DROP TABLE IF EXISTS {}", partition.name))?))
}

/// Tries again while another transaction's lock is in the way.
fn patiently<T>(mut step: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..TRIES {
        match step() {
            Err(error) if error.is_conflict() => std::thread::sleep(Duration::from_millis(100)),
            answer => return answer,
        }
    }
    step()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Day = Day(20_777);

    fn table(longest_days: i32) -> Table {
        Table {
            name: "grants",
            longest_days,
        }
    }

    #[test]
    fn four_and_later_six_are_alive_whatever_the_lifetime_and_no_more_as_days_pass() {
        for longest_days in [0, 1, 2, 7, 8, 9, 30, 31, 90, 365, 400, 3_650] {
            let table = table(longest_days);
            let mut alive = table.missing(&[], TODAY);
            assert!(alive.len() <= 4, "{longest_days} days: {}", alive.len());
            assert!(table.is_ahead(&alive, TODAY), "{longest_days}");
            assert!(table.missing(&alive, TODAY).is_empty(), "{longest_days}");
            for today in (TODAY.0..TODAY.0 + 2 * longest_days + 20).map(Day) {
                alive.retain(|range| !range.is_over(today));
                alive.extend(table.missing(&alive, today));
                assert!(alive.len() <= 6, "{longest_days} days: {alive:?}");
            }
        }
    }

    /// What a build of before makes: an eighth of the longest lifetime wide, for two such widths
    /// ahead.
    fn missing_before(table: &Table, present: &[Range], today: Day) -> Vec<Range> {
        let width = table.reserve();
        let mut missing = Vec::new();
        let mut from = first_without(present, today.0 - 1);
        while from <= today.0 + table.longest_days + 2 * width {
            missing.push(Range {
                from,
                to: from + width,
            });
            from += width;
        }
        missing
    }

    #[test]
    fn beside_a_build_of_before_ranges_follow_each_other_and_it_makes_none() {
        for longest_days in [1, 9, 30, 400] {
            let table = table(longest_days);
            let mut alive = missing_before(&table, &[], TODAY);
            assert!(table.is_ahead(&alive, TODAY), "{longest_days}");
            for today in (TODAY.0..TODAY.0 + 2 * longest_days + 20).map(Day) {
                alive.retain(|range| !range.is_over(today));
                // The other is the first of the day to lead.
                let of_the_other = missing_before(&table, &alive, today);
                assert!(of_the_other.is_empty(), "{longest_days} days: {alive:?}");
                alive.extend(table.missing(&alive, today));
                for pair in alive.windows(2) {
                    assert_eq!(pair[0].to, pair[1].from);
                }
                assert!(alive.len() <= 13, "{longest_days} days: {alive:?}");
            }
            assert!(alive.len() <= 6, "{longest_days} days: {alive:?}");
        }
    }

    #[test]
    fn ranges_follow_each_other_without_gap_when_the_width_changes() {
        let mut present = table(8).missing(&[], TODAY);
        present.extend(table(80).missing(&present, TODAY));
        for pair in present.windows(2) {
            assert_eq!(pair[0].to, pair[1].from);
        }
        assert!(present[0].from < TODAY.0);
        assert!(table(80).is_ahead(&present, TODAY));
    }

    #[test]
    fn a_gap_is_seen_and_filled_up_to_what_follows() {
        for (longest_days, days_ahead) in [(1, 3), (30, 3), (30, 40), (365, 40)] {
            let table = table(longest_days);
            // The clock was ahead, and is right again.
            let mut present = table.missing(&[], Day(TODAY.0 + days_ahead));
            assert!(!table.is_ahead(&present, TODAY), "{longest_days} days");
            present.extend(table.missing(&present, TODAY));
            present.sort();
            assert_eq!(present[0].from, TODAY.0 - 1);
            for pair in present.windows(2) {
                assert!(pair[0].to <= pair[1].from, "{pair:?} overlap");
            }
            assert!(table.is_ahead(&present, TODAY), "{longest_days} days");
            assert!(table.missing(&present, TODAY).is_empty(), "{longest_days}");
        }
        let ahead = table(30).missing(&[], Day(TODAY.0 + 3));
        let gap = Range {
            from: TODAY.0 - 1,
            to: TODAY.0 + 2,
        };
        assert_eq!(table(30).missing(&ahead, TODAY), [gap]);
    }

    #[test]
    fn after_a_long_stop_the_days_missed_get_no_partitions() {
        let present = table(1).missing(&[], TODAY);
        let later = Day(TODAY.0 + 500);
        let made = table(1).missing(&present, later);
        assert!(made.len() <= 4 && made[0].from == later.0 - 1, "{made:?}");
    }
}
