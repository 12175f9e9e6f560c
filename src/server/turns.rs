//! One connection, one worker. tiny_http hands out pipelined requests all at once, and an answer can be written only
//! after the one before it: without turns, a single client that does not read its answers could stop every worker.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections with a request in a worker's hands, and the requests that came after it.
///
/// Connections are told apart by the peer's address; those over a Unix socket have none and take no turns: only the
/// proxy connects there, and it sends one request at a time.
pub struct Turns<T>(Mutex<HashMap<SocketAddr, VecDeque<T>>>);

impl<T> Turns<T> {
    /// Nobody's turn yet.
    pub fn new() -> Turns<T> {
        Turns(Mutex::new(HashMap::new()))
    }

    /// Hands the request back if its connection is free, and takes that connection; else keeps the request.
    pub fn begin(&self, peer: Option<SocketAddr>, request: T) -> Option<T> {
        let Some(peer) = peer else { return Some(request) };
        let mut turns = self.lock();
        match turns.get_mut(&peer) {
            Some(waiting) => {
                waiting.push_back(request);
                None
            }
            None => {
                turns.insert(peer, VecDeque::new());
                Some(request)
            }
        }
    }

    /// The next request of a connection taken with [`Turns::begin`]; when there is none, the connection is free again.
    pub fn next(&self, peer: Option<SocketAddr>) -> Option<T> {
        let peer = peer?;
        let mut turns = self.lock();
        let next = turns.get_mut(&peer).and_then(VecDeque::pop_front);
        if next.is_none() {
            turns.remove(&peer);
        }
        next
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddr, VecDeque<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    #[test]
    fn requests_of_one_connection_come_one_after_the_other() {
        let turns = Turns::new();
        assert_eq!(turns.begin(peer(1), "first"), Some("first"));
        assert_eq!(turns.begin(peer(1), "second"), None);
        assert_eq!(turns.begin(peer(1), "third"), None);
        assert_eq!(turns.begin(peer(2), "another's"), Some("another's"));
        assert_eq!(turns.next(peer(1)), Some("second"));
        assert_eq!(turns.next(peer(1)), Some("third"));
        assert_eq!(turns.next(peer(1)), None);
        assert_eq!(turns.begin(peer(1), "fourth"), Some("fourth"));
    }

    #[test]
    fn connections_without_an_address_take_no_turns() {
        let turns = Turns::new();
        assert_eq!(turns.begin(None, 1), Some(1));
        assert_eq!(turns.begin(None, 2), Some(2));
        assert_eq!(turns.next(None), None);
    }
}
