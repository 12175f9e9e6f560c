//! What an access token stands on, in one indexed read: its own revocation, its grant, session, user, client, consent
//! and installation. The answer is facts; whether the token is alive is for the core to judge.

use postgres::Row;

use super::Store;
use super::error::StoreError;
use super::users::{UserRow, user};
use super::values::column;
use crate::protocol::token::access_token::{AccessToken, StandsOn};
use crate::protocol::words::epochs::Epochs;
use crate::protocol::words::identifiers::Sid;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::liveness::{GrantFacts, LivenessFacts, SessionFacts};

/// What was found. An absent row is `None`: what a token names and is not there makes it dead.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenStanding {
    /// For the core to judge.
    pub facts: LivenessFacts,
    /// The user, with the claims that userinfo answers from.
    pub user: Option<UserRow>,
}

const FIND: &str = "
SELECT r.jti IS NOT NULL AS revoked, coalesce(c.enabled, false) AS client_enabled,
       i.epoch AS installation_epoch, coalesce(c.epoch, 0) AS client_epoch, coalesce(u.epoch, 0) AS user_epoch,
       coalesce(k.epoch, 0) AS consent_epoch,
       g.offline, g.revoked_at, g.expires_at, g.installation_epoch AS of_installation, g.client_epoch AS of_client,
       g.user_epoch AS of_user, g.consent_epoch AS of_consent,
       s.sid, s.ended_at,
       u.sub, u.username, u.tenant, u.password_hash, u.enabled, u.claims, u.epoch
FROM installation i
LEFT JOIN revoked_tokens r ON r.day = $1::int4 AND r.jti = $2::bytea
LEFT JOIN clients c ON c.client_id = $3::text
LEFT JOIN users u ON u.sub = $4::text
LEFT JOIN grants g ON g.day = $5::int4 AND g.id = $6::bytea AND g.client_id = $3::text AND g.sub = $4::text
LEFT JOIN sessions s ON s.day = $7::int4 AND s.sid = $8::text AND s.sub = $4::text
LEFT JOIN consents k ON k.sub = $4::text AND k.client_id = $3::text";

/// Reads what a token stands on. A grant of another client or user, or a session of another user, counts as absent.
pub fn find(store: &Store, token: &AccessToken) -> Result<TokenStanding, StoreError> {
    let (jti, user) = (token.jti.encode(), token.user.as_ref());
    let grant = match token.jti.stands_on {
        StandsOn::Grant(grant) => Some(grant),
        StandsOn::User(_) | StandsOn::Client { .. } => None,
    };
    let sid = user.and_then(|user| user.sid.as_ref());
    let row = store.read(|connection| {
        connection.query_one(
            FIND,
            &[
                &token.expires_at.day(),
                &jti,
                &token.client_id.as_str(),
                &user.map(|user| user.subject.as_str()),
                &grant.map(|grant| grant.day),
                &grant.as_ref().map(|grant| &grant.random[..]),
                &sid.and_then(Sid::day),
                &sid.map(Sid::as_str),
            ],
        )
    })?;
    standing(&row)
}

fn standing(row: &Row) -> Result<TokenStanding, StoreError> {
    let has_user = column::<Option<&str>>(row, "sub")?.is_some();
    let facts = LivenessFacts {
        token_revoked: column(row, "revoked")?,
        grant: grant(row)?,
        session: session(row)?,
        client_enabled: column(row, "client_enabled")?,
        epochs: epochs(row, ["installation_epoch", "client_epoch", "user_epoch", "consent_epoch"])?,
    };
    Ok(TokenStanding { facts, user: has_user.then(|| user(row)).transpose()? })
}

fn session(row: &Row) -> Result<Option<SessionFacts>, StoreError> {
    let present = column::<Option<&str>>(row, "sid")?.is_some();
    let ended = column::<Option<Instant>>(row, "ended_at")?.is_some();
    Ok(present.then_some(SessionFacts { ended }))
}

fn grant(row: &Row) -> Result<Option<GrantFacts>, StoreError> {
    let Some(offline) = column(row, "offline")? else { return Ok(None) };
    let revoked = column::<Option<Instant>>(row, "revoked_at")?.is_some();
    let epochs = epochs(row, ["of_installation", "of_client", "of_user", "of_consent"])?;
    Ok(Some(GrantFacts { revoked, offline, expires_at: column(row, "expires_at")?, epochs }))
}

fn epochs(row: &Row, [installation, client, user, consent]: [&'static str; 4]) -> Result<Epochs, StoreError> {
    Ok(Epochs {
        installation: column(row, installation)?,
        client: column(row, client)?,
        user: column(row, user)?,
        consent: column(row, consent)?,
    })
}
