//! `catalogue_entries` and `resource_secrets`: scopes, resources, tenants, identity providers,
//! assertion issuers and extension grants, each a document under its name.

use std::collections::BTreeSet;

use postgres::Row;
use postgres::types::Json;
use serde_json::Value;

use super::Store;
use super::clients::{SecretRow, Versioned, registry_version, secret};
use super::error::FunctionAnswer;
use super::registry_writer::RegistryReader;
use super::statement::bind;
use super::values::{column, read, unreadable};
use crate::Result;
use gatepost_protocol::registration::ObjectKind;
use gatepost_protocol::words::catalogue::SqlGrant;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::secret::SecretBytes;

fn kind_of(word: &str) -> Result<ObjectKind> {
    let known = ObjectKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == word);
    known.ok_or_else(|| unreadable("kind"))
}

#[derive(Clone)]
pub struct CatalogueRow {
    pub kind: ObjectKind,
    pub name: String,
    /// The registration object, without its secrets.
    pub document: Value,
    /// An identity provider's `client_secret`, sealed by `server/keys`.
    pub sealed_secret: Option<SecretBytes>,
    /// A resource's secrets, oldest first.
    pub secrets: Vec<SecretRow>,
}

pub struct CatalogueRows {
    pub entries: Vec<CatalogueRow>,
    /// Whether some enabled client is registered with `allow_plain_pkce`.
    pub plain_pkce: bool,
    /// Whether some enabled client is registered with `metadata_document`.
    pub metadata_documents: bool,
    /// Names of identity providers that no enabled client allows.
    pub idle_identity_providers: BTreeSet<String>,
}

const LOAD: &str = "
SELECT i.registry_version, p.plain_pkce, p.metadata_documents,
       e.kind, e.name, e.document, e.sealed_secret,
       e.kind = 'identity_provider' AND NOT EXISTS (
           SELECT FROM clients c WHERE c.enabled AND (
               jsonb_typeof(c.metadata -> 'identity_providers') IS DISTINCT FROM 'array'
               OR c.metadata -> 'identity_providers' ? e.name)) AS idle,
       s.id AS secret_id, s.sealed_digest, s.description, s.expires_at
FROM installation i
CROSS JOIN (
    SELECT EXISTS (SELECT FROM clients c WHERE c.enabled
                   AND c.metadata @> '{\"allow_plain_pkce\": true}') AS plain_pkce,
           EXISTS (SELECT FROM clients c WHERE c.enabled
                   AND c.metadata @> '{\"metadata_document\": true}') AS metadata_documents
) AS p
LEFT JOIN (SELECT kind, name, document, sealed_secret FROM catalogue_entries
           UNION ALL SELECT 'role', name, document, NULL FROM roles) AS e ON true
LEFT JOIN resource_secrets s ON e.kind = 'resource' AND s.resource = e.name
ORDER BY e.kind, e.name, s.created_at, s.id";

pub fn load(store: &Store) -> Result<Versioned<CatalogueRows>> {
    versioned(&store.rows(bind!(LOAD))?)
}

fn versioned(rows: &[Row]) -> Result<Versioned<CatalogueRows>> {
    let registry_version = registry_version(rows)?;
    let idle = rows
        .iter()
        .filter(|row| column::<Option<bool>>(row, "idle") == Ok(Some(true)));
    let is_so = |name| {
        rows.first()
            .map_or(Ok(false), |row| column::<bool>(row, name))
    };
    let value = CatalogueRows {
        entries: entries(rows)?,
        plain_pkce: is_so("plain_pkce")?,
        metadata_documents: is_so("metadata_documents")?,
        idle_identity_providers: idle
            .map(|row| column(row, "name"))
            .collect::<Result<_, _>>()?,
    };
    Ok(Versioned {
        registry_version,
        value,
    })
}

fn entries(rows: &[Row]) -> Result<Vec<CatalogueRow>> {
    let mut found: Vec<CatalogueRow> = Vec::new();
    for row in rows {
        let Some(word) = column::<Option<&str>>(row, "kind")? else {
            continue;
        };
        let kind = kind_of(word)?;
        let name: &str = column(row, "name")?;
        if found
            .last()
            .is_none_or(|entry| entry.kind != kind || entry.name != name)
        {
            found.push(entry(row, kind)?);
        }
        if let (Some(entry), Some(secret)) = (found.last_mut(), secret(row)?) {
            entry.secrets.push(secret);
        }
    }
    Ok(found)
}

fn entry(row: &Row, kind: ObjectKind) -> Result<CatalogueRow> {
    let sealed_secret = column::<Option<&[u8]>>(row, "sealed_secret")?.map(SecretBytes::new);
    let document = column::<Json<Value>>(row, "document")?.0;
    read!(row, CatalogueRow { name; kind, document, sealed_secret, secrets: Vec::new() })
}

impl RegistryReader<'_> {
    pub fn catalogue(&mut self) -> Result<CatalogueRows> {
        Ok(versioned(&self.read(bind!(LOAD))?)?.value)
    }
}

// Functions that operators write to answer extension grants: looked up before they are registered,
// and called.

pub enum FoundFunction {
    /// A function (jsonb, jsonb) returning jsonb that this connection's role may execute.
    Callable,
    /// Such a function, or its schema, that the role has no right to.
    Forbidden,
    Missing,
}

const LOOK_UP: &str = "
SELECT has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE') AS callable
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = :schema::text AND p.proname = :function::text
  AND p.prokind = 'f' AND NOT p.proretset
  AND p.prorettype = 'jsonb'::regtype AND p.pronargs = 2
  AND p.proargtypes[0] = 'jsonb'::regtype AND p.proargtypes[1] = 'jsonb'::regtype";

pub fn look_up_function(store: &Store, grant: &SqlGrant) -> Result<FoundFunction> {
    let bound = bind!(LOOK_UP, ..grant { schema, function });
    match store.find(bound, |row| column(row, "callable"))? {
        Some(true) => Ok(FoundFunction::Callable),
        Some(false) => Ok(FoundFunction::Forbidden),
        None => Ok(FoundFunction::Missing),
    }
}

/// Calls the function of a grant. Both arguments are bound, the name is quoted.
pub fn call_function(
    store: &Store,
    grant: &SqlGrant,
    parameters: &JsonObject,
    client: &JsonObject,
) -> Result<FunctionAnswer> {
    let sql = format!(
        "SELECT {}.{}($1::jsonb, $2::jsonb) AS answer",
        quoted(&grant.schema),
        quoted(&grant.function)
    );
    store.write(|connection| connection.call(&sql, &[&Json(parameters), &Json(client)]))
}

fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_identifier() {
        assert_eq!(quoted("redeem_key"), "\"redeem_key\"");
        assert_eq!(
            quoted("x\"(); DROP TABLE y; --"),
            "\"x\"\"(); DROP TABLE y; --\""
        );
    }
}
