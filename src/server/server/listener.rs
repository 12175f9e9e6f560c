//! The sockets a server process listens on: the one it inherits as standard input, and its own for
//! the admin pages.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

/// Connections that wait in the kernel while none is accepted: between one process and its
/// successor, for example.
pub const BACKLOG: i32 = 4_096;
const READ_PATIENCE: Duration = Duration::from_secs(10);
/// How long one write may block. A look at a connection whose client does not read takes this long.
const WRITE_STEP: Duration = Duration::from_millis(10);
/// How often writing an answer may block, a `WRITE_STEP` each time: it holds a worker. One answer
/// always fits into the kernel's buffer, so only a client that leaves several answers unread makes
/// us wait.
pub const WRITE_STEPS: u32 = 25;
/// How long the first connection to our own socket may wait in a full queue.
const DOOR_PATIENCE: Duration = Duration::from_millis(100);
/// In bytes. The kernel reserves twice as much.
const SEND_BUFFER: usize = 128 * 1_024;

pub struct Inherited {
    socket: Socket,
    pub address: SockAddr,
}

impl Inherited {
    /// The supervisor put the listening socket in the place of standard input.
    pub fn from_stdin() -> io::Result<Inherited> {
        let socket = Socket::from(io::stdin().as_fd().try_clone_to_owned()?);
        if !socket.is_listener()? {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "standard input is not a listening socket",
            ));
        }
        let bound = socket.local_addr()?;
        let address = bound
            .as_socket()
            .map(reachable)
            .map_or(bound, SockAddr::from);
        // systemd's sockets come non-blocking.
        socket.set_nonblocking(false)?;
        socket.listen(BACKLOG)?;
        if !address.is_unix() {
            // On Linux every accepted connection inherits this. Without `TCP_NODELAY` an answer
            // longer than tiny_http's buffer of 1,024 bytes waits 40 ms for an acknowledgement.
            socket.set_tcp_nodelay(true)?;
            socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(Duration::from_secs(30)))?;
            socket.set_send_buffer_size(SEND_BUFFER)?;
            socket.set_write_timeout(Some(WRITE_STEP))?;
            socket.set_read_timeout(Some(READ_PATIENCE))?;
        }
        Ok(Inherited { socket, address })
    }

    /// Fails when this process's user is kept out, as by the mode and group of a socket that
    /// systemd made. Any other failure may pass.
    pub fn try_door(&self) -> io::Result<()> {
        match connect(&self.address, DOOR_PATIENCE) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
            _ => Ok(()),
        }
    }

    /// The number of the descriptor that tiny_http will accept from.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub fn into_listener(self) -> tiny_http::Listener {
        let is_unix = self.address.is_unix();
        let descriptor = OwnedFd::from(self.socket);
        if is_unix {
            tiny_http::Listener::Unix(UnixListener::from(descriptor))
        } else {
            tiny_http::Listener::Tcp(TcpListener::from(descriptor))
        }
    }
}

/// Shared with the process that follows by `SO_REUSEPORT`.
pub fn bind_admin(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(64)?;
    socket.set_tcp_nodelay(true)?;
    // Reading and writing are bounded, accepting is not: nothing connects here regularly.
    Ok(TcpListener::from(OwnedFd::from(socket)))
}

/// Connects within `patience`, even when the queue is full.
pub fn connect(address: &SockAddr, patience: Duration) -> io::Result<Socket> {
    let socket = Socket::new(address.domain(), Type::STREAM, None)?;
    socket.connect_timeout(address, patience)?;
    socket.set_read_timeout(Some(patience))?;
    socket.set_write_timeout(Some(patience))?;
    Ok(socket)
}

/// A socket bound to every address is reached over loopback.
pub fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, bound.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_bound_to_everything_is_reached_over_loopback() {
        for (bound, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("192.0.2.1:80", "192.0.2.1:80"),
        ] {
            assert_eq!(reachable(bound.parse().unwrap()), reached.parse().unwrap());
        }
    }
}
