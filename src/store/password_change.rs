//! A person's own change of password: one statement that stores the new hash, ends what hung on the old password, has the
//! clients of the sessions that end with it called, and keeps the session it was changed in, under a new handle.

use postgres::types::ToSql;

use super::Store;
use super::audit_chain::Together;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::sessions::others;
use super::values::column;
use crate::protocol::identifiers::{Sid, Subject};
use crate::protocol::instant::{Day, Instant};
use crate::protocol::secret::SecretText;

/// A change to be.
#[derive(Clone, Copy, Debug)]
pub struct PasswordChange<'a> {
    /// Whose.
    pub sub: &'a Subject,
    /// The user's mark when the present password was checked: nothing must have been revoked since.
    pub tokens_valid_after: Instant,
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
    UPDATE users SET password_hash = $3::text, updated_at = clock_timestamp(),
                     tokens_valid_after = revocation_mark_beyond(tokens_valid_after)
    FROM own
    WHERE sub = $1::text AND enabled AND tokens_valid_after = $2::timestamptz
    RETURNING sub, tokens_valid_after + interval '1 microsecond' AS kept_since
), kept AS (
    UPDATE sessions s SET handle_hash = $6::bytea, created_at = changed.kept_since
    FROM changed WHERE s.day = $4::int4 AND s.sid = $5::text
    RETURNING s.created_at AS kept_since
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
SELECT kept_since, array(SELECT hash FROM audited) AS audited FROM kept";

/// Changes the password. The session that stays counts as begun at the instant it answers, just after the mark that ends
/// everything else; `None` when session or user no longer stood.
pub fn change(
    store: &Store,
    change: &PasswordChange<'_>,
    audit: &AuditEvent<'_>,
) -> Result<Option<Instant>, StoreError> {
    let others = others(store, change.sub, change.session.1)?;
    let ended = others.iter().map(|sid| AuditEvent { event: "session_ended", sid: Some(sid), ..audit.clone() });
    let events: Vec<_> = [audit.clone()].into_iter().chain(ended).collect();
    let values: [&(dyn ToSql + Sync); 6] = [
        &change.sub.as_str(),
        &change.tokens_valid_after,
        &change.password_hash.expose(),
        &change.session.0,
        &change.session.1.as_str(),
        &&change.handle_hash[..],
    ];
    let rows = store.write(|connection| connection.audited(CHANGE, &values, &events, Together::InOrder))?;
    rows.first().map(|row| column(row, "kept_since")).transpose()
}
