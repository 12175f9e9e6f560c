//! One worker for each connection. tiny_http hands out pipelined requests all at once, and an
//! answer can be written only after the one before it. Without turns, one client that does not read
//! its answers could stop every worker.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Write};
use std::mem;
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use super::Handler;
use super::workers::{Service, contained};

use gatepost_store::mutex::Mutex;

/// Requests that may wait behind the one being answered. A well-behaved client sends few. But
/// requests of a connection that is gone may arrive before and between those of the next connection
/// from that address, as fast as they can be read.
pub const WAITING_LIMIT: usize = 1_000;

/// Connections with a request in a worker's hands, the requests that came after it, and the
/// connections that are served no more. tiny_http cannot close those, but nothing they send is
/// answered.
///
/// tiny_http tells connections apart by the peer's address alone, which a new connection may have
/// while an old one is still known. What came after the end of a connection is therefore in doubt
/// until somebody has seen whether that connection is still there (see [`Ended`]): if it is, no
/// other can have its address.
///
/// Connections over a Unix socket have no address and take no turns: only the proxy connects there,
/// it sends one request at a time, and it closes when it is told so.
pub struct Turns<T>(Mutex<HashMap<SocketAddr, Connection<T>>>);

struct Connection<T> {
    waiting: VecDeque<T>,
    stage: Stage,
}

#[derive(PartialEq)]
enum Stage {
    /// A request of it is in a worker's hands.
    Served,
    /// The same, and its next answer is the last.
    Ending,
    Ended,
}

#[derive(Debug, PartialEq)]
pub enum Turn<T> {
    /// Serve it now, and then call [`Turns::next`].
    Now(T),
    /// The worker that serves its connection will serve it.
    Later,
    /// Do not serve it. This is the request that has waited longest: a newer one may be from
    /// another connection.
    Never(T),
}

impl<T> Turns<T> {
    pub fn new() -> Turns<T> {
        Turns(Mutex::new(HashMap::new()))
    }

    /// Decides whose turn the request is. With too many waiting requests, the connection ends with
    /// the next answer.
    pub fn begin(&self, peer: Option<SocketAddr>, request: T) -> Turn<T> {
        let Some(peer) = peer else {
            return Turn::Now(request);
        };
        let mut turns = self.0.lock();
        let connection = match turns.entry(peer) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                entry.insert(Connection {
                    waiting: VecDeque::new(),
                    stage: Stage::Served,
                });
                return Turn::Now(request);
            }
        };
        connection.waiting.push_back(request);
        if connection.waiting.len() <= WAITING_LIMIT {
            return Turn::Later;
        }
        if connection.stage == Stage::Served {
            connection.stage = Stage::Ending;
            return Turn::Later;
        }
        connection
            .waiting
            .pop_front()
            .map_or(Turn::Later, Turn::Never)
    }

    /// The next request of a connection whose turn it was; when there is none, the connection is
    /// free again.
    pub fn next(&self, peer: Option<SocketAddr>) -> Option<T> {
        let peer = peer?;
        let mut turns = self.0.lock();
        let connection = turns
            .get_mut(&peer)
            .filter(|connection| connection.stage != Stage::Ended)?;
        let next = connection.waiting.pop_front();
        if next.is_none() {
            turns.remove(&peer);
        }
        next
    }

    /// Whether nothing will be answered on the connection after the request being served.
    pub fn is_last(&self, peer: Option<SocketAddr>) -> bool {
        let turns = self.0.lock();
        peer.and_then(|peer| turns.get(&peer))
            .is_some_and(|connection| connection.stage == Stage::Ending)
    }

    /// Serves the caller's connection no more. It stays known until [`Turns::forget`].
    pub fn end(&self, peer: SocketAddr) {
        if let Some(connection) = self.0.lock().get_mut(&peer) {
            connection.stage = Stage::Ended;
        }
    }

    /// The connection of the request being served is gone. The next answer may be on another
    /// connection, so it need not be the last.
    pub fn go_on(&self, peer: Option<SocketAddr>) {
        let mut turns = self.0.lock();
        if let Some(connection) = peer.and_then(|peer| turns.get_mut(&peer)) {
            connection.stage = Stage::Served;
        }
    }

    pub fn take_doubtful(&self, peer: SocketAddr) -> VecDeque<T> {
        self.0
            .lock()
            .get_mut(&peer)
            .map(|connection| mem::take(&mut connection.waiting))
            .unwrap_or_default()
    }

    /// Forgets an ended connection that is gone. The requests that came after its end are from
    /// another connection. Serve the first of them now, and then call [`Turns::next`].
    pub fn forget(&self, peer: SocketAddr, doubtful: VecDeque<T>) -> Option<T> {
        let mut turns = self.0.lock();
        let connection = turns.get_mut(&peer)?;
        let later = mem::replace(&mut connection.waiting, doubtful);
        connection.waiting.extend(later);
        connection.stage = Stage::Served;
        drop(turns);
        self.next(Some(peer))
    }
}

/// Time between two looks for requests that came after the end.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// When a silent connection is looked at first. Then the time doubles with each look.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// A connection that was silent for so long is given back to tiny_http, which has ended it, too
/// (see `listener`).
const SILENCE: Duration = Duration::from_secs(12);
/// Sent after the last answer, to see whether the client is still there. The client was told that
/// the answer was the last, and most HTTP clients ignore line ends.
const KNOCK: &[u8] = b"\r\n";

/// A connection after its last answer, and what that was written with.
///
/// tiny_http closes a connection only when its client does or says nothing for a while, and until
/// then goes on handing out what comes in. Who has the last writer of a connection can see whether
/// it is still there: the kernel takes bytes for a connection that is, and refuses them for one
/// that is not. And only when it is not can another have its address.
pub struct Ended {
    peer: SocketAddr,
    writer: Box<dyn Write + Send>,
    heard: Instant,
    pause: Duration,
    look_at: Instant,
}

impl Ended {
    pub fn new(peer: SocketAddr, writer: Box<dyn Write + Send>) -> Ended {
        let now = Instant::now();
        Ended {
            peer,
            writer,
            heard: now,
            pause: FIRST_LOOK,
            look_at: now + FIRST_LOOK,
        }
    }
}

impl<H: Handler> Service<H> {
    pub fn see_off(&'static self, coming: &Receiver<Ended>) {
        let (mut watched, mut full): (Vec<Ended>, VecDeque<Ended>) = Default::default();
        loop {
            let is_idle = watched.is_empty() && full.is_empty();
            let first = if is_idle { coming.recv().ok() } else { None };
            watched.extend(first.into_iter().chain(coming.try_iter()));
            // A look at a connection whose client does not read takes as long as a write may block:
            // one of these in each round.
            watched.extend(full.pop_front());
            for mut connection in mem::take(&mut watched) {
                // A panic ends the watch over one connection, and not over all.
                match contained(|| self.look(&mut connection)) {
                    Some(Sight::There) => watched.push(connection),
                    Some(Sight::Full) => full.push_back(connection),
                    Some(Sight::Gone) | None => {}
                }
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Discards the requests that came after the end if the connection is still there. Has them
    /// served if it is gone.
    fn look(&'static self, connection: &mut Ended) -> Sight {
        let peer = connection.peer;
        // Taken before the look, because later requests may be from another connection.
        let doubtful = self.turns.take_doubtful(peer);
        let now = Instant::now();
        if doubtful.is_empty() && now < connection.look_at {
            return Sight::There;
        }
        if !doubtful.is_empty() {
            connection.heard = now;
        }
        let sight = if connection.heard + SILENCE > now {
            knock(&mut connection.writer)
        } else {
            Sight::Gone
        };
        match sight {
            Sight::There | Sight::Full => {
                connection.pause *= 2;
                connection.look_at = now + connection.pause;
                doubtful
                    .into_iter()
                    .for_each(|request| self.discard(request));
            }
            Sight::Gone => self
                .turns
                .forget(peer, doubtful)
                .into_iter()
                .for_each(|next| self.serve_soon(next)),
        }
        sight
    }
}

enum Sight {
    There,
    /// The client is there, and the kernel's buffer is full.
    Full,
    Gone,
}

fn knock(writer: &mut impl Write) -> Sight {
    match writer
        .write(KNOCK)
        .and_then(|_| writer.flush())
        .map_err(|error| error.kind())
    {
        Ok(()) => Sight::There,
        Err(ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => Sight::Full,
        Err(_) => Sight::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> Option<SocketAddr> {
        Some(address(port))
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
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
        assert!(!turns.is_last(None));
    }

    #[test]
    fn one_request_too_many_ends_its_connection_with_the_next_answer() {
        let turns = Turns::new();
        assert_eq!(turns.begin(peer(1), 0), Turn::Now(0));
        assert!((1..=WAITING_LIMIT).all(|number| turns.begin(peer(1), number) == Turn::Later));
        assert!(!turns.is_last(peer(1)));
        assert_eq!(turns.begin(peer(1), 1_001), Turn::Later);
        assert!(turns.is_last(peer(1)));
        assert_eq!(
            turns.begin(peer(1), 1_002),
            Turn::Never(1),
            "what is sent until the end is answered takes no room"
        );
        turns.end(address(1));
        assert_eq!(turns.next(peer(1)), None);
        assert!(turns.take_doubtful(address(1)).into_iter().eq(2..=1_002));
        assert!((0..=WAITING_LIMIT).any(|number| turns.begin(peer(1), number) == Turn::Never(0)));
    }

    #[test]
    fn what_comes_from_a_connection_that_is_gone_does_not_end_the_one_after_it() {
        let turns = Turns::new();
        assert_eq!(turns.begin(peer(1), 0), Turn::Now(0));
        assert!((0..=WAITING_LIMIT).all(|number| turns.begin(peer(1), number) == Turn::Later));
        assert!(turns.is_last(peer(1)));
        turns.go_on(peer(1));
        assert_eq!(
            [turns.next(peer(1)), turns.next(peer(1))],
            [Some(0), Some(1)]
        );
        assert_eq!(turns.begin(peer(1), 1_001), Turn::Later);
        assert!(!turns.is_last(peer(1)));
    }

    #[test]
    fn what_follows_an_ended_connection_is_in_doubt_until_it_is_gone_and_then_served_in_order() {
        let turns = Turns::new();
        assert_eq!(turns.begin(peer(1), "served"), Turn::Now("served"));
        assert_eq!(turns.begin(peer(1), "waiting"), Turn::Later);
        turns.end(address(1));
        assert_eq!(turns.next(peer(1)), None);
        assert_eq!(
            turns.take_doubtful(address(1)),
            ["waiting"],
            "still there, so these are discarded"
        );
        assert_eq!(turns.begin(peer(2), "another's"), Turn::Now("another's"));
        assert_eq!(turns.begin(peer(1), "first"), Turn::Later);
        let doubtful = turns.take_doubtful(address(1));
        assert_eq!(turns.begin(peer(1), "second"), Turn::Later);
        assert_eq!(turns.forget(address(1), doubtful), Some("first"));
        assert!(!turns.is_last(peer(1)));
        assert_eq!(turns.next(peer(1)), Some("second"));
        assert_eq!(turns.next(peer(1)), None);
        assert_eq!(turns.begin(peer(1), "third"), Turn::Now("third"));
    }

    #[test]
    fn nothing_is_remembered_of_a_connection_that_is_gone() {
        let turns = Turns::new();
        assert_eq!(turns.begin(peer(1), 1), Turn::Now(1));
        turns.end(address(1));
        assert_eq!(turns.forget(address(1), VecDeque::new()), None);
        assert_eq!(turns.begin(peer(1), 2), Turn::Now(2));
    }
}
