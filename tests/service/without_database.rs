//! What is answered while there is no database, and that nothing is lost by it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::flow::{authorize_path, code, redeem, signed_in, userinfo};
use crate::support::gatepost::{Gatepost, RP1, document};
use crate::support::http::{Answer, Connection};
use crate::support::proxy::Proxy;
use crate::support::waiting::SOON;

fn behind(proxy: &Proxy) -> Gatepost {
    behind_with(proxy, &[])
}

fn behind_with(proxy: &Proxy, settings: &[(&str, &str)]) -> Gatepost {
    let mut gatepost = Gatepost::prepare(settings);
    gatepost.apply(&document());
    let url = gatepost.database.url_through("127.0.0.1", proxy.port, "");
    gatepost.set("GATEPOST_DATABASE_URL", url.as_str());
    gatepost.launch();
    gatepost
}

fn soon(what: &str, gatepost: &Gatepost, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}:\n{}", gatepost.log());
        sleep(Duration::from_millis(50));
    }
}

/// 503 with a time to come back, and nothing about the inside of the house.
fn assert_away(answer: &Answer, case: &str) {
    assert_eq!(answer.status, 503, "{case}: {}", answer.text());
    let retry_after: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&retry_after), "{case}");
    let text = answer.text().to_lowercase();
    for inside in "postgres 127.0.0.1 database sql connection panic src/".split(' ') {
        assert!(!text.contains(inside), "{case} tells of {inside}: {text}");
    }
}

fn own_token(gatepost: &Gatepost) -> Answer {
    gatepost.token("conf1", &[("grant_type", "client_credentials")])
}

/// Status and text of `/readyz`, then the metrics `gatepost_ready` and `gatepost_degraded`.
fn standing(admin: u16) -> (u16, String, [u8; 2]) {
    let ask = |path: &str| {
        Connection::open(admin)
            .unwrap()
            .try_send("GET", path, &[], b"")
            .unwrap()
    };
    let (readyz, metrics) = (ask("/readyz"), ask("/metrics").text());
    let gauge = |name: &str| {
        metrics
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    };
    (
        readyz.status,
        readyz.text(),
        [gauge("gatepost_ready "), gauge("gatepost_degraded ")],
    )
}

#[test]
fn before_the_first_load_there_is_health_and_nothing_else() {
    let proxy = Proxy::start();
    proxy.cut(true);
    let gatepost = behind(&proxy);
    soon("the process is up", &gatepost, || {
        gatepost.serves("/healthz")
    });
    for path in [
        "/",
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/jwks",
        "/.well-known/oauth-authorization-server",
        "/connect/userinfo",
        "/login",
        "/logout",
        &authorize_path("conf1", RP1, &[]),
        &authorize_path("conf1", RP1, &[("prompt", "none")]),
    ] {
        assert_away(&gatepost.get(path), path);
    }
    assert_away(&own_token(&gatepost), "token");
    own_token(&gatepost).assert_refused(503, "temporarily_unavailable", "token");
    gatepost.get("/nowhere").assert_status(404);
    gatepost.get("/connect/token").assert_status(405);
    assert_eq!(gatepost.get("/healthz").status, 200);
    proxy.cut(false);
    soon("it gets ready by itself", &gatepost, || gatepost.is_ready());
    assert_eq!(own_token(&gatepost).status, 200);
}

#[test]
fn a_database_that_goes_away_takes_no_code_and_no_document_along() {
    let proxy = Proxy::start();
    let admin: std::net::SocketAddr = crate::support::http::free_address().parse().unwrap();
    let gatepost = behind_with(&proxy, &[("GATEPOST_ADMIN_LISTEN", &admin.to_string())]);
    soon("it gets ready", &gatepost, || gatepost.is_ready());
    let standing = || standing(admin.port());
    assert_eq!(standing(), (200, String::from("ready\n"), [1, 0]));
    let mut browser = signed_in(&gatepost);
    let path = authorize_path("conf1", RP1, &[]);
    let first = code(&mut browser, &path);
    let access_token = redeem(&gatepost, &first).json()["access_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let held = code(&mut browser, &path);
    let documents = [
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/jwks",
    ];
    let before = documents.map(|path| gatepost.get(path).body);

    proxy.cut(true);
    assert_away(&userinfo(&gatepost, &access_token), "userinfo");
    userinfo(&gatepost, &access_token).assert_refused(503, "temporarily_unavailable", "userinfo");
    userinfo(&gatepost, "garbage").assert_status_for("what is no token needs no database", 401);
    for attempt in 0..3 {
        assert_away(&redeem(&gatepost, &held), &format!("redemption {attempt}"));
    }
    let answer = redeem(&gatepost, "gpc_garbage");
    answer.assert_refused(400, "invalid_grant", "no code needs no database");
    assert_away(&browser.get(&path), "authorize");
    let silent = browser.get(&authorize_path("conf1", RP1, &[("prompt", "none")]));
    silent.assert_status(303);
    assert_eq!(silent.query()["error"].as_str(), "temporarily_unavailable");
    assert_eq!(silent.query()["state"], "the-state");
    assert_eq!(documents.map(|path| gatepost.get(path).body), before);
    assert_eq!(gatepost.get("/healthz").status, 200);
    let degraded = (
        200,
        String::from("degraded: the database does not answer\n"),
        [1, 1],
    );
    soon("it says so to the operator", &gatepost, || {
        standing() == degraded
    });

    // What was last heard of clients is believed for half a minute, and no longer.
    sleep(Duration::from_secs(31));
    assert_away(&own_token(&gatepost), "token, too old a registry");
    let away = String::from("not ready: the database has not answered for 30 seconds\n");
    assert_eq!(standing(), (503, away, [0, 0]));
    assert_eq!(documents.map(|path| gatepost.get(path).body), before);

    proxy.cut(false);
    soon("it recovers by itself", &gatepost, || {
        own_token(&gatepost).status == 200
    });
    soon("it is ready again", &gatepost, || {
        standing() == (200, String::from("ready\n"), [1, 0])
    });
    assert_eq!(userinfo(&gatepost, &access_token).status, 200);
    // Issued 31 s ago and still good for as long; refused attempts did not spend it.
    let answer = redeem(&gatepost, &held);
    answer.assert_status(200);
    assert_eq!(answer.json()["token_type"], "Bearer");
    redeem(&gatepost, &held).assert_refused(400, "invalid_grant", "once");
}

#[test]
fn connections_that_die_under_it_are_replaced_without_a_word() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    for round in 0..5 {
        let code = code(&mut browser, &authorize_path("conf1", RP1, &[]));
        gatepost.database.run(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = '{}' AND pid <> pg_backend_pid()",
            gatepost.database.schema
        ));
        let answer = redeem(&gatepost, &code);
        assert_eq!(answer.status, 200, "round {round}: {}", answer.text());
        userinfo(&gatepost, answer.json()["access_token"].as_str().unwrap()).assert_status(200);
        redeem(&gatepost, &code).assert_refused(400, "invalid_grant", "once, whatever broke");
    }
    assert_eq!(gatepost.database.count("grants"), 5);
}
