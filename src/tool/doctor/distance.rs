//! How far away the database is, and what no longer fits into the time of a request then.

use std::time::Duration;

use gatepost_registration::finding::Finding;
use gatepost_registration::{broken, weak};
use gatepost_store::worker::ALLOWANCE;
use gatepost_store::{LEAST_FOR_A_WRITE, PROOF_OF_LIFE};

/// From here on the way takes longer than most of what is done at its end.
const FAR: Duration = Duration::from_millis(50);
/// Round trips of a password grant on a connection that has its statements prepared.
const TRIPS: u32 = 4;
/// The same for a client's first grant, on a connection that was just opened: it reads the client
/// in two trips, prepares three statements, and looks up the type `audit_events[]` in five trips.
const TRIPS_ON_A_NEW_CONNECTION: u32 = 14;

pub fn judged(round_trip: Duration) -> Finding {
    let taken = format!("database: a round trip takes {} ms", round_trip.as_millis());
    if round_trip < FAR {
        return Finding::fine(taken);
    }
    if round_trip >= PROOF_OF_LIFE {
        let limit = PROOF_OF_LIFE.as_millis();
        return broken!(
            "{taken}, and from {limit} ms an idle connection counts as dead: run Gatepost nearer \
             to it"
        );
    }
    let waiting = (round_trip * TRIPS).as_millis();
    let waiting_first = (round_trip * TRIPS_ON_A_NEW_CONNECTION).as_millis();
    let slow = format!(
        "{taken}: a password grant waits {waiting} ms, on a new connection {waiting_first} ms"
    );
    // The last trip is the write.
    let too_far = ALLOWANCE.saturating_sub(LEAST_FOR_A_WRITE) / (TRIPS_ON_A_NEW_CONNECTION - 1);
    if round_trip < too_far {
        return Finding::weak(slow);
    }
    weak!(
        "{slow}, which from {} ms on cannot fit into the {} s of a request ({} s of them are kept \
         for the write): run Gatepost nearer to it",
        too_far.as_millis(),
        ALLOWANCE.as_secs_f32(),
        LEAST_FOR_A_WRITE.as_secs_f32()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_further_the_database_the_less_fits() {
        let slow = "database: a round trip takes 50 ms: a password grant waits 200 ms, on a new connection 700 ms";
        let too_far = "database: a round trip takes 231 ms: a password grant waits 924 ms, on a new \
                       connection 3234 ms, which from 230 ms on cannot fit into the 4.5 s of a request \
                       (1.5 s of them are kept for the write): run Gatepost nearer to it";
        let dead = "database: a round trip takes 500 ms, and from 500 ms an idle connection counts as \
                    dead: run Gatepost nearer to it";
        for (micros, expected) in [
            (400, Finding::fine("database: a round trip takes 0 ms")),
            (49_999, Finding::fine("database: a round trip takes 49 ms")),
            (50_000, Finding::weak(slow)),
            (231_000, Finding::weak(too_far)),
            (500_000, Finding::broken(dead)),
        ] {
            assert_eq!(judged(Duration::from_micros(micros)), expected);
        }
        let just_fits = judged(Duration::from_micros(230_000));
        assert!(
            just_fits.text.ends_with("on a new connection 3220 ms"),
            "{just_fits:?}"
        );
        assert!(
            judged(Duration::from_micros(499_999))
                .text
                .contains("cannot fit")
        );
    }
}
