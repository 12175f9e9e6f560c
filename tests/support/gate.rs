//! A gate before the database: open, it passes everything on; shut, there is no database.

#![allow(dead_code, reason = "no test file uses all of it")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a panic here is a failed test")]

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::postgres::cluster;

/// Listens on a port of its own. Shut, it hangs up on whoever is or gets connected.
pub struct Gate {
    pub port: u16,
    passing: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Gate {
    /// A shut one.
    pub fn new() -> Gate {
        let config: postgres::Config = cluster().parse().unwrap();
        let Some(postgres::config::Host::Tcp(host)) = config.get_hosts().first().cloned() else {
            panic!("TEST_DATABASE_URL must use TCP")
        };
        let target = (host, config.get_ports().first().copied().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let passing = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&passing);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let mut passing: std::sync::MutexGuard<'_, Option<Vec<TcpStream>>> = shared.lock().unwrap();
                // Dropped, the connection is at its end.
                let Some(connections) = passing.as_mut() else { continue };
                let far = TcpStream::connect((target.0.as_str(), target.1)).unwrap();
                connections.extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                pass_on(near.try_clone().unwrap(), far.try_clone().unwrap());
                pass_on(far, near);
            }
        });
        Gate { port, passing }
    }

    pub fn open(&self) {
        *self.passing.lock().unwrap() = Some(Vec::new());
    }

    pub fn shut(&self) {
        for connection in self.passing.lock().unwrap().take().into_iter().flatten() {
            drop(connection.shutdown(Shutdown::Both));
        }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        drop(io::copy(&mut from, &mut to));
        drop(to.shutdown(Shutdown::Both));
    });
}
