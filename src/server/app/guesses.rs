//! Counts per minute or hour, in bounded memory of this process: wrong guesses of client secrets
//! and of user codes, device authorizations, and letters. A right guess does not count. Beyond the
//! limit no guess is looked at, so an address that guesses learns nothing even from a right one.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

use gatepost_protocol::words::forwarded;
use gatepost_protocol::words::instant::Instant;
use gatepost_store::mutex::Mutex;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// Where guesses come from: an IPv4 address, or an IPv6 /64, because one machine can use all its
/// addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(IpAddr);

impl Source {
    pub fn of(address: IpAddr) -> Source {
        Source(forwarded::network(address))
    }

    pub fn address(self) -> IpAddr {
        self.0
    }

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

#[derive(Debug)]
pub struct Guesses<K> {
    most: u32,
    window: Duration,
    tracked: usize,
    counts: Mutex<HashMap<K, Count>>,
}

impl<K: Eq + Hash> Guesses<K> {
    /// Allows `per_minute` wrong guesses, and remembers `tracked` guessers at most.
    pub fn new(per_minute: u32, tracked: usize) -> Guesses<K> {
        Guesses::within(MINUTE, per_minute, tracked)
    }

    /// The same for an hour.
    pub fn per_hour(per_hour: u32, tracked: usize) -> Guesses<K> {
        Guesses::within(HOUR, per_hour, tracked)
    }

    fn within(window: Duration, most: u32, tracked: usize) -> Guesses<K> {
        Guesses {
            most,
            window,
            tracked,
            counts: Mutex::new(HashMap::new()),
        }
    }

    /// How long this guesser must wait before so many guesses; `None` when it may try them.
    pub fn wait(&self, guesser: &K, guesses: u32, now: Instant) -> Option<Duration> {
        let counts = self.counts.lock();
        self.wait_of(counts.get(guesser)?, guesses, now)
    }

    fn wait_of(&self, count: &Count, guesses: u32, now: Instant) -> Option<Duration> {
        let ends = count.since.plus(self.window);
        let too_many = count.failures.saturating_add(guesses) > self.most;
        (too_many && now < ends).then(|| ends.since(now))
    }

    /// Counts a guess, or says how long the guesser must wait. Of many at once no more are counted
    /// than the limit allows, so the answer must not tell that an uncounted guess was wrong.
    pub fn count(&self, guesser: K, now: Instant) -> Result<(), Duration> {
        let mut counts = self.counts.lock();
        if let Some(wait) = counts
            .get(&guesser)
            .and_then(|count| self.wait_of(count, 1, now))
        {
            return Err(wait);
        }
        if counts.len() >= self.tracked && !counts.contains_key(&guesser) {
            self.make_room(&mut counts, now);
        }
        let count = counts.entry(guesser).or_insert(Count {
            since: now,
            failures: 0,
        });
        if now >= count.since.plus(self.window) {
            *count = Count {
                since: now,
                failures: 0,
            };
        }
        count.failures = count.failures.saturating_add(1);
        Ok(())
    }

    /// Takes back one guess that was counted before it was looked at, and was not wrong.
    pub fn take_back(&self, guesser: &K) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(guesser) {
            count.failures = count.failures.saturating_sub(1);
        }
    }

    /// Forgets counters whose time is over, and if that is not enough the older half of the others.
    fn make_room(&self, counts: &mut HashMap<K, Count>, now: Instant) {
        counts.retain(|_, count| now < count.since.plus(self.window));
        if counts.len() < self.tracked {
            return;
        }
        let mut beginnings: Vec<Instant> = counts.values().map(|count| count.since).collect();
        beginnings.sort_unstable();
        let mut surplus = counts.len().saturating_sub(self.tracked / 2);
        let youngest_to_go = beginnings
            .get(surplus.saturating_sub(1))
            .copied()
            .unwrap_or(now);
        counts.retain(|_, count| {
            let goes = surplus > 0 && count.since <= youngest_to_go;
            surplus -= usize::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_protocol::words::identifiers::ClientId;

    fn at(seconds: i64) -> Instant {
        Instant::from_seconds(seconds)
    }

    #[test]
    fn of_many_at_once_no_more_are_counted_than_may_be() {
        let guesses = Guesses::new(10, 100);
        let counted = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..150)
                .map(|_| scope.spawn(|| guesses.count(1, at(0)).is_ok()))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .filter(|counted| *counted)
                .count()
        });
        assert_eq!(counted, 10);
        guesses.take_back(&1);
        assert_eq!(
            (guesses.count(1, at(1)), guesses.wait(&1, 1, at(1))),
            (Ok(()), Some(Duration::from_secs(59)))
        );
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
            guesses
                .count((client.clone(), source(number)), at(i64::from(number)))
                .unwrap();
        }
        assert_eq!(guesses.wait(&(client.clone(), source(0)), 1, at(12)), None);
        assert!(
            guesses
                .wait(&(client.clone(), source(9)), 1, at(12))
                .is_some()
        );
        assert!(
            guesses
                .wait(&(client.clone(), source(10)), 1, at(12))
                .is_some()
        );
    }

    #[test]
    fn a_guesser_that_is_counted_already_pushes_nobody_out() {
        let guesses = Guesses::new(11, 2);
        guesses.count(1, at(0)).unwrap();
        for _ in 0..11 {
            guesses.count(2, at(1)).unwrap();
        }
        assert!(guesses.wait(&1, 11, at(1)).is_some() && guesses.wait(&2, 1, at(1)).is_some());
    }
}
