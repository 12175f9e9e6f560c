//! What systemd is told (`sd_notify(3)`): ready, reloading, stopping, alive. Nothing is sent where nobody listens.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A message to systemd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Requests are served.
    Ready,
    /// A new server process takes over.
    Reloading,
    /// The service is ending.
    Stopping,
    /// The supervisor is alive.
    Watchdog,
}

impl Notice {
    const fn text(self) -> &'static str {
        match self {
            Notice::Ready => "READY=1",
            Notice::Reloading => "RELOADING=1",
            Notice::Stopping => "STOPPING=1",
            Notice::Watchdog => "WATCHDOG=1",
        }
    }
}

/// Sends `notice` to the socket that `NOTIFY_SOCKET` names: a path, or an abstract name after `@`.
pub fn notify(socket: Option<&OsString>, notice: Notice) {
    let Some(name) = socket else { return };
    if let Err(error) = send(name, notice.text()) {
        log::warn!("systemd cannot be told {}: {error}", notice.text());
    }
}

fn send(name: &OsStr, text: &str) -> io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address).map(drop)
}
