//! The body lane reads the bodies that have not arrived yet, so that slow senders never hold a
//! worker. It has half as many threads as there are workers, and at most half of them read for one
//! source.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::sync::{Condvar, PoisonError};
use std::time::{Duration, Instant};

use super::workers::InFlight;
use crate::http::Request;
use gatepost_store::mutex::Mutex;

/// The longest body that a handler gets, in bytes, but for requests that
/// [`super::ServerSettings::takes_long_body`] lets have more.
pub const BODY_LIMIT: u64 = 64 * 1_024;
/// The longest body that these get. A body that is longer than allowed is read to its end up to
/// this length, so that the client gets to read the refusal.
pub const LONG_BODY_LIMIT: u64 = 1_024 * 1_024;
pub const BODY_PATIENCE: Duration = Duration::from_secs(10);
/// At least so much time is left for the body of a request that has waited in line.
pub const LEAST_BODY_PATIENCE: Duration = Duration::from_secs(1);
/// Places in line, for each thread.
const PLACES: usize = 8;

pub struct Waiting {
    pub request: tiny_http::Request,
    /// The request; its body is still to come.
    pub read: Request,
    pub body_length: u64,
    pub arrived: Instant,
    pub in_flight: InFlight,
}

/// A source is the network of an address that a trusted proxy forwards.
pub struct Lane<T> {
    places: usize,
    threads_per_source: usize,
    line: Mutex<Line<T>>,
    moved: Condvar,
}

struct Line<T> {
    waiting: VecDeque<(IpAddr, T)>,
    held: HashMap<IpAddr, usize>,
}

impl<T> Lane<T> {
    pub fn new(threads: usize) -> Lane<T> {
        Lane {
            places: threads * PLACES,
            threads_per_source: (threads / 2).max(1),
            line: Mutex::new(Line {
                waiting: VecDeque::new(),
                held: HashMap::new(),
            }),
            moved: Condvar::new(),
        }
    }

    /// Hands the request back when the line, or the half of it that one source may fill, is full.
    pub fn enter(&self, source: IpAddr, request: T) -> Option<T> {
        let mut line = self.line.lock();
        let of_source = line
            .waiting
            .iter()
            .filter(|(other, _)| *other == source)
            .count();
        if line.waiting.len() >= self.places || of_source >= self.places / 2 {
            return Some(request);
        }
        line.waiting.push_back((source, request));
        self.moved.notify_one();
        None
    }

    /// Waits for the first request whose source may have a further thread. Call [`Lane::leave`]
    /// after it.
    pub fn next(&self) -> (IpAddr, T) {
        let mut line = self.line.lock();
        loop {
            let most = self.threads_per_source;
            let mut waiting = line.waiting.iter();
            let index = waiting.position(|(source, _)| line.may_go(source, most));
            if let Some(next) = index.and_then(|index| line.waiting.remove(index)) {
                *line.held.entry(next.0).or_default() += 1;
                return next;
            }
            line = self
                .moved
                .wait(line)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn leave(&self, source: IpAddr) {
        let mut line = self.line.lock();
        if let Some(held) = line.held.get_mut(&source) {
            *held = held.saturating_sub(1);
        }
        line.held.retain(|_, held| *held > 0);
        self.moved.notify_one();
    }
}

impl<T> Line<T> {
    fn may_go(&self, source: &IpAddr, most: usize) -> bool {
        self.held.get(source).is_none_or(|held| *held < most)
    }
}

pub enum Arrival {
    Whole(Vec<u8>),
    TooLong,
    TooSlow,
    Broken,
}

/// Reads a body, and gives up between two reads when the time is over. One longer than `limit` is
/// not kept.
pub fn read_body(reader: &mut dyn Read, length: u64, limit: u64, deadline: Instant) -> Arrival {
    let mut body = Vec::new();
    let mut buffer = [0_u8; 8 * 1_024];
    let mut missing = length;
    while missing > 0 {
        if Instant::now() >= deadline {
            return Arrival::TooSlow;
        }
        let wanted = usize::try_from(missing)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let window = buffer.get_mut(..wanted).unwrap_or_default();
        let count = match reader.read(window) {
            Ok(0) => return Arrival::Broken,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Arrival::TooSlow;
            }
            Err(_) => return Arrival::Broken,
        };
        missing = missing.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
        if length <= limit {
            body.extend_from_slice(buffer.get(..count).unwrap_or_default());
        }
    }
    if length <= limit {
        Arrival::Whole(body)
    } else {
        Arrival::TooLong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn one_source_gets_half_the_threads_and_half_the_line() {
        let lane = Lane::new(4);
        let entered = (0..100)
            .filter(|number| lane.enter(source(1), *number).is_none())
            .count();
        assert_eq!(entered, 16);
        assert_eq!([lane.next(), lane.next()], [(source(1), 0), (source(1), 1)]);
        assert_eq!(lane.enter(source(2), 1_000), None);
        assert_eq!(
            lane.next(),
            (source(2), 1_000),
            "it goes before those whose source has its threads"
        );
        lane.leave(source(1));
        assert_eq!(lane.next(), (source(1), 2));
    }
}
