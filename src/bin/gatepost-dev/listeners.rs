//! The two listening sockets. They are bound before anything is started, so that a busy port costs
//! no time and leaves nothing behind.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use socket2::SockRef;

use super::Trouble;
use super::options::loopback;

#[derive(Debug)]
pub(super) struct Listening {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    /// Without a slash at the end.
    pub(super) base_url: String,
}

impl Listening {
    /// Takes the usual port, or the one that is ten, twenty and so on further where others have it:
    /// there the same database is found again the next time.
    pub(super) fn bind_near(usual: u16) -> Result<Listening, Trouble> {
        let near = (usual..usual.saturating_add(200)).step_by(10).map(loopback);
        let found = near
            .filter_map(|address| Listening::bind(address, "").ok())
            .next();
        found.map_or_else(|| Listening::bind(loopback(0), "any port"), Ok)
    }

    /// `flag` is named where it is taken already.
    pub(super) fn bind(address: SocketAddr, flag: &str) -> Result<Listening, Trouble> {
        let listener =
            TcpListener::bind(address).map_err(|error| refusal(address, flag, &error))?;
        // Inherited by accepted sockets; without it an answer over 1 KiB waits 40 ms for the peer's
        // acknowledgement.
        SockRef::from(&listener)
            .set_tcp_nodelay(true)
            .map_err(|error| refusal(address, flag, &error))?;
        let address = listener
            .local_addr()
            .map_err(|error| refusal(address, flag, &error))?;
        Ok(Listening {
            listener,
            address,
            base_url: base_url(address),
        })
    }
}

fn refusal(address: SocketAddr, flag: &str, error: &io::Error) -> Trouble {
    if error.kind() == io::ErrorKind::AddrInUse {
        return Trouble::new(format!(
            "{address} is in use by another program; end that one, or choose another address with \
             {flag}"
        ));
    }
    Trouble::new(format!("cannot listen on {address} ({flag}): {error}"))
}

/// Browsers are sent to `localhost`, where cookies and secure contexts work without TLS.
fn base_url(address: SocketAddr) -> String {
    if address.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST) {
        format!("http://localhost:{}", address.port())
    } else {
        format!("http://{address}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_zero_is_replaced_by_the_port_taken() {
        let listening = Listening::bind("127.0.0.1:0".parse().unwrap(), "--listen").unwrap();
        assert_ne!(listening.address.port(), 0);
        assert_eq!(
            listening.base_url,
            format!("http://localhost:{}", listening.address.port())
        );
    }

    #[test]
    fn where_nothing_was_said_a_busy_port_is_passed_over() {
        let first = Listening::bind_near(38_080).unwrap();
        let second = Listening::bind_near(first.address.port()).unwrap();
        assert!(
            second.address.port() > first.address.port(),
            "{} {}",
            first.address,
            second.address
        );
    }

    #[test]
    fn a_busy_port_is_named_with_the_flag_that_changes_it() {
        let first = Listening::bind("127.0.0.1:0".parse().unwrap(), "--listen").unwrap();
        let trouble = Listening::bind(first.address, "--demo-listen")
            .unwrap_err()
            .to_string();
        assert!(trouble.contains(&first.address.to_string()), "{trouble}");
        assert!(trouble.contains("--demo-listen"), "{trouble}");
    }

    #[test]
    fn an_address_other_than_localhost_stands_in_the_url() {
        assert_eq!(base_url("[::1]:8080".parse().unwrap()), "http://[::1]:8080");
        assert_eq!(
            base_url("127.0.0.2:8080".parse().unwrap()),
            "http://127.0.0.2:8080"
        );
    }
}
