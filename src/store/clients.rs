//! `clients` and `client_secrets`: registrations as `apply` took them, and what each client proves itself with.

use std::collections::HashSet;
use std::time::Duration;

use postgres::Row;
use postgres::types::Json;
use serde_json::Value;

use super::Store;
use super::error::StoreError;
use super::values::{client_id, column, id};
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::secret::SecretBytes;

#[derive(Clone, Debug, PartialEq)]
pub struct ClientRow {
    pub client_id: ClientId,
    /// The registration object, without its secrets.
    pub metadata: Value,
    pub enabled: bool,
    pub epoch: i64,
    pub installation_epoch: i64,
    /// Its secrets, the expired ones among them, oldest first.
    pub secrets: Vec<SecretRow>,
}

/// One secret of a client or resource: what is stored is the sealed digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRow {
    /// 16 random bytes.
    pub id: [u8; 16],
    /// Sealed by `crypto`; the store cannot open it.
    pub sealed_digest: SecretBytes,
    pub description: String,
    pub expires_at: Option<Instant>,
}

/// Something read from the registry, with the version of the snapshot it was read in.
#[derive(Clone, Debug, PartialEq)]
pub struct Versioned<T> {
    /// Usable only while the registry stands at this version.
    pub registry_version: i64,
    pub value: T,
}

pub(super) const FIND: &str = "
SELECT i.registry_version, i.epoch AS installation_epoch, c.client_id, c.metadata, c.enabled, c.epoch,
       s.id AS secret_id, s.sealed_digest, s.description, s.expires_at
FROM installation i
LEFT JOIN clients c ON c.client_id = $1::text
LEFT JOIN client_secrets s ON s.client_id = c.client_id
ORDER BY s.created_at, s.id";

pub fn find(store: &Store, client_id: &ClientId) -> Result<Versioned<Option<ClientRow>>, StoreError> {
    let rows = store.read(|connection| connection.query(FIND, &[&client_id.as_str()]))?;
    versioned(&rows)
}

pub(super) fn versioned(rows: &[Row]) -> Result<Versioned<Option<ClientRow>>, StoreError> {
    Ok(Versioned { registry_version: registry_version(rows)?, value: clients(rows)?.pop() })
}

pub(super) const LIST: &str = "
SELECT i.epoch AS installation_epoch, c.client_id, c.metadata, c.enabled, c.epoch,
       s.id AS secret_id, s.sealed_digest, s.description, s.expires_at
FROM installation i CROSS JOIN clients c LEFT JOIN client_secrets s ON s.client_id = c.client_id
ORDER BY c.client_id, s.created_at, s.id";

pub fn list(store: &Store) -> Result<Vec<ClientRow>, StoreError> {
    clients(&store.read(|connection| connection.query(LIST, &[]))?)
}

/// Folds rows of (client, secret) that stand together by client.
pub(super) fn clients(rows: &[Row]) -> Result<Vec<ClientRow>, StoreError> {
    let mut found: Vec<ClientRow> = Vec::new();
    for row in rows {
        let Some(name) = column::<Option<&str>>(row, "client_id")? else { continue };
        if found.last().is_none_or(|client| client.client_id.as_str() != name) {
            found.push(client(row)?);
        }
        if let (Some(client), Some(secret)) = (found.last_mut(), secret(row)?) {
            client.secrets.push(secret);
        }
    }
    Ok(found)
}

fn client(row: &Row) -> Result<ClientRow, StoreError> {
    Ok(ClientRow {
        client_id: client_id(row, "client_id")?,
        metadata: column::<Json<Value>>(row, "metadata")?.0,
        enabled: column(row, "enabled")?,
        epoch: column(row, "epoch")?,
        installation_epoch: column(row, "installation_epoch")?,
        secrets: Vec::new(),
    })
}

/// The secret of a joined row; `None` where the owner has none.
pub(super) fn secret(row: &Row) -> Result<Option<SecretRow>, StoreError> {
    if column::<Option<&[u8]>>(row, "secret_id")?.is_none() {
        return Ok(None);
    }
    Ok(Some(SecretRow {
        id: id(row, "secret_id")?,
        sealed_digest: SecretBytes::new(column::<&[u8]>(row, "sealed_digest")?),
        description: column(row, "description")?,
        expires_at: column(row, "expires_at")?,
    }))
}

const NAMES: &str = "SELECT i.registry_version, c.client_id FROM installation i LEFT JOIN clients c ON true";

/// The name of every client, disabled or not.
pub fn names(store: &Store) -> Result<Versioned<HashSet<ClientId>>, StoreError> {
    let rows = store.read(|connection| connection.query(NAMES, &[]))?;
    let registry_version = registry_version(&rows)?;
    let names = rows.iter().filter_map(|row| column::<Option<&str>>(row, "client_id").transpose());
    Ok(Versioned { registry_version, value: names.map(|name| name.map(ClientId::new)).collect::<Result<_, _>>()? })
}

pub(super) fn registry_version(rows: &[Row]) -> Result<i64, StoreError> {
    let first =
        rows.first().ok_or_else(|| StoreError::Corrupt(String::from("no installation: run `gatepost migrate`")))?;
    column(first, "registry_version")
}

const ORIGINS: &str = "
SELECT i.registry_version, u.uri
FROM installation i
LEFT JOIN (SELECT DISTINCT jsonb_array_elements_text(l.uris) AS uri
           FROM clients c
           CROSS JOIN LATERAL (VALUES (c.metadata->'redirect_uris'), (c.metadata->'allowed_cors_origins')) AS l (uris)
           WHERE c.enabled AND jsonb_typeof(l.uris) = 'array') AS u ON true";

/// Every redirect URI and allowed origin of an enabled client, each once.
pub fn origins(store: &Store) -> Result<Versioned<Vec<String>>, StoreError> {
    let rows = store.read(|connection| connection.query(ORIGINS, &[]))?;
    let registry_version = registry_version(&rows)?;
    let value =
        rows.iter().filter_map(|row| column::<Option<String>>(row, "uri").transpose()).collect::<Result<_, _>>()?;
    Ok(Versioned { registry_version, value })
}

/// The longest lifetimes that any registration names; `None` where none does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongestLifetimes {
    pub refresh_token: Option<Duration>,
    pub access_token: Option<Duration>,
}

pub(super) const LONGEST_LIFETIMES: &str = "
SELECT max((metadata->>'refresh_token_lifetime')::int8) AS refresh_token,
       max((metadata->>'access_token_lifetime')::int8) AS access_token
FROM clients";

pub fn longest_lifetimes(store: &Store) -> Result<LongestLifetimes, StoreError> {
    lifetimes(&store.read(|connection| connection.query_one(LONGEST_LIFETIMES, &[]))?)
}

pub(super) fn lifetimes(row: &Row) -> Result<LongestLifetimes, StoreError> {
    let seconds = |name| -> Result<Option<Duration>, StoreError> {
        Ok(column::<Option<i64>>(row, name)?.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs))
    };
    Ok(LongestLifetimes { refresh_token: seconds("refresh_token")?, access_token: seconds("access_token")? })
}
