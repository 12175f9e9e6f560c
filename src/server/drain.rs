//! How a server process ends: when nothing is in flight and no connection is open or in use, or when its patience is over.

use std::process;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockAddr;

use super::State;
use super::probe::Knocker;
use super::resources::open_connections;

/// For connections accepted just before the successor was ready to send their request.
const GRACE: Duration = Duration::from_millis(300);
/// Connections idle for this long are kept ones; their clients know that such connections end.
const KEPT: Duration = Duration::from_secs(2);
/// For open connections, in all.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Ends the process at the first quiet moment. tiny_http cannot stop accepting, so a connection that comes in at that
/// very moment may be cut.
pub fn drain(state: &'static State, address: &SockAddr, last_words: impl Fn()) {
    if state.draining.swap(true, Ordering::SeqCst) {
        return;
    }
    let deadline = Instant::now() + PATIENCE;
    thread::sleep(GRACE);
    let mut knocker = Knocker::new(address);
    let mut usage = Usage { received: 0, used_at: Instant::now() };
    let mut quiet_looks = 0;
    while Instant::now() < deadline && quiet_looks < 2 {
        thread::sleep(LOOK_EVERY);
        knocker.free_waiting_connections(state);
        let is_idle = state.stats.in_flight.load(Ordering::SeqCst) == 0;
        let is_unused = usage.unused_for(state, is_idle) >= KEPT;
        let is_quiet = is_idle && (is_unused || open_connections().unwrap_or(0) == 0);
        // Between two threads of tiny_http a request is in nobody's hands for a moment: one look is not enough.
        quiet_looks = if is_quiet { quiet_looks + 1 } else { 0 };
    }
    last_words();
    log::info!("server process ends");
    log::logger().flush();
    process::exit(0);
}

struct Usage {
    received: u64,
    used_at: Instant,
}

impl Usage {
    fn unused_for(&mut self, state: &State, is_idle: bool) -> Duration {
        let received = state.stats.received.load(Ordering::Relaxed);
        if !is_idle || received != self.received {
            *self = Usage { received, used_at: Instant::now() };
        }
        self.used_at.elapsed()
    }
}
