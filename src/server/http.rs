//! Our Request and Response, and cookies. The two files below alone convert from and to tiny_http.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_store::audit_events::AuditEvent;

pub mod incoming;
pub mod outgoing;

pub use incoming::{Persistence, traceparent};

/// Query, headers and body carry codes, tokens, cookies and passwords: it is never printed.
pub struct Request {
    /// Ours or the proxy's, 1 to 64 harmless characters; stands in log lines, answers and audit
    /// events.
    pub id: String,
    pub method: Method,
    /// As sent, without query, still percent-encoded.
    pub path: String,
    /// Without `?`; empty when there is none.
    pub query: String,
    pub parsed_query: OnceLock<Result<Parameters, Reason>>,
    pub headers: Headers,
    /// At most 64 KiB, or 1 MiB where a registration or a list of people is sent.
    pub body: Vec<u8>,
    /// After trusted proxies were believed.
    pub source: IpAddr,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
    Other,
}

impl Method {
    /// `other` for those that are not told apart.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
            Method::Other => "other",
        }
    }
}

/// Names compare without case (RFC 9110 §5.1). One text, in which each field is a line: no name has
/// a colon in it, and no value a line's end.
#[derive(Default)]
pub struct Headers(String);

impl Headers {
    pub fn of<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> Headers {
        let mut text = String::with_capacity(1_024);
        for (name, value) in fields {
            text.extend([name, ":", value, "\n"]);
        }
        Headers(text)
    }

    pub fn first(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let fields = self
            .0
            .split_terminator('\n')
            .filter_map(|line| line.split_once(':'));
        fields
            .filter(move |(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// A request that the server refuses itself.
pub struct Refused {
    /// 400, 408, 411, 413, 414, 431, 500 or 503.
    pub status: u16,
    /// Without query and body; the path is empty where it could not be read.
    pub request: Request,
}

impl Request {
    /// Enough to say in the right language that it failed.
    #[must_use]
    pub fn bare(&self) -> Request {
        let language = self
            .headers
            .first("accept-language")
            .map(|value| ("accept-language", value));
        Request {
            id: self.id.clone(),
            method: self.method,
            path: self.path.clone(),
            query: String::new(),
            parsed_query: OnceLock::new(),
            headers: Headers::of(language.into_iter()),
            body: Vec::new(),
            source: self.source,
        }
    }

    /// The event, as one that this request caused.
    pub fn caused<'a>(&'a self, event: AuditEvent<'a>) -> AuditEvent<'a> {
        event.by(self.source, &self.id)
    }

    /// Parsed when somebody first asks.
    pub fn query_parameters(&self) -> Result<&Parameters, Reason> {
        let parsed = self
            .parsed_query
            .get_or_init(|| Parameters::parse(self.query.as_bytes()));
        parsed.as_ref().map_err(|reason| *reason)
    }

    /// Those of a body that is a form.
    pub fn form_parameters(&self) -> Result<Parameters, Reason> {
        Parameters::parse(&self.body)
    }

    /// RFC 9110 §8.3.1, without parameters.
    pub fn media_type(&self) -> &str {
        let content_type = self.headers.first("content-type").unwrap_or_default();
        content_type.split(';').next().unwrap_or_default().trim()
    }

    /// RFC 6265 §4.2; the first one where it was repeated.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies()
            .find_map(|(key, value)| (key == name).then_some(value))
    }

    pub fn cookies(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.headers.all("cookie").flat_map(|line| line.split(';'));
        pairs.filter_map(|pair| pair.trim_matches([' ', '\t']).split_once('='))
    }
}

#[derive(Clone, Debug)]
pub enum Body {
    Owned(Vec<u8>),
    Static(&'static [u8]),
    Shared(Arc<[u8]>),
}

impl Body {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Body::Owned(bytes) => bytes,
            Body::Static(bytes) => bytes,
            Body::Shared(bytes) => bytes,
        }
    }
}

/// Header names and values are checked for CR, LF and other control bytes when it is written out.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    /// In the order they are sent. `Content-Length`, `Date` and `Connection` are the server's own.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// Not sent in answer to HEAD.
    pub body: Body,
    pub note: Note,
}

/// For the request's log line. Nothing secret: no token, code, cookie, state or nonce.
#[derive(Clone, Debug, Default)]
pub struct Note {
    pub client_id: Option<String>,
    pub grant: Option<String>,
    pub reason: Option<Reason>,
    /// For the log, and for developers under `GATEPOST_ERROR_DETAILS`: what was registered against
    /// what was received.
    pub detail: Option<String>,
    /// Whose scripts may not read the answer, though they asked.
    pub refused_origin: Option<String>,
}

impl Response {
    pub fn empty(status: u16) -> Response {
        Response {
            status,
            headers: Vec::with_capacity(8),
            body: Body::Static(b""),
            note: Note::default(),
        }
    }

    pub fn with_body(status: u16, content_type: &'static str, body: Body) -> Response {
        Response {
            body,
            ..Response::empty(status).header("Content-Type", content_type)
        }
    }

    /// The same, with the client for its log line.
    #[must_use]
    pub fn about(mut self, client_id: &ClientId) -> Response {
        self.note.client_id = Some(client_id.to_string());
        self
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Response {
        self.headers.push((name, value.into()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)]) -> Request {
        Request {
            id: String::from("0000000000000000"),
            method: Method::Get,
            path: String::from("/"),
            query: String::new(),
            parsed_query: OnceLock::new(),
            headers: Headers::of(headers.iter().copied()),
            body: Vec::new(),
            source: IpAddr::from([127, 0, 0, 1]),
        }
    }

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let request = request(&[("Cookie", "ab=1; b=2"), ("cookie", "c=3=4;b=5")]);
        assert_eq!(request.cookie("b"), Some("2"));
        assert_eq!(request.cookie("c"), Some("3=4"));
        assert_eq!(request.cookie("a"), None);
    }
}
