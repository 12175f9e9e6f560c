//! What the server process answers by, and how it is waited for.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::app::App;
use crate::config::Config;
use crate::deadline;
use crate::metrics::Metrics;
use crate::permits::Permits;
use crate::store::WORKERS_KEPT_FREE;

/// What handlers are given: the house, once it is open.
pub(super) struct House {
    pub(super) config: Arc<Config>,
    pub(super) metrics: Metrics,
    pub(super) app: OnceLock<App>,
    /// Whether `app` is there: for the server, which knows nothing of it.
    pub(super) is_open: Arc<AtomicBool>,
    /// Whether it may be any moment: not once the database is known to be away.
    is_near: Mutex<bool>,
    known: Condvar,
    places: Permits,
}

impl House {
    pub(super) fn of(config: Config) -> House {
        let places = (config.workers as usize).saturating_sub(WORKERS_KEPT_FREE).max(1);
        House {
            config: Arc::new(config),
            metrics: Metrics::default(),
            app: OnceLock::new(),
            is_open: Arc::default(),
            is_near: Mutex::new(true),
            known: Condvar::new(),
            places: Permits::among_bounded(places),
        }
    }

    pub(super) fn app(&self, patience: Duration) -> Option<&App> {
        let is_near = self.is_near.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |is_near: &mut bool| *is_near && self.app.get().is_none();
        drop(self.known.wait_timeout_while(is_near, patience, waits));
        self.app.get()
    }

    /// The house for a request, which waits for it as it would for the database: a process that just started has a database
    /// that is merely far away before it turns anybody away.
    pub(super) fn app_for_request(&self) -> Option<&App> {
        self.app.get().or_else(|| {
            let _place = self.places.take(Duration::ZERO)?;
            let (begun, left) = (Instant::now(), deadline::current().map_or(Duration::ZERO, |(left, _)| left));
            let app = self.app(left);
            deadline::spend(begun.elapsed());
            app
        })
    }

    pub(super) fn tell(&self, is_near: bool) {
        *self.is_near.lock().unwrap_or_else(PoisonError::into_inner) = is_near;
        self.known.notify_all();
    }
}
