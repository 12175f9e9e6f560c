//! The DPoP proofs that this process took lately (RFC 9449 §11.1), in bounded memory. Another
//! process does not know them: there a proof may be taken once more, as long as its time and its
//! nonce are good.

use std::collections::HashSet;
use std::mem;

use gatepost_protocol::token::dpop_proof::{ProofName, REMEMBERED};
use gatepost_protocol::words::instant::Instant;
use gatepost_store::mutex::Mutex;

/// Proofs are remembered in two halves. New ones go into the newer half. After [`REMEMBERED`], or
/// when it is full, it becomes the older half, and the older half of before is forgotten.
#[derive(Debug)]
pub struct SeenProofs {
    most_of_a_half: usize,
    halves: Mutex<Halves>,
}

#[derive(Debug)]
struct Halves {
    newer: HashSet<ProofName>,
    older: HashSet<ProofName>,
    turned_at: Instant,
}

impl SeenProofs {
    /// Remembers `tracked` proofs at most.
    pub fn new(tracked: usize) -> SeenProofs {
        SeenProofs {
            most_of_a_half: (tracked / 2).max(1),
            halves: Mutex::new(Halves {
                newer: HashSet::new(),
                older: HashSet::new(),
                turned_at: Instant::from_seconds(0),
            }),
        }
    }

    /// Remembers a proof. `false` where it is remembered already.
    pub fn take(&self, name: ProofName, now: Instant) -> bool {
        let mut halves = self.halves.lock();
        let is_over = now >= halves.turned_at.plus(REMEMBERED);
        if is_over || halves.newer.len() >= self.most_of_a_half {
            halves.older = mem::take(&mut halves.newer);
            halves.turned_at = now;
        }
        !halves.older.contains(&name) && halves.newer.insert(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Instant {
        Instant::from_seconds(1_800_000_000 + seconds)
    }

    #[test]
    fn a_proof_is_new_once_as_long_as_it_could_be_taken() {
        let seen = SeenProofs::new(100);
        assert!(seen.take([1; 32], at(0)));
        for seconds in [0, 1, 69, 70, 139] {
            assert!(!seen.take([1; 32], at(seconds)), "{seconds}");
        }
        assert!(seen.take([2; 32], at(140)));
        assert!(seen.take([1; 32], at(210)), "forgotten, and too old by far");
    }

    #[test]
    fn of_sixteen_that_bring_it_at_once_one_is_first() {
        let seen = SeenProofs::new(100);
        let first = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| seen.take([7; 32], at(0))))
                .collect();
            let taken = threads.into_iter().map(|thread| thread.join().unwrap());
            taken.filter(|taken| *taken).count()
        });
        assert_eq!(first, 1);
    }

    #[test]
    fn the_oldest_go_where_there_is_no_room() {
        let seen = SeenProofs::new(4);
        for number in 0..5 {
            assert!(seen.take([number; 32], at(0)));
        }
        assert!(!seen.take([3; 32], at(1)) && !seen.take([4; 32], at(1)));
        assert!(seen.take([0; 32], at(1)), "the oldest half went");
    }
}
