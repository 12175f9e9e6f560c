//! What password hashes take of the machine, told by the memory that each takes while it is made:
//! no more of it than there are cores, one core less beside tokens, no more than is meant for all
//! together, and all of it is given back.

use std::thread;
use std::time::Duration;

use crate::anonymous::memory_kib;
use crate::support::flow::{authorize_path, sign_in};
use crate::support::gatepost::{Gatepost, RP1, document};
use crate::support::waiting::{SOON, await_that};

/// Of one hash.
const HASH_KIB: u64 = 64 * 1_024;
/// Of all that are made at once.
const TOGETHER_KIB: u64 = 256 * 1_024;

fn start(hash_kib: u64, passes: u64) -> Gatepost {
    let settings = [
        ("GATEPOST_ARGON2_MEMORY_KIB", hash_kib.to_string()),
        ("GATEPOST_ARGON2_PASSES", passes.to_string()),
        ("GATEPOST_DATABASE_CONNECTIONS", String::from("8")),
    ];
    Gatepost::start_with(
        &document(),
        &settings
            .each_ref()
            .map(|(name, value)| (*name, value.as_str())),
    )
}

fn attempt(gatepost: &Gatepost) {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    assert_eq!(sign_in(&mut browser, &page, "nobody", "wrong").status, 200);
}

#[test]
fn the_memory_of_hashes_is_given_back_within_a_moment_of_the_last_one() {
    let gatepost = start(HASH_KIB, 4);
    let before = memory_kib(&gatepost, "VmRSS:");
    await_that("a hash takes memory", SOON, || {
        attempt(&gatepost);
        memory_kib(&gatepost, "VmRSS:") > before + HASH_KIB / 2
    });
    let moment = Duration::from_secs(5);
    await_that("it is given back", moment, || {
        memory_kib(&gatepost, "VmRSS:") < before + HASH_KIB / 2
    });
}

#[test]
fn hashes_leave_a_core_to_tokens_for_as_long_as_more_of_them_are_asked_for_than_people_sign_in() {
    let cores = thread::available_parallelism().unwrap().get() as u64;
    let gatepost = start(HASH_KIB, 4);
    let most = cores.min(TOGETHER_KIB / HASH_KIB);
    let before = memory_kib(&gatepost, "VmRSS:");
    let all_at_once = || {
        thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(|| attempt(&gatepost)))));
        memory_kib(&gatepost, "VmHWM:").saturating_sub(before + HASH_KIB / 2) / HASH_KIB + 1
    };
    for _ in 0..cores {
        let form = [("grant_type", "client_credentials")];
        gatepost.token("conf1", &form).assert_status(200);
    }
    assert_eq!(all_at_once(), most.min((cores - 1).max(1)));
    assert_eq!(all_at_once(), most);
}

#[test]
fn hashes_wait_for_each_other_where_two_would_take_more_memory_than_is_meant_for_all() {
    let hash_kib = TOGETHER_KIB / 2 + 1_024;
    // Short ones: the last of them waits for two, and on a busy machine no longer than it may.
    let gatepost = start(hash_kib, 1);
    let before = memory_kib(&gatepost, "VmRSS:");
    thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(|| attempt(&gatepost)))));
    let most = memory_kib(&gatepost, "VmHWM:");
    assert!(
        most > before + hash_kib / 2 && most < before + hash_kib * 3 / 2,
        "{before} KiB before, {most} KiB at most"
    );
}
