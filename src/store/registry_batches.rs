//! Many rows at once within one change: what `apply` reads to compare and writes when thousands of objects differ.

use std::collections::{BTreeMap, BTreeSet};

use postgres::types::Json;
use serde_json::{Value, json};

use super::clients::SecretRow;
use super::error::StoreError;
use super::registry_writer::RegistryWriter;
use super::users::{self, UserRow};
use super::values::{column, subject, tenant_text};
use crate::protocol::registration::Kind;
use crate::protocol::registration::user::UserEntry;
use crate::protocol::words::identifiers::{ClientId, Subject};

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
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS d (sub, tenant, username, ordinal)
)
SELECT d.index, true AS by_name, u.* FROM described d JOIN users u ON u.tenant = d.of_tenant AND u.username_key = d.key
UNION ALL
SELECT d.index, false AS by_name, u.* FROM described d JOIN users u ON u.sub = d.given";

const ALL_USERS: &str = "SELECT u.* FROM users u ORDER BY u.sub";

const REMOVED_SUBJECTS: &str = "SELECT r.sub FROM removed_subjects r WHERE r.sub = ANY($1::text[])";

const SUBJECTS_AMONG: &str = "
SELECT s.sub FROM (SELECT u.sub FROM users u UNION ALL SELECT r.sub FROM removed_subjects r) AS s
WHERE s.sub = ANY($1::text[])";

const TENANTS_OF_OTHERS: &str =
    "SELECT DISTINCT u.tenant FROM users u WHERE u.tenant <> '' AND u.sub <> ALL($1::text[])";

impl RegistryWriter<'_> {
    /// Everybody whom one of the descriptions fits, by name or by subject.
    pub fn find_users(&mut self, described: &[UserEntry]) -> Result<Vec<FoundUser>, StoreError> {
        let subjects: Vec<Option<&str>> =
            described.iter().map(|user| user.subject.as_ref().map(Subject::as_str)).collect();
        let tenants: Vec<&str> = described.iter().map(|user| tenant_text(user.tenant.as_ref())).collect();
        let usernames: Vec<Option<&str>> = described.iter().map(|user| user.username.as_deref()).collect();
        let rows = self.reading().query(FIND_USERS, &[&subjects, &tenants, &usernames])?;
        let found = rows.iter().map(|row| {
            let index = usize::try_from(column::<i64>(row, "index")?).unwrap_or(usize::MAX);
            Ok(FoundUser { index, by_name: column(row, "by_name")?, user: users::user(row)? })
        });
        found.collect()
    }

    pub fn users(&mut self) -> Result<Vec<UserRow>, StoreError> {
        self.reading().query(ALL_USERS, &[])?.iter().map(users::user).collect()
    }

    /// Those of the subjects whose user was removed.
    pub fn removed_subjects(&mut self, subjects: &[&str]) -> Result<BTreeSet<Subject>, StoreError> {
        self.reading().query(REMOVED_SUBJECTS, &[&subjects])?.iter().map(|row| subject(row, "sub")).collect()
    }

    /// Those of the names that are, or once were, the subject of a user.
    pub fn subjects_among(&mut self, names: &[&str]) -> Result<BTreeSet<Subject>, StoreError> {
        self.reading().query(SUBJECTS_AMONG, &[&names])?.iter().map(|row| subject(row, "sub")).collect()
    }

    /// Tenants that users other than these belong to.
    pub fn tenants_of_others(&mut self, subjects: &[&str]) -> Result<BTreeSet<String>, StoreError> {
        self.reading().query(TENANTS_OF_OTHERS, &[&subjects])?.iter().map(|row| column(row, "tenant")).collect()
    }
}

const UPSERT_CLIENTS: &str = "
WITH put AS MATERIALIZED (
    SELECT c.client_id, c.metadata, c.enabled
    FROM jsonb_to_recordset($1::jsonb) AS c (client_id text, metadata jsonb, enabled boolean)
), written AS (
    INSERT INTO clients (client_id, metadata, enabled) SELECT client_id, metadata, enabled FROM put
    ON CONFLICT (client_id) DO UPDATE
    SET metadata = excluded.metadata, enabled = excluded.enabled, updated_at = clock_timestamp(),
        epoch = CASE WHEN clients.enabled AND NOT excluded.enabled THEN new_epoch() ELSE clients.epoch END
)
SELECT client_id FROM clients JOIN put USING (client_id) WHERE clients.enabled AND NOT put.enabled";

const REMOVE_CLIENTS: &str = "DELETE FROM clients WHERE client_id = ANY($1::text[]) RETURNING client_id, metadata";

const PUT_CLIENT_SECRETS: &str = "
INSERT INTO client_secrets (client_id, id, sealed_digest, description, expires_at)
SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::text[], $5::timestamptz[])
ON CONFLICT (client_id, id) DO UPDATE
SET sealed_digest = excluded.sealed_digest, description = excluded.description, expires_at = excluded.expires_at";

const PUT_RESOURCE_SECRETS: &str = "
INSERT INTO resource_secrets (resource, id, sealed_digest, description, expires_at)
SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::text[], $5::timestamptz[])
ON CONFLICT (resource, id) DO UPDATE
SET sealed_digest = excluded.sealed_digest, description = excluded.description, expires_at = excluded.expires_at";

const REMOVE_CLIENT_SECRETS: &str = "
DELETE FROM client_secrets s USING unnest($1::text[], $2::bytea[]) AS g (client_id, id)
WHERE s.client_id = g.client_id AND s.id = g.id";

const REMOVE_RESOURCE_SECRETS: &str = "
DELETE FROM resource_secrets s USING unnest($1::text[], $2::bytea[]) AS g (resource, id)
WHERE s.resource = g.resource AND s.id = g.id";

const ERASE_ENTRY_SECRET: &str = "
UPDATE catalogue_entries SET sealed_secret = NULL, updated_at = clock_timestamp() WHERE kind = $1::text AND name = $2::text";

#[derive(Clone, Copy, Debug)]
pub struct PutClient<'a> {
    pub client_id: &'a ClientId,
    /// The registration object, without its secrets.
    pub metadata: &'a Value,
    pub enabled: bool,
}

impl RegistryWriter<'_> {
    pub fn upsert_clients(&mut self, clients: &[PutClient<'_>]) -> Result<(), StoreError> {
        let rows: Vec<Value> = clients
            .iter()
            .map(|PutClient { client_id, metadata, enabled }| {
                json!({"client_id": client_id.as_str(), "metadata": metadata, "enabled": enabled})
            })
            .collect();
        for disabled in self.query(UPSERT_CLIENTS, &[&Json(rows)])? {
            self.note_revoked_client(column(&disabled, "client_id")?);
        }
        Ok(())
    }

    pub fn remove_clients(&mut self, clients: &[&ClientId]) -> Result<BTreeMap<ClientId, Value>, StoreError> {
        let names: Vec<&str> = clients.iter().map(|client_id| client_id.as_str()).collect();
        let rows = self.query(REMOVE_CLIENTS, &[&names])?;
        let removed = rows.iter().map(|row| {
            Ok((ClientId::new(column::<String>(row, "client_id")?), column::<Json<Value>>(row, "metadata")?.0))
        });
        removed.collect()
    }

    /// Adds secrets of clients, or of resources, each under its owner's name, or replaces those of the same id.
    pub fn put_secrets(&mut self, of_clients: bool, secrets: &[(&str, SecretRow)]) -> Result<(), StoreError> {
        let owners: Vec<&str> = secrets.iter().map(|(owner, _)| *owner).collect();
        let rows = secrets.iter().map(|(_, row)| row);
        let ids: Vec<&[u8]> = rows.clone().map(|row| &row.id[..]).collect();
        let digests: Vec<&[u8]> = rows.clone().map(|row| row.sealed_digest.expose()).collect();
        let descriptions: Vec<&str> = rows.clone().map(|row| row.description.as_str()).collect();
        let expiries: Vec<_> = rows.map(|row| row.expires_at).collect();
        let sql = if of_clients { PUT_CLIENT_SECRETS } else { PUT_RESOURCE_SECRETS };
        self.execute(sql, &[&owners, &ids, &digests, &descriptions, &expiries]).map(drop)
    }

    /// Removes secrets of clients, or of resources, each named by its owner and its id.
    pub fn remove_secrets(&mut self, of_clients: bool, secrets: &[(&str, [u8; 16])]) -> Result<(), StoreError> {
        let owners: Vec<&str> = secrets.iter().map(|(owner, _)| *owner).collect();
        let ids: Vec<&[u8]> = secrets.iter().map(|(_, id)| &id[..]).collect();
        let sql = if of_clients { REMOVE_CLIENT_SECRETS } else { REMOVE_RESOURCE_SECRETS };
        self.execute(sql, &[&owners, &ids]).map(drop)
    }

    pub fn erase_entry_secret(&mut self, kind: Kind, name: &str) -> Result<(), StoreError> {
        self.execute(ERASE_ENTRY_SECRET, &[&kind.as_str(), &name]).map(drop)
    }
}
