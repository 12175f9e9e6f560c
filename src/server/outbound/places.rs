//! Places for requests that wait for another server, and a line for as many more. No server gets
//! all of them. A server that does not answer in time gets one place at a time until it does, so
//! that only its own users suffer.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, PoisonError};
use std::time::{Duration, Instant};

use gatepost_store::mutex::Mutex;

#[derive(Debug)]
pub struct Places {
    most: usize,
    taken: Mutex<Taken>,
    /// Notified when a place was given back or taken, so that another request may be the next.
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    together: usize,
    servers: HashMap<String, Server>,
    /// The requests that wait for a place, in the order in which they came.
    line: VecDeque<Waiting>,
    last_number: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Server {
    taken: usize,
    /// Whether the latest request got no answer in time.
    is_slow: bool,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    server: String,
}

/// A place; given back when dropped, also when the holder panics.
pub struct Taker<'a> {
    places: &'a Places,
    server: String,
    /// Whether an answer did not come in time; `None` before the first request.
    was_slow: Cell<Option<bool>>,
}

impl Places {
    pub fn new(most: usize) -> Places {
        Places {
            most: most.max(1),
            taken: Mutex::default(),
            moved: Condvar::new(),
        }
    }

    pub fn free(&self) -> usize {
        self.most.saturating_sub(self.taken.lock().together)
    }

    pub fn waiting(&self) -> usize {
        self.taken.lock().line.len()
    }

    /// A place to wait for that server, if there is one within `patience`. Where the server is slow
    /// or too many wait already, there must be one at once.
    pub fn take(&self, server: &str, patience: Duration) -> Option<Taker<'_>> {
        let deadline = Instant::now() + patience;
        let mut taken = self.taken.lock();
        let number = taken.stand_in_line(server);
        while taken.may_wait(number, server, self.most) {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                break;
            }
            taken = self
                .moved
                .wait_timeout(taken, remaining)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        let is_next = taken.is_next(number, self.most);
        taken.line.retain(|waiting| waiting.number != number);
        if !is_next {
            return None;
        }
        taken.together += 1;
        taken.servers.entry(server.to_owned()).or_default().taken += 1;
        // There may be a place for whoever is the next now.
        self.moved.notify_all();
        Some(Taker {
            places: self,
            server: server.to_owned(),
            was_slow: Cell::new(None),
        })
    }
}

impl Taken {
    /// Answers the number of the request in the line.
    fn stand_in_line(&mut self, server: &str) -> u64 {
        self.last_number += 1;
        self.line.push_back(Waiting {
            number: self.last_number,
            server: server.to_owned(),
        });
        self.last_number
    }

    /// Whether this is the first request in line that there is a place for.
    fn is_next(&self, number: u64, most: usize) -> bool {
        self.line
            .iter()
            .find(|waiting| self.has_place(&waiting.server, most))
            .is_some_and(|waiting| waiting.number == number)
    }

    fn has_place(&self, server: &str, most: usize) -> bool {
        let Server { taken, is_slow } = self.server(server);
        self.together < most && taken < if is_slow { 1 } else { share(most) }
    }

    /// Whether a request that is not the next may stay in line. No request waits for a slow server,
    /// and where all places are taken, no more wait than there are. Where one was just given back,
    /// whoever gets it may not know yet and still stands in line: it counts as if it had the place.
    fn may_wait(&self, number: u64, server: &str, most: usize) -> bool {
        let ahead = || {
            self.line
                .iter()
                .take_while(|waiting| waiting.number != number)
        };
        let ahead_for_server = ahead().filter(|waiting| waiting.server == server).count();
        let Server { taken, is_slow } = self.server(server);
        let is_too_long = self.together + ahead().count() >= 2 * most
            || taken + ahead_for_server >= 2 * share(most);
        !self.is_next(number, most) && !is_too_long && !is_slow
    }

    fn server(&self, server: &str) -> Server {
        self.servers.get(server).copied().unwrap_or_default()
    }
}

/// How many requests for one server may have places, or wait. Where there are several places, at
/// least one is left for other servers.
fn share(most: usize) -> usize {
    most.saturating_sub((most / 4).max(1)).max(1)
}

impl Taker<'_> {
    /// The outcome of a request: an answer, or none in time. It counts when the place is given
    /// back.
    pub fn note(&self, is_slow: bool) {
        self.was_slow
            .set(Some(is_slow || self.was_slow.get().unwrap_or_default()));
    }
}

impl Drop for Taker<'_> {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        // All are notified, because each may wait for another server.
        self.places.moved.notify_all();
        taken.together = taken.together.saturating_sub(1);
        let Some(server) = taken.servers.get_mut(&self.server) else {
            return;
        };
        server.taken = server.taken.saturating_sub(1);
        server.is_slow = self.was_slow.get().unwrap_or(server.is_slow);
        if server.taken == 0 && !server.is_slow {
            taken.servers.remove(&self.server);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn takers<'a>(places: &'a Places, server: &str, count: usize) -> Vec<Option<Taker<'a>>> {
        (0..count)
            .map(|_| places.take(server, Duration::ZERO))
            .collect()
    }

    #[test]
    fn one_server_never_gets_all_places() {
        for (most, share) in [(2, 1), (3, 2), (4, 3), (8, 6), (16, 12)] {
            let places = Places::new(most);
            let of_one = takers(&places, "a", most);
            assert_eq!(of_one.iter().flatten().count(), share, "of {most}");
            let of_others = takers(&places, "b", most);
            assert_eq!(
                of_others.iter().flatten().count(),
                most - share,
                "of {most}"
            );
            assert_eq!(
                (places.free(), places.take("c", Duration::ZERO).is_none()),
                (0, true)
            );
            drop((of_one, of_others));
            assert_eq!(
                (places.free(), places.taken.lock().servers.len()),
                (most, 0)
            );
        }
        let single = Places::new(0);
        let taker = single.take("a", Duration::ZERO);
        assert!(taker.is_some() && single.take("b", Duration::ZERO).is_none());
    }

    #[test]
    fn who_does_not_answer_in_time_gets_one_place_until_it_does() {
        let places = Places::new(8);
        let ends = |taker: Option<Taker<'_>>, answers: &[bool]| {
            let taker = taker.unwrap();
            answers.iter().for_each(|is_slow| taker.note(*is_slow));
        };
        // One slow answer among several is enough.
        ends(places.take("a", Duration::ZERO), &[false, true, false]);
        let next = places.take("a", Duration::ZERO);
        assert!(
            places.take("a", Duration::ZERO).is_none()
                && places.take("b", Duration::ZERO).is_some()
        );
        // Nothing was asked: nothing is known.
        ends(next, &[]);
        let next = places.take("a", Duration::ZERO);
        assert!(places.take("a", Duration::ZERO).is_none());
        ends(next, &[false]);
        let two = (
            places.take("a", Duration::ZERO),
            places.take("a", Duration::ZERO),
        );
        assert!(two.0.is_some() && two.1.is_some());
    }

    /// Waits until so many stand in line.
    fn await_line(places: &Places, length: usize) {
        while places.taken.lock().line.len() < length {
            thread::yield_now();
        }
    }

    #[test]
    fn who_waits_gets_a_place_in_the_order_of_coming() {
        let (places, order) = (Places::new(4), std::sync::Mutex::new(Vec::new()));
        // Two stay taken to the end, so that those who wait go one by one.
        let mut held = takers(&places, "a", 3);
        thread::scope(|scope| {
            for number in 0..3 {
                let (places, order) = (&places, &order);
                scope.spawn(move || {
                    let taker = places.take("a", Duration::from_secs(60)).unwrap();
                    order.lock().unwrap().push(number);
                    drop(taker);
                });
                await_line(places, number + 1);
            }
            // Nobody who wants another server stands behind them.
            assert!(places.take("b", Duration::ZERO).is_some());
            drop(held.pop());
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 2]);
        assert_eq!(places.taken.lock().line.len(), 0);
    }

    #[test]
    fn no_more_wait_than_there_are_places_and_not_all_of_them_for_one_server() {
        let places = Places::new(4);
        thread::scope(|scope| {
            let held = [takers(&places, "a", 3), takers(&places, "b", 1)];
            let wait = |server: &'static str| {
                let places = &places;
                scope.spawn(move || places.take(server, Duration::from_secs(60)).is_some())
            };
            let mut waiting: Vec<_> = (1..=3)
                .map(|length| {
                    let waiter = wait("a");
                    await_line(&places, length);
                    waiter
                })
                .collect();
            // Waiting would outlast the test.
            assert!(
                places.take("a", Duration::from_secs(3_600)).is_none(),
                "three of four wait for one"
            );
            waiting.push(wait("b"));
            await_line(&places, 4);
            assert!(
                places.take("b", Duration::from_secs(3_600)).is_none(),
                "four wait"
            );
            drop(held);
            assert!(waiting.into_iter().all(|waiter| waiter.join().unwrap()));
        });
        assert_eq!((places.free(), places.taken.lock().servers.len()), (4, 0));
    }

    #[test]
    fn who_was_given_a_place_and_does_not_know_yet_takes_no_other_place_in_line() {
        let waiting = |number| Waiting {
            number,
            server: String::from("a"),
        };
        let of_which_taken = |count| Taken {
            together: count,
            servers: HashMap::from([(
                String::from("a"),
                Server {
                    taken: count,
                    is_slow: false,
                },
            )]),
            line: (1..=4).map(waiting).collect(),
            last_number: 4,
        };
        assert!(!of_which_taken(3).may_wait(4, "a", 4));
        assert!(of_which_taken(2).may_wait(4, "a", 4));
    }

    #[test]
    fn nobody_waits_for_a_server_that_turns_out_to_be_slow() {
        let places = Places::new(1);
        thread::scope(|scope| {
            let held = places.take("a", Duration::ZERO).unwrap();
            let waiter = scope.spawn(|| {
                let first = places.take("a", Duration::from_secs(60));
                let second = scope.spawn(|| places.take("a", Duration::from_secs(3_600)).is_none());
                (first.is_some(), second.join().unwrap())
            });
            await_line(&places, 1);
            held.note(true);
            drop(held);
            assert_eq!(waiter.join().unwrap(), (true, true), "one at a time");
        });
    }
}
