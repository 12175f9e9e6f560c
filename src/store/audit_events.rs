//! `audit_events`: who did what, when, from where. The statement that makes a change also writes
//! its event, so that neither is there without the other, and it costs no second commit.

use std::slice;

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
use super::audit_event::INSERT;
pub use super::audit_event::{AuditEvent, EventAuthor};

/// Writes an event that goes with no other statement.
pub fn insert(store: &Store, event: &AuditEvent<'_>) -> Result {
    store.write_audited(bind!(INSERT), event).map(drop)
}

pub fn insert_all(store: &Store, events: &[AuditEvent<'_>]) -> Result {
    store.write_all_audited(bind!(INSERT), events).map(drop)
}

impl RegistryWriter<'_> {
    pub fn audit(&mut self, event: &AuditEvent<'_>) -> Result {
        self.audit_all(slice::from_ref(event))
    }

    pub fn audit_all(&mut self, events: &[AuditEvent<'_>]) -> Result {
        self.audited(bind!(INSERT), events).map(drop)
    }
}

pub type StoredEvent = (AuditRow, Hash, Option<Head>);

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

const EXPIRED_CHAIN: &str = "
SELECT day, chain FROM audit_events
WHERE (day, chain) > (:after_day::int4, :after_chain::text) AND day < :today::int4
ORDER BY day, chain LIMIT 1";

/// A chain goes at once, so that it never shows without its beginning. One that follows it may
/// stay: nobody misses a chain whose day is over. `audit_list::UNDER_WAY` of `tool` knows it by its
/// first words.
const REMOVE_CHAIN: &str = "
DELETE FROM audit_events WHERE day = :day::int4 AND chain = :chain::text";

/// Removes what was kept until before `today`: partitions are wide, and go later. Chain by chain,
/// so that what was done stays done. Answers how many rows.
pub fn remove_expired(store: &Store, today: Day) -> Result<u64> {
    let mut after_day = Day(i32::MIN);
    let mut after_chain = String::new();
    // Mostly there is none, and a connection of its own takes longer than to ask.
    let first = bind!(EXPIRED_CHAIN, after_day, after_chain, today);
    if store.find(first, |_| Ok(())) == Ok(None) {
        return Ok(0);
    }
    store.administer(|client| {
        let mut removed = 0;
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
