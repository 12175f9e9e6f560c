//! How long a request may wait for the database, all its statements together, and who answers it when that is over.
//!
//! A worker that waits for a frozen server cannot be woken. So whoever sees that the time is over answers in the worker's
//! place; the worker finds its request answered whenever it comes back, and gets nothing more from the database.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// No request waits for the database longer than five seconds; the rest of those is for noticing, and for the answer.
pub const ALLOWANCE: Duration = Duration::from_millis(4_500);

/// Answers a request in the place of the worker that waits; does nothing when it is answered.
pub type GiveUp = Arc<dyn Fn() + Send + Sync>;

thread_local! {
    static CURRENT: RefCell<Option<(Duration, GiveUp)>> = const { RefCell::new(None) };
}

/// Serves one request on this thread, with all of its time before it.
pub fn serve<T>(give_up: GiveUp, handle: impl FnOnce() -> T) -> T {
    CURRENT.set(Some((ALLOWANCE, give_up)));
    let answer = handle();
    CURRENT.set(None);
    answer
}

/// What the request that this thread serves has left, and what ends its waiting; `None` where none is served.
pub fn current() -> Option<(Duration, GiveUp)> {
    CURRENT.with_borrow(Clone::clone)
}

/// Notes that the request that this thread serves waited so long.
pub fn spend(waited: Duration) {
    CURRENT.with_borrow_mut(|current| {
        if let Some((left, _)) = current {
            *left = left.saturating_sub(waited);
        }
    });
}
