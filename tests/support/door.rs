//! A door between the server and its database, which a test can shut.

#![allow(dead_code, reason = "no test file uses all of it")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a panic here is a failed test")]

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Passes connections on to another port, until shut.
pub struct Door {
    pub port: u16,
    /// Streams that pass through; `None` while shut.
    passing: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Door {
    /// An open door to `host` and `port`.
    pub fn to(host: String, port: u16) -> Door {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let door =
            Door { port: listener.local_addr().unwrap().port(), passing: Arc::new(Mutex::new(Some(Vec::new()))) };
        let passing = Arc::clone(&door.passing);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(passing) = passing.lock().unwrap().as_mut() {
                    let inside = TcpStream::connect((host.as_str(), port)).unwrap();
                    passing.extend([stream.try_clone().unwrap(), inside.try_clone().unwrap()]);
                    pass(stream, inside);
                }
            }
        });
        door
    }

    /// Ends every connection, and lets no further one through.
    pub fn shut(&self) {
        for stream in self.passing.lock().unwrap().take().into_iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets connections through again.
    pub fn open(&self) {
        *self.passing.lock().unwrap() = Some(Vec::new());
    }
}

fn pass(outside: TcpStream, inside: TcpStream) {
    for stream in [&outside, &inside] {
        stream.set_nodelay(true).unwrap();
    }
    let (mut from_outside, mut to_inside) = (outside.try_clone().unwrap(), inside.try_clone().unwrap());
    let (mut from_inside, mut to_outside) = (inside, outside);
    thread::spawn(move || {
        let _ = io::copy(&mut from_outside, &mut to_inside);
        let _ = to_inside.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut from_inside, &mut to_outside);
        let _ = to_outside.shutdown(Shutdown::Both);
    });
}
