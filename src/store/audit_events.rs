//! `audit_events`: who did what, when, from where. The statement that makes a change also writes
//! its event, so that neither is there without the other, and it costs no second commit.

use std::slice;
use std::time::Duration;

use super::Store;
use super::audit_chain::head;
use super::error::StoreError;
use super::registry_writer::RegistryWriter;
use super::statement::bind;
use super::values::column;
use crate::Result;
use gatepost_protocol::audit::audit_chain::{AuditRow, COMMAND, Hash, Head};
use gatepost_protocol::words::instant::{Day, Instant};

pub use super::audit_chain::stored;
pub use super::audit_event::{AuditEvent, EventAuthor};

const INSERT: &str = "
INSERT INTO audit_events SELECT a.* FROM unnest(:events::audit_events[]) AS a
RETURNING ARRAY[hash] AS audited";

/// Writes an event that goes with no other statement.
pub fn insert(store: &Store, event: &AuditEvent<'_>) -> Result<()> {
    store.write_audited(bind!(INSERT), event).map(drop)
}

pub fn insert_all(store: &Store, events: &[AuditEvent<'_>]) -> Result<()> {
    store.write_all_audited(bind!(INSERT), events).map(drop)
}

impl RegistryWriter<'_> {
    pub fn audit(&mut self, event: &AuditEvent<'_>) -> Result<()> {
        self.audit_all(slice::from_ref(event))
    }

    pub fn audit_all(&mut self, events: &[AuditEvent<'_>]) -> Result<()> {
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
pub fn list(store: &Store, filter: &EventFilter, limit: i64) -> Result<Vec<AuditRow>> {
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

const COMMAND_HEADS: &str = "
SELECT DISTINCT ON (day, chain) day, chain, seq, hash FROM audit_events
WHERE at >= :since::timestamptz AND chain LIKE '%/' || :command::text || '%'
ORDER BY day, chain, seq DESC";

/// How far the chains of commands have come that wrote something since then: a command has no log
/// to tell it to.
pub fn command_heads(store: &Store, since: Instant) -> Result<Vec<Head>> {
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
pub fn chain_ends(store: &Store) -> Result<Vec<(Head, Instant)>> {
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
pub fn under_way(store: &Store) -> Result<Duration> {
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
pub fn remove_expired(store: &Store, today: Day) -> Result<u64> {
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
