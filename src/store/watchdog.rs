//! Sees to it that no statement runs for ever: time-outs of the server do not help when the server itself is frozen, or
//! a commit waits for a standby that is gone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use postgres::CancelToken;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connecting::{START_UP, within};

/// How often the watchdog looks.
const ROUND: Duration = Duration::from_millis(100);
/// Cancel requests under way at once; a frozen server swallows them for as long as it is frozen.
const CANCELS_AT_ONCE: usize = 8;

/// Knows what runs on every checked-out connection. Ends with its owner.
pub(super) struct Watchdog(Arc<Shared>);

struct Shared {
    running: Mutex<HashMap<u64, Running>>,
    next: AtomicU64,
    cancels: AtomicUsize,
    stuck: AtomicBool,
    cancel_after: Duration,
    stuck_after: Duration,
    tls: MakeRustlsConnect,
}

struct Running {
    started: Instant,
    token: CancelToken,
    cancelled: Arc<AtomicBool>,
}

/// Stands for one check-out; gone when dropped.
pub(super) struct Watched<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Watchdog {
    /// Starts the watching thread.
    pub(super) fn start(
        cancel_after: Duration,
        stuck_after: Duration,
        tls: MakeRustlsConnect,
    ) -> std::io::Result<Watchdog> {
        let shared = Arc::new(Shared {
            running: Mutex::new(HashMap::new()),
            next: AtomicU64::new(0),
            cancels: AtomicUsize::new(0),
            stuck: AtomicBool::new(false),
            cancel_after,
            stuck_after,
            tls,
        });
        let watched = Arc::downgrade(&shared);
        std::thread::Builder::new().name(String::from("store-watchdog")).spawn(move || {
            while let Some(shared) = watched.upgrade() {
                look(&shared);
                drop(shared);
                std::thread::sleep(ROUND);
            }
        })?;
        Ok(Watchdog(shared))
    }

    /// Notes that a connection is in use from now on. `cancelled` is set before a cancel request goes out for it.
    pub(super) fn watch(&self, token: CancelToken, cancelled: Arc<AtomicBool>) -> Watched<'_> {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.running().insert(number, Running { started: Instant::now(), token, cancelled });
        Watched { shared: &self.0, number }
    }

    /// Whether something runs that could not be cancelled: if it stays, this process had better be replaced.
    pub(super) fn is_stuck(&self) -> bool {
        self.0.stuck.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn running(&self) -> MutexGuard<'_, HashMap<u64, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.shared.running().remove(&self.number);
    }
}

fn look(shared: &Arc<Shared>) {
    let overdue = {
        let running = shared.running();
        let stuck = running.values().any(|entry| entry.started.elapsed() > shared.stuck_after);
        if shared.stuck.swap(stuck, Ordering::SeqCst) != stuck {
            log::warn!(
                "{}",
                if stuck { "a database statement could not be cancelled" } else { "no statement hangs any more" }
            );
        }
        // Flagged under the lock: a connection returned after this is not given to anybody else.
        let late = running.values().filter(|entry| entry.started.elapsed() > shared.cancel_after);
        late.filter(|entry| !entry.cancelled.swap(true, Ordering::SeqCst))
            .map(|entry| entry.token.clone())
            .collect::<Vec<_>>()
    };
    overdue.into_iter().for_each(|token| cancel(shared, token));
}

/// Sends a cancel request from a thread of its own: with a frozen server the sending hangs too.
fn cancel(shared: &Arc<Shared>, token: CancelToken) {
    if shared.cancels.fetch_add(1, Ordering::SeqCst) >= CANCELS_AT_ONCE {
        shared.cancels.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    log::warn!("cancelling a database statement after {:?}", shared.cancel_after);
    let sender = Arc::clone(shared);
    let spawned = std::thread::Builder::new().name(String::from("store-cancel")).spawn(move || {
        let tls = sender.tls.clone();
        let sent = within(START_UP, "store-cancel", move || token.cancel_query(tls));
        if !sent.is_some_and(|sent| sent.is_ok()) {
            log::warn!("a cancel request did not reach the database");
        }
        sender.cancels.fetch_sub(1, Ordering::SeqCst);
    });
    if spawned.is_err() {
        shared.cancels.fetch_sub(1, Ordering::SeqCst);
    }
}
