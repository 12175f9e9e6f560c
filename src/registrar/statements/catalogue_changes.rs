//! What a change of the registry does to scopes, resources, tenants, providers and grants.

use postgres::types::Json;
use serde_json::Value;

use gatepost_protocol::registration::ObjectKind;
use gatepost_protocol::words::secret::SecretBytes;
use gatepost_store::catalogue::CatalogueRow;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::{Result, bind, column};

const UPSERT_ENTRY: &str = "
INSERT INTO catalogue_entries (kind, name, document, sealed_secret)
VALUES (:kind::text, :name::text, :document::jsonb, :sealed_secret::bytea)
ON CONFLICT (kind, name) DO UPDATE
SET document = excluded.document,
    sealed_secret = coalesce(excluded.sealed_secret, catalogue_entries.sealed_secret),
    updated_at = clock_timestamp()";

const UPSERT_ROLE: &str = "
INSERT INTO roles (name, document) VALUES (:name::text, :document::jsonb)
ON CONFLICT (name) DO UPDATE
SET document = excluded.document, updated_at = clock_timestamp()";

/// Registers an entry or replaces it; its `secrets` are not touched, nor its sealed secret
/// where there is no other.
pub fn upsert_entry(writer: &mut RegistryWriter<'_>, entry: &CatalogueRow) -> Result {
    if entry.kind == ObjectKind::Role {
        let bound = bind!(
            UPSERT_ROLE,
            ..entry { name },
            document = Json(&entry.document)
        );
        return writer.execute(bound).map(drop);
    }
    let bound = bind!(
        UPSERT_ENTRY,
        kind = entry.kind.as_str(),
        name = entry.name,
        document = Json(&entry.document),
        sealed_secret = entry.sealed_secret.as_ref().map(SecretBytes::expose),
    );
    writer.execute(bound).map(drop)
}

const REMOVE_ENTRY: &str = "
WITH secrets AS (
    DELETE FROM resource_secrets WHERE :kind::text = 'resource' AND resource = :name::text
), role AS (
    DELETE FROM roles WHERE :kind::text = 'role' AND name = :name::text RETURNING document
), entry AS (
    DELETE FROM catalogue_entries WHERE kind = :kind::text AND name = :name::text
    RETURNING document
)
SELECT document FROM role UNION ALL SELECT document FROM entry";

pub fn remove_entry(
    writer: &mut RegistryWriter<'_>,
    kind: ObjectKind,
    name: &str,
) -> Result<Option<Value>> {
    let removed = writer.query(bind!(REMOVE_ENTRY, kind = kind.as_str(), name))?;
    removed
        .first()
        .map(|row| Ok(column::<Json<Value>>(row, "document")?.0))
        .transpose()
}

const ERASE_ENTRY_SECRET: &str = "
UPDATE catalogue_entries SET sealed_secret = NULL, updated_at = clock_timestamp()
WHERE kind = :kind::text AND name = :name::text";

pub fn erase_entry_secret(writer: &mut RegistryWriter<'_>, kind: ObjectKind, name: &str) -> Result {
    let bound = bind!(ERASE_ENTRY_SECRET, kind = kind.as_str(), name);
    writer.execute(bound).map(drop)
}
