//! What administrators see of clients.

use std::collections::BTreeMap;

use postgres::Row;

use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::instant::Day;
use gatepost_store::clients::{ClientRow, clients};
use gatepost_store::{Result, Store, bind, column};

/// More grants of a client are not counted.
pub const MOST_GRANTS: i64 = 10_000;

pub struct UsedClient {
    pub row: ClientRow,
    /// The last day, if one is known.
    pub used_on: Option<Day>,
}

const LIST_APPLICATIONS: &str = "
SELECT i.epoch AS installation_epoch,
       c.client_id, c.metadata::text AS metadata, c.enabled, c.epoch, u.day AS used_on,
       s.id AS secret_id, s.sealed_digest, s.description, s.expires_at
FROM installation i CROSS JOIN (
    SELECT * FROM clients
    WHERE client_id > :after::text AND (:client_id::text IS NULL OR client_id = :client_id::text)
      AND ('' = ANY(:reach::text[]) OR jsonb_typeof(metadata -> 'tenants') IS DISTINCT FROM 'array'
           OR metadata -> 'tenants' ?| :reach::text[])
    ORDER BY client_id LIMIT :limit::int8
) AS c
LEFT JOIN client_uses u ON u.client_id = c.client_id
LEFT JOIN client_secrets s ON s.client_id = c.client_id
ORDER BY c.client_id, s.created_at, s.id";

/// Clients behind a name, by their names, at most `limit`; or the one of a name. They are open to
/// people of some tenants within `reach`. An empty name there stands for no tenant: whoever reaches
/// those reaches every client.
pub fn list(
    store: &Store,
    reach: &[&str],
    client_id: Option<&ClientId>,
    after: &str,
    limit: i64,
) -> Result<Vec<UsedClient>> {
    let bound = bind!(LIST_APPLICATIONS, reach, client_id, after, limit);
    let rows = store.rows(bound)?;
    let used: BTreeMap<ClientId, Option<Day>> =
        rows.iter().map(use_of).collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    for row in clients(&rows)? {
        found.push(UsedClient {
            used_on: used.get(&row.client_id).copied().flatten(),
            row,
        });
    }
    Ok(found)
}

fn use_of(row: &Row) -> Result<(ClientId, Option<Day>)> {
    Ok((column(row, "client_id")?, column(row, "used_on")?))
}

const COUNT_GRANTS: &str = "
SELECT count(*) AS grants FROM (
    SELECT FROM grants g
    WHERE g.client_id = :client_id::text
      AND ('' = ANY(:reach::text[]) OR g.tenant = ANY(:reach::text[]))
      AND g.revoked_at IS NULL AND g.expires_at > clock_timestamp()
      AND g.client_epoch = (SELECT epoch FROM clients WHERE client_id = :client_id::text)
      AND g.installation_epoch = (SELECT epoch FROM installation)
    LIMIT :limit::int8
) AS counted";

/// How many grants of people within reach have neither run out nor been revoked; at most one more
/// than [`MOST_GRANTS`].
pub fn count_grants(store: &Store, reach: &[&str], client_id: &ClientId) -> Result<i64> {
    let bound = bind!(COUNT_GRANTS, client_id, reach, limit = MOST_GRANTS + 1);
    store.survey(|client| {
        let row = client.query_one(&bound.text(), bound.values)?;
        column(&row, "grants")
    })
}
