//! Sends letters over SMTP (RFC 5321), by lettre. Letter and password leave only after TLS has
//! verified the server's name, or to this machine.

use std::error::Error as _;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use lettre::address::{Address, Envelope};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId as HelloName;
use lettre::transport::smtp::{Error, SmtpTransport};
use lettre::{Transport, transport::smtp::response::Response};

use super::request::authorities;
use crate::config::mail::{Mail, SmtpSecurity, SmtpServer};
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::mail_address::MailAddress;

/// How long one step of the conversation with the server may take: to connect, or one answer.
const STEP: Duration = Duration::from_secs(8);

pub struct Postman {
    transport: SmtpTransport,
    pub from: MailAddress,
}

/// Why a letter was not sent. `Display` is for the log and for operators.
pub struct Undelivered {
    /// The server will never take it (RFC 5321 §4.2.1, 5yz): trying again is of no use.
    pub is_final: bool,
    pub cause: String,
}

impl fmt::Debug for Postman {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Postman({})", self.from)
    }
}

impl fmt::Display for Undelivered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.cause)
    }
}

impl Postman {
    /// `host` is the name by which we greet the server. Trusts the system's store and the
    /// certificates in `ca_file`. The error says what is wrong with the settings.
    pub fn new(mail: &Mail, host: &str, ca_file: Option<&Path>) -> Result<Postman, String> {
        let server = &mail.server;
        let mut builder = SmtpTransport::builder_dangerous(&server.host)
            .port(server.port)
            .tls(security(server, ca_file)?)
            .timeout(Some(STEP))
            .hello_name(HelloName::Domain(host.to_owned()));
        if let (Some(user), Some(password)) = (&server.user, &mail.password) {
            let password = password.expose().to_owned();
            builder = builder.credentials(Credentials::new(user.clone(), password));
        }
        Ok(Postman {
            transport: builder.build(),
            from: mail.from.clone(),
        })
    }

    /// Sends a message to one address. Answers the last line that the server said.
    pub fn send(&self, to: &MailAddress, message: &[u8]) -> Result<String, Undelivered> {
        let envelope = Envelope::new(Some(lettered(&self.from)?), vec![lettered(to)?])
            .map_err(|error| Undelivered::for_good(error.to_string()))?;
        let answer = self.transport.send_raw(&envelope, message);
        Ok(said(&answer.map_err(Undelivered::of)?))
    }

    /// Connects, greets and signs in, and sends nothing.
    pub fn try_server(&self) -> Result<(), Undelivered> {
        match self.transport.test_connection() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Undelivered {
                is_final: false,
                cause: String::from("the server hung up"),
            }),
            Err(error) => Err(Undelivered::of(error)),
        }
    }
}

impl Undelivered {
    fn for_good(cause: String) -> Undelivered {
        Undelivered {
            is_final: true,
            cause,
        }
    }

    /// With what lies below, without control characters: some of it the server wrote.
    fn of(error: Error) -> Undelivered {
        let mut cause = error.to_string();
        let mut below = error.source();
        while let Some(deeper) = below {
            let text = deeper.to_string();
            if !cause.contains(&text) {
                cause.extend([": ", &text]);
            }
            below = deeper.source();
        }
        Undelivered {
            is_final: error.is_permanent(),
            cause: printable(&cause),
        }
    }
}

fn security(server: &SmtpServer, ca_file: Option<&Path>) -> Result<Tls, String> {
    Ok(match server.security {
        SmtpSecurity::Tls => Tls::Wrapper(tls(&server.host, ca_file)?),
        SmtpSecurity::StartTls => Tls::Required(tls(&server.host, ca_file)?),
        SmtpSecurity::Clear => Tls::None,
    })
}

fn tls(host: &str, ca_file: Option<&Path>) -> Result<TlsParameters, String> {
    let mut builder =
        TlsParameters::builder(host.to_owned()).certificate_store(CertificateStore::None);
    for authority in authorities(ca_file)? {
        // The system's store may hold what no verifier takes.
        if rustls::RootCertStore::empty()
            .add(authority.clone())
            .is_ok()
            && let Ok(certificate) = Certificate::from_der(authority.to_vec())
        {
            builder = builder.add_root_certificate(certificate);
        }
    }
    builder.build().map_err(|error| error.to_string())
}

fn lettered(address: &MailAddress) -> Result<Address, Undelivered> {
    Address::new(address.local_part(), address.domain())
        .map_err(|error| Undelivered::for_good(format!("{address}: {error}")))
}

fn said(response: &Response) -> String {
    let lines = joined(" ", response.message());
    printable(&format!("{} {lines}", response.code()))
}

fn printable(text: &str) -> String {
    text.chars()
        .take(300)
        .flat_map(char::escape_default)
        .collect()
}
