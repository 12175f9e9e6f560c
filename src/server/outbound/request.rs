//! A request of ours, and what became of it.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant as Monotonic};

use rustls::CertificateError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use ureq::config::Config;
use ureq::http::{HeaderMap, Method, Request, Response, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::{Agent, AsSendBody, Body, Error, Timeout};

use gatepost_protocol::registration::timestamp;
use gatepost_protocol::upstream::answers::says_to_come_again;
use gatepost_protocol::upstream::outbound_address::may_be_dialled;
use gatepost_protocol::words::forwarded::Cidr;
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::tls_words::tls_words;

use gatepost_store::named_thread;

/// From the first packet to the last byte of the answer.
pub const WHOLE: Duration = Duration::from_secs(5);
/// How much time may pass before the first request of a deadline is sent.
const MOMENT: Duration = Duration::from_millis(50);
const MOST_BYTES: usize = 1_024 * 1_024;

/// When an answer must be there. Several requests that serve one purpose share it.
#[derive(Clone, Copy)]
pub struct Deadline(Monotonic);

impl Deadline {
    /// In 5 s, which is what one request may take.
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
    pub url: &'a str,
    method: Method,
    headers: Vec<(&'static str, SecretText)>,
    body: SecretText,
    pub within: Duration,
    most_bytes: usize,
}

#[derive(Debug, PartialEq)]
pub struct OutboundAnswer {
    pub status: u16,
    pub content_type: Option<String>,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Why there is no answer. `Display` is for the log and for operators, never for strangers.
#[derive(Clone, Debug, PartialEq)]
pub enum OutboundError {
    /// As many requests as may wait for that server, or for all servers, wait already: answer 503.
    Busy,
    /// Not a URL that we fetch, with the rule that it breaks.
    Url(&'static str),
    NameNotFound,
    /// The host has only addresses that our requests must not reach.
    AddressRefused,
    TooSlow,
    TooLong,
    /// No authority that is trusted signed the server's certificate.
    NotTrusted,
    /// The answer has something in it that is refused.
    Unfit(Reason),
    /// The server answered, and not as it must: with an unfit certificate, a status, or a document
    /// of another kind.
    Unusable(String),
    /// Refused, cut off, not HTTP, or a status that says to come again.
    Failed(String),
}

impl OutboundError {
    /// Whether the same request may succeed later although nobody mends anything.
    pub fn is_passing(&self) -> bool {
        match self {
            OutboundError::Busy
            | OutboundError::NameNotFound
            | OutboundError::TooSlow
            | OutboundError::Failed(_) => true,
            OutboundError::Url(_)
            | OutboundError::AddressRefused
            | OutboundError::TooLong
            | OutboundError::NotTrusted
            | OutboundError::Unfit(_)
            | OutboundError::Unusable(_) => false,
        }
    }
}

impl<'a> OutboundRequest<'a> {
    pub fn get(url: &'a str) -> OutboundRequest<'a> {
        OutboundRequest::new(url, Method::GET, String::new())
    }

    pub fn post_form(url: &'a str, fields: &[(&str, &str)]) -> OutboundRequest<'a> {
        let form = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        OutboundRequest::new(url, Method::POST, form)
            .header("Content-Type", "application/x-www-form-urlencoded")
    }

    fn new(url: &'a str, method: Method, body: String) -> OutboundRequest<'a> {
        OutboundRequest {
            url,
            method,
            headers: Vec::new(),
            body: SecretText::new(body),
            within: WHOLE,
            most_bytes: MOST_BYTES,
        }
    }

    /// The same with one header more, for instance `Authorization`. A value that no header can have
    /// fails the request.
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

    /// The same, with that deadline. The first request of a deadline has the usual time, so that
    /// the agent's TLS set-up can be used.
    #[must_use]
    pub fn by(self, deadline: Deadline) -> OutboundRequest<'a> {
        let remaining = deadline.remaining();
        self.within(if remaining + MOMENT < WHOLE {
            remaining
        } else {
            WHOLE
        })
    }

    /// The same with another limit than 1 MiB on the answer's body.
    #[must_use]
    pub fn at_most(self, most_bytes: usize) -> OutboundRequest<'a> {
        OutboundRequest { most_bytes, ..self }
    }

    pub fn run(&self, agent: &Agent) -> Result<OutboundAnswer, OutboundError> {
        self.exchange(agent).map_err(unsuccessful)
    }

    fn exchange(&self, agent: &Agent) -> Result<OutboundAnswer, Error> {
        let mut builder = Request::builder().method(self.method.clone()).uri(self.url);
        for (name, value) in &self.headers {
            builder = builder.header(*name, value.expose());
        }
        let response = if self.method == Method::GET {
            self.hand_over(agent, builder.body(())?)?
        } else {
            self.hand_over(agent, builder.body(self.body.expose())?)?
        };
        self.read(response)
    }

    /// The agent keeps its TLS set-up only for requests that change nothing about it.
    fn hand_over(
        &self,
        agent: &Agent,
        request: Request<impl AsSendBody>,
    ) -> Result<Response<Body>, Error> {
        match self.within {
            WHOLE => agent.run(request),
            other => agent.run(
                agent
                    .configure_request(request)
                    .timeout_global(Some(other))
                    .build(),
            ),
        }
    }

    fn read(&self, mut response: Response<Body>) -> Result<OutboundAnswer, Error> {
        let content_type = response
            .headers()
            .get("content-type")
            .and_then(|value| value.to_str().ok());
        Ok(OutboundAnswer {
            status: response.status().as_u16(),
            content_type: content_type.map(str::to_owned),
            headers: response.headers().clone(),
            // The library's limit is the first length that it refuses.
            body: response
                .body_mut()
                .with_config()
                .limit(self.most_bytes as u64 + 1)
                .read_to_vec()?,
        })
    }
}

impl OutboundAnswer {
    pub fn require_ok(self) -> Result<OutboundAnswer, OutboundError> {
        let cause = match self.status {
            200 => return Ok(self),
            status @ 300..=399 => {
                format!("the server redirects (status {status}), which is not followed")
            }
            status => format!("the server answered with status {status}"),
        };
        Err(if says_to_come_again(self.status) {
            OutboundError::Failed(cause)
        } else {
            OutboundError::Unusable(cause)
        })
    }

    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

fn unsuccessful(error: Error) -> OutboundError {
    match &error {
        Error::Other(cause) if cause.is::<AddressRefused>() => OutboundError::AddressRefused,
        Error::HostNotFound => OutboundError::NameNotFound,
        Error::Timeout(_) => OutboundError::TooSlow,
        Error::BodyExceedsLimit(_) => OutboundError::TooLong,
        _ if is_unknown_authority(&error) => OutboundError::NotTrusted,
        _ if certificate_error(&error).is_some() => OutboundError::Unusable(words(&error)),
        _ => OutboundError::Failed(words(&error)),
    }
}

/// Errors of the libraries in words that help.
fn words(error: &Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("io: ").unwrap_or(&text);
    let text = text.split(" (os error").next().unwrap_or_default();
    if let Some(CertificateError::ExpiredContext { not_after, .. }) = certificate_error(error) {
        return format!(
            "the server's certificate ended on {}: renew it",
            day(not_after.as_secs())
        );
    }
    if text.contains("Connection refused") {
        return String::from("nobody listens at that address and port");
    }
    tls_words(text).unwrap_or(text).to_owned()
}

/// The day as people write it.
fn day(seconds: u64) -> String {
    let days = i64::try_from(seconds / 86_400).unwrap_or_default();
    let (year, month, day) = timestamp::civil(days);
    let months =
        "January February March April May June July August September October November December";
    let name = (1..)
        .zip(months.split(' '))
        .find(|(number, _)| *number == month)
        .map_or("", |(_, name)| name);
    format!("{day} {name} {year}")
}

/// What is wrong with the server's certificate, if that is what it is.
fn certificate_error(error: &Error) -> Option<&CertificateError> {
    let tls = if let Error::Io(io) = error {
        io.get_ref()?.downcast_ref()
    } else if let Error::Rustls(tls) = error {
        Some(tls)
    } else {
        None
    };
    if let rustls::Error::InvalidCertificate(cause) = tls? {
        Some(cause)
    } else {
        None
    }
}

fn is_unknown_authority(error: &Error) -> bool {
    // A bad signature: another authority has the name of one that is trusted.
    let unknown = [
        CertificateError::UnknownIssuer,
        CertificateError::BadSignature,
    ];
    certificate_error(error).is_some_and(|cause| unknown.contains(cause))
}

impl fmt::Display for OutboundError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            OutboundError::Busy => "too many requests wait for other servers already",
            OutboundError::Url(rule) => return write!(formatter, "the URL {rule}"),
            OutboundError::NameNotFound => "the host's name is not known",
            OutboundError::AddressRefused => {
                "the host's address is not one of the open internet, and GATEPOST_OUTBOUND_ALLOW \
                 does not name it"
            }
            OutboundError::TooSlow => "the server did not answer in time",
            OutboundError::TooLong => "the server's answer is too long",
            OutboundError::NotTrusted => {
                "the server's certificate is of no authority that is trusted here; \
                 GATEPOST_CA_FILE can name more"
            }
            OutboundError::Unfit(reason) => {
                return write!(formatter, "{}: {}", reason.code(), reason.remedy());
            }
            OutboundError::Unusable(cause) | OutboundError::Failed(cause) => cause,
        })
    }
}

impl std::error::Error for OutboundError {}

/// `ResolvedSocketAddrs` holds so many.
const MOST_ADDRESSES: usize = 16;

/// Finds addresses, and drops those that are neither in the open internet nor in one of these
/// blocks.
#[derive(Debug)]
pub struct CheckedResolver(pub Vec<Cidr>);

#[derive(Debug)]
pub struct AddressRefused;

impl fmt::Display for AddressRefused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("address refused")
    }
}

impl std::error::Error for AddressRefused {}

impl Resolver for CheckedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        _: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let https = uri.scheme_str() == Some("https");
        let host = uri.host().ok_or(Error::HostNotFound)?;
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let mut allowed = addresses(host, port, *timeout.after)?;
        allowed.retain(|address| may_be_dialled(address.ip(), https, &self.0));
        if allowed.is_empty() {
            return Err(Error::Other(Box::new(AddressRefused)));
        }
        let mut checked = self.empty();
        for address in allowed.into_iter().take(MOST_ADDRESSES) {
            checked.push(address);
        }
        Ok(checked)
    }
}

/// The address that the host is, or those of its name.
fn addresses(host: &str, port: u16, within: Duration) -> Result<Vec<SocketAddr>, Error> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    let found = match bare.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => look_up(bare.to_owned(), port, within)?,
    };
    if found.is_empty() {
        return Err(Error::HostNotFound);
    }
    Ok(found)
}

/// Looks a name up in a thread of its own, because the system's look-up cannot be stopped.
fn look_up(host: String, port: u16, within: Duration) -> Result<Vec<SocketAddr>, Error> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let started = named_thread::spawn("look-up", move || {
        let found = (host.as_str(), port)
            .to_socket_addrs()
            .map(Vec::from_iter)
            .unwrap_or_default();
        // The caller may have given up.
        let _ = sender.send(found);
    });
    started.map_err(Error::Io)?;
    receiver
        .recv_timeout(within)
        .map_err(|_| Error::Timeout(Timeout::Resolve))
}

/// TLS 1.2 and 1.3 on aws-lc-rs, always verifying chain and name.
pub fn tls_config(ca_file: Option<&Path>) -> Result<TlsConfig, String> {
    let authorities = authorities(ca_file)?;
    if authorities.is_empty() {
        log::warn!(
            "the system's store holds no CA certificate: requests of our own over https will fail"
        );
    }
    let authorities: Vec<_> = authorities
        .iter()
        .map(|der| Certificate::from_der(der).to_owned())
        .collect();
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .root_certs(RootCerts::new_with_certs(&authorities))
        .build())
}

/// The certificates of the system's store, and those (PEM) in `ca_file`. The error says what is
/// wrong with the file.
pub fn authorities(ca_file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut authorities = rustls_native_certs::load_native_certs().certs;
    if let Some(path) = ca_file {
        authorities.extend(certificates(path)?);
    }
    Ok(authorities)
}

/// The certificates of the file. There must be one, and all must be readable: a file that is half
/// understood would fail later, and elsewhere.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unfit = |problem: &str| format!("GATEPOST_CA_FILE: {problem} {}", path.display());
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|_| unfit("cannot read"))?;
    if certificates.is_empty() {
        return Err(unfit("there is no certificate in"));
    }
    let mut store = rustls::RootCertStore::empty();
    for certificate in &certificates {
        store
            .add(certificate.clone())
            .map_err(|_| unfit("there is something else than CA certificates in"))?;
    }
    Ok(certificates)
}
