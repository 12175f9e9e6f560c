//! What a change of the registry reads of users, and does to them.

use std::collections::BTreeSet;
use std::slice;

use postgres::Row;
use postgres::types::Json;

use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::secret::SecretText;
use gatepost_registration::user::UserEntry;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::registry_writer::{RegistryReader, RegistryWriter};
use gatepost_store::users::{self, UserRow};
use gatepost_store::{Bound, Result, Store, StoreError, bind, column, each, read, tenant_text};

/// A user as they stand within the change.
pub fn user(reader: &mut RegistryReader<'_>, sub: &Subject) -> Result<Option<UserRow>> {
    let rows = reader.read(bind!(users::FIND, sub))?;
    rows.first().map(users::user).transpose()
}

pub struct FoundUser {
    /// Which description, from 0.
    pub index: usize,
    /// Whether the name fits; otherwise the subject does.
    pub by_name: bool,
    pub user: UserRow,
}

const FIND_USERS: &str = "
WITH described AS (
    SELECT d.ordinal - 1 AS index, d.sub AS given, d.tenant AS of_tenant,
           lower(normalize(d.username, NFKC)) AS key
    FROM unnest(:subs::text[], :tenants::text[], :usernames::text[])
      WITH ORDINALITY AS d (sub, tenant, username, ordinal)
), named AS (
    SELECT d.index, true AS by_name, u.*, {has ended}
    FROM described d JOIN users u ON u.tenant = d.of_tenant AND u.username_key = d.key
    FOR NO KEY UPDATE OF u
), identified AS (
    SELECT d.index, false AS by_name, u.*, {has ended}
    FROM described d JOIN users u ON u.sub = d.given
    FOR NO KEY UPDATE OF u
)
SELECT * FROM named UNION ALL SELECT * FROM identified";

/// Everybody whom one of the descriptions fits, by name or by subject. Until a change is done
/// nobody else changes them: what it makes of them overwrites nothing that was not compared.
pub fn find_users(
    reader: &mut RegistryReader<'_>,
    described: &[UserEntry],
) -> Result<Vec<FoundUser>> {
    let bound = bind!(
        FIND_USERS,
        subs = each(described, |user| user.subject.as_ref()),
        tenants = each(described, |user| tenant_text(user.tenant.as_ref())),
        usernames = each(described, |user| user.username.as_deref()),
    );
    let mut text = bound.text();
    if !reader.holds_users {
        text = text.replace("FOR NO KEY UPDATE OF u", "");
    }
    let rows = reader.read_as(&text, bound.values)?;
    rows.iter().map(found).collect()
}

fn found(row: &Row) -> Result<FoundUser> {
    let index = usize::try_from(column::<i64>(row, "index")?).unwrap_or(usize::MAX);
    read!(row, FoundUser { by_name; index, user: users::user(row)? })
}

const ALL_USERS: &str = "SELECT u.*, {has ended} FROM users u ORDER BY u.sub";

/// Everybody, by subject.
pub fn users(reader: &mut RegistryReader<'_>) -> Result<Vec<UserRow>> {
    reader.list(bind!(ALL_USERS), users::user)
}

const REMOVED_SUBJECTS: &str =
    "SELECT r.sub FROM removed_subjects r WHERE r.sub = ANY(:subs::text[])";

/// Those of the subjects whose user was removed.
pub fn removed_subjects(
    reader: &mut RegistryReader<'_>,
    subjects: &[&str],
) -> Result<BTreeSet<Subject>> {
    let bound = bind!(REMOVED_SUBJECTS, subs = subjects);
    reader.list(bound, |row| column(row, "sub"))
}

const SUBJECTS_AMONG: &str = "
SELECT s.sub FROM (SELECT u.sub FROM users u UNION ALL SELECT r.sub FROM removed_subjects r) AS s
WHERE s.sub = ANY(:names::text[])";

/// Those of the names that are, or once were, the subject of a user.
pub fn subjects_among(
    reader: &mut RegistryReader<'_>,
    names: &[&str],
) -> Result<BTreeSet<Subject>> {
    reader.list(bind!(SUBJECTS_AMONG, names), |row| column(row, "sub"))
}

const TENANTS_OF_OTHERS: &str =
    "SELECT DISTINCT u.tenant FROM users u WHERE u.tenant <> '' AND u.sub <> ALL(:subs::text[])";

/// Tenants that users other than these belong to.
pub fn tenants_of_others(
    reader: &mut RegistryReader<'_>,
    subjects: &[&str],
) -> Result<BTreeSet<String>> {
    let bound = bind!(TENANTS_OF_OTHERS, subs = subjects);
    reader.list(bound, |row| column(row, "tenant"))
}

/// Another user of the tenant who has the same verified address.
pub fn find_sharing(reader: &mut RegistryReader<'_>, sub: &Subject) -> Result<Option<Subject>> {
    let rows = reader.read(bind!(users::FIND_SHARING, sub))?;
    rows.first().map(|row| column(row, "sub")).transpose()
}

const INSERT: &str = "
WITH added AS (
    INSERT INTO users (sub, tenant, username, username_key, password_hash, enabled, valid_until,
                       claims)
    SELECT :sub::text, :tenant::text, :username::text, lower(normalize(:username::text, NFKC)),
           :password_hash::text, :enabled::bool, :valid_until::timestamptz, :claims::jsonb
    WHERE NOT EXISTS (SELECT FROM removed_subjects r WHERE r.sub = :sub::text)
      AND NOT EXISTS (SELECT FROM clients c WHERE c.client_id = :sub::text)
    RETURNING sub
), {audited added} FROM added";

fn insert_by(new: &UserRow, write: impl FnOnce(Bound<'_>) -> Result<Vec<Row>>) -> Result {
    let added = write(bind!(
        INSERT,
        ..new {
            sub,
            username,
            enabled,
            valid_until
        },
        tenant = tenant_text(new.tenant.as_ref()),
        password_hash = new.password_hash.as_ref().map(SecretText::expose),
        claims = Json(&new.claims)
    ))?;
    if added.is_empty() {
        return Err(StoreError::Taken(String::from("removed_subjects")));
    }
    Ok(())
}

/// Adds a user. `Taken` when subject or name are somebody's, the subject once was, or is a client's
/// name.
pub fn insert(store: &Store, new: &UserRow, audit: &AuditEvent<'_>) -> Result {
    insert_by(new, |bound| store.write_audited(bound, audit))
}

/// Adds a user within a change, with the event that says so. `Taken` as by [`insert`].
pub fn insert_user(
    writer: &mut RegistryWriter<'_>,
    new: &UserRow,
    audit: &AuditEvent<'_>,
) -> Result {
    insert_by(new, |bound| writer.audited(bound, slice::from_ref(audit)))
}

const UPDATE_USER: &str = "
WITH before AS (
    SELECT epoch FROM users WHERE sub = :sub::text FOR UPDATE
)
UPDATE users
SET username = :username::text, username_key = lower(normalize(:username::text, NFKC)),
    tenant = :tenant::text, enabled = :enabled::bool, valid_until = :valid_until::timestamptz,
    claims = :claims::jsonb,
    password_hash = coalesce(:password_hash::text, password_hash), updated_at = clock_timestamp(),
    epoch = CASE WHEN (enabled AND NOT :enabled::bool) OR tenant IS DISTINCT FROM :tenant::text
                      OR coalesce(:password_hash::text <> password_hash,
                                  :password_hash::text IS NOT NULL)
                 THEN new_epoch() ELSE users.epoch END
FROM before WHERE sub = :sub::text
RETURNING users.epoch <> before.epoch AS revoked";

/// Changes a user to this; `false` when there is none. No password leaves the present one.
/// Disabling, another password and another tenant end what was signed in before.
pub fn update_user(writer: &mut RegistryWriter<'_>, user: &UserRow) -> Result<bool> {
    let changed = writer.query(bind!(
        UPDATE_USER,
        ..user {
            sub,
            username,
            enabled,
            valid_until
        },
        tenant = tenant_text(user.tenant.as_ref()),
        claims = Json(&user.claims),
        password_hash = user.password_hash.as_ref().map(SecretText::expose)
    ))?;
    let Some(changed) = changed.first() else {
        return Ok(false);
    };
    if column(changed, "revoked")? {
        writer.revoked_users.push(user.sub.clone());
    }
    Ok(true)
}

const REMOVE_USER: &str = "
WITH removed AS (
    DELETE FROM users WHERE sub = :sub::text RETURNING sub
), called AS (
    UPDATE session_clients SET due_at = clock_timestamp()
    WHERE sub = :sub::text AND due_at IS NULL AND tries = 0
)
INSERT INTO removed_subjects (sub) SELECT sub FROM removed ON CONFLICT DO NOTHING";

/// Removes a user with their consents; the subject is never given again. `false` when there was
/// none.
pub fn remove_user(writer: &mut RegistryWriter<'_>, sub: &Subject) -> Result<bool> {
    Ok(writer.execute(bind!(REMOVE_USER, sub))? > 0)
}

// No step was taken yet.
const ADD_APP: &str = "
WITH changed AS (
    UPDATE users SET factors = factors + 1, strongest_acr = '2' WHERE sub = :sub::text RETURNING sub
), added AS (
    INSERT INTO authenticators (sub, kind, id, secret, last_step)
    SELECT changed.sub, 'totp', '', :secret::bytea, 0 FROM changed
), {audited changed} FROM changed";

/// Gives a new user an app that shows codes.
pub fn add_app(
    writer: &mut RegistryWriter<'_>,
    sub: &Subject,
    sealed: &[u8],
    audit: &AuditEvent<'_>,
) -> Result {
    let bound = bind!(ADD_APP, sub, secret = sealed);
    writer.audited(bound, slice::from_ref(audit)).map(drop)
}
