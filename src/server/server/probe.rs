//! The server process connects to its own socket: by short connections, so that tiny_http never
//! leaves one waiting, and by a request a second, whose answer is the heartbeat. And the drain,
//! which ends the process when nothing is in flight and no connection is open or in use, or when
//! its time is over.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::dup2;
use socket2::{SockAddr, Socket, Type};

use super::State;
use super::control::Report;
use super::listener::connect;
use super::resources::{Limits, connection_threads, open_connections};
use crate::http::incoming::field_values;

const KNOCK_EVERY: Duration = Duration::from_millis(50);
/// The same while every open connection has a thread and few requests come. In a busy time a
/// connection that came since then would wait for the next round.
const KNOCK_IN_CALM_EVERY: Duration = Duration::from_millis(250);
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Time between two looks, when the listener is in doubt and in the drain.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long one connection, or the answer on it, may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same when the listener is in doubt. The predecessor may take our connection and not answer.
const SHORT_PATIENCE: Duration = Duration::from_millis(200);
/// Time between two log lines about connections that were gone too soon.
const DEPARTURES_TOLD_EVERY: Duration = Duration::from_secs(60);
/// After so long without an answer the listener has failed.
const DOUBT: Duration = Duration::from_secs(2);
const UNANSWERED_LIMIT: usize = 8;
/// tiny_http's pool keeps so many threads.
const NEVER_STUCK: usize = 4;
/// Connections given up with unread bodies before a successor is asked for. Each keeps a thread and
/// two descriptors; anybody can send so few bodies, so they should not be too few.
const ABANDONED_LIMIT: u64 = 256;
/// If no body arrives for so long although some are awaited, the lane is stuck.
const JAM: Duration = Duration::from_secs(30);
/// The time before a drain: connections that were accepted just before the successor was ready may
/// still send their request.
const GRACE: Duration = Duration::from_millis(300);
/// A connection idle for so long is kept alive by its client, which must expect that it ends.
const KEPT: Duration = Duration::from_secs(2);
/// How long a drain waits for a quiet moment before it stops accepting in a busy one: so the time
/// that is left is enough for whatever is in flight then.
const QUIET_PATIENCE: Duration = Duration::from_secs(3);
/// A drain lasts no longer, whatever connections are open.
const DRAIN_PATIENCE: Duration = Duration::from_secs(10);
/// Connections that tell tiny_http to stop accepting, and the time between two.
const LAST_KNOCKS: usize = 32;
const LAST_KNOCK_EVERY: Duration = Duration::from_millis(1);
const NONCE_FIELD: &str = "Gatepost-Probe";

/// While one process follows another, a probe may reach either of them.
pub fn is_own_probe(request: &tiny_http::Request, nonce: &str) -> bool {
    request.url() == "/healthz" && field_values(request, NONCE_FIELD).any(|value| value == nonce)
}

/// tiny_http hands a new connection to a thread it believes idle; in a burst several are promised
/// the same one, and the rest wait until it is free. Each further connection makes a thread that
/// afterwards takes one of those.
pub fn keep_knocking(state: &'static State, address: &SockAddr) {
    let mut knocker = Knocker {
        address,
        unanswered: Vec::new(),
        served: HashSet::new(),
    };
    let mut count_not_before = Instant::now();
    let mut knock_every = KNOCK_EVERY;
    let mut received = 0;
    while !state.is_draining() {
        thread::sleep(knock_every);
        knocker.knock();
        let started = Instant::now();
        if started < count_not_before {
            continue;
        }
        let waited = knocker.free_waiting_connections(state);
        let so_far = state.stats.received.get();
        let is_calm = waited == Some(0) && so_far.saturating_sub(received) <= NEVER_STUCK as u64;
        received = so_far;
        knock_every = if is_calm {
            KNOCK_IN_CALM_EVERY
        } else {
            KNOCK_EVERY
        };
        // Counting thousands of connections takes time: never more than a fiftieth of a core.
        count_not_before = Instant::now() + started.elapsed() * 50;
    }
}

/// Makes connections that say nothing and end when the listener has taken notice.
struct Knocker<'a> {
    address: &'a SockAddr,
    /// Few. Otherwise the successor of a process that no longer accepts would find hundreds in its
    /// queue.
    unanswered: Vec<Socket>,
    /// Open connections when each had a thread, which it keeps until it ends.
    served: HashSet<u64>,
}

impl Knocker<'_> {
    /// Makes a thread for each connection that has none. Answers how many those were; `None` where
    /// they could not be counted.
    fn free_waiting_connections(&mut self, state: &State) -> Option<usize> {
        let open = open_connections();
        let count = open.as_ref().map_or(0, HashSet::len);
        state.stats.connections.set(count as u64);
        let open = open?;
        if count <= NEVER_STUCK || open.is_subset(&self.served) {
            return Some(0);
        }
        let waiting = count.saturating_sub(connection_threads()?);
        (0..waiting).for_each(|_| self.knock());
        if waiting == 0 {
            self.served = open;
        }
        Some(waiting)
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
    socket
        .read(&mut [0])
        .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Sends the request a second, and looks after resources in the same round. Before the first
/// answer, and after a panic in one of tiny_http's threads, it asks at once, and one failure is
/// enough.
pub fn beat(state: &'static State, address: &SockAddr) {
    let limits = Limits::read();
    let mut bodies = 0;
    let mut bodies_moved_at = Instant::now();
    let mut is_ready = false;
    let mut is_open = false;
    let mut silent_since: Option<Instant> = None;
    let mut departures_told: Option<Instant> = None;
    while !state.is_draining() {
        let started = Instant::now();
        if departures_told.is_none_or(|told| told.elapsed() >= DEPARTURES_TOLD_EVERY) {
            let departed = state.stats.departed.swap(0, Ordering::Relaxed);
            if departed > 0 {
                departures_told = Some(started);
                log::info!("{departed} connections were gone before they could be answered");
            }
        }
        let is_doubtful = !is_ready || state.doubtful.load(Ordering::Relaxed);
        match probe(
            address,
            &state.nonce,
            if is_doubtful {
                SHORT_PATIENCE
            } else {
                PATIENCE
            },
        ) {
            Ok(()) => {
                state.control.report(if is_ready {
                    Report::Beat
                } else {
                    Report::Ready
                });
                state.doubtful.store(false, Ordering::Relaxed);
                is_ready = true;
                silent_since = None;
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
        // On a Unix socket nothing ends a read from a silent sender.
        let so_far = state.stats.bodies.get();
        if so_far != bodies || state.stats.awaited.get() == 0 {
            bodies = so_far;
            bodies_moved_at = Instant::now();
        }
        let given_up = state.stats.abandoned.get() >= ABANDONED_LIMIT;
        let given_up = given_up.then_some("connections given up with unread bodies");
        let jam = (bodies_moved_at.elapsed() >= JAM).then_some("the body lane stands still");
        if let Some(reason) = limits.nearly_reached().or(given_up).or(jam) {
            state.ask_for_successor(reason);
        }
        thread::sleep(LOOK_EVERY);
        while is_ready && started.elapsed() < PROBE_EVERY && !state.doubtful.load(Ordering::Relaxed)
        {
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Asks again at once while another process of ours answers.
fn probe(address: &SockAddr, nonce: &str, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    let request = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n{NONCE_FIELD}: {nonce}\r\nConnection: \
         close\r\n\r\n"
    );
    while Instant::now() < deadline {
        let mut socket = connect(address, patience)?;
        socket.write_all(request.as_bytes())?;
        let mut answer = String::new();
        socket.take(4_096).read_to_string(&mut answer)?;
        if answer.contains(nonce) {
            return Ok(());
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "only another process answered",
    ))
}

/// Ends the process at a quiet moment. At the first one, or when none has come for a while, it
/// stops accepting, and answers whoever came in before: from then on a new connection waits for the
/// successor in the socket's queue. `last_words` is told when the drain is over.
pub fn drain(state: &'static State, address: &SockAddr, last_words: impl Fn(Instant)) {
    if state.draining.swap(true, Ordering::SeqCst) {
        return;
    }
    let begun = Instant::now();
    let ends = begun + DRAIN_PATIENCE;
    let mut quiet = Quiet::from_now(state, address);
    thread::sleep(GRACE);
    quiet.wait_until(begun + QUIET_PATIENCE);
    if let Err(error) = stop_accepting(state, address) {
        log::warn!("a connection that comes in at the end may be cut: {error}");
    }
    quiet.wait_until(ends);
    log::info!("server process ends");
    loop {
        let received = state.stats.received.get();
        last_words(ends);
        log::logger().flush();
        // A request that was answered meanwhile may have left audit events to write.
        let is_all_said = state.stats.received.get() == received;
        if Instant::now() >= ends || (is_all_said && quiet.is_now()) {
            // At once, without the exit handlers of libraries.
            signal_hook::low_level::exit(0);
        }
        quiet.wait_until(ends);
    }
}

/// tiny_http accepts until it fails to. So the descriptor that it accepts from becomes a socket
/// that does not listen. The `accept` that waits already takes one more connection, which is served
/// as any other; the next `accept` fails before it takes another out of the queue.
fn stop_accepting(state: &State, address: &SockAddr) -> io::Result<()> {
    let deaf = Socket::new(address.domain(), Type::STREAM, None)?;
    dup2(deaf.as_raw_fd(), state.listening)?;
    // Kept until the end: tiny_http panics where a connection is gone before it looks at it.
    let mut knocks = Vec::new();
    while knocks.len() < LAST_KNOCKS {
        // The successor takes its share of them.
        knocks.push(connect(address, PATIENCE)?);
        thread::sleep(LAST_KNOCK_EVERY);
        if !state.accepting.load(Ordering::SeqCst) {
            return Ok(());
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "tiny_http still accepts",
    ))
}

/// Watches for the moment when nothing is in flight and no connection is open or in use.
struct Quiet<'a> {
    state: &'a State,
    knocker: Knocker<'a>,
    received: u64,
    used_at: Instant,
}

impl<'a> Quiet<'a> {
    fn from_now(state: &'a State, address: &'a SockAddr) -> Quiet<'a> {
        let knocker = Knocker {
            address,
            unanswered: Vec::new(),
            served: HashSet::new(),
        };
        Quiet {
            state,
            knocker,
            received: 0,
            used_at: Instant::now(),
        }
    }

    /// While tiny_http passes a request from thread to thread, nothing counts it for a moment. So
    /// one look is not enough.
    fn wait_until(&mut self, ends: Instant) {
        let mut quiet_looks = 0;
        while quiet_looks < 2 && Instant::now() < ends {
            thread::sleep(LOOK_EVERY);
            self.knocker.free_waiting_connections(self.state);
            quiet_looks = if self.is_now() { quiet_looks + 1 } else { 0 };
        }
    }

    fn is_now(&mut self) -> bool {
        let is_idle = self.state.stats.in_flight.get() == 0;
        let so_far = self.state.stats.received.get();
        if !is_idle || so_far != self.received {
            self.received = so_far;
            self.used_at = Instant::now();
        }
        is_idle
            && (self.used_at.elapsed() >= KEPT
                || open_connections().is_none_or(|open| open.is_empty()))
    }
}
