//! Discovery documents of upstream providers, fetched and held.

use std::sync::Arc;
use std::time::Duration;

use super::App;
use super::fetched::Shelf;
use crate::outbound::{Asker, Deadline, Outbound, OutboundError, OutboundRequest};
use crate::protocol::upstream::metadata::{UpstreamMetadata, address, read};

pub(super) const SHELF: Shelf = Shelf { fresh: Duration::from_secs(3_600), stale: Duration::from_secs(86_400) };

impl App {
    pub fn upstream_metadata(&self, issuer: &str, deadline: Deadline) -> Result<Arc<UpstreamMetadata>, OutboundError> {
        let fetch = || fetch_metadata(&self.outbound, issuer, deadline);
        self.upstream_documents.find(Asker::Worker(&self.outbound), issuer, deadline, fetch)
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
    read(&document, issuer).map_err(OutboundError::Failed)
}
