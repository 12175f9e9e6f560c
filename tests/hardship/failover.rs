//! A primary freezes under load and another takes its place: what hangs on the old one keeps nobody
//! from the new one.

use std::sync::Mutex;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use crate::support::flow::{authorize_path, sign_in, signed_in, userinfo};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1};
use crate::support::http::Answer;
use crate::support::offline::{CONF1, access};

/// After the freeze.
const PROMOTED_AFTER: Duration = Duration::from_secs(2);
const SERVED_AFTER: Duration = Duration::from_secs(6);
const WATCHED_FOR: Duration = Duration::from_secs(16);
const BEFORE: Duration = Duration::from_secs(1);

/// Longer than what is at hand with the head of a request, so that it goes through the lane of
/// bodies.
const LONG: usize = 3_000;

struct Told {
    /// Since the callers began.
    began: Duration,
    status: u16,
}

#[test]
fn nobody_is_turned_away_six_seconds_after_a_primary_froze_and_another_took_its_place() {
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    let mut browser = signed_in(&gatepost);
    let tokens = CONF1.tokens(&gatepost, &mut browser, "openid profile");
    let bearer = format!("Bearer {}", access(&tokens));
    let told = Mutex::new(Vec::new());
    let begun = Instant::now();
    let is_over = || begun.elapsed() > BEFORE + WATCHED_FOR;
    let ask = |request: &mut dyn FnMut() -> Answer| {
        let began = begun.elapsed();
        let answer = request();
        told.lock().unwrap().push(Told {
            began,
            status: answer.status,
        });
        sleep(Duration::from_millis(40));
        answer
    };
    let frozen_at = scope(|scope| {
        for _ in 0..14 {
            scope.spawn(|| {
                while !is_over() {
                    ask(&mut || userinfo(&gatepost, access(&tokens)));
                }
            });
        }
        for _ in 0..6 {
            scope.spawn(|| {
                let long = "x".repeat(LONG);
                while !is_over() {
                    let headers = [("Authorization", bearer.as_str())];
                    ask(&mut || {
                        gatepost.post("/connect/userinfo", &headers, &[("unknown", long.as_str())])
                    });
                }
            });
        }
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over() {
                    let mut browser = gatepost.browser();
                    let page = ask(&mut || browser.visit(&authorize_path("conf1", RP1, &[])));
                    if page.status == 200 {
                        ask(&mut || sign_in(&mut browser, &page, "alice", ALICE_PASSWORD));
                        sleep(Duration::from_millis(400));
                    }
                }
            });
        }
        sleep(BEFORE);
        let frozen_at = begun.elapsed();
        proxy.freeze(true);
        sleep(PROMOTED_AFTER);
        proxy.fail_over(false);
        frozen_at
    });
    proxy.fail_over(true);
    let told = told.into_inner().unwrap();
    let refused: Vec<Duration> = told
        .iter()
        .filter(|told| told.status == 503)
        .map(|told| told.began)
        .collect();
    let last = refused
        .iter()
        .max()
        .and_then(|began| began.checked_sub(frozen_at));
    println!(
        "{} asked, {} refused, the last of them began {last:?} after the freeze",
        told.len(),
        refused.len()
    );
    assert!(
        told.iter()
            .all(|told| matches!(told.status, 200 | 303 | 503)),
        "an answer of another kind"
    );
    assert!(last.is_some(), "the freeze was felt");
    let late = refused
        .iter()
        .filter(|began| **began > frozen_at + SERVED_AFTER)
        .count();
    assert_eq!(
        late, 0,
        "refused later than {SERVED_AFTER:?}: the last began at {last:?}"
    );
}
