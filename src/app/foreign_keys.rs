//! Key sets of others, as registered or fetched and held. A set is fetched by one request at a time, and not again too
//! soon, whatever is sent here: neither strangers nor a broken server can make us call it more often.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Monotonic};

use serde_json::Value;

use super::failure::Failure;
use crate::outbound::{Outbound, OutboundError, OutboundRequest};
use crate::protocol::key_set::KeySet;

/// How long a fetched set is taken for current.
const FRESH: Duration = Duration::from_secs(600);
/// How long it is good enough while no newer one can be had.
const STALE: Duration = Duration::from_secs(3_600);
/// Between two fetches because a key was not in the set.
const SEARCH_AGAIN: Duration = Duration::from_secs(60);
/// After a fetch that failed.
const TRY_AGAIN: Duration = Duration::from_secs(10);
/// How long a request waits for the fetch of another.
const PATIENCE: Duration = Duration::from_secs(6);
/// Sets held at once. Their addresses are registered, so more is a sign of something else.
const MOST_SETS: usize = 10_000;

/// Where somebody's keys are.
#[derive(Clone, Copy, Debug)]
pub enum KeySource<'a> {
    /// `jwks`
    Inline(&'a Value),
    /// `jwks_uri`
    Uri(&'a str),
}

impl<'a> KeySource<'a> {
    /// What a registration says; `None` when it has no keys.
    pub fn of(jwks: &'a Option<Value>, jwks_uri: &'a Option<String>) -> Option<KeySource<'a>> {
        jwks.as_ref().map(KeySource::Inline).or(jwks_uri.as_deref().map(KeySource::Uri))
    }
}

/// The sets held.
#[derive(Debug, Default)]
pub struct ForeignKeys {
    held: Mutex<HashMap<String, Held>>,
    returned: Condvar,
}

#[derive(Clone, Debug, Default)]
struct Held {
    set: Option<Arc<KeySet>>,
    fetched_at: Option<Monotonic>,
    /// When the last try failed or succeeded.
    tried_at: Option<Monotonic>,
    /// When somebody last looked for a key that was not in the set.
    searched_at: Option<Monotonic>,
    is_fetching: bool,
}

/// What to do for someone who needs a set.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Take this one.
    Use(Arc<KeySet>),
    /// Fetch it.
    Fetch,
    /// Wait for whom fetches it.
    Wait,
    /// There is none, and it is too early to ask for it.
    Nothing,
}

impl Held {
    /// For someone who would take any current set.
    fn step(&self, now: Monotonic) -> Step {
        let usable = |within| self.set.as_ref().filter(|_| is_within(self.fetched_at, within, now)).cloned();
        if let Some(set) = usable(FRESH) {
            return Step::Use(set);
        }
        let otherwise = match (self.is_fetching, is_within(self.tried_at, TRY_AGAIN, now)) {
            (true, _) => Step::Wait,
            (false, true) => Step::Nothing,
            (false, false) => return Step::Fetch,
        };
        usable(STALE).map_or(otherwise, Step::Use)
    }

    /// For someone who looked in vain in `seen`.
    fn step_beyond(&self, seen: &Arc<KeySet>, now: Monotonic) -> Step {
        if let Some(set) = self.set.as_ref().filter(|set| !Arc::ptr_eq(set, seen)) {
            return Step::Use(Arc::clone(set));
        }
        let too_early = is_within(self.searched_at, SEARCH_AGAIN, now);
        match (self.is_fetching, too_early) {
            (true, _) => Step::Wait,
            (false, true) => Step::Nothing,
            (false, false) => Step::Fetch,
        }
    }
}

fn is_within(instant: Option<Monotonic>, span: Duration, now: Monotonic) -> bool {
    instant.is_some_and(|instant| now.saturating_duration_since(instant) < span)
}

impl ForeignKeys {
    /// Nothing held yet.
    pub fn new() -> ForeignKeys {
        ForeignKeys::default()
    }

    /// The keys there; `None` when they cannot be had.
    pub fn find(&self, outbound: &Outbound, keys: KeySource<'_>) -> Result<Option<Arc<KeySet>>, Failure> {
        match keys {
            KeySource::Inline(jwks) => Ok(KeySet::parse(jwks).map(Arc::new)),
            KeySource::Uri(url) => self.go(outbound, url, Held::step, |_| {}),
        }
    }

    /// A newer set than `seen`, if there may be one by now.
    pub fn find_newer(
        &self,
        outbound: &Outbound,
        keys: KeySource<'_>,
        seen: &Arc<KeySet>,
    ) -> Result<Option<Arc<KeySet>>, Failure> {
        match keys {
            KeySource::Inline(_) => Ok(None),
            KeySource::Uri(url) => {
                let searched = |held: &mut Held| held.searched_at = Some(Monotonic::now());
                self.go(outbound, url, |held, now| held.step_beyond(seen, now), searched)
            }
        }
    }

    /// Takes one step, and after a fetch, one's own or another's, what it brought.
    fn go(
        &self,
        outbound: &Outbound,
        url: &str,
        step: impl Fn(&Held, Monotonic) -> Step,
        begin: impl Fn(&mut Held),
    ) -> Result<Option<Arc<KeySet>>, Failure> {
        let after = match self.begin(url, &step, begin) {
            Step::Use(set) => return Ok(Some(set)),
            Step::Nothing => return Ok(None),
            Step::Fetch => self.fetch(outbound, url)?,
            Step::Wait => self.wait(outbound, url)?,
        };
        match step(&after, Monotonic::now()) {
            Step::Use(set) => Ok(Some(set)),
            Step::Nothing | Step::Fetch => Ok(None),
            Step::Wait => Err(Failure::Busy),
        }
    }

    /// The next step; who is to fetch is entered as fetching.
    fn begin(&self, url: &str, step: impl Fn(&Held, Monotonic) -> Step, begin: impl Fn(&mut Held)) -> Step {
        let mut held = self.lock();
        if held.len() >= MOST_SETS && !held.contains_key(url) {
            held.retain(|_, held| held.is_fetching);
        }
        let entry = held.entry(url.to_owned()).or_default();
        let step = step(entry, Monotonic::now());
        if step == Step::Fetch {
            entry.is_fetching = true;
            begin(entry);
        }
        step
    }

    fn wait(&self, outbound: &Outbound, url: &str) -> Result<Held, Failure> {
        let _place = outbound.take_place().map_err(|_| Failure::Busy)?;
        let is_fetching = |held: &mut HashMap<String, Held>| held.get(url).is_some_and(|held| held.is_fetching);
        let waited = self.returned.wait_timeout_while(self.lock(), PATIENCE, is_fetching);
        let (held, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Ok(held.get(url).cloned().unwrap_or_default())
    }

    fn fetch(&self, outbound: &Outbound, url: &str) -> Result<Held, Failure> {
        let mut fetching = Fetching { keys: self, url, outcome: None };
        let fetched = fetch_set(outbound, url);
        match &fetched {
            Err(OutboundError::Busy) => return Err(Failure::Busy),
            Err(problem) => log::warn!("the keys at {} cannot be had: {problem}", url.escape_debug()),
            Ok(_) => {}
        }
        fetching.outcome = Some(fetched.ok().map(Arc::new));
        drop(fetching);
        Ok(self.lock().get(url).cloned().unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fetch_set(outbound: &Outbound, url: &str) -> Result<KeySet, OutboundError> {
    let request = OutboundRequest::get(url).header("Accept", "application/jwk-set+json, application/json");
    let answer = outbound.send(&request)?;
    if answer.status != 200 {
        return Err(OutboundError::Failed(format!("the server answered with status {}", answer.status)));
    }
    let set = answer.json().as_ref().and_then(KeySet::parse);
    set.ok_or_else(|| OutboundError::Failed(String::from("the answer is no JWK set")))
}

/// Who fetches a set; when it is over, however it ended, others may go on.
struct Fetching<'a> {
    keys: &'a ForeignKeys,
    url: &'a str,
    /// None while nobody was asked; then what came.
    outcome: Option<Option<Arc<KeySet>>>,
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        let mut held = self.keys.lock();
        let entry = held.entry(self.url.to_owned()).or_default();
        entry.is_fetching = false;
        let now = Monotonic::now();
        if let Some(outcome) = self.outcome.take() {
            entry.tried_at = Some(now);
            if let Some(set) = outcome {
                (entry.set, entry.fetched_at) = (Some(set), Some(now));
            }
        }
        self.keys.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::jwks::PublicKey;

    fn a_set() -> Arc<KeySet> {
        let key = PublicKey::Ed25519 { x: [7; 32] };
        Arc::new(KeySet::parse(&json!({ "keys": [key.to_jwk()] })).unwrap())
    }

    /// Fetched, tried and searched that many seconds ago.
    fn held(fetched: Option<u64>, tried: Option<u64>, searched: Option<u64>, is_fetching: bool) -> (Held, Monotonic) {
        let began = Monotonic::now();
        let now = began + Duration::from_secs(100_000);
        let ago = |seconds: Option<u64>| seconds.map(|seconds| now - Duration::from_secs(seconds));
        let set = fetched.map(|_| a_set());
        let (fetched_at, tried_at, searched_at) = (ago(fetched), ago(tried), ago(searched));
        (Held { set, fetched_at, tried_at, searched_at, is_fetching }, now)
    }

    #[test]
    fn a_set_is_used_while_fresh_and_longer_when_there_is_no_newer() {
        for (fetched, tried, is_fetching, expected) in [
            (None, None, false, Step::Fetch),
            (None, None, true, Step::Wait),
            (None, Some(9), false, Step::Nothing),
            (None, Some(11), false, Step::Fetch),
            (Some(599), Some(599), false, Step::Use(a_set())),
            (Some(599), Some(599), true, Step::Use(a_set())),
            (Some(600), Some(600), false, Step::Fetch),
            (Some(600), Some(600), true, Step::Use(a_set())),
            (Some(3_599), Some(5), false, Step::Use(a_set())),
            (Some(3_600), Some(5), false, Step::Nothing),
            (Some(3_600), Some(5), true, Step::Wait),
        ] {
            let (held, now) = held(fetched, tried, None, is_fetching);
            assert_eq!(held.step(now), expected, "{fetched:?} {tried:?} {is_fetching}");
        }
    }

    #[test]
    fn a_missing_key_is_searched_for_once_a_minute() {
        for (searched, is_fetching, expected) in [
            (None, false, Step::Fetch),
            (Some(59), false, Step::Nothing),
            (Some(60), false, Step::Fetch),
            (None, true, Step::Wait),
            (Some(1), true, Step::Wait),
        ] {
            let (held, now) = held(Some(1), Some(1), searched, is_fetching);
            let seen = held.set.clone().unwrap();
            assert_eq!(held.step_beyond(&seen, now), expected, "{searched:?} {is_fetching}");
        }
        let (held, now) = held(Some(1), Some(1), Some(1), false);
        assert!(matches!(held.step_beyond(&a_set(), now), Step::Use(_)), "somebody has a newer one already");
    }

    #[test]
    fn one_that_panics_while_fetching_leaves_the_way_free() {
        let keys = ForeignKeys::new();
        assert_eq!(keys.begin("https://a.example/", Held::step, |_| {}), Step::Fetch);
        assert_eq!(keys.begin("https://a.example/", Held::step, |_| {}), Step::Wait);
        drop(Fetching { keys: &keys, url: "https://a.example/", outcome: None });
        assert_eq!(keys.begin("https://a.example/", Held::step, |_| {}), Step::Fetch);
    }
}
