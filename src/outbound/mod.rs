//! The one client for requests that this server makes itself: key sets, other providers, back-channel calls, logos. TLS
//! by rustls, trust from the system's store; no proxies, no redirects, no cookies, no connections kept; bounded in time,
//! size and number, and only to addresses that `protocol/outbound_address.rs` lets through.

mod request;
mod resolver;
mod trust;

use std::path::Path;
use std::time::Duration;

use ureq::Agent;
use ureq::unversioned::transport::{Connector, RustlsConnector, TcpConnector};

use crate::permits::{Permit, Permits};
use crate::protocol::forwarded::Cidr;
use crate::protocol::web_url::WebUrl;

pub use request::{OutboundAnswer, OutboundError, OutboundRequest};
use resolver::CheckedResolver;

/// How long finding the address, and then connecting, may take: each.
const CONNECT: Duration = Duration::from_secs(2);
/// How long a request waits for a permit.
const PATIENCE: Duration = Duration::from_millis(250);
const USER_AGENT: &str = "Gatepost";

/// The client. One per process.
#[derive(Debug)]
pub struct Outbound {
    agent: Agent,
    /// Workers that wait for somebody else's server.
    permits: Permits,
}

impl Outbound {
    /// A client that reaches the open internet and what lies in `allow`, trusts the system's store and the certificates
    /// (PEM) in `ca_file`, and lets `at_once` workers wait at the same time. The error says what is wrong with the file.
    pub fn new(allow: &[Cidr], ca_file: Option<&Path>, at_once: usize) -> Result<Outbound, String> {
        let config = Agent::config_builder()
            .tls_config(trust::tls_config(ca_file)?)
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_idle_connections(0)
            .user_agent(USER_AGENT)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(request::WHOLE))
            .build();
        let connector = ().chain(TcpConnector::default()).chain(RustlsConnector::default());
        let agent = Agent::with_parts(config, connector, CheckedResolver::new(allow.to_vec()));
        Ok(Outbound { agent, permits: Permits::new(at_once.max(1)) })
    }

    /// How many more workers may wait for other servers now.
    pub fn free_places(&self) -> u64 {
        self.permits.free() as u64
    }

    /// Sends a request on behalf of one that a worker answers. `Busy` when too many wait for other servers already, so
    /// that the rest keeps serving. An answer of any status is an answer, a redirect as well.
    pub fn send(&self, request: &OutboundRequest<'_>) -> Result<OutboundAnswer, OutboundError> {
        let _place = self.take_place()?;
        self.send_from_background(request)
    }

    /// A place among the workers that wait for other servers, for one that waits for another's request to come back.
    pub fn take_place(&self) -> Result<Permit<'_>, OutboundError> {
        self.permits.take(PATIENCE).ok_or(OutboundError::Busy)
    }

    /// Sends a request from a thread that is none of the workers, or has a place already.
    pub fn send_from_background(&self, request: &OutboundRequest<'_>) -> Result<OutboundAnswer, OutboundError> {
        check_url(request.url)?;
        request.run(&self.agent)
    }
}

/// URLs from metadata were never registered, so none is trusted to have been checked.
fn check_url(url: &str) -> Result<(), OutboundError> {
    let parsed = WebUrl::parse(url).map_err(OutboundError::Url)?;
    if parsed.is_protected() { Ok(()) } else { Err(OutboundError::Url("must begin with https://")) }
}

#[cfg(test)]
mod tests;
