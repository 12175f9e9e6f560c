//! How well this process can answer, as `/readyz` tells it.

use std::time::Duration;

use super::{App, OLDEST_REGISTRY};
use crate::registry::Trouble;
use crate::store::partitions;

/// One that it has not confirmed for so long says that the database is away.
const RECENT: Duration = Duration::from_secs(3);
/// A machine whose clock is further off than this from the database's is not ready.
const MOST_SKEW_MICROS: i64 = 30_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Ready,
    /// What is registered cannot be read anew for the moment: what is published goes on, what needs the database does not.
    Degraded(Trouble),
    /// Send requests elsewhere; why.
    NotReady(&'static str),
}

impl App {
    /// How this process stands, for `/readyz`. Asks the database only while it answers: nobody waits for a dead one.
    pub fn standing(&self) -> Standing {
        if self.registry.age() > OLDEST_REGISTRY {
            return Standing::NotReady(match self.registry.trouble() {
                Trouble::Silence => "the database has not answered for 30 seconds",
                trouble @ (Trouble::ForeignKey | Trouble::Unfit | Trouble::Denial) => trouble.words(),
            });
        }
        if self.clock.skew_micros().abs() > MOST_SKEW_MICROS {
            return Standing::NotReady("this machine's clock is more than 30 seconds off the database's");
        }
        if !self.hears_the_database() {
            return Standing::Degraded(self.registry.trouble());
        }
        match partitions::are_ahead(&self.store, &self.horizons(), self.now().day()) {
            Ok(true) if !self.store.denied_lately().is_empty() => Standing::Degraded(Trouble::Denial),
            Ok(true) => Standing::Ready,
            Ok(false) => Standing::NotReady("partitions do not reach far enough ahead"),
            Err(error) => Standing::Degraded(Trouble::of(&error)),
        }
    }

    /// Whether the database has confirmed what is registered within the last few seconds.
    pub fn hears_the_database(&self) -> bool {
        self.registry.age() < RECENT
    }
}
