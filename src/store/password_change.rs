//! A person's own change of password: one statement that stores the new hash, ends what hung on the old password, has the
//! clients of the sessions that end with it called, and keeps the session it was changed in, under a new handle.

use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::values::column;
use super::{NamedQuery, Store};
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
                     tokens_valid_after = greatest(date_trunc('second', clock_timestamp()) + interval '2999999 microseconds', tokens_valid_after + interval '1 second')
    FROM own
    WHERE sub = $1::text AND enabled AND tokens_valid_after = $2::timestamptz
    RETURNING sub, tokens_valid_after + interval '1 microsecond' AS kept_since
), kept AS (
    UPDATE sessions s SET handle_hash = $6::bytea, created_at = changed.kept_since
    FROM changed WHERE s.day = $4::int4 AND s.sid = $5::text
    RETURNING s.created_at AS kept_since
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp()
    FROM changed WHERE s.sub = changed.sub AND s.sid <> $5::text AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
    RETURNING s.day, s.sid
), called AS (
    UPDATE session_clients c SET due_at = clock_timestamp() FROM ended
    WHERE c.day = ended.day AND c.sid = ended.sid AND c.due_at IS NULL AND c.tries = 0
), audited AS (
    INSERT INTO audit_events (day, process, event, client_id, sub, sid, source, request_id, detail)
    SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 + a.day,
           a.process, coalesce(e.event, a.event), a.client_id, a.sub, coalesce(e.sid, a.sid), a.source, a.request_id, a.detail
    FROM jsonb_populate_record(NULL::audit_events, $7::jsonb) AS a, changed,
         (SELECT NULL AS event, NULL AS sid UNION ALL SELECT 'session_ended', ended.sid FROM ended) AS e
)
SELECT kept_since FROM kept";

/// Changes the password. The session that stays counts as begun at the instant it answers, just after the mark that ends
/// everything else; `None` when session or user no longer stood.
pub fn change(
    store: &Store,
    change: &PasswordChange<'_>,
    audit: &AuditEvent<'_>,
) -> Result<Option<Instant>, StoreError> {
    let audit = audit.parameter_of(store);
    let row = store.write(|connection| {
        connection.query_opt(
            CHANGE,
            &[
                &change.sub.as_str(),
                &change.tokens_valid_after,
                &change.password_hash.expose(),
                &change.session.0,
                &change.session.1.as_str(),
                &&change.handle_hash[..],
                &audit,
            ],
        )
    })?;
    row.as_ref().map(|row| column(row, "kept_since")).transpose()
}

pub(super) const QUERIES: &[NamedQuery] = &[("password_change::CHANGE", CHANGE)];
