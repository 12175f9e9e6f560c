//! Audit events that somebody asks for.

use std::time::Duration;

use gatepost_protocol::audit::audit_chain::AuditRow;
use gatepost_protocol::words::instant::Instant;
use gatepost_store::audit_events::stored;
use gatepost_store::{Result, Store, bind, column};

/// Which events are asked for; `None` asks for any, but for `event`, where it leaves out those that
/// open a chain: they say nothing of what happened, and each command has one.
#[derive(Clone, Default)]
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
