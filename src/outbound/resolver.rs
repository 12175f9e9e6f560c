//! From a host's name to addresses that may be dialled. The client connects to what is answered here and to nothing
//! else, so a name that changes its address between check and connection gains nothing.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::{Error, Timeout};

use crate::protocol::upstream::outbound_address::may_be_dialled;
use crate::protocol::words::forwarded::Cidr;

/// As many as `ResolvedSocketAddrs` holds.
const MOST_ADDRESSES: usize = 16;

/// With the blocks that are allowed beside the open internet.
#[derive(Debug)]
pub(super) struct CheckedResolver(pub(super) Vec<Cidr>);

#[derive(Debug)]
pub(super) struct AddressRefused;

impl fmt::Display for AddressRefused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("address refused")
    }
}

impl std::error::Error for AddressRefused {}

impl Resolver for CheckedResolver {
    fn resolve(&self, uri: &Uri, _: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let https = uri.scheme_str() == Some("https");
        let host = uri.host().ok_or(Error::HostNotFound)?;
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let found = match bare.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => look_up(bare.to_owned(), port, *timeout.after)?,
        };
        if found.is_empty() {
            return Err(Error::HostNotFound);
        }
        let mut checked = self.empty();
        let allowed = found.into_iter().filter(|address| may_be_dialled(address.ip(), https, &self.0));
        allowed.take(MOST_ADDRESSES).for_each(|address| checked.push(address));
        if checked.is_empty() { Err(Error::Other(Box::new(AddressRefused))) } else { Ok(checked) }
    }
}

/// The system's look-up cannot be told when to stop, so it is waited for from outside.
fn look_up(host: String, port: u16, within: Duration) -> Result<Vec<SocketAddr>, Error> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let started = thread::Builder::new().name(String::from("look-up")).spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Vec::from_iter).unwrap_or_default();
        // Whoever asked may have given up.
        let _ = sender.send(found);
    });
    started.map_err(Error::Io)?;
    receiver.recv_timeout(within).map_err(|_| Error::Timeout(Timeout::Resolve))
}
