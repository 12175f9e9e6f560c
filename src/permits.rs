//! Bounded lanes: how many requests at once may wait for a scarce thing, so that none of them starves the rest.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A counting semaphore with a bounded wait.
#[derive(Debug)]
pub struct Permits {
    free: Mutex<usize>,
    returned: Condvar,
}

/// One permit; goes back when dropped, also when the holder panics.
#[derive(Debug)]
pub struct Permit<'a>(&'a Permits);

impl Permits {
    /// A lane for `count` holders at once.
    pub fn new(count: usize) -> Permits {
        Permits { free: Mutex::new(count), returned: Condvar::new() }
    }

    /// How many more could be taken now.
    pub fn free(&self) -> usize {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit, waiting at most `patience`; `None` when there was none by then.
    pub fn take(&self, patience: Duration) -> Option<Permit<'_>> {
        let deadline = Instant::now() + patience;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            let remaining = deadline.checked_duration_since(Instant::now())?;
            free = self.returned.wait_timeout(free, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
        *free -= 1;
        Some(Permit(self))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_permit_is_the_last() {
        let permits = Permits::new(1);
        let held = permits.take(Duration::ZERO);
        assert!(held.is_some());
        assert!(permits.take(Duration::from_millis(1)).is_none());
        drop(held);
        assert!(permits.take(Duration::ZERO).is_some());
    }

    #[test]
    fn a_waiter_is_served_when_a_permit_returns() {
        let permits = Permits::new(1);
        std::thread::scope(|scope| {
            let held = permits.take(Duration::ZERO);
            let waiter = scope.spawn(|| permits.take(Duration::from_secs(10)).is_some());
            std::thread::sleep(Duration::from_millis(20));
            drop(held);
            assert!(waiter.join().unwrap());
        });
    }
}
