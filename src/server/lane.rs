//! The body lane: bodies that may have to be waited for are read here, by half as many threads as there are workers, so
//! that slow senders never hold a worker.

use std::io::{ErrorKind, Read};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::workers::InFlight;
use crate::http::incoming::Head;

/// Longest body that a handler gets, in bytes.
pub const BODY_LIMIT: u64 = 64 * 1_024;
/// Longest body that is read to its end, to be refused in good order, in bytes.
pub const DISCARD_LIMIT: u64 = 1_024 * 1_024;
/// How long a body may take in all.
pub const BODY_PATIENCE: Duration = Duration::from_secs(10);
/// How much of that is left at least, when a request has waited in line.
pub const LEAST_BODY_PATIENCE: Duration = Duration::from_secs(1);

/// A request whose body is still to come.
pub struct Waiting {
    pub request: tiny_http::Request,
    pub head: Head,
    pub id: String,
    pub arrived: Instant,
    pub in_flight: InFlight,
}

/// The queue before the lane.
pub struct Lane {
    entrance: SyncSender<Waiting>,
    exit: Mutex<Receiver<Waiting>>,
}

impl Lane {
    /// A queue for `places` requests.
    pub fn new(places: usize) -> Lane {
        let (entrance, exit) = sync_channel(places);
        Lane { entrance, exit: Mutex::new(exit) }
    }

    /// Puts a request in line; hands it back when the line is full.
    pub fn enter(&self, waiting: Waiting) -> Option<Waiting> {
        match self.entrance.try_send(waiting) {
            Ok(()) => None,
            Err(TrySendError::Full(waiting) | TrySendError::Disconnected(waiting)) => Some(waiting),
        }
    }

    /// The next request in line, waited for.
    pub fn next(&self) -> Option<Waiting> {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }
}

/// What became of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival {
    /// All of it is here.
    Whole(Vec<u8>),
    /// All of it came, and it was longer than [`BODY_LIMIT`].
    TooLong,
    /// Not all of it came in time.
    TooSlow,
    /// The sender ended before the body did.
    Broken,
}

/// Reads a body of the announced length, looking at the time between reads.
pub fn read_body(reader: &mut dyn Read, length: u64, deadline: Instant) -> Arrival {
    let mut body = Vec::new();
    let mut buffer = [0_u8; 8 * 1_024];
    let mut missing = length;
    while missing > 0 {
        if Instant::now() >= deadline {
            return Arrival::TooSlow;
        }
        let wanted = usize::try_from(missing).unwrap_or(usize::MAX).min(buffer.len());
        let window = buffer.get_mut(..wanted).unwrap_or_default();
        let count = match reader.read(window) {
            Ok(0) => return Arrival::Broken,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if is_timeout(error.kind()) => return Arrival::TooSlow,
            Err(_) => return Arrival::Broken,
        };
        missing = missing.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
        if length <= BODY_LIMIT {
            body.extend_from_slice(buffer.get(..count).unwrap_or_default());
        }
    }
    if length <= BODY_LIMIT { Arrival::Whole(body) } else { Arrival::TooLong }
}

fn is_timeout(kind: ErrorKind) -> bool {
    kind == ErrorKind::WouldBlock || kind == ErrorKind::TimedOut
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    struct Dribble(Duration);

    impl Read for Dribble {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            std::thread::sleep(self.0);
            buffer[0] = b'a';
            Ok(1)
        }
    }

    struct Failing(ErrorKind);

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from(self.0))
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn exactly_the_announced_length_is_read() {
        let mut stream: &[u8] = b"bodyGET / HTTP/1.1";
        assert_eq!(read_body(&mut stream, 4, soon()), Arrival::Whole(b"body".to_vec()));
        assert_eq!(stream, b"GET / HTTP/1.1");
    }

    #[test]
    fn a_body_at_the_limit_passes_and_one_byte_more_is_read_and_refused() {
        let bytes = vec![b'a'; 64 * 1_024 + 1];
        assert_eq!(read_body(&mut &bytes[1..], BODY_LIMIT, soon()), Arrival::Whole(bytes[1..].to_vec()));
        let mut stream = &bytes[..];
        assert_eq!(read_body(&mut stream, BODY_LIMIT + 1, soon()), Arrival::TooLong);
        assert!(stream.is_empty());
    }

    #[test]
    fn a_sender_that_ends_early_is_noticed() {
        assert_eq!(read_body(&mut &b"bod"[..], 4, soon()), Arrival::Broken);
        assert_eq!(read_body(&mut Failing(ErrorKind::ConnectionReset), 4, soon()), Arrival::Broken);
    }

    #[test]
    fn a_slow_sender_is_cut_off_between_reads() {
        let deadline = Instant::now() + Duration::from_millis(30);
        assert_eq!(read_body(&mut Dribble(Duration::from_millis(5)), 60_000, deadline), Arrival::TooSlow);
        assert_eq!(read_body(&mut Failing(ErrorKind::WouldBlock), 4, soon()), Arrival::TooSlow);
    }
}
