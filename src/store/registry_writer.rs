//! Changes to the registry: everything of one `apply` in one transaction, together with the version
//! bump that makes every process read anew, and with its audit events.

use std::collections::BTreeSet;
use std::slice;
use std::time::Duration;

use postgres::types::Json;
use postgres::{Row, Transaction};

use super::Store;
use super::audit_chain::{Chain, Together};
use super::audit_events::AuditEvent;
use super::endings::CONFIRM;
use super::error::StoreError;
use super::statement::{Bound, bind};
use super::users::{self, UserRow};
use super::values::{column, read, tenant_text};
use crate::protocol::registration::user::UserEntry;
use crate::protocol::words::identifiers::{ClientId, Subject, TenantName};
use crate::protocol::words::secret::SecretText;

/// Raises the version first: its row's lock lets one change happen at a time.
const BUMP: &str = "UPDATE installation SET registry_version = registry_version + 1 RETURNING clock_timestamp() AS now";

/// A change under way. Dropped without having written, or after an error, it leaves nothing behind.
pub struct RegistryWriter<'a> {
    pub(super) transaction: Transaction<'a>,
    chain: Chain,
    pub(super) wrote: bool,
    revoked_users: Vec<Subject>,
    pub(super) revoked_clients: Vec<ClientId>,
}

impl Store {
    /// Runs `change` in one transaction, alone among changes, and bumps the registry's version with
    /// it. When `change` fails or writes nothing, nothing happens at all. Not retried: it may have
    /// been done when the connection breaks.
    pub fn change_registry<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&mut RegistryWriter<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let (answer, chain) = self.administer(|client| {
            let mut transaction = client.transaction().map_err(StoreError::from)?;
            // Another change holds the lock for longer than we wait.
            let alone = transaction.query_opt(BUMP, &[]).map_err(StoreError::from);
            if alone.as_ref().is_err_and(StoreError::is_conflict) {
                let cause =
                    "another change to the registry is under way; nothing was done, try again";
                return Err(StoreError::Conflict(String::from(cause)).into());
            }
            let alone = alone?.ok_or_else(|| {
                StoreError::Refused(String::from("no installation: run `gatepost migrate`"))
            })?;
            self.clock().adjust(column(&alone, "now")?, Duration::ZERO);
            let mut writer = RegistryWriter {
                transaction,
                chain: self.chains().begin_tentatively(),
                wrote: false,
                revoked_users: Vec::new(),
                revoked_clients: Vec::new(),
            };
            let answer = change(&mut writer)?;
            if writer.wrote {
                // Last, so that people who signed in meanwhile are among them.
                if !writer.revoked_users.is_empty() || !writer.revoked_clients.is_empty() {
                    writer.call_clients()?;
                }
                writer.transaction.commit().map_err(StoreError::from)?;
            }
            Ok::<_, E>((answer, writer.wrote.then_some(writer.chain)))
        })?;
        chain.into_iter().for_each(|mut chain| chain.commit());
        Ok(answer)
    }
}

const CALL_CLIENTS: &str = "
UPDATE session_clients SET due_at = clock_timestamp()
WHERE (sub = ANY(:subs::text[]) OR client_id = ANY(:client_ids::text[])) AND due_at IS NULL AND tries = 0";

const FIND_USER_BY_NAME: &str = "
SELECT u.* FROM users u
WHERE u.tenant = :tenant::text AND (u.username_key = lower(normalize(:username::text, NFKC)) OR (u.username IS NULL AND u.sub = :username::text))
ORDER BY u.username IS NULL LIMIT 1 FOR UPDATE";

const UPDATE_USER: &str = "
WITH before AS (
    SELECT epoch FROM users WHERE sub = :sub::text FOR UPDATE
)
UPDATE users
SET username = :username::text, username_key = lower(normalize(:username::text, NFKC)), tenant = :tenant::text, enabled = :enabled::bool,
    claims = :claims::jsonb, password_hash = coalesce(:password_hash::text, password_hash), updated_at = clock_timestamp(),
    epoch = CASE WHEN (enabled AND NOT :enabled::bool) OR tenant IS DISTINCT FROM :tenant::text
                      OR coalesce(:password_hash::text <> password_hash, :password_hash::text IS NOT NULL)
                 THEN new_epoch() ELSE users.epoch END
FROM before WHERE sub = :sub::text
RETURNING users.epoch <> before.epoch AS revoked";

const REMOVE_USER: &str = "
WITH removed AS (DELETE FROM users WHERE sub = :sub::text RETURNING sub),
     called AS (UPDATE session_clients SET due_at = clock_timestamp() WHERE sub = :sub::text AND due_at IS NULL AND tries = 0)
INSERT INTO removed_subjects (sub) SELECT sub FROM removed ON CONFLICT DO NOTHING";

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
    SELECT d.ordinal - 1 AS index, d.sub AS given, d.tenant AS of_tenant, lower(normalize(d.username, NFKC)) AS key
    FROM unnest(:subs::text[], :tenants::text[], :usernames::text[]) WITH ORDINALITY AS d (sub, tenant, username, ordinal)
)
SELECT d.index, true AS by_name, u.* FROM described d JOIN users u ON u.tenant = d.of_tenant AND u.username_key = d.key
UNION ALL
SELECT d.index, false AS by_name, u.* FROM described d JOIN users u ON u.sub = d.given";

const ALL_USERS: &str = "SELECT u.* FROM users u ORDER BY u.sub";

const REMOVED_SUBJECTS: &str =
    "SELECT r.sub FROM removed_subjects r WHERE r.sub = ANY(:subs::text[])";

const SUBJECTS_AMONG: &str = "
SELECT s.sub FROM (SELECT u.sub FROM users u UNION ALL SELECT r.sub FROM removed_subjects r) AS s
WHERE s.sub = ANY(:names::text[])";

const TENANTS_OF_OTHERS: &str =
    "SELECT DISTINCT u.tenant FROM users u WHERE u.tenant <> '' AND u.sub <> ALL(:subs::text[])";

impl RegistryWriter<'_> {
    pub fn user(&mut self, sub: &Subject) -> Result<Option<UserRow>, StoreError> {
        let rows = self.read(bind!(users::FIND, sub))?;
        rows.first().map(users::user).transpose()
    }

    /// Reads a user by canonical name within a tenant, or one without a name by subject, who then
    /// stays so until this change is done.
    pub fn user_by_name(
        &mut self,
        tenant: Option<&TenantName>,
        username: &str,
    ) -> Result<Option<UserRow>, StoreError> {
        let tenant = tenant_text(tenant);
        let rows = self.read(bind!(FIND_USER_BY_NAME, tenant, username))?;
        rows.first().map(users::user).transpose()
    }

    /// Everybody whom one of the descriptions fits, by name or by subject.
    pub fn find_users(&mut self, described: &[UserEntry]) -> Result<Vec<FoundUser>, StoreError> {
        let subs: Vec<Option<&Subject>> =
            described.iter().map(|user| user.subject.as_ref()).collect();
        let tenants: Vec<&str> = described
            .iter()
            .map(|user| tenant_text(user.tenant.as_ref()))
            .collect();
        let usernames: Vec<Option<&str>> = described
            .iter()
            .map(|user| user.username.as_deref())
            .collect();
        let rows = self.read(bind!(FIND_USERS, subs, tenants, usernames))?;
        rows.iter().map(found).collect()
    }

    pub fn users(&mut self) -> Result<Vec<UserRow>, StoreError> {
        self.read(bind!(ALL_USERS))?
            .iter()
            .map(users::user)
            .collect()
    }

    /// Those of the subjects whose user was removed.
    pub fn removed_subjects(&mut self, subjects: &[&str]) -> Result<BTreeSet<Subject>, StoreError> {
        self.read(bind!(REMOVED_SUBJECTS, subs = subjects))?
            .iter()
            .map(|row| column(row, "sub"))
            .collect()
    }

    /// Those of the names that are, or once were, the subject of a user.
    pub fn subjects_among(&mut self, names: &[&str]) -> Result<BTreeSet<Subject>, StoreError> {
        self.read(bind!(SUBJECTS_AMONG, names))?
            .iter()
            .map(|row| column(row, "sub"))
            .collect()
    }

    /// Tenants that users other than these belong to.
    pub fn tenants_of_others(&mut self, subjects: &[&str]) -> Result<BTreeSet<String>, StoreError> {
        self.read(bind!(TENANTS_OF_OTHERS, subs = subjects))?
            .iter()
            .map(|row| column(row, "tenant"))
            .collect()
    }

    /// Adds a user, with the event that says so. `Taken` as by [`users::insert`].
    pub fn insert_user(&mut self, new: &UserRow, audit: &AuditEvent<'_>) -> Result<(), StoreError> {
        new.insert_by(|bound| self.audited(bound, slice::from_ref(audit)))
    }

    /// Changes a user to this; `false` when there is none. No password leaves the present one.
    /// Disabling and another password end what was signed in before.
    pub fn update_user(&mut self, user: &UserRow) -> Result<bool, StoreError> {
        let changed = self.query(bind!(
            UPDATE_USER,
            sub = user.sub,
            username = user.username,
            tenant = tenant_text(user.tenant.as_ref()),
            enabled = user.enabled,
            claims = Json(&user.claims),
            password_hash = user.password_hash.as_ref().map(SecretText::expose),
        ))?;
        let Some(changed) = changed.first() else {
            return Ok(false);
        };
        if column(changed, "revoked")? {
            self.revoked_users.push(user.sub.clone());
        }
        Ok(true)
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

const VERSION: &str = "SELECT registry_version FROM installation";

impl RegistryWriter<'_> {
    /// For a change that finds its work done: where commits wait for standbys it commits all the
    /// same, and waits.
    pub fn confirm(&mut self) -> Result<(), StoreError> {
        self.wrote |= column::<bool>(&self.read_one(bind!(CONFIRM))?, "waits")?;
        Ok(())
    }

    /// Runs a statement that writes events: their rows are its last parameter.
    pub(super) fn audited(
        &mut self,
        bound: Bound<'_>,
        events: &[AuditEvent<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let mut links = self.chain.link(events, Together::InOrder);
        let rows = self.query(Bound {
            values: &[bound.values, &[&links.0]].concat(),
            ..bound
        })?;
        self.chain.advance(&mut links, &rows)?;
        Ok(rows)
    }

    pub fn registry_version(&mut self) -> Result<i64, StoreError> {
        column(&self.read_one(bind!(VERSION))?, "registry_version")
    }

    pub(super) fn read(&mut self, bound: Bound<'_>) -> Result<Vec<Row>, StoreError> {
        Ok(self.transaction.query(&bound.text(), bound.values)?)
    }

    pub(super) fn read_one(&mut self, bound: Bound<'_>) -> Result<Row, StoreError> {
        Ok(self.transaction.query_one(&bound.text(), bound.values)?)
    }

    pub(super) fn query(&mut self, bound: Bound<'_>) -> Result<Vec<Row>, StoreError> {
        self.wrote = true;
        self.read(bound)
    }

    pub(super) fn execute(&mut self, bound: Bound<'_>) -> Result<u64, StoreError> {
        self.wrote = true;
        Ok(self.transaction.execute(&bound.text(), bound.values)?)
    }

    fn call_clients(&mut self) -> Result<(), StoreError> {
        let bound = bind!(
            CALL_CLIENTS,
            subs = self.revoked_users,
            client_ids = self.revoked_clients
        );
        Ok(self
            .transaction
            .execute(&bound.text(), bound.values)
            .map(drop)?)
    }
}
