//! Places among the workers that wait for somebody else's server: a quarter of all, so that the rest keeps serving; as many
//! more wait a moment for one. No server gets all of them, and one that does not answer in time gets one at a time until it
//! does: it lets down its own users alone.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    taken: Mutex<Taken>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    together: usize,
    waiting: usize,
    servers: HashMap<String, Server>,
}

#[derive(Debug, Default)]
struct Server {
    taken: usize,
    /// Whether the latest request got no answer in time.
    is_slow: bool,
}

/// A place; given back when dropped, also when the holder panics.
#[derive(Debug)]
pub(super) struct Taker<'a> {
    places: &'a Places,
    server: String,
    /// Whether any answer did not come in time; none while nothing was asked.
    was_slow: Cell<Option<bool>>,
}

impl Places {
    pub(super) fn new(most: usize) -> Places {
        Places { most: most.max(1), taken: Mutex::default(), returned: Condvar::new() }
    }

    pub(super) fn free(&self) -> usize {
        self.most.saturating_sub(self.taken().together)
    }

    /// A place to wait for that server, if there is one within `patience`. Where the server is slow or too many wait
    /// already, there must be one at once.
    pub(super) fn take(&self, server: &str, patience: Duration) -> Option<Taker<'_>> {
        let deadline = Instant::now() + patience;
        let mut taken = self.taken();
        loop {
            let (of_server, is_slow) = taken.servers.get(server).map_or((0, false), |one| (one.taken, one.is_slow));
            if taken.together < self.most && of_server < self.share(is_slow) {
                break;
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if is_slow || remaining.is_zero() || taken.waiting >= self.most {
                return None;
            }
            taken.waiting += 1;
            taken = self.returned.wait_timeout(taken, remaining).unwrap_or_else(PoisonError::into_inner).0;
            taken.waiting = taken.waiting.saturating_sub(1);
        }
        taken.together += 1;
        taken.servers.entry(server.to_owned()).or_default().taken += 1;
        Some(Taker { places: self, server: server.to_owned(), was_slow: Cell::new(None) })
    }

    /// How many may wait for one server: where there are several places, at least one stays for others.
    fn share(&self, is_slow: bool) -> usize {
        if is_slow { 1 } else { self.most.saturating_sub((self.most / 4).max(1)).max(1) }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taker<'_> {
    /// The outcome of a request: an answer, or none in time. It counts when the place is given back.
    pub(super) fn note(&self, is_slow: bool) {
        self.was_slow.set(Some(is_slow || self.was_slow.get().unwrap_or_default()));
    }
}

impl Drop for Taker<'_> {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        // Each of those who wait may wait for another server.
        self.places.returned.notify_all();
        taken.together = taken.together.saturating_sub(1);
        let Some(server) = taken.servers.get_mut(&self.server) else { return };
        server.taken = server.taken.saturating_sub(1);
        server.is_slow = self.was_slow.get().unwrap_or(server.is_slow);
        if server.taken == 0 && !server.is_slow {
            taken.servers.remove(&self.server);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takers<'a>(places: &'a Places, server: &str, count: usize) -> Vec<Option<Taker<'a>>> {
        (0..count).map(|_| places.take(server, Duration::ZERO)).collect()
    }

    #[test]
    fn one_server_never_gets_all_places() {
        for (most, share) in [(2, 1), (3, 2), (4, 3), (8, 6), (16, 12)] {
            let places = Places::new(most);
            let of_one = takers(&places, "a", most);
            assert_eq!(of_one.iter().flatten().count(), share, "of {most}");
            let of_others = takers(&places, "b", most);
            assert_eq!(of_others.iter().flatten().count(), most - share, "of {most}");
            assert_eq!((places.free(), places.take("c", Duration::ZERO).is_none()), (0, true));
            drop((of_one, of_others));
            assert_eq!((places.free(), places.taken().servers.len()), (most, 0));
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
        assert!(places.take("a", Duration::ZERO).is_none() && places.take("b", Duration::ZERO).is_some());
        // Nothing was asked: nothing is known.
        ends(next, &[]);
        let next = places.take("a", Duration::ZERO);
        assert!(places.take("a", Duration::ZERO).is_none());
        ends(next, &[false]);
        let two = (places.take("a", Duration::ZERO), places.take("a", Duration::ZERO));
        assert!(two.0.is_some() && two.1.is_some());
    }
}
