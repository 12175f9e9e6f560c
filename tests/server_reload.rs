//! SIGHUP with a database: a successor takes over with everything loaded, or not at all.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic here is a failed test"
)]

mod support;

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use support::gatepost::Gatepost;
use support::http::Connection;

const DISCOVERY: &str = "/.well-known/openid-configuration";
const SOON: Duration = Duration::from_secs(20);

fn hang_up(gatepost: &Gatepost) {
    let sent = Command::new("kill").args(["-HUP", &gatepost.supervisor().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Asks until `is_over`; every answer must be 200. At most one connection may be cut: the last that a process takes.
fn ask_until(gatepost: &Gatepost, mut is_over: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    let (mut asked, mut cut) = (0, 0);
    // Processes are listed by /proc, which may miss one while others come and go: one look is not believed.
    while asked <= 10 || !is_over() {
        assert!(Instant::now() < deadline, "not in time:\n{}", gatepost.log());
        match Connection::open(gatepost.port).and_then(|mut connection| connection.try_send("GET", DISCOVERY, &[], b""))
        {
            Ok(answer) => assert_eq!(answer.status, 200, "{}", answer.text()),
            Err(_) => cut += 1,
        }
        asked += 1;
    }
    assert!(cut <= 1, "{cut} of {asked} were cut");
}

/// The supervisor learns that a process is open with one of its beats.
fn serve_for_a_while() {
    sleep(Duration::from_millis(1_500));
}

#[test]
fn a_successor_takes_over_with_the_house_open_and_nobody_is_turned_away() {
    let gatepost = Gatepost::start();
    serve_for_a_while();
    for _ in 0..2 {
        let old = gatepost.server_processes();
        hang_up(&gatepost);
        ask_until(&gatepost, || {
            let now = gatepost.server_processes();
            now.len() == 1 && now != old
        });
        serve_for_a_while();
    }
}

#[test]
fn a_successor_that_cannot_open_its_keys_leaves_the_old_process_serving() {
    let gatepost = Gatepost::start();
    serve_for_a_while();
    let old = gatepost.server_processes();
    gatepost.private_file("secret", &STANDARD.encode([7; 32]));
    hang_up(&gatepost);
    let begun = Instant::now();
    ask_until(&gatepost, || gatepost.log().contains("78") && begun.elapsed() > Duration::from_secs(3));
    assert_eq!(gatepost.server_processes(), old);
    gatepost.private_file("secret", &STANDARD.encode([42; 32]));
    hang_up(&gatepost);
    ask_until(&gatepost, || gatepost.server_processes().len() == 1 && gatepost.server_processes() != old);
}

#[test]
fn a_successor_waits_for_the_database_and_is_replaced_when_its_predecessor_dies() {
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    serve_for_a_while();
    let old = gatepost.server_processes();
    proxy.cut(true);
    hang_up(&gatepost);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        assert_eq!(gatepost.get("/healthz").status, 200);
        assert!(gatepost.server_processes().contains(&old[0]), "the one that has loaded goes on");
        sleep(Duration::from_millis(20));
    }
    assert_eq!(gatepost.server_processes().len(), 2);
    let sent = Command::new("kill").args(["-KILL", &old[0].to_string()]).status().unwrap();
    assert!(sent.success());
    // Without a predecessor nobody waits: a process that has loaded nothing says so.
    assert_eq!(gatepost.get("/healthz").status, 200);
    assert_eq!(gatepost.get(DISCOVERY).status, 503);
    proxy.cut(false);
    gatepost.await_ready();
}
