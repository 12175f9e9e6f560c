//! A person's own change of password: one statement that stores the new hash, ends what hung on the old password, and keeps
//! the session it was changed in, under a new handle.

use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::values::{column, sid};
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

/// What it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordChanged {
    /// The session that stays counts as begun then, just after the mark that ends everything else.
    pub kept_since: Instant,
    /// The sessions that ended.
    pub ended: Vec<(Day, Sid)>,
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
), audited AS (
    INSERT INTO audit_events (day, process, event, client_id, sub, sid, source, request_id, detail)
    SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 + a.day,
           a.process, coalesce(e.event, a.event), a.client_id, a.sub, coalesce(e.sid, a.sid), a.source, a.request_id, a.detail
    FROM jsonb_populate_record(NULL::audit_events, $7::jsonb) AS a, changed,
         (SELECT NULL AS event, NULL AS sid UNION ALL SELECT 'session_ended', ended.sid FROM ended) AS e
)
SELECT kept.kept_since, ended.day, ended.sid FROM kept LEFT JOIN ended ON true";

/// Changes the password; `None` when session or user no longer stood.
pub fn change(
    store: &Store,
    change: &PasswordChange<'_>,
    audit: &AuditEvent<'_>,
) -> Result<Option<PasswordChanged>, StoreError> {
    let audit = audit.parameter_of(store);
    let rows = store.write(|connection| {
        connection.query(
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
    let Some(first) = rows.first() else { return Ok(None) };
    let ended = rows.iter().filter_map(|row| Some((column::<Option<Day>>(row, "day").transpose()?, row)));
    let ended = ended.map(|(day, row)| Ok((day?, sid(row, "sid")?))).collect::<Result<_, StoreError>>()?;
    Ok(Some(PasswordChanged { kept_since: column(first, "kept_since")?, ended }))
}

pub(super) const QUERIES: &[NamedQuery] = &[("password_change::CHANGE", CHANGE)];
