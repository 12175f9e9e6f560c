//! What supervisor and server process say to each other: one word a line, over the socket that is the server process's
//! standard output. The end of that socket is the end of the server process.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    Ready,
    Beat,
    /// Requests get more than refusals from now on; said once.
    Open,
    /// Leaked or short resources: a successor is wanted, soon.
    Recycle,
    /// New connections are no longer accepted: a successor is wanted now.
    Deaf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Finish what is in flight, then end.
    Drain,
}

impl Report {
    pub const fn word(self) -> &'static str {
        match self {
            Report::Ready => "ready",
            Report::Beat => "beat",
            Report::Open => "open",
            Report::Recycle => "recycle",
            Report::Deaf => "deaf",
        }
    }

    pub fn parse(word: &str) -> Option<Report> {
        [Report::Ready, Report::Beat, Report::Open, Report::Recycle, Report::Deaf]
            .into_iter()
            .find(|report| report.word() == word)
    }
}

impl Order {
    pub const fn word(self) -> &'static str {
        match self {
            Order::Drain => "drain",
        }
    }

    pub fn parse(word: &str) -> Option<Order> {
        (word == Order::Drain.word()).then_some(Order::Drain)
    }
}

#[derive(Debug)]
pub struct Control(Mutex<UnixStream>);

impl Control {
    /// The supervisor put the socket in the place of standard output; the second handle is for reading orders.
    pub fn from_stdout() -> io::Result<(Control, UnixStream)> {
        let stream = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
        stream.peer_addr()?;
        let orders = stream.try_clone()?;
        Ok((Control(Mutex::new(stream)), orders))
    }

    /// One that cannot be sent is lost: whoever reads orders sees the same end.
    pub fn report(&self, report: Report) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = stream.write_all(format!("{}\n", report.word()).as_bytes()) {
            log::warn!("the supervisor cannot be told \"{}\": {error}", report.word());
        }
    }
}
