//! What password hashes take of the machine, told by the memory that each takes while it is made: all of it is given
//! back.

use std::time::Duration;

use crate::anonymous::memory_kib;
use crate::support::flow::{authorize_path, sign_in};
use crate::support::gatepost::{Gatepost, RP1, document};
use crate::support::waiting::{SOON, await_that};

/// Of one hash.
const HASH_KIB: u64 = 64 * 1_024;

fn start() -> Gatepost {
    let settings =
        [("GATEPOST_ARGON2_MEMORY_KIB", HASH_KIB.to_string()), ("GATEPOST_ARGON2_PASSES", String::from("4"))];
    Gatepost::start_with(&document(), &settings.each_ref().map(|(name, value)| (*name, value.as_str())))
}

fn attempt(gatepost: &Gatepost) {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    assert_eq!(sign_in(&mut browser, &page, "nobody", "wrong").status, 200);
}

#[test]
fn the_memory_of_hashes_is_given_back_within_a_moment_of_the_last_one() {
    let gatepost = start();
    let before = memory_kib(&gatepost, "VmRSS:");
    await_that("a hash takes memory", SOON, || {
        attempt(&gatepost);
        memory_kib(&gatepost, "VmRSS:") > before + HASH_KIB / 2
    });
    let moment = Duration::from_secs(5);
    await_that("it is given back", moment, || memory_kib(&gatepost, "VmRSS:") < before + HASH_KIB / 2);
}
