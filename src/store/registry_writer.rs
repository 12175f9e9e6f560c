//! Changes to the registry: everything of one `apply` in one transaction, together with the version bump that makes
//! every process read anew, and with its audit events.

use std::slice;
use std::time::Duration;

use postgres::types::{Json, ToSql};
use postgres::{Row, Transaction};
use serde_json::{Map, Value};

use super::Store;
use super::audit_chain::{Chain, Together};
use super::audit_events::AuditEvent;
use super::catalogue::{self, CatalogueRow, CatalogueRows};
use super::clients::{self, ClientRow, LongestLifetimes};
use super::endings::CONFIRM;
use super::error::StoreError;
use super::registry_batches::PutClient;
use super::users::{self, NewUser, UserRow};
use super::values::{column, tenant_text};
use crate::protocol::registration::Kind;
use crate::protocol::words::identifiers::{ClientId, Subject, TenantName};
use crate::protocol::words::secret::{SecretBytes, SecretText};

/// Raises the version first: its row's lock lets one change happen at a time.
const BUMP: &str = "UPDATE installation SET registry_version = registry_version + 1 RETURNING clock_timestamp() AS now";

/// A change under way. Dropped without having written, or after an error, it leaves nothing behind.
pub struct RegistryWriter<'a> {
    transaction: Transaction<'a>,
    chain: Chain,
    wrote: bool,
    revoked_users: Vec<String>,
    revoked_clients: Vec<String>,
}

impl Store {
    /// Runs `change` in one transaction, alone among changes, and bumps the registry's version with it. When `change`
    /// fails or writes nothing, nothing happens at all. Not retried: it may have been done when the connection breaks.
    pub fn change_registry<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&mut RegistryWriter<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let (answer, chain) = self.administer(|client| {
            let mut transaction = client.transaction().map_err(StoreError::from)?;
            let alone = transaction.query_opt(BUMP, &[]).map_err(|error| busy(StoreError::from(error)))?;
            let alone =
                alone.ok_or_else(|| StoreError::Refused(String::from("no installation: run `gatepost migrate`")))?;
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
                writer.call_clients()?;
                writer.transaction.commit().map_err(StoreError::from)?;
            }
            Ok::<_, E>((answer, writer.wrote.then_some(writer.chain)))
        })?;
        chain.into_iter().for_each(|mut chain| chain.commit());
        Ok(answer)
    }
}

/// Whoever holds the lock for longer than we wait is another change.
fn busy(error: StoreError) -> StoreError {
    if error.is_conflict() {
        return StoreError::Conflict(String::from(
            "another change to the registry is under way; nothing was done, try again",
        ));
    }
    error
}

const CALL_CLIENTS: &str = "
UPDATE session_clients SET due_at = clock_timestamp()
WHERE (sub = ANY($1::text[]) OR client_id = ANY($2::text[])) AND due_at IS NULL AND tries = 0";

impl RegistryWriter<'_> {
    /// Has the clients called that this change concerns: at its end, so that who signed in meanwhile is among them.
    fn call_clients(&mut self) -> Result<(), StoreError> {
        if !self.revoked_users.is_empty() || !self.revoked_clients.is_empty() {
            self.transaction.execute(CALL_CLIENTS, &[&self.revoked_users, &self.revoked_clients])?;
        }
        Ok(())
    }
}

const REVOKE_CLIENT: &str = "
WITH revoked AS (
    UPDATE clients SET epoch = new_epoch() WHERE client_id = $1::text RETURNING client_id
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM revoked, json_populate_recordset(NULL::audit_events, $2::json) AS a
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited FROM revoked";

impl RegistryWriter<'_> {
    pub fn client(&mut self, client_id: &ClientId) -> Result<Option<ClientRow>, StoreError> {
        Ok(clients::versioned(&self.transaction.query(clients::FIND, &[&client_id.as_str()])?)?.value)
    }

    pub fn clients(&mut self) -> Result<Vec<ClientRow>, StoreError> {
        clients::clients(&self.transaction.query(clients::LIST, &[])?)
    }

    /// The longest lifetimes registered, this change included.
    pub fn longest_lifetimes(&mut self) -> Result<LongestLifetimes, StoreError> {
        clients::lifetimes(&self.transaction.query_one(clients::LONGEST_LIFETIMES, &[])?)
    }

    /// Registers a client or replaces its registration. Disabling ends what was issued to it.
    pub fn upsert_client(&mut self, client_id: &ClientId, metadata: &Value, enabled: bool) -> Result<(), StoreError> {
        self.upsert_clients(&[PutClient { client_id, metadata, enabled }])
    }

    pub(super) fn note_revoked_client(&mut self, client_id: String) {
        self.revoked_clients.push(client_id);
    }

    /// Ends all that was granted or issued to this client until now, and has it called about the sessions it was in; `false`
    /// when there is no such client. A change of the registry: what a process issues by the registration that it holds is dead
    /// until it has read the new epoch.
    pub fn revoke_client(&mut self, client_id: &ClientId, audit: &AuditEvent<'_>) -> Result<bool, StoreError> {
        let revoked = self.audited(REVOKE_CLIENT, &[&client_id.as_str()], slice::from_ref(audit))?;
        self.note_revoked_client(client_id.to_string());
        Ok(!revoked.is_empty())
    }
}

const UPSERT_ENTRY: &str = "
INSERT INTO catalogue_entries (kind, name, document, sealed_secret) VALUES ($1::text, $2::text, $3::jsonb, $4::bytea)
ON CONFLICT (kind, name) DO UPDATE
SET document = excluded.document, sealed_secret = coalesce(excluded.sealed_secret, catalogue_entries.sealed_secret),
    updated_at = clock_timestamp()";

const REMOVE_ENTRY: &str = "
WITH secrets AS (DELETE FROM resource_secrets WHERE $1::text = 'resource' AND resource = $2::text)
DELETE FROM catalogue_entries WHERE kind = $1::text AND name = $2::text RETURNING document";

impl RegistryWriter<'_> {
    pub fn catalogue(&mut self) -> Result<CatalogueRows, StoreError> {
        Ok(catalogue::versioned(&self.transaction.query(catalogue::LOAD, &[])?)?.value)
    }

    /// Registers an entry or replaces it; its `secrets` are not touched, nor its sealed secret where there is no other.
    pub fn upsert_entry(&mut self, entry: &CatalogueRow) -> Result<(), StoreError> {
        let sealed = entry.sealed_secret.as_ref().map(SecretBytes::expose);
        self.execute(UPSERT_ENTRY, &[&entry.kind.as_str(), &entry.name, &Json(&entry.document), &sealed]).map(drop)
    }

    pub fn remove_entry(&mut self, kind: Kind, name: &str) -> Result<Option<Value>, StoreError> {
        self.wrote = true;
        let removed = self.transaction.query_opt(REMOVE_ENTRY, &[&kind.as_str(), &name])?;
        removed.map(|row| Ok(column::<Json<Value>>(&row, "document")?.0)).transpose()
    }
}

const FIND_USER_BY_NAME: &str = "
SELECT u.* FROM users u
WHERE u.tenant = $1::text AND (u.username_key = lower(normalize($2::text, NFKC)) OR (u.username IS NULL AND u.sub = $2::text))
ORDER BY u.username IS NULL LIMIT 1 FOR UPDATE";

const UPDATE_USER: &str = "
WITH before AS (
    SELECT epoch FROM users WHERE sub = $1::text FOR UPDATE
)
UPDATE users
SET username = $2::text, username_key = lower(normalize($2::text, NFKC)), tenant = $3::text, enabled = $4::bool,
    claims = $5::jsonb, password_hash = coalesce($6::text, password_hash), updated_at = clock_timestamp(),
    epoch = CASE WHEN (enabled AND NOT $4::bool) OR tenant IS DISTINCT FROM $3::text
                      OR coalesce($6::text <> password_hash, $6::text IS NOT NULL)
                 THEN new_epoch() ELSE users.epoch END
FROM before WHERE sub = $1::text
RETURNING users.epoch <> before.epoch AS revoked";

const REMOVE_USER: &str = "
WITH removed AS (DELETE FROM users WHERE sub = $1::text RETURNING sub),
     called AS (UPDATE session_clients SET due_at = clock_timestamp() WHERE sub = $1::text AND due_at IS NULL AND tries = 0)
INSERT INTO removed_subjects (sub) SELECT sub FROM removed ON CONFLICT DO NOTHING";

/// A user as it shall be.
#[derive(Clone, Debug)]
pub struct UserChange<'a> {
    pub sub: &'a Subject,
    pub username: Option<&'a str>,
    pub tenant: Option<&'a TenantName>,
    pub enabled: bool,
    pub claims: &'a Map<String, Value>,
    /// PHC string; `None` leaves the present one.
    pub password_hash: Option<&'a SecretText>,
}

impl RegistryWriter<'_> {
    pub fn user(&mut self, sub: &Subject) -> Result<Option<UserRow>, StoreError> {
        self.transaction.query_opt(users::FIND, &[&sub.as_str()])?.as_ref().map(users::user).transpose()
    }

    /// Reads a user by canonical name within a tenant, or one without a name by subject, who then stays so until this change
    /// is done.
    pub fn user_by_name(&mut self, tenant: Option<&TenantName>, username: &str) -> Result<Option<UserRow>, StoreError> {
        let row = self.transaction.query_opt(FIND_USER_BY_NAME, &[&tenant_text(tenant), &username])?;
        row.as_ref().map(users::user).transpose()
    }

    /// Adds a user, with the event that says so. `Taken` when subject or name are somebody's, the subject once was, or is a
    /// client's name.
    pub fn insert_user(&mut self, new: &NewUser, audit: &AuditEvent<'_>) -> Result<(), StoreError> {
        self.wrote = true;
        let (tenant, hash) = (tenant_text(new.tenant.as_ref()), new.password_hash.as_ref().map(SecretText::expose));
        let values: [&(dyn ToSql + Sync); 6] =
            [&new.sub.as_str(), &tenant, &new.username, &hash, &new.enabled, &Json(&new.claims)];
        let added = self.audited(users::INSERT, &values, slice::from_ref(audit))?;
        added.first().map(drop).ok_or_else(|| StoreError::Taken(String::from("removed_subjects")))
    }

    /// Changes a user; `false` when there is none. Disabling and another password end what was signed in before.
    pub fn update_user(&mut self, change: &UserChange<'_>) -> Result<bool, StoreError> {
        let hash = change.password_hash.map(SecretText::expose);
        let values: [&(dyn ToSql + Sync); 6] = [
            &change.sub.as_str(),
            &change.username,
            &tenant_text(change.tenant),
            &change.enabled,
            &Json(change.claims),
            &hash,
        ];
        let changed = self.query(UPDATE_USER, &values)?;
        let Some(changed) = changed.first() else { return Ok(false) };
        if column(changed, "revoked")? {
            self.revoked_users.push(change.sub.to_string());
        }
        Ok(true)
    }

    /// Removes a user with their consents; the subject is never given again. `false` when there was none.
    pub fn remove_user(&mut self, sub: &Subject) -> Result<bool, StoreError> {
        Ok(self.execute(REMOVE_USER, &[&sub.as_str()])? > 0)
    }
}

const VERSION: &str = "SELECT registry_version FROM installation";

impl<'a> RegistryWriter<'a> {
    /// For a change that finds done what it was to do: where commits wait for standbys it commits all the same, and waits.
    pub fn confirm(&mut self) -> Result<(), StoreError> {
        self.wrote |= column::<bool>(&self.transaction.query_one(CONFIRM, &[])?, "waits")?;
        Ok(())
    }

    /// Runs a statement that writes events: their rows are its last parameter.
    pub(super) fn audited(
        &mut self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
        events: &[AuditEvent<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.wrote = true;
        let links = self.chain.link(events, Together::InOrder);
        let rows = self.transaction.query(sql, &[values, &[&links.parameter()]].concat())?;
        self.chain.advance(&links, &rows)?;
        Ok(rows)
    }

    /// The version the registry will have after this change.
    pub fn registry_version(&mut self) -> Result<i64, StoreError> {
        column(&self.transaction.query_one(VERSION, &[])?, "registry_version")
    }

    /// The transaction itself, for what belongs to the same change without being registry: partitions.
    pub(super) fn transaction(&mut self) -> &mut Transaction<'a> {
        self.wrote = true;
        &mut self.transaction
    }

    /// The transaction for a look that changes nothing.
    pub(super) fn reading(&mut self) -> &mut Transaction<'a> {
        &mut self.transaction
    }

    pub(super) fn query(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        self.wrote = true;
        Ok(self.transaction.query(sql, values)?)
    }

    pub(super) fn execute(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<u64, StoreError> {
        self.wrote = true;
        Ok(self.transaction.execute(sql, values)?)
    }
}
