//! The server process tries its own door: short connections, so that tiny_http never leaves one waiting, and a request
//! a second, whose answer is the heartbeat.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{SockAddr, Socket};

use super::State;
use super::control::Report;
use super::listener::connect;
use super::resources::{Limits, connection_threads, open_connections};

const KNOCK_EVERY: Duration = Duration::from_millis(50);
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// In doubt.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// For one connection, or the answer on it.
const PATIENCE: Duration = Duration::from_secs(1);
/// In doubt: the predecessor may take connections and answer nothing.
const SHORT_PATIENCE: Duration = Duration::from_millis(200);
/// To the log, of connections that were gone too soon.
const DEPARTURES_TOLD_EVERY: Duration = Duration::from_secs(60);
/// After so long a silence doubt is certainty.
const DOUBT: Duration = Duration::from_secs(2);
const UNANSWERED_LIMIT: usize = 8;
/// tiny_http's pool keeps that many threads.
const NEVER_STUCK: usize = 4;
/// Connections given up with unread bodies before a successor is asked for.
const ABANDONED_LIMIT: u64 = 32;
/// No body gets through for this long although some are awaited.
const JAM: Duration = Duration::from_secs(30);
const NONCE_FIELD: &str = "Gatepost-Probe";

/// While one process follows another, probes of either reach both.
pub fn is_own_probe(request: &tiny_http::Request, nonce: &str) -> bool {
    request.url() == "/healthz"
        && request.headers().iter().any(|header| header.field.equiv(NONCE_FIELD) && header.value.as_str() == nonce)
}

/// tiny_http hands a new connection to a thread it believes idle; in a burst several are promised the same one, and
/// the rest wait until it is free. Each further connection makes a thread that afterwards takes one of those.
pub fn keep_knocking(state: &'static State, address: &SockAddr) {
    let mut knocker = Knocker::new(address);
    let mut count_not_before = Instant::now();
    while !state.is_draining() {
        thread::sleep(KNOCK_EVERY);
        knocker.knock();
        let started = Instant::now();
        if started < count_not_before {
            continue;
        }
        knocker.free_waiting_connections(state);
        // Counting thousands of connections takes time: never more than a fiftieth of a core.
        count_not_before = Instant::now() + started.elapsed() * 50;
    }
}

/// Makes connections that say nothing and end when the listener has taken notice.
pub struct Knocker<'a> {
    address: &'a SockAddr,
    /// Few, lest the successor of a process that no longer accepts finds hundreds in its queue.
    unanswered: Vec<Socket>,
}

impl Knocker<'_> {
    pub fn new(address: &SockAddr) -> Knocker<'_> {
        Knocker { address, unanswered: Vec::new() }
    }

    pub fn free_waiting_connections(&mut self, state: &State) {
        for _ in 0..waiting_connections(state) {
            self.knock();
        }
    }

    fn knock(&mut self) {
        self.unanswered.retain(is_unanswered);
        if self.unanswered.len() < UNANSWERED_LIMIT {
            let begun = connect(self.address, PATIENCE).and_then(|socket| {
                socket.shutdown(Shutdown::Write)?;
                socket.set_nonblocking(true)?;
                Ok(socket)
            });
            self.unanswered.extend(begun.ok());
        }
    }
}

/// tiny_http closes a connection as soon as a thread has read its end.
fn is_unanswered(mut socket: &Socket) -> bool {
    socket.read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

fn waiting_connections(state: &State) -> usize {
    let connections = open_connections().unwrap_or(0);
    state.stats.connections.store(connections, Ordering::Relaxed);
    if connections <= NEVER_STUCK {
        return 0;
    }
    connections.saturating_sub(connection_threads().unwrap_or(connections))
}

/// Looks after resources in the same round. In doubt, that is before the first answer and after a panic in one of
/// tiny_http's threads, it asks at once and takes no for an answer.
pub fn beat(state: &'static State, address: &SockAddr) {
    let limits = Limits::read();
    let mut lane_watch = LaneWatch { bodies: 0, moved_at: Instant::now() };
    let (mut is_ready, mut is_open) = (false, false);
    let mut silent_since: Option<Instant> = None;
    let mut departures_told: Option<Instant> = None;
    while !state.is_draining() {
        tell_departures(state, &mut departures_told);
        let started = Instant::now();
        let is_doubtful = !is_ready || state.doubtful.load(Ordering::Relaxed);
        match probe(address, &state.nonce, if is_doubtful { SHORT_PATIENCE } else { PATIENCE }) {
            Ok(()) => {
                state.control.report(if is_ready { Report::Beat } else { Report::Ready });
                state.doubtful.store(false, Ordering::Relaxed);
                (is_ready, silent_since) = (true, None);
                if !is_open && state.settings.is_open.load(Ordering::Acquire) {
                    is_open = true;
                    state.control.report(Report::Open);
                }
            }
            Err(error) => {
                if silent_since.is_none() {
                    log::warn!("the own listener does not answer: {error}");
                }
                let silence = silent_since.get_or_insert(started).elapsed();
                if is_doubtful && silence >= DOUBT {
                    state.control.report(Report::Deaf);
                    silent_since = None;
                }
            }
        }
        let has_given_up_many = state.stats.abandoned.load(Ordering::Relaxed) >= ABANDONED_LIMIT;
        let given_up = has_given_up_many.then_some("connections given up with unread bodies");
        if let Some(reason) = limits.nearly_reached().or(given_up).or_else(|| lane_watch.jam(state)) {
            state.ask_for_successor(reason);
        }
        thread::sleep(LOOK_EVERY);
        while is_ready && started.elapsed() < PROBE_EVERY && !state.doubtful.load(Ordering::Relaxed) {
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// One line a minute, however many there are.
fn tell_departures(state: &State, told: &mut Option<Instant>) {
    if told.is_some_and(|told| told.elapsed() < DEPARTURES_TOLD_EVERY) {
        return;
    }
    let departed = state.stats.departed.swap(0, Ordering::Relaxed);
    if departed > 0 {
        *told = Some(Instant::now());
        log::info!("{departed} connections were gone before they could be answered");
    }
}

/// On a Unix socket nothing ends a read that waits for a silent sender.
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

/// Repeated at once while another process of ours answers it.
fn probe(address: &SockAddr, nonce: &str, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    let request =
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{NONCE_FIELD}: {nonce}\r\nConnection: close\r\n\r\n");
    while Instant::now() < deadline {
        let mut socket = connect(address, patience)?;
        socket.write_all(request.as_bytes())?;
        let mut answer = String::new();
        socket.take(4_096).read_to_string(&mut answer)?;
        if answer.contains(nonce) {
            return Ok(());
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "only another process answered"))
}
