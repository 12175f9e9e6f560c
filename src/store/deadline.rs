//! How long a request may wait for the database, all its statements together, and who answers it
//! when that is over. A worker that waits for a frozen server cannot be woken: whoever sees that
//! the time is over answers in its place, and the worker gets nothing more from the database. Where
//! it hangs on, another thread takes its post.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// No request waits for the database longer than five seconds; the rest of those is for noticing,
/// and for the answer.
pub const ALLOWANCE: Duration = Duration::from_millis(4_500);

/// Answers a request in the place of the worker that waits; does nothing when it is answered.
pub type GiveUp = Arc<dyn Fn() + Send + Sync>;

/// Starts another thread on the post of one that hangs. Whether it could be started.
pub type StandIn = Arc<dyn Fn() -> bool + Send + Sync>;

struct Served {
    left: Duration,
    give_up: GiveUp,
    is_answered: Arc<AtomicBool>,
}

thread_local! {
    static CURRENT: RefCell<Option<Served>> = const { RefCell::new(None) };
    static POST: RefCell<Option<StandIn>> = const { RefCell::new(None) };
}

/// Gives this thread a post, on which `stand_in` starts another thread should this one hang.
pub fn take_post(stand_in: impl Fn() -> bool + Send + Sync + 'static) {
    POST.set(Some(Arc::new(stand_in)));
}

/// Whether this thread still has its post. Otherwise another has it, and this one is to end.
pub fn has_post() -> bool {
    POST.with_borrow(Option::is_some)
}

/// Notes that another thread has this one's post.
pub fn lose_post() {
    POST.set(None);
}

/// What starts another thread on the post of this one, if it has one.
pub fn stand_in() -> Option<StandIn> {
    POST.with_borrow(Clone::clone)
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
    CURRENT.set(Some(Served {
        left: ALLOWANCE,
        give_up,
        is_answered,
    }));
    let answer = handle();
    CURRENT.set(None);
    answer
}

/// What the request that this thread serves has left, and what ends its waiting; `None` where none
/// is served.
pub fn current() -> Option<(Duration, GiveUp)> {
    CURRENT.with_borrow(|served| {
        served
            .as_ref()
            .map(|served| (served.left, Arc::clone(&served.give_up)))
    })
}

/// Takes the answer upon this thread, unless it was given in its place: whoever answers counts the
/// request, and logs it.
pub fn answer() -> bool {
    CURRENT.with_borrow(|served| {
        served
            .as_ref()
            .is_none_or(|served| !served.is_answered.swap(true, Ordering::SeqCst))
    })
}

/// Notes that the request that this thread serves waited so long.
pub fn spend(waited: Duration) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(served) = current {
            served.left = served.left.saturating_sub(waited);
        }
    });
}
