//! `sessions`: one row per sign-in of a browser, found by the SHA-256 of the cookie's handle. The
//! row lies under a day not before the last access token it can have fed has expired, which both
//! the handle and the `sid` carry.

use std::slice;

use postgres::Row;

use super::Store;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::upstream_sessions::Arrival;
use super::users::{UserRow, user};
use super::values::{Values, column, read, tenant, tenant_text};
use crate::protocol::words::epochs::SessionEpochs;
use crate::protocol::words::identifiers::{Sid, Subject};
use crate::protocol::words::instant::{Day, Instant};
use crate::protocol::words::session::Session;

#[derive(Clone, Debug, PartialEq)]
pub struct FoundSession {
    pub session: Session,
    /// `None` when that user is gone: then the session is dead.
    pub user: Option<UserRow>,
    pub installation_epoch: i64,
}

impl FoundSession {
    pub fn stands(&self, now: Instant) -> bool {
        let user = self.user.as_ref().filter(|user| user.enabled);
        let epochs = user.map(|user| SessionEpochs {
            installation: self.installation_epoch,
            user: user.epoch,
        });
        self.session.stands(epochs, now)
    }
}

// A user from upstream must still be linked: an unlinking waits for that lock, or this waits for it
// and finds no link. The round trip is spent in the same statement, so that a callback sent twice
// makes one session. A revocation while they signed in ends that sign-in, too.
const INSERT: &str = "
WITH link AS MATERIALIZED (
    SELECT FROM linked_identities WHERE issuer = $15::text AND upstream_subject = $12::text AND sub = $4::text FOR KEY SHARE
), spent AS (
    INSERT INTO used_assertions (day, issuer, jti_hash) SELECT $20::int4, $15::text, $21::bytea FROM link
    WHERE NOT EXISTS (
        SELECT FROM used_assertions u
        WHERE u.day >= $17::int4 AND u.issuer = $15::text AND u.jti_hash = ANY ($18::bytea[]) AND u.taken_at > $19::timestamptz)
    ON CONFLICT (day, issuer, jti_hash) DO NOTHING
    RETURNING day
), begun AS (
    INSERT INTO sessions (day, handle_hash, sid, sub, auth_time, amr, acr, tenant, identity_provider, expires_at,
                          installation_epoch, upstream_subject, upstream_sid, upstream_id_token, upstream_issuer, user_epoch,
                          source, user_agent, created_at, used_at)
    SELECT $1::int4, $2::bytea, $3::text, u.sub, $5::timestamptz, $6::text[], $7::text, $8::text, $9::text, $10::timestamptz,
           i.epoch, $12::text, $13::text, $14::bytea, $15::text, u.epoch, $22::inet, $23::text,
           $24::timestamptz, $24::timestamptz
    FROM users u CROSS JOIN installation i
    WHERE u.sub = $4::text AND u.epoch = $16::int8 AND i.epoch = $11::int8 AND ($12::text IS NULL OR EXISTS (SELECT FROM spent))
    RETURNING sid
)
INSERT INTO audit_events SELECT a.* FROM begun, unnest($25::audit_events[]) AS a
RETURNING ARRAY[hash] AS audited";

/// Begins a session under the hash of its cookie's handle. `false` when its user was revoked since
/// they were read; and, where it came from an identity provider (`arrival`), when that identity is
/// the user's no longer, or signed out there meanwhile, or came in by the same way before.
pub fn insert(
    store: &Store,
    session: &Session,
    handle_hash: &[u8; 32],
    arrival: Option<&Arrival>,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let Session {
        day,
        sid,
        subject,
        auth_time,
        amr,
        acr,
        upstream_issuer,
        epochs,
        expires_at,
        ..
    } = session;
    let (tenant, provider, handle_hash) = (
        tenant_text(session.tenant.as_ref()),
        session.identity_provider(),
        &handle_hash[..],
    );
    let who: Values<'_> = &[
        day,
        &handle_hash,
        sid,
        subject,
        auth_time,
        amr,
        acr,
        &tenant,
        &provider,
        expires_at,
    ];
    let inserted = Arrival::values(arrival, |kept, way| {
        let from: Values<'_> = &[&session.source, &session.user_agent, &session.created_at];
        let values = [
            who,
            &[&epochs.installation],
            kept,
            &[upstream_issuer, &epochs.user],
            way,
            from,
        ]
        .concat();
        store.write_audited(INSERT, &values, audit)
    })?;
    Ok(!inserted.is_empty())
}

const FIND: &str = "
SELECT {session}, i.epoch AS installation_epoch_now, {user}
FROM sessions s
CROSS JOIN installation i
LEFT JOIN users u ON u.sub = s.sub
WHERE s.day = $1::int4 AND s.handle_hash = $2::bytea";

/// Looks up the session of a cookie; whether it is alive is for the core to judge.
pub fn find(
    store: &Store,
    day: Day,
    handle_hash: &[u8; 32],
) -> Result<Option<FoundSession>, StoreError> {
    store.find(FIND, &[&day, &&handle_hash[..]], |row| {
        let has_user = column::<Option<&str>>(row, "sub")?.is_some();
        let user = has_user.then(|| user(row)).transpose()?;
        Ok(FoundSession {
            session: session(row)?,
            user,
            installation_epoch: column(row, "installation_epoch_now")?,
        })
    })
}

const TOUCH: &str = "
UPDATE sessions SET used_at = clock_timestamp() WHERE day = $1::int4 AND sid = $2::text AND used_at <= $3::timestamptz";

/// Notes that a session is in use, unless somebody has since `unless_after`.
pub fn touch(store: &Store, session: &Session, unless_after: Instant) -> Result<(), StoreError> {
    store
        .execute(TOUCH, &[&session.day, &session.sid, &unless_after])
        .map(drop)
}

const LIST: &str = "
SELECT {session}, u.username
FROM sessions s
JOIN installation i ON i.epoch = s.installation_epoch
JOIN users u ON u.sub = s.sub AND u.enabled AND u.epoch = s.user_epoch
WHERE (s.day, s.sid) > ($1::int4, $2::text) AND ($3::text IS NULL OR s.sub = $3::text)
  AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
ORDER BY s.day, s.sid LIMIT $4::int8";

/// Sessions that live, with the names of their users, by day and sid, at most `limit` behind
/// `after`; of one user, or all.
pub fn list(
    store: &Store,
    after: Option<&Session>,
    sub: Option<&Subject>,
    limit: i64,
) -> Result<Vec<(Session, Option<String>)>, StoreError> {
    let (day, sid) = after.map_or((Day(i32::MIN), ""), |after| (after.day, after.sid.as_str()));
    store.list(LIST, &[&day, &sid, &sub, &limit], |row| {
        Ok((session(row)?, column(row, "username")?))
    })
}

const LIST_OF_USER: &str = "
SELECT {session}
FROM sessions s
JOIN installation i ON i.epoch = s.installation_epoch
JOIN users u ON u.sub = s.sub AND u.enabled AND u.epoch = s.user_epoch
WHERE s.sub = $1::text
  AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
ORDER BY s.auth_time DESC LIMIT $2::int8";

/// Sessions of one user that live, the latest sign-in first, at most `limit`.
pub fn list_of_user(store: &Store, sub: &Subject, limit: i64) -> Result<Vec<Session>, StoreError> {
    store.list(LIST_OF_USER, &[sub, &limit], session)
}

const FIND_OF_USER: &str = "
SELECT {session}
FROM sessions s
JOIN users u ON u.sub = s.sub AND u.enabled
WHERE s.day = $1::int4 AND s.sid = $2::text AND s.sub = $3::text";

/// Looks up a session of this user by its public name; none of a user who is gone or disabled.
pub fn find_of_user(
    store: &Store,
    day: Day,
    sid: &Sid,
    sub: &Subject,
) -> Result<Option<Session>, StoreError> {
    store.find(FIND_OF_USER, &[&day, sid, sub], session)
}

const END: &str = "
WITH ended AS (
    UPDATE sessions SET ended_at = clock_timestamp(), upstream_id_token = NULL
    WHERE day = $1::int4 AND sid = $2::text AND ended_at IS NULL RETURNING day, sid
), {called}, {audited ended $3}, EXISTS (SELECT FROM ended) AS ended
FROM sessions WHERE day = $1::int4 AND sid = $2::text";

/// Ends a session, and has its clients called; `false` when it is not there or had ended before.
pub fn end(store: &Store, day: Day, sid: &Sid, audit: &AuditEvent<'_>) -> Result<bool, StoreError> {
    store.end(
        Some(sid.as_str().as_bytes()),
        END,
        &[&day, sid],
        slice::from_ref(audit),
    )
}

const OTHERS: &str = "
SELECT sid FROM sessions WHERE sub = $1::text AND sid <> $2::text AND ended_at IS NULL AND expires_at > clock_timestamp()
ORDER BY day, sid";

/// Sessions of a user that have not ended, but one: for the events that tell of their end.
pub(super) fn others(store: &Store, sub: &Subject, kept: &Sid) -> Result<Vec<Sid>, StoreError> {
    store.list(OTHERS, &[sub, kept], |row| column(row, "sid"))
}

/// An event, and one more for each session that ends with it.
pub(super) fn with_endings<'a>(event: &AuditEvent<'a>, ended: &'a [Sid]) -> Vec<AuditEvent<'a>> {
    let ended = ended.iter().map(|sid| AuditEvent {
        event: "session_ended",
        sid: Some(sid),
        ..event.clone()
    });
    [event.clone()].into_iter().chain(ended).collect()
}

const END_OTHERS: &str = "
WITH ended AS (
    UPDATE sessions SET ended_at = clock_timestamp(), upstream_id_token = NULL
    WHERE sub = $1::text AND sid <> $2::text AND ended_at IS NULL AND expires_at > clock_timestamp() RETURNING day, sid
), {called}, audited AS (
    INSERT INTO audit_events SELECT a.* FROM unnest($3::audit_events[]) AS a
    WHERE EXISTS (SELECT FROM ended)
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited, EXISTS (SELECT FROM ended) AS ended
WHERE EXISTS (SELECT FROM sessions WHERE sub = $1::text AND sid <> $2::text)";

/// Ends every session of a user but one, with an event for each, and has their clients called.
pub fn end_others(
    store: &Store,
    sub: &Subject,
    kept: &Sid,
    audit: &AuditEvent<'_>,
) -> Result<(), StoreError> {
    let others = others(store, sub, kept)?;
    let events: Vec<_> = others
        .iter()
        .map(|sid| AuditEvent {
            sid: Some(sid),
            ..audit.clone()
        })
        .collect();
    store.end(None, END_OTHERS, &[sub, kept], &events).map(drop)
}

// The session's own epochs are compared, not the user's: an update that waited for a change of
// password looks again at the row it updates, and at no other.
const RENEW: &str = "
WITH link AS MATERIALIZED (
    SELECT l.sub FROM linked_identities l WHERE l.issuer = $12::text AND l.upstream_subject = $9::text FOR KEY SHARE
), alive AS MATERIALIZED (
    SELECT s.sub FROM sessions s
    WHERE s.day = $1::int4 AND s.sid = $2::text AND s.ended_at IS NULL AND s.user_epoch = $8::int8
      AND s.installation_epoch = $18::int8
    FOR UPDATE
), spent AS (
    INSERT INTO used_assertions (day, issuer, jti_hash) SELECT $16::int4, $12::text, $17::bytea FROM link JOIN alive USING (sub)
    WHERE NOT EXISTS (
        SELECT FROM used_assertions u
        WHERE u.day >= $13::int4 AND u.issuer = $12::text AND u.jti_hash = ANY ($14::bytea[]) AND u.taken_at > $15::timestamptz)
    ON CONFLICT (day, issuer, jti_hash) DO NOTHING
    RETURNING day
), renewed AS (
    UPDATE sessions SET handle_hash = $3::bytea, auth_time = $4::timestamptz, amr = $5::text[], acr = $6::text,
                        identity_provider = $7::text, upstream_subject = $9::text, upstream_sid = $10::text, upstream_id_token = $11::bytea,
                        upstream_issuer = $12::text, source = $19::inet, user_agent = $20::text, used_at = clock_timestamp(),
                        created_at = greatest(created_at, $21::timestamptz), expires_at = least(expires_at, $22::timestamptz)
    WHERE day = $1::int4 AND sid = $2::text AND user_epoch = $8::int8 AND EXISTS (SELECT FROM alive) AND ($9::text IS NULL OR EXISTS (SELECT FROM spent))
    RETURNING sid
), {audited renewed $23} FROM renewed";

/// Gives a live session a new handle and a new sign-in of the same user, with the epochs that they
/// were read with. `sid` stays; the natural end may come nearer, and never moves away. What an
/// identity provider said of an earlier sign-in goes. `false` when it is not alive, or the user was
/// read before a revocation or a change of password that it outlived; or when the identity that the
/// sign-in comes from is the user's no longer, or signed out there meanwhile, or came in by the
/// same way before.
pub fn renew(
    store: &Store,
    session: &Session,
    handle_hash: &[u8; 32],
    arrival: Option<&Arrival>,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let Session {
        day,
        sid,
        auth_time,
        amr,
        acr,
        upstream_issuer,
        epochs,
        ..
    } = session;
    let (provider, handle_hash) = (session.identity_provider(), &handle_hash[..]);
    let who: Values<'_> = &[
        day,
        sid,
        &handle_hash,
        auth_time,
        amr,
        acr,
        &provider,
        &epochs.user,
    ];
    let renewed = Arrival::values(arrival, |kept, way| {
        let from: Values<'_> = &[&epochs.installation, &session.source, &session.user_agent];
        let from_to: Values<'_> = &[&session.created_at, &session.expires_at];
        let values = [who, kept, &[upstream_issuer], way, from, from_to].concat();
        store.write_audited(RENEW, &values, audit)
    })?;
    Ok(!renewed.is_empty())
}

fn session(row: &Row) -> Result<Session, StoreError> {
    read!(row, Session { day, sid, auth_time, amr, acr, identity_provider, upstream_issuer, source, user_agent, created_at, used_at,
        expires_at, ended_at;
        subject: column(row, "session_sub")?,
        tenant: tenant(row, "session_tenant")?,
        epochs: SessionEpochs { installation: column(row, "installation_epoch")?, user: column(row, "user_epoch")? },
    })
}
