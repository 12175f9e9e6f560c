//! The audit log: what is in it, and that whatever is done to it shows. On the real binary.

use std::io::{BufRead, BufReader, Lines, Read};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use gatepost::protocol::words::instant::Day;
use gatepost::store::audit_events;
use gatepost::tool::statements::audit_list;
use serde_json::{Value, json};

use crate::admin_applications;
use crate::support::claims::Says;
use crate::support::flow::{
    VERIFIER, authorize_path, basic, code, redeem, redeem_as, redeem_with, sign_in, signed_in,
};
use crate::support::gatepost::{
    ALICE_PASSWORD, CONF1_SECRET, CONF2_SECRET, Gatepost, RP1, RP2, RPS, document,
};
use crate::support::http::Answer;
use crate::support::offline::CONF2;
use crate::support::postgres::TestDatabase;
use crate::support::tables::rows_of;
use crate::support::waiting::{SOON, all_at_once, await_that, until_served};

/// Exit code and what was printed.
fn verify(gatepost: &Gatepost, heads: Option<&str>) -> (i32, String) {
    let arguments = ["audit", "verify", "--heads", "-"];
    let arguments = &arguments[..if heads.is_some() { 4 } else { 2 }];
    let output = gatepost.run(arguments, heads.unwrap_or_default());
    let said = String::from_utf8([output.stdout, output.stderr].concat());
    (output.status.code().unwrap(), said.unwrap())
}

fn assert_whole(gatepost: &Gatepost, heads: Option<&str>) {
    let (exit_code, said) = verify(gatepost, heads);
    assert_eq!(exit_code, 0, "{said}");
}

fn count(gatepost: &Gatepost, condition: &str) -> i64 {
    gatepost
        .database
        .count(&format!("audit_events WHERE {condition}"))
}

#[track_caller]
fn assert_count(gatepost: &Gatepost, condition: &str, rows: i64) {
    assert_eq!(count(gatepost, condition), rows, "{condition}");
}

fn await_count(gatepost: &Gatepost, condition: &str, least: i64) {
    await_that(condition, SOON, || count(gatepost, condition) >= least);
}

/// A client that cannot prove itself.
fn fail(gatepost: &Gatepost, client_id: &str, further: &[(&str, &str)]) -> Answer {
    let wrong = basic(client_id, "wrong");
    let headers = [&[("Authorization", &*wrong)], further].concat();
    gatepost.post(
        "/connect/token",
        &headers,
        &[("grant_type", "client_credentials")],
    )
}

/// Failures that were only counted.
fn more_failures(gatepost: &Gatepost) -> i64 {
    let sql = "SELECT coalesce(sum((detail ->> 'count')::int8), 0)::int8 FROM audit_events WHERE event = 'more_failures'";
    gatepost.database.value(sql, &[])
}

fn list(gatepost: &Gatepost, arguments: &[&str]) -> Vec<Value> {
    let printed = gatepost.run_well(&[&["audit", "list", "--json"], arguments].concat(), "");
    serde_json::from_str(&printed).unwrap()
}

fn names(events: &[Value]) -> Vec<&str> {
    let names = events.iter().map(|event| &event["event"]);
    names.map(|name| name.as_str().unwrap()).collect()
}

/// Signs in, redeems codes, and redeems one by several hands at once.
fn load(gatepost: &Gatepost) {
    let mut browser = signed_in(gatepost);
    for _ in 0..5 {
        let code = code(&mut browser, &authorize_path("conf1", RP1, &[]));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| until_served(|| redeem(gatepost, &code)));
            }
        });
    }
}

/// Secrets of a whole day; none may be in the log.
fn day(gatepost: &Gatepost) -> Vec<String> {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf2", RP2, &[]));
    sign_in(&mut browser, &page, "MistypedName", "MistypedPassword");
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let page = browser.follow(answer);
    let decided = browser.decide(&page, "allow", &["profile"], true);
    decided.assert_status(303);
    let secret = code(&mut browser, &authorize_path("conf2", RP2, &[]));
    let tokens = redeem_as(gatepost, ("conf2", CONF2_SECRET), RP2, &secret).json();
    let token = |name: &str| tokens[name].as_str().unwrap().to_owned();
    let access_token = token("access_token");
    let form = [("token", &*access_token)];
    let revoked = CONF2.post(&mut gatepost.connect(), "/connect/revocation", &form);
    revoked.assert_status(200);
    let wrong = basic("conf1", "WrongSecret");
    let form = [("grant_type", "client_credentials")];
    let refused = gatepost.post("/connect/token", &[("Authorization", &wrong)], &form);
    refused.assert_status(401);
    let made = gatepost.run_line("client secret conf1").trim().to_owned();
    gatepost.run_well(&["user", "disable", "bob"], "");
    let typed = ["MistypedName", "MistypedPassword", "WrongSecret"];
    let known = [ALICE_PASSWORD, CONF1_SECRET, CONF2_SECRET];
    let sent = ["the-state", "the-nonce", VERIFIER];
    let fixed = [typed, known, sent].concat().into_iter().map(str::to_owned);
    let given = [secret, access_token, token("id_token"), made];
    fixed.chain(given).collect()
}

#[test]
fn a_busy_day_of_several_processes_is_told_whole_and_without_secrets() {
    let mut first = Gatepost::start();
    let mut second = first.beside();
    second.serve();
    let secrets = day(&first);
    thread::scope(|scope| {
        for gatepost in [&first, &first, &second, &second] {
            scope.spawn(|| load(gatepost));
        }
    });
    let failed = "event IN ('sign_in_failed', 'client_authentication_failed')";
    await_count(&first, failed, 2);
    assert_whole(&first, None);
    // Each code gave one grant, and each further redemption is told as what it was.
    assert_eq!(count(&first, "event = 'code_redeemed'"), 21);
    // The second ended what the first gave; the third had nothing left to end, and counts among the
    // failures.
    let replayed = "event = 'code_replayed' AND detail ->> 'reason' IS NULL";
    assert_count(&first, replayed, 20);
    let told = "signed_in consent_given access_token_revoked client_secret_made user_changed";
    for event in told.split(' ') {
        assert!(count(&first, &format!("event = '{event}'")) > 0, "{event}");
    }
    let opened = "event = 'chain_opened' AND seq = 0 AND detail ->> 'version' IS NOT NULL";
    assert!(count(&first, opened) >= 5);
    assert_count(&first, "event = 'chain_opened'", count(&first, opened));
    let rows = "SELECT string_agg(row_to_json(a)::text, ' ') FROM audit_events a";
    let rows: String = first.database.value(rows, &[]);
    let logs = [first.log(), second.log()].concat();
    for secret in &secrets {
        assert!(!logs.contains(secret) && !rows.contains(secret), "{secret}");
    }

    // Enough rows for one chain to be tampered with at several places, however they were spread
    // over the connections.
    (0..20)
        .take_while(|_| longest(&first).1 < 6)
        .for_each(|_| load(&first));
    first.stop();
    second.stop();
    let heads = [first.log(), second.log()].concat();
    assert!(heads.contains("audit heads: "), "{heads}");
    assert_whole(&first, Some(&heads));
    assert_eq!(verify(&first, Some("no heads here")).0, 1);
    tampering_is_found_and_named(&first, &heads);
}

/// The longest chain of a server and its last place.
fn longest(gatepost: &Gatepost) -> (String, i64) {
    let sql = "SELECT chain, max(seq) FROM audit_events WHERE chain NOT LIKE '%command%' GROUP BY 1 ORDER BY 2 DESC LIMIT 1";
    let row = gatepost.database.client().query_one(sql, &[]).unwrap();
    (row.get(0), row.get(1))
}

fn tampering_is_found_and_named(gatepost: &Gatepost, heads: &str) {
    gatepost.run_sql("CREATE TABLE kept AS SELECT * FROM audit_events");
    let (chain, last) = longest(gatepost);
    assert!(last >= 6, "{last}");
    let change =
        |set: &str| format!("UPDATE audit_events SET {set} WHERE chain = '{chain}' AND seq = 2");
    let copy = |seq: i64| {
        format!(
            "CREATE TEMP TABLE t AS SELECT * FROM audit_events WHERE chain = '{chain}' AND seq = 2;
             UPDATE t SET seq = {seq}; INSERT INTO audit_events SELECT * FROM t; DROP TABLE t"
        )
    };
    let swap = format!(
        "CREATE TEMP TABLE t AS SELECT * FROM audit_events WHERE chain = '{chain}' AND seq IN (2, 3);
         DELETE FROM audit_events WHERE chain = '{chain}' AND seq IN (2, 3);
         UPDATE t SET seq = 5 - seq; INSERT INTO audit_events SELECT * FROM t; DROP TABLE t"
    );
    let delete = |condition: &str| {
        format!("DELETE FROM audit_events WHERE chain = '{chain}' AND {condition}")
    };
    let appended = format!("row {} is not", last + 1);
    let found = [
        (change("sub = 'mallory'"), "row 2 is not"),
        (change("client_id = NULL"), "row 2 is not"),
        (change("at = at + interval '1 microsecond'"), "row 2 is not"),
        (change("event = 'other'"), "row 2 is not"),
        (change("detail = '{\"x\":1}'"), "row 2 is not"),
        (change("source = '192.0.2.77'"), "row 2 is not"),
        (change("request_id = NULL"), "row 2 is not"),
        (change("previous = '\\x00'"), "row 2 is not"),
        (change("hash = sha256('')"), "row 2 is not"),
        (change("day = day + 1"), "row 2 was removed"),
        (delete("seq = 2"), "row 2 was removed"),
        (delete("seq = 0"), "row 0 was removed"),
        (delete("seq IN (2, 3, 4)"), "rows 2 to 4 were removed"),
        (copy(last + 1), appended.as_str()),
        (copy(i64::MAX), "row 9223372036854775807 was put in"),
        (swap, "row 2 is not"),
    ];
    for (sql, expected) in &found {
        let (exit_code, said) = tampered(gatepost, sql, None);
        assert_eq!(exit_code, 1, "{sql}: {said}");
        said.assert_says_for(sql, &format!("chain {chain}: {expected}"));
    }
    // An end that was cut off, and a chain taken out whole, are missed by whoever kept the heads.
    let tail = format!("rows {} to {last} were removed", last - 1);
    for (sql, expected) in [
        (delete(&format!("seq >= {}", last - 1)), tail.as_str()),
        (delete("true"), "the whole chain was removed"),
    ] {
        assert_eq!(tampered(gatepost, &sql, None).0, 0, "{sql}");
        let (exit_code, said) = tampered(gatepost, &sql, Some(heads));
        assert_eq!(exit_code, 1, "{sql}: {said}");
        said.assert_says_for(&sql, &format!("chain {chain}: {expected}"));
    }
    // The server tells of commands, too, which have no log.
    let command = "SELECT chain FROM audit_events WHERE event = 'user_changed'";
    let command: String = gatepost.database.value(command, &[]);
    let removal = format!("DELETE FROM audit_events WHERE chain = '{command}'");
    let (_, said) = tampered(gatepost, &removal, Some(heads));
    said.assert_says(&format!("chain {command}: the whole chain was removed"));
    assert_whole(gatepost, Some(heads));
}

/// Does that to the log, verifies, and puts all back.
fn tampered(gatepost: &Gatepost, sql: &str, heads: Option<&str>) -> (i32, String) {
    gatepost.run_sql(sql);
    let verdict = verify(gatepost, heads);
    gatepost.run_sql("DELETE FROM audit_events; INSERT INTO audit_events SELECT * FROM kept");
    verdict
}

#[test]
fn each_deed_of_a_visit_is_told_once_with_whose_it_was_and_from_where() {
    let gatepost = Gatepost::start();
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf2", RP2, &[]));
    sign_in(&mut browser, &page, "alice", "wrong");
    await_count(&gatepost, "event = 'sign_in_failed'", 1);
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let page = browser.follow(answer);
    browser.decide(&page, "allow", &["profile"], true);
    let second = code(&mut browser, &authorize_path("conf2", RP2, &[]));
    let first = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    redeem_as(&gatepost, ("conf2", CONF2_SECRET), RP2, &second).assert_status(200);
    let wrong = "x".repeat(43);
    let wrong = [("code_verifier", &*wrong)];
    redeem_with(&gatepost, "conf1", &first, &wrong).assert_status(400);
    let page = browser.get("/logout");
    browser.submit(&page, &[("decision", "sign_out")]);

    // What opens a chain is told to whoever asks for it.
    let opens = |event: &Value| event["event"] == "chain_opened";
    let opened = list(&gatepost, &["--event", "chain_opened"]);
    assert!(opened.len() > 1 && opened.iter().all(opens), "{opened:?}");
    let mut events = list(&gatepost, &[]);
    assert!(
        !events.is_empty() && !events.iter().any(opens),
        "{events:?}"
    );
    // The newest comes last.
    events.retain(|event| !event["request_id"].is_null());
    let signed_in = events.iter().find(|event| event["event"] == "signed_in");
    let [sub, sid] = ["sub", "sid"].map(|name| &signed_in.unwrap()[name]);
    assert!(sub.is_string() && sid.is_string());
    let told = |event: &Value| {
        let is = |name: &str, value: &Value| {
            if event[name].is_null() {
                "nobody"
            } else if event[name] == *value {
                "hers"
            } else {
                "other"
            }
        };
        let words = |name: &str| event[name].as_str().unwrap_or("none");
        [
            words("event"),
            words("client_id"),
            is("sub", sub),
            is("sid", sid),
        ]
        .join(" ")
    };
    let expected = [
        "sign_in_failed conf2 hers nobody",
        "signed_in conf2 hers hers",
        "consent_given conf2 hers hers",
        "code_redeemed conf2 hers hers",
        "code_refused conf1 hers hers",
        "signed_out none hers hers",
    ];
    let seen: Vec<_> = events.iter().map(told).collect();
    assert_eq!(seen, expected, "{events:?}");
    let mut sources = events.iter().map(|event| &event["source"]);
    assert!(sources.all(|source| source == "127.0.0.1"), "{events:?}");
    let log = gatepost.log();
    for event in &events {
        let request_id = event["request_id"].as_str().unwrap();
        log.assert_says_for(event, &format!("id={request_id}"));
    }
}

#[test]
fn what_a_killed_process_leaves_behind_verifies() {
    let gatepost = Gatepost::start();
    let process = gatepost.server_processes()[0];
    thread::scope(|scope| {
        let loads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    // Requests that are cut short are expected.
                    let _ =
                        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| load(&gatepost)));
                })
            })
            .collect();
        await_count(&gatepost, "event = 'code_redeemed'", 3);
        let mut kill = Command::new("kill");
        let killed = kill.args(["-9", &process.to_string()]).status();
        assert!(killed.unwrap().success());
        loads.into_iter().for_each(|load| load.join().unwrap());
    });
    gatepost.await_ready();
    load(&gatepost);
    assert_whole(&gatepost, None);
}

#[test]
fn connections_lost_in_mid_statement_leave_chains_whole_and_one_event_for_each_deed() {
    let mut gatepost = Gatepost::start();
    thread::scope(|scope| {
        let loads: Vec<_> = (0..3)
            .map(|_| {
                // Requests that are cut short are expected.
                scope.spawn(|| {
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| load(&gatepost)))
                        .is_ok()
                })
            })
            .collect();
        while loads.iter().any(|load| !load.is_finished()) {
            gatepost.database.run(&format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE application_name = '{}' AND pid <> pg_backend_pid() AND state = 'active'",
                gatepost.database.schema
            ));
            thread::sleep(Duration::from_millis(20));
        }
        loads.into_iter().for_each(|load| drop(load.join()));
    });
    gatepost.stop();
    let grants = gatepost.database.count("grants");
    let told = "event IN ('code_redeemed', 'grant_refused', 'code_refused')";
    assert_count(&gatepost, told, grants);
    assert_whole(&gatepost, Some(&gatepost.log()));
}

#[test]
fn failures_are_told_ten_at_a_time_and_counted_beyond() {
    let roomy = [("GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE", "1000")];
    let mut gatepost = Gatepost::start_with(&document(), &roomy);
    let unknown = "a-secret-in-the-wrong-field";
    for client_id in ["conf1"; 30].into_iter().chain([unknown; 3]) {
        fail(&gatepost, client_id, &[]).assert_status(401);
    }
    gatepost.get(&authorize_path("conf1", RP1, &[]));
    gatepost.stop();
    let told = count(&gatepost, "event = 'client_authentication_failed'");
    // Two minutes at most.
    assert!((10..=20).contains(&told), "{told}");
    assert_eq!(told + more_failures(&gatepost), 33);
    let nowhere =
        "event = 'client_authentication_failed' AND (source IS NULL OR request_id IS NULL)";
    assert_count(&gatepost, nowhere, 0);
    assert_count(&gatepost, &format!("client_id = '{unknown}'"), 0);
    assert_whole(&gatepost, Some(&gatepost.log()));
}

#[test]
fn failures_from_everywhere_are_few_rows_and_hide_no_account_and_no_client() {
    let mut gatepost = Gatepost::start();
    // All of these shall fall into the same minute.
    gatepost.run_sql(
        "SELECT pg_sleep(61 - passed) FROM (SELECT extract(second FROM clock_timestamp())::float8 AS passed) AS minute
         WHERE passed > 15",
    );
    let fail = |number: usize, client_id: &str| {
        let address = format!("10.1.{}.{}", number / 250, number % 250);
        let answer = fail(&gatepost, client_id, &[("X-Forwarded-For", &address)]);
        answer.assert_status(401);
    };
    all_at_once(4, |part| {
        (0..200).for_each(|number| fail(part * 200 + number, "a-secret-in-the-wrong-field"));
    });
    (0..3).for_each(|number| fail(1_000 + number, "conf1"));
    for number in 0..3 {
        let mut browser = gatepost.browser_at(&format!("10.2.0.{number}"));
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        sign_in(&mut browser, &page, "alice", "wrong").assert_status(200);
    }
    gatepost.stop();
    let of_clients = "event = 'client_authentication_failed' AND client_id";
    assert_count(&gatepost, &format!("{of_clients} IS NULL"), 500);
    assert_count(&gatepost, &format!("{of_clients} = 'conf1'"), 1);
    let alice =
        "event = 'sign_in_failed' AND sub = (SELECT sub FROM users WHERE username = 'alice')";
    assert_count(&gatepost, alice, 1);
    assert_count(&gatepost, "event = 'sign_in_failed'", 1);
    for (event, number) in [("client_authentication_failed", 302), ("sign_in_failed", 2)] {
        let detail =
            format!("detail ->> 'event' = '{event}' AND (detail ->> 'count')::int8 = {number}");
        let not_told = format!("event = 'failures_not_told' AND {detail} AND source IS NULL");
        assert_count(&gatepost, &not_told, 1);
    }
    assert_count(&gatepost, "event = 'failures_not_told'", 2);
    assert_eq!(more_failures(&gatepost), 0);
    assert_whole(&gatepost, Some(&gatepost.log()));
}

/// A spent code is nobody's proof: whoever has one can send it without end.
#[test]
fn a_spent_code_that_comes_again_and_again_fills_no_log() {
    let mut gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let redeem = |code: &str, verifier: &str| {
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", "pub1"),
            ("redirect_uri", RPS),
            ("code", code),
            ("code_verifier", verifier),
        ];
        gatepost.post("/connect/token", &[], &form)
    };
    let burnt = "x".repeat(43);
    let codes = [(VERIFIER, 200), (&burnt, 400)].map(|(verifier, status)| {
        let code = code(&mut browser, &authorize_path("pub1", RPS, &[]));
        redeem(&code, verifier).assert_status(status);
        code
    });
    for _ in 0..40 {
        redeem(&codes[0], VERIFIER).assert_member("error", "invalid_grant");
        redeem(&codes[1], &burnt).assert_member("error", "invalid_grant");
    }
    gatepost.stop();
    // What ended something is told with the deed; of the rest ten a minute, in two minutes at most.
    assert_count(&gatepost, "event = 'code_replayed' AND sub IS NOT NULL", 1);
    let of_nobody = "event = 'code_replayed' AND sub IS NULL AND client_id = 'pub1'";
    let told = count(&gatepost, of_nobody);
    assert!((10..=20).contains(&told), "{told}");
    let named =
        "event = 'code_replayed' AND detail ->> 'grant' IS NOT NULL AND request_id IS NOT NULL";
    assert_count(&gatepost, named, told + 1);
    assert_eq!(told + more_failures(&gatepost), 79);
    assert_whole(&gatepost, Some(&gatepost.log()));
}

#[test]
fn heads_are_told_at_every_level_of_the_log_and_nothing_else_is() {
    let settings = [
        ("off", "text", false),
        ("error", "json", true),
        ("error", "text", true),
        ("off", "json", false),
    ];
    for (level, format, is_journal) in settings {
        let mut gatepost =
            Gatepost::prepare(&[("GATEPOST_LOG", level), ("GATEPOST_LOG_FORMAT", format)]);
        gatepost.apply(&document());
        let log = std::fs::metadata(gatepost.private_file("log", "")).unwrap();
        // systemd names the stream that is the journal.
        let stream = if is_journal { log.ino() } else { log.ino() + 1 };
        gatepost.set("JOURNAL_STREAM", &format!("{}:{stream}", log.dev()));
        gatepost.serve();
        signed_in(&gatepost);
        gatepost.stop();
        let log = gatepost.log();
        let begin = match (format, is_journal) {
            ("text", true) => "<7>INFO  audit heads: ",
            ("text", _) => "INFO  audit heads: ",
            (_, true) => r#"<7>{"level":"info","message":"audit heads: "#,
            (_, false) => r#"{"level":"info","message":"audit heads: "#,
        };
        let told = |line: &str| match (format, is_journal) {
            ("text", false) => line
                .split_once("Z ")
                .is_some_and(|(time, rest)| time.len() == 23 && rest.starts_with(begin)),
            _ => {
                line.starts_with(begin)
                    && line.contains(r#","time":"2"#) == (format == "json" && !is_journal)
            }
        };
        assert!(!log.is_empty(), "{level} {format}: {log}");
        assert!(log.lines().all(told), "{level} {format}: {log}");
        assert_whole(&gatepost, Some(&log));
        let signed_in = "SELECT chain FROM audit_events WHERE event = 'signed_in'";
        let chain: String = gatepost.database.value(signed_in, &[]);
        let removal =
            format!("DELETE FROM audit_events WHERE chain = '{chain}' AND event = 'signed_in'");
        gatepost.run_sql(&removal);
        let (exit_code, said) = verify(&gatepost, Some(&log));
        assert_eq!(exit_code, 1, "{level} {format}: {said}");
        said.assert_says_for(level, &format!("chain {chain}: row "));
    }
}

#[test]
fn midnight_ends_chains_and_the_next_ones_name_their_ends() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    load(&gatepost);
    gatepost.travel(86_400);
    load(&gatepost);
    assert_whole(&gatepost, None);
    let after = "SELECT detail -> 'after' ->> 'chain', (detail -> 'after' ->> 'seq')::int8 FROM audit_events
                 WHERE event = 'chain_opened' AND detail -> 'after' IS NOT NULL LIMIT 1";
    let row = gatepost.database.client().query_one(after, &[]).unwrap();
    let (old, seq): (String, i64) = (row.get(0), row.get(1));
    assert_count(&gatepost, &format!("chain = '{old}'"), seq + 1);
    // The minute began anew, too, so the heads are told.
    gatepost.await_log("the heads", |log| log.contains("audit heads: "));
    assert_whole(&gatepost, Some(&gatepost.log()));
    // The end of yesterday's chain is held without any heads.
    let end = format!("DELETE FROM audit_events WHERE chain = '{old}' AND seq = {seq}");
    gatepost.run_sql(&end);
    let (exit_code, said) = verify(&gatepost, None);
    assert_eq!(exit_code, 1, "{said}");
    said.assert_says(&format!("chain {old}: row {seq} was removed"));
    // Gone altogether it is missed, unless it was kept long enough.
    gatepost.run_sql(&format!("DELETE FROM audit_events WHERE chain = '{old}'"));
    assert_eq!(verify(&gatepost, None).0, 1);
    gatepost.database.travel(86_400 * 402);
    assert_eq!(verify(&gatepost, None).0, 0);
    // Nothing at all is not the same as nothing wrong.
    gatepost.database.run("DELETE FROM audit_events");
    let (exit_code, said) = verify(&gatepost, None);
    assert!(exit_code == 0, "{said}");
    said.assert_says("the audit log is empty: it was emptied, or");
    let (exit_code, said) = verify(&gatepost, Some("nothing of the kind"));
    assert!(exit_code == 1, "{said}");
    said.assert_says("no line of standard input tells audit heads: give --heads");
}

#[test]
fn events_are_listed_by_what_is_asked_and_followed_as_they_come() {
    let gatepost = Gatepost::start();
    load(&gatepost);
    gatepost.run_well(&["user", "disable", "bob"], "");
    let signed = list(&gatepost, &["--event", "signed_in"]);
    assert_eq!(names(&signed), ["signed_in"]);
    let sub = signed[0]["sub"].as_str().unwrap();
    assert_eq!(signed[0]["source"], json!("127.0.0.1"));
    let of_alice = list(&gatepost, &["--sub", sub, "--client", "conf1"]);
    assert!(of_alice.iter().all(|event| event["sub"] == json!(sub)));
    assert!(names(&of_alice).contains(&"code_replayed"));
    let change = list(&gatepost, &["--limit", "1"]);
    assert_eq!(names(&change), ["user_changed"]);
    let disabled = json!({"old": {"enabled": true}, "new": {"enabled": false}});
    assert_eq!(change[0]["detail"], disabled);
    let at = change[0]["at"].as_str().unwrap();
    assert!(list(&gatepost, &["--since", "2200-01-01"]).is_empty());
    assert!(list(&gatepost, &["--until", "2020-01-01T00:00:00Z"]).is_empty());
    assert!(list(&gatepost, &["--since", at, "--event", "user_changed"]).len() == 1);
    let by_name = list(&gatepost, &["--user", "ALICE", "--client", "conf1"]);
    assert_eq!(by_name, of_alice);
    for [wrong, told] in rows_of(
        r#"
        --since yesterday                     | --since must be a time
        --limit 0                             | --limit must be a number from 1
        --limit many                          | --limit must be a number from 1
        --event signed-in                     | is no name of an event; the nearest is "signed_in"
        --event=                              | --event is empty
        --client=                             | --client is empty
        --since 2030-01-01 --until 2030-01-01 | --since must be before --until
        --user alice --sub x                  | --user and --sub
        --limits 1                            | the nearest is --limit
        --day 2027-01-31                      | "--day" is not a flag; try --help
        "#,
    ) {
        let arguments: Vec<&str> = ["audit", "list"]
            .into_iter()
            .chain(wrong.split(' '))
            .collect();
        let output = gatepost.run(&arguments, "");
        assert_eq!(output.status.code(), Some(2), "{wrong}: {output:?}");
        String::from_utf8_lossy(&output.stderr).assert_says_for(wrong, told);
    }
    let nobody = gatepost.run(&["audit", "list", "--user", "nobody"], "");
    assert_eq!(nobody.status.code(), Some(1));
    let mistyped = gatepost.run(&["audit", "list", "--event", "sign_in"], "");
    assert!(mistyped.status.code() == Some(2));
    String::from_utf8_lossy(&mistyped.stderr).assert_says("signed_in");

    let mut follower = Follower::start(&gatepost, &["--event", "user_changed"]);
    assert_eq!(follower.next()["detail"]["new"]["enabled"], json!(false));
    gatepost.run_well(&["user", "enable", "bob"], "");
    assert_eq!(follower.next()["detail"]["new"]["enabled"], json!(true));
}

#[test]
fn what_nobody_could_have_asked_for_is_refused_with_what_is_near() {
    let gatepost = Gatepost::start();
    signed_in(&gatepost);
    let refused = |arguments: &[&str]| {
        let output = gatepost.run(&[&["audit", "list"], arguments].concat(), "");
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (exit_code, said) = refused(&["--event", "signed-in"]);
    assert!(exit_code == Some(2), "{said}");
    said.assert_says("the nearest is \"signed_in\"");
    said.assert_says("user_removed");
    let (exit_code, said) = refused(&["--sub", "nobody-of-that-name"]);
    assert!(exit_code == Some(1), "{said}");
    said.assert_says("nobody-of-that-name");
    // The subject of somebody who is gone is still one.
    let signed = list(&gatepost, &["--user", "alice", "--event", "signed_in"]);
    let sub = signed[0]["sub"].as_str().unwrap().to_owned();
    gatepost.run_well(&["user", "remove", "alice"], "");
    assert_eq!(
        names(&list(
            &gatepost,
            &["--sub", &sub, "--event", "user_removed"]
        )),
        ["user_removed"]
    );
    assert!(list(&gatepost, &["--sub", &sub, "--event", "keys_reset"]).is_empty());
    // Every event of the reference, and so of this database, can be asked for.
    let rows = include_str!("../../docs/reference/audit.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    let told: Vec<&str> = rows
        .filter_map(|row| Some(row.split_once('`')?.0))
        .collect();
    assert!(told.len() > 40, "{told:?}");
    for event in told {
        assert_eq!(refused(&["--event", event]).0, Some(0), "{event}");
    }
}

/// `audit list --follow`.
struct Follower {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(gatepost: &Gatepost, arguments: &[&str]) -> Follower {
        let mut command = gatepost.command();
        command
            .args(["audit", "list", "--follow", "--json"])
            .args(arguments);
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Follower { process, lines }
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Ends it; answers what it said on standard error.
    fn end(mut self) -> String {
        self.process.kill().unwrap();
        let mut said = String::new();
        let mut stderr = self.process.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A row dated now, of a chain of its own.
fn row(event: &str, detail: &str) -> String {
    format!(
        "INSERT INTO audit_events SELECT day, clock_timestamp(), 'c/{detail}', 0, previous, hash, '{event}', NULL, NULL, NULL,
         NULL, NULL, '{{\"by\":\"{detail}\"}}' FROM audit_events LIMIT 1"
    )
}

#[test]
fn events_of_a_long_transaction_are_followed_when_it_is_done_and_each_comes_once() {
    let gatepost = Gatepost::start();
    let mut client = gatepost.database.client();
    for number in 0..12 {
        gatepost.run_sql(&row("user_changed", &format!("before-{number}")));
    }
    let mut follower = Follower::start(&gatepost, &["--event", "user_changed", "--limit", "1"]);
    // What is there and beyond the limit does not come later.
    assert_eq!(follower.next()["detail"]["by"], "before-11");
    let mut transaction = client.transaction().unwrap();
    let long = row("user_changed", "long");
    transaction.batch_execute(&long).unwrap();
    // Beyond what an event may come late without a transaction that shows.
    for number in 0..9 {
        thread::sleep(Duration::from_secs(2));
        let by = format!("meanwhile-{number}");
        gatepost.run_sql(&row("user_changed", &by));
        assert_eq!(follower.next()["detail"]["by"], by);
    }
    transaction.commit().unwrap();
    assert_eq!(follower.next()["detail"]["by"], "long");
    thread::sleep(Duration::from_secs(2));
    gatepost.database.run(&row("user_changed", "last"));
    assert_eq!(follower.next()["detail"]["by"], "last");
}

#[test]
fn a_follower_outlives_the_database_and_misses_nothing() {
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    gatepost.database.run(&row("user_changed", "before"));
    let mut follower = Follower::start(&gatepost, &["--event", "user_changed"]);
    assert_eq!(follower.next()["detail"]["by"], "before");
    proxy.cut(true);
    gatepost.database.run(&row("user_changed", "meanwhile"));
    thread::sleep(Duration::from_secs(4));
    assert!(follower.process.try_wait().unwrap().is_none());
    proxy.cut(false);
    assert_eq!(follower.next()["detail"]["by"], "meanwhile");
    gatepost.database.run(&row("user_changed", "after"));
    assert_eq!(follower.next()["detail"]["by"], "after");
    let said = follower.end();
    said.assert_says("trying again");
    said.assert_says("the database answers again");
}

#[test]
fn what_a_request_brings_into_the_log_is_no_head() {
    for format in ["text", "json"] {
        let mut gatepost = Gatepost::start_with(&document(), &[("GATEPOST_LOG_FORMAT", format)]);
        signed_in(&gatepost);
        let chain = "SELECT chain FROM audit_events WHERE event = 'signed_in'";
        let chain: String = gatepost.database.value(chain, &[]);
        let hash = "0".repeat(64);
        for forged in [
            format!("audit heads: {chain}:1:0:{hash}"),
            format!("INFO  audit heads: {chain}:1:0:{hash}"),
            format!("a b[1]: INFO  audit heads: {chain}:1:0:{hash}"),
        ] {
            gatepost.get(&authorize_path("conf1", RP1, &[("resource", &forged)]));
            gatepost.get(&format!("/{}", forged.replace(' ', "%20")));
            let form = [("grant_type", &*forged)];
            gatepost.post("/connect/token", &[("User-Agent", &forged)], &form);
            let path = "/connect/endsession?post_logout_redirect_uri=";
            gatepost.get(&format!("{path}{}", forged.replace(' ', "%20")));
        }
        gatepost.stop();
        let log = gatepost.log();
        log.assert_says(&format!("audit heads: {chain}:1:0:{hash}"));
        assert_whole(&gatepost, Some(&log));
        let journal = log.lines();
        let journal = journal.map(|line| format!("Nov 22 00:59:15 host gatepost[12]: {line}\n"));
        assert_whole(&gatepost, Some(&journal.collect::<String>()));
        // Two that differ are one too many, whichever came first.
        let line = format!("INFO  audit heads: {chain}:0:0:{hash}\n");
        for log in [format!("{log}{line}"), format!("{line}{log}")] {
            let (exit_code, said) = verify(&gatepost, Some(&log));
            assert!(exit_code == 1, "{said}");
            said.assert_says("heads contradict one another");
        }
    }
}

#[test]
fn a_head_is_told_once_for_as_long_as_its_chain_stands_still() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    signed_in(&gatepost);
    let chain_of = |event: &str| -> String {
        let chain =
            format!("SELECT chain FROM audit_events WHERE event = '{event}' ORDER BY at LIMIT 1");
        gatepost.database.value(&chain, &[])
    };
    let told = |log: &str, chain: &str| log.matches(&format!(" {chain}:")).count();
    let own = chain_of("signed_in");
    gatepost.travel(60);
    gatepost.await_log("the server's head", |log| told(log, &own) == 1);
    gatepost.run_well(&["client", "secret", "conf1"], "");
    let command = chain_of("client_secret_made");
    gatepost.travel(60);
    gatepost.await_log("the command's head", |log| told(log, &command) == 1);
    assert_eq!(told(&gatepost.log(), &own), 1, "{}", gatepost.log());
    let lines = |log: &str| log.matches("audit heads: ").count();
    let before = lines(&gatepost.log());
    signed_in(&gatepost);
    gatepost.travel(60);
    gatepost.await_log("what has moved", |log| lines(log) > before);
    assert_eq!(told(&gatepost.log(), &command), 1, "{}", gatepost.log());
    assert_whole(&gatepost, Some(&gatepost.log()));
}

#[test]
fn commands_of_long_before_the_first_server_are_told() {
    let mut gatepost = Gatepost::prepare_over(TestDatabase::with_a_clock_of_its_own(), &[]);
    gatepost.apply(&document());
    gatepost.run_well(&["client", "secret", "conf1"], "");
    gatepost.database.travel(5 * 86_400);
    gatepost.serve();
    gatepost.stop();
    let heads = gatepost.log();
    assert_whole(&gatepost, Some(&heads));
    let chains = "SELECT DISTINCT chain FROM audit_events WHERE chain LIKE '%/command-%'";
    let chains = gatepost.database.client().query(chains, &[]).unwrap();
    assert!(chains.len() >= 3, "{}", chains.len());
    for chain in chains.iter().map(|row| row.get::<_, String>(0)) {
        gatepost.run_sql("CREATE TABLE kept AS SELECT * FROM audit_events");
        let removal = format!("DELETE FROM audit_events WHERE chain = '{chain}'");
        let (_, said) = tampered(&gatepost, &removal, Some(&heads));
        said.assert_says(&format!("chain {chain}: the whole chain was removed"));
        gatepost.database.run("DROP TABLE kept");
    }
}

#[test]
fn attempts_that_the_throttle_turns_away_are_counted() {
    let mut gatepost = Gatepost::start();
    let statuses: Vec<u16> = (0..35)
        .map(|_| fail(&gatepost, "conf1", &[]).status)
        .collect();
    let turned_away = statuses.iter().filter(|status| **status == 429).count();
    assert!(turned_away > 0, "{statuses:?}");
    gatepost.stop();
    let sum = |member: &str| -> i64 {
        let sum = format!(
            "SELECT coalesce(sum((detail ->> '{member}')::int8), 0)::int8 FROM audit_events WHERE event = 'more_failures'"
        );
        gatepost.database.value(&sum, &[])
    };
    assert_eq!(sum("turned_away"), turned_away as i64);
    let told = count(&gatepost, "event = 'client_authentication_failed'");
    assert_eq!(told + sum("count") + sum("turned_away"), 35);
}

#[test]
fn a_search_that_takes_longer_than_a_request_may_is_answered_all_the_same() {
    let gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&document());
    gatepost.database.run(
        "ALTER TABLE audit_events RENAME TO all_audit_events;
         CREATE VIEW audit_events AS
         SELECT * FROM all_audit_events WHERE (SELECT pg_sleep(4)) IS NOT NULL",
    );
    let listed = gatepost.run_well(&["audit", "list"], "");
    assert!(listed.contains("client_changed"), "{listed}");
    gatepost.run_well(&["explain", "request", "no-such-request"], "");
}

#[test]
fn events_go_on_the_day_after_their_last() {
    let mut gatepost = Gatepost::prepare(&[("GATEPOST_AUDIT_DAYS", "400")]);
    gatepost.apply(&document());
    gatepost.serve();
    signed_in(&gatepost);
    gatepost.stop();
    let all = count(&gatepost, "true");
    let [first, last] = ["min", "max"].map(|end| -> i32 {
        let day = format!("SELECT {end}(day) FROM audit_events");
        gatepost.database.value(&day, &[])
    });
    assert!((399..=400).contains(&(last - gatepost.database.today().0)));
    let store = gatepost.database.store();
    let removed = |before: i32| audit_events::remove_expired(&store, Day(before)).unwrap();
    assert_eq!(removed(first), 0);
    assert_eq!(removed(last + 1), u64::try_from(all).unwrap());
    assert_count(&gatepost, "true", 0);
}

#[test]
fn chains_that_were_removed_stay_so_when_the_next_cannot_be_and_none_is_cut() {
    let database = TestDatabase::migrated();
    let today = database.today();
    database.run(&format!(
        "INSERT INTO audit_events (day, at, chain, seq, previous, hash, event, detail)
         SELECT {}, now(), 'chain-' || chain, seq, 'x', 'x', 'refreshed', '{{}}'
         FROM generate_series(1, 3) AS chain, generate_series(0, 9) AS seq",
        today.0
    ));
    let mut holder = database.client();
    let mut holding = holder.transaction().unwrap();
    let middle = "SELECT FROM audit_events WHERE chain = 'chain-2' AND seq = 5 FOR UPDATE";
    holding.execute(middle, &[]).unwrap();
    let store = database.store();
    let tomorrow = Day(today.0 + 1);
    assert!(audit_events::remove_expired(&store, tomorrow).is_err());
    let rows =
        |number: i32| database.count(&format!("audit_events WHERE chain = 'chain-{number}'"));
    assert_eq!([1, 2, 3].map(rows), [0, 10, 10]);
    holding.rollback().unwrap();
    assert_eq!(audit_events::remove_expired(&store, tomorrow).unwrap(), 20);
}

#[test]
fn followers_wait_for_whoever_writes_events_and_not_for_whoever_removes_old_ones() {
    let database = TestDatabase::migrated();
    let today = database.today();
    database.run(&format!(
        "INSERT INTO audit_events (day, at, chain, seq, previous, hash, event, detail)
         VALUES ({}, now(), 'old', 0, 'x', 'x', 'refreshed', '{{}}')",
        today.0
    ));
    let mut holder = database.client();
    let pid = holder.query_one("SELECT pg_backend_pid()", &[]).unwrap();
    let mut holding = holder.transaction().unwrap();
    let old = "SELECT FROM audit_events FOR UPDATE";
    holding.execute(old, &[]).unwrap();
    let store = database.store();
    let under_way = || audit_list::under_way(&store).unwrap();
    let tomorrow = Day(today.0 + 1);
    let remove = || audit_events::remove_expired(&store, tomorrow).is_ok();
    thread::scope(|scope| {
        // Each waits for the lock for a second.
        scope.spawn(|| (0..10).any(|_| remove()));
        await_that("removal of the old event", Duration::from_secs(10), || {
            !database.waiting_behind(pid.get(0)).is_empty()
        });
        assert_eq!(under_way(), Duration::ZERO, "a removal");
        let mut writer = database.client();
        let mut writing = writer.transaction().unwrap();
        writing.batch_execute(&row("user_changed", "new")).unwrap();
        assert!(under_way() > Duration::ZERO, "a writer");
        drop(writing);
        holding.rollback().unwrap();
    });
}

#[test]
fn changes_of_users_and_keys_are_told_with_old_and_new_and_without_what_says_who_somebody_is() {
    let gatepost = Gatepost::start();
    let claims = r#"{"role":["admin"],"email":"carol@example.com","name":"Carol Kay"}"#;
    let add = ["user", "add", "carol", "--claims", claims, "--no-password"];
    gatepost.run_well(&add, "");
    gatepost.run_well(&["user", "remove", "carol"], "");
    let dave = |role: &str, email: &str| {
        let user = json!({"username": "dave", "claims": {"role": role, "email": email}});
        gatepost.apply(&json!({"users": [user]}));
    };
    dave("editor", "dave@example.com");
    dave("auditor", "dave@example.org");
    let held = json!({
        "tenant": null, "enabled": true, "has_password": false, "valid_until": null,
        "claims": {"role": ["admin"], "email": "(withheld)", "name": "(withheld)"},
    });
    let of = |event: &str| list(&gatepost, &["--event", event]).pop().unwrap()["detail"].clone();
    let added = list(&gatepost, &["--event", "user_added"]);
    let mut details = added.iter().map(|event| &event["detail"]);
    let carol = details.find(|detail| detail["username"] == "carol");
    assert_eq!(carol, Some(&json!({"username": "carol", "new": held})));
    assert_eq!(
        of("user_removed"),
        json!({"username": "carol", "old": held})
    );
    let claims = json!({"role": "editor", "email": "(withheld)"});
    assert_eq!(of("user_added")["new"]["claims"], claims);
    let fields = json!([
        {"key": "claims.email", "old": "(withheld)", "new": "(withheld)"},
        {"key": "claims.role", "old": "editor", "new": "auditor"},
    ]);
    assert_eq!(of("user_changed")["fields"], fields);
    for personal in ["carol@", "Carol Kay", "dave@"] {
        assert_count(&gatepost, &format!("detail::text LIKE '%{personal}%'"), 0);
    }
    gatepost.run_line("client secret conf1 --replace --description second");
    let secret = of("client_secret_made");
    let second = json!({"description": "second", "expires_at": null});
    assert_eq!(secret["new"], second);
    assert!(!secret["old"].as_array().unwrap().is_empty());
    gatepost.run_well(&["key", "rotate", "--now"], "");
    let rotated = of("signing_key_rotated");
    assert!(rotated["new"]["activates_at"].is_string(), "{rotated}");
    assert!(rotated["replaced"]["erased"] == json!(true), "{rotated}");
    let [old, new] = ["old", "new"].map(|when| &rotated["replaced"][when]["retires_at"]);
    assert_ne!(old, new);
    let kid = rotated["kid"].as_str().unwrap();
    gatepost.run_well(&["key", "retire", kid], "");
    // Another took over before it went.
    let before = &of("signing_key_rotated")["replaced"]["new"];
    assert_eq!(&of("signing_key_retired")["old"], before);
}

/// As the page at `/admin` tells it.
#[test]
fn administrators_read_what_was_turned_away_and_who_deleted_a_role() {
    let gatepost = admin_applications::start();
    let deleted = r#"{"by":"admin","admin":"sub|boss","kind":"role","name":"books"}"#;
    for (event, detail) in [
        ("more_failures", r#"{"count":0,"turned_away":30}"#),
        ("registration_removed", deleted),
    ] {
        gatepost.run_sql(&format!(
            "INSERT INTO audit_events SELECT day, clock_timestamp(), '{event}', 0, previous, hash,
             '{event}', NULL, NULL, NULL, NULL, NULL, '{detail}' FROM audit_events LIMIT 1"
        ));
    }
    let log = admin_applications::page(&mut admin_applications::boss(&gatepost), "/admin/audit");
    for sentence in [
        "<bdi>0</bdi> further failures from one network, and <bdi>30</bdi> attempts turned away</p>",
        "<bdi>boss</bdi></a> deleted the role <bdi>books</bdi></p>",
    ] {
        log.assert_says(sentence);
    }
}
