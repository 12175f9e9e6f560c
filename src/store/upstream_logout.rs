//! Sessions here that came from a session there, and their end, for a provider that says that somebody signed
//! out. Its name alone is not enough: whoever bears it now need not be who vouched under it then.

use postgres::Row;
use postgres::types::ToSql;

use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::values::{column, sid, subject};
use super::{Store, used_assertions};
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::upstream::logout_token::LogoutNotice;
use crate::protocol::words::identifiers::{Sid, Subject};
use crate::protocol::words::instant::Day;

/// A session that came from upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFromUpstream {
    /// The day its row lies under.
    pub day: Day,
    /// `sid` here.
    pub sid: Sid,
    /// Whose it is here.
    pub sub: Subject,
}

const OF_SESSION: &str = "
SELECT day, sid, sub FROM sessions
WHERE identity_provider = $1::text AND upstream_sid = $2::text AND ($3::text IS NULL OR upstream_subject = $3::text)
  AND upstream_issuer = $4::text
  AND ended_at IS NULL AND expires_at > clock_timestamp()
ORDER BY day, sid";

const OF_SUBJECT: &str = "
SELECT day, sid, sub FROM sessions
WHERE identity_provider = $1::text AND upstream_subject = $2::text AND upstream_issuer = $3::text
  AND ended_at IS NULL AND expires_at > clock_timestamp()
ORDER BY day, sid";

/// Sessions of whom that is about, which have not ended. Where both a session and a subject are named, both must fit.
pub fn sessions_of(
    store: &Store,
    provider: &IdentityProvider,
    notice: &LogoutNotice,
) -> Result<Vec<SessionFromUpstream>, StoreError> {
    let (name, issuer) = (&provider.name, provider.authority());
    let rows = store.read(|connection| match (&notice.sid, &notice.subject) {
        (Some(sid), subject) => connection.query(OF_SESSION, &[name, sid, subject, &issuer]),
        (None, Some(subject)) => connection.query(OF_SUBJECT, &[name, subject, &issuer]),
        (None, None) => Ok(Vec::new()),
    })?;
    rows.iter().map(session).collect()
}

// The token is spent by the very statement that does what it says: neither is there without the other. Whoever is on the way
// here from that session finds that it is over.
const END: &str = "
WITH taken AS (
    INSERT INTO used_assertions (day, issuer, jti_hash) VALUES ($1::int4, $2::text, $3::bytea)
    ON CONFLICT (day, issuer, jti_hash) DO NOTHING RETURNING day
), told AS (
    INSERT INTO used_assertions (day, issuer, jti_hash, taken_at) SELECT day, $2::text, $7::bytea, clock_timestamp() FROM taken
    ON CONFLICT (day, issuer, jti_hash) DO UPDATE SET taken_at = clock_timestamp()
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM taken
    WHERE s.day = ANY ($4::int4[]) AND s.sid = ANY ($5::text[]) AND s.identity_provider = $6::text
      AND s.upstream_issuer = $2::text AND s.ended_at IS NULL
    RETURNING s.day, s.sid
), called AS (
    UPDATE session_clients c SET due_at = clock_timestamp() FROM ended
    WHERE c.day = ended.day AND c.sid = ended.sid AND c.due_at IS NULL AND c.tries = 0
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM taken, json_populate_recordset(NULL::audit_events, $8::json) AS a
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited, EXISTS (SELECT FROM taken) AS ended";

/// Takes the token and ends these sessions of its provider, with an event for each, their clients called; `false`, and nothing
/// done, when it was taken before.
pub fn end(
    store: &Store,
    provider: &IdentityProvider,
    notice: &LogoutNotice,
    sessions: &[SessionFromUpstream],
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let ended = sessions.iter();
    let events: Vec<AuditEvent<'_>> =
        ended.map(|one| AuditEvent { sub: Some(&one.sub), sid: Some(&one.sid), ..audit.clone() }).collect();
    let (day, jti_hash) = used_assertions::key(&notice.jti, notice.forgotten_at);
    let days: Vec<Day> = sessions.iter().map(|session| session.day).collect();
    let sids: Vec<&str> = sessions.iter().map(|session| session.sid.as_str()).collect();
    let whom = used_assertions::whom(notice.sid.as_deref(), notice.subject.as_deref());
    let issuer = provider.authority();
    let values: [&(dyn ToSql + Sync); 7] = [&day, &issuer, &jti_hash, &days, &sids, &provider.name, &whom];
    store.end(Some(&[issuer.as_bytes(), &jti_hash].concat()), END, &values, &events)
}

fn session(row: &Row) -> Result<SessionFromUpstream, StoreError> {
    Ok(SessionFromUpstream { day: column(row, "day")?, sid: sid(row, "sid")?, sub: subject(row, "sub")? })
}
