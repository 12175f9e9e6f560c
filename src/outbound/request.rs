//! A request of ours, and what became of it.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use ureq::http::{Method, Request, Response};
use ureq::{Agent, AsSendBody, Body, Error};

use super::resolver::AddressRefused;
use crate::protocol::secret::SecretText;

/// From the first packet to the last byte of the answer.
pub(super) const WHOLE: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const MOST_BYTES: usize = 1_024 * 1_024;

/// A request to send. `Debug` shows neither header values nor the body.
#[derive(Debug)]
pub struct OutboundRequest<'a> {
    pub(super) url: &'a str,
    method: Method,
    headers: Vec<(&'static str, SecretText)>,
    body: SecretText,
    within: Duration,
    most_bytes: usize,
}

/// What came back, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundAnswer {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type` as sent.
    pub content_type: Option<String>,
    /// The body, whole.
    pub body: Vec<u8>,
}

/// Why there is no answer. `Display` is for the log and for operators, never for strangers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboundError {
    /// A quarter of the workers wait for other servers already: answer 503.
    Busy,
    /// Not a URL that is fetched; the rule that was broken.
    Url(&'static str),
    /// The name stands for no address.
    NameNotFound,
    /// Only for addresses that our requests must not reach.
    AddressRefused,
    /// No answer, or no whole one, in time.
    TooSlow,
    /// The answer is longer than what is read.
    TooLong,
    /// Refused, cut off, not trusted or not HTTP.
    Failed(String),
}

impl<'a> OutboundRequest<'a> {
    /// A GET.
    pub fn get(url: &'a str) -> OutboundRequest<'a> {
        OutboundRequest::new(url, Method::GET, String::new())
    }

    /// A POST of a form.
    pub fn post_form(url: &'a str, fields: &[(&str, &str)]) -> OutboundRequest<'a> {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        OutboundRequest::new(url, Method::POST, form).header("Content-Type", "application/x-www-form-urlencoded")
    }

    /// A POST of JSON.
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
    /// The body as JSON of any kind.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

fn unsuccessful(error: Error) -> OutboundError {
    if matches!(&error, Error::Other(cause) if cause.is::<AddressRefused>()) {
        return OutboundError::AddressRefused;
    }
    if matches!(error, Error::HostNotFound) {
        return OutboundError::NameNotFound;
    }
    if matches!(error, Error::Timeout(_)) {
        return OutboundError::TooSlow;
    }
    if matches!(error, Error::BodyExceedsLimit(_)) {
        return OutboundError::TooLong;
    }
    OutboundError::Failed(error.to_string())
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
            OutboundError::Failed(cause) => cause,
        })
    }
}

impl std::error::Error for OutboundError {}
