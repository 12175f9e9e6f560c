//! A database that takes connections and answers none, is slow, far away, or cannot write: nobody
//! waits for long, and what nobody waits for any more is not done.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::serving::{kill, send_signal};
use crate::support::claims::Says;
use crate::support::cluster::{Cluster, Standby};
use crate::support::flow::{authorize_path, code, redeem, sign_in, signed_in, userinfo};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser, Connection};
use crate::support::offline::{CONF1, access};
use crate::support::phone::Phone;
use crate::support::postgres::TestDatabase;
use crate::support::tables::rows_of;
use crate::support::waiting::{OverAtLast, SOON, await_that, until_served};

/// Five seconds are promised; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(7);
/// Of an administrator's app.
const APP_KEY: &str = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const NEW_PASSWORD: &str = "a fresh long passphrase";

/// Gatepost over a cluster of its own, by a URL of those hosts.
fn over(cluster: &Cluster, hosts: &str, settings: &[(&str, &str)]) -> Gatepost {
    let database = TestDatabase::empty_in(cluster.url.clone());
    let (first, last) = hosts.rsplit_once(':').unwrap();
    let url = database.url_through(first, last.parse().unwrap(), "");
    let settings = [&[("GATEPOST_DATABASE_URL", url.as_str())], settings].concat();
    let mut gatepost = Gatepost::prepare_over(database, &settings);
    gatepost.apply(&document());
    gatepost.serve();
    gatepost
}

fn address(cluster: &Cluster) -> String {
    format!("127.0.0.1:{}", cluster.socket().1)
}

fn in_time(ask: impl FnOnce() -> Answer) -> Answer {
    let begun = Instant::now();
    let answer = ask();
    assert!(
        begun.elapsed() < PATIENCE,
        "{:?}: {answer:?}",
        begun.elapsed()
    );
    answer
}

fn change_password(browser: &mut Browser, page: &Answer) -> Answer {
    let token = page.form_token();
    let new = [
        ("new_password", NEW_PASSWORD),
        ("new_password_again", NEW_PASSWORD),
    ];
    let form = [
        ("form_token", token.as_str()),
        ("decision", "change_password"),
        ("present_password", ALICE_PASSWORD),
    ];
    browser.post("/account", &[&form[..], &new].concat())
}

fn signs_in(gatepost: &Gatepost, password: &str) -> bool {
    let answer = until_served(|| {
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        if page.status == 503 {
            page
        } else {
            sign_in(&mut browser, &page, "alice", password)
        }
    });
    answer.status == 303
}

#[test]
fn what_a_frozen_primary_held_up_is_refused_in_time_and_not_done_by_its_successor() {
    let cluster = Cluster::start();
    let standby: Standby = cluster.standby();
    let hosts = format!("{},127.0.0.1:{}", address(&cluster), standby.port);
    let gatepost = over(&cluster, &hosts, &[]);
    let mut browser = signed_in(&gatepost);
    // A password is hashed between two statements: whichever the freeze meets, the change is not
    // carried out later.
    let page = browser.visit("/account");
    let frozen = cluster.freeze();
    assert_eq!(in_time(|| change_password(&mut browser, &page)).status, 503);
    standby.promote();
    // The first host is frozen still: it must not keep anybody from the second.
    assert!(
        signs_in(&gatepost, ALICE_PASSWORD),
        "with the password that was not changed"
    );
    cluster.kill();
    drop(frozen);
    sleep(Duration::from_secs(3));
    assert!(signs_in(&gatepost, ALICE_PASSWORD), "changed after a 503");
    assert!(!signs_in(&gatepost, NEW_PASSWORD), "changed after a 503");
}

#[test]
fn a_frozen_database_on_this_machine_s_own_socket_keeps_nobody_waiting() {
    let cluster = Cluster::start();
    let gatepost = {
        let (directory, port) = cluster.socket();
        let database = TestDatabase::empty_in(cluster.url.clone());
        let (_, options) = database.url.split_once('?').unwrap();
        let url = format!(
            "postgres://postgres@/postgres?host={}&port={port}&{options}",
            directory.display()
        );
        let mut gatepost = Gatepost::prepare_over(database, &[("GATEPOST_DATABASE_URL", &url)]);
        gatepost.apply(&document());
        gatepost.serve();
        gatepost
    };
    let mut browser = signed_in(&gatepost);
    let token = CONF1.tokens(&gatepost, &mut browser, "openid profile");
    let waiting = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    // Just used, so that it is trusted and the statement is sent.
    assert_eq!(userinfo(&gatepost, access(&token)).status, 200);
    let frozen = cluster.freeze();
    scope(|scope| {
        let told = [
            scope.spawn(|| in_time(|| userinfo(&gatepost, access(&token)))),
            scope.spawn(|| in_time(|| redeem(&gatepost, &waiting))),
        ];
        for answer in told.map(|answer| answer.join().unwrap()) {
            assert_eq!(answer.json()["error"], "temporarily_unavailable");
            assert!(answer.status == 503, "{answer:?}");
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
        }
    });
    drop(frozen);
    until_served(|| userinfo(&gatepost, access(&token))).assert_status(200);
    // The workers that waited are back by then, and find their requests answered: each has had its
    // line.
    sleep(Duration::from_secs(1));
    let log = gatepost.log();
    let mut ids: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once(" id="))
        .map(|(_, id)| &id[..16])
        .collect();
    let lines = ids.len();
    ids.sort_unstable();
    ids.dedup();
    log.assert_says("refused=server");
    assert!(ids.len() == lines, "{log}");
}

#[test]
fn nobody_waits_longer_the_more_statements_a_request_needs() {
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    let mut browser = signed_in(&gatepost);
    let page = browser.visit("/account");
    proxy.set_distance(Duration::from_millis(1_200));
    // Each statement is answered before any statement's time-out: all of them together take ten
    // seconds and more.
    assert_eq!(in_time(|| change_password(&mut browser, &page)).status, 503);
    let begun = Instant::now();
    proxy.set_distance(Duration::ZERO);
    assert!(signs_in(&gatepost, ALICE_PASSWORD) && begun.elapsed() < SOON);
}

#[test]
fn an_administrator_who_looks_for_many_rows_waits_no_longer_than_others() {
    let settings = [("GATEPOST_ADMIN_ROLE", "office")];
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy_with(&settings);
    let mut registered = document();
    registered["users"].as_array_mut().unwrap().push(json!({
        "username": "boss", "password": BOB_PASSWORD, "totp": APP_KEY,
        "claims": {"role": "office"},
    }));
    gatepost.apply(&registered);
    gatepost.settle();
    let mut browser = gatepost.browser();
    let page = browser.visit("/admin");
    let asked = sign_in(&mut browser, &page, "boss", BOB_PASSWORD);
    let code = Phone::with_key(APP_KEY.to_owned(), 0).code(0);
    let answer = browser.submit(&asked, &[("code", &code)]);
    assert_eq!(answer.status, 303, "{}", answer.text());
    // Each page asks over a connection of its own, which says nothing more from there on.
    for (path, asked) in [
        ("/admin/audit", "WITH asked AS MATERIALIZED"),
        ("/admin/applications/conf1", "SELECT count(*) AS grants"),
    ] {
        assert_eq!(in_time(|| browser.get(path)).status, 200, "{path}");
        proxy.silence(Some(asked));
        assert_eq!(in_time(|| browser.get(path)).status, 503, "{path}");
        proxy.silence(None);
    }
}

#[test]
fn a_first_host_that_says_nothing_more_keeps_nobody_from_the_second() {
    // Frozen from the beginning, or once it has said that it has no TLS.
    for said in ["", "N"] {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let database = TestDatabase::empty();
        let config: postgres::Config = database.url.parse().unwrap();
        let hosts = format!(
            "127.0.0.1:{},127.0.0.1",
            silent.local_addr().unwrap().port()
        );
        let url = database.url_through(&hosts, config.get_ports()[0], "");
        spawn(move || {
            let greet = |mut stream: TcpStream| stream.write_all(said.as_bytes()).map(|()| stream);
            let _held: Vec<_> = silent
                .incoming()
                .map(|stream| stream.and_then(greet))
                .collect();
        });
        let mut gatepost = Gatepost::prepare_over(database, &[("GATEPOST_DATABASE_URL", &url)]);
        // Commands and the service alike.
        gatepost.apply(&document());
        gatepost.serve();
        signed_in(&gatepost);
    }
}

/// A synchronous standby that is not there, for as long as this lives.
struct LostStandby<'a>(&'a Cluster);

impl LostStandby<'_> {
    fn of(cluster: &Cluster) -> LostStandby<'_> {
        let lost = LostStandby(cluster);
        lost.set("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
        lost
    }

    fn set(&self, sql: &str) {
        let mut client = postgres::Client::connect(&self.0.url, postgres::NoTls).unwrap();
        [sql, "SELECT pg_reload_conf()"]
            .iter()
            .for_each(|sql| client.batch_execute(sql).unwrap());
        // Every backend takes notice at its next statement.
        sleep(Duration::from_millis(500));
    }
}

impl Drop for LostStandby<'_> {
    fn drop(&mut self) {
        self.set("ALTER SYSTEM RESET synchronous_standby_names");
    }
}

#[test]
fn writes_that_wait_for_a_standby_leave_room_for_reads() {
    let cluster = Cluster::start();
    let gatepost = over(&cluster, &address(&cluster), &[]);
    let mut browser = signed_in(&gatepost);
    let token = CONF1.tokens(&gatepost, &mut browser, "openid profile");
    let codes: Vec<String> = (0..24)
        .map(|_| code(&mut browser, &authorize_path("conf1", RP1, &[])))
        .collect();
    let _lost = LostStandby::of(&cluster);
    scope(|scope| {
        for code in &codes {
            scope.spawn(|| assert_eq!(in_time(|| redeem(&gatepost, code)).status, 503));
        }
        let waiting = "SELECT count(*) > 2 FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        let mut observer = gatepost.database.client();
        await_that("writes wait", SOON, || {
            observer.query_one(waiting, &[]).unwrap().get(0)
        });
        let until = Instant::now() + Duration::from_millis(1_500);
        while Instant::now() < until {
            assert_eq!(userinfo(&gatepost, access(&token)).status, 200);
        }
    });
}

/// What a load got while processes changed over a database 40 ms away.
#[test]
fn nobody_is_refused_by_a_new_process_because_its_database_is_far_away() {
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    let mut browser = signed_in(&gatepost);
    let token = CONF1.tokens(&gatepost, &mut browser, "openid profile");
    let (done, answered, refused) = (
        AtomicBool::new(false),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    proxy.set_distance(Duration::from_millis(20));
    scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let headers = [("Authorization", format!("Bearer {}", access(&token)))];
                    let headers = headers
                        .each_ref()
                        .map(|(name, value)| (*name, value.as_str()));
                    // A process that is killed cuts connections.
                    let asked = Connection::open(gatepost.port).and_then(|mut wire| {
                        wire.try_send("GET", "/connect/userinfo", &headers, b"")
                    });
                    match asked.map(|answer| answer.status) {
                        Ok(200) => answered.fetch_add(1, Ordering::SeqCst),
                        Ok(503) => refused.fetch_add(1, Ordering::SeqCst),
                        Ok(status) => panic!("{status}"),
                        Err(_) => 0,
                    };
                }
            });
        }
        let _over_at_last = OverAtLast(&done);
        let serves_on = || {
            let enough = answered.load(Ordering::SeqCst) + 200;
            await_that("the load is served", SOON, || {
                answered.load(Ordering::SeqCst) > enough
            });
        };
        serves_on();
        let replaced = |old: &[u32]| {
            let now = gatepost.server_processes();
            now.len() == 1 && now != old
        };
        for end in ["planned", "killed"] {
            let old = gatepost.server_processes();
            match end {
                "planned" => send_signal(gatepost.supervisor(), "HUP"),
                _ => kill(old[0]),
            }
            await_that(end, SOON, || replaced(&old));
            serves_on();
            assert_eq!(refused.load(Ordering::SeqCst), 0, "{end}");
        }
    });
}

/// Answers whoever connects as PgBouncer does: no TLS, and then with an error.
fn pooler_that_says(sqlstate: &'static str, message: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut buffer = [0; 4_096];
            drop(stream.read(&mut buffer));
            let body = format!("SFATAL\0C{sqlstate}\0M{message}\0\0");
            let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
            drop(stream.write_all(&[b"E", &length[..], body.as_bytes()].concat()));
        }
    });
    port
}

#[test]
fn a_pooler_that_refuses_options_is_named_with_its_cure() {
    for [message, cure] in rows_of(
        "
        unsupported startup parameter: options        | ignore_startup_parameters = options
        unsupported startup parameter in options: jit | ignore_startup_parameters = options
        no such database: gatepost                    | the pooler's log says why
    ",
    ) {
        let mut gatepost = Gatepost::unprepared(TestDatabase::empty(), &[]);
        let port = pooler_that_says("08P01", message);
        gatepost.set(
            "GATEPOST_DATABASE_URL",
            &format!("postgres://gatepost@127.0.0.1:{port}/gatepost"),
        );
        let output = gatepost.run(&["migrate"], "");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(cure) && said.contains("08P01"), "{said}");
    }
}

#[test]
fn a_pooler_that_drops_settings_is_told_of_and_one_that_keeps_them_is_not() {
    let warning = "statement_timeout is 0 ms";
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    assert!(
        !gatepost.log().contains("statement_timeout"),
        "{}",
        gatepost.log()
    );
    // To the server a setting of nobody's: ours is not made.
    proxy.replace("statement_timeout=3000", "pooler.dropped_it=3000");
    let old = gatepost.server_processes();
    send_signal(gatepost.supervisor(), "HUP");
    await_that("a successor", SOON, || {
        gatepost.server_processes() != old && gatepost.log().contains(warning)
    });
}

#[test]
fn a_database_error_that_is_no_setting_s_does_not_end_the_service() {
    let mut gatepost = Gatepost::start();
    gatepost.stop();
    gatepost.run_sql("ALTER TABLE catalogue_entries RENAME TO away");
    gatepost.launch();
    gatepost.await_log("it waits", |log| log.contains("waiting for the database"));
    sleep(Duration::from_secs(1));
    gatepost.run_sql("ALTER TABLE away RENAME TO catalogue_entries");
    gatepost.await_ready();
}
