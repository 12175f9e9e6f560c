//! Documents from other servers, fetched and kept. One request at a time fetches a document, and
//! not again too soon, so neither strangers nor a broken server can make us fetch more often.

use std::collections::HashMap;
use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant as Monotonic};

use crate::outbound::{Asker, Deadline, OutboundError};
use gatepost_store::mutex::Mutex;

/// The time between two fetches that look for something which the document lacked, for each
/// provenance.
const SEARCH_AGAIN: Duration = Duration::from_secs(60);
/// After a fetch that failed.
pub const TRY_AGAIN: Duration = Duration::from_secs(10);
/// Documents kept at once. Their addresses are registered, or stand in a document whose address is:
/// more of them would be a fault.
const MOST_HELD: usize = 10_000;

#[derive(Clone, Copy, Debug)]
pub struct Shelf {
    fresh: Duration,
    /// How long it is good enough while no newer one can be had.
    stale: Duration,
}

pub const KEY_SETS: Shelf = Shelf {
    fresh: Duration::from_secs(600),
    stale: Duration::from_secs(3_600),
};
/// The keys of clients are in some of them.
pub const CLIENT_DOCUMENTS: Shelf = KEY_SETS;
pub const METADATA: Shelf = Shelf {
    fresh: Duration::from_secs(3_600),
    stale: Duration::from_secs(86_400),
};

/// Who named something that the document lacks. Each has a budget of its own for fetching again:
/// requests that anybody can send must not use up the fetch that a sign-in needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// A request to us, which anybody can make.
    Presented,
    /// The answer of the document's owner to a request of ours.
    Answered,
}

#[derive(Debug)]
pub struct Fetched<T> {
    shelf: Shelf,
    held: Mutex<HashMap<String, Held<T>>>,
    returned: Condvar,
}

#[derive(Debug)]
struct Held<T> {
    document: Option<Arc<T>>,
    fetched_at: Option<Monotonic>,
    tried_at: Option<Monotonic>,
    problem: Option<OutboundError>,
    /// When a request last looked for something that was not in the document.
    searched_at: HashMap<Provenance, Monotonic>,
    is_fetching: bool,
}

/// A document that a request asks for.
#[derive(Clone, Copy)]
pub struct Sought<'a> {
    pub asker: Asker<'a>,
    pub url: &'a str,
    pub deadline: Deadline,
}

/// Which document at an address will do.
enum Need<'a, T> {
    /// Any current one that fits.
    Current(&'a dyn Fn(&T) -> bool),
    /// Another than this one, in which something was looked for in vain.
    Newer(&'a Arc<T>, Provenance),
}

/// What a request does next that needs a document.
#[derive(Debug)]
enum Step<T> {
    Use(Arc<T>),
    Fetch,
    /// Another request is fetching it.
    Wait,
    /// It is too early to fetch again.
    Fail(OutboundError),
}

impl<T> Default for Held<T> {
    fn default() -> Held<T> {
        Held {
            document: None,
            fetched_at: None,
            tried_at: None,
            problem: None,
            searched_at: HashMap::new(),
            is_fetching: false,
        }
    }
}

impl<T> Held<T> {
    fn step(&self, shelf: Shelf, need: &Need<'_, T>, now: Monotonic) -> Step<T> {
        if let Some(document) = self.usable(shelf.fresh, need, now) {
            return Step::Use(document);
        }
        let is_too_early = match need {
            Need::Current(_) => is_within(self.tried_at, TRY_AGAIN, now),
            Need::Newer(_, provenance) => {
                let searched_at = self.searched_at.get(provenance).copied();
                is_within(searched_at, SEARCH_AGAIN, now)
            }
        };
        if !self.is_fetching && !is_too_early {
            return Step::Fetch;
        }
        match self.usable(shelf.stale, need, now) {
            Some(document) => Step::Use(document),
            None if self.is_fetching => Step::Wait,
            None => Step::Fail(self.problem()),
        }
    }

    /// The document, if it will do and was fetched within that time. A newer one than somebody has
    /// will do at any age.
    fn usable(&self, within: Duration, need: &Need<'_, T>, now: Monotonic) -> Option<Arc<T>> {
        let document = self.document.as_ref()?;
        let will_do = match need {
            Need::Current(fits) => is_within(self.fetched_at, within, now) && fits(document),
            Need::Newer(seen, _) => !Arc::ptr_eq(document, seen),
        };
        will_do.then(|| Arc::clone(document))
    }

    fn problem(&self) -> OutboundError {
        self.problem
            .clone()
            .unwrap_or_else(|| OutboundError::Failed(String::from("there is no newer one")))
    }
}

fn is_within(instant: Option<Monotonic>, span: Duration, now: Monotonic) -> bool {
    instant.is_some_and(|instant| now.saturating_duration_since(instant) < span)
}

impl<T> Fetched<T> {
    pub fn new(shelf: Shelf) -> Fetched<T> {
        Fetched {
            shelf,
            held: Mutex::default(),
            returned: Condvar::new(),
        }
    }

    /// The document, kept or by `fetch`; or why there is none. While too many requests wait for
    /// other servers to fetch a newer one, the one that is kept is good enough. One that does not
    /// fit counts as if it were not kept.
    pub fn find(
        &self,
        sought: Sought<'_>,
        fits: impl Fn(&T) -> bool,
        fetch: impl FnOnce(Asker<'_>) -> Result<T, OutboundError>,
    ) -> Result<Arc<T>, OutboundError> {
        let need = Need::Current(&fits);
        self.obtain(sought, &need, fetch).or_else(|problem| {
            let held = self.held.lock();
            let kept = held.get(sought.url);
            kept.and_then(|held| held.usable(self.shelf.stale, &need, Monotonic::now()))
                .ok_or(problem)
        })
    }

    /// A newer document than `seen`, if there may be one by now.
    pub fn find_newer(
        &self,
        sought: Sought<'_>,
        seen: &Arc<T>,
        provenance: Provenance,
        fetch: impl FnOnce(Asker<'_>) -> Result<T, OutboundError>,
    ) -> Result<Arc<T>, OutboundError> {
        self.obtain(sought, &Need::Newer(seen, provenance), fetch)
    }

    /// Uses what is kept, or fetches, or waits for the request that fetches.
    ///
    /// The request that fetches takes its place among those that wait for other servers before
    /// anybody waits for the document. Those who wait have such places, too, and could otherwise
    /// have taken all of them.
    fn obtain(
        &self,
        sought: Sought<'_>,
        need: &Need<'_, T>,
        fetch: impl FnOnce(Asker<'_>) -> Result<T, OutboundError>,
    ) -> Result<Arc<T>, OutboundError> {
        let url = sought.url;
        match self.look(url, need) {
            Step::Use(document) => return Ok(document),
            Step::Fail(problem) => return Err(problem),
            Step::Fetch | Step::Wait => {}
        }
        let place = sought.asker.take_place(url)?;
        match self.begin(url, need) {
            Step::Use(document) => return Ok(document),
            Step::Fail(problem) => return Err(problem),
            Step::Wait => self.wait(sought),
            Step::Fetch => {
                let mut fetching = Fetching {
                    documents: self,
                    url,
                    outcome: None,
                };
                let fetched = fetch(place.as_ref().map_or(sought.asker, Asker::Seated));
                match &fetched {
                    Err(OutboundError::Busy) => return Err(OutboundError::Busy),
                    Err(problem) => log::warn!("{} cannot be had: {problem}", url.escape_debug()),
                    Ok(_) => {}
                }
                fetching.outcome = Some(fetched.map(Arc::new));
            }
        }
        match self.look(url, need) {
            Step::Use(document) => Ok(document),
            Step::Fail(problem) => Err(problem),
            // The other request is still fetching.
            Step::Fetch | Step::Wait => Err(OutboundError::Busy),
        }
    }

    fn look(&self, url: &str, need: &Need<'_, T>) -> Step<T> {
        let held = self.held.lock();
        match held.get(url) {
            Some(held) => held.step(self.shelf, need, Monotonic::now()),
            None => Step::Fetch,
        }
    }

    /// Looks again. Where the next step is to fetch, the others wait from now on.
    fn begin(&self, url: &str, need: &Need<'_, T>) -> Step<T> {
        let now = Monotonic::now();
        let mut held = self.held.lock();
        if held.len() >= MOST_HELD && !held.contains_key(url) {
            held.retain(|_, held| held.is_fetching);
        }
        let entry = held.entry(url.to_owned()).or_default();
        let step = entry.step(self.shelf, need, now);
        if matches!(step, Step::Fetch) {
            entry.is_fetching = true;
            if let Need::Newer(_, provenance) = need {
                entry.searched_at.insert(*provenance, now);
            }
        }
        step
    }

    /// Waits until the request that fetches has ended, as long as there is time.
    fn wait(&self, sought: Sought<'_>) {
        let is_fetching = |held: &mut HashMap<String, Held<T>>| {
            held.get(sought.url).is_some_and(|held| held.is_fetching)
        };
        let held = self.held.lock();
        drop(
            self.returned
                .wait_timeout_while(held, sought.deadline.remaining(), is_fetching),
        );
    }
}

/// The request that fetches a document. When it is dropped, others may go on.
struct Fetching<'a, T> {
    documents: &'a Fetched<T>,
    url: &'a str,
    /// `None` before the fetch; then its outcome.
    outcome: Option<Result<Arc<T>, OutboundError>>,
}

impl<T> Drop for Fetching<'_, T> {
    fn drop(&mut self) {
        let mut held = self.documents.held.lock();
        let entry = held.entry(self.url.to_owned()).or_default();
        entry.is_fetching = false;
        let now = Monotonic::now();
        match self.outcome.take() {
            None => {}
            Some(Ok(document)) => {
                (entry.document, entry.fetched_at) = (Some(document), Some(now));
                (entry.problem, entry.tried_at) = (None, Some(now));
            }
            Some(Err(problem)) => (entry.problem, entry.tried_at) = (Some(problem), Some(now)),
        }
        self.documents.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbound::Outbound;
    use gatepost_store::worker;

    /// Fetched, tried and searched that many seconds ago.
    fn held(
        fetched: Option<u64>,
        tried: Option<u64>,
        searched: Option<u64>,
        is_fetching: bool,
    ) -> (Held<u8>, Monotonic) {
        let now = Monotonic::now() + Duration::from_secs(100_000);
        let ago = |seconds: Option<u64>| seconds.map(|seconds| now - Duration::from_secs(seconds));
        let document = fetched.map(|_| Arc::new(7));
        let (fetched_at, tried_at) = (ago(fetched), ago(tried));
        let searched_at = ago(searched)
            .map(|at| (Provenance::Presented, at))
            .into_iter()
            .collect();
        (
            Held {
                document,
                fetched_at,
                tried_at,
                problem: None,
                searched_at,
                is_fetching,
            },
            now,
        )
    }

    fn sought<'a>(outbound: &'a Outbound, url: &'a str) -> Sought<'a> {
        Sought {
            asker: Asker::Worker(outbound),
            url,
            deadline: Deadline::usual(),
        }
    }

    fn word(step: &Step<u8>) -> &'static str {
        match step {
            Step::Use(_) => "use",
            Step::Fetch => "fetch",
            Step::Wait => "wait",
            Step::Fail(_) => "fail",
        }
    }

    #[test]
    fn a_document_is_used_while_fresh_and_longer_when_there_is_no_newer() {
        for (fetched, tried, is_fetching, expected) in [
            (None, None, false, "fetch"),
            (None, None, true, "wait"),
            (None, Some(9), false, "fail"),
            (None, Some(11), false, "fetch"),
            (Some(599), Some(599), false, "use"),
            (Some(599), Some(599), true, "use"),
            (Some(600), Some(600), false, "fetch"),
            (Some(600), Some(600), true, "use"),
            (Some(3_599), Some(5), false, "use"),
            (Some(3_600), Some(5), false, "fail"),
            (Some(3_600), Some(5), true, "wait"),
        ] {
            let (held, now) = held(fetched, tried, None, is_fetching);
            assert_eq!(
                word(&held.step(KEY_SETS, &Need::Current(&|_| true), now)),
                expected,
                "{fetched:?} {tried:?} {is_fetching}"
            );
        }
    }

    #[test]
    fn a_document_that_does_not_fit_counts_as_none_however_fresh() {
        for (age, is_fetching, expected) in [
            (9, false, "fail"),
            (11, false, "fetch"),
            (11, true, "wait"),
            (601, false, "fetch"),
        ] {
            let (held, now) = held(Some(age), Some(age), None, is_fetching);
            let step = held.step(KEY_SETS, &Need::Current(&|document| *document != 7), now);
            assert_eq!(word(&step), expected, "{age} {is_fetching}");
        }
    }

    #[test]
    fn what_is_missing_in_it_is_searched_for_once_a_minute() {
        for (searched, is_fetching, expected) in [
            (None, false, "fetch"),
            (Some(59), false, "fail"),
            (Some(60), false, "fetch"),
            (None, true, "wait"),
            (Some(1), true, "wait"),
        ] {
            let (held, now) = held(Some(1), Some(1), searched, is_fetching);
            let seen = held.document.clone().unwrap();
            let step = held.step(KEY_SETS, &Need::Newer(&seen, Provenance::Presented), now);
            assert_eq!(word(&step), expected, "{searched:?} {is_fetching}");
        }
        let (held, now) = held(Some(1), Some(1), Some(1), false);
        let step = held.step(
            KEY_SETS,
            &Need::Newer(&Arc::new(7), Provenance::Presented),
            now,
        );
        assert_eq!(word(&step), "use", "somebody has a newer one already");
    }

    #[test]
    fn what_anybody_can_send_leaves_the_search_to_what_was_answered_and_each_has_one() {
        let (documents, outbound) = (Fetched::new(KEY_SETS), Outbound::new(&[], None, 1).unwrap());
        let sought = sought(&outbound, "https://a.example/");
        let seen = documents.find(sought, |_| true, |_| Ok(1)).unwrap();
        let newer = |seen: &Arc<u8>, provenance, fetched: u8| {
            documents.find_newer(sought, seen, provenance, |_| Ok(fetched))
        };
        let second = newer(&seen, Provenance::Presented, 2).unwrap();
        newer(&second, Provenance::Presented, 3).unwrap_err();
        let third = newer(&second, Provenance::Answered, 3).unwrap();
        for provenance in [Provenance::Presented, Provenance::Answered] {
            newer(&third, provenance, 4).unwrap_err();
            assert_eq!(
                newer(&seen, provenance, 4).map(|found| *found),
                Ok(3),
                "who has seen an older one"
            );
        }
    }

    #[test]
    fn what_is_held_does_for_its_hour_while_there_is_no_place_to_ask_for_a_newer_one() {
        let (url, hour) = ("https://a.example/", Duration::from_secs(3_600));
        let outbound = Outbound::new(&[], None, 1).unwrap();
        for (stale, expected) in [(hour, Ok(7)), (Duration::ZERO, Err(OutboundError::Busy))] {
            let fresh = Duration::ZERO;
            let documents = Fetched::new(Shelf { fresh, stale });
            let entry = Held {
                document: Some(Arc::new(7)),
                fetched_at: Some(Monotonic::now()),
                ..Held::default()
            };
            documents.held.lock().insert(url.to_owned(), entry);
            let find = |fetch: fn() -> Result<u8, OutboundError>| {
                let found = documents.find(sought(&outbound, url), |_| true, |_| fetch());
                found.map(|found| *found)
            };
            let taken = outbound.take_place("https://b.example/").unwrap();
            let waited = worker::serve(
                || {},
                || {
                    // A request that has no time left to wait for a place.
                    worker::spend(worker::ALLOWANCE);
                    find(|| panic!("there was a place"))
                },
            );
            assert_eq!(waited, expected, "{stale:?}");
            drop(taken);
            let busy = find(|| Err(OutboundError::Busy));
            assert_eq!(busy, expected, "{stale:?}");
        }
    }

    #[test]
    fn one_that_panics_while_fetching_leaves_the_way_free() {
        let (documents, outbound) = (Fetched::new(KEY_SETS), Outbound::new(&[], None, 1).unwrap());
        let find = |fetch: fn() -> Result<u8, OutboundError>| {
            let sought = sought(&outbound, "https://a.example/");
            let found = documents.find(sought, |_| true, |_| fetch());
            found.map(|found| *found)
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| find(|| panic!("away"))))
            .unwrap_err();
        assert_eq!(find(|| Ok(1)), Ok(1));
    }

    #[test]
    fn a_failure_is_remembered_with_its_cause_and_a_busy_moment_is_not() {
        let (documents, outbound) = (Fetched::new(KEY_SETS), Outbound::new(&[], None, 1).unwrap());
        let find = |fetch: fn() -> Result<u8, OutboundError>| {
            let sought = sought(&outbound, "https://a.example/");
            let found = documents.find(sought, |_| true, |_| fetch());
            found.map(|found| *found)
        };
        assert_eq!(find(|| Err(OutboundError::Busy)), Err(OutboundError::Busy));
        assert_eq!(
            find(|| Err(OutboundError::NameNotFound)),
            Err(OutboundError::NameNotFound)
        );
        assert_eq!(
            find(|| panic!("asked again")),
            Err(OutboundError::NameNotFound)
        );
        let elsewhere = sought(&outbound, "https://b.example/");
        let fetched = documents.find(elsewhere, |_| true, |_| Ok(1));
        assert_eq!(fetched.map(|found| *found), Ok(1));
        let held = documents.find(elsewhere, |_| true, |_| panic!("asked again"));
        assert_eq!(held.map(|found| *found), Ok(1));
    }
}
