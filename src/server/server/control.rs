//! What the supervisor and the server process tell each other: one word a line, over the socket
//! that is the server process's standard output. When that socket ends, the server process ends.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use gatepost_protocol::words::named::named;
use gatepost_store::mutex::Mutex;

named! {
    pub enum Report {
        Ready = "ready",
        Beat = "beat",
        /// From now on requests get more than refusals. Told once.
        Open = "open",
        /// Resources leaked or are short: start a successor soon.
        Recycle = "recycle",
        /// New connections are no longer accepted: start a successor now.
        Deaf = "deaf",
    }
}

/// The one order: to finish what is in flight, then to end.
pub const DRAIN: &str = "drain";

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

    /// A report that cannot be sent is lost: the thread that reads orders sees that the socket
    /// ended.
    pub fn report(&self, report: Report) {
        let mut stream = self.0.lock();
        if let Err(error) = stream.write_all(format!("{}\n", report.as_str()).as_bytes()) {
            log::warn!(
                "the supervisor cannot be told \"{}\": {error}",
                report.as_str()
            );
        }
    }
}
