//! A storm of sign-ins from many addresses, and the people who want to sign in all the same.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::flow::{authorize_path, sign_in};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::http::Answer;
use crate::support::waiting::{
    OverAtLast, SOON, all_at_once, await_that, threads_of, until_served,
};

const PEOPLE: usize = 30;
const STRANGERS: usize = 32;
/// Of `ALICE_PASSWORD`.
const BCRYPT: &str = "$2b$12$abcdefghijklmnopqrstuu0sDWleciW5uGBGYwxpcgAsh9WK4bWNy";

/// A hash takes so long that strangers wait for one.
fn settings() -> [(&'static str, &'static str); 3] {
    [
        ("GATEPOST_ARGON2_MEMORY_KIB", "19456"),
        ("GATEPOST_ARGON2_PASSES", "2"),
        ("GATEPOST_DATABASE_CONNECTIONS", "8"),
    ]
}

fn people() -> Value {
    let mut document = document();
    let person =
        |number: usize| json!({"username": format!("person{number}"), "password": ALICE_PASSWORD});
    document["users"]
        .as_array_mut()
        .unwrap()
        .extend((0..PEOPLE).map(person));
    document
}

/// One storm at a time: each takes all the processors there are.
fn alone() -> MutexGuard<'static, ()> {
    static STORM: Mutex<()> = Mutex::new(());
    STORM.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From an address that nobody had before.
fn new_address() -> String {
    static USED: AtomicU32 = AtomicU32::new(0);
    let [a, b, c, _] = (USED.fetch_add(1, Ordering::Relaxed) << 8).to_be_bytes();
    format!("10.{a}.{b}.{c}")
}

/// Wrong passwords for names that nobody has, each from an address of its own, one after the other
/// until told to stop. Counts the answers.
fn storm(
    gatepost: &Gatepost,
    cookie: Option<&(String, String)>,
    is_over: &AtomicBool,
    answers: &AtomicU32,
) {
    let mut browser = gatepost.browser_at(&new_address());
    browser.cookies.extend(cookie.cloned());
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    while !is_over.load(Ordering::Relaxed) {
        browser.headers = vec![(String::from("X-Forwarded-For"), new_address())];
        let answer = sign_in(&mut browser, &page, &new_address(), "wrong");
        assert!([200, 503].contains(&answer.status), "{}", answer.text());
        pause_if_turned_away(answer.status);
        answers.fetch_add(1, Ordering::Relaxed);
    }
}

/// The places in line stay full, and the machine has time for those who are in it.
fn pause_if_turned_away(status: u16) {
    if status == 503 {
        thread::sleep(Duration::from_millis(20));
    }
}

/// Whether so many are served, in one of three storms: a machine that is busy with other things may
/// be too slow for one, but whom the product wrongs is wronged in each.
fn are_served(least: usize, mut storm: impl FnMut() -> usize) -> bool {
    (0..3).any(|_| {
        let served = storm();
        println!("{served} served of {least} at least");
        served >= least
    })
}

/// The cookie of a browser by which it is known, once its person signed in.
fn known(gatepost: &Gatepost, username: &str) -> (String, String) {
    let mut browser = gatepost.browser_at(&new_address());
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(&mut browser, &page, username, ALICE_PASSWORD).assert_status(303);
    browser
        .cookies
        .into_iter()
        .find(|(name, _)| name.starts_with("gatepost-browser-"))
        .unwrap()
}

/// How many of the people sign in at the first try, three at a time, while strangers storm.
fn served(
    gatepost: &Gatepost,
    strangers_cookie: Option<&(String, String)>,
    cookies: &[(String, String)],
) -> usize {
    let (is_over, answers) = (AtomicBool::new(false), AtomicU32::new(0));
    let (next, served) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        let _over_at_last = OverAtLast(&is_over);
        for _ in 0..STRANGERS {
            scope.spawn(|| storm(gatepost, strangers_cookie, &is_over, &answers));
        }
        await_that("the storm", SOON, || answers.load(Ordering::Relaxed) > 64);
        let people: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed) as usize;
                        if number >= PEOPLE {
                            return;
                        }
                        let mut browser = gatepost.browser_at(&new_address());
                        browser.cookies.extend(cookies.get(number).cloned());
                        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
                        let answer = sign_in(
                            &mut browser,
                            &page,
                            &format!("person{number}"),
                            ALICE_PASSWORD,
                        );
                        assert!([303, 503].contains(&answer.status), "{}", answer.text());
                        served.fetch_add(u32::from(answer.status == 303), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        people.into_iter().for_each(|one| one.join().unwrap());
    });
    served.into_inner() as usize
}

#[test]
fn a_storm_of_strangers_turns_away_at_most_one_of_thirty_whose_browsers_signed_in_before() {
    let _alone = alone();
    let gatepost = Gatepost::start_with(&people(), &settings());
    let cookies: Vec<_> = (0..PEOPLE)
        .map(|number| known(&gatepost, &format!("person{number}")))
        .collect();
    let stolen = known(&gatepost, "alice");
    for strangers_cookie in [Some(&stolen), None] {
        let storm = || served(&gatepost, strangers_cookie, &cookies);
        let is_with = strangers_cookie.is_some();
        let what = format!("strangers have a cookie of somebody else: {is_with}");
        assert!(are_served(PEOPLE - 1, storm), "{what}");
    }
}

#[test]
fn of_people_whose_browsers_are_new_a_storm_of_strangers_lets_at_least_every_second_sign_in() {
    let _alone = alone();
    let gatepost = Gatepost::start_with(&people(), &settings());
    let stolen = known(&gatepost, "alice");
    for strangers_cookie in [None, Some(&stolen)] {
        let storm = || served(&gatepost, strangers_cookie, &[]);
        let is_with = strangers_cookie.is_some();
        let what = format!("strangers have a cookie of somebody else: {is_with}");
        assert!(are_served(PEOPLE / 2, storm), "{what}");
    }
}

/// A name that nobody has costs a hash of bcrypt, too, as long as most people have one.
#[test]
fn a_storm_at_hashes_of_bcrypt_turns_away_few_whose_browsers_signed_in_before() {
    let _alone = alone();
    let mut moved = people();
    let users = moved["users"].as_array_mut().unwrap();
    users.extend(
        (0..100)
            .map(|number| json!({"username": format!("moved{number}"), "password_hash": BCRYPT})),
    );
    let gatepost = Gatepost::start_with(&moved, &settings());
    let cookies: Vec<_> = (0..PEOPLE)
        .map(|number| known(&gatepost, &format!("person{number}")))
        .collect();
    assert!(are_served(PEOPLE - 3, || served(&gatepost, None, &cookies)));
}

/// More at once than may wait, each hash taking long.
#[test]
fn whoever_is_turned_away_gets_the_sign_in_page_again_with_the_name_and_when_to_come_back() {
    let _alone = alone();
    let settings = [
        ("GATEPOST_ARGON2_MEMORY_KIB", "65536"),
        ("GATEPOST_ARGON2_PASSES", "10"),
    ];
    let gatepost = Gatepost::start_with(&document(), &settings);
    let mut browser = gatepost.browser();
    let page = until_served(|| browser.visit(&authorize_path("conf1", RP1, &[])));
    let turned_away: Mutex<Vec<(String, Answer)>> = Mutex::default();
    thread::scope(|scope| {
        for number in 0..90 {
            let (mut browser, page, turned_away) = (browser.clone(), &page, &turned_away);
            scope.spawn(move || {
                browser
                    .headers
                    .push((String::from("X-Forwarded-For"), new_address()));
                let name = format!("somebody-{number}");
                let answer = sign_in(&mut browser, page, &name, "wrong");
                assert!([200, 503].contains(&answer.status), "{}", answer.text());
                if answer.status == 503 {
                    turned_away.lock().unwrap().push((name, answer));
                }
            });
        }
    });
    let turned_away = turned_away.into_inner().unwrap();
    assert!(!turned_away.is_empty());
    for (name, answer) in &turned_away {
        answer.assert_says("Very many people are signing in at this moment");
        assert_eq!(
            answer.attribute("id=\"username\"", "value").as_ref(),
            Some(name)
        );
        assert_eq!(answer.header("retry-after"), Some("2"));
    }
    // The page works, as the first one did.
    let (name, again) = &turned_away[0];
    assert_eq!(sign_in(&mut browser, again, name, "wrong").status, 200);
    assert!(
        gatepost.log().contains("reason=\"GP1901\""),
        "{}",
        gatepost.log()
    );
}

#[test]
fn the_cookie_of_a_known_browser_says_nothing_and_goes_with_what_the_build_before_gave_out() {
    let gatepost = Gatepost::start();
    let [(name, first), (_, second)] = [known(&gatepost, "alice"), known(&gatepost, "alice")];
    let (value, seal) = first.split_once('.').unwrap();
    assert_eq!((value.len(), first.len()), (22, second.len()));
    // The same person twice.
    assert_ne!(seal, second.split_once('.').unwrap().1);
    // The value alone, as the build before gave it, ties a form to the browser; so does one with a
    // seal that is none.
    for cookie in [
        value.to_owned(),
        format!("{value}."),
        format!("{value}.{}", "A".repeat(90)),
        first.clone(),
    ] {
        let mut browser = gatepost.browser_at(&new_address());
        browser.cookies.insert(name.clone(), cookie.clone());
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        assert_eq!(browser.cookies[&name], cookie, "it is kept");
        sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).assert_status_for(&cookie, 303);
        // A form that was drawn before is tied to the new value no longer: it is nobody else's turn.
        let stale = sign_in(&mut browser, &page, "bob", BOB_PASSWORD);
        stale.assert_says("no longer up to date");
    }
}

#[test]
fn passwords_that_one_client_brings_take_no_turns_from_another() {
    let _alone = alone();
    let mut document = people();
    for client_id in ["first", "second"] {
        document["clients"].as_array_mut().unwrap().push(json!({
            "client_id": client_id, "client_name": client_id, "grant_types": ["password"], "response_types": [],
            "scope": "openid", "token_endpoint_auth_method": "none"
        }));
    }
    let gatepost = Gatepost::start_with(&document, &settings());
    let ask = |client_id: &str, username: &str, password: &str| {
        let form = [
            ("grant_type", "password"),
            ("client_id", client_id),
            ("username", username),
            ("password", password),
            ("scope", "openid"),
        ];
        gatepost
            .post("/connect/token", &[("X-Forwarded-For", "192.0.2.1")], &form)
            .status
    };
    let (is_over, answers) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let _over_at_last = OverAtLast(&is_over);
        for _ in 0..2 * STRANGERS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let status = ask("first", &new_address(), "wrong");
                    assert!([400, 503].contains(&status), "{status}");
                    pause_if_turned_away(status);
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        await_that("the storm", SOON, || answers.load(Ordering::Relaxed) > 64);
        let are_served = are_served(9, || {
            (0..10)
                .filter(|number| ask("second", &format!("person{number}"), ALICE_PASSWORD) == 200)
                .count()
        });
        assert!(are_served, "the first client has so many in line");
    });
}

/// Sixteen workers, eight threads that read bodies, and what keeps the house.
#[test]
fn a_thread_that_waits_is_started_when_somebody_waits_and_ends_with_that_request() {
    const IDLE: usize = 90;
    let _alone = alone();
    let [memory, passes, connections] = settings();
    let workers = ("GATEPOST_WORKERS", "16");
    let gatepost = Gatepost::start_with(&document(), &[memory, passes, connections, workers]);
    let processes = gatepost.server_processes();
    let threads = || -> usize {
        let counts = processes.iter().map(|pid| threads_of(*pid, "comm").len());
        counts.sum()
    };
    println!("idle: {}", threads());
    assert!(threads() <= IDLE);
    let slow = all_at_once(60, |_| {
        let mut body = TcpStream::connect(("127.0.0.1", gatepost.port)).unwrap();
        let source = new_address();
        write!(
            body,
            "POST /connect/token HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {source}\r\n\
             Content-Length: 2000\r\n\r\ngrant_type="
        )
        .unwrap();
        body
    });
    let (is_over, most) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let _over_at_last = OverAtLast(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(threads(), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(1));
            }
        });
        all_at_once(16, |_| {
            let mut browser = gatepost.browser_at(&new_address());
            let page = browser.visit(&authorize_path("conf1", RP1, &[]));
            sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).assert_status(303);
        });
    });
    let most = most.into_inner();
    println!("at most: {most}");
    assert!((IDLE..=170).contains(&most), "{most}");
    await_that("whoever waited has ended", SOON, || {
        threads() <= IDLE + slow.len()
    });
}
