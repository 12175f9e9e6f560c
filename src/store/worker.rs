//! What a thread has while it serves a request, and what becomes of it when Postgres hangs.
//!
//! A thread that waits for a frozen Postgres cannot be woken, and the server must go on serving
//! others. So nothing that a thread has is only the thread's:
//!
//! - **Its budget.** A request may wait for the database for [`ALLOWANCE`], all its statements
//!   together. Whoever sees that the time is over answers 503 in the thread's place: the watchdog
//!   calls `give_up`. One of the two answers, and that one counts and logs the request.
//! - **Its permits.** A [`Permit`] is a place in a lane: among those who serve (the thread's seat),
//!   who use a connection, who write. A statement that was cancelled and still does not end for a
//!   second is abandoned: the watchdog gives back all permits of its thread.
//! - **Its post.** A worker that hangs on would be missing. The watchdog has another thread start
//!   on its post (`stand_in`).
//!
//! When the statement ends after all, the thread goes on in `come_back`, without what was given
//! away: it has no time left where the request is answered, it has no seat, and where another
//! thread has its post it ends with the request. A thread that waits for something other than
//! Postgres gives up its seat by itself ([`stand_up`]).

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::mutex::Mutex;

/// No request waits for the database longer than five seconds; the rest of those is for noticing,
/// and for the answer.
pub const ALLOWANCE: Duration = Duration::from_millis(4_500);

/// Answers a request in the place of the worker that waits; does nothing when it is answered.
pub type GiveUp = Arc<dyn Fn() + Send + Sync>;

/// Starts another thread on the post of one that hangs. Whether it could be started.
type StandIn = Arc<dyn Fn() -> bool + Send + Sync>;

// The store cannot be handed what the thread that calls it has: between the two stand handlers and
// libraries that know nothing of it.
thread_local! {
    static WORKER: RefCell<Worker> = const { RefCell::new(Worker::NEW) };
}

struct Worker {
    /// Of the request that it serves.
    budget: Option<Budget>,
    post: Option<StandIn>,
    /// Its permit to serve requests.
    seat: Option<Permit<'static>>,
    /// All permits that it holds, the seat among them.
    permits: Vec<Weak<Hold>>,
}

impl Worker {
    const NEW: Worker = Worker {
        budget: None,
        post: None,
        seat: None,
        permits: Vec::new(),
    };
}

/// What the request that a thread serves has left, and what ends its waiting.
#[derive(Clone)]
pub struct Budget {
    pub left: Duration,
    pub give_up: GiveUp,
    is_answered: Arc<AtomicBool>,
}

/// Serves one request on this thread, with all of its time before it.
pub fn serve<T>(give_up: impl Fn() + Send + Sync + 'static, handle: impl FnOnce() -> T) -> T {
    let is_answered = Arc::new(AtomicBool::new(false));
    let given_up = Arc::clone(&is_answered);
    let give_up: GiveUp = Arc::new(move || {
        if !given_up.swap(true, Ordering::SeqCst) {
            give_up();
        }
    });
    let budget = Budget {
        left: ALLOWANCE,
        give_up,
        is_answered,
    };
    WORKER.with_borrow_mut(|worker| worker.budget = Some(budget));
    let answer = handle();
    let _spent = WORKER.with_borrow_mut(|worker| worker.budget.take());
    answer
}

/// The budget of the request that this thread serves; `None` where it serves none.
pub fn budget() -> Option<Budget> {
    WORKER.with_borrow(|worker| worker.budget.clone())
}

/// Takes the answer upon this thread, unless it was given in its place.
pub fn answer() -> bool {
    budget().is_none_or(|budget| !budget.is_answered.swap(true, Ordering::SeqCst))
}

/// Notes that the request that this thread serves waited so long.
pub fn spend(waited: Duration) {
    WORKER.with_borrow_mut(|worker| {
        if let Some(budget) = &mut worker.budget {
            budget.left = budget.left.saturating_sub(waited);
        }
    });
}

/// Gives this thread a post, on which `stand_in` starts another thread should this one hang.
pub fn take_post(stand_in: impl Fn() -> bool + Send + Sync + 'static) {
    WORKER.with_borrow_mut(|worker| worker.post = Some(Arc::new(stand_in)));
}

/// Whether this thread still has its post. Otherwise another has it, and this one is to end.
pub fn has_post() -> bool {
    WORKER.with_borrow(|worker| worker.post.is_some())
}

/// Waits until this thread has a permit of `seats` to serve requests. It keeps the one that it has,
/// also for the next request.
pub fn sit_down(seats: &'static Permits) {
    while !is_seated() {
        let seat = seats.take(Duration::from_secs(60));
        WORKER.with_borrow_mut(|worker| worker.seat = seat);
    }
}

/// Gives back this thread's permit to serve requests, so that another thread serves the next one
/// meanwhile. The thread ends the request that it is at without a permit: who comes back from a
/// wait does not wait again.
pub fn stand_up() {
    let seat = WORKER.with_borrow_mut(|worker| worker.seat.take());
    drop(seat);
}

/// Whether this thread serves with a permit: while it waits, one fewer serves the others.
pub fn is_seated() -> bool {
    WORKER.with_borrow(|worker| worker.seat.is_some())
}

/// What others take over from a thread that hangs.
pub(super) struct Belongings {
    permits: Vec<Weak<Hold>>,
    stand_in: Option<StandIn>,
}

impl Belongings {
    pub(super) fn of_this_thread() -> Belongings {
        WORKER.with_borrow(|worker| Belongings {
            permits: worker.permits.clone(),
            stand_in: worker.post.clone(),
        })
    }

    /// Gives back the permits, but for those that the thread dropped meanwhile, and starts another
    /// thread on the post. Whether that has begun.
    pub(super) fn give_away(&self) -> bool {
        for hold in self.permits.iter().filter_map(Weak::upgrade) {
            hold.give_back();
        }
        self.stand_in.as_ref().is_some_and(|start| start())
    }
}

/// What was done in the place of a thread while it hung.
pub(super) struct DoneMeanwhile {
    pub(super) is_answered: bool,
    pub(super) permits_are_back: bool,
    pub(super) another_has_its_post: bool,
}

/// This thread hangs no longer. It goes on without what was given away.
pub(super) fn come_back(done: &DoneMeanwhile) {
    if done.is_answered {
        // The request gets nothing more from the database.
        spend(ALLOWANCE);
    }
    if done.permits_are_back {
        // The seat may be another's.
        stand_up();
    }
    if done.another_has_its_post {
        let _lost = WORKER.with_borrow_mut(|worker| worker.post.take());
    }
}

/// A lane: how many requests at once may hold a scarce thing, so that none of them starves the
/// rest. A counting semaphore with a bounded wait; who may wait for it is bounded elsewhere, by the
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

/// One permit; goes back when dropped, also when the holder panics, or when the watchdog sees that
/// the holder's thread hangs.
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

impl Hold {
    fn give_back(&self) {
        if !self.is_back.swap(true, Ordering::SeqCst) {
            *self.lane.free.lock() += 1;
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
        *self.lane.free.lock()
    }

    /// Takes a permit, waiting at most `patience`; `None` when there was none by then.
    pub fn take(&self, patience: Duration) -> Option<Permit<'_>> {
        let deadline = Instant::now() + patience;
        let mut free = self.lane.free.lock();
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
        let held = Arc::downgrade(&hold);
        WORKER.with_borrow_mut(|worker| worker.permits.push(held));
        Some(Permit {
            hold,
            lane: PhantomData,
        })
    }
}

impl Lane {}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.hold.give_back();
        let own = Arc::downgrade(&self.hold);
        // A thread that ends has no list any more when its seat is dropped.
        let _ = WORKER.try_with(|worker| {
            let permits = &mut worker.borrow_mut().permits;
            permits.retain(|hold| hold.strong_count() > 0 && !hold.ptr_eq(&own));
        });
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
                tell.send(Belongings::of_this_thread()).unwrap();
                let _ = ended.recv();
            });
            let held = told.recv().unwrap();
            assert_eq!(permits.free(), 0);
            (0..2).for_each(|_| assert!(!held.give_away()));
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
        sit_down(permits);
        sit_down(permits);
        assert!(is_seated());
        assert_eq!(permits.free(), 0);
        let other = std::thread::spawn(move || sit_down(permits));
        stand_up();
        stand_up();
        assert!(!is_seated());
        // It is over, and its seat is free with it.
        other.join().unwrap();
        assert_eq!(permits.free(), 1);
        sit_down(permits);
        assert_eq!(permits.free(), 0);
    }
}
