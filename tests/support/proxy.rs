//! Stands between Gatepost and its database, and can be cut or frozen.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
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
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub fn start() -> Proxy {
        let config: postgres::Config = cluster().parse().unwrap();
        let postgres::config::Host::Tcp(host) = config.get_hosts()[0].clone() else {
            panic!("TEST_DATABASE_URL must use TCP")
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
                let Ok(far) = TcpStream::connect((target.0.as_str(), target.1)) else { continue };
                let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                for (from, to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                    let shared = Arc::clone(&shared);
                    spawn(move || pass_on(from, to, &shared));
                }
            }
        });
        Proxy { port, state }
    }

    /// Ends every connection and refuses new ones, or takes them again.
    pub fn cut(&self, cut: bool) {
        self.state.cut.store(cut, Ordering::SeqCst);
        if cut {
            let mut open = self.state.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        }
    }

    /// Goes on accepting and passes nothing on, or passes on what has come meanwhile.
    pub fn freeze(&self, frozen: bool) {
        self.state.frozen.store(frozen, Ordering::SeqCst);
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, state: &State) {
    let mut buffer = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        while state.frozen.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(10));
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
}
