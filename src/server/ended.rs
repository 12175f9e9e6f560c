//! Connections that are served no more, until they are gone.
//!
//! tiny_http closes a connection only when its client does or says nothing for a while, and until then goes on handing
//! out what comes in. Who has the last writer of a connection can see whether it is still there: the kernel takes bytes
//! for a connection that is, and refuses them for one that is not. And only when it is not can another have its address.

use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::mem;
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use super::workers::{Service, contained};
use crate::http::{Refused, Request, Response};

/// What the last answer of a connection was written with.
pub type Writer = Box<dyn Write + Send>;

/// A connection after its last answer.
pub struct Ended {
    pub peer: SocketAddr,
    pub writer: Writer,
}

/// Time between two looks whether anything came after the end.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// When a connection on which nothing came is looked at first; then after twice as long each time.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// A connection on which nothing came for so long is given back to tiny_http, which has ended it too (see `listener`).
const SILENCE: Duration = Duration::from_secs(12);
/// Said to see whether anybody is there, after the last answer, to one who was told that it is the last. Line ends are
/// what HTTP clients are likeliest to pass over.
const KNOCK: &[u8] = b"\r\n";

struct Watched {
    ended: Ended,
    heard: Instant,
    pause: Duration,
    look_at: Instant,
}

impl<H> Service<H>
where
    H: Fn(Result<Request, Refused>) -> Response + Send + Sync + 'static,
{
    /// The life of the thread that sees ended connections off.
    pub fn see_off(&'static self, coming: &Receiver<Ended>) {
        let (mut watched, mut full): (Vec<Watched>, VecDeque<Watched>) = Default::default();
        loop {
            let is_idle = watched.is_empty() && full.is_empty();
            let first = if is_idle { coming.recv().ok() } else { None };
            watched.extend(first.into_iter().chain(coming.try_iter()).map(Watched::new));
            // A look at one that nobody reads from takes the time of a write: of those, one a round.
            watched.extend(full.pop_front());
            for mut connection in mem::take(&mut watched) {
                // What must not happen ends one connection's watch, not all of them.
                match contained(|| self.look(&mut connection)) {
                    Some(Sight::There) => watched.push(connection),
                    Some(Sight::Full) => full.push_back(connection),
                    Some(Sight::Gone) | None => {}
                }
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Discards what came on a connection that is still there; has it served where the connection is gone.
    fn look(&'static self, connection: &mut Watched) -> Sight {
        let peer = connection.ended.peer;
        // Taken before the look: what comes after it may be another connection's.
        let doubtful = self.turns.take_doubtful(peer);
        let now = Instant::now();
        if doubtful.is_empty() && now < connection.look_at {
            return Sight::There;
        }
        if !doubtful.is_empty() {
            connection.heard = now;
        }
        let sight = if connection.heard + SILENCE > now { knock(&mut connection.ended.writer) } else { Sight::Gone };
        match sight {
            Sight::There | Sight::Full => {
                connection.pause *= 2;
                connection.look_at = now + connection.pause;
                doubtful.into_iter().for_each(|request| self.discard(request));
            }
            Sight::Gone => self.turns.forget(peer, doubtful).into_iter().for_each(|next| self.serve_soon(peer, next)),
        }
        sight
    }
}

impl Watched {
    fn new(ended: Ended) -> Watched {
        let now = Instant::now();
        Watched { ended, heard: now, pause: FIRST_LOOK, look_at: now + FIRST_LOOK }
    }
}

/// What the kernel does with bytes for a connection.
enum Sight {
    /// It takes them.
    There,
    /// It would if there were room.
    Full,
    Gone,
}

fn knock(writer: &mut Writer) -> Sight {
    match writer.write(KNOCK).and_then(|_| writer.flush()).map_err(|error| error.kind()) {
        Ok(()) => Sight::There,
        Err(ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => Sight::Full,
        Err(_) => Sight::Gone,
    }
}
