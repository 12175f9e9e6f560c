//! A request of ours, and what became of it.

use std::fmt;
use std::time::{Duration, Instant as Monotonic};

use rustls::CertificateError;
use serde_json::Value;
use ureq::http::{Method, Request, Response};
use ureq::{Agent, AsSendBody, Body, Error};

use super::resolver::AddressRefused;
use crate::protocol::words::secret::SecretText;

/// From the first packet to the last byte of the answer.
pub(super) const WHOLE: Duration = Duration::from_secs(5);
/// What may pass before the first request of a deadline is sent.
const MOMENT: Duration = Duration::from_millis(50);
const MOST_BYTES: usize = 1_024 * 1_024;

/// When an answer must be there. Several requests that serve one purpose share it.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Monotonic);

impl Deadline {
    /// In 5 s: as much as one request may take.
    pub fn usual() -> Deadline {
        Deadline(Monotonic::now() + WHOLE)
    }

    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Monotonic::now())
    }
}

/// A request to send. `Debug` shows neither header values nor the body.
#[derive(Debug)]
pub struct OutboundRequest<'a> {
    pub(super) url: &'a str,
    method: Method,
    headers: Vec<(&'static str, SecretText)>,
    body: SecretText,
    pub(super) within: Duration,
    most_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundAnswer {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: Vec<u8>,
}

/// Why there is no answer. `Display` is for the log and for operators, never for strangers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboundError {
    /// A quarter of the workers wait for other servers already: answer 503.
    Busy,
    /// Not a URL that is fetched; the rule that was broken.
    Url(&'static str),
    NameNotFound,
    /// Only for addresses that our requests must not reach.
    AddressRefused,
    TooSlow,
    TooLong,
    /// No authority that is trusted signed the server's certificate.
    NotTrusted,
    /// Refused, cut off, with an unfit certificate, or not HTTP.
    Failed(String),
}

impl<'a> OutboundRequest<'a> {
    pub fn get(url: &'a str) -> OutboundRequest<'a> {
        OutboundRequest::new(url, Method::GET, String::new())
    }

    pub fn post_form(url: &'a str, fields: &[(&str, &str)]) -> OutboundRequest<'a> {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        OutboundRequest::new(url, Method::POST, form).header("Content-Type", "application/x-www-form-urlencoded")
    }

    pub fn post_json(url: &'a str, value: &Value) -> OutboundRequest<'a> {
        OutboundRequest::new(url, Method::POST, value.to_string()).header("Content-Type", "application/json")
    }

    fn new(url: &'a str, method: Method, body: String) -> OutboundRequest<'a> {
        let (headers, body) = (Vec::new(), SecretText::new(body));
        OutboundRequest { url, method, headers, body, within: WHOLE, most_bytes: MOST_BYTES }
    }

    /// The same with one header more, for instance `Authorization`. A value that no header can have fails the request.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> OutboundRequest<'a> {
        self.headers.push((name, SecretText::new(value)));
        self
    }

    /// The same with another limit than 5 s from the first packet to the last byte.
    #[must_use]
    pub fn within(self, within: Duration) -> OutboundRequest<'a> {
        OutboundRequest { within, ..self }
    }

    /// The same, to be over by then. The first request of a deadline has the usual time, with which TLS need not be set up
    /// anew.
    #[must_use]
    pub fn by(self, deadline: Deadline) -> OutboundRequest<'a> {
        let remaining = deadline.remaining();
        self.within(if remaining + MOMENT < WHOLE { remaining } else { WHOLE })
    }

    /// The same with another limit than 1 MiB on the answer's body.
    #[must_use]
    pub fn at_most(self, most_bytes: usize) -> OutboundRequest<'a> {
        OutboundRequest { most_bytes, ..self }
    }

    pub(super) fn run(&self, agent: &Agent) -> Result<OutboundAnswer, OutboundError> {
        let mut builder = Request::builder().method(self.method.clone()).uri(self.url);
        for (name, value) in &self.headers {
            builder = builder.header(*name, value.expose());
        }
        let sent = if self.method == Method::GET {
            builder.body(()).map_err(Error::from).and_then(|request| self.hand_over(agent, request))
        } else {
            builder.body(self.body.expose()).map_err(Error::from).and_then(|request| self.hand_over(agent, request))
        };
        sent.and_then(|response| self.read(response)).map_err(unsuccessful)
    }

    /// The agent keeps its TLS set-up only for requests that change nothing about it.
    fn hand_over(&self, agent: &Agent, request: Request<impl AsSendBody>) -> Result<Response<Body>, Error> {
        match self.within {
            WHOLE => agent.run(request),
            other => agent.run(agent.configure_request(request).timeout_global(Some(other)).build()),
        }
    }

    fn read(&self, mut response: Response<Body>) -> Result<OutboundAnswer, Error> {
        let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        Ok(OutboundAnswer {
            status: response.status().as_u16(),
            content_type: content_type.map(str::to_owned),
            // The library's limit is the first length that it refuses.
            body: response.body_mut().with_config().limit(self.most_bytes as u64 + 1).read_to_vec()?,
        })
    }
}

impl OutboundAnswer {
    pub fn require_ok(self) -> Result<OutboundAnswer, OutboundError> {
        let cause = match self.status {
            200 => return Ok(self),
            status @ 300..=399 => format!("the server redirects (status {status}), which is not followed"),
            status => format!("the server answered with status {status}"),
        };
        Err(OutboundError::Failed(cause))
    }

    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

fn unsuccessful(error: Error) -> OutboundError {
    let known = [
        (matches!(&error, Error::Other(cause) if cause.is::<AddressRefused>()), OutboundError::AddressRefused),
        (matches!(error, Error::HostNotFound), OutboundError::NameNotFound),
        (matches!(error, Error::Timeout(_)), OutboundError::TooSlow),
        (matches!(error, Error::BodyExceedsLimit(_)), OutboundError::TooLong),
        (is_unknown_authority(&error), OutboundError::NotTrusted),
    ];
    let known = known.into_iter().find(|(is_so, _)| *is_so).map(|(_, meant)| meant);
    known.unwrap_or_else(|| OutboundError::Failed(words(&error)))
}

/// What the libraries call so that it helps nobody, in words.
fn words(error: &Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("io: ").unwrap_or(&text);
    let known = [
        ("Connection refused", "nobody listens at that address and port"),
        ("CaUsedAsEndEntity", "the server's certificate is an authority's own (CA:TRUE), which no server may show"),
        ("InvalidContentType", "the server does not speak TLS at that port"),
    ];
    match known.into_iter().find(|(technical, _)| text.contains(technical)) {
        Some((_, words)) => format!("{words} ({text})"),
        None => text.to_owned(),
    }
}

fn is_unknown_authority(error: &Error) -> bool {
    let within = if let Error::Io(io) = error { io.get_ref().and_then(|inner| inner.downcast_ref()) } else { None };
    let tls = if let Error::Rustls(tls) = error { Some(tls) } else { within };
    // A bad signature: an authority of that name is trusted, and it is another.
    let unknown = [CertificateError::UnknownIssuer, CertificateError::BadSignature];
    matches!(tls, Some(rustls::Error::InvalidCertificate(cause)) if unknown.contains(cause))
}

impl fmt::Display for OutboundError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            OutboundError::Busy => "too many requests wait for other servers already",
            OutboundError::Url(rule) => return write!(formatter, "the URL {rule}"),
            OutboundError::NameNotFound => "the host's name is not known",
            OutboundError::AddressRefused => {
                "the host's address is not one of the open internet, and GATEPOST_OUTBOUND_ALLOW does not name it"
            }
            OutboundError::TooSlow => "the server did not answer in time",
            OutboundError::TooLong => "the server's answer is too long",
            OutboundError::NotTrusted => {
                "the server's certificate is of no authority that is trusted here; GATEPOST_CA_FILE can name more"
            }
            OutboundError::Failed(cause) => cause,
        })
    }
}

impl std::error::Error for OutboundError {}
