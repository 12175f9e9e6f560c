//! What an access token stands on, in one indexed read; `revoked_tokens`: revoked tokens by `jti`,
//! until they would have expired; and `used_assertions`: assertions that are good once, by signer
//! and a hash of their `jti`, until they expire. For a logout token its subject is kept as well,
//! and for a sign-in upstream its round trip.

use std::slice;

use postgres::Row;
use sha2::{Digest, Sha256};

use super::Store;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::users::{UserRow, user};
use super::values::{Values, column};
use crate::protocol::token::access_token::{AccessToken, StandsOn};
use crate::protocol::token::liveness::{GrantFacts, LivenessFacts, SessionFacts};
use crate::protocol::words::epochs::Epochs;
use crate::protocol::words::identifiers::Sid;
use crate::protocol::words::instant::{Day, Instant};
use crate::protocol::words::session::User;

/// The rows that a token names. An absent row is `None`, and makes the token dead. The core judges
/// whether it is alive.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenStanding {
    pub facts: LivenessFacts,
    /// With the claims that userinfo answers from.
    pub user: Option<User>,
}

const FIND: &str = "
SELECT r.jti IS NOT NULL AS revoked, coalesce(c.enabled, false) AS client_enabled,
       i.epoch AS installation_epoch, coalesce(c.epoch, 0) AS client_epoch, coalesce(u.epoch, 0) AS user_epoch,
       coalesce(k.epoch, 0) AS consent_epoch,
       g.offline, g.revoked_at, g.expires_at, g.installation_epoch AS of_installation, g.client_epoch AS of_client,
       g.user_epoch AS of_user, g.consent_epoch AS of_consent,
       s.sid, s.ended_at,
       {user}
FROM installation i
LEFT JOIN revoked_tokens r ON r.day = $1::int4 AND r.jti = $2::bytea
LEFT JOIN clients c ON c.client_id = $3::text
LEFT JOIN users u ON u.sub = $4::text
LEFT JOIN grants g ON g.day = $5::int4 AND g.id = $6::bytea AND g.client_id = $3::text AND g.sub = $4::text
LEFT JOIN sessions s ON s.day = $7::int4 AND s.sid = $8::text AND s.sub = $4::text
LEFT JOIN consents k ON k.sub = $4::text AND k.client_id = $3::text";

/// The same of a client's own token, which has neither user nor grant: Postgres takes half the time
/// without their partitions.
const FIND_OF_CLIENT: &str = "
SELECT r.jti IS NOT NULL AS revoked, coalesce(c.enabled, false) AS client_enabled,
       i.epoch AS installation_epoch, coalesce(c.epoch, 0) AS client_epoch, 0::int8 AS user_epoch, 0::int8 AS consent_epoch,
       NULL::bool AS offline, NULL::text AS sid, NULL::text AS sub
FROM installation i
LEFT JOIN revoked_tokens r ON r.day = $1::int4 AND r.jti = $2::bytea
LEFT JOIN clients c ON c.client_id = $3::text";

/// Reads what a token stands on. A grant of another client or user, or a session of another user,
/// counts as absent.
pub fn find(store: &Store, token: &AccessToken) -> Result<TokenStanding, StoreError> {
    let (jti, user) = (token.jti.encode(), token.user.as_ref());
    let grant = match token.jti.stands_on {
        StandsOn::Grant(grant) => Some(grant),
        StandsOn::User(_) | StandsOn::Client { .. } => None,
    };
    let (sub, sid) = (
        user.map(|user| &user.subject),
        user.and_then(|user| user.sid.as_ref()),
    );
    let (day, random) = (
        grant.map(|grant| grant.day),
        grant.as_ref().map(|grant| &grant.random[..]),
    );
    let (expires_on, session_day) = (token.expires_at.day(), sid.and_then(Sid::day));
    let values: Values<'_> = &[
        &expires_on,
        &jti,
        &token.client_id,
        &sub,
        &day,
        &random,
        &session_day,
        &sid,
    ];
    let of_client = if user.is_none() && grant.is_none() {
        values.get(..3)
    } else {
        None
    };
    let row = of_client.map_or_else(
        || store.one(FIND, values),
        |values| store.one(FIND_OF_CLIENT, values),
    )?;
    standing(&row)
}

fn standing(row: &Row) -> Result<TokenStanding, StoreError> {
    let is_there = |name| Ok::<_, StoreError>(column::<Option<&str>>(row, name)?.is_some());
    let is_past = |name| Ok::<_, StoreError>(column::<Option<Instant>>(row, name)?.is_some());
    let epochs = |installation, client, user, consent| {
        let epoch = |name| column(row, name);
        let (installation, client) = (epoch(installation)?, epoch(client)?);
        Ok::<_, StoreError>(Epochs {
            installation,
            client,
            user: epoch(user)?,
            consent: epoch(consent)?,
        })
    };
    let grant = match column(row, "offline")? {
        Some(offline) => Some(GrantFacts {
            revoked: is_past("revoked_at")?,
            offline,
            expires_at: column(row, "expires_at")?,
            epochs: epochs("of_installation", "of_client", "of_user", "of_consent")?,
        }),
        None => None,
    };
    let facts = LivenessFacts {
        token_revoked: column(row, "revoked")?,
        grant,
        session: if is_there("sid")? {
            Some(SessionFacts {
                ended: is_past("ended_at")?,
            })
        } else {
            None
        },
        client_enabled: column(row, "client_enabled")?,
        epochs: epochs(
            "installation_epoch",
            "client_epoch",
            "user_epoch",
            "consent_epoch",
        )?,
    };
    Ok(TokenStanding {
        facts,
        user: is_there("sub")?
            .then(|| user(row).map(UserRow::into_core))
            .transpose()?,
    })
}

const REVOKE: &str = "
WITH revoked AS (
    INSERT INTO revoked_tokens (day, jti) VALUES ($1::int4, $2::bytea) ON CONFLICT (day, jti) DO NOTHING RETURNING day
), {audited revoked $3}, EXISTS (SELECT FROM revoked) AS ended";

/// Records a revocation under the day of the token's own expiry. Doing it twice is doing it once.
pub fn revoke(
    store: &Store,
    day: Day,
    jti: &[u8],
    audit: &AuditEvent<'_>,
) -> Result<(), StoreError> {
    store
        .end(Some(jti), REVOKE, &[&day, &jti], slice::from_ref(audit))
        .map(drop)
}

const TAKE: &str = "
INSERT INTO used_assertions (day, issuer, jti_hash) VALUES ($1::int4, $2::text, $3::bytea)
ON CONFLICT (day, issuer, jti_hash) DO NOTHING";

/// Takes an assertion: `false` when it was taken before, by whichever process.
pub fn take_assertion(
    store: &Store,
    issuer: &str,
    jti: &str,
    forgotten_at: Instant,
) -> Result<bool, StoreError> {
    let (day, jti_hash) = assertion_key(jti, forgotten_at);
    store
        .execute(TAKE, &[&day, &issuer, &jti_hash])
        .map(|rows| rows == 1)
}

/// The day that an assertion lies under, and the hash of its `jti`.
pub(super) fn assertion_key(jti: &str, forgotten_at: Instant) -> (Day, Vec<u8>) {
    (forgotten_at.day(), Sha256::digest(jti.as_bytes()).to_vec())
}

/// What a logout token leaves beside its `jti`: whom it was about, the session or the subject or
/// both.
pub(super) fn about(sid: Option<&str>, subject: Option<&str>) -> Vec<u8> {
    let whom = serde_json::json!({"logout": [sid, subject]});
    Sha256::digest(whom.to_string().as_bytes()).to_vec()
}
