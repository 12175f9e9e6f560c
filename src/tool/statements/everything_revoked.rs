//! The end of everything at once.

use gatepost_protocol::words::instant::Day;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::{Result, Store, bind, column};

// The version goes up, too: a client's own token takes the epoch from what a process holds in
// memory. It goes up by a step that is drawn, as at every change of the registry.
const REVOKE_EVERYTHING: &str = "
WITH revoked AS (
    UPDATE installation
    SET epoch = new_epoch(),
        registry_version = registry_version + 1 + floor(random() * 1073741824)::int8
    RETURNING id
)
INSERT INTO audit_events SELECT a.* FROM revoked, unnest(:events::audit_events[]) AS a
RETURNING ARRAY[hash] AS audited";

/// Ends everything at once. Clients are called by [`call_all_revoked`].
pub fn revoke_everything(store: &Store, audit: &AuditEvent<'_>) -> Result {
    store
        .write_audited(bind!(REVOKE_EVERYTHING), audit)
        .map(drop)
}

// A thousand rows at a time, so that no statement takes long. Sessions of today's epoch began after
// everything was revoked, and live.
const CALL_REVOKED: &str = "
WITH piece AS MATERIALIZED (
    SELECT day, sid, client_id FROM session_clients
    WHERE (day, sid, client_id) > (:after_day::int4, :after_sid::text, :after_client::text)
    ORDER BY day, sid, client_id LIMIT 1000
), called AS (
    UPDATE session_clients c SET due_at = clock_timestamp()
    FROM piece p
    JOIN sessions s ON s.day = p.day AND s.sid = p.sid
    JOIN installation i ON i.epoch <> s.installation_epoch
    WHERE c.day = p.day AND c.sid = p.sid AND c.client_id = p.client_id
      AND c.due_at IS NULL AND c.tries = 0
)
SELECT day, sid, client_id FROM piece ORDER BY day DESC, sid DESC, client_id DESC LIMIT 1";

/// Has the clients called of all sessions that ended when everything was revoked. When it is
/// interrupted, the next run finds those that were left.
pub fn call_all_revoked(store: &Store) -> Result {
    let mut after_day = Day(i32::MIN);
    let mut after_sid = String::new();
    let mut after_client = String::new();
    loop {
        let bound = bind!(CALL_REVOKED, after_day, after_sid, after_client);
        let rows = store.write_rows(bound)?;
        let Some(last) = rows.first() else {
            return Ok(());
        };
        after_day = column(last, "day")?;
        after_sid = column(last, "sid")?;
        after_client = column(last, "client_id")?;
    }
}
