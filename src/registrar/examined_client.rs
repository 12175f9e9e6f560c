//! A client as administrators see it.

use crate::statements::applications::UsedClient;
use gatepost_protocol::registration::{client, walker};
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::instant::Day;
use gatepost_registration::client_checkup::{as_seen, by_bound_session, examine};
use gatepost_registration::finding::Finding;
use gatepost_server::app::App;
use gatepost_server::registry::open_secret_digest;

pub struct ExaminedClient {
    pub client: Client,
    pub findings: Vec<Finding>,
    /// The last day of its use, if one is known.
    pub used_on: Option<Day>,
}

impl ExaminedClient {
    /// Examines a client as it is stored, for somebody who reaches these tenants; `None` where it
    /// is not served.
    pub fn examine(app: &App, used: &UsedClient, reach: &[&str]) -> Option<ExaminedClient> {
        let UsedClient { row, used_on } = used;
        let document = walker::parse_own(&row.metadata);
        let client = client::from_json(&document, "", &app.config.client_defaults).ok()?;
        let snapshot = app.registry.snapshot();
        let now = app.now();
        let signing = snapshot.keys.algorithms(now);
        let sealer = &app.registry.sealers().client_secrets;
        let secrets: Vec<_> = row
            .secrets
            .iter()
            .map(|secret| open_secret_digest(secret, sealer))
            .collect();
        let client = as_seen(&client, &snapshot.catalogue, reach);
        let mut findings = examine(&client, &secrets, &signing, &snapshot.catalogue, now);
        findings.extend(by_bound_session(&client, app.config.bound_sessions));
        Some(ExaminedClient {
            client,
            findings,
            used_on: *used_on,
        })
    }
}
