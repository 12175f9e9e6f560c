//! What supervisor and server process say to each other: one word a line, over the socket that is
//! the server process's standard output. The end of that socket is the end of the server process.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use crate::protocol::words::named::named;

named! {
    pub enum Report {
        Ready = "ready",
        Beat = "beat",
        /// Requests get more than refusals from now on; said once.
        Open = "open",
        /// Leaked or short resources: a successor is wanted, soon.
        Recycle = "recycle",
        /// New connections are no longer accepted: a successor is wanted now.
        Deaf = "deaf",
    }
}

/// The one order: to finish what is in flight, then to end.
pub const DRAIN: &str = "drain";

#[derive(Debug)]
pub struct Control(Mutex<UnixStream>);

impl Control {
    /// The supervisor put the socket in the place of standard output; the second handle is for
    /// reading orders.
    pub fn from_stdout() -> io::Result<(Control, UnixStream)> {
        let stream = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
        stream.peer_addr()?;
        let orders = stream.try_clone()?;
        Ok((Control(Mutex::new(stream)), orders))
    }

    /// One that cannot be sent is lost: the reader of orders sees the same end.
    pub fn report(&self, report: Report) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = stream.write_all(format!("{}\n", report.as_str()).as_bytes()) {
            log::warn!(
                "the supervisor cannot be told \"{}\": {error}",
                report.as_str()
            );
        }
    }
}
