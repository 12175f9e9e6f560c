//! What a change of the registry reads of users, and does to them.

use std::collections::BTreeSet;
use std::slice;

use postgres::Row;
use postgres::types::Json;

use super::audit_event::AuditEvent;
use super::error::StoreError;
use super::registry_writer::{RegistryReader, RegistryWriter};
use super::statement::bind;
use super::users::{self, UserRow};
use super::values::{column, read, tenant_text};
use gatepost_protocol::registration::user::UserEntry;
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::secret::SecretText;

const FIND_USER_BY_NAME: &str = "
SELECT u.* FROM users u
WHERE u.tenant = :tenant::text
  AND (u.username_key = lower(normalize(:username::text, NFKC))
       OR (u.username IS NULL AND u.sub = :username::text))
ORDER BY u.username IS NULL LIMIT 1 FOR UPDATE";

const UPDATE_USER: &str = "
WITH before AS (
    SELECT epoch FROM users WHERE sub = :sub::text FOR UPDATE
)
UPDATE users
SET username = :username::text, username_key = lower(normalize(:username::text, NFKC)),
    tenant = :tenant::text, enabled = :enabled::bool, claims = :claims::jsonb,
    password_hash = coalesce(:password_hash::text, password_hash), updated_at = clock_timestamp(),
    epoch = CASE WHEN (enabled AND NOT :enabled::bool) OR tenant IS DISTINCT FROM :tenant::text
                      OR coalesce(:password_hash::text <> password_hash,
                                  :password_hash::text IS NOT NULL)
                 THEN new_epoch() ELSE users.epoch END
FROM before WHERE sub = :sub::text
RETURNING users.epoch <> before.epoch AS revoked";

const REMOVE_USER: &str = "
WITH removed AS (
    DELETE FROM users WHERE sub = :sub::text RETURNING sub
), called AS (
    UPDATE session_clients SET due_at = clock_timestamp()
    WHERE sub = :sub::text AND due_at IS NULL AND tries = 0
)
INSERT INTO removed_subjects (sub) SELECT sub FROM removed ON CONFLICT DO NOTHING";

/// Users of one tenant whose names are the same in this database.
#[derive(Clone, Debug)]
pub struct Clash {
    pub subs: Vec<Subject>,
    pub usernames: Vec<String>,
}

const CLASHES: &str = "
SELECT array_agg(u.sub ORDER BY u.sub) AS subs, array_agg(u.username ORDER BY u.sub) AS usernames
FROM users u WHERE u.username IS NOT NULL
GROUP BY u.tenant, lower(normalize(u.username, NFKC)) HAVING count(*) > 1
ORDER BY subs LIMIT 100";

// First to what nobody else has: a key that one gives up may become another's.
const FREE_KEYS: &str = "
UPDATE users SET username_key = ' ' || sub
WHERE username_key <> lower(normalize(username, NFKC))";

const KEY_NAMES: &str = "
UPDATE users SET username_key = lower(normalize(username, NFKC))
WHERE username_key <> lower(normalize(username, NFKC))";

#[derive(Clone, Debug)]
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
    SELECT d.index, true AS by_name, u.*
    FROM described d JOIN users u ON u.tenant = d.of_tenant AND u.username_key = d.key
    FOR NO KEY UPDATE OF u
), identified AS (
    SELECT d.index, false AS by_name, u.*
    FROM described d JOIN users u ON u.sub = d.given
    FOR NO KEY UPDATE OF u
)
SELECT * FROM named UNION ALL SELECT * FROM identified";

const ALL_USERS: &str = "SELECT u.* FROM users u ORDER BY u.sub";

const REMOVED_SUBJECTS: &str =
    "SELECT r.sub FROM removed_subjects r WHERE r.sub = ANY(:subs::text[])";

const SUBJECTS_AMONG: &str = "
SELECT s.sub FROM (SELECT u.sub FROM users u UNION ALL SELECT r.sub FROM removed_subjects r) AS s
WHERE s.sub = ANY(:names::text[])";

const TENANTS_OF_OTHERS: &str =
    "SELECT DISTINCT u.tenant FROM users u WHERE u.tenant <> '' AND u.sub <> ALL(:subs::text[])";

impl RegistryReader<'_> {
    pub fn user(&mut self, sub: &Subject) -> Result<Option<UserRow>, StoreError> {
        let rows = self.read(bind!(users::FIND, sub))?;
        rows.first().map(users::user).transpose()
    }

    /// Who would have one key, as this database turns capitals into small letters; the first
    /// hundred of them. Reads all users, however long that takes.
    pub fn clashes(&mut self) -> Result<Vec<Clash>, StoreError> {
        self.transaction
            .batch_execute("SET LOCAL statement_timeout = 0")?;
        self.list(bind!(CLASHES), |row| read!(row, Clash { subs, usernames; }))
    }

    /// Everybody whom one of the descriptions fits, by name or by subject. Until a change is done
    /// nobody else changes them: what it makes of them overwrites nothing that was not compared.
    pub fn find_users(&mut self, described: &[UserEntry]) -> Result<Vec<FoundUser>, StoreError> {
        let mut subs = Vec::new();
        let mut tenants = Vec::new();
        let mut usernames = Vec::new();
        for user in described {
            subs.push(user.subject.as_ref());
            tenants.push(tenant_text(user.tenant.as_ref()));
            usernames.push(user.username.as_deref());
        }
        let bound = bind!(FIND_USERS, subs, tenants, usernames);
        let mut text = bound.text();
        if !self.holds_users {
            text = text.replace("FOR NO KEY UPDATE OF u", "");
        }
        self.require_time()?;
        let rows = self.transaction.query(&text, bound.values)?;
        rows.iter().map(found).collect()
    }

    pub fn users(&mut self) -> Result<Vec<UserRow>, StoreError> {
        self.list(bind!(ALL_USERS), users::user)
    }

    /// Those of the subjects whose user was removed.
    pub fn removed_subjects(&mut self, subjects: &[&str]) -> Result<BTreeSet<Subject>, StoreError> {
        let bound = bind!(REMOVED_SUBJECTS, subs = subjects);
        self.list(bound, |row| column(row, "sub"))
    }

    /// Those of the names that are, or once were, the subject of a user.
    pub fn subjects_among(&mut self, names: &[&str]) -> Result<BTreeSet<Subject>, StoreError> {
        self.list(bind!(SUBJECTS_AMONG, names), |row| column(row, "sub"))
    }

    /// Tenants that users other than these belong to.
    pub fn tenants_of_others(&mut self, subjects: &[&str]) -> Result<BTreeSet<String>, StoreError> {
        let bound = bind!(TENANTS_OF_OTHERS, subs = subjects);
        self.list(bound, |row| column(row, "tenant"))
    }

    /// Another user of the tenant who has the same verified address.
    pub fn find_sharing(&mut self, sub: &Subject) -> Result<Option<Subject>, StoreError> {
        let rows = self.read(bind!(users::FIND_SHARING, sub))?;
        rows.first().map(|row| column(row, "sub")).transpose()
    }
}

impl RegistryWriter<'_> {
    /// Reads a user by canonical name within a tenant, or one without a name by subject, who then
    /// stays so until this change is done.
    pub fn user_by_name(
        &mut self,
        tenant: Option<&TenantName>,
        username: &str,
    ) -> Result<Option<UserRow>, StoreError> {
        let tenant = tenant_text(tenant);
        let rows = self
            .reader
            .read(bind!(FIND_USER_BY_NAME, tenant, username))?;
        rows.first().map(users::user).transpose()
    }

    /// Adds a user, with the event that says so. `Taken` as by [`users::insert`].
    pub fn insert_user(&mut self, new: &UserRow, audit: &AuditEvent<'_>) -> Result<(), StoreError> {
        new.insert_by(|bound| self.audited(bound, slice::from_ref(audit)))
    }

    /// Changes a user to this; `false` when there is none. No password leaves the present one.
    /// Disabling, another password and another tenant end what was signed in before.
    pub fn update_user(&mut self, user: &UserRow) -> Result<bool, StoreError> {
        let changed = self.query(bind!(
            UPDATE_USER,
            ..user {
                sub,
                username,
                enabled
            },
            tenant = tenant_text(user.tenant.as_ref()),
            claims = Json(&user.claims),
            password_hash = user.password_hash.as_ref().map(SecretText::expose)
        ))?;
        let Some(changed) = changed.first() else {
            return Ok(false);
        };
        if column(changed, "revoked")? {
            self.revoked_users.push(user.sub.clone());
        }
        Ok(true)
    }

    /// Makes the keys of all user names anew; answers how many changed.
    pub fn key_names(&mut self) -> Result<u64, StoreError> {
        self.execute(bind!(FREE_KEYS))?;
        let changed = self.execute(bind!(KEY_NAMES))?;
        self.keep_lowered()?;
        Ok(changed)
    }

    /// Makes the indexes of users anew, among them that of addresses, which keeps them in small
    /// letters. Nobody can use them meanwhile.
    pub fn index_users(&mut self) -> Result<(), StoreError> {
        Ok(self
            .reader
            .transaction
            .batch_execute("REINDEX TABLE users")?)
    }

    /// Removes a user with their consents; the subject is never given again. `false` when there was
    /// none.
    pub fn remove_user(&mut self, sub: &Subject) -> Result<bool, StoreError> {
        Ok(self.execute(bind!(REMOVE_USER, sub))? > 0)
    }
}

fn found(row: &Row) -> Result<FoundUser, StoreError> {
    let index = usize::try_from(column::<i64>(row, "index")?).unwrap_or(usize::MAX);
    read!(row, FoundUser { by_name; index, user: users::user(row)? })
}
