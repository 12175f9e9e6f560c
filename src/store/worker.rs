//! What a thread has while it serves a request, and what becomes of it when Postgres hangs.
//!
//! A thread that waits for a frozen Postgres cannot be woken, and the server must go on serving
//! others. So nothing that a thread has is only the thread's:
//!
//! - **Its budget.** A request may wait for the database for [`ALLOWANCE`], all its statements
//!   together. Whoever sees that the time is over answers 503 in the thread's place: the watchdog
//!   calls `give_up`. One of the two answers, and that one counts and logs the request.
//! - **Its permits.** A [`Permit`] is a place in a lane: among those who use a connection, who
//!   write, who wait beside the workers. A statement that was cancelled and still does not end for
//!   a second is abandoned: the watchdog gives back all permits of its thread.
//! - **Its post.** A worker that hangs on would be missing. The watchdog has another thread start
//!   on its post (`stand_in`).
//!
//! When the statement ends after all, the thread goes on in `come_back`, without what was given
//! away: it has no time left where the request is answered, and where another thread has its post
//! it ends with the request. A thread that waits for something other than Postgres gives its post
//! away by itself ([`stand_up`]). So as many threads serve as there are posts, and there is one
//! more only for each request that waits.

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

/// Starts another thread on the post of one that hangs or waits. Whether it could be started.
type StandIn = Arc<dyn Fn() -> bool + Send + Sync>;

/// What a thread does before it waits for the database. It keeps the permit while it waits.
type BeforeWaiting = Arc<dyn Fn() -> Option<Permit<'static>> + Send + Sync>;

// The store cannot be handed what the thread that calls it has: between the two stand handlers and
// libraries that know nothing of it.
thread_local! {
    static WORKER: RefCell<Worker> = const { RefCell::new(Worker::NEW) };
}

struct Worker {
    /// Of the request that it serves.
    budget: Option<Budget>,
    post: Option<Post>,
    /// Its permit to be there without a post.
    place_beside: Option<Permit<'static>>,
    /// All permits that it holds, that one among them.
    permits: Vec<Weak<Hold>>,
}

impl Worker {
    const NEW: Worker = Worker {
        budget: None,
        post: None,
        place_beside: None,
        permits: Vec::new(),
    };
}

struct Post {
    /// For threads that gave their post away.
    beside: &'static Permits,
    stand_in: StandIn,
    before_waiting: BeforeWaiting,
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

/// Gives this thread a post, on which `stand_in` starts another thread should this one hang, or
/// wait `beside` the others.
pub fn take_post(
    beside: &'static Permits,
    stand_in: impl Fn() -> bool + Send + Sync + 'static,
    before_waiting: impl Fn() -> Option<Permit<'static>> + Send + Sync + 'static,
) {
    let post = Post {
        beside,
        stand_in: Arc::new(stand_in),
        before_waiting: Arc::new(before_waiting),
    };
    WORKER.with_borrow_mut(|worker| worker.post = Some(post));
}

/// Does what this thread does before it waits for the database.
pub(super) fn before_waiting() -> Option<Permit<'static>> {
    let of_post = |worker: &Worker| Some(Arc::clone(&worker.post.as_ref()?.before_waiting));
    let before_waiting = WORKER.with_borrow(of_post)?;
    before_waiting()
}

/// Whether this thread still has its post. Otherwise another has it, and this one is to end.
pub fn has_post() -> bool {
    WORKER.with_borrow(|worker| worker.post.is_some())
}

/// Gives this thread's post to another one, which serves the next request meanwhile. This thread
/// ends with the request that it is at. It keeps the post where too many have given away theirs, or
/// no thread can be started.
pub fn stand_up() {
    let Some(post) = WORKER.with_borrow_mut(|worker| worker.post.take()) else {
        return;
    };
    let place_beside = post.beside.take(Duration::ZERO);
    let place_beside = place_beside.filter(|_| (post.stand_in)());
    WORKER.with_borrow_mut(|worker| match place_beside {
        None => worker.post = Some(post),
        place => worker.place_beside = place,
    });
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
            stand_in: worker.post.as_ref().map(|post| Arc::clone(&post.stand_in)),
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
    pub(super) another_has_its_post: bool,
}

/// This thread hangs no longer. It goes on without what was given away.
pub(super) fn come_back(done: &DoneMeanwhile) {
    if done.is_answered {
        // The request gets nothing more from the database.
        spend(ALLOWANCE);
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
    room: Mutex<Room>,
    returned: Condvar,
}

#[derive(Debug)]
struct Room {
    /// Permits that nobody holds.
    free: usize,
    /// Threads that wait for a permit.
    waiting: usize,
}

/// One permit; goes back when dropped, also when the holder panics, or when the watchdog sees that
/// the holder's thread hangs.
pub struct Permit<'a> {
    hold: Arc<Hold>,
    lane: PhantomData<&'a Permits>,
}

/// What a permit takes from its lane, and gives back once.
struct Hold {
    lane: Arc<Lane>,
    is_back: AtomicBool,
}

impl Hold {
    fn give_back(&self) {
        if !self.is_back.swap(true, Ordering::SeqCst) {
            let mut room = self.lane.room.lock();
            room.free += 1;
            let is_awaited = room.waiting > 0;
            drop(room);
            // Notifying takes a system call also where nobody waits.
            if is_awaited {
                self.lane.returned.notify_one();
            }
        }
    }
}

impl Permits {
    /// A lane for `count` holders at once.
    pub fn new(count: usize) -> Permits {
        Permits {
            lane: Arc::new(Lane {
                room: Mutex::new(Room {
                    free: count,
                    waiting: 0,
                }),
                returned: Condvar::new(),
            }),
        }
    }

    pub fn free(&self) -> usize {
        self.lane.room.lock().free
    }

    /// Takes a permit, waiting at most `patience`; `None` when there was none by then.
    pub fn take(&self, patience: Duration) -> Option<Permit<'_>> {
        let deadline = Instant::now() + patience;
        let mut room = self.lane.room.lock();
        while room.free == 0 {
            let remaining = deadline.checked_duration_since(Instant::now())?;
            room.waiting += 1;
            room = self
                .lane
                .returned
                .wait_timeout(room, remaining)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            room.waiting -= 1;
        }
        room.free -= 1;
        drop(room);
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
    use std::sync::atomic::AtomicUsize;

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
        let permits: &'static Permits = Box::leak(Box::new(Permits::new(2)));
        let others = Permits::new(1);
        std::thread::scope(|scope| {
            let of_another = permits.take(Duration::ZERO);
            let (tell, told) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let hanging = scope.spawn(move || {
                drop(permits.take(Duration::ZERO));
                take_post(permits, || false, || permits.take(Duration::ZERO));
                let _held = before_waiting();
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
    fn who_stands_up_gives_the_post_to_one_more_thread_while_there_is_a_place_beside() {
        let beside: &'static Permits = Box::leak(Box::new(Permits::new(1)));
        let started = Arc::new(AtomicUsize::new(0));
        let begin = move || {
            let count = Arc::clone(&started);
            let start = move || count.fetch_add(1, Ordering::SeqCst) == 0;
            take_post(beside, start, || None);
            stand_up();
            stand_up();
            let is_kept = has_post();
            (is_kept, started.load(Ordering::SeqCst), beside.free())
        };
        let other = begin.clone();
        assert_eq!(begin(), (false, 1, 0));
        let other = || std::thread::spawn(other.clone()).join().unwrap();
        assert_eq!(other(), (true, 1, 0), "nobody is started without a place");
        WORKER.with_borrow_mut(|worker| worker.place_beside.take());
        assert_eq!(
            other(),
            (true, 3, 1),
            "a place is of no use without a thread"
        );
    }
}
