//! What an access token stands on, in one indexed read: its own revocation, its grant, session, user, client, consent
//! and installation. The answer is facts; whether the token is alive is for the core to judge.

use postgres::Row;

use super::error::StoreError;
use super::users::{UserRow, user};
use super::values::column;
use super::{NamedQuery, Store};
use crate::protocol::identifiers::{ClientId, GrantId, Sid, Subject};
use crate::protocol::instant::{Day, Instant};

/// The names in a token.
#[derive(Clone, Debug)]
pub struct TokenNames<'a> {
    /// The day of its expiry, under which its revocation would lie.
    pub day: Day,
    /// `jti`
    pub jti: &'a [u8],
    /// The client it was issued to.
    pub client_id: &'a ClientId,
    /// The user it stands for; `None` for a client's own token.
    pub sub: Option<&'a Subject>,
    /// The grant it came from.
    pub grant: Option<GrantId>,
    /// The session it came from, with the day of its row.
    pub session: Option<(Day, &'a Sid)>,
}

/// What was found. An absent row is `None`: what a token names and is not there makes it dead.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenStanding {
    /// Whether this very token was revoked.
    pub revoked: bool,
    /// The installation's mark.
    pub installation_tokens_valid_after: Instant,
    /// The client.
    pub client: Option<StandingClient>,
    /// The user, with the claims that userinfo answers from.
    pub user: Option<UserRow>,
    /// The grant.
    pub grant: Option<StandingGrant>,
    /// The session.
    pub session: Option<StandingSession>,
    /// The consent's mark, where user and client have ever had one.
    pub consent_revoked_before: Option<Instant>,
}

/// A client as a token's footing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandingClient {
    /// `enabled`
    pub enabled: bool,
    /// Tokens issued at or before are dead.
    pub tokens_valid_after: Instant,
}

/// A grant as a token's footing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandingGrant {
    /// Whether it outlives its session.
    pub offline: bool,
    /// When it was revoked.
    pub revoked_at: Option<Instant>,
    /// Its absolute end.
    pub expires_at: Instant,
}

/// A session as a token's footing. Its natural end does not matter here, only being ended does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandingSession {
    /// When somebody ended it.
    pub ended_at: Option<Instant>,
}

const FIND: &str = "
SELECT r.jti IS NOT NULL AS revoked, i.tokens_valid_after AS installation_valid_after,
       c.enabled AS client_enabled, c.tokens_valid_after AS client_valid_after,
       g.offline, g.revoked_at, g.expires_at,
       s.sid, s.ended_at, k.revoked_before,
       u.sub, u.username, u.tenant, u.password_hash, u.enabled, u.claims, u.tokens_valid_after
FROM installation i
LEFT JOIN revoked_tokens r ON r.day = $1::int4 AND r.jti = $2::bytea
LEFT JOIN clients c ON c.client_id = $3::text
LEFT JOIN users u ON u.sub = $4::text
LEFT JOIN grants g ON g.day = $5::int4 AND g.id = $6::bytea AND g.client_id = $3::text AND g.sub = $4::text
LEFT JOIN sessions s ON s.day = $7::int4 AND s.sid = $8::text AND s.sub = $4::text
LEFT JOIN consents k ON k.sub = $4::text AND k.client_id = $3::text";

/// Reads what a token stands on. A grant of another client or user, or a session of another user, counts as absent.
pub fn find(store: &Store, names: &TokenNames<'_>) -> Result<TokenStanding, StoreError> {
    let row = store.read(|connection| {
        connection.query_one(
            FIND,
            &[
                &names.day,
                &names.jti,
                &names.client_id.as_str(),
                &names.sub.map(Subject::as_str),
                &names.grant.map(|grant| grant.day),
                &names.grant.as_ref().map(|grant| &grant.random[..]),
                &names.session.map(|(day, _)| day),
                &names.session.map(|(_, sid)| sid.as_str()),
            ],
        )
    })?;
    standing(&row)
}

fn standing(row: &Row) -> Result<TokenStanding, StoreError> {
    let has_user = column::<Option<&str>>(row, "sub")?.is_some();
    Ok(TokenStanding {
        revoked: column(row, "revoked")?,
        installation_tokens_valid_after: column(row, "installation_valid_after")?,
        client: client(row)?,
        user: has_user.then(|| user(row)).transpose()?,
        grant: grant(row)?,
        session: session(row)?,
        consent_revoked_before: column(row, "revoked_before")?,
    })
}

fn client(row: &Row) -> Result<Option<StandingClient>, StoreError> {
    let Some(enabled) = column(row, "client_enabled")? else { return Ok(None) };
    Ok(Some(StandingClient { enabled, tokens_valid_after: column(row, "client_valid_after")? }))
}

fn session(row: &Row) -> Result<Option<StandingSession>, StoreError> {
    let present = column::<Option<&str>>(row, "sid")?.is_some();
    let ended_at = column(row, "ended_at")?;
    Ok(present.then_some(StandingSession { ended_at }))
}

fn grant(row: &Row) -> Result<Option<StandingGrant>, StoreError> {
    let Some(offline) = column(row, "offline")? else { return Ok(None) };
    Ok(Some(StandingGrant { offline, revoked_at: column(row, "revoked_at")?, expires_at: column(row, "expires_at")? }))
}

pub(super) const QUERIES: &[NamedQuery] = &[("token_standing::FIND", FIND)];
