//! `client_uses`, the last day on which each client was used.

use std::collections::BTreeMap;

use super::Store;
use super::statement::bind;
use super::values::each;
use crate::Result;
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::instant::Day;

/// Clients of one statement.
const BATCH: usize = 500;
// Many processes write: each in the order of names, so that none waits for another in a circle.
const NOTE_USES: &str = "
INSERT INTO client_uses (client_id, day)
SELECT n.client_id, n.day
FROM unnest(:client_ids::text[], :days::int4[]) AS n (client_id, day)
JOIN clients USING (client_id)
WHERE NOT EXISTS (SELECT FROM client_uses u WHERE u.client_id = n.client_id AND u.day >= n.day)
ORDER BY n.client_id
ON CONFLICT (client_id) DO UPDATE SET day = excluded.day WHERE client_uses.day < excluded.day";

/// Enters the days, unless later ones are there. Clients that are no longer registered are left
/// out.
pub fn note_uses(store: &Store, uses: &BTreeMap<ClientId, Day>) -> Result {
    let uses: Vec<(&ClientId, &Day)> = uses.iter().collect();
    for batch in uses.chunks(BATCH) {
        store.execute(bind!(
            NOTE_USES,
            client_ids = each(batch, |(client_id, _)| *client_id),
            days = each(batch, |(_, day)| *day),
        ))?;
    }
    Ok(())
}
