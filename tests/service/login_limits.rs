//! Wrong passwords are counted, nobody is locked out; hashes follow the settings.

use crate::support::claims::Says;
use crate::support::flow::{authorize_path, code, sign_in, signed_in};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};
use crate::support::waiting::{SOON, await_that, until_served};

fn attempt(browser: &mut Browser, username: &str, password: &str) -> Answer {
    browser.cookies.clear();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    // Turned away before there is a form.
    if page.status == 503 {
        return page;
    }
    sign_in(browser, &page, username, password)
}

fn fail(browser: &mut Browser, username: &str, times: usize) {
    for _ in 0..times {
        attempt(browser, username, "wrong").assert_status_for(username, 200);
    }
}

fn is_told_to_wait(answer: &Answer) {
    answer.assert_stays(429);
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=600).contains(&seconds), "{seconds}");
    answer.assert_says("too many failed attempts");
    assert!(
        !answer
            .headers_named("set-cookie")
            .iter()
            .any(|cookie| cookie.contains("session"))
    );
}

#[test]
fn ten_wrong_passwords_make_their_source_wait_and_nobody_else() {
    let mut gatepost = Gatepost::start();
    let mut alice = signed_in(&gatepost);
    let mut attacker = gatepost.browser_at("192.0.2.7");
    fail(&mut attacker, "alice", 10);
    is_told_to_wait(&attempt(&mut attacker, "alice", "wrong"));
    is_told_to_wait(&attempt(&mut attacker, "ALICE", ALICE_PASSWORD));
    is_told_to_wait(&attempt(&mut attacker, "\u{ff41}lice", ALICE_PASSWORD));
    // What stands left of the last untrusted address is the attacker's own invention.
    is_told_to_wait(&attempt(
        &mut gatepost.browser_at("203.0.113.9, 192.0.2.7"),
        "alice",
        ALICE_PASSWORD,
    ));
    is_told_to_wait(&attempt(
        &mut gatepost.browser_at("x, 192.0.2.7, 127.0.0.1"),
        "alice",
        ALICE_PASSWORD,
    ));
    // An account that does not exist is treated like one that does.
    fail(&mut attacker, "nobody", 10);
    is_told_to_wait(&attempt(&mut attacker, "nobody", "wrong"));
    // Neither the other account, nor another source, nor the live session is concerned.
    assert_eq!(attempt(&mut attacker, "bob", BOB_PASSWORD).status, 303);
    attempt(
        &mut gatepost.browser_at("192.0.2.8"),
        "alice",
        ALICE_PASSWORD,
    )
    .assert_status(303);
    code(
        &mut alice,
        &authorize_path("conf1", RP1, &[("prompt", "none")]),
    );

    gatepost.stop();
    gatepost.serve();
    is_told_to_wait(&attempt(&mut attacker, "alice", ALICE_PASSWORD));
    attempt(
        &mut gatepost.browser_at("192.0.2.9"),
        "alice",
        ALICE_PASSWORD,
    )
    .assert_status(303);
}

#[test]
fn the_wait_ends_with_its_window() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let mut browser = gatepost.browser_at("192.0.2.7");
    fail(&mut browser, "alice", 10);
    is_told_to_wait(&attempt(&mut browser, "alice", ALICE_PASSWORD));
    gatepost.travel(600);
    assert_eq!(attempt(&mut browser, "alice", ALICE_PASSWORD).status, 303);
}

#[test]
fn the_right_password_clears_the_count() {
    let gatepost = Gatepost::start();
    let mut browser = gatepost.browser_at("192.0.2.7");
    for _ in 0..2 {
        fail(&mut browser, "alice", 9);
        assert_eq!(attempt(&mut browser, "alice", ALICE_PASSWORD).status, 303);
    }
}

#[test]
fn a_source_that_tries_many_accounts_waits_for_all_of_them() {
    let settings = [("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_SOURCE", "5")];
    let gatepost = Gatepost::start_with(&document(), &settings);
    let mut sprayer = gatepost.browser_at("2001:db8:1:2::1");
    for username in ["alice", "bob", "carol", "dave", "eve"] {
        fail(&mut sprayer, username, 1);
    }
    is_told_to_wait(&attempt(&mut sprayer, "alice", ALICE_PASSWORD));
    // All addresses of one IPv6 network are one source.
    is_told_to_wait(&attempt(
        &mut gatepost.browser_at("2001:db8:1:2:ffff::9"),
        "alice",
        ALICE_PASSWORD,
    ));
    attempt(
        &mut gatepost.browser_at("2001:db8:1:3::1"),
        "alice",
        ALICE_PASSWORD,
    )
    .assert_status(303);
}

#[test]
fn an_account_under_attack_from_everywhere_delays_new_sources_only() {
    let settings = [
        ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_HOUR", "3"),
        ("GATEPOST_LIMIT_PASSWORD_NEW_SOURCE_WAIT", "1"),
    ];
    let gatepost = Gatepost::start_with(&document(), &settings);
    for host in 1..=4 {
        fail(
            &mut gatepost.browser_at(&format!("192.0.2.{host}")),
            "alice",
            1,
        );
    }
    let mut alice = gatepost.browser_at("198.51.100.1");
    is_told_to_wait(&attempt(&mut alice, "alice", ALICE_PASSWORD));
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    assert_eq!(attempt(&mut alice, "alice", ALICE_PASSWORD).status, 303);
}

#[test]
fn forwarded_addresses_that_are_none_are_not_believed() {
    let gatepost = Gatepost::start();
    let long = "1".repeat(8_000);
    for address in [
        "a",
        "",
        ",",
        "unknown",
        "::ffff:192.0.2.1",
        "192.0.2.1:443",
        "[2001:db8::1]:443",
        "999.1.1.1",
        &long,
    ] {
        let mut browser = gatepost.browser_at(address);
        attempt(&mut browser, "alice", ALICE_PASSWORD).assert_status_for(address, 303);
    }
    let log = gatepost.log();
    log.assert_says("source=192.0.2.1");
    log.assert_says("source=2001:db8::1");
    log.assert_says_not("source=a");
}

#[test]
fn a_hash_follows_the_settings_at_the_next_sign_in() {
    let mut gatepost = Gatepost::start();
    let stored = |gatepost: &Gatepost| -> String {
        let query = "SELECT password_hash FROM users WHERE username = 'alice'";
        gatepost.database.value(query, &[])
    };
    let first = stored(&gatepost);
    assert!(first.contains("m=7168,t=1,p=1"), "{first}");
    attempt(&mut gatepost.browser(), "alice", ALICE_PASSWORD).assert_status(303);
    assert_eq!(stored(&gatepost), first);

    gatepost.stop();
    gatepost.set("GATEPOST_ARGON2_PASSES", "2");
    gatepost.serve();
    attempt(&mut gatepost.browser(), "alice", "wrong").assert_status(200);
    assert_eq!(stored(&gatepost), first);
    let mut browser = gatepost.browser();
    assert_eq!(attempt(&mut browser, "alice", ALICE_PASSWORD).status, 303);
    let second = stored(&gatepost);
    assert!(second.contains("m=7168,t=2,p=1"), "{second}");
    // It is no change of the password: the session lives.
    code(
        &mut browser,
        &authorize_path("conf1", RP1, &[("prompt", "none")]),
    );
    attempt(&mut gatepost.browser(), "alice", ALICE_PASSWORD).assert_status(303);
}

#[test]
fn passwords_and_typed_names_stay_out_of_the_log() {
    let gatepost = Gatepost::start();
    let mut browser = gatepost.browser();
    attempt(&mut browser, "CanaryName", "CanaryPassword");
    attempt(&mut browser, "alice", ALICE_PASSWORD);
    attempt(
        &mut browser,
        "CanaryName\n\u{1b}[31mINFO forged",
        "CanaryPassword",
    );
    let log = gatepost.log();
    for secret in [
        "Canary",
        ALICE_PASSWORD,
        "gpc_",
        "form_token",
        "the-state",
        "the-nonce",
        "forged",
    ] {
        assert!(!log.contains(secret), "{secret}");
    }
    let events = gatepost
        .database
        .client()
        .query("SELECT row_to_json(a)::text FROM audit_events a", &[])
        .unwrap();
    assert!(events.len() >= 3);
    for event in events {
        let event: String = event.get(0);
        event.assert_says_not("Canary");
        event.assert_says_not("horse");
    }
}

#[test]
fn guessing_in_parallel_is_no_way_around_the_limit() {
    let gatepost = Gatepost::start();
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                let mut browser = gatepost.browser_at("192.0.2.9");
                // Whom a busy server turned away has not guessed.
                until_served(|| attempt(&mut browser, "alice", "wrong"))
            });
        }
    });
    let tried = "SELECT max(failures) FROM sign_in_failures";
    let tried: i32 = gatepost.database.value(tried, &[]);
    let hashers = i32::try_from(std::thread::available_parallelism().unwrap().get()).unwrap();
    assert!((10..10 + hashers).contains(&tried), "{tried}");
}

#[test]
fn counters_beyond_what_is_tracked_are_removed_at_once_and_not_a_few_each_minute() {
    let mut gatepost = Gatepost::prepare(&[("GATEPOST_LIMIT_TRACKED", "1000")]);
    gatepost.apply(&document());
    gatepost.database.run(
        "INSERT INTO sign_in_failures
         SELECT sha256(n::text::bytea), 1, clock_timestamp(), clock_timestamp() + n * interval '1 minute'
         FROM generate_series(-3000, 5000) AS n",
    );
    gatepost.serve();
    await_that("they are removed", SOON, || {
        gatepost.database.count("sign_in_failures") <= 1_000
    });
}
