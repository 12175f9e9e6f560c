//! The server process is killed when a pushed request (RFC 9126) is used up and the answer with the
//! code is not out yet.

use std::thread;
use std::time::Duration;

use crate::support::cluster::signal;
use crate::support::flow::{basic, challenge, issued, redeem, signed_in, text};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, RP1};
use crate::support::http::{Connection, encode};
use crate::support::waiting::await_that;

const SOON: Duration = Duration::from_secs(30);

/// Pushes a request, and answers the path that the browser opens.
fn pushed(gatepost: &Gatepost) -> String {
    let challenge = challenge();
    let form = [
        ("response_type", "code"),
        ("redirect_uri", RP1),
        ("scope", "openid"),
        ("state", "kept"),
        ("nonce", "n"),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
    ];
    let authorization = basic("conf1", CONF1_SECRET);
    let headers = [("Authorization", authorization.as_str())];
    let answer = gatepost.post("/connect/par", &headers, &form);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let answer = answer.json();
    let uri = text(&answer, "request_uri");
    let query = encode(&[("client_id", "conf1"), ("request_uri", uri)]);
    format!("/connect/authorize?{query}")
}

/// Opens a pushed request, and kills the server process when the request is used up. Whether there
/// was no answer: on a busy machine it may be out before the kill.
fn is_killed_in_between(gatepost: &Gatepost, path: &str, cookies: &[(&str, &str)]) -> bool {
    let used = || gatepost.database.count("used_assertions");
    let used_before = used();
    let old = gatepost.server_processes();
    let port = gatepost.port;
    let is_unanswered = thread::scope(|scope| {
        let asking = scope.spawn(|| Connection::open(port)?.try_send("GET", path, cookies, b""));
        await_that("the request is used up", SOON, || used() > used_before);
        signal("KILL", &old);
        asking.join().unwrap().is_err()
    });
    await_that("the server is back", SOON, || {
        let processes = gatepost.server_processes();
        let is_another = processes.iter().all(|process| !old.contains(process));
        !processes.is_empty() && is_another && gatepost.is_ready()
    });
    is_unanswered
}

#[test]
fn a_request_that_was_used_up_before_a_kill_leads_to_no_code_and_a_new_one_does() {
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    let cookies = signed_in(&gatepost).cookie_header();
    let cookies = [("Cookie", cookies.as_str())];
    // The row is written long before the server hears of it.
    proxy.set_distance(Duration::from_millis(150));
    let path = (0..8)
        .map(|_| pushed(&gatepost))
        .find(|path| is_killed_in_between(&gatepost, path, &cookies))
        .expect("each answer was out before the kill");
    proxy.set_distance(Duration::ZERO);
    let again = gatepost.send("GET", &path, &cookies, b"");
    again.assert_error_page(400, "GP1154", "the code may be somewhere");
    let another = pushed(&gatepost);
    let answer = gatepost.send("GET", &another, &cookies, b"");
    issued(&redeem(&gatepost, &answer.query()["code"]));
}
