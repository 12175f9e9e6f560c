//! Which worker asks tiny_http for the next request: one at a time. Between two, the second request
//! of a connection could overtake the first, whose answer must be written before, and wait for
//! ever.
//!
//! A request wakes one thread. Whoever has received it leaves the entrance and wakes nobody: the
//! next worker that is done comes by itself. In case that none is done soon, one that has nothing
//! to do looks every five milliseconds for as long as requests come. Only where none looks is one
//! woken.
//!
//! A worker that is about to wait for the database takes one request that nobody is there to
//! receive, and wakes an idle worker, which serves it: otherwise processors would idle while
//! requests wait. Of the workers that wait for the database only the first does so, and the next
//! once that one goes on: otherwise a request would often wake two threads.

use std::sync::{Condvar, PoisonError};
use std::time::Duration;

use gatepost_store::mutex::Mutex;

/// How long a request may wait although a worker has nothing to do. A worker that is done takes
/// most requests earlier. A look each millisecond woke a thread for every second refresh.
const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Default)]
pub struct Entrance {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    is_attended: bool,
    is_watched: bool,
    /// Whether somebody has left since the latest look began.
    is_busy: bool,
}

/// The entrance is this thread's until this is dropped.
pub struct Attending<'a>(&'a Entrance);

impl Entrance {
    /// Where nobody is at the entrance, looks in passing. Wakes an idle worker where `finds` says
    /// that there is something to do.
    pub fn look(&self, finds: impl FnOnce() -> bool) {
        let state = self.state.lock();
        if !state.is_attended && finds() {
            self.left.notify_one();
        }
    }

    /// Waits until nobody else is at the entrance.
    pub fn attend(&self) -> Attending<'_> {
        let mut state = self.state.lock();
        while state.is_attended {
            if state.is_watched || !state.is_busy {
                state = self
                    .left
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            } else {
                state.is_watched = true;
                state.is_busy = false;
                let looked = self.left.wait_timeout(state, LOOK_EVERY);
                state = looked.unwrap_or_else(PoisonError::into_inner).0;
                state.is_watched = false;
            }
        }
        state.is_attended = true;
        Attending(self)
    }
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_attended = false;
        state.is_busy = true;
        if !state.is_watched {
            self.0.left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    #[test]
    fn one_at_a_time_is_at_the_entrance_and_it_is_never_left_for_long() {
        let (entrance, inside) = (Entrance::default(), AtomicUsize::new(0));
        let come = |times: usize| {
            for _ in 0..times {
                let attending = entrance.attend();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(attending);
            }
        };
        thread::scope(|scope| {
            // All but one are done before, and nobody follows these of themselves.
            for times in [1, 1, 1, 10, 100, 1_000] {
                let come = &come;
                scope.spawn(move || come(times));
            }
        });
        assert!(!entrance.state.lock().is_attended);
    }

    #[test]
    fn who_passes_looks_where_nobody_is_and_wakes_one_for_what_is_found() {
        let entrance = Entrance::default();
        let attending = entrance.attend();
        entrance.look(|| panic!("somebody is there"));
        // Whoever leaves wakes nobody then.
        entrance.state.lock().is_watched = true;
        let (told, arrivals) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                drop(entrance.attend());
                told.send(()).unwrap();
            });
            thread::sleep(Duration::from_millis(20));
            drop(attending);
            entrance.look(|| false);
            entrance.look(|| true);
            let arrived = arrivals.recv_timeout(Duration::from_secs(30));
            // So that a failure is told, and nobody waits for ever.
            entrance.left.notify_all();
            assert!(arrived.is_ok());
        });
    }

    #[test]
    fn one_who_has_nothing_to_do_follows_whoever_leaves_and_does_not_come_back() {
        let entrance = Entrance::default();
        let (told, arrivals) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let first = entrance.attend();
            for _ in 0..3 {
                let (entrance, told) = (&entrance, told.clone());
                scope.spawn(move || {
                    let attending = entrance.attend();
                    told.send(()).unwrap();
                    drop(attending);
                });
            }
            assert!(arrivals.recv_timeout(Duration::from_millis(50)).is_err());
            drop(first);
            let all: Vec<()> = arrivals.iter().take(3).collect();
            assert_eq!(all.len(), 3);
        });
    }
}
