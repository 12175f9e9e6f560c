//! `linked_identities`: which user a subject of another issuer is. The pair (issuer, subject there) is the key and belongs
//! to one user; a user may have several.

use postgres::Row;
use postgres::types::{Json, ToSql};
use serde_json::{Map, Value};

use super::Store;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::users::{CurrentUser, current};
use super::values::{column, subject, tenant_text};
use crate::protocol::words::epochs::SessionEpochs;
use crate::protocol::words::identifiers::{ClientId, Subject, TenantName};
use crate::protocol::words::instant::Instant;

/// One identity elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// `iss` there.
    pub issuer: String,
    /// `sub` there.
    pub upstream_subject: String,
    /// The user here.
    pub sub: Subject,
    /// The identity provider that stands for it, where one does.
    pub provider: Option<String>,
    /// The user's claims that came from there, as they came last.
    pub claims: Map<String, Value>,
    /// Since when.
    pub linked_at: Instant,
}

/// Somebody found by who they are elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkedUser {
    /// The identity provider that the link names.
    pub provider: Option<String>,
    /// The user's claims that came from there, as they came last.
    pub claims: Map<String, Value>,
    pub found: CurrentUser,
}

const FIND_USER: &str = "
SELECT l.provider, l.claims AS upstream_claims, u.*, i.epoch AS installation_epoch, coalesce(k.epoch, 0) AS consent_epoch
FROM linked_identities l
JOIN users u ON u.sub = l.sub
CROSS JOIN installation i
LEFT JOIN consents k ON k.sub = u.sub AND k.client_id = $3::text
WHERE l.issuer = $1::text AND l.upstream_subject = $2::text";

/// The user linked to that subject of that issuer, for that client where there is one. Both must be free of NUL.
pub fn find_user(
    store: &Store,
    issuer: &str,
    upstream_subject: &str,
    client_id: Option<&ClientId>,
) -> Result<Option<LinkedUser>, StoreError> {
    let client_id = client_id.map(ClientId::as_str);
    let row = store.read(|connection| connection.query_opt(FIND_USER, &[&issuer, &upstream_subject, &client_id]))?;
    let linked = |row: &Row| {
        let claims = column::<Json<Map<String, Value>>>(row, "upstream_claims")?.0;
        Ok(LinkedUser { provider: column(row, "provider")?, claims, found: current(row)? })
    };
    row.as_ref().map(linked).transpose()
}

const OF_USER: &str = "
SELECT issuer, upstream_subject, sub, provider, claims, linked_at FROM linked_identities WHERE sub = $1::text
ORDER BY issuer, upstream_subject";

/// Every identity of a user.
pub fn of_user(store: &Store, sub: &Subject) -> Result<Vec<LinkedIdentity>, StoreError> {
    store.read(|connection| connection.query(OF_USER, &[&sub.as_str()]))?.iter().map(identity).collect()
}

fn identity(row: &Row) -> Result<LinkedIdentity, StoreError> {
    Ok(LinkedIdentity {
        issuer: column(row, "issuer")?,
        upstream_subject: column(row, "upstream_subject")?,
        sub: subject(row, "sub")?,
        provider: column(row, "provider")?,
        claims: column::<Json<Map<String, Value>>>(row, "claims")?.0,
        linked_at: column(row, "linked_at")?,
    })
}

/// An identity to link.
#[derive(Clone, Copy, Debug)]
pub struct NewLink<'a> {
    /// `iss` there.
    pub issuer: &'a str,
    /// `sub` there.
    pub upstream_subject: &'a str,
    /// The user here.
    pub sub: &'a Subject,
    /// The identity provider that stands for it, where one does.
    pub provider: Option<&'a str>,
}

/// What became of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linked {
    /// It is there now.
    Added,
    /// It belongs to this user, who may be the same.
    Taken(Subject),
}

const LINK: &str = "
WITH added AS (
    INSERT INTO linked_identities (issuer, upstream_subject, sub, provider)
    VALUES ($1::text, $2::text, $3::text, $4::text) ON CONFLICT (issuer, upstream_subject) DO NOTHING RETURNING sub
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM added, json_populate_recordset(NULL::audit_events, $5::json) AS a
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited FROM added";

const OWNER: &str = "SELECT sub FROM linked_identities WHERE issuer = $1::text AND upstream_subject = $2::text";

/// Links an identity to a user. One that is somebody's stays theirs.
pub fn link(store: &Store, new: &NewLink<'_>, audit: &AuditEvent<'_>) -> Result<Linked, StoreError> {
    let (issuer, upstream_subject, sub) = (new.issuer, new.upstream_subject, new.sub.as_str());
    let added = store.write_audited(LINK, &[&issuer, &upstream_subject, &sub, &new.provider], audit)?;
    if !added.is_empty() {
        return Ok(Linked::Added);
    }
    let owner = store.read(|connection| connection.query_opt(OWNER, &[&issuer, &upstream_subject]))?;
    let owner = owner.as_ref().map(|row| subject(row, "sub")).transpose()?;
    owner.map(Linked::Taken).ok_or_else(|| StoreError::Conflict(String::from("the identity was unlinked meanwhile")))
}

/// Somebody new, whom only an identity provider knows.
#[derive(Clone, Copy, Debug)]
pub struct Provisioned<'a> {
    /// Who they are there; the user is a new one.
    pub link: &'a NewLink<'a>,
    /// `tenant`
    pub tenant: Option<&'a TenantName>,
    /// The claims that came from there.
    pub claims: &'a Map<String, Value>,
}

const PROVISION: &str = "
WITH added AS (
    INSERT INTO users (sub, tenant, claims) VALUES ($1::text, $2::text, $3::jsonb) RETURNING sub, epoch
), linked AS (
    INSERT INTO linked_identities (issuer, upstream_subject, sub, provider, claims)
    SELECT $4::text, $5::text, added.sub, $6::text, $3::jsonb FROM added
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM added, json_populate_recordset(NULL::audit_events, $7::json) AS a
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited, added.epoch, i.epoch AS installation_epoch
FROM added CROSS JOIN installation i";

/// Adds a user without user name and password, and the link to who they are there; answers the epochs for their session.
/// `Taken`, and nothing added, when that identity is somebody's already.
pub fn provision(store: &Store, new: &Provisioned<'_>, audit: &AuditEvent<'_>) -> Result<SessionEpochs, StoreError> {
    let NewLink { issuer, upstream_subject, sub, provider } = new.link;
    let (sub, claims) = (sub.as_str(), Json(new.claims));
    let values: [&(dyn ToSql + Sync); 6] =
        [&sub, &tenant_text(new.tenant), &claims, issuer, upstream_subject, provider];
    let added = store.write_audited(PROVISION, &values, audit)?;
    let added = added.first().ok_or_else(|| StoreError::Taken(String::from("users_pkey")))?;
    Ok(SessionEpochs { installation: column(added, "installation_epoch")?, user: column(added, "epoch")? })
}

/// What an identity provider says anew of somebody.
#[derive(Clone, Copy, Debug)]
pub struct ClaimsSaid<'a> {
    /// Which identity, of whom.
    pub link: &'a NewLink<'a>,
    /// All claims that came.
    pub said: &'a Map<String, Value>,
    /// Of the user's claims, those to set.
    pub set: &'a Map<String, Value>,
    /// Of the user's claims, the names of those to take away.
    pub removed: &'a [&'a str],
}

const UPDATE_CLAIMS: &str = "
WITH noted AS (
    UPDATE linked_identities SET claims = $6::jsonb
    WHERE issuer = $4::text AND upstream_subject = $5::text AND sub = $1::text RETURNING sub
), changed AS (
    UPDATE users u SET claims = (u.claims - $2::text[]) || $3::jsonb, updated_at = clock_timestamp()
    FROM noted WHERE u.sub = noted.sub RETURNING u.sub
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM changed, json_populate_recordset(NULL::audit_events, $7::json) AS a
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited FROM changed";

/// Changes a user's claims to what an identity provider says, and remembers what it said; nothing, once the identity is the
/// user's no longer.
pub fn update_claims(store: &Store, said: &ClaimsSaid<'_>, audit: &AuditEvent<'_>) -> Result<(), StoreError> {
    let NewLink { issuer, upstream_subject, sub, .. } = said.link;
    let values: [&(dyn ToSql + Sync); 6] =
        [&sub.as_str(), &said.removed, &Json(said.set), issuer, upstream_subject, &Json(said.said)];
    store.write_audited(UPDATE_CLAIMS, &values, audit).map(drop)
}
