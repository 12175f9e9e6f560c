//! The columns of `sessions` about the sign-in at an identity provider, and the end of such
//! sessions when the provider says that the user signed out. The provider's name alone is not
//! enough: another provider may have that name now.

use postgres::Row;

use super::Store;
use super::audit_event::AuditEvent;
use super::session_clients::call_late;
use super::statement::bind;
use super::tokens::{about, hash_of_jti};
use super::values::{column, each, read};
use crate::Result;
use gatepost_protocol::upstream::id_token::LogoutNotice;
use gatepost_protocol::words::identifiers::{Sid, Subject};
use gatepost_protocol::words::identity_provider::IdentityProvider;
use gatepost_protocol::words::instant::{Day, Instant};

pub struct UpstreamSession {
    /// The issuer; for a provider without one, its `userinfo_endpoint`.
    pub issuer: String,
    /// `sub` there.
    pub subject: String,
    /// `sid` there, where the provider tells.
    pub sid: Option<String>,
    /// The ID token under `Purpose::UpstreamIdToken`, where signing out here signs out there.
    pub sealed_id_token: Option<Vec<u8>>,
}

pub struct Arrival {
    pub session: UpstreamSession,
    /// When they left for the provider: a sign-out there since then ends this sign-in.
    pub left_at: Instant,
    /// Names their way there and back, as nothing else is named.
    pub way: [u8; 32],
    /// When the round trip expires.
    pub way_over_at: Instant,
}

/// What statements are told of a sign-in, if it comes from upstream.
pub(super) struct ArrivalValues<'a> {
    pub(super) subject: Option<&'a str>,
    pub(super) sid: Option<&'a str>,
    pub(super) id_token: Option<&'a Vec<u8>>,
    pub(super) left_at: Option<Instant>,
    /// Under these keys a logout token since then would have left whom it was about.
    pub(super) logouts: Option<Vec<Vec<u8>>>,
    pub(super) way_day: Option<Day>,
    pub(super) way: Option<&'a [u8]>,
}

impl ArrivalValues<'_> {
    pub(super) fn of(arrival: Option<&Arrival>) -> ArrivalValues<'_> {
        let session = arrival.map(|arrival| &arrival.session);
        ArrivalValues {
            subject: session.map(|session| session.subject.as_str()),
            sid: session.and_then(|session| session.sid.as_deref()),
            id_token: session.and_then(|session| session.sealed_id_token.as_ref()),
            left_at: arrival.map(|arrival| arrival.left_at),
            logouts: session.map(logouts),
            way_day: arrival.map(|arrival| arrival.way_over_at.day()),
            way: arrival.map(|arrival| &arrival.way[..]),
        }
    }
}

fn logouts(session: &UpstreamSession) -> Vec<Vec<u8>> {
    let subject = Some(session.subject.as_str());
    let mut keys = vec![about(None, subject)];
    if let Some(sid) = &session.sid {
        keys.push(about(Some(sid), None));
        keys.push(about(Some(sid), subject));
    }
    keys
}

const FIND: &str = "
SELECT upstream_issuer, upstream_subject, upstream_sid, upstream_id_token
FROM sessions WHERE day = :day::int4 AND sid = :sid::text";

/// What is kept of the sign-in upstream that a session came from; `None` for one that came from
/// here.
pub fn find(store: &Store, day: Day, sid: &Sid) -> Result<Option<UpstreamSession>> {
    let kept = store.find(bind!(FIND, day, sid), upstream_session)?;
    Ok(kept.flatten())
}

fn upstream_session(row: &Row) -> Result<Option<UpstreamSession>> {
    let Some(issuer) = column(row, "upstream_issuer")? else {
        return Ok(None);
    };
    let Some(subject) = column(row, "upstream_subject")? else {
        return Ok(None);
    };
    Ok(Some(UpstreamSession {
        issuer,
        subject,
        sid: column(row, "upstream_sid")?,
        sealed_id_token: column(row, "upstream_id_token")?,
    }))
}

pub struct SessionFromUpstream {
    pub day: Day,
    pub sid: Sid,
    pub sub: Subject,
}

const OF_SESSION: &str = "
SELECT day, sid, sub FROM sessions
WHERE identity_provider = :identity_provider::text AND upstream_sid = :upstream_sid::text
  AND (:upstream_subject::text IS NULL OR upstream_subject = :upstream_subject::text)
  AND upstream_issuer = :upstream_issuer::text
  AND ended_at IS NULL AND expires_at > clock_timestamp()
ORDER BY day, sid";

const OF_SUBJECT: &str = "
SELECT day, sid, sub FROM sessions
WHERE identity_provider = :identity_provider::text
  AND upstream_subject = :upstream_subject::text AND upstream_issuer = :upstream_issuer::text
  AND ended_at IS NULL AND expires_at > clock_timestamp()
ORDER BY day, sid";

/// Sessions of whom that is about, which have not ended. Where both a session and a subject are
/// named, both must fit.
pub fn sessions_of(
    store: &Store,
    provider: &IdentityProvider,
    notice: &LogoutNotice,
) -> Result<Vec<SessionFromUpstream>> {
    let identity_provider = &provider.name;
    let upstream_issuer = provider.authority();
    let upstream_subject = notice.subject.as_ref();
    let found = |row: &Row| read!(row, SessionFromUpstream { day, sid, sub; });
    if let Some(upstream_sid) = &notice.sid {
        let of_session = bind!(
            OF_SESSION,
            identity_provider,
            upstream_sid,
            upstream_subject,
            upstream_issuer
        );
        return store.list(of_session, found);
    }
    if upstream_subject.is_none() {
        return Ok(Vec::new());
    }
    let of_subject = bind!(
        OF_SUBJECT,
        identity_provider,
        upstream_subject,
        upstream_issuer
    );
    store.list(of_subject, found)
}

// One statement spends the token and ends the sessions: neither happens without the other. A user
// who is on the way here from that session finds that it is over. The statement cannot see the
// session of a sign-in that is not committed yet. It waits for that sign-in, so that a look after
// it finds the session; and until it is committed no sign-in of the same person begins.
const END: &str = "
WITH alone AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(
        hashtextextended(:issuer::text || encode(:whom::bytea, 'hex'), 0))
), taken AS (
    INSERT INTO used_assertions (day, issuer, jti_hash)
    SELECT :day::int4, :issuer::text, :jti_hash::bytea FROM alone
    ON CONFLICT (day, issuer, jti_hash) DO NOTHING
    RETURNING day
), told AS (
    INSERT INTO used_assertions (day, issuer, jti_hash, taken_at)
    SELECT day, :issuer::text, :whom::bytea, clock_timestamp() FROM taken
    ON CONFLICT (day, issuer, jti_hash) DO UPDATE SET taken_at = clock_timestamp()
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM taken CROSS JOIN unnest(:days::int4[], :sids::text[]) AS named (day, sid)
    WHERE s.day = named.day AND s.sid = named.sid AND s.identity_provider = :identity_provider::text
      AND s.upstream_issuer = :issuer::text AND s.ended_at IS NULL
    RETURNING s.day, s.sid
), {called}, {audited taken}, EXISTS (SELECT FROM taken) AS ended";

/// Takes the token and ends these sessions of its provider, with an event for each, their clients
/// called; `false`, and nothing done, when it was taken before. Sessions can begin until this
/// statement is committed: look for them after it.
pub fn end(
    store: &Store,
    provider: &IdentityProvider,
    notice: &LogoutNotice,
    sessions: &[SessionFromUpstream],
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    let events = each(sessions, |ended| AuditEvent {
        sub: Some(&ended.sub),
        sid: Some(&ended.sid),
        ..audit.clone()
    });
    let sids = each(sessions, |ended| ended.sid.clone());
    let issuer = provider.authority();
    let jti_hash = hash_of_jti(&notice.jti);
    let bound = bind!(
        END,
        day = notice.forgotten_at.day(),
        issuer,
        jti_hash,
        days = each(sessions, |ended| ended.day),
        sids,
        identity_provider = provider.name,
        whom = about(notice.sid.as_deref(), notice.subject.as_deref()),
    );
    let mark = [issuer.as_bytes(), &jti_hash].concat();
    let ended = store.end(Some(&mark), bound, &events)?;
    if ended {
        call_late(store, &sids);
    }
    Ok(ended)
}
