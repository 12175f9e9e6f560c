//! What is counted per minute, in bounded memory of this process: wrong guesses of client secrets and of user codes, and
//! device authorizations. Of guesses only wrong ones count: an authenticated client is never limited.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::protocol::instant::Instant;

const WINDOW: Duration = Duration::from_secs(60);

/// Where guesses come from: an IPv4 address, or an IPv6 /64, since whoever has one address of it has all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(IpAddr);

impl Source {
    /// The source that an address belongs to.
    pub fn of(address: IpAddr) -> Source {
        match address.to_canonical() {
            IpAddr::V4(address) => Source(IpAddr::V4(address)),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Source(IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)))
            }
        }
    }

    /// The address, or the first of its /64.
    pub fn address(self) -> IpAddr {
        self.0
    }

    /// Its bytes, for keyed hashes.
    pub fn bytes(self) -> Vec<u8> {
        match self.0 {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }
}

#[derive(Debug)]
struct Count {
    since: Instant,
    failures: u32,
}

/// Counters, one for each guesser `K`.
#[derive(Debug)]
pub struct Guesses<K> {
    per_minute: u32,
    tracked: usize,
    counts: Mutex<HashMap<K, Count>>,
}

impl<K: Eq + Hash> Guesses<K> {
    /// Allows `per_minute` wrong guesses, and remembers `tracked` guessers at most.
    pub fn new(per_minute: u32, tracked: usize) -> Guesses<K> {
        Guesses { per_minute, tracked, counts: Mutex::new(HashMap::new()) }
    }

    /// How long this guesser must wait; `None` when it may try.
    pub fn wait(&self, guesser: &K, now: Instant) -> Option<Duration> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.get(guesser)?;
        let ends = count.since.plus(WINDOW);
        (count.failures >= self.per_minute && now < ends).then(|| ends.since(now))
    }

    /// Counts a wrong guess.
    pub fn count(&self, guesser: K, now: Instant) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= self.tracked && !counts.contains_key(&guesser) {
            make_room(&mut counts, self.tracked, now);
        }
        let count = counts.entry(guesser).or_insert(Count { since: now, failures: 0 });
        if now >= count.since.plus(WINDOW) {
            *count = Count { since: now, failures: 0 };
        }
        count.failures = count.failures.saturating_add(1);
    }
}

/// Forgets counters whose minute is over, and if that is not enough the older half of the others.
fn make_room<K: Eq + Hash>(counts: &mut HashMap<K, Count>, tracked: usize, now: Instant) {
    counts.retain(|_, count| now < count.since.plus(WINDOW));
    if counts.len() < tracked {
        return;
    }
    let mut beginnings: Vec<Instant> = counts.values().map(|count| count.since).collect();
    beginnings.sort_unstable();
    let mut surplus = counts.len().saturating_sub(tracked / 2);
    let youngest_to_go = beginnings.get(surplus.saturating_sub(1)).copied().unwrap_or(now);
    counts.retain(|_, count| {
        let goes = surplus > 0 && count.since <= youngest_to_go;
        surplus -= usize::from(goes);
        !goes
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::identifiers::ClientId;

    fn at(seconds: i64) -> Instant {
        Instant::from_seconds(seconds)
    }

    #[test]
    fn the_limit_holds_for_its_client_source_and_minute_alone() {
        let (guesses, client) = (Guesses::new(2, 100), ClientId::new("web"));
        let (here, there) = (Source::of([192, 0, 2, 1].into()), Source::of([192, 0, 2, 2].into()));
        guesses.count((client.clone(), here), at(0));
        assert_eq!(guesses.wait(&(client.clone(), here), at(1)), None);
        guesses.count((client.clone(), here), at(10));
        assert_eq!(guesses.wait(&(client.clone(), here), at(20)), Some(Duration::from_secs(40)));
        assert_eq!(guesses.wait(&(client.clone(), there), at(20)), None);
        assert_eq!(guesses.wait(&(ClientId::new("other"), here), at(20)), None);
        assert_eq!(guesses.wait(&(client.clone(), here), at(60)), None);
        guesses.count((client.clone(), here), at(60));
        assert_eq!(guesses.wait(&(client.clone(), here), at(61)), None);
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_source() {
        let source = |text: &str| Source::of(text.parse().unwrap());
        assert_eq!(source("2001:db8:1:2::1"), source("2001:db8:1:2:ffff::9"));
        assert_ne!(source("2001:db8:1:2::1"), source("2001:db8:1:3::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
    }

    #[test]
    fn the_oldest_counters_give_way_first() {
        let (guesses, client) = (Guesses::new(1, 10), ClientId::new("web"));
        let source = |number: u8| Source::of([192, 0, 2, number].into());
        for number in 0..11 {
            guesses.count((client.clone(), source(number)), at(i64::from(number)));
        }
        assert_eq!(guesses.wait(&(client.clone(), source(0)), at(12)), None);
        assert!(guesses.wait(&(client.clone(), source(9)), at(12)).is_some());
        assert!(guesses.wait(&(client.clone(), source(10)), at(12)).is_some());
    }

    #[test]
    fn memory_is_bounded() {
        let guesses = Guesses::new(2, 10);
        for number in 0..1_000 {
            guesses.count((ClientId::new(number.to_string()), Source::of([192, 0, 2, 1].into())), at(0));
        }
        assert!(guesses.counts.lock().unwrap().len() <= 10);
    }

    #[test]
    fn a_guesser_that_is_counted_already_pushes_nobody_out() {
        let guesses = Guesses::new(1, 2);
        guesses.count(1, at(0));
        guesses.count(2, at(0));
        for _ in 0..10 {
            guesses.count(2, at(1));
        }
        assert!(guesses.wait(&1, at(1)).is_some() && guesses.wait(&2, at(1)).is_some());
    }
}
