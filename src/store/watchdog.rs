//! Cancels statements that take too long, and frees requests that wait for one: the server's own
//! time-outs do not help when the server is frozen, or a commit waits for a standby that is gone. A
//! statement that hangs on although it was cancelled is abandoned: nobody can wake its thread, but
//! what that holds is given to others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use postgres::CancelToken;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connecting::START_UP;
use super::error::StoreError;
use super::mutex::Mutex;
use crate::Result;
use crate::named_thread;
use crate::worker::{self, Belongings, DoneMeanwhile, GiveUp};

const ROUND: Duration = Duration::from_millis(100);
/// Cancel requests under way at once; a frozen server swallows them for as long as it is frozen.
const CANCELS_AT_ONCE: usize = 8;
/// How long a cancelled statement has to end before its request is freed.
const GRACE: Duration = Duration::from_secs(1);
/// What every statement is given, so that a healthy one is not cancelled.
const LEAST: Duration = Duration::from_millis(250);
/// How long a command may take that nobody interrupts.
pub const A_YEAR: Duration = Duration::from_secs(31_536_000);

/// Knows what runs on every checked-out connection. Ends with its owner.
pub struct Watchdog(Arc<Shared>);

struct Shared {
    running: Mutex<HashMap<u64, Running>>,
    next: AtomicU64,
    cancels: AtomicUsize,
    stuck: AtomicBool,
    is_interrupted: AtomicBool,
    cancel_after: Duration,
    stuck_after: Duration,
    /// Statements that may be abandoned at once: each keeps a thread and a connection beside those
    /// that take their place.
    most_abandoned: usize,
    tls: MakeRustlsConnect,
}

struct Running {
    /// Both of the following count from here.
    started: Instant,
    cancel_after: Duration,
    give_up_after: Duration,
    token: Arc<CancelToken>,
    cancelled: Arc<AtomicBool>,
    /// Ends the waiting of the request it is for; taken when that is done.
    give_up: Option<GiveUp>,
    /// What its thread has.
    belongings: Belongings,
    /// Of the pool of its connection.
    is_retired: Arc<AtomicBool>,
    is_abandoned: bool,
    is_stood_in_for: bool,
    /// Whether it commits, as far as this program knows.
    may_commit: bool,
}

impl Running {
    fn has_run_for(&self, time: Duration) -> bool {
        self.started.elapsed() > time
    }

    /// Frees what its thread holds: the permits, the place in the pool, of which another is made,
    /// and the post.
    fn abandon(&mut self) {
        self.is_abandoned = true;
        self.is_retired.store(true, Ordering::SeqCst);
        self.is_stood_in_for = self.belongings.give_away();
    }
}

/// When the time of a request is over, and what tells its client so.
pub struct RequestEnd {
    pub at: Instant,
    pub give_up: GiveUp,
}

impl RequestEnd {
    /// Of a request that begins to wait now, with so much left.
    pub fn after(left: Duration, give_up: GiveUp) -> RequestEnd {
        RequestEnd {
            at: Instant::now() + left,
            give_up,
        }
    }
}

/// How it ended when all that ran was cancelled.
pub enum Interruption {
    /// Nothing ran.
    Idle,
    /// All has its answer.
    Answered,
    /// What goes on has not begun to commit, and will not.
    Undone,
    /// The database does not answer: what was to be committed may be.
    InDoubt,
}

/// Stands for one check-out; gone when dropped.
pub struct Watched<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Watchdog {
    pub fn start(
        cancel_after: Duration,
        stuck_after: Duration,
        most_abandoned: usize,
        tls: MakeRustlsConnect,
    ) -> std::io::Result<Watchdog> {
        let shared = Arc::new(Shared {
            running: Mutex::new(HashMap::new()),
            next: AtomicU64::new(0),
            cancels: AtomicUsize::new(0),
            stuck: AtomicBool::new(false),
            is_interrupted: AtomicBool::new(false),
            cancel_after,
            stuck_after,
            most_abandoned,
            tls,
        });
        let watched = Arc::downgrade(&shared);
        named_thread::spawn("store-watchdog", move || {
            while let Some(shared) = watched.upgrade() {
                look(&shared);
                drop(shared);
                std::thread::sleep(ROUND);
            }
        })?;
        Ok(Watchdog(shared))
    }

    /// Notes that this thread uses a connection from now on, for a request that waits until then.
    /// `cancelled` is set before a cancel request goes out for the connection.
    pub fn watch(
        &self,
        token: Arc<CancelToken>,
        cancelled: Arc<AtomicBool>,
        is_retired: Arc<AtomicBool>,
        request: Option<RequestEnd>,
    ) -> Result<Watched<'_>> {
        self.begin(self.entry(token, cancelled, is_retired, request))
    }

    /// Notes that this thread works on a connection, for as long as that takes. It is cancelled
    /// where somebody interrupts this process.
    pub fn note(&self, token: Arc<CancelToken>) -> Result<Watched<'_>> {
        self.begin(Running {
            cancel_after: A_YEAR,
            give_up_after: A_YEAR,
            may_commit: false,
            ..self.entry(token, Arc::default(), Arc::default(), None)
        })
    }

    fn entry(
        &self,
        token: Arc<CancelToken>,
        cancelled: Arc<AtomicBool>,
        is_retired: Arc<AtomicBool>,
        request: Option<RequestEnd>,
    ) -> Running {
        let started = Instant::now();
        let left = match &request {
            Some(end) => end.at.saturating_duration_since(started),
            None => Duration::MAX,
        };
        // Little time is left to the last statements of a request, yet not none.
        let cancel_after = self
            .0
            .cancel_after
            .min(left.saturating_sub(GRACE).max(LEAST));
        let give_up_after = left.min(cancel_after + GRACE);
        let give_up = request.map(|end| end.give_up);
        Running {
            started,
            cancel_after,
            give_up_after,
            token,
            cancelled,
            give_up,
            belongings: Belongings::of_this_thread(),
            is_retired,
            is_abandoned: false,
            is_stood_in_for: false,
            may_commit: true,
        }
    }

    /// Nothing begins once this process is interrupted.
    fn begin(&self, entry: Running) -> Result<Watched<'_>> {
        let mut running = self.0.running.lock();
        if self.0.is_interrupted.load(Ordering::SeqCst) {
            return Err(StoreError::Cancelled(String::from("interrupted")));
        }
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        running.insert(number, entry);
        Ok(Watched {
            shared: &self.0,
            number,
        })
    }

    /// Cancels all that runs, and lets nothing more begin. Whoever waits for it has a moment to get
    /// their answer.
    pub fn interrupt(&self) -> Interruption {
        let mut tokens = Vec::new();
        let running = self.0.running.lock();
        self.0.is_interrupted.store(true, Ordering::SeqCst);
        for entry in running.values() {
            entry.cancelled.store(true, Ordering::SeqCst);
            tokens.push(Arc::clone(&entry.token));
        }
        drop(running);
        if tokens.is_empty() {
            return Interruption::Idle;
        }
        // Where one request does not arrive, the others would not either.
        let all = tokens.into_iter();
        let _arrived = all
            .take_while(|token| reaches(Arc::clone(token), self.0.tls.clone()))
            .count();
        let until = Instant::now() + GRACE;
        while Instant::now() < until && !self.0.running.lock().is_empty() {
            std::thread::sleep(ROUND);
        }
        let running = self.0.running.lock();
        if running.is_empty() {
            Interruption::Answered
        } else if running.values().any(|entry| entry.may_commit) {
            Interruption::InDoubt
        } else {
            Interruption::Undone
        }
    }

    /// Whether something runs that could not be cancelled: if it stays, this process had better be
    /// replaced.
    pub fn is_stuck(&self) -> bool {
        self.0.stuck.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn tell_stuck(&self, running: &HashMap<u64, Running>) {
        let is_stuck = running
            .values()
            .any(|entry| entry.has_run_for(self.stuck_after.max(entry.cancel_after)));
        if self.stuck.swap(is_stuck, Ordering::SeqCst) == is_stuck {
            return;
        }
        if is_stuck {
            log::warn!("a database statement could not be cancelled");
        } else {
            log::warn!("no statement hangs any more");
        }
    }
}

impl Drop for Watched<'_> {
    /// What was done in the place of this thread does not change from now on.
    fn drop(&mut self) {
        let Some(entry) = self.shared.running.lock().remove(&self.number) else {
            return;
        };
        worker::come_back(&DoneMeanwhile {
            is_answered: entry.give_up.is_none(),
            another_has_its_post: entry.is_stood_in_for,
        });
    }
}

fn look(shared: &Arc<Shared>) {
    let mut running = shared.running.lock();
    shared.tell_stuck(&running);
    let abandoned = running.values().filter(|entry| entry.is_abandoned).count();
    let mut may_be_abandoned = shared.most_abandoned.saturating_sub(abandoned);
    let mut overdue = Vec::new();
    let mut in_vain = Vec::new();
    for entry in running.values_mut() {
        if !entry.has_run_for(entry.cancel_after) {
            continue;
        }
        // Flagged under the lock: a connection returned after this is not given to anybody else.
        if !entry.cancelled.swap(true, Ordering::SeqCst) {
            overdue.push(Arc::clone(&entry.token));
        }
        if entry.has_run_for(entry.give_up_after) {
            in_vain.extend(entry.give_up.take());
        }
        let hangs = entry.has_run_for(entry.cancel_after + GRACE);
        if hangs && !entry.is_abandoned && may_be_abandoned > 0 {
            may_be_abandoned -= 1;
            entry.abandon();
        }
    }
    drop(running);
    for token in overdue {
        cancel(shared, token);
    }
    in_vain.into_iter().for_each(give_up);
}

/// Answers from a thread of its own, since the peer may be slow to read.
fn give_up(answer: GiveUp) {
    if named_thread::spawn("store-give-up", move || answer()).is_err() {
        log::warn!("no thread to answer a request with that waits in vain");
    }
}

/// Sends a cancel request from a thread of its own: with a frozen server the sending hangs too.
fn cancel(shared: &Arc<Shared>, token: Arc<CancelToken>) {
    if shared.cancels.fetch_add(1, Ordering::SeqCst) >= CANCELS_AT_ONCE {
        shared.cancels.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    log::warn!("cancelling a database statement that takes too long");
    let sender = Arc::clone(shared);
    let spawned = named_thread::spawn("store-cancel", move || {
        if !reaches(token, sender.tls.clone()) {
            log::warn!("a cancel request did not reach the database");
        }
        sender.cancels.fetch_sub(1, Ordering::SeqCst);
    });
    if spawned.is_err() {
        shared.cancels.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a cancel request reaches the database in time.
fn reaches(token: Arc<CancelToken>, tls: MakeRustlsConnect) -> bool {
    let (tell, told) = mpsc::channel();
    // Left alone where it hangs: a server that froze shall not use up the cancel requests for the
    // next.
    let _sending = named_thread::spawn("store-cancel", move || {
        drop(tell.send(token.cancel_query(tls)))
    });
    matches!(told.recv_timeout(START_UP), Ok(Ok(())))
}
