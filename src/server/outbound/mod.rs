//! The one client for requests that this server makes itself: key sets, other providers,
//! back-channel calls, logos. TLS by rustls, trust from the system's store; no proxies, no
//! redirects, no cookies, no connections kept; bounded in time, size and number, and only to
//! addresses that `protocol/upstream/outbound_address.rs` lets through.

pub mod message;
mod places;
mod postman;
mod request;

use std::path::Path;
use std::time::{Duration, Instant};

use places::{Places, Taker};
pub use postman::{Postman, Undelivered};
pub use request::{Deadline, OutboundAnswer, OutboundError, OutboundRequest, authorities};
use ureq::Agent;
use ureq::unversioned::transport::{Connector, RustlsConnector, TcpConnector};

use crate::outbound::request::CheckedResolver;
use gatepost_protocol::words::forwarded::Cidr;
use gatepost_protocol::words::web_url::WebUrl;
use gatepost_store::worker;

/// How long finding the address may take, and connecting again.
const CONNECT: Duration = Duration::from_secs(2);
/// A request waits for a place until it has only so much of its time left.
const KEPT: Duration = Duration::from_secs(1);
const USER_AGENT: &str = "Gatepost";

#[derive(Debug)]
pub struct Outbound {
    agent: Agent,
    places: Places,
}

impl Outbound {
    /// A client that reaches the open internet and the blocks in `allow`, trusts the system's store
    /// and the certificates (PEM) in `ca_file`, and lets `at_once` requests wait at the same time.
    /// The error says what is wrong with the file.
    pub fn new(allow: &[Cidr], ca_file: Option<&Path>, at_once: usize) -> Result<Outbound, String> {
        let config = Agent::config_builder()
            .tls_config(request::tls_config(ca_file)?)
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
        Ok(Outbound {
            agent: Agent::with_parts(config, connector, CheckedResolver(allow.to_vec())),
            places: Places::new(at_once),
        })
    }

    pub fn free_places(&self) -> u64 {
        self.places.free() as u64
    }

    /// Requests that wait for a place.
    pub fn waiting(&self) -> u64 {
        self.places.waiting() as u64
    }

    /// Sends a request on behalf of one that a worker answers. `Busy` when too many wait for other
    /// servers already. An answer of any status is an answer, a redirect as well.
    pub fn send(&self, request: &OutboundRequest<'_>) -> Result<OutboundAnswer, OutboundError> {
        self.take_place(request.url)?.send(request)
    }

    /// Takes a place among the requests that wait for other servers. It is good for everything that
    /// one request asks of the server of `url`: nothing of that is refused for want of a place
    /// afterwards. From here on the request does not count as a worker.
    pub fn take_place(&self, url: &str) -> Result<Place<'_>, OutboundError> {
        let server = check_url(url)?.origin;
        worker::stand_up();
        let taker = self
            .places
            .take(server, patience())
            .ok_or(OutboundError::Busy)?;
        Ok(Place {
            outbound: self,
            taker,
            taken_at: Instant::now(),
        })
    }

    /// Sends a request to an address under our base URL, which the settings have checked. The
    /// address may have any length.
    pub fn send_to_ourselves(
        &self,
        request: &OutboundRequest<'_>,
    ) -> Result<OutboundAnswer, OutboundError> {
        request.run(&self.agent)
    }

    pub fn send_from_background(
        &self,
        request: &OutboundRequest<'_>,
    ) -> Result<OutboundAnswer, OutboundError> {
        check_url(request.url)?;
        if request.within.is_zero() {
            return Err(OutboundError::TooSlow);
        }
        request.run(&self.agent)
    }
}

/// How long a request waits for a place.
fn patience() -> Duration {
    let left = worker::budget().map_or(worker::ALLOWANCE, |budget| budget.left);
    left.saturating_sub(KEPT)
}

/// A request's place while it waits for another server; given back when dropped.
pub struct Place<'a> {
    outbound: &'a Outbound,
    taker: Taker<'a>,
    taken_at: Instant,
}

impl Place<'_> {
    pub fn send(&self, request: &OutboundRequest<'_>) -> Result<OutboundAnswer, OutboundError> {
        let answer = self.outbound.send_from_background(request);
        let is_slow = matches!(answer, Err(OutboundError::TooSlow));
        // Whoever came with hardly any time left learns nothing about the server.
        if !is_slow || self.taken_at.elapsed() >= KEPT {
            self.taker.note(is_slow);
        }
        answer
    }
}

#[derive(Clone, Copy)]
pub enum Asker<'a> {
    /// A worker without a place: each request takes one.
    Worker(&'a Outbound),
    /// A worker that has one for all that it asks.
    Seated(&'a Place<'a>),
}

impl<'a> Asker<'a> {
    /// Sends a request whose answer must be there by `deadline`. The wait for a place counts.
    pub fn send(
        self,
        request: OutboundRequest<'_>,
        deadline: Deadline,
    ) -> Result<OutboundAnswer, OutboundError> {
        match self {
            Asker::Worker(outbound) => {
                let place = outbound.take_place(request.url)?;
                place.send(&request.by(deadline))
            }
            Asker::Seated(place) => place.send(&request.by(deadline)),
        }
    }

    /// A place to wait for a document that another request fetches; `None` for a request that has a
    /// place.
    pub fn take_place(self, url: &str) -> Result<Option<Place<'a>>, OutboundError> {
        match self {
            Asker::Worker(outbound) => outbound.take_place(url).map(Some),
            Asker::Seated(_) => Ok(None),
        }
    }
}

/// Checked here, because URLs from metadata were never registered.
fn check_url(url: &str) -> Result<WebUrl<'_>, OutboundError> {
    let parsed = WebUrl::parse(url).map_err(OutboundError::Url)?;
    if parsed.is_protected() {
        Ok(parsed)
    } else {
        Err(OutboundError::Url("must begin with https://"))
    }
}

#[cfg(test)]
mod tests;
