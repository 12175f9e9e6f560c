//! The server process tries its own door: short connections, so that tiny_http never leaves one waiting, and a request
//! a second, whose answer is the heartbeat.

use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockAddr;

use super::State;
use super::control::Report;
use super::listener::connect;
use super::resources::{Limits, connection_threads, open_connections};

/// Time between two connections.
const KNOCK_EVERY: Duration = Duration::from_millis(50);
/// Time between two requests.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Time between two requests until the first one was answered.
const FIRST_PROBE_EVERY: Duration = Duration::from_millis(10);
/// How long one connection, or the answer on it, is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same until the first one was answered: the predecessor may take connections and answer nothing.
const FIRST_PATIENCE: Duration = Duration::from_millis(200);
/// Connections that tiny_http's pool never leaves waiting: it keeps that many threads.
const NEVER_STUCK: usize = 4;
/// After so many connections given up with unread bodies a successor is asked for.
const ABANDONED_LIMIT: u64 = 32;
/// No body gets through for this long although some are awaited: the lane is jammed.
const JAM: Duration = Duration::from_secs(30);
/// The request's header field that carries the nonce.
const NONCE_FIELD: &str = "Gatepost-Probe";

/// Whether a request is this process's own probe. While one process follows another, probes of either reach both.
pub fn is_own_probe(request: &tiny_http::Request, nonce: &str) -> bool {
    request.url() == "/healthz"
        && request.headers().iter().any(|header| header.field.equiv(NONCE_FIELD) && header.value.as_str() == nonce)
}

/// Connects every 50 ms, and at once again while connections wait for a thread.
///
/// tiny_http hands a new connection to a thread it believes idle; in a burst several are promised the same one, and the
/// rest wait until it is free. Each further connection makes a thread that afterwards takes one of those.
pub fn knock(state: &'static State, address: &SockAddr) {
    let mut count_not_before = Instant::now();
    while !state.is_draining() {
        thread::sleep(KNOCK_EVERY);
        drop(connect(address, PATIENCE));
        let started = Instant::now();
        if started < count_not_before {
            continue;
        }
        free_waiting_connections(state, address);
        // Counting thousands of connections takes time: never more than a fiftieth of a core.
        count_not_before = Instant::now() + started.elapsed() * 50;
    }
}

/// Connects once for every connection that waits for a thread.
pub fn free_waiting_connections(state: &State, address: &SockAddr) {
    for _ in 0..waiting_connections(state) {
        drop(connect(address, PATIENCE));
    }
}

fn waiting_connections(state: &State) -> usize {
    let connections = open_connections().unwrap_or(0);
    state.stats.connections.store(connections, Ordering::Relaxed);
    if connections <= NEVER_STUCK {
        return 0;
    }
    connections.saturating_sub(connection_threads().unwrap_or(connections))
}

/// Asks for `/healthz` once a second and reports each answer; looks after resources in the same round.
pub fn beat(state: &'static State, address: &SockAddr) {
    let limits = Limits::read();
    let mut lane_watch = LaneWatch { bodies: 0, moved_at: Instant::now() };
    let mut is_ready = false;
    while !state.is_draining() {
        let started = Instant::now();
        let patience = if is_ready { PATIENCE } else { FIRST_PATIENCE };
        match probe(address, &state.nonce, patience) {
            Ok(()) => {
                state.control.report(if is_ready { Report::Beat } else { Report::Ready });
                is_ready = true;
            }
            Err(error) => log::warn!("the own listener does not answer: {error}"),
        }
        if let Some(reason) = shortage(state, &limits).or_else(|| lane_watch.jam(state)) {
            state.ask_for_successor(reason);
        }
        let pause = if is_ready { PROBE_EVERY } else { FIRST_PROBE_EVERY };
        thread::sleep(pause.saturating_sub(started.elapsed()));
    }
}

/// What this process has too little left of to go on for long.
fn shortage(state: &State, limits: &Limits) -> Option<&'static str> {
    let has_given_up_many = state.stats.abandoned.load(Ordering::Relaxed) >= ABANDONED_LIMIT;
    let nearly_reached = limits.nearly_reached();
    nearly_reached.or_else(|| has_given_up_many.then_some("connections given up with unread bodies"))
}

/// Whether bodies get through. On a Unix socket nothing ends a read that waits for a silent sender.
struct LaneWatch {
    bodies: u64,
    moved_at: Instant,
}

impl LaneWatch {
    fn jam(&mut self, state: &State) -> Option<&'static str> {
        let bodies = state.stats.bodies.load(Ordering::Relaxed);
        if bodies != self.bodies || state.stats.awaited.load(Ordering::Relaxed) == 0 {
            *self = LaneWatch { bodies, moved_at: Instant::now() };
        }
        (self.moved_at.elapsed() >= JAM).then_some("the body lane stands still")
    }
}

/// One request, repeated at once while another process of ours answers it.
fn probe(address: &SockAddr, nonce: &str, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if request_healthz(address, nonce, patience)?.contains(nonce) {
            return Ok(());
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "only another process answered"))
}

fn request_healthz(address: &SockAddr, nonce: &str, patience: Duration) -> io::Result<String> {
    let mut socket = connect(address, patience)?;
    let request =
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{NONCE_FIELD}: {nonce}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes())?;
    let mut answer = String::new();
    socket.take(4_096).read_to_string(&mut answer)?;
    Ok(answer)
}
