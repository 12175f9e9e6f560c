//! Bounded lanes: how many requests at once may hold a scarce thing, so that none of them starves
//! the rest. A permit goes back when its holder drops it, or when somebody sees that
//! the holder's thread hangs for ever.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A counting semaphore with a bounded wait. Who may wait for it is bounded elsewhere, by the
/// number of threads.
#[derive(Debug)]
pub struct Permits {
    lane: Arc<Lane>,
}

#[derive(Debug)]
struct Lane {
    free: Mutex<usize>,
    returned: Condvar,
}

/// One permit; goes back when dropped, also when the holder panics.
#[derive(Debug)]
pub struct Permit<'a> {
    hold: Arc<Hold>,
    lane: PhantomData<&'a Permits>,
}

/// What a permit takes from its lane, and gives back once.
#[derive(Debug)]
struct Hold {
    lane: Arc<Lane>,
    is_back: AtomicBool,
}

thread_local! {
    static HELD_HERE: RefCell<Vec<Weak<Hold>>> = const { RefCell::new(Vec::new()) };
}

/// The permits that a thread holds, for whoever watches over it.
#[derive(Debug)]
pub struct HeldPermits(Vec<Weak<Hold>>);

impl HeldPermits {
    pub fn of_this_thread() -> HeldPermits {
        HeldPermits(HELD_HERE.with_borrow(Clone::clone))
    }

    /// Gives them back in the place of a thread that hangs. Those that it dropped meanwhile are
    /// back already.
    pub fn give_back(&self) {
        for hold in self.0.iter().filter_map(Weak::upgrade) {
            hold.give_back();
        }
    }
}

impl Hold {
    fn give_back(&self) {
        if !self.is_back.swap(true, Ordering::SeqCst) {
            *self.lane.free() += 1;
            self.lane.returned.notify_one();
        }
    }
}

impl Permits {
    /// A lane for `count` holders at once.
    pub fn new(count: usize) -> Permits {
        Permits {
            lane: Arc::new(Lane {
                free: Mutex::new(count),
                returned: Condvar::new(),
            }),
        }
    }

    pub fn free(&self) -> usize {
        *self.lane.free()
    }

    /// Takes a permit, waiting at most `patience`; `None` when there was none by then.
    pub fn take(&self, patience: Duration) -> Option<Permit<'_>> {
        let deadline = Instant::now() + patience;
        let mut free = self.lane.free();
        while *free == 0 {
            let remaining = deadline.checked_duration_since(Instant::now())?;
            free = self
                .lane
                .returned
                .wait_timeout(free, remaining)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        *free -= 1;
        drop(free);
        let hold = Arc::new(Hold {
            lane: Arc::clone(&self.lane),
            is_back: AtomicBool::new(false),
        });
        HELD_HERE.with_borrow_mut(|held| held.push(Arc::downgrade(&hold)));
        Some(Permit {
            hold,
            lane: PhantomData,
        })
    }
}

impl Lane {
    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.hold.give_back();
        let own = Arc::downgrade(&self.hold);
        // The seat of a thread that ends is dropped after the list.
        let _ = HELD_HERE.try_with(|held| {
            held.borrow_mut()
                .retain(|hold| hold.strong_count() > 0 && !hold.ptr_eq(&own));
        });
    }
}

thread_local! {
    static SEAT: RefCell<Option<Permit<'static>>> = const { RefCell::new(None) };
}

impl Permits {
    /// Waits until this thread has a permit to serve requests. It keeps the one that it has, also
    /// for the next request.
    pub fn sit_down(&'static self) {
        SEAT.with_borrow_mut(|seat| {
            while seat.is_none() {
                *seat = self.take(Duration::from_secs(60));
            }
        });
    }
}

/// Gives back this thread's permit to serve requests, so that another thread serves the next one
/// meanwhile. The thread ends the request that it is at without a permit: who comes back from a
/// wait does not wait again.
pub fn stand_up() {
    SEAT.take();
}

/// Whether this thread serves with a permit: while it waits, one fewer serves the others.
pub fn is_seated() -> bool {
    SEAT.with_borrow(Option::is_some)
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
    fn what_a_thread_holds_can_be_given_back_in_its_place_and_goes_back_once() {
        let (permits, others) = (Permits::new(2), Permits::new(1));
        std::thread::scope(|scope| {
            let of_another = permits.take(Duration::ZERO);
            let (tell, told) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let permits = &permits;
            let hanging = scope.spawn(move || {
                drop(permits.take(Duration::ZERO));
                let _held = permits.take(Duration::ZERO);
                tell.send(HeldPermits::of_this_thread()).unwrap();
                let _ = ended.recv();
            });
            let held = told.recv().unwrap();
            assert_eq!(permits.free(), 0);
            (0..2).for_each(|_| held.give_back());
            assert_eq!(permits.free(), 1);
            end.send(()).unwrap();
            hanging.join().unwrap();
            assert_eq!(permits.free(), 1, "not a second time");
            drop(of_another);
        });
        assert_eq!((permits.free(), others.free()), (2, 1));
    }

    #[test]
    fn who_stands_up_lets_another_thread_serve_and_waits_for_a_seat_again() {
        let permits: &'static Permits = Box::leak(Box::new(Permits::new(1)));
        permits.sit_down();
        permits.sit_down();
        assert!(is_seated());
        assert_eq!(permits.free(), 0);
        let other = std::thread::spawn(|| permits.sit_down());
        stand_up();
        stand_up();
        assert!(!is_seated());
        // It is over, and its seat is free with it.
        other.join().unwrap();
        assert_eq!(permits.free(), 1);
        permits.sit_down();
        assert_eq!(permits.free(), 0);
    }
}
