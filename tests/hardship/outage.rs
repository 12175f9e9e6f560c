//! The database goes away, hangs, or drops its connections: what is answered meanwhile, and how
//! soon all is well again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::flow::{authorize_path, code, redeem, signed_in, userinfo};
use crate::support::gatepost::{Gatepost, RP1};
use crate::support::http::{Answer, Browser};
use crate::support::proxy::Proxy;
use crate::support::waiting::{OverAtLast, await_that};

/// Nobody waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// All is well so soon after the database is back, however busy the machine is; it takes three
/// seconds at most where nothing else runs.
const RECOVERY: Duration = Duration::from_secs(20);
/// So many good answers in a row are no luck.
const WELL: usize = 100;
const PUBLISHED: [&str; 2] = [
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/jwks",
];

struct Scene {
    gatepost: Gatepost,
    proxy: Proxy,
    browser: Browser,
    access_token: String,
    process: u32,
}

impl Scene {
    fn set() -> Scene {
        let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
        let mut browser = signed_in(&gatepost);
        let code = code(&mut browser, &authorize_path("conf1", RP1, &[]));
        let tokens = redeem(&gatepost, &code);
        let access_token = tokens.json()["access_token"].as_str().unwrap().to_owned();
        assert_eq!(userinfo(&gatepost, &access_token).status, 200);
        let process = gatepost.server_processes()[0];
        Scene {
            gatepost,
            proxy,
            browser,
            access_token,
            process,
        }
    }

    fn browser(&self) -> Browser {
        let mut same = self.gatepost.browser();
        same.cookies = self.browser.cookies.clone();
        same
    }

    /// Asks everything once while the database is away.
    fn assert_an_outage_is_told(&self, code: &str) {
        for path in PUBLISHED {
            assert_eq!(in_time(|| self.gatepost.get(path)).status, 200, "{path}");
        }
        for answer in [
            in_time(|| redeem(&self.gatepost, code)),
            in_time(|| userinfo(&self.gatepost, &self.access_token)),
        ] {
            assert_away(&answer);
            assert_eq!(answer.json()["error"], "temporarily_unavailable");
        }
        let page = in_time(|| self.browser().get(&authorize_path("conf1", RP1, &[])));
        assert_away(&page);
        let content_type = page.header("content-type").unwrap();
        assert!(content_type.starts_with("text/html"), "{page:?}");
        let silent = authorize_path("conf1", RP1, &[("prompt", "none")]);
        let told = in_time(|| self.browser().get(&silent));
        told.assert_status(303);
        assert_eq!(told.query()["error"].as_str(), "temporarily_unavailable");
        assert_eq!(told.query()["state"], "the-state");
        assert_eq!(in_time(|| self.gatepost.get("/healthz")).status, 200);
    }

    fn await_recovery(&self) -> Duration {
        let started = Instant::now();
        // Several at once: every connection of the pool must be good again, not one by luck.
        loop {
            let is_served = |_| userinfo(&self.gatepost, &self.access_token).status == 200;
            let path = authorize_path("conf1", RP1, &[]);
            let well = (0..8).all(is_served) && self.browser().get(&path).status == 303;
            if well {
                return started.elapsed();
            }
            assert!(started.elapsed() < RECOVERY, "not well after {RECOVERY:?}");
            sleep(Duration::from_millis(50));
        }
    }

    fn assert_same_process(&self) {
        let now = self.gatepost.server_processes();
        assert_eq!(now, [self.process], "the process was replaced");
    }

    fn code(&self) -> String {
        code(&mut self.browser(), &authorize_path("conf1", RP1, &[]))
    }
}

fn assert_away(answer: &Answer) {
    answer.assert_status(503);
    let seconds = answer.header("retry-after").unwrap();
    assert!(seconds.parse::<u32>().is_ok(), "{seconds}");
    // Nothing of what lies behind is told.
    for word in ["postgres", "SQLSTATE", "127.0.0.1", "connection"] {
        answer.assert_says_not(word);
    }
}

fn in_time(ask: impl FnOnce() -> Answer) -> Answer {
    let started = Instant::now();
    let answer = ask();
    let took = started.elapsed();
    assert!(took < PATIENCE, "{took:?}: {answer:?}");
    answer
}

#[test]
fn a_database_that_is_gone_is_told_at_once_and_comes_back_by_itself() {
    let scene = Scene::set();
    let waiting = scene.code();
    scene.proxy.cut(true);
    for _ in 0..4 {
        scene.assert_an_outage_is_told(&waiting);
        sleep(Duration::from_millis(500));
    }
    scene.proxy.cut(false);
    println!("recovered after {:?}", scene.await_recovery());
    assert_eq!(redeem(&scene.gatepost, &scene.code()).status, 200);
    // What was refused with 503 was not spent.
    assert_eq!(redeem(&scene.gatepost, &waiting).status, 200);
    scene.assert_same_process();
}

#[test]
fn a_database_that_hangs_is_told_in_time_and_comes_back_by_itself() {
    let scene = Scene::set();
    let waiting = scene.code();
    scene.proxy.freeze(true);
    // A connection that was idle for longer than a second proves that it lives before it is used.
    // Whoever came before that waits with the connection they have: see the next test.
    sleep(Duration::from_millis(1_500));
    // Longer than a statement may take before a process is held to be stuck.
    let until = Instant::now() + Duration::from_secs(11);
    while Instant::now() < until {
        scene.assert_an_outage_is_told(&waiting);
    }
    scene.proxy.freeze(false);
    println!("recovered after {:?}", scene.await_recovery());
    sleep(Duration::from_secs(3));
    scene.assert_same_process();
    // What was refused with 503 was not spent.
    assert_eq!(redeem(&scene.gatepost, &waiting).status, 200);
}

#[test]
fn under_load_a_database_that_hangs_keeps_nobody_waiting() {
    let scene = Scene::set();
    let stop = AtomicBool::new(false);
    let (slow, answers) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let started = Instant::now();
                    let answer = userinfo(&scene.gatepost, &scene.access_token);
                    assert!(matches!(answer.status, 200 | 503), "{}", answer.text());
                    answers.lock().unwrap().push(answer.status);
                    // The rest is for a busy machine.
                    if started.elapsed() > PATIENCE + Duration::from_secs(2) {
                        slow.lock().unwrap().push(started.elapsed());
                    }
                }
            });
        }
        let _over_at_last = OverAtLast(&stop);
        let well = || {
            let answers = answers.lock().unwrap();
            let served = answers.iter().rev().take_while(|status| **status == 200);
            served.count()
        };
        await_that("the load is on", RECOVERY, || well() >= WELL);
        scene.proxy.freeze(true);
        let before = answers.lock().unwrap().len();
        sleep(Duration::from_secs(1));
        for path in PUBLISHED.iter().cycle().take(20) {
            assert_eq!(in_time(|| scene.gatepost.get(path)).status, 200);
            sleep(Duration::from_millis(250));
        }
        await_that("somebody is told", RECOVERY, || {
            answers.lock().unwrap()[before..].contains(&503)
        });
        scene.proxy.freeze(false);
        await_that("all is well again", RECOVERY, || well() >= WELL);
    });
    println!("recovered after {:?}", scene.await_recovery());
    let slow = slow.into_inner().unwrap();
    assert!(slow.is_empty(), "somebody waited for the frozen server");
    scene.assert_same_process();
}

/// What the client was told of each redemption, and what the database says, agree.
#[test]
fn no_acknowledged_redemption_is_lost_when_connections_are_terminated_under_load() {
    let scene = Scene::set();
    let database = &scene.gatepost.database;
    let own = &database.schema;
    let terminate = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{own}' AND pid <> pg_backend_pid()"
    );
    let stop = AtomicBool::new(false);
    let ledger = Mutex::new(Vec::<(String, Answer)>::new());
    let refused = Mutex::new(Vec::<String>::new());
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut browser = scene.browser();
                while !stop.load(Ordering::SeqCst) {
                    let answer = in_time(|| browser.get(&authorize_path("conf1", RP1, &[])));
                    if answer.status == 503 {
                        continue;
                    }
                    let code = answer.query()["code"].clone();
                    let answer = in_time(|| redeem(&scene.gatepost, &code));
                    match answer.status {
                        200 => ledger.lock().unwrap().push((code, answer)),
                        503 => refused.lock().unwrap().push(code),
                        status => panic!("{status}: {}", answer.text()),
                    }
                }
            });
        }
        let _over_at_last = OverAtLast(&stop);
        for _ in 0..12 {
            sleep(Duration::from_millis(250));
            database.client().batch_execute(&terminate).unwrap();
        }
        await_that("many are acknowledged", RECOVERY, || {
            ledger.lock().unwrap().len() > 20
        });
    });
    println!("recovered after {:?}", scene.await_recovery());
    scene.assert_same_process();
    let ledger = ledger.into_inner().unwrap();
    let refused = refused.into_inner().unwrap();
    let (acknowledged, refused) = (ledger.len(), refused.len());
    println!("{acknowledged} redemptions acknowledged, {refused} answered 503");
    let standing = "SELECT count(*) FROM grants WHERE revoked_at IS NULL";
    let standing: i64 = database.value(standing, &[]);
    let standing = usize::try_from(standing).unwrap();
    // Two of the scene itself, and what was committed although its answer was lost with the
    // connection.
    let expected = acknowledged + 1..=acknowledged + 1 + refused;
    assert!(expected.contains(&standing), "{standing}");
    for (code, answer) in &ledger {
        let token = answer.json()["access_token"].as_str().unwrap().to_owned();
        userinfo(&scene.gatepost, &token).assert_status_for("acknowledged, and lost", 200);
        let again = redeem(&scene.gatepost, code);
        again.assert_status_for("spent", 400);
        assert_eq!(again.json()["error"], "invalid_grant", "spent");
    }
}
