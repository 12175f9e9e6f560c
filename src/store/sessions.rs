//! `sessions`: one row per sign-in of a browser, found by the SHA-256 of the cookie's handle. The row lies under a day
//! not before the last access token it can have fed has expired, which both the handle and the `sid` carry.

use postgres::Row;

use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::users::{UserRow, user};
use super::values::{column, sid, subject, tenant, tenant_text};
use super::{NamedQuery, Store};
use crate::protocol::identifiers::{Sid, Subject, TenantName};
use crate::protocol::instant::{Day, Instant};
use crate::protocol::liveness::{SessionFooting, UserFooting};
use crate::protocol::session::Session;

/// A session as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// The day its row lies under.
    pub day: Day,
    /// `sid`, made by `Sid::of_day`.
    pub sid: Sid,
    /// Who signed in.
    pub sub: Subject,
    /// `auth_time`
    pub auth_time: Instant,
    /// `amr`
    pub amr: Vec<String>,
    /// `acr`
    pub acr: String,
    /// The tenant of the sign-in.
    pub tenant: Option<TenantName>,
    /// `local`, or the name of the upstream provider.
    pub identity_provider: String,
    /// When it began: judged against `tokens_valid_after`.
    pub created_at: Instant,
    /// Its natural end.
    pub expires_at: Instant,
    /// When somebody ended it.
    pub ended_at: Option<Instant>,
}

impl SessionRow {
    /// As the core sees a session.
    pub fn to_core(&self) -> Session {
        Session {
            subject: self.sub.clone(),
            sid: self.sid.clone(),
            auth_time: self.auth_time,
            amr: self.amr.clone(),
            acr: self.acr.clone(),
            tenant: self.tenant.clone(),
            identity_provider: Some(self.identity_provider.clone()),
            expires_at: self.expires_at,
            created_at: self.created_at,
        }
    }
}

/// A session with what it stands on.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundSession {
    /// The session.
    pub session: SessionRow,
    /// Whose it is; `None` when that user is gone: then the session is dead.
    pub user: Option<UserRow>,
    /// The installation's own mark (`gatepost revoke --everything`).
    pub installation_tokens_valid_after: Instant,
}

impl FoundSession {
    /// For the core to judge.
    pub fn facts(&self) -> SessionFooting {
        SessionFooting {
            begun_at: self.session.created_at,
            ended: self.session.ended_at.is_some(),
            expires_at: self.session.expires_at,
            user: self
                .user
                .as_ref()
                .map(|user| UserFooting { enabled: user.enabled, tokens_valid_after: user.tokens_valid_after }),
            installation_tokens_valid_after: self.installation_tokens_valid_after,
        }
    }
}

const INSERT: &str = "
WITH begun AS (
    INSERT INTO sessions (day, handle_hash, sid, sub, auth_time, amr, acr, tenant, identity_provider, created_at, expires_at)
    VALUES ($1::int4, $2::bytea, $3::text, $4::text, $5::timestamptz, $6::text[], $7::text, $8::text, $9::text,
            $10::timestamptz, $11::timestamptz)
)
INSERT INTO audit_events (day, process, event, client_id, sub, sid, source, request_id, detail)
SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 + a.day,
       a.process, a.event, a.client_id, a.sub, a.sid, a.source, a.request_id, a.detail
FROM jsonb_populate_record(NULL::audit_events, $12::jsonb) AS a";

/// Begins a session under the hash of its cookie's handle.
pub fn insert(
    store: &Store,
    session: &SessionRow,
    handle_hash: &[u8; 32],
    audit: &AuditEvent<'_>,
) -> Result<(), StoreError> {
    let audit = audit.parameter_of(store);
    let inserted = store.write(|connection| {
        connection.execute(
            INSERT,
            &[
                &session.day,
                &&handle_hash[..],
                &session.sid.as_str(),
                &session.sub.as_str(),
                &session.auth_time,
                &session.amr,
                &session.acr,
                &tenant_text(session.tenant.as_ref()),
                &session.identity_provider,
                &session.created_at,
                &session.expires_at,
                &audit,
            ],
        )
    });
    inserted.map(drop)
}

const FIND: &str = "
SELECT s.day, s.sid, s.sub AS session_sub, s.auth_time, s.amr, s.acr, s.tenant AS session_tenant, s.identity_provider,
       s.created_at AS begun_at, s.expires_at, s.ended_at,
       i.tokens_valid_after AS installation_valid_after,
       u.sub, u.username, u.tenant, u.password_hash, u.enabled, u.claims, u.tokens_valid_after
FROM sessions s
CROSS JOIN installation i
LEFT JOIN users u ON u.sub = s.sub
WHERE s.day = $1::int4 AND s.handle_hash = $2::bytea";

/// Looks up the session of a cookie; whether it is alive is for the core to judge.
pub fn find(store: &Store, day: Day, handle_hash: &[u8; 32]) -> Result<Option<FoundSession>, StoreError> {
    let row = store.read(|connection| connection.query_opt(FIND, &[&day, &&handle_hash[..]]))?;
    row.as_ref().map(found).transpose()
}

const LIST: &str = "
SELECT s.day, s.sid, s.sub AS session_sub, s.auth_time, s.amr, s.acr, s.tenant AS session_tenant, s.identity_provider,
       s.created_at AS begun_at, s.expires_at, s.ended_at
FROM sessions s
CROSS JOIN installation i
JOIN users u ON u.sub = s.sub AND u.enabled AND s.created_at > u.tokens_valid_after
WHERE (s.day, s.sid) > ($1::int4, $2::text) AND ($3::text IS NULL OR s.sub = $3::text)
  AND s.ended_at IS NULL AND s.expires_at > clock_timestamp() AND s.created_at > i.tokens_valid_after
ORDER BY s.day, s.sid LIMIT $4::int8";

/// Sessions that live, by day and sid, at most `limit` behind `after`; of one user, or all.
pub fn list(
    store: &Store,
    after: Option<&SessionRow>,
    sub: Option<&Subject>,
    limit: i64,
) -> Result<Vec<SessionRow>, StoreError> {
    let (day, sid) = after.map_or((Day(i32::MIN), ""), |after| (after.day, after.sid.as_str()));
    let sub = sub.map(Subject::as_str);
    store.read(|connection| connection.query(LIST, &[&day, &sid, &sub, &limit]))?.iter().map(session).collect()
}

const LIST_OF_USER: &str = "
SELECT s.day, s.sid, s.sub AS session_sub, s.auth_time, s.amr, s.acr, s.tenant AS session_tenant, s.identity_provider,
       s.created_at AS begun_at, s.expires_at, s.ended_at
FROM sessions s
CROSS JOIN installation i
JOIN users u ON u.sub = s.sub AND u.enabled AND s.created_at > u.tokens_valid_after
WHERE s.sub = $1::text
  AND s.ended_at IS NULL AND s.expires_at > clock_timestamp() AND s.created_at > i.tokens_valid_after
ORDER BY s.auth_time DESC LIMIT $2::int8";

/// Sessions of one user that live, the latest sign-in first, at most `limit`.
pub fn list_of_user(store: &Store, sub: &Subject, limit: i64) -> Result<Vec<SessionRow>, StoreError> {
    let rows = store.read(|connection| connection.query(LIST_OF_USER, &[&sub.as_str(), &limit]))?;
    rows.iter().map(session).collect()
}

const FIND_OF_USER: &str = "
SELECT s.day, s.sid, s.sub AS session_sub, s.auth_time, s.amr, s.acr, s.tenant AS session_tenant, s.identity_provider,
       s.created_at AS begun_at, s.expires_at, s.ended_at
FROM sessions s WHERE s.day = $1::int4 AND s.sid = $2::text AND s.sub = $3::text";

/// Looks up a session by its public name: of this user, nobody else's.
pub fn find_of_user(store: &Store, day: Day, sid: &Sid, sub: &Subject) -> Result<Option<SessionRow>, StoreError> {
    let row = store.read(|connection| connection.query_opt(FIND_OF_USER, &[&day, &sid.as_str(), &sub.as_str()]))?;
    row.as_ref().map(session).transpose()
}

const END: &str = "
WITH ended AS (
    UPDATE sessions SET ended_at = clock_timestamp()
    WHERE day = $1::int4 AND sid = $2::text AND ended_at IS NULL RETURNING day, sid
), called AS (
    UPDATE session_clients c SET due_at = clock_timestamp() FROM ended
    WHERE c.day = ended.day AND c.sid = ended.sid AND c.due_at IS NULL AND c.tries = 0
), audited AS (
    INSERT INTO audit_events (day, process, event, client_id, sub, sid, source, request_id, detail)
    SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 + a.day,
           a.process, a.event, a.client_id, a.sub, a.sid, a.source, a.request_id, a.detail
    FROM jsonb_populate_record(NULL::audit_events, $3::jsonb) AS a, ended
)
SELECT sid FROM ended";

/// Ends a session, and has its clients called; `false` when it is not there or had ended before.
pub fn end(store: &Store, day: Day, sid: &Sid, audit: &AuditEvent<'_>) -> Result<bool, StoreError> {
    let audit = audit.parameter_of(store);
    Ok(store.write(|connection| connection.query_opt(END, &[&day, &sid.as_str(), &audit]))?.is_some())
}

const END_OTHERS: &str = "
WITH ended AS (
    UPDATE sessions SET ended_at = clock_timestamp()
    WHERE sub = $1::text AND sid <> $2::text AND ended_at IS NULL AND expires_at > clock_timestamp() RETURNING day, sid
), called AS (
    UPDATE session_clients c SET due_at = clock_timestamp() FROM ended
    WHERE c.day = ended.day AND c.sid = ended.sid AND c.due_at IS NULL AND c.tries = 0
), audited AS (
    INSERT INTO audit_events (day, process, event, client_id, sub, sid, source, request_id, detail)
    SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 + a.day,
           a.process, a.event, a.client_id, a.sub, ended.sid, a.source, a.request_id, a.detail
    FROM jsonb_populate_record(NULL::audit_events, $3::jsonb) AS a, ended
)
SELECT count(*) FROM ended";

/// Ends every session of a user but one, with an event for each, and has their clients called.
pub fn end_others(store: &Store, sub: &Subject, kept: &Sid, audit: &AuditEvent<'_>) -> Result<(), StoreError> {
    let audit = audit.parameter_of(store);
    store.write(|connection| connection.query_one(END_OTHERS, &[&sub.as_str(), &kept.as_str(), &audit])).map(drop)
}

/// A fresh sign-in of the same user within a session.
#[derive(Clone, Debug)]
pub struct SessionRenewal<'a> {
    /// The hash of the cookie's new handle; the old handle finds nothing from now on.
    pub handle_hash: [u8; 32],
    /// `auth_time` from now on.
    pub auth_time: Instant,
    /// `amr` from now on.
    pub amr: &'a [String],
    /// `acr` from now on.
    pub acr: &'a str,
    /// Who vouched this time.
    pub identity_provider: &'a str,
}

const RENEW: &str = "
WITH renewed AS (
    UPDATE sessions SET handle_hash = $3::bytea, auth_time = $4::timestamptz, amr = $5::text[], acr = $6::text,
                        identity_provider = $7::text
    WHERE day = $1::int4 AND sid = $2::text AND ended_at IS NULL AND created_at = $9::timestamptz RETURNING sid
), audited AS (
    INSERT INTO audit_events (day, process, event, client_id, sub, sid, source, request_id, detail)
    SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 + a.day,
           a.process, a.event, a.client_id, a.sub, a.sid, a.source, a.request_id, a.detail
    FROM jsonb_populate_record(NULL::audit_events, $8::jsonb) AS a, renewed
)
SELECT sid FROM renewed";

/// Gives a live session a new handle and a new sign-in; `sid` and natural end stay. `false` when it is not alive, or began
/// anew since it was read: by a change of password, which this sign-in may know nothing of.
pub fn renew(
    store: &Store,
    session: &SessionRow,
    renewal: &SessionRenewal<'_>,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let audit = audit.parameter_of(store);
    let renewed = store.write(|connection| {
        connection.query_opt(
            RENEW,
            &[
                &session.day,
                &session.sid.as_str(),
                &&renewal.handle_hash[..],
                &renewal.auth_time,
                &renewal.amr,
                &renewal.acr,
                &renewal.identity_provider,
                &audit,
                &session.created_at,
            ],
        )
    })?;
    Ok(renewed.is_some())
}

fn found(row: &Row) -> Result<FoundSession, StoreError> {
    let has_user = column::<Option<&str>>(row, "sub")?.is_some();
    Ok(FoundSession {
        session: session(row)?,
        user: has_user.then(|| user(row)).transpose()?,
        installation_tokens_valid_after: column(row, "installation_valid_after")?,
    })
}

fn session(row: &Row) -> Result<SessionRow, StoreError> {
    Ok(SessionRow {
        day: column(row, "day")?,
        sid: sid(row, "sid")?,
        sub: subject(row, "session_sub")?,
        auth_time: column(row, "auth_time")?,
        amr: column(row, "amr")?,
        acr: column(row, "acr")?,
        tenant: tenant(row, "session_tenant")?,
        identity_provider: column(row, "identity_provider")?,
        created_at: column(row, "begun_at")?,
        expires_at: column(row, "expires_at")?,
        ended_at: column(row, "ended_at")?,
    })
}

pub(super) const QUERIES: &[NamedQuery] = &[
    ("sessions::INSERT", INSERT),
    ("sessions::FIND", FIND),
    ("sessions::LIST", LIST),
    ("sessions::LIST_OF_USER", LIST_OF_USER),
    ("sessions::FIND_OF_USER", FIND_OF_USER),
    ("sessions::END", END),
    ("sessions::END_OTHERS", END_OTHERS),
    ("sessions::RENEW", RENEW),
];
