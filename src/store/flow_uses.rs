//! `flow_uses`: the last day on which each client used a flow that OAuth 2.1 has no more.

use std::collections::BTreeMap;

use super::Store;
use super::registry_writer::RegistryReader;
use super::statement::bind;
use super::values::{column, each};
use crate::Result;
use gatepost_protocol::words::instant::Day;
use gatepost_protocol::words::legacy_flow::{FlowUse, LegacyFlow};

/// Flows of one statement.
const BATCH: usize = 500;

// Many processes write: each in the order of names, so that none waits for another in a circle.
const NOTE: &str = "
INSERT INTO flow_uses (client_id, flow, day)
SELECT n.client_id, n.flow, n.day
FROM unnest(:client_ids::text[], :flows::text[], :days::int4[]) AS n (client_id, flow, day)
JOIN clients USING (client_id)
ORDER BY n.client_id, n.flow
ON CONFLICT (client_id, flow) DO UPDATE SET day = excluded.day WHERE flow_uses.day < excluded.day";

/// Enters the days, unless later ones are there. Clients that are no longer registered are left
/// out.
pub fn note(store: &Store, uses: &BTreeMap<FlowUse, Day>) -> Result {
    let uses: Vec<(&FlowUse, &Day)> = uses.iter().collect();
    for batch in uses.chunks(BATCH) {
        store.execute(bind!(
            NOTE,
            client_ids = each(batch, |(used, _)| &used.client_id),
            flows = each(batch, |(used, _)| used.flow.as_str()),
            days = each(batch, |(_, day)| *day),
        ))?;
    }
    Ok(())
}

const LIST: &str = "SELECT client_id, flow, day FROM flow_uses";

impl RegistryReader<'_> {
    pub fn flow_uses(&mut self) -> Result<BTreeMap<FlowUse, Day>> {
        let mut uses = BTreeMap::new();
        for row in self.read(bind!(LIST))? {
            // A newer program may know more of them.
            if let Some(flow) = LegacyFlow::from_name(column(&row, "flow")?) {
                let client_id = column(&row, "client_id")?;
                uses.insert(FlowUse { client_id, flow }, column(&row, "day")?);
            }
        }
        Ok(uses)
    }
}
