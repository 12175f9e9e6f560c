//! `linked_identities`: which user a subject of another issuer is. The pair (issuer, subject there) is the key and belongs
//! to one user; a user may have several.

use postgres::Row;

use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::users::{UserRow, user};
use super::values::{column, subject};
use super::{NamedQuery, Store};
use crate::protocol::identifiers::Subject;
use crate::protocol::instant::Instant;

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
    /// Since when.
    pub linked_at: Instant,
}

/// Somebody found by who they are elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkedUser {
    /// The identity provider that the link names.
    pub provider: Option<String>,
    /// The user.
    pub user: UserRow,
}

const FIND_USER: &str = "
SELECT l.provider, u.* FROM linked_identities l JOIN users u ON u.sub = l.sub
WHERE l.issuer = $1::text AND l.upstream_subject = $2::text";

/// The user linked to that subject of that issuer. Both must be free of NUL.
pub fn find_user(store: &Store, issuer: &str, upstream_subject: &str) -> Result<Option<LinkedUser>, StoreError> {
    let row = store.read(|connection| connection.query_opt(FIND_USER, &[&issuer, &upstream_subject]))?;
    let linked = |row: &Row| Ok(LinkedUser { provider: column(row, "provider")?, user: user(row)? });
    row.as_ref().map(linked).transpose()
}

const OF_USER: &str = "
SELECT issuer, upstream_subject, sub, provider, linked_at FROM linked_identities WHERE sub = $1::text
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
    INSERT INTO audit_events (day, process, event, client_id, sub, sid, source, request_id, detail)
    SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 + a.day,
           a.process, a.event, a.client_id, a.sub, a.sid, a.source, a.request_id, a.detail
    FROM jsonb_populate_record(NULL::audit_events, $5::jsonb) AS a, added
)
SELECT sub FROM added";

const OWNER: &str = "SELECT sub FROM linked_identities WHERE issuer = $1::text AND upstream_subject = $2::text";

/// Links an identity to a user. One that is somebody's stays theirs.
pub fn link(store: &Store, new: &NewLink<'_>, audit: &AuditEvent<'_>) -> Result<Linked, StoreError> {
    let audit = audit.parameter_of(store);
    let (issuer, upstream_subject, sub) = (new.issuer, new.upstream_subject, new.sub.as_str());
    let added = store
        .write(|connection| connection.query_opt(LINK, &[&issuer, &upstream_subject, &sub, &new.provider, &audit]))?;
    if added.is_some() {
        return Ok(Linked::Added);
    }
    let owner = store.read(|connection| connection.query_opt(OWNER, &[&issuer, &upstream_subject]))?;
    let owner = owner.as_ref().map(|row| subject(row, "sub")).transpose()?;
    owner.map(Linked::Taken).ok_or_else(|| StoreError::Conflict(String::from("the identity was unlinked meanwhile")))
}

const UNLINK: &str = "
WITH removed AS (
    DELETE FROM linked_identities WHERE issuer = $1::text AND upstream_subject = $2::text AND sub = $3::text RETURNING sub
), audited AS (
    INSERT INTO audit_events (day, process, event, client_id, sub, sid, source, request_id, detail)
    SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 + a.day,
           a.process, a.event, a.client_id, a.sub, a.sid, a.source, a.request_id, a.detail
    FROM jsonb_populate_record(NULL::audit_events, $4::jsonb) AS a, removed
)
SELECT sub FROM removed";

/// Takes an identity from its user; `false` when it is not theirs.
pub fn unlink(
    store: &Store,
    issuer: &str,
    upstream_subject: &str,
    sub: &Subject,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let audit = audit.parameter_of(store);
    let removed =
        store.write(|connection| connection.query_opt(UNLINK, &[&issuer, &upstream_subject, &sub.as_str(), &audit]))?;
    Ok(removed.is_some())
}

pub(super) const QUERIES: &[NamedQuery] = &[
    ("linked_identities::FIND_USER", FIND_USER),
    ("linked_identities::OF_USER", OF_USER),
    ("linked_identities::LINK", LINK),
    ("linked_identities::OWNER", OWNER),
    ("linked_identities::UNLINK", UNLINK),
];
