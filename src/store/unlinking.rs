//! Taking an identity elsewhere from its user: one statement that removes it, the claims that came from it and the sessions
//! that did, unless nothing would be left to sign in with.

use postgres::types::ToSql;

use super::audit_chain::Together;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::values::sid;
use super::{Store, linked_identities, sessions};
use crate::protocol::words::identifiers::{Sid, Subject};

/// An identity to unlink.
#[derive(Clone, Copy, Debug)]
pub struct Unlinking<'a> {
    /// Whose.
    pub sub: &'a Subject,
    /// `iss` there.
    pub issuer: &'a str,
    /// `sub` there.
    pub upstream_subject: &'a str,
    /// Issuers that one can sign in with: a password or an identity of one of them must be left. `None` leaves that to the
    /// operator.
    pub usable_issuers: Option<&'a [&'a str]>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlinked {
    /// It is gone.
    Done,
    /// It is not this user's.
    NotTheirs,
    /// Without it the user could not sign in any more.
    LastWayIn,
}

const SESSIONS: &str = "
SELECT sid FROM sessions
WHERE sub = $1::text AND upstream_subject = $2::text AND upstream_issuer = $3::text
  AND ended_at IS NULL AND expires_at > clock_timestamp()
ORDER BY day, sid";

/// Sessions that came from it and have not ended: for the events that tell of their end.
fn sessions_through(store: &Store, unlinking: &Unlinking<'_>) -> Result<Vec<Sid>, StoreError> {
    let values: [&(dyn ToSql + Sync); 3] = [&unlinking.sub.as_str(), &unlinking.upstream_subject, &unlinking.issuer];
    store.read(|connection| connection.query(SESSIONS, &values))?.iter().map(|row| sid(row, "sid")).collect()
}

// All identities of the user are locked, in one order: of two that are unlinked at once, the second sees that the first is
// gone. What only this identity said of the user is taken back, unless somebody here has changed it since; an address goes with
// whether it is verified.
const UNLINK: &str = "
WITH own AS MATERIALIZED (
    SELECT issuer, upstream_subject FROM linked_identities WHERE sub = $1::text ORDER BY issuer, upstream_subject FOR UPDATE
), removed AS (
    DELETE FROM linked_identities l USING own
    WHERE l.issuer = own.issuer AND l.upstream_subject = own.upstream_subject
      AND own.issuer = $2::text AND own.upstream_subject = $3::text
      AND ($4::text[] IS NULL
           OR EXISTS (SELECT FROM users u WHERE u.sub = $1::text AND u.password_hash IS NOT NULL)
           OR EXISTS (SELECT FROM own other WHERE other.issuer = ANY ($4::text[])
                      AND (other.issuer, other.upstream_subject) <> ($2::text, $3::text)))
    RETURNING l.sub, l.claims
), unsaid AS (
    SELECT removed.sub, array_agg(said.key) AS names
    FROM removed CROSS JOIN jsonb_each(removed.claims) AS said JOIN users u ON u.sub = removed.sub
    WHERE u.claims -> said.key = said.value
      AND NOT EXISTS (SELECT FROM linked_identities other
                      WHERE other.sub = removed.sub AND (other.issuer, other.upstream_subject) <> ($2::text, $3::text)
                        AND other.claims -> said.key = said.value)
    GROUP BY removed.sub
), changed AS (
    UPDATE users u SET claims = u.claims - unsaid.names
        - CASE WHEN 'email' = ANY (unsaid.names) THEN '{email_verified}'::text[] ELSE '{}' END
        - CASE WHEN 'phone_number' = ANY (unsaid.names) THEN '{phone_number_verified}'::text[] ELSE '{}' END,
        updated_at = clock_timestamp() FROM unsaid WHERE u.sub = unsaid.sub
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM removed
    WHERE s.sub = removed.sub AND s.upstream_subject = $3::text AND s.upstream_issuer = $2::text
      AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
    RETURNING s.day, s.sid
), called AS (
    UPDATE session_clients c SET due_at = clock_timestamp() FROM ended
    WHERE c.day = ended.day AND c.sid = ended.sid AND c.due_at IS NULL AND c.tries = 0
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM removed, json_populate_recordset(NULL::audit_events, $5::json) AS a
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited FROM removed";

/// Ends what began through it while it was unlinked, which the statement could not see yet. Now that the link is gone nothing
/// more can begin.
fn end_latecomers(store: &Store, unlinking: &Unlinking<'_>, audit: &AuditEvent<'_>) -> Result<(), StoreError> {
    for sid in sessions_through(store, unlinking)? {
        let event = AuditEvent { event: "session_ended", sid: Some(&sid), ..audit.clone() };
        if let Some(day) = sid.day() {
            sessions::end(store, day, &sid, &event)?;
        }
    }
    Ok(())
}

/// Unlinks an identity, takes back what it alone said of the user, and ends the sessions that came from it, with an event for
/// each, their clients called.
pub fn unlink(store: &Store, unlinking: &Unlinking<'_>, audit: &AuditEvent<'_>) -> Result<Unlinked, StoreError> {
    let through = sessions_through(store, unlinking)?;
    let ended = through.iter().map(|sid| AuditEvent { event: "session_ended", sid: Some(sid), ..audit.clone() });
    let events: Vec<_> = [audit.clone()].into_iter().chain(ended).collect();
    let Unlinking { sub, issuer, upstream_subject, usable_issuers } = unlinking;
    let values: [&(dyn ToSql + Sync); 4] = [&sub.as_str(), issuer, upstream_subject, usable_issuers];
    let removed = store.write(|connection| connection.audited(UNLINK, &values, &events, Together::InOrder))?;
    if !removed.is_empty() {
        end_latecomers(store, unlinking, audit)?;
        return Ok(Unlinked::Done);
    }
    let left = linked_identities::of_user(store, sub)?;
    let is_it = |own: &linked_identities::LinkedIdentity| {
        (own.issuer.as_str(), own.upstream_subject.as_str()) == (*issuer, *upstream_subject)
    };
    if left.iter().any(is_it) {
        return Ok(Unlinked::LastWayIn);
    }
    // Also for who asks once more after that failed.
    end_latecomers(store, unlinking, audit)?;
    store.confirm()?;
    Ok(Unlinked::NotTheirs)
}
