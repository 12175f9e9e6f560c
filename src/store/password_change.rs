//! A person's own change of password: one statement that stores the new hash, ends what hung on the old password, has the
//! clients of the sessions that end with it called, and keeps the session it was changed in, under a new handle.

use postgres::types::ToSql;

use super::Store;
use super::audit_chain::Together;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::sessions::others;
use super::values::column;
use crate::protocol::words::identifiers::{Sid, Subject};
use crate::protocol::words::instant::Day;
use crate::protocol::words::secret::SecretText;

/// A change to be.
#[derive(Clone, Copy, Debug)]
pub struct PasswordChange<'a> {
    /// Whose.
    pub sub: &'a Subject,
    /// Of the user whose present password was checked: nothing must have been revoked since.
    pub epoch: i64,
    /// PHC string of the new password.
    pub password_hash: &'a SecretText,
    /// The session that stays.
    pub session: (Day, &'a Sid),
    /// The hash of its new handle.
    pub handle_hash: [u8; 32],
}

/// Nothing happens unless the session lives: whoever is signed out meanwhile changes nothing any more.
const CHANGE: &str = "
WITH own AS (
    SELECT s.sid FROM sessions s
    WHERE s.day = $4::int4 AND s.sid = $5::text AND s.sub = $1::text AND s.ended_at IS NULL
      AND s.expires_at > clock_timestamp()
), changed AS (
    UPDATE users SET password_hash = $3::text, updated_at = clock_timestamp(), epoch = new_epoch()
    FROM own
    WHERE sub = $1::text AND enabled AND epoch = $2::int8
    RETURNING sub, epoch
), kept AS (
    UPDATE sessions s SET handle_hash = $6::bytea, user_epoch = changed.epoch
    FROM changed WHERE s.day = $4::int4 AND s.sid = $5::text
    RETURNING s.user_epoch
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM changed WHERE s.sub = changed.sub AND s.sid <> $5::text AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
    RETURNING s.day, s.sid
), called AS (
    UPDATE session_clients c SET due_at = clock_timestamp() FROM ended
    WHERE c.day = ended.day AND c.sid = ended.sid AND c.due_at IS NULL AND c.tries = 0
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM changed, json_populate_recordset(NULL::audit_events, $7::json) AS a
    RETURNING hash
)
SELECT user_epoch, array(SELECT hash FROM audited) AS audited FROM kept";

/// Changes the password. Answers the user's epoch from now on, which the session that stays has; `None` when session or user no
/// longer stood.
pub fn change(store: &Store, change: &PasswordChange<'_>, audit: &AuditEvent<'_>) -> Result<Option<i64>, StoreError> {
    let others = others(store, change.sub, change.session.1)?;
    let ended = others.iter().map(|sid| AuditEvent { event: "session_ended", sid: Some(sid), ..audit.clone() });
    let events: Vec<_> = [audit.clone()].into_iter().chain(ended).collect();
    let values: [&(dyn ToSql + Sync); 6] = [
        &change.sub.as_str(),
        &change.epoch,
        &change.password_hash.expose(),
        &change.session.0,
        &change.session.1.as_str(),
        &&change.handle_hash[..],
    ];
    let rows = store.write(|connection| connection.audited(CHANGE, &values, &events, Together::InOrder))?;
    rows.first().map(|row| column(row, "user_epoch")).transpose()
}
