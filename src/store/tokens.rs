//! What an access token stands on, in one indexed read; `revoked_tokens`: revoked tokens by `jti`,
//! until they would have expired; `revoked_lasting_tokens`, the same of tokens that live longer
//! than others; and `used_assertions`: assertions that are good once, by signer and a hash of their
//! `jti`, until they expire. For a logout token its subject is kept as well, and for a sign-in
//! upstream its round trip.

use std::slice;

use postgres::Row;
use sha2::{Digest, Sha256};

use super::Store;
use super::audit_event::AuditEvent;
use super::statement::bind;
use super::users::{if_there, person};
use super::values::column;
use crate::Result;
use gatepost_protocol::token::access_token::{AccessToken, StandsOn};
use gatepost_protocol::token::liveness::{GrantFacts, LivenessFacts, SessionFacts};
use gatepost_protocol::words::epochs::Epochs;
use gatepost_protocol::words::identifiers::Sid;
use gatepost_protocol::words::instant::{Day, Instant};
use gatepost_protocol::words::scope::OFFLINE_ACCESS;
use gatepost_protocol::words::session::User;

/// The rows that a token names. An absent row is `None`, and makes the token dead. The core judges
/// whether it is alive.
pub struct TokenStanding {
    pub facts: LivenessFacts,
    /// With the claims that userinfo answers from.
    pub user: Option<User>,
}

/// A session is looked up by its keys alone, and `IS TRUE` keeps its user out of that: by the user
/// Postgres might read all of their sessions.
const FIND: &str = "
SELECT {standing}, s.sid, s.ended_at, s.expires_at AS session_expires_at
FROM {standing of user}
LEFT JOIN sessions s
  ON s.day = :session_day::int4 AND {partition of s}
     AND s.sid = :sid::text AND (s.sub = :sub::text) IS TRUE";

/// The same of a token whose scope has `offline_access`: its grant outlives the session.
const FIND_OFFLINE: &str = "SELECT {standing} FROM {standing of user}";

/// The same of a client's own token, which has neither user nor grant.
const FIND_OF_CLIENT: &str = "
SELECT r.jti IS NOT NULL OR l.jti IS NOT NULL AS revoked, c.enabled AS client_enabled,
       i.epoch AS installation_epoch, c.epoch AS client_epoch
FROM installation i
LEFT JOIN revoked_tokens r
  ON r.day = :expires_on::int4 AND {partition of r} AND r.jti = :jti::bytea
LEFT JOIN revoked_lasting_tokens l ON l.jti = :jti::bytea
LEFT JOIN clients c ON c.client_id = :client_id::text";

/// Reads what a token stands on. A grant of another client or user, or a session of another user,
/// counts as absent. So does the session of a token with `offline_access`.
pub fn find(store: &Store, token: &AccessToken) -> Result<TokenStanding> {
    let jti = token.jti.encode();
    let expires_on = token.expires_at.day();
    let client_id = &token.client_id;
    let user = token.user.as_ref();
    let grant = match token.jti.stands_on {
        StandsOn::Grant(grant) => Some(grant),
        StandsOn::User(_) | StandsOn::Client { .. } => None,
    };
    let revoked_tokens = store.partition("revoked_tokens", "r", Some(expires_on));
    if user.is_none() && grant.is_none() {
        let mut bound = bind!(FIND_OF_CLIENT, expires_on, jti, client_id);
        bound.partitions = [revoked_tokens, None, None];
        let facts = facts_of_client(&store.one(bound)?)?;
        return Ok(TokenStanding { facts, user: None });
    }
    let sub = user.map(|user| &user.subject);
    let grant_day = grant.map(|grant| grant.day);
    let grant_id = grant.as_ref().map(|grant| &grant.random[..]);
    let sid = user.and_then(|user| user.sid.as_ref());
    let session_day = sid.and_then(Sid::day);
    let offline = bind!(
        FIND_OFFLINE,
        expires_on,
        jti,
        client_id,
        sub,
        grant_day,
        grant_id
    );
    let in_session = bind!(
        FIND,
        expires_on,
        jti,
        client_id,
        sub,
        grant_day,
        grant_id,
        session_day,
        sid
    );
    let is_offline = token.scope.contains(OFFLINE_ACCESS) && token.delegation.is_none();
    let is_offline = is_offline && grant.is_some();
    let mut bound = if is_offline { offline } else { in_session };
    bound.partitions = [
        revoked_tokens,
        store.partition("grants", "g", grant_day),
        store.partition("sessions", "s", session_day.filter(|_| !is_offline)),
    ];
    let row = store.one(bound)?;
    let mut facts = facts_of_client(&row)?;
    let user = if_there(&row, person)?;
    facts.epochs.user = user.as_ref().map_or(0, |user| user.epoch);
    facts.epochs.consent = epoch(&row, "consent_epoch")?;
    facts.consent_expires_at = column(&row, "consent_expires_at")?;
    facts.grant = grant_facts(&row)?;
    if !is_offline {
        facts.session = session_facts(&row)?;
    }
    Ok(TokenStanding { facts, user })
}

/// What of it does not stand on a user.
fn facts_of_client(row: &Row) -> Result<LivenessFacts> {
    Ok(LivenessFacts {
        token_revoked: column(row, "revoked")?,
        grant: None,
        session: None,
        client_enabled: column::<Option<bool>>(row, "client_enabled")? == Some(true),
        epochs: Epochs {
            installation: column(row, "installation_epoch")?,
            client: epoch(row, "client_epoch")?,
            user: 0,
            consent: 0,
        },
        consent_expires_at: None,
    })
}

/// That of a row which is not there is 0.
fn epoch(row: &Row, name: &'static str) -> Result<i64> {
    Ok(column::<Option<i64>>(row, name)?.unwrap_or_default())
}

fn session_facts(row: &Row) -> Result<Option<SessionFacts>> {
    if column::<Option<&str>>(row, "sid")?.is_none() {
        return Ok(None);
    }
    Ok(Some(SessionFacts {
        ended: has_time(row, "ended_at")?,
        expires_at: column(row, "session_expires_at")?,
    }))
}

fn grant_facts(row: &Row) -> Result<Option<GrantFacts>> {
    let Some(offline) = column(row, "offline")? else {
        return Ok(None);
    };
    Ok(Some(GrantFacts {
        revoked: has_time(row, "revoked_at")?,
        offline,
        expires_at: column(row, "expires_at")?,
        epochs: Epochs {
            installation: column(row, "of_installation")?,
            client: column(row, "of_client")?,
            user: column(row, "of_user")?,
            consent: column(row, "of_consent")?,
        },
    }))
}

fn has_time(row: &Row, name: &'static str) -> Result<bool> {
    Ok(column::<Option<Instant>>(row, name)?.is_some())
}

const REVOKE: &str = "
WITH revoked AS (
    INSERT INTO revoked_tokens (day, jti) VALUES (:day::int4, :jti::bytea)
    ON CONFLICT (day, jti) DO NOTHING
    RETURNING day
), {audited revoked}, EXISTS (SELECT FROM revoked) AS ended";

/// Records a revocation under the day of the token's own expiry. Doing it twice is doing it once:
/// then it answers `false`.
pub fn revoke(store: &Store, day: Day, jti: &[u8], audit: &AuditEvent<'_>) -> Result<bool> {
    store.end(Some(jti), bind!(REVOKE, day, jti), slice::from_ref(audit))
}

const REVOKE_LASTING: &str = "
WITH revoked AS (
    INSERT INTO revoked_lasting_tokens (day, jti) VALUES (:day::int4, :jti::bytea)
    ON CONFLICT (jti) DO NOTHING
    RETURNING day
), {audited revoked}, EXISTS (SELECT FROM revoked) AS ended";

/// The same of a client's own token that lives longer than `revoked_tokens` has room for.
pub fn revoke_lasting(store: &Store, day: Day, jti: &[u8], audit: &AuditEvent<'_>) -> Result<bool> {
    store.end(
        Some(jti),
        bind!(REVOKE_LASTING, day, jti),
        slice::from_ref(audit),
    )
}

const FORGET_LASTING: &str = "DELETE FROM revoked_lasting_tokens WHERE day < :today::int4 - 1";

/// Forgets revocations of tokens that have expired.
pub fn forget_lasting(store: &Store, today: Day) -> Result<u64> {
    store.execute(bind!(FORGET_LASTING, today))
}

const TAKE: &str = "
INSERT INTO used_assertions (day, issuer, jti_hash)
VALUES (:day::int4, :issuer::text, :jti_hash::bytea)
ON CONFLICT (day, issuer, jti_hash) DO NOTHING";

/// Takes an assertion: `false` when it was taken before, by whichever process.
pub fn take_assertion(
    store: &Store,
    issuer: &str,
    jti: &str,
    forgotten_at: Instant,
) -> Result<bool> {
    let day = forgotten_at.day();
    let jti_hash = hash_of_jti(jti);
    let taken = store.execute(bind!(TAKE, day, issuer, jti_hash))?;
    Ok(taken == 1)
}

/// An assertion lies under the day on which it is forgotten, and the hash of its `jti`.
pub(super) fn hash_of_jti(jti: &str) -> Vec<u8> {
    Sha256::digest(jti.as_bytes()).to_vec()
}

/// What a logout token leaves beside its `jti`: whom it was about, the session or the subject or
/// both.
pub(super) fn about(sid: Option<&str>, subject: Option<&str>) -> Vec<u8> {
    let whom = serde_json::json!({"logout": [sid, subject]});
    Sha256::digest(whom.to_string().as_bytes()).to_vec()
}
