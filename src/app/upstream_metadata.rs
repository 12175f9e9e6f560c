//! Discovery documents of upstream providers, fetched and held.

use std::sync::Arc;
use std::time::Duration;

use super::fetched::{Fetched, Shelf};
use crate::outbound::{Asker, Deadline, Outbound, OutboundError, OutboundRequest};
use crate::protocol::upstream::metadata::{UpstreamMetadata, address, read};

const SHELF: Shelf = Shelf { fresh: Duration::from_secs(3_600), stale: Duration::from_secs(86_400) };

#[derive(Debug)]
pub struct UpstreamDocuments(Fetched<UpstreamMetadata>);

impl Default for UpstreamDocuments {
    fn default() -> UpstreamDocuments {
        UpstreamDocuments(Fetched::new(SHELF))
    }
}

impl UpstreamDocuments {
    pub fn find(
        &self,
        outbound: &Outbound,
        issuer: &str,
        deadline: Deadline,
    ) -> Result<Arc<UpstreamMetadata>, OutboundError> {
        self.0.find(Asker::Worker(outbound), issuer, deadline, || fetch_metadata(outbound, issuer, deadline))
    }
}

/// Fetches and reads the discovery document of an issuer.
pub fn fetch_metadata(
    outbound: &Outbound,
    issuer: &str,
    deadline: Deadline,
) -> Result<UpstreamMetadata, OutboundError> {
    let url = address(issuer);
    let request = OutboundRequest::get(&url).header("Accept", "application/json").by(deadline);
    let document = outbound.send(&request)?.require_ok()?.json().unwrap_or_default();
    read(&document, issuer).map_err(|problem| OutboundError::Failed(problem.to_string()))
}
