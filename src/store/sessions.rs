//! `sessions`: one row per sign-in of a browser, found by the SHA-256 of the cookie's handle. The
//! row lies under a day not before the last access token it can have fed has expired, which both
//! the handle and the `sid` carry.

use std::slice;

use postgres::Row;

use super::Store;
use super::audit_event::AuditEvent;
use super::consents::{ConsentRow, consent_if_there};
use super::seen_partitions::under;
use super::session_clients::call_late;
use super::session_endings::others;
use super::statement::{Bound, bind};
use super::upstream_sessions::{Arrival, ArrivalValues};
use super::users::{UserRow, if_there, user};
use super::values::{column, key_thumbprint, read, tenant, tenant_text};
use crate::Result;
use gatepost_protocol::login::bound_session::BindingChallenge;
use gatepost_protocol::words::epochs::SessionEpochs;
use gatepost_protocol::words::identifiers::{ClientId, KeyThumbprint, Sid, Subject};
use gatepost_protocol::words::instant::{Day, Instant};
use gatepost_protocol::words::session::Session;

#[derive(Debug, PartialEq)]
pub struct FoundSession {
    pub session: Session,
    /// `None` when that user is gone: then the session is dead.
    pub user: Option<UserRow>,
    pub installation_epoch: i64,
    /// What the user allows the client that was named, lapsed or not.
    pub consent: Option<ConsentRow>,
}

impl FoundSession {
    pub fn stands(&self, now: Instant) -> bool {
        let user = self.user.as_ref().filter(|user| user.may_act());
        let epochs = user.map(|user| SessionEpochs {
            installation: self.installation_epoch,
            user: user.epoch,
        });
        self.session.stands(epochs, now)
    }
}

// A logout token that came since they left lies under that day or the next: the way and the token
// are both over within half an hour.
//
// A user from upstream must still be linked: an unlinking waits for that lock, or this waits for it
// and finds no link. The round trip is spent in the same statement, so that a callback sent twice
// makes one session. A revocation while they signed in ends that sign-in, too.
//
// The statement cannot see a logout token that is being taken: whoever it may name does not come
// in. One that comes later waits for this statement.
const INSERT: &str = "
WITH link AS MATERIALIZED (
    SELECT FROM linked_identities
    WHERE issuer = :upstream_issuer::text AND upstream_subject = :upstream_subject::text
      AND sub = :sub::text AND {no logout is taken}
    FOR KEY SHARE
), spent AS (
    INSERT INTO used_assertions (day, issuer, jti_hash)
    SELECT :way_day::int4, :upstream_issuer::text, :way::bytea FROM link
    {unless left}
), begun AS (
    INSERT INTO sessions (day, handle_hash, sid, sub, auth_time, amr, acr, tenant,
                          identity_provider, expires_at, installation_epoch,
                          upstream_subject, upstream_sid, upstream_id_token, upstream_issuer,
                          user_epoch, source, user_agent, created_at, used_at)
    SELECT :day::int4, :handle_hash::bytea, :sid::text, u.sub, :auth_time::timestamptz,
           :amr::text[], :acr::text, :tenant::text,
           :identity_provider::text, :expires_at::timestamptz, i.epoch,
           :upstream_subject::text, :upstream_sid::text, :upstream_id_token::bytea,
           :upstream_issuer::text,
           u.epoch, :source::inet, :user_agent::text, :created_at::timestamptz,
           :created_at::timestamptz
    FROM users u CROSS JOIN installation i
    WHERE u.sub = :sub::text AND {may act} AND u.epoch = :user_epoch::int8
      AND i.epoch = :installation_epoch::int8
      AND (:upstream_subject::text IS NULL OR EXISTS (SELECT FROM spent))
    RETURNING sid
)
INSERT INTO audit_events SELECT a.* FROM begun, unnest(:events::audit_events[]) AS a
RETURNING ARRAY[hash] AS audited";

// The session's own epochs are compared, not the user's: an update that waited for a change of
// password looks again at the row it updates, and at no other.
const RENEW: &str = "
WITH link AS MATERIALIZED (
    SELECT l.sub FROM linked_identities l
    WHERE l.issuer = :upstream_issuer::text AND l.upstream_subject = :upstream_subject::text
      AND l.sub = :sub::text AND {no logout is taken}
    FOR KEY SHARE
), alive AS MATERIALIZED (
    SELECT s.sub FROM sessions s
    WHERE s.day = :day::int4 AND s.sid = :sid::text AND s.ended_at IS NULL
      AND s.user_epoch = :user_epoch::int8 AND s.installation_epoch = :installation_epoch::int8
    FOR UPDATE
), spent AS (
    INSERT INTO used_assertions (day, issuer, jti_hash)
    SELECT :way_day::int4, :upstream_issuer::text, :way::bytea
    FROM link JOIN alive USING (sub)
    {unless left}
), renewed AS (
    UPDATE sessions
    SET handle_hash = :handle_hash::bytea, auth_time = :auth_time::timestamptz,
        amr = :amr::text[], acr = :acr::text, tenant = :tenant::text,
        identity_provider = :identity_provider::text,
        upstream_subject = :upstream_subject::text, upstream_sid = :upstream_sid::text,
        upstream_id_token = :upstream_id_token::bytea, upstream_issuer = :upstream_issuer::text,
        source = :source::inet, user_agent = :user_agent::text, used_at = clock_timestamp(),
        created_at = greatest(created_at, :created_at::timestamptz),
        expires_at = least(expires_at, :expires_at::timestamptz)
    WHERE day = :day::int4 AND sid = :sid::text AND user_epoch = :user_epoch::int8
      AND EXISTS (SELECT FROM alive)
      AND (:upstream_subject::text IS NULL OR EXISTS (SELECT FROM spent))
    RETURNING sid
), {audited renewed} FROM renewed";

/// A sign-in as the row of its session gets it.
pub struct NewSession<'a> {
    pub session: &'a Session,
    /// Of the cookie.
    pub handle_hash: &'a [u8; 32],
    /// How they came from an identity provider.
    pub arrival: Option<&'a Arrival>,
}

impl NewSession<'_> {
    /// Begins a session under the hash of its cookie's handle. `false` when its user was revoked
    /// since they were read; and, where it came from an identity provider, when that identity is
    /// the user's no longer, or signed out there meanwhile, or came in by the same way before.
    pub fn insert(&self, store: &Store, audit: &AuditEvent<'_>) -> Result<bool> {
        self.write(store, INSERT, audit)
    }

    /// Gives a live session a new handle and a new sign-in of the same user, with the epochs that
    /// they were read with. `sid` stays; the natural end may come nearer, and never moves away.
    /// What an identity provider said of an earlier sign-in goes. `false` as by
    /// [`insert`](Self::insert); and when it is not alive, or the user was read before a change of
    /// password that it outlived.
    pub fn renew(&self, store: &Store, audit: &AuditEvent<'_>) -> Result<bool> {
        self.write(store, RENEW, audit)
    }

    fn write(&self, store: &Store, sql: &'static str, audit: &AuditEvent<'_>) -> Result<bool> {
        let session = self.session;
        let from = ArrivalValues::of(self.arrival);
        let bound = bind!(
            INSERT,
            ..session {
                day,
                sid,
                auth_time,
                amr,
                acr,
                expires_at,
                upstream_issuer,
                source,
                user_agent,
                created_at
            },
            ..from {
                left_at,
                logouts,
                way_day,
                way
            },
            handle_hash = &self.handle_hash[..],
            sub = session.subject,
            tenant = tenant_text(session.tenant.as_ref()),
            identity_provider = session.identity_provider(),
            installation_epoch = session.epochs.installation,
            user_epoch = session.epochs.user,
            upstream_subject = from.subject,
            upstream_sid = from.sid,
            upstream_id_token = from.id_token,
            left_on = from.left_at.map(Instant::day)
        );
        store.change(Bound { sql, ..bound }, audit)
    }
}

const FIND: &str = "
SELECT {session}, i.epoch AS installation_epoch_now, {user}, {consent}
FROM {sessions} s
CROSS JOIN installation i
LEFT JOIN users u ON u.sub = s.sub
LEFT JOIN consents k ON k.sub = s.sub AND k.client_id = :client_id::text
WHERE s.day = :day::int4 AND s.handle_hash = :handle_hash::bytea";

/// Looks up the session of a cookie, with its user's consent to that client, where there is one.
/// Whether the session is alive is for the core to judge.
pub fn find(
    store: &Store,
    day: Day,
    handle_hash: &[u8; 32],
    client_id: Option<&ClientId>,
) -> Result<Option<FoundSession>> {
    let handle_hash = &handle_hash[..];
    let mut bound = bind!(FIND, day, handle_hash, client_id);
    bound.days = [under("sessions", Some(day)), None, None];
    store.find(bound, |row| {
        Ok(FoundSession {
            session: session(row)?,
            user: if_there(row, user)?,
            installation_epoch: column(row, "installation_epoch_now")?,
            consent: consent_if_there(row)?,
        })
    })
}

const TOUCH: &str = "
UPDATE sessions SET used_at = clock_timestamp()
WHERE day = :day::int4 AND sid = :sid::text AND used_at <= :unless_after::timestamptz";

/// Notes that a session is in use, unless somebody has since `unless_after`.
pub fn touch(store: &Store, session: &Session, unless_after: Instant) -> Result {
    let bound = bind!(TOUCH, ..session { day, sid }, unless_after);
    store.execute(bound).map(drop)
}

// Two registrations at once wait for one another here, and the second finds the key of the first.
const BIND: &str = "
WITH found AS MATERIALIZED (
    SELECT bound_to FROM sessions
    WHERE day = :day::int4 AND sid = :sid::text AND handle_hash = :handle_hash::bytea
      AND ended_at IS NULL AND (bound_to IS NULL OR bound_to = :key::bytea)
    FOR UPDATE
), bound AS (
    UPDATE sessions SET bound_to = :key::bytea, bound_at = clock_timestamp()
    WHERE day = :day::int4 AND sid = :sid::text
      AND EXISTS (SELECT FROM found WHERE bound_to IS NULL)
    RETURNING sid
), {audited bound} FROM found";

/// Binds a session to a key, with the event, unless it is bound to it. `false` where another key
/// came first, or the session has ended or has had another sign-in since the challenge was made.
pub fn bind(
    store: &Store,
    challenge: &BindingChallenge,
    key: KeyThumbprint,
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    let bound = bind!(
        BIND,
        ..challenge { day, sid },
        handle_hash = &challenge.handle_hash[..],
        key = &key.0[..]
    );
    store.change(bound, audit)
}

const NOTE_REFUSAL: &str = "
WITH noted AS (
    UPDATE sessions SET refused_at = clock_timestamp()
    WHERE day = :day::int4 AND sid = :sid::text
      AND (refused_at <= :unless_after::timestamptz) IS NOT FALSE
    RETURNING sid
), {audited noted} FROM noted";

/// Notes that a request did not show the key of the session, with the event, unless somebody has
/// since `unless_after`.
pub fn note_refusal(
    store: &Store,
    session: &Session,
    unless_after: Instant,
    audit: &AuditEvent<'_>,
) -> Result {
    store
        .change(
            bind!(NOTE_REFUSAL, ..session { day, sid }, unless_after),
            audit,
        )
        .map(drop)
}

// The user is looked up for each session: Postgres else reads all sessions to join them.
const LIST: &str = "
SELECT {session}, u.username
FROM sessions s
JOIN installation i ON i.epoch = s.installation_epoch
JOIN LATERAL (
    SELECT username FROM users
    WHERE sub = s.sub AND enabled AND {in time} AND epoch = s.user_epoch LIMIT 1
) u ON true
WHERE (s.day, s.sid) > (:after_day::int4, :after_sid::text)
  AND (:sub::text IS NULL OR s.sub = :sub::text)
  AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
ORDER BY s.day, s.sid LIMIT :limit::int8";

/// Sessions that live, with the names of their users, by day and sid, at most `limit` behind
/// `after`; of one user, or all.
pub fn list(
    store: &Store,
    after: Option<&Session>,
    sub: Option<&Subject>,
    limit: i64,
) -> Result<Vec<(Session, Option<String>)>> {
    let bound = bind!(
        LIST,
        after_day = after.map_or(Day(i32::MIN), |after| after.day),
        after_sid = after.map_or("", |after| after.sid.as_str()),
        sub,
        limit,
    );
    store.list(bound, |row| Ok((session(row)?, column(row, "username")?)))
}

const LIST_OF_USER: &str = "
SELECT {session}
FROM sessions s
JOIN installation i ON i.epoch = s.installation_epoch
JOIN users u ON u.sub = s.sub AND {may act} AND u.epoch = s.user_epoch
WHERE s.sub = :sub::text
  AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
ORDER BY s.auth_time DESC LIMIT :limit::int8";

/// Sessions of one user that live, the latest sign-in first, at most `limit`.
pub fn list_of_user(store: &Store, sub: &Subject, limit: i64) -> Result<Vec<Session>> {
    store.list(bind!(LIST_OF_USER, sub, limit), session)
}

const FIND_OF_USER: &str = "
SELECT {session}
FROM sessions s
JOIN users u ON u.sub = s.sub AND {may act}
WHERE s.day = :day::int4 AND s.sid = :sid::text AND (s.sub = :sub::text) IS TRUE";

/// Looks up a session of this user by its public name; none of a user who is gone or disabled.
pub fn find_of_user(store: &Store, sid: &Sid, sub: &Subject) -> Result<Option<Session>> {
    let Some(day) = sid.day() else {
        return Ok(None);
    };
    store.find(bind!(FIND_OF_USER, day, sid, sub), session)
}

const END: &str = "
WITH ended AS (
    UPDATE sessions SET ended_at = clock_timestamp(), upstream_id_token = NULL
    WHERE day = :day::int4 AND sid = :sid::text AND ended_at IS NULL RETURNING day, sid
), {called}, {audited ended}, EXISTS (SELECT FROM ended) AS ended
FROM sessions WHERE day = :day::int4 AND sid = :sid::text";

/// Ends a session, and has its clients called; `false` when it is not there or had ended before.
pub fn end(store: &Store, day: Day, sid: &Sid, audit: &AuditEvent<'_>) -> Result<bool> {
    let ended = store.end(
        Some(sid.as_str().as_bytes()),
        bind!(END, day, sid),
        slice::from_ref(audit),
    )?;
    if ended {
        call_late(store, slice::from_ref(sid));
    }
    Ok(ended)
}

const END_OTHERS: &str = "
WITH ended AS (
    UPDATE sessions SET ended_at = clock_timestamp(), upstream_id_token = NULL
    WHERE sub = :sub::text AND sid <> :kept::text
      AND ended_at IS NULL AND expires_at > clock_timestamp()
    RETURNING day, sid
), {called}, audited AS (
    INSERT INTO audit_events SELECT a.* FROM unnest(:events::audit_events[]) AS a
    WHERE EXISTS (SELECT FROM ended)
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited, EXISTS (SELECT FROM ended) AS ended
WHERE EXISTS (SELECT FROM sessions WHERE sub = :sub::text AND sid <> :kept::text)";

/// Ends every session of a user but one, with an event for each, and has their clients called.
pub fn end_others(store: &Store, sub: &Subject, kept: &Sid, audit: &AuditEvent<'_>) -> Result {
    let others = others(store, sub, kept)?;
    let mut events = Vec::new();
    for sid in &others {
        events.push(AuditEvent {
            sid: Some(sid),
            ..audit.clone()
        });
    }
    store.end(None, bind!(END_OTHERS, sub, kept), &events)?;
    call_late(store, &others);
    Ok(())
}

fn session(row: &Row) -> Result<Session> {
    read!(row, Session {
        day, sid, auth_time, amr, acr, identity_provider, upstream_issuer, source, user_agent,
        created_at, used_at, expires_at, ended_at, bound_at, refused_at;
        subject: column(row, "session_sub")?,
        tenant: tenant(row, "session_tenant")?,
        epochs: SessionEpochs {
            installation: column(row, "installation_epoch")?,
            user: column(row, "user_epoch")?
        },
        bound_to: key_thumbprint(row, "bound_to")?,
    })
}
