//! Bounded lanes: how many requests at once may hold or wait for a scarce thing, so that none of them starves the rest.

use std::cell::RefCell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A counting semaphore with a bounded wait and a bounded number of waiters: a waiter keeps a worker from other requests, just
/// as a holder does.
#[derive(Debug)]
pub struct Permits {
    most_waiting: usize,
    crowd: Mutex<Crowd>,
    returned: Condvar,
}

#[derive(Debug)]
struct Crowd {
    free: usize,
    waiting: usize,
}

/// One permit; goes back when dropped, also when the holder panics.
#[derive(Debug)]
pub struct Permit<'a>(&'a Permits);

impl Permits {
    /// A lane for `count` holders at once, and twice as many who wait: where `count` is a quarter of the workers, a quarter
    /// stays free for everything else.
    pub fn new(count: usize) -> Permits {
        Permits::with_waiting(count, count.saturating_mul(2))
    }

    /// The same for those whose number is bounded elsewhere, so that all others may wait.
    pub fn among_bounded(count: usize) -> Permits {
        Permits::with_waiting(count, usize::MAX)
    }

    fn with_waiting(count: usize, most_waiting: usize) -> Permits {
        Permits { most_waiting, crowd: Mutex::new(Crowd { free: count, waiting: 0 }), returned: Condvar::new() }
    }

    pub fn free(&self) -> usize {
        self.crowd().free
    }

    /// Takes a permit, waiting at most `patience`; `None` when there was none by then, or when too many wait
    /// already.
    pub fn take(&self, patience: Duration) -> Option<Permit<'_>> {
        let deadline = Instant::now() + patience;
        let mut crowd = self.crowd();
        if crowd.free == 0 && crowd.waiting >= self.most_waiting {
            return None;
        }
        crowd.waiting += 1;
        while crowd.free == 0 {
            let Some(remaining) = deadline.checked_duration_since(Instant::now()) else {
                crowd.waiting -= 1;
                return None;
            };
            crowd = self.returned.wait_timeout(crowd, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
        crowd.waiting -= 1;
        crowd.free -= 1;
        Some(Permit(self))
    }

    fn crowd(&self) -> MutexGuard<'_, Crowd> {
        self.crowd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.crowd().free += 1;
        self.0.returned.notify_one();
    }
}

thread_local! {
    static SEAT: RefCell<Option<Permit<'static>>> = const { RefCell::new(None) };
}

impl Permits {
    /// Waits until this thread has a permit to serve requests. It keeps the one that it has, also for the next request.
    pub fn sit_down(&'static self) {
        SEAT.with_borrow_mut(|seat| {
            while seat.is_none() {
                *seat = self.take(Duration::from_secs(60));
            }
        });
    }
}

/// Gives back this thread's permit to serve requests, so that another thread serves the next one meanwhile. The thread
/// ends the request that it is at without a permit: who comes back from a wait does not wait again.
pub fn stand_up() {
    SEAT.take();
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

    #[test]
    fn no_more_wait_than_may() {
        let permits = Permits::with_waiting(1, 1);
        std::thread::scope(|scope| {
            let held = permits.take(Duration::ZERO);
            let waiter = scope.spawn(|| permits.take(Duration::from_secs(10)).is_some());
            while permits.crowd().waiting == 0 {
                std::thread::yield_now();
            }
            // Waiting itself would outlast the test.
            assert!(permits.take(Duration::from_secs(3_600)).is_none());
            drop(held);
            assert!(waiter.join().unwrap());
        });
        assert_eq!((permits.free(), permits.crowd().waiting), (1, 0));
    }

    #[test]
    fn who_stands_up_lets_another_thread_serve_and_waits_for_a_seat_again() {
        let permits: &'static Permits = Box::leak(Box::new(Permits::among_bounded(1)));
        permits.sit_down();
        permits.sit_down();
        assert_eq!(permits.free(), 0);
        let other = std::thread::spawn(|| permits.sit_down());
        stand_up();
        stand_up();
        // It is over, and its seat is free with it.
        other.join().unwrap();
        assert_eq!(permits.free(), 1);
        permits.sit_down();
        assert_eq!(permits.free(), 0);
    }
}
