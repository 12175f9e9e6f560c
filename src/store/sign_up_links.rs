//! `sign_up_links`: links by which people make accounts themselves. A link is never stored: the row
//! has the id that it begins with.

use postgres::Row;
use postgres::types::Json;

use super::Store;
use super::audit_event::AuditEvent;
use super::statement::bind;
use super::tokens::hash_of_jti;
use super::values::{column, read, tenant, tenant_text, unreadable};
use crate::Result;
use gatepost_protocol::login::sign_up::SignUpId;
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::secret::SecretText;

pub struct SignUpLink {
    pub id: SignUpId,
    pub tenant: Option<TenantName>,
    pub roles: Vec<String>,
    /// Of the addresses that it takes; `None`: of any.
    pub domain: Option<String>,
    /// How long the accounts are there that it makes, in seconds; `None`: without an end.
    pub accounts_for: Option<i64>,
    pub uses: i32,
    pub used: i32,
    pub expires_at: Instant,
    pub ended_at: Option<Instant>,
}

impl SignUpLink {
    /// Whether it makes another account.
    pub fn stands(&self, now: Instant) -> bool {
        self.ended_at.is_none() && now < self.expires_at && self.used < self.uses
    }
}

const FIND: &str = "SELECT l.* FROM sign_up_links l WHERE l.id = :id::bytea";

pub fn find(store: &Store, id: &SignUpId) -> Result<Option<SignUpLink>> {
    store.find(bind!(FIND, id = &id[..]), link)
}

const HOLDS: &str = "
SELECT EXISTS (
    SELECT FROM users u
    WHERE u.tenant = :tenant::text AND u.claims ? 'email'
      AND left(lower(normalize(u.claims ->> 'email', NFKC)), 254)
          = lower(:address::text) COLLATE \"C\"
) OR EXISTS (
    SELECT FROM users u WHERE u.tenant = :tenant::text AND u.username_key = lower(:address::text)
) AS holds";

/// Whether somebody of that tenant has the address, verified or not, or is called so.
pub fn holds(store: &Store, tenant: Option<&TenantName>, address: &str) -> Result<bool> {
    let tenant = tenant_text(tenant);
    column(&store.one(bind!(HOLDS, tenant, address))?, "holds")
}

/// An account that somebody makes by the link in a letter.
pub struct NewMember<'a> {
    pub id: &'a SignUpId,
    /// Names the letter.
    pub letter: &'a str,
    /// When it can be forgotten that the letter was used.
    pub forgotten_at: Instant,
    pub sub: &'a Subject,
    pub username: &'a str,
    pub address: &'a str,
    pub password_hash: &'a SecretText,
    pub claims: &'a JsonObject,
}

// The letter is spent first. Of many at once each waits for the row of the link, and then sees how
// many uses are left. Of two letters for one address at once the second does nothing. The name of
// an address that somebody has is not taken: an invitation that verifies it at that moment would
// find that it was, and leave it unverified.
const JOIN: &str = "
WITH keys AS (
    SELECT l.tenant, :address::text AS name, true AS is_alone
    FROM sign_up_links l
    WHERE l.id = :id::bytea AND NOT EXISTS (
        SELECT FROM users u
        WHERE u.tenant = l.tenant AND u.claims ? 'email'
          AND left(lower(normalize(u.claims ->> 'email', NFKC)), 254)
              = lower(:address::text) COLLATE \"C\")
), {names taken}, spent AS (
    INSERT INTO used_assertions (day, issuer, jti_hash)
    SELECT :day::int4, 'join', :jti_hash::bytea FROM sign_up_links l CROSS JOIN keys
    WHERE l.id = :id::bytea AND l.used < l.uses
      AND l.ended_at IS NULL AND l.expires_at > clock_timestamp()
      AND {names are free}
      AND NOT EXISTS (
        SELECT FROM users n
        WHERE n.sub = :username::text AND n.username IS NULL AND n.tenant = l.tenant)
    ON CONFLICT (day, issuer, jti_hash) DO NOTHING RETURNING day
), used AS (
    UPDATE sign_up_links l SET used = used + 1 FROM spent
    WHERE l.id = :id::bytea AND l.used < l.uses
      AND l.ended_at IS NULL AND l.expires_at > clock_timestamp()
    RETURNING l.tenant, l.accounts_for
), added AS (
    INSERT INTO users (sub, tenant, username, username_key, password_hash, enabled, claims,
                       valid_until)
    SELECT :sub::text, used.tenant, :username::text, lower(normalize(:username::text, NFKC)),
           :password_hash::text, true, :claims::jsonb,
           date_trunc('second', clock_timestamp()) + used.accounts_for * interval '1 second'
    FROM used RETURNING sub
), {audited added} FROM added";

/// Makes the account, and takes one use of the link. `false` when the link is over, the letter was
/// used, or somebody has the address meanwhile or gets it now. `Taken` when the user name is
/// somebody's: then nothing was taken.
pub fn join(store: &Store, new: &NewMember<'_>, audit: &AuditEvent<'_>) -> Result<bool> {
    let bound = bind!(
        JOIN,
        ..new {
            sub,
            username,
            address
        },
        id = &new.id[..],
        day = new.forgotten_at.day(),
        jti_hash = hash_of_jti(new.letter),
        password_hash = new.password_hash.expose(),
        claims = Json(new.claims)
    );
    store.change(bound, audit)
}

pub fn link(row: &Row) -> Result<SignUpLink> {
    let id = column::<&[u8]>(row, "id")?.try_into();
    read!(row, SignUpLink { roles, domain, accounts_for, uses, used, expires_at, ended_at;
        id: id.map_err(|_| unreadable("id"))?,
        tenant: tenant(row, "tenant")?,
    })
}
