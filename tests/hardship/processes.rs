//! Several processes over one database, processes that die, and processes that refuse to start.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::serving::{kill, serve_for_a_while};
use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, decode_jwt, redeem, sign_in, signed_in, userinfo,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, MASTER_SECRET, RP1, document};
use crate::support::http::{Answer, Browser};
use crate::support::jwt::published_keys;
use crate::support::postgres::TestDatabase;
use crate::support::proxy::Proxy;
use crate::support::waiting::{OverAtLast, await_that};

/// The same person with the same browser at another process.
fn at(gatepost: &Gatepost, browser: &Browser) -> Browser {
    let mut same = gatepost.browser();
    same.cookies = browser.cookies.clone();
    same
}

fn pair() -> (Gatepost, Gatepost) {
    let first = Gatepost::start();
    let mut second = first.beside();
    second.serve();
    (first, second)
}

fn access_token(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["access_token"].as_str().unwrap().to_owned()
}

/// Nothing that is waited for takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

fn silently(browser: &mut Browser) -> Answer {
    browser.get(&authorize_path("conf1", RP1, &[("prompt", "none")]))
}

#[test]
fn two_processes_serve_one_flow_together() {
    let (a, b) = pair();
    // The page of one is posted to the other.
    let mut browser = a.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    let mut elsewhere = at(&b, &browser);
    let answer = sign_in(&mut elsewhere, &page, "alice", ALICE_PASSWORD);
    assert_eq!(answer.status, 303, "{}", answer.text());
    let code_of_b = answer.query().remove("code").unwrap();
    // The session counts at both; a code of either is redeemed at the other, and its token good at
    // both.
    let mut browser = at(&a, &elsewhere);
    let code_of_a = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    let tokens = [redeem(&b, &code_of_a), redeem(&a, &code_of_b)];
    let tokens = tokens.map(|answer| access_token(&answer));
    let at_both = |token: &str| [&a, &b].map(|gatepost| userinfo(gatepost, token).status);
    for token in &tokens {
        assert_eq!(at_both(token), [200, 200]);
    }
    // A replay at one is seen by both, at once.
    assert_eq!(redeem(&a, &code_of_a).status, 400);
    assert_eq!(at_both(&tokens[0]), [401, 401]);
    assert_eq!(at_both(&tokens[1]), [200, 200]);
    // So is a sign-out.
    let page = elsewhere.get("/logout");
    let done = elsewhere.submit(&page, &[("decision", "sign_out")]);
    assert!(done.status < 400, "{}", done.text());
    assert_eq!(silently(&mut browser).query()["error"], "login_required");
    assert_eq!(at_both(&tokens[1]), [401, 401]);
}

#[test]
fn a_change_of_the_registration_is_in_force_everywhere_after_a_second() {
    let (a, b) = pair();
    let other = "https://rp1.example/moved";
    let path = authorize_path("conf1", other, &[]);
    for gatepost in [&a, &b] {
        gatepost.get(&path).assert_status(400);
    }
    let mut changed = document();
    changed["clients"][0]["redirect_uris"] = serde_json::json!([other]);
    a.run_well(&["apply", "-"], &changed.to_string());
    for gatepost in [&a, &b] {
        await_that("the new URI is taken", PATIENCE, || {
            gatepost.get(&path).status == 303
        });
        gatepost
            .get(&authorize_path("conf1", RP1, &[]))
            .assert_status_for("the old one is not", 400);
    }
    changed["clients"][0]["enabled"] = false.into();
    a.run_well(&["apply", "-"], &changed.to_string());
    for gatepost in [&a, &b] {
        await_that("the client is refused", PATIENCE, || {
            gatepost.get(&path).status == 400
        });
    }
}

#[test]
fn disabling_a_user_is_in_force_at_once() {
    let (a, b) = pair();
    let mut browser = signed_in(&a);
    let path = authorize_path("conf1", RP1, &[]);
    let token = access_token(&redeem(&a, &code(&mut browser, &path)));
    let waiting = code(&mut browser, &path);
    let mut disabled = document();
    disabled["users"][0]["enabled"] = false.into();
    for (by_apply, enabled) in [(false, false), (false, true), (true, false)] {
        match by_apply {
            true => drop(a.run_well(&["apply", "-"], &disabled.to_string())),
            false => a.database.run(&format!(
                "UPDATE users SET enabled = {enabled} WHERE username = 'alice'"
            )),
        }
        for gatepost in [&a, &b] {
            let expected = if enabled { 200 } else { 401 };
            userinfo(gatepost, &token).assert_status(expected);
            let answer = silently(&mut at(gatepost, &browser));
            match enabled {
                true => drop(answer.code()),
                false => answer.assert_query("error", "login_required"),
            }
        }
    }
    redeem(&b, &waiting).assert_status_for("a code in flight dies with its user", 400);
}

#[test]
fn no_process_signs_with_a_key_that_another_does_not_publish() {
    let (a, b) = pair();
    let kid = |jwt: &str| decode_jwt(jwt).0["kid"].as_str().unwrap().to_owned();
    let token = |of: &Gatepost| {
        let own = [("grant_type", "client_credentials")];
        kid(&access_token(&of.token("conf1", &own)))
    };
    let before = token(&a);
    let (rotated, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
    scope(|scope| {
        for (signs, publishes) in [(&a, &b), (&b, &a)] {
            let (rotated, seen) = (&rotated, &seen);
            scope.spawn(move || {
                while !rotated.load(Ordering::SeqCst) {
                    let kid = token(signs);
                    let published = published_keys(publishes);
                    let is_there = published.iter().any(|key| key["kid"] == *kid);
                    assert!(is_there, "{kid} is in no key set of the other's");
                    seen.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        scope.spawn(|| {
            let _over_at_last = OverAtLast(&rotated);
            a.run_well(&["key", "rotate", "--now"], "");
            a.settle();
            b.settle();
            // Where it leaked there is no other key to sign with, at first.
            a.run_well(&["key", "retire", &token(&a)], "");
            a.settle();
            b.settle();
        });
    });
    assert!(seen.into_inner() >= 20);
    assert!(token(&a) != before, "the new one signs");
    assert!(token(&a) == token(&b), "the new one signs");
}

#[test]
fn connections_whose_peers_left_before_anybody_took_them_are_told_of_together() {
    let gatepost = Gatepost::start();
    let process = gatepost.server_processes()[0];
    signal(process, "STOP");
    for _ in 0..50 {
        let mut stream = TcpStream::connect(("127.0.0.1", gatepost.port)).unwrap();
        let asked = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
        stream.write_all(asked).unwrap();
        // A reset: what was sent may still be read, whose it was cannot be asked any more.
        let socket = socket2::SockRef::from(&stream);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
    signal(process, "CONT");
    let line = "connections were gone before they could be answered";
    gatepost.await_log("the departed are told of", |log| log.contains(line));
    assert_eq!(gatepost.get("/healthz").status, 200);
    // The probe looks each second: what comes later waits for its minute.
    sleep(Duration::from_secs(2));
    let log = gatepost.log();
    assert!(log.matches(line).count() == 1, "{log}");
    log.assert_says_not("panic at");
}

#[test]
fn a_code_outlives_the_process_that_made_it_and_is_redeemed_once() {
    let mut gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let (first, second) = {
        let path = authorize_path("conf1", RP1, &[]);
        (code(&mut browser, &path), code(&mut browser, &path))
    };
    let supervisor = gatepost.supervisor();
    let [process] = gatepost.server_processes()[..] else {
        panic!("not one server process")
    };
    kill(process);
    // The connection waits in the backlog for the successor. Should that take long to load, it says
    // so.
    let mut tokens = redeem(&gatepost, &first);
    await_that("redeemed after the crash", PATIENCE, || {
        if tokens.status == 503 {
            assert!(tokens.header("retry-after").is_some());
            tokens = redeem(&gatepost, &first);
        }
        tokens.status != 503
    });
    let token = access_token(&tokens);
    assert_eq!(redeem(&gatepost, &first).status, 400, "once");
    userinfo(&gatepost, &token).assert_status_for("and the replay took the token along", 401);
    assert_eq!(gatepost.supervisor(), supervisor);
    assert!(!gatepost.server_processes().contains(&process));
    // Nothing depends on the supervisor, either.
    gatepost.stop();
    gatepost.serve();
    let token = access_token(&redeem(&gatepost, &second));
    assert_eq!(userinfo(&gatepost, &token).status, 200);
    silently(&mut browser).assert_carries_for("the session is kept", "code");
}

fn signal(process: u32, name: &str) {
    let mut kill = Command::new("kill");
    kill.args([&format!("-{name}"), &process.to_string()]);
    assert!(kill.status().unwrap().success());
}

#[test]
fn a_successor_that_cannot_serve_by_its_database_leaves_the_old_process_serving() {
    let gatepost = Gatepost::start();
    let old = eventually_one(&gatepost);
    serve_for_a_while();
    gatepost.run_sql("UPDATE installation SET issuer = 'https://elsewhere.example'");
    signal(gatepost.supervisor(), "HUP");
    await_that("the refusal is logged", PATIENCE, || {
        gatepost.log().contains("exit status: 78")
    });
    sleep(Duration::from_millis(500));
    assert_eq!(gatepost.server_processes(), [old]);
    let metadata = gatepost.get("/.well-known/openid-configuration");
    metadata.assert_status(200);
    assert!(gatepost.log().contains("https://elsewhere.example"));
}

#[test]
fn a_database_that_comes_late_and_is_empty_ends_the_service_with_78() {
    let database = TestDatabase::empty();
    let proxy = Proxy::start();
    let url = database.url_through("127.0.0.1", proxy.port, "");
    let gatepost = Gatepost::unprepared(database, &[("GATEPOST_DATABASE_URL", &url)]);
    proxy.cut(true);
    std::thread::scope(|scope| {
        let served = scope.spawn(|| refused(&gatepost, "gatepost migrate"));
        let healthy = || {
            let answer = crate::support::http::Connection::open(gatepost.port)
                .and_then(|mut wire| wire.try_send("GET", "/healthz", &[], b""));
            answer.is_ok_and(|answer| answer.status == 200)
        };
        await_that("serving", PATIENCE, healthy);
        proxy.cut(false);
        served.join().unwrap();
    });
}

#[test]
fn a_server_without_its_database_waits_for_it() {
    let database = TestDatabase::empty();
    let proxy = Proxy::start();
    let url = database.url_through("127.0.0.1", proxy.port, "");
    let mut gatepost = Gatepost::prepare_over(database, &[("GATEPOST_DATABASE_URL", &url)]);
    gatepost.apply(&document());
    proxy.cut(true);
    gatepost.launch();
    let reachable = || crate::support::http::Connection::open(gatepost.port).is_ok();
    await_that("listening", PATIENCE, reachable);
    let process = eventually_one(&gatepost);
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        assert_eq!(gatepost.get("/healthz").status, 200);
        for path in "/.well-known/openid-configuration /connect/userinfo /".split(' ') {
            let answer = gatepost.get(path);
            answer.assert_status_for(path, 503);
            assert!(answer.header("retry-after").is_some(), "{path}");
        }
        let page = gatepost.get(&authorize_path("conf1", RP1, &[]));
        page.assert_status(503);
        let content_type = page.header("content-type").unwrap();
        assert!(content_type.starts_with("text/html"), "{content_type}");
        let answer = redeem(&gatepost, "gpc_x");
        answer.assert_status(503);
        answer.assert_member("error", "temporarily_unavailable");
        sleep(Duration::from_millis(200));
    }
    proxy.cut(false);
    await_that("ready", PATIENCE, || {
        gatepost.get("/.well-known/openid-configuration").status == 200
    });
    assert_eq!(eventually_one(&gatepost), process, "the same process");
    signed_in(&gatepost);
}

fn eventually_one(gatepost: &Gatepost) -> u32 {
    await_that("one server process", PATIENCE, || {
        gatepost.server_processes().len() == 1
    });
    gatepost.server_processes()[0]
}

/// Runs `serve`, which must end by itself; its exit code and what it said.
fn serve_ends(gatepost: &Gatepost) -> (Option<i32>, String) {
    let mut command = gatepost.command();
    command.arg("serve").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it serves, although it should refuse");
        }
        sleep(Duration::from_millis(20));
    }
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.stdout, b"", "nothing goes to standard output");
    let said = String::from_utf8(ended.stderr).unwrap();
    (ended.status.code(), said)
}

#[test]
fn what_cannot_be_served_by_is_refused_with_78_and_a_clear_line() {
    let mut gatepost = Gatepost::prepare(&[]);
    let secret = gatepost.private_file("other-secret", &STANDARD.encode([43; 32]));
    let readable = gatepost.private_file("readable-secret", &STANDARD.encode(MASTER_SECRET));
    std::fs::set_permissions(&readable, PermissionsExt::from_mode(0o644)).unwrap();
    let short = gatepost.private_file("short-secret", &STANDARD.encode([42; 31]));
    let absent = readable.with_file_name("no-such-file");
    let right = gatepost.private_file("right-secret", &STANDARD.encode(MASTER_SECRET));
    let files = [
        (&secret, "master secret"),
        (&readable, "read"),
        (&short, "shorter than 32 bytes"),
        (&absent, "no-such-file"),
    ];
    for (file, rule) in files {
        gatepost.set("GATEPOST_SECRET_FILE", &file.display().to_string());
        refused(&gatepost, rule);
    }
    gatepost.unset("GATEPOST_SECRET_FILE");
    refused(&gatepost, "GATEPOST_SECRET_FILE");
    gatepost.set("GATEPOST_SECRET_FILE", &right.display().to_string());

    let issuer = gatepost.base_url.clone();
    gatepost.set("GATEPOST_BASE_URL", "https://elsewhere.example");
    refused(&gatepost, &issuer);
    gatepost.set("GATEPOST_BASE_URL", &issuer);

    gatepost.set("GATEPOST_DATABASE_CONECTIONS", "4");
    let misspelt = "GATEPOST_DATABASE_CONECTIONS is not a setting; the nearest is GATEPOST_DATABASE_CONNECTIONS";
    refused(&gatepost, misspelt);
    gatepost.unset("GATEPOST_DATABASE_CONECTIONS");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    gatepost.set(
        "GATEPOST_DATABASE_URL",
        "postgres://me:hunter2@localhost/x?sslmode=perhaps",
    );
    refused(&gatepost, "sslmode");
    drop(listener);
    // With everything put right it serves.
    let url = gatepost.database.url.clone();
    gatepost.set("GATEPOST_DATABASE_URL", &url);
    gatepost.serve();
}

#[test]
fn an_empty_database_is_refused_with_78_and_says_what_to_run() {
    let unmigrated = Gatepost::unprepared(TestDatabase::empty(), &[]);
    refused(&unmigrated, "gatepost migrate");
}

#[test]
fn a_newer_schema_is_served_for_as_long_as_it_says_that_it_can_be() {
    let mut gatepost = Gatepost::prepare(&[]);
    let newer = "INSERT INTO schema_migrations (level, name, sha256, compatible_from) VALUES (999, '0999_next.sql', '', 1)";
    gatepost.database.run(newer);
    gatepost.apply(&crate::support::gatepost::document());
    gatepost.serve();
    let page = gatepost.get("/.well-known/openid-configuration");
    assert_eq!(page.status, 200);
    gatepost.stop();
    gatepost.run_sql("UPDATE schema_migrations SET compatible_from = 999 WHERE level = 999");
    refused(&gatepost, "needs a gatepost that knows level 999");
}

fn refused(gatepost: &Gatepost, rule: &str) {
    let (code, said) = serve_ends(gatepost);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains(rule), "no {rule:?} in: {said}");
    let masters = [STANDARD.encode(MASTER_SECRET), STANDARD.encode([43; 32])];
    for secret in [&*masters[0], &masters[1], "hunter2"] {
        said.assert_says_not(secret);
    }
    assert!(!said.contains("panic"), "{said}");
    let errors = said
        .lines()
        .filter(|line| !line.contains("Z INFO  ") && !line.contains("Z WARN  "));
    assert!(errors.count() <= 3, "clear is short: {said}");
}

#[test]
fn commands_with_a_foreign_master_secret_write_nothing() {
    let mut gatepost = Gatepost::start();
    let foreign = gatepost.private_file("foreign", &STANDARD.encode([7; 32]));
    gatepost.set("GATEPOST_SECRET_FILE", &foreign.display().to_string());
    for (command, input) in [
        (vec!["key", "rotate", "--now"], String::new()),
        (vec!["client", "secret", "conf1"], String::new()),
        (vec!["apply", "-"], document().to_string()),
        (vec!["migrate"], String::new()),
    ] {
        let output = gatepost.run(&command, &input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{command:?}: {said}");
        let case = format!("{command:?}");
        said.assert_says_for(case, "is not the master secret of this database");
    }
    let own_token = [("grant_type", "client_credentials")];
    gatepost.token("conf1", &own_token).assert_status(200);
}
