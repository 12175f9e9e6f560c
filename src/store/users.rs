//! `users`: people who sign in. A user name is unique within its tenant by
//! `lower(normalize(username, NFKC))`; people whom only an identity provider knows have none. A
//! subject is never given to anybody else, also after its user was removed.

use postgres::Row;
use postgres::types::Json;
use serde_json::{Map, Value};

use super::Store;
use super::audit_chain::Together;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::sessions::{others, with_endings};
use super::values::{Values, column, read, tenant, tenant_text};
use crate::protocol::login::pbkdf2::Pbkdf2Hash;
use crate::protocol::words::epochs::{Epochs, SessionEpochs};
use crate::protocol::words::identifiers::{ClientId, Subject, TenantName};
use crate::protocol::words::secret::SecretText;
use crate::protocol::words::session::{Session, User};
use crate::protocol::words::strength::Strength;

/// A user as stored, or to be: the epoch is drawn by the database.
#[derive(Clone, Debug, PartialEq)]
pub struct UserRow {
    /// Made by the caller: 128 random bits, or as imported.
    pub sub: Subject,
    /// As written when it was given; `None` for people whom only an identity provider knows.
    pub username: Option<String>,
    pub tenant: Option<TenantName>,
    /// PHC string; `None` for those who sign in elsewhere.
    pub password_hash: Option<SecretText>,
    pub enabled: bool,
    pub claims: Map<String, Value>,
    pub epoch: i64,
    /// Raised whenever a factor is added or removed.
    pub factors: i64,
    /// What those reach beside the password; one factor where there is none.
    pub strongest_acr: Strength,
}

impl UserRow {
    /// What operators call them: the user name, else the subject.
    pub fn designation(&self) -> &str {
        self.username.as_deref().unwrap_or(self.sub.as_str())
    }

    /// As the core sees a user: without the password.
    pub fn into_core(self) -> User {
        let UserRow {
            sub: subject,
            username,
            tenant,
            enabled,
            claims,
            epoch,
            ..
        } = self;
        User {
            subject,
            username,
            tenant,
            enabled,
            claims,
            epoch,
        }
    }
}

/// A user, and the epochs that tokens issued now stand on, read in one statement.
#[derive(Clone, Debug, PartialEq)]
pub struct CurrentUser {
    pub user: UserRow,
    pub installation_epoch: i64,
    /// Of their consent to the client that was named.
    pub consent_epoch: i64,
    /// Their user name in its canonical form: failures are counted by it.
    pub username_key: Option<String>,
}

impl CurrentUser {
    pub fn session_epochs(&self) -> SessionEpochs {
        SessionEpochs {
            installation: self.installation_epoch,
            user: self.user.epoch,
        }
    }

    pub fn epochs(&self, client_epoch: i64) -> Epochs {
        self.session_epochs()
            .at_client(client_epoch, self.consent_epoch)
    }
}

#[derive(Clone, Debug)]
pub struct SignInAccount {
    /// The canonical name, whether or not a user has it: failures are counted by it.
    pub username_key: String,
    pub user: Option<CurrentUser>,
}

const FIND_FOR_SIGN_IN: &str = "
SELECT t.username_key AS typed_key, u.*, i.epoch AS installation_epoch, coalesce(k.epoch, 0) AS consent_epoch
FROM (SELECT lower(normalize($2::text, NFKC)) AS username_key) AS t
CROSS JOIN installation i
LEFT JOIN users u ON u.tenant = $1::text AND u.username_key = t.username_key
LEFT JOIN consents k ON k.sub = u.sub AND k.client_id = $3::text";

/// Looks for the user of that name in that tenant (or without one), for that client where there is
/// one. The name must be free of NUL.
pub fn find_for_sign_in(
    store: &Store,
    tenant: Option<&TenantName>,
    username: &str,
    client_id: Option<&ClientId>,
) -> Result<SignInAccount, StoreError> {
    let row = store.one(
        FIND_FOR_SIGN_IN,
        &[&tenant_text(tenant), &username, &client_id],
    )?;
    let present = column::<Option<&str>>(&row, "sub")?.is_some();
    Ok(SignInAccount {
        username_key: column(&row, "typed_key")?,
        user: present.then(|| current(&row)).transpose()?,
    })
}

const FIND_FOR_CLIENT: &str = "
SELECT u.*, i.epoch AS installation_epoch, coalesce(k.epoch, 0) AS consent_epoch
FROM users u
CROSS JOIN installation i
LEFT JOIN consents k ON k.sub = u.sub AND k.client_id = $2::text
WHERE u.sub = $1::text";

/// Reads one user, for what that client gets; without one, for what they get here.
pub fn find_for_client(
    store: &Store,
    sub: &Subject,
    client_id: Option<&ClientId>,
) -> Result<Option<CurrentUser>, StoreError> {
    store.find(FIND_FOR_CLIENT, &[sub, &client_id], current)
}

pub(super) const FIND: &str = "SELECT u.* FROM users u WHERE u.sub = $1::text";

/// Reads one user.
pub fn find(store: &Store, sub: &Subject) -> Result<Option<UserRow>, StoreError> {
    store.find(FIND, &[sub], user)
}

const LIST: &str = "SELECT u.* FROM users u WHERE u.sub > $1::text ORDER BY u.sub LIMIT $2::int8";

/// Users by subject, at most `limit` behind `after` (empty: from the beginning).
pub fn list(store: &Store, after: &str, limit: i64) -> Result<Vec<UserRow>, StoreError> {
    store.list(LIST, &[&after, &limit], user)
}

const INSERT: &str = "
WITH added AS (
    INSERT INTO users (sub, tenant, username, username_key, password_hash, enabled, claims)
    SELECT $1::text, $2::text, $3::text, lower(normalize($3::text, NFKC)), $4::text, $5::bool, $6::jsonb
    WHERE NOT EXISTS (SELECT FROM removed_subjects r WHERE r.sub = $1::text)
      AND NOT EXISTS (SELECT FROM clients c WHERE c.client_id = $1::text)
    RETURNING sub
), {audited added $7} FROM added";

impl UserRow {
    pub(super) fn insert_by(
        &self,
        write: impl FnOnce(&'static str, Values<'_>) -> Result<Vec<Row>, StoreError>,
    ) -> Result<(), StoreError> {
        let (tenant, hash) = (
            tenant_text(self.tenant.as_ref()),
            self.password_hash.as_ref().map(SecretText::expose),
        );
        let added = write(
            INSERT,
            &[
                &self.sub,
                &tenant,
                &self.username,
                &hash,
                &self.enabled,
                &Json(&self.claims),
            ],
        )?;
        added
            .first()
            .map(drop)
            .ok_or_else(|| StoreError::Taken(String::from("removed_subjects")))
    }
}

/// Adds a user. `Taken` when subject or name are somebody's, the subject once was, or is a client's
/// name.
pub fn insert(store: &Store, new: &UserRow, audit: &AuditEvent<'_>) -> Result<(), StoreError> {
    new.insert_by(|sql, values| store.write_audited(sql, values, audit))
}

const SET_PASSWORD: &str = "
WITH changed AS (
    UPDATE users SET password_hash = $2::text, updated_at = clock_timestamp(), epoch = new_epoch()
    WHERE sub = $1::text AND ($3::int8 IS NULL OR (enabled AND epoch = $3::int8 AND (SELECT i.epoch FROM installation i) = $4::int8))
    RETURNING sub
), {user called}, {audited changed $5} FROM changed";

/// Gives a user another password, ends everything that was signed in with the old one, and calls
/// the clients of their sessions. `false` when there is no such user, or when they no longer have
/// the epochs given.
pub fn set_password(
    store: &Store,
    sub: &Subject,
    epochs: Option<SessionEpochs>,
    hash: &SecretText,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let (user, installation) = epochs
        .map(|epochs| (epochs.user, epochs.installation))
        .unzip();
    Ok(!store
        .write_audited(
            SET_PASSWORD,
            &[sub, &hash.expose(), &user, &installation],
            audit,
        )?
        .is_empty())
}

const REVOKE: &str = "
WITH revoked AS (
    UPDATE users SET epoch = new_epoch() WHERE sub = $1::text RETURNING sub
), {user called}, {audited revoked $2} FROM revoked";

/// Ends all that was signed in, granted or issued for this user until now, the clients of their
/// sessions called; `false` when there is no such user.
pub fn revoke(store: &Store, sub: &Subject, audit: &AuditEvent<'_>) -> Result<bool, StoreError> {
    Ok(!store.write_audited(REVOKE, &[sub], audit)?.is_empty())
}

const REHASH: &str =
    "UPDATE users SET password_hash = $3::text WHERE sub = $1::text AND password_hash = $2::text";

/// Stores the same password under newer parameters, unless somebody changed it meanwhile. Ends
/// nothing.
pub fn rehash(
    store: &Store,
    sub: &Subject,
    old: &SecretText,
    new: &SecretText,
) -> Result<(), StoreError> {
    store
        .execute(REHASH, &[sub, &old.expose(), &new.expose()])
        .map(drop)
}

// By an index that has these users alone.
const USUAL_PBKDF2: &str = "
SELECT pbkdf2 FROM users WHERE pbkdf2 IS NOT NULL GROUP BY pbkdf2 ORDER BY count(*) DESC, pbkdf2 LIMIT 1";

/// A hash that costs what most PBKDF2 hashes do; `None` where there are none.
pub fn usual_pbkdf2(store: &Store) -> Result<Option<Pbkdf2Hash>, StoreError> {
    let found = store.find(USUAL_PBKDF2, &[], |row| column::<String>(row, "pbkdf2"))?;
    Ok(found.as_deref().and_then(Pbkdf2Hash::dummy))
}

pub(super) fn current(row: &Row) -> Result<CurrentUser, StoreError> {
    read!(row, CurrentUser { installation_epoch, consent_epoch, username_key; user: user(row)? })
}

pub(super) fn user(row: &Row) -> Result<UserRow, StoreError> {
    read!(row, UserRow { sub, username, enabled, epoch, factors, strongest_acr;
        tenant: tenant(row, "tenant")?,
        password_hash: column::<Option<String>>(row, "password_hash")?.map(SecretText::new),
        claims: column::<Json<Map<String, Value>>>(row, "claims")?.0,
    })
}

// A person's own change of password: one statement that stores the new hash, ends what hung on the
// old password, has the clients of the sessions that end with it called, and keeps the session it
// was changed in, under a new handle.

/// Nothing happens unless the session lives: a user who was signed out meanwhile changes nothing.
const CHANGE_PASSWORD: &str = "
WITH {own session}, changed AS (
    UPDATE users SET password_hash = $3::text, updated_at = clock_timestamp(), epoch = new_epoch()
    FROM own
    WHERE sub = $1::text AND enabled AND epoch = $2::int8
    RETURNING sub, epoch
), kept AS (
    UPDATE sessions s SET handle_hash = $6::bytea, user_epoch = changed.epoch
    FROM changed WHERE s.day = $4::int4 AND s.sid = $5::text
    RETURNING s.user_epoch
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM changed WHERE s.sub = changed.sub AND s.sid <> $5::text AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
    RETURNING s.day, s.sid
), {called}, {audited changed $7}, user_epoch FROM kept";

/// Changes the password of a user whose present one was checked. Nothing must have been revoked
/// since they were read. The session stays, under a new handle. Answers the user's new epoch, which
/// that session has; `None` when session or user no longer stood.
pub fn change_password(
    store: &Store,
    user: &UserRow,
    password_hash: &SecretText,
    session: &Session,
    handle_hash: &[u8; 32],
    audit: &AuditEvent<'_>,
) -> Result<Option<i64>, StoreError> {
    let others = others(store, &user.sub, &session.sid)?;
    let events = with_endings(audit, &others);
    let (hash, handle_hash) = (password_hash.expose(), &handle_hash[..]);
    let values: Values<'_> = &[
        &user.sub,
        &user.epoch,
        &hash,
        &session.day,
        &session.sid,
        &handle_hash,
    ];
    let rows = store.write(|connection| {
        connection.audited(CHANGE_PASSWORD, values, &events, Together::InOrder)
    })?;
    rows.first()
        .map(|row| column(row, "user_epoch"))
        .transpose()
}
