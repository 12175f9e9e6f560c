//! What the server process answers by.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use crate::app::App;
use crate::config::Config;
use crate::dispatch::Serving;
use crate::dispatch::route::Route;
use crate::metrics::Metrics;

/// What handlers are given: the house, once it is open.
pub struct House {
    routes: &'static [&'static [Route]],
    pub config: Arc<Config>,
    pub metrics: Metrics,
    pub app: OnceLock<App>,
    /// Whether `app` is there: for the server, which knows nothing of it.
    pub is_open: Arc<AtomicBool>,
}

impl House {
    pub fn of(config: Config, routes: &'static [&'static [Route]]) -> House {
        House {
            routes,
            config: Arc::new(config),
            metrics: Metrics::default(),
            app: OnceLock::new(),
            is_open: Arc::default(),
        }
    }

    pub fn serving(&self) -> Serving<'_> {
        Serving {
            routes: self.routes,
            config: &self.config,
            metrics: &self.metrics,
            app: self.app.get(),
        }
    }
}
