//! Ends of people (`users.valid_until`), as far as somebody must see to them. What one who has run
//! out may no longer do, no statement leaves to this: each asks the database's clock (`{in time}`).

use std::time::Duration;

use super::Store;
use super::audit_event::AuditEvent;
use super::statement::bind;
use super::users::{UserRow, user};
use super::values::column;
use crate::Result;
use gatepost_protocol::words::identifiers::Subject;

/// How long before their end people are told of it.
pub const TOLD_BEFORE: Duration = Duration::from_secs(7 * 86_400);

const DUE: &str = "
SELECT u.sub FROM users u
WHERE u.valid_until <= statement_timestamp() AND u.expired_at IS NULL
ORDER BY u.valid_until LIMIT 500";

const EXPIRE: &str = "
WITH changed AS (
    UPDATE users u SET expired_at = clock_timestamp(), epoch = new_epoch()
    WHERE u.sub = :sub::text AND u.valid_until <= clock_timestamp() AND u.expired_at IS NULL
    RETURNING u.sub
), called AS (
    UPDATE session_clients s SET due_at = clock_timestamp()
    FROM changed WHERE s.sub = changed.sub AND s.due_at IS NULL AND s.tries = 0
), {audited changed} FROM changed";

/// Draws a new epoch for those whose end came, once, and has the clients of their sessions called.
/// Answers how many they were: where there are 500, there may be more.
pub fn expire(store: &Store) -> Result<u64> {
    let due: Vec<Subject> = store.list(bind!(DUE), |row| column(row, "sub"))?;
    for sub in &due {
        let event = AuditEvent {
            event: "user_expired",
            sub: Some(sub),
            ..AuditEvent::default()
        };
        store.change(bind!(EXPIRE, sub), &event)?;
    }
    Ok(u64::try_from(due.len()).unwrap_or(0))
}

const NOTE_TOLD: &str = "
UPDATE users u SET end_told_at = clock_timestamp()
WHERE u.end_told_at IS NULL AND u.sub IN (
    SELECT n.sub FROM users n
    WHERE n.valid_until > statement_timestamp()
      AND n.valid_until <= statement_timestamp() + :seconds::int8 * interval '1 second'
      AND n.expired_at IS NULL AND n.end_told_at IS NULL AND n.enabled
    ORDER BY n.valid_until LIMIT 100)
RETURNING {user}";

/// Those whose end is near and who are to be told now: nobody else tells them, nor this again.
pub fn note_told(store: &Store) -> Result<Vec<UserRow>> {
    let seconds = i64::try_from(TOLD_BEFORE.as_secs()).unwrap_or(i64::MAX);
    let rows = store.write_rows(bind!(NOTE_TOLD, seconds))?;
    rows.iter().map(user).collect()
}
