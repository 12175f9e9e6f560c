//! Where connections come from: a pool. A statement that hangs for ever keeps its connection, and a
//! pool cannot give away that connection's place. So the pool is retired then, and another one
//! made.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use r2d2::{NopErrorHandler, Pool, PooledConnection};
use scheduled_thread_pool::ScheduledThreadPool;

use super::connection::{ClosedElsewhere, Connection, Connections, PROOF_OF_LIFE};
use super::error::StoreError;
use super::mutex::Mutex;
use crate::Result;

/// How long a request in the lane waits for a connection.
pub const CHECK_OUT_PATIENCE: Duration = Duration::from_secs(2);
const OPENED_AT_ONCE: u32 = 32;
/// Connections that are begun side by side: each is some round trips, and the first host may
/// hesitate.
const CONNECTED_AT_ONCE: usize = 8;
/// After a failed check-out, how long requests fail at once.
const AWAY: Duration = Duration::from_secs(1);
/// A connection idle for longer proves that it lives before it is used.
const UNPROVEN_AFTER: Duration = Duration::from_secs(1);

/// The pool in use, and how the next one is made.
pub struct Supplies {
    connections: Connections,
    size: u32,
    idle: u32,
    current: RwLock<Arc<Supply>>,
}

pub struct Supply {
    pool: Pool<Connections>,
    connections: Connections,
    /// Until then check-outs fail at once.
    away_until: Mutex<Option<Instant>>,
}

impl Supplies {
    pub fn new(connections: Connections, size: u32, idle: u32) -> Supplies {
        let current = RwLock::new(Arc::new(Supply::new(connections.clone(), size, idle)));
        Supplies {
            connections,
            size,
            idle,
            current,
        }
    }

    pub fn current(&self) -> Arc<Supply> {
        let current = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        if !current.is_retired() {
            return current;
        }
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been quicker.
        if current.is_retired() {
            log::warn!(
                "a database statement hangs: its connection, its thread and its place are replaced"
            );
            let connections = Connections {
                is_retired: Arc::default(),
                ..self.connections.clone()
            };
            current.close_idle();
            *current = Arc::new(Supply::new(connections, self.size, self.idle));
        }
        Arc::clone(&current)
    }
}

impl Supply {
    fn new(connections: Connections, size: u32, idle: u32) -> Supply {
        let pool = Pool::builder()
            .max_size(size)
            .min_idle(Some(idle))
            .test_on_check_out(false)
            .thread_pool(Arc::new(ScheduledThreadPool::new(CONNECTED_AT_ONCE)))
            .connection_timeout(CHECK_OUT_PATIENCE)
            .connection_customizer(Box::new(ClosedElsewhere))
            .error_handler(Box::new(NopErrorHandler))
            .build_unchecked(connections.clone());
        Supply {
            pool,
            connections,
            away_until: Mutex::default(),
        }
    }

    fn is_retired(&self) -> bool {
        self.connections.is_retired.load(Ordering::SeqCst)
    }

    /// Closes what is idle in a pool that is retired: otherwise it stays open as long as the
    /// statement hangs. What is in use is closed when it is returned.
    fn close_idle(&self) {
        while self.pool.state().idle_connections > 0 && self.pool.try_get().is_some() {}
    }

    /// The pool's connections, the idle ones among them, and how many it may have.
    pub fn figures(&self) -> [u32; 3] {
        let state = self.pool.state();
        [
            state.connections,
            state.idle_connections,
            self.pool.max_size(),
        ]
    }

    /// Whether there is no connection, and none could be made.
    pub fn is_away(&self) -> bool {
        let away = self.connections.away.lock();
        !away.is_empty() && self.pool.state().connections == 0
    }

    /// Opens as many connections as it can in a moment. One is left to whoever needs one meanwhile.
    pub fn open_connections(&self) {
        thread::scope(|scope| {
            let open = || self.pool.get_timeout(CHECK_OUT_PATIENCE);
            let opening = (1..self.pool.max_size().min(OPENED_AT_ONCE))
                .map_while(|_| thread::Builder::new().spawn_scoped(scope, open).ok());
            let opening: Vec<_> = opening.collect();
            // Held until the last is there: one that is free again would be taken for a further
            // one.
            drop(
                opening
                    .into_iter()
                    .map(thread::ScopedJoinHandle::join)
                    .collect::<Vec<_>>(),
            );
        });
    }

    pub fn check_out(&self, until: Option<Instant>) -> Result<PooledConnection<Connections>> {
        let patient_until = Instant::now() + CHECK_OUT_PATIENCE;
        if self.was_away() && self.pool.state().idle_connections == 0 {
            return Err(StoreError::Unavailable(String::from("away a moment ago")));
        }
        let deadline = until.map_or(patient_until, |until| until.min(patient_until));
        let generation = &self.connections.generation;
        loop {
            let patience = deadline.saturating_duration_since(Instant::now());
            let Ok(mut connection) = self.pool.get_timeout(patience) else {
                return Err(if until == Some(deadline) {
                    StoreError::OutOfTime
                } else {
                    self.missed()
                });
            };
            if connection.is_before(generation) {
                connection.discarded = true;
            } else if lives(&mut connection) {
                return Ok(connection);
            } else {
                // Found dead; dropped on the way back, as is everything that was connected when it
                // was.
                generation.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// No connection in time: with all of them in use that is our load, otherwise the database is
    /// away.
    fn missed(&self) -> StoreError {
        if self.pool.state().connections >= self.pool.max_size() {
            return StoreError::Busy;
        }
        *self.away_until.lock() = Some(Instant::now() + AWAY);
        let away = self.connections.away.lock();
        match away.last() {
            Some((why, _)) => why.clone(),
            None => StoreError::Unavailable(String::from("no connection in time")),
        }
    }

    fn was_away(&self) -> bool {
        self.away_until
            .lock()
            .is_some_and(|until| Instant::now() < until)
    }
}

fn lives(connection: &mut Connection) -> bool {
    connection.last_used.elapsed() <= UNPROVEN_AFTER
        || connection.client.is_valid(PROOF_OF_LIFE).is_ok()
}
