//! The metadata documents by which clients describe themselves. They are fetched from the address
//! that is the `client_id`, and kept as key sets are. Only registered addresses are fetched.

use std::sync::Arc;

use serde_json::Value;

use crate::app::App;
use crate::app::failure::Failure;
use crate::app::fetched::Sought;
use crate::outbound::{Asker, Deadline, OutboundError, OutboundRequest};
use crate::registry::RegisteredClient;
use gatepost_protocol::registration::metadata_document;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::reason::{Reason, TokenErrorCode};

const MOST_BYTES: usize = 5 * 1_024;

impl App {
    /// The client, for a page that could do without it.
    pub fn known_client(&self, client_id: &ClientId) -> Option<Arc<RegisteredClient>> {
        let registered = self.registry.client(client_id).ok()??;
        self.described(&registered).ok()
    }

    /// The client with what its metadata document says; as it is registered where it has none.
    pub fn described(
        &self,
        registered: &Arc<RegisteredClient>,
    ) -> Result<Arc<RegisteredClient>, OutboundError> {
        let client = &registered.client;
        if !client.metadata_document || !client.enabled {
            return Ok(Arc::clone(registered));
        }
        let deadline = Deadline::usual();
        // The registration may have changed since it was fetched: then another may be there now.
        let fits = |document: &Value| metadata_document::read(client, document).is_ok();
        let sought = Sought {
            asker: Asker::Worker(&self.outbound),
            url: client.client_id.as_str(),
            deadline,
        };
        let document = self.metadata_documents.find(sought, fits, |asker| {
            fetch_metadata_document(asker, client, deadline)
        })?;
        let described = metadata_document::read(client, &document).map_err(OutboundError::Unfit)?;
        Ok(Arc::new(RegisteredClient {
            client: described.client,
            ..RegisteredClient::clone(registered)
        }))
    }
}

/// Fails when nothing answers in time, or when the answer is not the document of that client.
pub fn fetch_metadata_document(
    asker: Asker<'_>,
    client: &Client,
    deadline: Deadline,
) -> Result<Value, OutboundError> {
    let request = OutboundRequest::get(client.client_id.as_str())
        .header("Accept", "application/json")
        .at_most(MOST_BYTES);
    let answer = asker.send(request, deadline)?.require_ok()?;
    let content_type = answer.content_type.as_deref().unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    if media_type != "application/json" && !media_type.ends_with("+json") {
        let cause = "the Content-Type is not application/json";
        return Err(OutboundError::Failed(String::from(cause)));
    }
    let document = answer.json().unwrap_or_default();
    metadata_document::read(client, &document).map_err(OutboundError::Unfit)?;
    Ok(document)
}

/// Why there is no document. `None` where too many requests wait for other servers already.
pub fn reason_for(problem: &OutboundError) -> Option<Reason> {
    match problem {
        OutboundError::Busy => None,
        OutboundError::Unfit(reason) => Some(*reason),
        OutboundError::TooLong => Some(Reason::MalformedMetadataDocument),
        _ => Some(Reason::MetadataDocumentUnavailable),
    }
}

/// The failure of a request that needs the document of that client.
pub fn undescribed(problem: &OutboundError, client_id: &ClientId) -> Failure {
    let failure = match reason_for(problem) {
        None => Failure::Busy,
        Some(reason @ Reason::MetadataDocumentUnavailable) => {
            Failure::refused(503, TokenErrorCode::TemporarilyUnavailable, reason)
        }
        Some(reason) => Failure::bad_request(reason),
    };
    failure.about(client_id, None)
}
