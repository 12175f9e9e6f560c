//! The columns of `sessions` about the sign-in at an identity provider, and the end of such
//! sessions when the provider says that the user signed out. The provider's name alone is not
//! enough: another provider may have that name now.

use super::Store;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::tokens::{about, assertion_key};
use super::values::{Values, column, read};
use crate::protocol::upstream::id_token::LogoutNotice;
use crate::protocol::words::identifiers::{Sid, Subject};
use crate::protocol::words::identity_provider::IdentityProvider;
use crate::protocol::words::instant::{Day, Instant};

#[derive(Clone, Debug, PartialEq, Eq)]
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

#[derive(Clone, Debug)]
pub struct Arrival {
    pub session: UpstreamSession,
    /// When they left for the provider: a sign-out there since then ends this sign-in.
    pub left_at: Instant,
    /// Names their way there and back, as nothing else is named.
    pub way: [u8; 32],
    /// When the round trip expires.
    pub way_over_at: Instant,
}

impl Arrival {
    /// What statements are given of somebody, if they come from upstream: what is kept of their
    /// sign-in there (subject, `sid`, ID token), and what says whether they may still come (when
    /// they left, as a day, the keys under which a logout token since would have left whom it was
    /// about, and as an instant; their way's last day, and its name).
    pub(super) fn values<T>(
        arrival: Option<&Arrival>,
        write: impl FnOnce(Values<'_>, Values<'_>) -> T,
    ) -> T {
        let (kept, left_at) = (
            arrival.map(|arrival| &arrival.session),
            arrival.map(|arrival| arrival.left_at),
        );
        let (subject, sid) = (
            kept.map(|kept| kept.subject.as_str()),
            kept.and_then(|kept| kept.sid.as_deref()),
        );
        let id_token = kept.and_then(|kept| kept.sealed_id_token.as_ref());
        let of_session = sid.map(|sid| [about(Some(sid), None), about(Some(sid), subject)]);
        let keys = arrival.map(|_| {
            of_session
                .into_iter()
                .flatten()
                .chain([about(None, subject)])
                .collect::<Vec<_>>()
        });
        let over_on = arrival.map(|arrival| arrival.way_over_at.day());
        let way = arrival.map(|arrival| &arrival.way[..]);
        write(
            &[&subject, &sid, &id_token],
            &[&left_at.map(Instant::day), &keys, &left_at, &over_on, &way],
        )
    }
}

const FIND: &str = "
SELECT upstream_issuer, upstream_subject, upstream_sid, upstream_id_token FROM sessions WHERE day = $1::int4 AND sid = $2::text";

/// What is kept of the sign-in upstream that a session came from; `None` for one that came from
/// here.
pub fn find(store: &Store, day: Day, sid: &Sid) -> Result<Option<UpstreamSession>, StoreError> {
    let kept = store.find(FIND, &[&day, sid], |row| {
        let (issuer, subject) = (
            column(row, "upstream_issuer")?,
            column(row, "upstream_subject")?,
        );
        let (Some(issuer), Some(subject)) = (issuer, subject) else {
            return Ok(None);
        };
        let sealed_id_token = column(row, "upstream_id_token")?;
        Ok(Some(UpstreamSession {
            issuer,
            subject,
            sid: column(row, "upstream_sid")?,
            sealed_id_token,
        }))
    })?;
    Ok(kept.flatten())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFromUpstream {
    pub day: Day,
    pub sid: Sid,
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

/// Sessions of whom that is about, which have not ended. Where both a session and a subject are
/// named, both must fit.
pub fn sessions_of(
    store: &Store,
    provider: &IdentityProvider,
    notice: &LogoutNotice,
) -> Result<Vec<SessionFromUpstream>, StoreError> {
    let (name, issuer) = (&provider.name, provider.authority());
    let (sql, values): (_, Values<'_>) = match (&notice.sid, &notice.subject) {
        (Some(sid), subject) => (OF_SESSION, &[name, sid, subject, &issuer]),
        (None, Some(subject)) => (OF_SUBJECT, &[name, subject, &issuer]),
        (None, None) => return Ok(Vec::new()),
    };
    store.list(
        sql,
        values,
        |row| read!(row, SessionFromUpstream { day, sid, sub; }),
    )
}

// One statement spends the token and ends the sessions: neither happens without the other. A user
// who is on the way here from that session finds that it is over.
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
), {called}, {audited taken $8}, EXISTS (SELECT FROM taken) AS ended";

/// Takes the token and ends these sessions of its provider, with an event for each, their clients
/// called; `false`, and nothing done, when it was taken before.
pub fn end(
    store: &Store,
    provider: &IdentityProvider,
    notice: &LogoutNotice,
    sessions: &[SessionFromUpstream],
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let ended = sessions.iter();
    let events: Vec<AuditEvent<'_>> = ended
        .map(|one| AuditEvent {
            sub: Some(&one.sub),
            sid: Some(&one.sid),
            ..audit.clone()
        })
        .collect();
    let (day, jti_hash) = assertion_key(&notice.jti, notice.forgotten_at);
    let (days, sids): (Vec<Day>, Vec<&Sid>) = sessions
        .iter()
        .map(|session| (session.day, &session.sid))
        .unzip();
    let whom = about(notice.sid.as_deref(), notice.subject.as_deref());
    let issuer = provider.authority();
    let values: Values<'_> = &[
        &day,
        &issuer,
        &jti_hash,
        &days,
        &sids,
        &provider.name,
        &whom,
    ];
    store.end(
        Some(&[issuer.as_bytes(), &jti_hash].concat()),
        END,
        values,
        &events,
    )
}
