//! The supervisor's sockets. Where the service listens: parsing the setting, and the socket itself,
//! bound here or handed in as standard input. And messages to systemd (`sd_notify(3)`), if it
//! started us.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{self, UnixDatagram};
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use crate::server::BACKLOG;

/// Only the owner and the group (the proxy's) may connect.
const SOCKET_MODE: u32 = 0o660;

pub enum Listen {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Listen {
    /// Reads `127.0.0.1:8080`, `[::1]:8080` or `unix:/run/gatepost/http.sock`.
    /// The error does not repeat the text.
    pub fn parse(text: &str) -> Result<Listen, &'static str> {
        let Some(path) = text.strip_prefix("unix:") else {
            return text.parse().map(Listen::Tcp).map_err(|_| {
                "expected an IP address with a port, as 127.0.0.1:8080 or [::1]:8080, or \
                     unix:/path/of/a/socket"
            });
        };
        if !path.starts_with('/') || path.ends_with('/') {
            return Err("the path after unix: must be absolute and name a file");
        }
        // sun_path of unix(7), with its closing NUL.
        if path.len() >= 108 || path.contains('\0') {
            return Err("the path after unix: must be shorter than 108 bytes");
        }
        Ok(Listen::Unix(PathBuf::from(path)))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Tcp(address) => address.fmt(formatter),
            Listen::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// The listening socket. Every server process gets a handle of its own; while there is none,
/// connections wait in it.
pub struct Listening {
    socket: OwnedFd,
    is_handed_over: bool,
    /// A path that we made, and the file we made there.
    path: Option<(PathBuf, (u64, u64))>,
}

impl Listening {
    /// Takes standard input when that is a listening socket, as systemd hands one over; else binds.
    /// A Unix socket's path that a living process or another kind of file has is left to it.
    pub fn open(listen: &Listen) -> io::Result<Listening> {
        if SockRef::from(&io::stdin()).is_listener().unwrap_or(false) {
            let socket = io::stdin().as_fd().try_clone_to_owned()?;
            return Ok(Listening {
                socket,
                is_handed_over: true,
                path: None,
            });
        }
        let (socket, path) = match listen {
            Listen::Tcp(address) => {
                let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None)?;
                socket.set_reuse_address(true)?;
                socket.bind(&SockAddr::from(*address))?;
                (socket, None)
            }
            Listen::Unix(path) => (bind_unix(path)?, Some((path.clone(), inode(path)?))),
        };
        socket.listen(BACKLOG)?;
        Ok(Listening {
            socket: OwnedFd::from(socket),
            is_handed_over: false,
            path,
        })
    }

    /// What to call it in the log, where `listen` is the setting.
    pub fn describe(&self, listen: &Listen) -> String {
        if self.is_handed_over {
            String::from("the socket handed over as standard input")
        } else {
            listen.to_string()
        }
    }

    pub fn handle(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }

    /// Removes the path, so that nobody connects any more; only if it is still the one made here.
    pub fn remove_path(&mut self) {
        let Some((path, made)) = self.path.take() else {
            return;
        };
        if inode(&path).is_ok_and(|current| current == made)
            && let Err(error) = fs::remove_file(&path)
        {
            log::warn!("{} cannot be removed: {error}", path.display());
        }
    }
}

/// Claims the admin address for this supervisor, for as long as what is returned lives; an error
/// where another has it. Its server processes share the address (`SO_REUSEPORT`), which the kernel
/// grants to other supervisors' as well; an abstract name is had by one process alone. It names the
/// port alone, since an address can stand for all of a machine's.
pub fn claim_admin(address: SocketAddr) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&net::SocketAddr::from_abstract_name(format!(
        "gatepost-admin-{}",
        address.port()
    ))?)
}

fn bind_unix(path: &Path) -> io::Result<Socket> {
    let address = SockAddr::unix(path)?;
    remove_stale(path, &address)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&address)?;
    // Before listen() nobody can connect, so there is no moment with wider permissions.
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    Ok(socket)
}

/// Removes the path of a socket whose process is gone. Anything else stays, and is an error.
fn remove_stale(path: &Path, address: &SockAddr) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the path exists and is not a socket",
        ));
    }
    let caller = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A living process whose queue is full must not look like a dead one, nor stop us.
    caller.set_nonblocking(true)?;
    match caller.connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process answers on this socket",
        )),
    }
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// How long a full queue is waited for.
const NOTICE_PATIENCE: Duration = Duration::from_secs(1);

/// Sends `notice` to the socket that `NOTIFY_SOCKET` names: a path, or an abstract name after `@`.
pub fn notify(socket: Option<&OsString>, notice: &str) {
    let Some(name) = socket else { return };
    if let Err(error) = send(name, notice) {
        log::warn!("systemd cannot be told {notice}: {error}");
    }
}

fn send(name: &OsStr, text: &str) -> io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => net::SocketAddr::from_abstract_name(name)?,
        None => net::SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A peer that does not read must not keep the supervisor from its processes.
    socket.set_write_timeout(Some(NOTICE_PATIENCE))?;
    socket.send_to_addr(text.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_address_are_read() {
        for text in ["127.0.0.1:8080", "[::1]:0", "unix:/run/gatepost/http.sock"] {
            assert_eq!(Listen::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let long = format!("unix:/{}", "a".repeat(107));
        for text in [
            "",
            "8080",
            ":8080",
            "localhost:8080",
            "127.0.0.1",
            "unix:",
            "unix:http.sock",
            "unix:/run/",
            &long,
        ] {
            assert!(Listen::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn whoever_does_not_read_holds_nobody_up_for_long() {
        let path = std::env::temp_dir().join(format!("gatepost-notices-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixDatagram::bind(&path).unwrap();
        let refused = (0..10_000).find_map(|_| send(path.as_os_str(), "WATCHDOG=1").err());
        assert_eq!(
            refused.map(|error| error.kind()),
            Some(io::ErrorKind::WouldBlock)
        );
        let mut text = [0; 64];
        assert_eq!(listener.recv(&mut text).unwrap(), "WATCHDOG=1".len());
        send(path.as_os_str(), "STOPPING=1").unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
