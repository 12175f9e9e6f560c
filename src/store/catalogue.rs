//! `catalogue_entries` and `resource_secrets`: scopes, resources, tenants, identity providers, assertion issuers and
//! extension grants, each a document under its name.

use std::collections::BTreeSet;

use postgres::Row;
use postgres::types::Json;
use serde_json::Value;

use super::Store;
use super::clients::{SecretRow, Versioned, registry_version, secret};
use super::error::StoreError;
use super::values::column;
use crate::protocol::registration::Kind;
use crate::protocol::words::secret::SecretBytes;

fn kind_of(word: &str) -> Result<Kind, StoreError> {
    let known = Kind::ALL.into_iter().find(|kind| kind.as_str() == word);
    known.ok_or_else(|| StoreError::Corrupt(String::from("column kind")))
}

#[derive(Clone, Debug, PartialEq)]
pub struct CatalogueRow {
    pub kind: Kind,
    pub name: String,
    /// The registration object, without its secrets.
    pub document: Value,
    /// An identity provider's `client_secret`, sealed by `crypto`.
    pub sealed_secret: Option<SecretBytes>,
    /// A resource's secrets, oldest first.
    pub secrets: Vec<SecretRow>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CatalogueRows {
    pub entries: Vec<CatalogueRow>,
    /// Whether some enabled client is registered with `allow_plain_pkce`.
    pub plain_pkce: bool,
    /// Names of identity providers that no enabled client allows.
    pub idle_identity_providers: BTreeSet<String>,
}

pub(super) const LOAD: &str = "
SELECT i.registry_version, p.plain_pkce, e.kind, e.name, e.document, e.sealed_secret,
       e.kind = 'identity_provider' AND NOT EXISTS (
           SELECT FROM clients c WHERE c.enabled AND (
               jsonb_typeof(c.metadata -> 'identity_providers') IS DISTINCT FROM 'array'
               OR c.metadata -> 'identity_providers' ? e.name)) AS idle,
       s.id AS secret_id, s.sealed_digest, s.description, s.expires_at
FROM installation i
CROSS JOIN (SELECT EXISTS (SELECT FROM clients c WHERE c.enabled AND c.metadata @> '{\"allow_plain_pkce\": true}') AS plain_pkce) AS p
LEFT JOIN catalogue_entries e ON true
LEFT JOIN resource_secrets s ON e.kind = 'resource' AND s.resource = e.name
ORDER BY e.kind, e.name, s.created_at, s.id";

/// Reads everything registered that is neither client nor user.
pub fn load(store: &Store) -> Result<Versioned<CatalogueRows>, StoreError> {
    versioned(&store.read(|connection| connection.query(LOAD, &[]))?)
}

pub(super) fn versioned(rows: &[Row]) -> Result<Versioned<CatalogueRows>, StoreError> {
    let registry_version = registry_version(rows)?;
    let idle = rows.iter().filter(|row| column::<Option<bool>>(row, "idle") == Ok(Some(true)));
    let value = CatalogueRows {
        entries: entries(rows)?,
        plain_pkce: rows.first().map_or(Ok(false), |row| column(row, "plain_pkce"))?,
        idle_identity_providers: idle.map(|row| column(row, "name")).collect::<Result<_, _>>()?,
    };
    Ok(Versioned { registry_version, value })
}

/// Folds rows of (entry, secret) that stand together by entry.
fn entries(rows: &[Row]) -> Result<Vec<CatalogueRow>, StoreError> {
    let mut found: Vec<CatalogueRow> = Vec::new();
    for row in rows {
        let Some(word) = column::<Option<&str>>(row, "kind")? else { continue };
        let (kind, name) = (kind_of(word)?, column::<&str>(row, "name")?);
        if found.last().is_none_or(|entry| entry.kind != kind || entry.name != name) {
            found.push(entry(row, kind)?);
        }
        if let (Some(entry), Some(secret)) = (found.last_mut(), secret(row)?) {
            entry.secrets.push(secret);
        }
    }
    Ok(found)
}

fn entry(row: &Row, kind: Kind) -> Result<CatalogueRow, StoreError> {
    Ok(CatalogueRow {
        kind,
        name: column(row, "name")?,
        document: column::<Json<Value>>(row, "document")?.0,
        sealed_secret: column::<Option<&[u8]>>(row, "sealed_secret")?.map(SecretBytes::new),
        secrets: Vec::new(),
    })
}
