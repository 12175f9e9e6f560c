//! One connection, one worker. tiny_http hands out pipelined requests all at once, and an answer can be written only
//! after the one before it: without turns, a single client that does not read its answers could stop every worker.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most requests of one connection that may wait behind the one being answered.
pub const WAITING_LIMIT: usize = 8;
/// An ended connection stays known until it has said nothing for longer than a read may wait (see `listener`): by then
/// it is closed, and its address may be another's.
const REMEMBERED: Duration = Duration::from_secs(12);

/// Connections with a request in a worker's hands, the requests that came after it, and the connections that are served
/// no more. tiny_http cannot close those, but nothing they send is answered.
///
/// Connections are told apart by the peer's address; those over a Unix socket have none and take no turns: only the
/// proxy connects there, it sends one request at a time, and it closes when it is told so.
pub struct Turns<T>(Mutex<HashMap<SocketAddr, Connection<T>>>);

struct Connection<T> {
    waiting: VecDeque<T>,
    is_held: bool,
    ended: Option<Instant>,
}

/// When a request is to be served.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn<T> {
    /// At once, and [`Turns::next`] is to be called afterwards.
    Now(T),
    /// By whoever serves its connection.
    Later,
    /// Not at all.
    Never(T),
}

impl<T> Turns<T> {
    /// Nobody's turn yet.
    pub fn new() -> Turns<T> {
        Turns(Mutex::new(HashMap::new()))
    }

    /// Whose turn the request is. One too many ends its connection, once those before it are answered.
    pub fn begin(&self, peer: Option<SocketAddr>, request: T) -> Turn<T> {
        let Some(peer) = peer else { return Turn::Now(request) };
        let mut turns = self.lock();
        if turns.get(&peer).is_some_and(Connection::is_forgettable) {
            turns.remove(&peer);
        }
        let Some(connection) = turns.get_mut(&peer) else {
            turns.insert(peer, Connection { waiting: VecDeque::new(), is_held: true, ended: None });
            return Turn::Now(request);
        };
        if connection.ended.is_some() || connection.waiting.len() >= WAITING_LIMIT {
            connection.ended = Some(Instant::now());
            return Turn::Never(request);
        }
        connection.waiting.push_back(request);
        Turn::Later
    }

    /// The next request of a connection whose turn it was; when there is none, the connection is free again.
    pub fn next(&self, peer: Option<SocketAddr>) -> Option<T> {
        let peer = peer?;
        let mut turns = self.lock();
        let connection = turns.get_mut(&peer)?;
        let next = connection.waiting.pop_front();
        connection.is_held = next.is_some();
        if next.is_none() && connection.ended.is_none() {
            turns.remove(&peer);
        }
        next
    }

    /// Whether nothing will be answered on the connection after the request being served.
    pub fn is_last(&self, peer: Option<SocketAddr>) -> bool {
        let turns = self.lock();
        let connection = peer.and_then(|peer| turns.get(&peer));
        connection.is_some_and(|connection| connection.ended.is_some() && connection.waiting.is_empty())
    }

    /// Serves a connection no more; answers the requests that waited.
    pub fn end(&self, peer: Option<SocketAddr>) -> VecDeque<T> {
        let Some(peer) = peer else { return VecDeque::new() };
        let mut turns = self.lock();
        turns.retain(|_, connection| !connection.is_forgettable());
        let new = || Connection { waiting: VecDeque::new(), is_held: false, ended: None };
        let connection = turns.entry(peer).or_insert_with(new);
        connection.ended = Some(Instant::now());
        std::mem::take(&mut connection.waiting)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddr, Connection<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Connection<T> {
    fn is_forgettable(&self) -> bool {
        !self.is_held && self.ended.is_some_and(|ended| ended.elapsed() >= REMEMBERED)
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
        assert_eq!(turns.begin(peer(1), "first"), Turn::Now("first"));
        assert_eq!(turns.begin(peer(1), "second"), Turn::Later);
        assert_eq!(turns.begin(peer(1), "third"), Turn::Later);
        assert_eq!(turns.begin(peer(2), "another's"), Turn::Now("another's"));
        assert_eq!(turns.next(peer(1)), Some("second"));
        assert_eq!(turns.next(peer(1)), Some("third"));
        assert_eq!(turns.next(peer(1)), None);
        assert_eq!(turns.begin(peer(1), "fourth"), Turn::Now("fourth"));
    }

    #[test]
    fn connections_without_an_address_take_no_turns() {
        let turns = Turns::new();
        assert_eq!(turns.begin(None, 1), Turn::Now(1));
        assert_eq!(turns.begin(None, 2), Turn::Now(2));
        assert_eq!(turns.next(None), None);
        assert!(turns.end(None).is_empty() && !turns.is_last(None));
    }

    #[test]
    fn one_request_too_many_is_never_served_and_the_one_before_it_is_the_last() {
        let turns = Turns::new();
        assert_eq!(turns.begin(peer(1), 0), Turn::Now(0));
        for number in 1..=WAITING_LIMIT {
            assert_eq!(turns.begin(peer(1), number), Turn::Later);
        }
        assert_eq!(turns.begin(peer(1), 9), Turn::Never(9));
        for number in 1..=WAITING_LIMIT {
            assert!(!turns.is_last(peer(1)));
            assert_eq!(turns.next(peer(1)), Some(number));
        }
        assert!(turns.is_last(peer(1)));
        assert_eq!(turns.begin(peer(1), 10), Turn::Never(10));
        assert_eq!(turns.next(peer(1)), None);
        assert_eq!(turns.begin(peer(1), 11), Turn::Never(11));
    }

    #[test]
    fn an_ended_connection_loses_what_waited_and_all_that_follows() {
        let turns = Turns::new();
        assert_eq!(turns.begin(peer(1), "served"), Turn::Now("served"));
        assert_eq!(turns.begin(peer(1), "waiting"), Turn::Later);
        assert_eq!(turns.end(peer(1)), ["waiting"]);
        assert_eq!(turns.next(peer(1)), None);
        assert_eq!(turns.begin(peer(1), "later"), Turn::Never("later"));
        assert_eq!(turns.begin(peer(2), "another's"), Turn::Now("another's"));
    }
}
