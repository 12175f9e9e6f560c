//! `users`: people who sign in. A user name is unique within its tenant by `lower(normalize(username, NFKC))`; people whom
//! only an identity provider knows have none. A subject is never given to anybody else, also after its user was removed.

use postgres::Row;
use postgres::types::Json;
use serde_json::{Map, Value};

use super::Store;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::values::{column, subject, tenant, tenant_text};
use crate::protocol::words::epochs::{Epochs, SessionEpochs};
use crate::protocol::words::identifiers::{ClientId, Subject, TenantName};
use crate::protocol::words::secret::SecretText;
use crate::protocol::words::user::User;

/// A user as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct UserRow {
    /// `sub`
    pub sub: Subject,
    /// `username`, as written when it was given; `None` for people whom only an identity provider knows.
    pub username: Option<String>,
    /// `tenant`
    pub tenant: Option<TenantName>,
    /// PHC string; `None` for those who sign in elsewhere.
    pub password_hash: Option<SecretText>,
    /// `enabled`
    pub enabled: bool,
    /// `claims`
    pub claims: Map<String, Value>,
    pub epoch: i64,
}

impl UserRow {
    /// What operators call them: the user name, else the subject.
    pub fn designation(&self) -> &str {
        self.username.as_deref().unwrap_or(self.sub.as_str())
    }

    /// As the core sees a user: without the password.
    pub fn to_core(&self) -> User {
        User {
            subject: self.sub.clone(),
            username: self.username.clone(),
            tenant: self.tenant.clone(),
            enabled: self.enabled,
            claims: self.claims.clone().into_iter().collect(),
            epoch: self.epoch,
        }
    }
}

/// A user, and what is issued to them now stands on: all of it read in one statement.
#[derive(Clone, Debug, PartialEq)]
pub struct CurrentUser {
    pub user: UserRow,
    pub installation_epoch: i64,
    /// Of their consent to the client that was named.
    pub consent_epoch: i64,
}

impl CurrentUser {
    /// For a session of theirs.
    pub fn session_epochs(&self) -> SessionEpochs {
        SessionEpochs { installation: self.installation_epoch, user: self.user.epoch }
    }

    /// For what that client gets.
    pub fn epochs(&self, client_epoch: i64) -> Epochs {
        self.session_epochs().at_client(client_epoch, self.consent_epoch)
    }
}

/// A user to be.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// Made by the caller: 128 random bits, or as imported.
    pub sub: Subject,
    /// `username`
    pub username: Option<String>,
    /// `tenant`
    pub tenant: Option<TenantName>,
    /// PHC string.
    pub password_hash: Option<SecretText>,
    /// `enabled`
    pub enabled: bool,
    /// `claims`
    pub claims: Map<String, Value>,
}

/// What a sign-in finds under the name that was typed.
#[derive(Clone, Debug)]
pub struct SignInAccount {
    /// The canonical name, whether or not somebody has it: failures are counted by it.
    pub username_key: String,
    /// Who has it.
    pub user: Option<CurrentUser>,
}

const FIND_FOR_SIGN_IN: &str = "
SELECT t.username_key AS typed_key, u.*, i.epoch AS installation_epoch, coalesce(k.epoch, 0) AS consent_epoch
FROM (SELECT lower(normalize($2::text, NFKC)) AS username_key) AS t
CROSS JOIN installation i
LEFT JOIN users u ON u.tenant = $1::text AND u.username_key = t.username_key
LEFT JOIN consents k ON k.sub = u.sub AND k.client_id = $3::text";

/// Looks for the user of that name in that tenant (or without one), for that client where there is one. The name must be free
/// of NUL.
pub fn find_for_sign_in(
    store: &Store,
    tenant: Option<&TenantName>,
    username: &str,
    client_id: Option<&ClientId>,
) -> Result<SignInAccount, StoreError> {
    let (tenant, client_id) = (tenant_text(tenant), client_id.map(ClientId::as_str));
    let row = store.read(|connection| connection.query_one(FIND_FOR_SIGN_IN, &[&tenant, &username, &client_id]))?;
    let present = column::<Option<&str>>(&row, "sub")?.is_some();
    Ok(SignInAccount { username_key: column(&row, "typed_key")?, user: present.then(|| current(&row)).transpose()? })
}

const FIND_FOR_CLIENT: &str = "
SELECT u.*, i.epoch AS installation_epoch, coalesce(k.epoch, 0) AS consent_epoch
FROM users u
CROSS JOIN installation i
LEFT JOIN consents k ON k.sub = u.sub AND k.client_id = $2::text
WHERE u.sub = $1::text";

/// Reads one user, for what that client gets.
pub fn find_for_client(store: &Store, sub: &Subject, client_id: &ClientId) -> Result<Option<CurrentUser>, StoreError> {
    let (sub, client_id) = (sub.as_str(), client_id.as_str());
    let row = store.read(|connection| connection.query_opt(FIND_FOR_CLIENT, &[&sub, &client_id]))?;
    row.as_ref().map(current).transpose()
}

pub(super) const FIND: &str = "SELECT u.* FROM users u WHERE u.sub = $1::text";

/// Reads one user.
pub fn find(store: &Store, sub: &Subject) -> Result<Option<UserRow>, StoreError> {
    let row = store.read(|connection| connection.query_opt(FIND, &[&sub.as_str()]))?;
    row.as_ref().map(user).transpose()
}

const LIST: &str = "SELECT u.* FROM users u WHERE u.sub > $1::text ORDER BY u.sub LIMIT $2::int8";

/// Users by subject, at most `limit` behind `after` (empty: from the beginning).
pub fn list(store: &Store, after: &str, limit: i64) -> Result<Vec<UserRow>, StoreError> {
    store.read(|connection| connection.query(LIST, &[&after, &limit]))?.iter().map(user).collect()
}

pub(super) const INSERT: &str = "
WITH added AS (
    INSERT INTO users (sub, tenant, username, username_key, password_hash, enabled, claims)
    SELECT $1::text, $2::text, $3::text, lower(normalize($3::text, NFKC)), $4::text, $5::bool, $6::jsonb
    WHERE NOT EXISTS (SELECT FROM removed_subjects r WHERE r.sub = $1::text)
      AND NOT EXISTS (SELECT FROM clients c WHERE c.client_id = $1::text)
    RETURNING sub
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM added, json_populate_recordset(NULL::audit_events, $7::json) AS a
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited FROM added";

/// Adds a user. `Taken` when subject or name are somebody's, the subject once was, or is a client's name.
pub fn insert(store: &Store, new: &NewUser, audit: &AuditEvent<'_>) -> Result<(), StoreError> {
    let added = store.write_audited(
        INSERT,
        &[
            &new.sub.as_str(),
            &tenant_text(new.tenant.as_ref()),
            &new.username,
            &new.password_hash.as_ref().map(SecretText::expose),
            &new.enabled,
            &Json(&new.claims),
        ],
        audit,
    )?;
    added.first().map(drop).ok_or_else(|| StoreError::Taken(String::from("removed_subjects")))
}

const SET_PASSWORD: &str = "
WITH changed AS (
    UPDATE users SET password_hash = $2::text, updated_at = clock_timestamp(), epoch = new_epoch()
    WHERE sub = $1::text RETURNING sub
), called AS (
    UPDATE session_clients SET due_at = clock_timestamp() WHERE sub = $1::text AND due_at IS NULL AND tries = 0
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM changed, json_populate_recordset(NULL::audit_events, $3::json) AS a
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited FROM changed";

/// Gives a user another password and ends what was signed in with the old one, the clients of their sessions called; `false` when there is no such user.
pub fn set_password(
    store: &Store,
    sub: &Subject,
    hash: &SecretText,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    Ok(!store.write_audited(SET_PASSWORD, &[&sub.as_str(), &hash.expose()], audit)?.is_empty())
}

const REVOKE: &str = "
WITH revoked AS (
    UPDATE users SET epoch = new_epoch() WHERE sub = $1::text RETURNING sub
), called AS (
    UPDATE session_clients SET due_at = clock_timestamp() WHERE sub = $1::text AND due_at IS NULL AND tries = 0
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM revoked, json_populate_recordset(NULL::audit_events, $2::json) AS a
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited FROM revoked";

/// Ends all that was signed in, granted or issued for this user until now, the clients of their sessions called; `false` when there is no such user.
pub fn revoke(store: &Store, sub: &Subject, audit: &AuditEvent<'_>) -> Result<bool, StoreError> {
    Ok(!store.write_audited(REVOKE, &[&sub.as_str()], audit)?.is_empty())
}

const REHASH: &str = "UPDATE users SET password_hash = $3::text WHERE sub = $1::text AND password_hash = $2::text";

/// Stores the same password under newer parameters, unless somebody changed it meanwhile. Ends nothing.
pub fn rehash(store: &Store, sub: &Subject, old: &SecretText, new: &SecretText) -> Result<(), StoreError> {
    store.write(|connection| connection.execute(REHASH, &[&sub.as_str(), &old.expose(), &new.expose()])).map(drop)
}

pub(super) fn current(row: &Row) -> Result<CurrentUser, StoreError> {
    Ok(CurrentUser {
        user: user(row)?,
        installation_epoch: column(row, "installation_epoch")?,
        consent_epoch: column(row, "consent_epoch")?,
    })
}

pub(super) fn user(row: &Row) -> Result<UserRow, StoreError> {
    Ok(UserRow {
        sub: subject(row, "sub")?,
        username: column(row, "username")?,
        tenant: tenant(row, "tenant")?,
        password_hash: column::<Option<String>>(row, "password_hash")?.map(SecretText::new),
        enabled: column(row, "enabled")?,
        claims: column::<Json<Map<String, Value>>>(row, "claims")?.0,
        epoch: column(row, "epoch")?,
    })
}
