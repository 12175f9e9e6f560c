//! How long the certificate of a server stays good.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use gatepost_server::outbound::authorities;

/// How long each step may take: connecting, and each read and write.
const STEP: Duration = Duration::from_secs(5);

/// The days that the certificate is good for, up to `most`. It asks the verifier that judges every
/// handshake, once for each day, so no other code has to read certificates.
pub fn days_left(
    host: &str,
    port: u16,
    ca_file: Option<&Path>,
    most: u64,
) -> Result<usize, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities(ca_file)?);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let judge = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .build()?;
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config
        .with_webpki_verifier(Arc::clone(&judge))
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned())?;
    let mut connection = ClientConnection::new(Arc::new(config), name.clone())?;
    let mut stream = connect(host, port)?;
    connection.complete_io(&mut stream)?;
    let (own, between) = connection
        .peer_certificates()
        .and_then(<[_]>::split_first)
        .ok_or("no certificate came")?;
    let now = UnixTime::now().as_secs();
    let then = |day: u64| UnixTime::since_unix_epoch(Duration::from_secs(now + day * 86_400));
    let is_good = |day: &u64| {
        judge
            .verify_server_cert(own, between, &name, &[], then(*day))
            .is_ok()
    };
    Ok((1..=most).take_while(is_good).count())
}

/// Connects to the first address of the host that takes a connection.
pub fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut tried = (host, port)
        .to_socket_addrs()?
        .map(|address| TcpStream::connect_timeout(&address, STEP));
    let stream = tried
        .find_map(Result::ok)
        .ok_or(ErrorKind::ConnectionRefused)?;
    stream.set_read_timeout(Some(STEP))?;
    stream.set_write_timeout(Some(STEP))?;
    Ok(stream)
}
