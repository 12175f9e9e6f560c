//! `audit_events`: who did what, when, from where. The statement that makes a change also writes
//! its event, so that neither is there without the other, and it costs no second commit.

use std::slice;
use std::time::Duration;

use postgres::Row;

use super::Store;
use super::audit_chain::head;
use super::error::StoreError;
use super::registry_writer::RegistryWriter;
use super::statement::bind;
use super::values::column;
use gatepost_protocol::audit::audit_chain::{AuditRow, COMMAND, Hash, Head};
use gatepost_protocol::words::instant::{Day, Instant};

pub use super::audit_chain::stored;
pub use super::audit_event::{AuditEvent, EventAuthor};

const INSERT: &str = "
INSERT INTO audit_events SELECT a.* FROM unnest(:events::audit_events[]) AS a
RETURNING ARRAY[hash] AS audited";

/// Writes an event that goes with no other statement.
pub fn insert(store: &Store, event: &AuditEvent<'_>) -> Result<(), StoreError> {
    store.write_audited(bind!(INSERT), event).map(drop)
}

pub fn insert_all(store: &Store, events: &[AuditEvent<'_>]) -> Result<(), StoreError> {
    store.write_all_audited(bind!(INSERT), events).map(drop)
}

impl RegistryWriter<'_> {
    pub fn audit(&mut self, event: &AuditEvent<'_>) -> Result<(), StoreError> {
        self.audit_all(slice::from_ref(event))
    }

    pub fn audit_all(&mut self, events: &[AuditEvent<'_>]) -> Result<(), StoreError> {
        self.audited(bind!(INSERT), events).map(drop)
    }
}

pub type StoredEvent = (AuditRow, Hash, Option<Head>);

/// Which events are asked for; `None` asks for any, but for `event`, where it leaves out those that
/// open a chain: they say nothing of what happened, and each command has one.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    pub event: Option<String>,
    pub client_id: Option<String>,
    pub sub: Option<String>,
    pub since: Option<Instant>,
    pub until: Option<Instant>,
    pub request_id: Option<String>,
    /// In any of its texts, in small letters.
    pub word: Option<String>,
}

const LIST: &str = "
SELECT day, at, chain, seq, previous, hash, event, client_id, sub, sid, source, request_id,
       detail::text AS detail
FROM audit_events
WHERE (event = :event::text OR :event::text IS NULL AND event <> 'chain_opened')
  AND (:client_id::text IS NULL OR client_id = :client_id::text)
  AND (:sub::text IS NULL OR sub = :sub::text)
  AND at >= :since::timestamptz AND at < :until::timestamptz
  AND (:word::text IS NULL
       OR strpos(lower(concat_ws(' ', event, client_id, sub, sid, source, request_id, detail)),
                 :word::text) > 0)
  AND (:request_id::text IS NULL OR request_id = :request_id::text)
ORDER BY at DESC, chain DESC, seq DESC LIMIT :limit::int8";

/// The latest events that fit, at most `limit`, the earliest of them first.
pub fn list(store: &Store, filter: &EventFilter, limit: i64) -> Result<Vec<AuditRow>, StoreError> {
    let since = filter.since.unwrap_or(Instant::from_seconds(0));
    let until = filter
        .until
        .unwrap_or(Instant::from_seconds(253_402_300_800));
    let bound = bind!(
        LIST,
        ..filter {
            event,
            client_id,
            sub,
            word,
            request_id
        },
        since,
        until,
        limit
    );
    let mut found: Vec<AuditRow> = store.list(bound, |row| Ok(stored(row)?.0))?;
    found.reverse();
    Ok(found)
}

/// Which events of a day an administrator asks for.
#[derive(Clone, Copy, Debug)]
pub struct DayFilter<'a> {
    pub since: Instant,
    /// Those before this one.
    pub before: EventPlace<'a>,
    /// An event's name.
    pub event: Option<&'a str>,
    /// A user name, or an identifier: of whom an event is about, or of the administrator who caused
    /// it.
    pub person: Option<&'a str>,
    /// Events about people of these tenants, and clients open to them. An empty name stands for no
    /// tenant: whoever reaches those sees all events.
    pub reach: &'a [&'a str],
}

/// Where an event stands among those of a day.
#[derive(Clone, Copy, Debug)]
pub struct EventPlace<'a> {
    pub at: Instant,
    pub chain: &'a str,
    pub seq: i64,
}

/// An event, and the user name of the person whom it is about.
#[derive(Clone, Debug)]
pub struct SeenEvent {
    pub row: AuditRow,
    pub username: Option<String>,
}

const OF_DAY: &str = "
WITH asked AS MATERIALIZED (
    SELECT :person::text AS sub WHERE :person::text IS NOT NULL
    UNION
    SELECT sub FROM users
    WHERE tenant = ANY(:reach::text[]) AND username_key = lower(normalize(:person::text, NFKC))
), caused AS MATERIALIZED (
    SELECT a.day, a.chain, a.seq FROM audit_events a
    WHERE a.detail ->> 'admin' = ANY(ARRAY(SELECT sub FROM asked))
      AND a.at >= :since::timestamptz AND a.at <= :at::timestamptz
), found AS (
    SELECT a.* FROM audit_events a
    LEFT JOIN users w
      ON '' <> ALL(:reach::text[]) AND w.sub = a.sub AND w.tenant = ANY(:reach::text[])
    LEFT JOIN clients c ON '' <> ALL(:reach::text[]) AND c.client_id = a.client_id
    WHERE a.at >= :since::timestamptz AND a.at <= :at::timestamptz
      AND (a.at, a.chain, a.seq) < (:at::timestamptz, :chain::text, :seq::int8)
      AND a.event <> 'chain_opened' AND (:event::text IS NULL OR a.event = :event::text)
      AND (:person::text IS NULL OR a.sub = ANY(ARRAY(SELECT sub FROM asked))
           OR (a.day, a.chain, a.seq) IN (SELECT day, chain, seq FROM caused))
      AND ('' = ANY(:reach::text[])
           OR w.sub IS NOT NULL
              AND (a.client_id IS NULL OR c.client_id IS NOT NULL AND (
                  jsonb_typeof(c.metadata -> 'tenants') IS DISTINCT FROM 'array'
                  OR c.metadata -> 'tenants' ?| :reach::text[])))
    ORDER BY a.at DESC, a.chain DESC, a.seq DESC LIMIT :limit::int8
)
SELECT f.day, f.at, f.chain, f.seq, f.previous, f.hash, f.event, f.client_id, f.sub, f.sid,
       f.source, f.request_id, f.detail::text AS detail, u.username
FROM found f LEFT JOIN users u ON u.sub = f.sub ORDER BY f.at DESC, f.chain DESC, f.seq DESC";

/// How far back it is looked for the newest events: mostly they are found in a little time, and a
/// day may have a million.
const LOOKS: [Duration; 3] = [
    Duration::from_secs(900),
    Duration::from_secs(10_800),
    Duration::from_secs(86_400),
];

/// The newest events that fit, at most `most`, the latest of them first.
pub fn of_day(
    store: &Store,
    filter: DayFilter<'_>,
    most: usize,
) -> Result<Vec<SeenEvent>, StoreError> {
    let limit = i64::try_from(most).unwrap_or(i64::MAX);
    store.survey(|client| {
        let mut found = Vec::new();
        for look in LOOKS {
            let before = filter.before;
            let since = filter.since.max(before.at.minus(look));
            let bound = bind!(
                OF_DAY,
                ..filter {
                    event,
                    person,
                    reach
                },
                ..before { at, chain, seq },
                since,
                limit
            );
            let rows = client.query(&bound.text(), bound.values)?;
            found = rows.iter().map(seen).collect::<Result<_, _>>()?;
            if rows.len() >= most || since == filter.since {
                break;
            }
        }
        Ok(found)
    })
}

fn seen(row: &Row) -> Result<SeenEvent, StoreError> {
    Ok(SeenEvent {
        row: stored(row)?.0,
        username: column(row, "username")?,
    })
}

const COMMAND_HEADS: &str = "
SELECT DISTINCT ON (day, chain) day, chain, seq, hash FROM audit_events
WHERE at >= :since::timestamptz AND chain LIKE '%/' || :command::text || '%'
ORDER BY day, chain, seq DESC";

/// How far the chains of commands have come that wrote something since then: a command has no log
/// to tell it to.
pub fn command_heads(store: &Store, since: Instant) -> Result<Vec<Head>, StoreError> {
    store.list(bind!(COMMAND_HEADS, since, command = COMMAND), head)
}

/// From one chain of the primary key to the next, without what lies between.
const CHAIN_ENDS: &str = "
WITH RECURSIVE chains AS (
    (SELECT day, chain FROM audit_events ORDER BY day, chain LIMIT 1)
    UNION ALL
    SELECT next.day, next.chain FROM chains AS c CROSS JOIN LATERAL (
        SELECT day, chain FROM audit_events
        WHERE (day, chain) > (c.day, c.chain)
        ORDER BY day, chain LIMIT 1) AS next
)
SELECT e.day, e.chain, e.seq, e.hash, e.at FROM chains AS c CROSS JOIN LATERAL (
    SELECT day, chain, seq, hash, at FROM audit_events
    WHERE day = c.day AND chain = c.chain
    ORDER BY seq DESC LIMIT 1) AS e";

/// How far every chain there is has come, and when. Takes longer than a request may.
pub fn chain_ends(store: &Store) -> Result<Vec<(Head, Instant)>, StoreError> {
    let rows = store.administer(|client| Ok::<_, StoreError>(client.query(CHAIN_ENDS, &[])?))?;
    rows.iter()
        .map(|row| Ok((head(row)?, column(row, "at")?)))
        .collect()
}

/// A removal has the same lock, for half an hour at most, and brings no events.
const UNDER_WAY: &str = "
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - a.xact_start)) * 1000000, 0)::int8
       AS micros
FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock'
  AND l.relation = to_regclass('audit_events')
  AND a.query NOT LIKE '%DELETE FROM audit_events%'
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// For how long the oldest transaction has been under way that has written events: they show when
/// it is done.
pub fn under_way(store: &Store) -> Result<Duration, StoreError> {
    let row = store.one(bind!(UNDER_WAY))?;
    Ok(Duration::from_micros(
        u64::try_from(column::<i64>(&row, "micros")?).unwrap_or(0),
    ))
}

const EXPIRED_CHAIN: &str = "
SELECT day, chain FROM audit_events
WHERE (day, chain) > (:after_day::int4, :after_chain::text) AND day < :today::int4
ORDER BY day, chain LIMIT 1";

/// A chain goes at once, so that it never shows without its beginning. One that follows it may
/// stay: nobody misses a chain whose day is over. [`UNDER_WAY`] knows it by its first words.
const REMOVE_CHAIN: &str = "
DELETE FROM audit_events WHERE day = :day::int4 AND chain = :chain::text";

/// Removes what was kept until before `today`: partitions are wide, and go later. Chain by chain,
/// so that what was done stays done. Answers how many rows.
pub fn remove_expired(store: &Store, today: Day) -> Result<u64, StoreError> {
    store.administer(|client| {
        let mut removed = 0;
        let mut after_day = Day(i32::MIN);
        let mut after_chain = String::new();
        loop {
            let next = bind!(EXPIRED_CHAIN, after_day, after_chain, today);
            let Some(expired) = client.query_opt(&next.text(), next.values)? else {
                return Ok(removed);
            };
            let day: Day = column(&expired, "day")?;
            let chain: String = column(&expired, "chain")?;
            let mut removing = client.transaction()?;
            // A chain is what one connection wrote in a day, and that may be millions of rows. Only
            // here: behind a pooler the connection serves requests, too.
            removing.batch_execute("SET LOCAL statement_timeout = '30min'")?;
            let bound = bind!(REMOVE_CHAIN, day, chain);
            removed += removing.execute(&bound.text(), bound.values)?;
            store.commit(removing)?;
            after_day = day;
            after_chain = chain;
        }
    })
}
