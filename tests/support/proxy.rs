//! Stands between Gatepost and its database, and can be cut, frozen, far away, or a pooler that
//! drops settings.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::Duration;

use super::postgres::cluster;

/// A way to the cluster of `TEST_DATABASE_URL`, on a port of 127.0.0.1.
pub struct Proxy {
    pub port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    cut: AtomicBool,
    frozen: AtomicBool,
    /// Connections so far, and how many of the first of them say nothing more.
    accepted: AtomicU64,
    left_behind: AtomicU64,
    /// Milliseconds for each way.
    distance: AtomicU64,
    /// What is written instead of what, of the same length, on the way to the database.
    replaced: Mutex<Option<(&'static str, &'static str)>>,
    /// Where this is asked, nothing more is passed on.
    silenced: Mutex<Option<&'static str>>,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub fn start() -> Proxy {
        Proxy::before(&cluster())
    }

    /// A way to the cluster of a URL.
    pub fn before(url: &str) -> Proxy {
        let config: postgres::Config = url.parse().unwrap();
        let postgres::config::Host::Tcp(host) = config.get_hosts()[0].clone() else {
            panic!("the URL must use TCP")
        };
        let target = (host, config.get_ports().first().copied().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                // Cut, it hangs up on whoever comes: to the caller the same as a refusal.
                if shared.cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(far) = TcpStream::connect((target.0.as_str(), target.1)) else {
                    continue;
                };
                let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
                let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                for (from, to, is_there) in [
                    (near.try_clone().unwrap(), far.try_clone().unwrap(), true),
                    (far, near, false),
                ] {
                    let shared = Arc::clone(&shared);
                    spawn(move || pass_on(from, to, is_there, number, &shared));
                }
            }
        });
        Proxy { port, state }
    }

    /// Ends every connection and refuses new ones, or takes them again.
    pub fn cut(&self, cut: bool) {
        self.state.cut.store(cut, Ordering::SeqCst);
        if cut {
            let mut open = self
                .state
                .open
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            open.drain(..)
                .for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        }
    }

    /// Goes on accepting and passes nothing on, or passes on what has come meanwhile.
    pub fn freeze(&self, frozen: bool) {
        self.state.frozen.store(frozen, Ordering::SeqCst);
    }

    /// Leads new connections to a database that lives; those that there are stay frozen. Or thaws
    /// them at last.
    pub fn fail_over(&self, is_over: bool) {
        let left_behind = if is_over {
            0
        } else {
            self.state.accepted.load(Ordering::SeqCst)
        };
        self.state.left_behind.store(left_behind, Ordering::SeqCst);
        self.freeze(false);
    }

    /// Holds what it passes on for so long, each way.
    pub fn set_distance(&self, each_way: Duration) {
        self.state
            .distance
            .store(each_way.as_millis() as u64, Ordering::SeqCst);
    }

    /// Replaces a text on its way to the database by one of the same length.
    pub fn replace(&self, text: &'static str, by: &'static str) {
        assert_eq!(text.len(), by.len());
        *self.state.replaced.lock().unwrap() = Some((text, by));
    }

    /// Keeps back what holds this text on its way to the database, until another is named or none.
    pub fn silence(&self, text: Option<&'static str>) {
        *self.state.silenced.lock().unwrap() = text;
    }
}

impl State {
    fn keeps_back(&self, sent: &[u8]) -> bool {
        let silenced = *self.silenced.lock().unwrap();
        silenced.is_some_and(|text| {
            sent.windows(text.len())
                .any(|window| window == text.as_bytes())
        })
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_there: bool, number: u64, state: &State) {
    let mut buffer = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if let Some((text, by)) = state.replaced.lock().unwrap().filter(|_| is_there) {
            let found = buffer[..count]
                .windows(text.len())
                .position(|window| window == text.as_bytes());
            found
                .into_iter()
                .for_each(|at| buffer[at..at + text.len()].copy_from_slice(by.as_bytes()));
        }
        sleep(Duration::from_millis(state.distance.load(Ordering::SeqCst)));
        while state.frozen.load(Ordering::SeqCst)
            || number < state.left_behind.load(Ordering::SeqCst)
            || (is_there && state.keeps_back(&buffer[..count]))
        {
            sleep(Duration::from_millis(10));
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
}
