//! What a change of the registry does to clients, and to the secrets of clients and resources.

use std::collections::BTreeMap;

use postgres::types::Json;
use serde_json::Value;

use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::json::Members;
use gatepost_protocol::words::redirect_uri::origin_of;
use gatepost_store::clients::SecretRow;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::{Result, bind, column, each};

const UPSERT_CLIENTS: &str = "
WITH put AS MATERIALIZED (
    SELECT c.client_id, c.metadata, c.enabled, string_to_array(c.origins, ' ') AS origins
    FROM unnest(:client_ids::text[], :metadata::jsonb[], :enabled::boolean[], :origins::text[])
      AS c (client_id, metadata, enabled, origins)
), written AS (
    INSERT INTO clients (client_id, metadata, enabled, origins)
    SELECT client_id, metadata, enabled, origins FROM put
    ON CONFLICT (client_id) DO UPDATE
    SET metadata = excluded.metadata, enabled = excluded.enabled, origins = excluded.origins,
        updated_at = clock_timestamp(),
        epoch = CASE WHEN clients.enabled AND NOT excluded.enabled THEN new_epoch()
                     ELSE clients.epoch END
)
SELECT client_id FROM clients JOIN put USING (client_id) WHERE clients.enabled AND NOT put.enabled";

/// Registers clients or replaces their registrations: each name with the registration object,
/// without its secrets, and whether it is enabled. Disabling ends what was issued to it.
pub fn upsert_clients(
    writer: &mut RegistryWriter<'_>,
    clients: &[(&ClientId, &Value, bool)],
) -> Result {
    let bound = bind!(
        UPSERT_CLIENTS,
        client_ids = each(clients, |(client_id, _, _)| *client_id),
        metadata = each(clients, |(_, metadata, _)| Json(*metadata)),
        enabled = each(clients, |(_, _, enabled)| *enabled),
        origins = each(clients, |(_, metadata, _)| origins_of(metadata)),
    );
    for disabled in writer.query(bound)? {
        writer.revoked_clients.push(column(&disabled, "client_id")?);
    }
    Ok(())
}

/// Whose scripts may read answers about the client, apart by blanks.
fn origins_of(metadata: &Value) -> String {
    let uris = ["redirect_uris", "allowed_cors_origins"].map(|key| metadata.texts(key));
    joined(" ", uris.into_iter().flatten().filter_map(origin_of))
}

const REMOVE_CLIENTS: &str = "
WITH unused AS (DELETE FROM client_uses WHERE client_id = ANY(:client_ids::text[])),
     unused_flows AS (DELETE FROM flow_uses WHERE client_id = ANY(:client_ids::text[]))
DELETE FROM clients WHERE client_id = ANY(:client_ids::text[]) RETURNING client_id, metadata";

pub fn remove_clients(
    writer: &mut RegistryWriter<'_>,
    clients: &[ClientId],
) -> Result<BTreeMap<ClientId, Value>> {
    let mut removed = BTreeMap::new();
    for row in writer.query(bind!(REMOVE_CLIENTS, client_ids = clients))? {
        let metadata = column::<Json<Value>>(&row, "metadata")?.0;
        removed.insert(column(&row, "client_id")?, metadata);
    }
    Ok(removed)
}

const PUT_CLIENT_SECRETS: &str = "
INSERT INTO client_secrets (client_id, id, sealed_digest, description, expires_at)
{secrets} ON CONFLICT (client_id, id) {secret put}";

const PUT_RESOURCE_SECRETS: &str = "
INSERT INTO resource_secrets (resource, id, sealed_digest, description, expires_at)
{secrets} ON CONFLICT (resource, id) {secret put}";

/// Adds secrets of clients, or of resources, each under its owner's name, or replaces those of
/// the same id.
pub fn put_secrets(
    writer: &mut RegistryWriter<'_>,
    of_clients: bool,
    secrets: &[(&str, SecretRow)],
) -> Result {
    let mut bound = bind!(
        PUT_CLIENT_SECRETS,
        owners = each(secrets, |(owner, _)| *owner),
        ids = each(secrets, |(_, row)| &row.id[..]),
        digests = each(secrets, |(_, row)| row.sealed_digest.expose()),
        descriptions = each(secrets, |(_, row)| &row.description),
        expiries = each(secrets, |(_, row)| row.expires_at),
    );
    if !of_clients {
        bound.sql = PUT_RESOURCE_SECRETS;
    }
    writer.execute(bound).map(drop)
}

const REMOVE_CLIENT_SECRETS: &str = "
DELETE FROM client_secrets s USING unnest(:owners::text[], :ids::bytea[]) AS g (client_id, id)
WHERE s.client_id = g.client_id AND s.id = g.id";

const REMOVE_RESOURCE_SECRETS: &str = "
DELETE FROM resource_secrets s USING unnest(:owners::text[], :ids::bytea[]) AS g (resource, id)
WHERE s.resource = g.resource AND s.id = g.id";

/// Removes secrets of clients, or of resources, each named by its owner and its id.
pub fn remove_secrets(
    writer: &mut RegistryWriter<'_>,
    of_clients: bool,
    secrets: &[(&str, [u8; 16])],
) -> Result {
    let mut bound = bind!(
        REMOVE_CLIENT_SECRETS,
        owners = each(secrets, |(owner, _)| *owner),
        ids = each(secrets, |(_, id)| &id[..]),
    );
    if !of_clients {
        bound.sql = REMOVE_RESOURCE_SECRETS;
    }
    writer.execute(bound).map(drop)
}
