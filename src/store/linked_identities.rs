//! `linked_identities`: which user a subject of another issuer is. The pair (issuer, subject there)
//! is the key and belongs to one user; a user may have several. Taking one away is one statement
//! that removes it, the claims that came from it and the sessions that did, unless nothing would be
//! left to sign in with.

use std::slice;

use postgres::types::Json;

use super::audit_event::AuditEvent;
use super::error::StoreError;
use super::registry_writer::RegistryWriter;
use super::session_clients::call_late;
use super::session_endings::with_endings;
use super::statement::{Bound, bind};
use super::users::{CurrentUser, current};
use super::values::{column, read, tenant_text};
use super::{Store, sessions};
use crate::Result;
use gatepost_protocol::words::epochs::SessionEpochs;
use gatepost_protocol::words::identifiers::{ClientId, Sid, Subject, TenantName};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::session::Session;

#[derive(Clone)]
pub struct LinkedIdentity {
    pub issuer: String,
    pub upstream_subject: String,
    pub sub: Subject,
    /// The identity provider that stands for it, where one does.
    pub provider: Option<String>,
    /// The user's claims that came from there, as they came last.
    pub claims: JsonObject,
    pub linked_at: Instant,
}

pub struct LinkedUser {
    pub provider: Option<String>,
    /// The user's claims that came from there, as they came last.
    pub claims: JsonObject,
    /// Of the user: another one after each change.
    pub version: String,
    pub found: CurrentUser,
}

const FIND_USER: &str = "
SELECT l.provider, l.claims AS upstream_claims, u.*, {has ended}, u.xmin::text AS version,
       i.epoch AS installation_epoch, coalesce(k.epoch, 0) AS consent_epoch
FROM linked_identities l
JOIN users u ON u.sub = l.sub
CROSS JOIN installation i
LEFT JOIN consents k ON k.sub = u.sub AND k.client_id = :client_id::text
WHERE l.issuer = :issuer::text AND l.upstream_subject = :upstream_subject::text";

/// The user linked to that subject of that issuer, for that client where there is one. Both must be
/// free of NUL.
pub fn find_user(
    store: &Store,
    issuer: &str,
    upstream_subject: &str,
    client_id: Option<&ClientId>,
) -> Result<Option<LinkedUser>> {
    let bound = bind!(FIND_USER, issuer, upstream_subject, client_id);
    store.find(bound, |row| {
        let claims = column::<Json<JsonObject>>(row, "upstream_claims")?.0;
        read!(row, LinkedUser { provider, version; claims, found: current(row)? })
    })
}

const OF_USER: &str = "
SELECT issuer, upstream_subject, sub, provider, claims, linked_at
FROM linked_identities WHERE sub = :sub::text
ORDER BY issuer, upstream_subject";

/// Every identity of a user.
pub fn of_user(store: &Store, sub: &Subject) -> Result<Vec<LinkedIdentity>> {
    store.list(bind!(OF_USER, sub), |row| {
        let claims = column::<Json<JsonObject>>(row, "claims")?.0;
        read!(row, LinkedIdentity { issuer, upstream_subject, sub, provider, linked_at; claims })
    })
}

/// An identity elsewhere, and whose it is or shall be.
pub struct Link<'a> {
    pub issuer: &'a str,
    pub upstream_subject: &'a str,
    pub sub: &'a Subject,
    /// The identity provider that stands for it, where one does.
    pub provider: Option<&'a str>,
}

#[derive(Debug, PartialEq)]
pub enum Linked {
    Added,
    /// It belongs to this user, who may be the same.
    Taken(Subject),
    /// The session is over, or the identity was unlinked meanwhile.
    Nothing,
}

const LINK: &str = "
WITH {own session}, owner AS MATERIALIZED (
    SELECT FROM users u WHERE u.sub = :sub::text AND {may act} AND u.epoch = :user_epoch::int8
    FOR SHARE
), added AS (
    INSERT INTO linked_identities (issuer, upstream_subject, sub, provider)
    SELECT :issuer::text, :upstream_subject::text, :sub::text, coalesce(:provider::text, (
        SELECT e.name FROM catalogue_entries e
        WHERE e.kind = 'identity_provider'
          AND :issuer::text = coalesce(e.document ->> 'issuer', e.document ->> 'userinfo_endpoint')
        LIMIT 1))
    WHERE :sid::text IS NULL OR EXISTS (SELECT FROM own, owner)
    ON CONFLICT (issuer, upstream_subject) DO NOTHING RETURNING sub
), {audited added} FROM added";

const OWNER: &str = "
SELECT sub FROM linked_identities
WHERE issuer = :issuer::text AND upstream_subject = :upstream_subject::text";

/// The statements that a store and a change of the registry both run.
impl Link<'_> {
    fn insertion<T>(&self, session: Option<&Session>, run: impl FnOnce(Bound<'_>) -> T) -> T {
        run(bind!(
            LINK,
            ..self {
                issuer,
                upstream_subject,
                sub,
                provider
            },
            day = session.map(|session| session.day),
            sid = session.map(|session| &session.sid),
            user_epoch = session.map(|session| session.epochs.user)
        ))
    }

    fn sessions<T>(&self, run: impl FnOnce(Bound<'_>) -> T) -> T {
        run(bind!(
            SESSIONS_THROUGH,
            ..self {
                sub,
                upstream_subject,
                issuer
            }
        ))
    }

    fn removal<T>(&self, usable_issuers: Option<&[&str]>, run: impl FnOnce(Bound<'_>) -> T) -> T {
        run(bind!(
            UNLINK,
            ..self {
                sub,
                issuer,
                upstream_subject
            },
            usable_issuers
        ))
    }
}

/// Links an identity to a user. One that is somebody's stays theirs.
pub fn link(
    store: &Store,
    new: &Link<'_>,
    session: Option<&Session>,
    audit: &AuditEvent<'_>,
) -> Result<Linked> {
    if new.insertion(session, |bound| store.change(bound, audit))? {
        return Ok(Linked::Added);
    }
    let owner = bind!(
        OWNER,
        ..new {
            issuer,
            upstream_subject
        }
    );
    let taken = store.find(owner, |row| column(row, "sub"))?;
    store.confirm()?;
    Ok(taken.map_or(Linked::Nothing, Linked::Taken))
}

const PROVISION: &str = "
WITH added AS (
    INSERT INTO users (sub, tenant, claims)
    VALUES (:sub::text, :tenant::text, :claims::jsonb)
    RETURNING sub, epoch
), linked AS (
    INSERT INTO linked_identities (issuer, upstream_subject, sub, provider, claims)
    SELECT :issuer::text, :upstream_subject::text, added.sub, :provider::text, :said::jsonb
    FROM added
), {audited added}, added.epoch, i.epoch AS installation_epoch
FROM added CROSS JOIN installation i";

/// Adds a user without user name and password, whom only an identity provider knows, and the link
/// to who they are there, with what the provider `said`; answers the epochs for their session.
/// `Taken`, and nothing added, when that identity is somebody's already.
pub fn provision(
    store: &Store,
    link: &Link<'_>,
    tenant: Option<&TenantName>,
    said: &JsonObject,
    claims: &JsonObject,
    audit: &AuditEvent<'_>,
) -> Result<SessionEpochs> {
    let bound = bind!(
        PROVISION,
        ..link {
            sub,
            issuer,
            upstream_subject,
            provider
        },
        tenant = tenant_text(tenant),
        said = Json(said),
        claims = Json(claims)
    );
    let added = store.write_audited(bound, audit)?;
    let added = added
        .first()
        .ok_or_else(|| StoreError::Taken(String::from("users_pkey")))?;
    Ok(SessionEpochs {
        installation: column(added, "installation_epoch")?,
        user: column(added, "epoch")?,
    })
}

// What becomes of the user was judged from the row that was read: nothing happens to any other. The
// user is locked before the identity, as by all that write both.
const UPDATE_CLAIMS: &str = "
WITH as_read AS MATERIALIZED (
    SELECT u.sub, u.claims FROM users u
    WHERE u.sub = :sub::text AND u.xmin::text = :version::text
    FOR NO KEY UPDATE
), noted AS (
    UPDATE linked_identities l
    SET claims = :said::jsonb,
        verified_email = CASE
            WHEN (as_read.claims -> 'email', as_read.claims -> 'email_verified')
                 IS DISTINCT FROM (:claims::jsonb -> 'email', :claims::jsonb -> 'email_verified')
            THEN CASE WHEN :said::jsonb -> 'email_verified' = 'true'
                      THEN :said::jsonb ->> 'email' ELSE '' END
            ELSE coalesce(l.verified_email,
                          CASE WHEN l.claims -> 'email_verified' = 'true'
                               THEN l.claims ->> 'email' END, '') END
    FROM as_read
    WHERE l.issuer = :issuer::text AND l.upstream_subject = :upstream_subject::text
      AND l.sub = as_read.sub
    RETURNING l.sub
), changed AS (
    UPDATE users u SET claims = :claims::jsonb, updated_at = clock_timestamp()
    FROM noted WHERE u.sub = noted.sub RETURNING u.sub
), {audited changed} FROM changed";

/// Gives a user the claims that they have after an identity provider said something anew. All that
/// it said is remembered, and which address it made a verified one. `Conflict`, and nothing
/// changed, once the user is no longer of that version, or the identity no longer theirs.
pub fn update_claims(
    store: &Store,
    link: &Link<'_>,
    version: &str,
    said: &JsonObject,
    claims: &JsonObject,
    audit: &AuditEvent<'_>,
) -> Result {
    let bound = bind!(
        UPDATE_CLAIMS,
        ..link {
            sub,
            issuer,
            upstream_subject
        },
        version,
        said = Json(said),
        claims = Json(claims)
    );
    if store.change(bound, audit)? {
        Ok(())
    } else {
        Err(StoreError::Conflict(String::from(
            "the user was changed meanwhile",
        )))
    }
}

impl RegistryWriter<'_> {
    /// As [`link`]; `Taken` where it is somebody's.
    pub fn link(&mut self, new: &Link<'_>, audit: &AuditEvent<'_>) -> Result {
        let added = new.insertion(None, |bound| self.audited(bound, slice::from_ref(audit)))?;
        if added.is_empty() {
            return Err(StoreError::Taken(String::from("linked_identities_pkey")));
        }
        Ok(())
    }

    /// As [`unlink`] by the operator. What begins through it until this change is done,
    /// `stray_sessions` of `registrar/statements/identities.rs` finds.
    pub fn unlink(&mut self, link: &Link<'_>, audit: &AuditEvent<'_>) -> Result {
        let through: Vec<Sid> =
            link.sessions(|bound| self.reader.list(bound, |row| column(row, "sid")))?;
        let events = with_endings(audit, &through);
        link.removal(None, |bound| self.audited(bound, &events))
            .map(drop)
    }
}

#[derive(Debug, PartialEq)]
pub enum Unlinked {
    Done,
    NotTheirs,
    /// Without it the user could not sign in any more.
    LastWayIn,
}

const SESSIONS_THROUGH: &str = "
SELECT sid FROM sessions
WHERE sub = :sub::text AND upstream_subject = :upstream_subject::text
  AND upstream_issuer = :issuer::text
  AND ended_at IS NULL AND expires_at > clock_timestamp()
ORDER BY day, sid";

/// Sessions that came from it and have not ended: for the events that tell of their end.
fn sessions_through(store: &Store, link: &Link<'_>) -> Result<Vec<Sid>> {
    link.sessions(|bound| store.list(bound, |row| column(row, "sid")))
}

// The user and all their identities are locked, in one order, and what they say is read as it is
// then: of two that are unlinked at once, the second sees that the first is gone. What only this
// identity said of the user is taken back, unless somebody here has changed it since. That an
// address is verified was said of the address that came with it, and of no other. An address that
// this identity made a verified one stays where another one says the same: it is verified by the
// word of that one alone from then on.
const UNLINK: &str = "
WITH own AS MATERIALIZED (
    SELECT l.issuer, l.upstream_subject, l.claims, u.claims AS present,
           coalesce(l.verified_email,
                    CASE WHEN l.claims -> 'email_verified' = 'true'
                         THEN l.claims ->> 'email' END) AS verified_email
    FROM users u JOIN linked_identities l ON l.sub = u.sub
    WHERE u.sub = :sub::text
    ORDER BY l.issuer, l.upstream_subject
    FOR NO KEY UPDATE OF u FOR UPDATE OF l
), other AS (
    SELECT own.* FROM own
    WHERE (own.issuer, own.upstream_subject) <> (:issuer::text, :upstream_subject::text)
), removed AS (
    DELETE FROM linked_identities l USING own
    WHERE l.issuer = own.issuer AND l.upstream_subject = own.upstream_subject
      AND own.issuer = :issuer::text AND own.upstream_subject = :upstream_subject::text
      AND (:usable_issuers::text[] IS NULL
           OR EXISTS (SELECT FROM users u
                      WHERE u.sub = :sub::text
                        AND (u.password_hash IS NOT NULL OR u.strongest_acr = 'phr'))
           OR EXISTS (SELECT FROM other WHERE other.issuer = ANY (:usable_issuers::text[])))
    RETURNING l.sub, own.claims, own.present, own.verified_email
), unsaid AS (
    SELECT removed.sub, array_agg(said.key) AS names
    FROM removed CROSS JOIN jsonb_each(removed.claims) AS said
    CROSS JOIN LATERAL regexp_replace(said.key, '_verified$', '') AS about
    WHERE removed.present -> said.key = said.value
      AND removed.present -> about IS NOT DISTINCT FROM removed.claims -> about
      AND NOT EXISTS (SELECT FROM other
                      WHERE other.claims -> said.key = said.value
                        AND other.claims -> about IS NOT DISTINCT FROM removed.claims -> about)
    GROUP BY removed.sub
), changed AS (
    UPDATE users u SET claims = u.claims - unsaid.names
        - CASE WHEN 'email' = ANY (unsaid.names) THEN '{email_verified}'::text[] ELSE '{}' END
        - CASE WHEN 'phone_number' = ANY (unsaid.names)
               THEN '{phone_number_verified}'::text[] ELSE '{}' END,
        updated_at = clock_timestamp() FROM unsaid WHERE u.sub = unsaid.sub
), handed_on AS (
    UPDATE linked_identities l SET verified_email = removed.verified_email
    FROM removed JOIN other ON other.claims -> 'email_verified' = 'true'
                           AND other.claims ->> 'email' = removed.verified_email
    WHERE l.issuer = other.issuer AND l.upstream_subject = other.upstream_subject
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM removed
    WHERE s.sub = removed.sub AND s.upstream_subject = :upstream_subject::text
      AND s.upstream_issuer = :issuer::text
      AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
    RETURNING s.day, s.sid
), {called}, {audited removed} FROM removed";

/// Unlinks an identity, takes back what it alone said of the user, and ends the sessions that came
/// from it, with an event for each, their clients called. A password, a passkey, or an identity of
/// one of
/// `usable_issuers`, must be left to sign in with; `None` leaves that to the operator.
pub fn unlink(
    store: &Store,
    link: &Link<'_>,
    usable_issuers: Option<&[&str]>,
    audit: &AuditEvent<'_>,
) -> Result<Unlinked> {
    let through = sessions_through(store, link)?;
    let events = with_endings(audit, &through);
    let removed = link.removal(usable_issuers, |bound| {
        store.write_all_audited(bound, &events)
    })?;
    let is_it = |own: &LinkedIdentity| {
        own.issuer == link.issuer && own.upstream_subject == link.upstream_subject
    };
    if removed.is_empty() && of_user(store, link.sub)?.iter().any(is_it) {
        return Ok(Unlinked::LastWayIn);
    }
    call_late(store, &through);
    end_begun_meanwhile(store, link, audit)?;
    if !removed.is_empty() {
        return Ok(Unlinked::Done);
    }
    store.confirm()?;
    Ok(Unlinked::NotTheirs)
}

/// Ends what began through it while it was unlinked, which the statement could not see yet: now
/// that the link is gone nothing more can begin. Also for who asks once more after that failed.
fn end_begun_meanwhile(store: &Store, link: &Link<'_>, audit: &AuditEvent<'_>) -> Result {
    for sid in sessions_through(store, link)? {
        let event = AuditEvent {
            sid: Some(&sid),
            ..audit.as_event("session_ended")
        };
        if let Some(day) = sid.day() {
            sessions::end(store, day, &sid, &event)?;
        }
    }
    Ok(())
}
