//! What systemd is told (`sd_notify(3)`): ready, reloading, stopping, alive. Nothing is sent where nobody listens.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    Ready,
    Reloading,
    Stopping,
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

/// How long a full queue is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

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
    let socket = UnixDatagram::unbound()?;
    // Whoever does not read what they are told must not keep the supervisor from its processes.
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.send_to_addr(text.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_does_not_read_holds_nobody_up_for_long() {
        let path = std::env::temp_dir().join(format!("gatepost-notices-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixDatagram::bind(&path).unwrap();
        let refused = (0..10_000).find_map(|_| send(path.as_os_str(), "WATCHDOG=1").err());
        assert_eq!(refused.map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
        let mut text = [0; 64];
        assert_eq!(listener.recv(&mut text).unwrap(), "WATCHDOG=1".len());
        send(path.as_os_str(), "STOPPING=1").unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
