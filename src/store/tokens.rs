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
use super::users::{UserRow, user_if_there};
use super::values::{column, epochs};
use crate::Result;
use gatepost_protocol::token::access_token::{AccessToken, StandsOn};
use gatepost_protocol::token::liveness::{GrantFacts, LivenessFacts, SessionFacts};
use gatepost_protocol::words::epochs::Epochs;
use gatepost_protocol::words::identifiers::Sid;
use gatepost_protocol::words::instant::{Day, Instant};
use gatepost_protocol::words::session::User;

/// The rows that a token names. An absent row is `None`, and makes the token dead. The core judges
/// whether it is alive.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenStanding {
    pub facts: LivenessFacts,
    /// With the claims that userinfo answers from.
    pub user: Option<User>,
}

/// A session is looked up by its keys alone, and `IS TRUE` keeps its user out of that: by the user
/// Postgres might read all of their sessions.
const FIND: &str = "
SELECT r.jti IS NOT NULL AS revoked, coalesce(c.enabled, false) AS client_enabled,
       i.epoch AS installation_epoch, coalesce(c.epoch, 0) AS client_epoch,
       coalesce(u.epoch, 0) AS user_epoch, coalesce(k.epoch, 0) AS consent_epoch,
       g.offline, g.revoked_at, g.expires_at, g.installation_epoch AS of_installation,
       g.client_epoch AS of_client, g.user_epoch AS of_user, g.consent_epoch AS of_consent,
       k.expires_at AS consent_expires_at,
       s.sid, s.ended_at, s.expires_at AS session_expires_at,
       {user}
FROM installation i
LEFT JOIN revoked_tokens r ON r.day = :expires_on::int4 AND r.jti = :jti::bytea
LEFT JOIN clients c ON c.client_id = :client_id::text
LEFT JOIN users u ON u.sub = :sub::text
LEFT JOIN grants g
  ON g.day = :grant_day::int4 AND g.id = :grant_id::bytea
     AND g.client_id = :client_id::text AND g.sub = :sub::text
LEFT JOIN sessions s
  ON s.day = :session_day::int4 AND s.sid = :sid::text AND (s.sub = :sub::text) IS TRUE
LEFT JOIN consents k ON k.sub = :sub::text AND k.client_id = :client_id::text";

/// The same of a client's own token, which has neither user nor grant: Postgres takes half the time
/// without their partitions.
const FIND_OF_CLIENT: &str = "
SELECT r.jti IS NOT NULL OR l.jti IS NOT NULL AS revoked,
       coalesce(c.enabled, false) AS client_enabled,
       i.epoch AS installation_epoch, coalesce(c.epoch, 0) AS client_epoch,
       0::int8 AS user_epoch, 0::int8 AS consent_epoch,
       NULL::timestamptz AS consent_expires_at, NULL::bool AS offline,
       NULL::text AS sid, NULL::text AS sub
FROM installation i
LEFT JOIN revoked_tokens r ON r.day = :expires_on::int4 AND r.jti = :jti::bytea
LEFT JOIN revoked_lasting_tokens l ON l.jti = :jti::bytea
LEFT JOIN clients c ON c.client_id = :client_id::text";

/// Reads what a token stands on. A grant of another client or user, or a session of another user,
/// counts as absent.
pub fn find(store: &Store, token: &AccessToken) -> Result<TokenStanding> {
    let jti = token.jti.encode();
    let expires_on = token.expires_at.day();
    let user = token.user.as_ref();
    let grant = match token.jti.stands_on {
        StandsOn::Grant(grant) => Some(grant),
        StandsOn::User(_) | StandsOn::Client { .. } => None,
    };
    if user.is_none() && grant.is_none() {
        let client_id = &token.client_id;
        return standing(&store.one(bind!(FIND_OF_CLIENT, expires_on, jti, client_id))?);
    }
    let sid = user.and_then(|user| user.sid.as_ref());
    let bound = bind!(
        FIND,
        expires_on,
        jti,
        client_id = token.client_id,
        sub = user.map(|user| &user.subject),
        grant_day = grant.map(|grant| grant.day),
        grant_id = grant.as_ref().map(|grant| &grant.random[..]),
        session_day = sid.and_then(Sid::day),
        sid,
    );
    standing(&store.one(bound)?)
}

fn standing(row: &Row) -> Result<TokenStanding> {
    let sid: Option<&str> = column(row, "sid")?;
    let facts = LivenessFacts {
        token_revoked: column(row, "revoked")?,
        grant: grant_facts(row)?,
        session: if sid.is_some() {
            Some(SessionFacts {
                ended: has_time(row, "ended_at")?,
                expires_at: column(row, "session_expires_at")?,
            })
        } else {
            None
        },
        client_enabled: column(row, "client_enabled")?,
        epochs: epochs(row)?,
        consent_expires_at: column(row, "consent_expires_at")?,
    };
    Ok(TokenStanding {
        facts,
        user: user_if_there(row)?.map(UserRow::into_core),
    })
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

/// Records a revocation under the day of the token's own expiry. Doing it twice is doing it once.
pub fn revoke(store: &Store, day: Day, jti: &[u8], audit: &AuditEvent<'_>) -> Result {
    let bound = bind!(REVOKE, day, jti);
    store
        .end(Some(jti), bound, slice::from_ref(audit))
        .map(drop)
}

const REVOKE_LASTING: &str = "
WITH revoked AS (
    INSERT INTO revoked_lasting_tokens (day, jti) VALUES (:day::int4, :jti::bytea)
    ON CONFLICT (jti) DO NOTHING
    RETURNING day
), {audited revoked}, EXISTS (SELECT FROM revoked) AS ended";

/// The same of a client's own token that lives longer than `revoked_tokens` has room for.
pub fn revoke_lasting(store: &Store, day: Day, jti: &[u8], audit: &AuditEvent<'_>) -> Result {
    let bound = bind!(REVOKE_LASTING, day, jti);
    store
        .end(Some(jti), bound, slice::from_ref(audit))
        .map(drop)
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
