//! What was acknowledged as revoked stays so: while others use it, after a server process is
//! killed, and at a process whose machine has another time.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::claims::Says;
use crate::support::flow::{authorize_path, sign_in, signed_in, userinfo};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1};
use crate::support::http::Browser;
use crate::support::offline::{CONF1, CONF2, Party, access, document, refresh};
use crate::support::waiting::{OverAtLast, SOON, await_that, until_served};

const OFFLINE: &str = "openid profile orders.read offline_access";

/// 32 users of a token, until they are told to stop. A use that began after `acknowledged` and
/// succeeded is a failure.
fn hold_under_use(servers: &[&Gatepost], token: &str, revoke: impl FnOnce()) {
    let (acknowledged, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let bearer = format!("Bearer {token}");
    thread::scope(|scope| {
        let users: Vec<_> = (0..32)
            .map(|number| {
                let (server, bearer) = (servers[number % servers.len()], bearer.as_str());
                let (acknowledged, done) = (&acknowledged, &done);
                scope.spawn(move || {
                    let mut connection = server.connect();
                    let (mut lived, mut refused) = (0, 0);
                    let mut revoked_at = Instant::now();
                    while !done.load(Ordering::SeqCst)
                        || refused == 0 && revoked_at.elapsed() < SOON
                    {
                        let after = acknowledged.load(Ordering::SeqCst);
                        if !after {
                            revoked_at = Instant::now();
                        }
                        let headers = [("Authorization", bearer)];
                        let answer = connection.send("GET", "/connect/userinfo", &headers, b"");
                        // Alive after its revocation was acknowledged.
                        assert!(!after || answer.status != 200);
                        lived += i32::from(answer.status == 200);
                        refused += i32::from(answer.status == 401);
                    }
                    (lived, refused)
                })
            })
            .collect();
        let at_last = OverAtLast(&done);
        thread::sleep(Duration::from_millis(200));
        revoke();
        acknowledged.store(true, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(200));
        drop(at_last);
        let seen: Vec<(i32, i32)> = users.into_iter().map(|user| user.join().unwrap()).collect();
        // Nobody used it before.
        assert!(seen.iter().any(|(lived, _)| *lived > 0));
        assert!(seen.iter().all(|(_, refused)| *refused > 0), "{seen:?}");
    });
}

/// Revokes a token while many use it: comes again when it is turned away, until it is acknowledged.
fn revoke(party: Party, gatepost: &Gatepost, token: &str) {
    let form = [("token", token)];
    let answer = until_served(|| party.post(&mut gatepost.connect(), "/connect/revocation", &form));
    assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
}

fn assert_dead(gatepost: &Gatepost, tokens: &Value) {
    assert_eq!(userinfo(gatepost, access(tokens)).status, 401);
    CONF2.assert_refresh_over(gatepost, refresh(tokens));
}

#[test]
fn under_use_and_after_the_server_process_was_killed() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let mut browser = signed_in(&gatepost);
    let alone = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let family = CONF2.tokens(&gatepost, &mut browser, OFFLINE);
    hold_under_use(&[&gatepost], access(&alone), || {
        revoke(CONF1, &gatepost, access(&alone))
    });
    hold_under_use(&[&gatepost], access(&family), || {
        revoke(CONF2, &gatepost, refresh(&family))
    });
    for _ in 0..3 {
        let replaced = CONF2.tokens(&gatepost, &mut browser, OFFLINE);
        let next = CONF2.refresh(&gatepost, refresh(&replaced)).json();
        assert_eq!(CONF2.refresh(&gatepost, refresh(&next)).status, 200);
        let tokens = CONF2.tokens(&gatepost, &mut browser, OFFLINE);
        let old = gatepost.server_processes();
        CONF2.revoke(&gatepost, refresh(&tokens));
        kill_at_once(old[0]);
        let deadline = Instant::now() + SOON;
        let is_old = |process: &u32| old.contains(process);
        while gatepost.server_processes().iter().any(is_old) || !gatepost.is_ready() {
            assert!(Instant::now() < deadline, "no new server process");
            thread::sleep(Duration::from_millis(20));
        }
        let again = CONF2.refresh(&gatepost, refresh(&replaced));
        again.assert_error(400, "invalid_grant");
        assert_dead(&gatepost, &tokens);
        assert_dead(&gatepost, &family);
        assert_eq!(userinfo(&gatepost, access(&alone)).status, 401);
    }
    let kept = CONF1.refresh(&gatepost, refresh(&alone));
    kept.assert_status_for("an access token took nothing along", 200);
}

fn kill_at_once(process: u32) {
    let kill = format!("kill -9 {process}");
    let killed = Command::new("sh").args(["-c", &kill]).status();
    assert!(killed.unwrap().success());
}

#[test]
fn at_processes_whose_machines_differ_by_five_seconds() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let mut servers = Vec::new();
    for seconds in [5, -5] {
        let mut other = gatepost.beside();
        let shift = other.private_file(&format!("shift{seconds}.c"), &clock_shifted_by(seconds));
        let library = shift.with_extension("so");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &shift]);
        assert!(compiler.status().unwrap().success());
        other.set("LD_PRELOAD", library.to_str().unwrap());
        other.serve();
        let off = (second_of_day(&other) - second_of_day(&gatepost) + 86_400) % 86_400;
        let is_so = (off - (seconds + 86_400) % 86_400).abs() <= 1;
        assert!(is_so, "its machine's clock is {off} s off, not {seconds}");
        servers.push(other);
    }
    let [ahead, behind] = [&servers[0], &servers[1]];
    for (issuer, revoker) in [(ahead, behind), (behind, ahead), (ahead, &gatepost)] {
        let mut browser = signed_in(&gatepost);
        let tokens = CONF2.tokens(issuer, &mut browser, OFFLINE);
        let next = CONF2.refresh(issuer, refresh(&tokens)).json();
        // All three tell time by the database, so the moment of issue is the same for all.
        let told = CONF2.introspect(revoker, access(&next));
        let issued = told["iat"].as_i64().unwrap();
        let off = issued - gatepost.database.now().seconds();
        assert!(off.abs() <= 2, "{told}");
        hold_under_use(&[issuer, revoker], access(&next), || {
            revoke(CONF2, revoker, refresh(&tokens))
        });
        for server in [&gatepost, ahead, behind] {
            assert_dead(server, &next);
        }
        let of_user = CONF2.tokens(issuer, &mut browser, OFFLINE);
        hold_under_use(&[issuer, revoker], access(&of_user), || {
            gatepost.run_well(&["user", "revoke", "alice"], "");
        });
        for server in [&gatepost, ahead, behind] {
            assert_dead(server, &of_user);
        }
    }
}

/// The house, and another process of it.
fn two_processes() -> (Gatepost, Gatepost) {
    let here = Gatepost::start_with(&document(), &[]);
    let mut there = here.beside();
    there.serve();
    (here, there)
}

/// The same browser at the other process.
fn at(other: &Gatepost, browser: &Browser) -> Browser {
    let mut same = other.browser();
    same.cookies.clone_from(&browser.cookies);
    same
}

#[test]
fn two_hundred_withdrawals_end_what_was_given_before_and_nothing_that_was_given_after() {
    let (here, there) = two_processes();
    let mut browser = signed_in(&here);
    let mut elsewhere = at(&there, &browser);
    let page = browser.get("/account");
    let mut tokens = CONF1.tokens(&there, &mut elsewhere, OFFLINE);
    for round in 0..200 {
        let in_flight = CONF1.code(&mut elsewhere, &[]);
        let withdrawn = browser.submit(&page, &[("decision", "withdraw"), ("client_id", "conf1")]);
        withdrawn.assert_says_for(round, "no longer has access");
        assert_eq!(userinfo(&there, access(&tokens)).status, 401, "{round}");
        assert_eq!(CONF1.redeem(&there, &in_flight).status, 400, "{round}");
        tokens = CONF1.tokens(&there, &mut elsewhere, OFFLINE);
        assert_eq!(userinfo(&here, access(&tokens)).status, 200, "{round}");
    }
    assert_eq!(CONF1.refresh(&here, refresh(&tokens)).status, 200);
}

const COMMANDS: [&[&str]; 3] = [
    &["user", "revoke", "alice"],
    &["client", "revoke", "conf1"],
    &["revoke", "--everything"],
];

/// Thirty times the command at one process; what was issued before at the other is dead, and
/// what is issued after lives.
fn thirty_times(command: &[&str]) {
    let (here, there) = two_processes();
    let mut browser = signed_in(&there);
    let ends_sessions = command[0] != "client";
    for round in 0..30 {
        let tokens = CONF1.tokens(&there, &mut browser, OFFLINE);
        let own = CONF1.of_itself(&there);
        let in_flight = CONF1.code(&mut browser, &[]);
        assert_eq!(userinfo(&here, access(&tokens)).status, 200, "{round}");
        CONF1.assert_active(&here, &own, &round.to_string());
        let mut revoking = acknowledged(&here, command);
        assert_eq!(userinfo(&there, access(&tokens)).status, 401, "{round}");
        assert_eq!(CONF1.redeem(&there, &in_flight).status, 400, "{round}");
        let told = CONF1.introspect(&there, &own);
        assert_eq!(told["active"], command[0] == "user", "{round}");
        let silent = browser.get(&authorize_path("conf1", RP1, &[("prompt", "none")]));
        let (silent, goes_on) = (silent.query(), !ends_sessions);
        assert_eq!(silent.contains_key("code"), goes_on, "{round}: {silent:?}");
        if ends_sessions {
            browser = signed_in(&there);
            let at_once = CONF1.tokens(&there, &mut browser, OFFLINE);
            assert_eq!(userinfo(&here, access(&at_once)).status, 200, "{round}");
        }
        // What a process issues by the registration that it holds is dead until it has heard.
        here.settle();
        there.settle();
        revoking.kill().unwrap();
        revoking.wait().unwrap();
    }
}

/// Runs a command until its first line, which tells what it has done. It may go on.
fn acknowledged(gatepost: &Gatepost, command: &[&str]) -> Child {
    let mut running = gatepost.command();
    running.args(command).stdin(Stdio::null());
    running.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = running.spawn().unwrap();
    let mut line = String::new();
    let output = running.stdout.as_mut().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    assert!(line.contains("over"), "{line:?}");
    running
}

#[test]
fn a_token_that_is_got_once_the_command_has_ended_lives_at_every_process() {
    let (here, there) = two_processes();
    let told = here.run(&["client", "revoke", "conf1"], "");
    let why = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.status.success(), "{why}");
    why.assert_says("has not heard");
    for _ in 0..3 {
        for command in &COMMANDS[1..] {
            let mut revoking = acknowledged(&here, command);
            let done_at = Instant::now();
            assert!(revoking.wait().unwrap().success());
            let took = done_at.elapsed();
            assert!(took >= Duration::from_millis(1_900), "{took:?}");
            // On a busy machine a process may need longer than that.
            here.settle();
            there.settle();
            for (process, other) in [(&here, &there), (&there, &here)] {
                let token = CONF1.of_itself(process);
                CONF1.assert_active(other, &token, command[0]);
            }
        }
    }
}

#[test]
fn thirty_revocations_of_each_kind_end_what_was_given_before_and_nothing_that_was_given_after() {
    thread::scope(|scope| {
        for command in COMMANDS {
            scope.spawn(|| thirty_times(command));
        }
    });
}

#[test]
fn who_proves_themselves_by_the_old_password_while_it_changes_does_not_get_the_session_that_stays()
{
    let (here, there) = two_processes();
    let mut browser = signed_in(&here);
    drop(signed_in(&here));
    let mut elsewhere = at(&there, &browser);
    let login = elsewhere.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    let page = browser.get("/account");
    let new = "quite another long password";
    let present = ("present_password", ALICE_PASSWORD);
    let change = [("decision", "change_password"), present];
    let form = [change, [("new_password", new), ("new_password_again", new)]].concat();
    let waiting = |count: i64| {
        let waits =
            "pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%UPDATE sessions%'";
        await_that("a statement that waits", SOON, || {
            here.database.count(waits) >= count
        });
    };
    thread::scope(|scope| {
        // The change has set everything of its own session, and waits to end the other one.
        let mut holder = here.database.client();
        let mut held = holder.transaction().unwrap();
        let other = "SELECT sid FROM sessions ORDER BY created_at DESC LIMIT 1 FOR UPDATE";
        held.query_one(other, &[]).unwrap();
        let changed = scope.spawn(|| browser.submit(&page, &form));
        waiting(1);
        let renewed = scope.spawn(|| sign_in(&mut elsewhere, &login, "alice", ALICE_PASSWORD));
        waiting(2);
        held.rollback().unwrap();
        let changed = changed.join().unwrap();
        changed.assert_says("Your password is changed");
        renewed.join().unwrap().assert_leads_to("/login?r=");
    });
    let silent = authorize_path("conf1", RP1, &[("prompt", "none")]);
    assert_eq!(elsewhere.get(&silent).query()["error"], "login_required");
    let case = "the session stays with whoever changed the password";
    browser.get(&silent).assert_carries_for(case, "code");
    let alive = "sessions WHERE ended_at IS NULL";
    assert_eq!(here.database.count(alive), 1);
}

/// By the machine's own clock, which the `Date` header goes by.
fn second_of_day(gatepost: &Gatepost) -> i32 {
    let answer = gatepost.get("/healthz");
    let time = answer.header("date").unwrap().split(' ').nth(4).unwrap();
    let parts = time.split(':').map(|part| part.parse::<i32>().unwrap());
    parts.fold(0, |sum, part| sum * 60 + part)
}

/// Machine time, so many seconds off, for whoever asks the C library.
fn clock_shifted_by(seconds: i32) -> String {
    format!(
        "#define _GNU_SOURCE\n#include <time.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n\
         int clock_gettime(clockid_t clock, struct timespec *now) {{\n\
         int result = syscall(SYS_clock_gettime, clock, now);\n\
         if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += {seconds};\n\
         return result;\n}}\n"
    )
}
