//! Those whom nobody knows leave nothing behind: no row, and no memory held for them.

use std::collections::BTreeMap;
use std::thread;

use crate::support::flow::{authorize_path, signed_in};
use crate::support::gatepost::{Gatepost, RP1, RP2, RPS, document};
use crate::support::http::Connection;

const REQUESTS: usize = 10_000;
const PAGES: usize = 10_000;
const THREADS: usize = 6;
const MOST_GROWTH_KIB: u64 = 8 * 1_024;

fn rows(gatepost: &Gatepost) -> BTreeMap<String, i64> {
    let mut client = gatepost.database.client();
    let tables = "SELECT relname::text FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind IN ('r', 'p')";
    let tables = client.query(tables, &[&gatepost.database.schema]).unwrap();
    let tables: Vec<String> = tables.iter().map(|row| row.get(0)).collect();
    assert!(tables.len() > 20, "{tables:?}");
    let mut count = |table: &String| {
        client
            .query_one(&format!("SELECT count(*) FROM {table}"), &[])
            .unwrap()
            .get(0)
    };
    tables
        .iter()
        .map(|table| (table.clone(), count(table)))
        .collect()
}

fn resident_kib(gatepost: &Gatepost) -> u64 {
    memory_kib(gatepost, "VmRSS:")
}

/// Memory of the only server process, KiB: now, `VmRSS:`, or the most it ever was, `VmHWM:`.
pub fn memory_kib(gatepost: &Gatepost, name: &str) -> u64 {
    let processes = gatepost.server_processes();
    assert_eq!(processes.len(), 1, "{processes:?}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", processes[0])).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn session_cookie(gatepost: &Gatepost) -> String {
    let cookies = signed_in(gatepost).cookies;
    cookies
        .into_keys()
        .find(|name| name.contains("session"))
        .unwrap()
}

/// The `number`th request of somebody who never comes back: every parameter in every mood.
fn request(number: usize) -> String {
    let acr_values = [
        "idp:local",
        "idp:corp",
        "idp:nobody",
        "tenant:acme",
        "tenant:",
        "1",
        "idp:local 1 2 3",
        "urn:x idp:",
    ];
    let acr = match number % 12 {
        kind @ 0..=7 => acr_values[kind].to_owned(),
        8 => format!("idp:{number}"),
        9 => format!("tenant:t{number}"),
        10 => format!("idp:local tenant:acme level{number}"),
        _ => String::new(),
    };
    let locales = [
        "de",
        "en-GB fr",
        "x-klingon",
        "de-CH-1996 it",
        "",
        "\u{1F600}",
    ];
    let (client, redirect_uri) = [("conf1", RP1), ("conf2", RP2), ("pub1", RPS)][number % 3];
    let hint = format!("person{number}@example.com");
    let (state, nonce) = (format!("state-{number}"), format!("nonce-{number}"));
    let prompt = [
        "",
        "",
        "none",
        "login",
        "consent",
        "select_account",
        "login consent",
        "nonsense",
    ][number % 8];
    let max_age = ["", "0", "3600", "999999999999999999", "-1"][number % 5];
    let mode = ["", "form_post", "fragment", "query"][number % 4];
    let token_hint = if number.is_multiple_of(16) {
        "e30.e30.AAAA"
    } else {
        ""
    };
    let changes = [
        ("acr_values", acr.as_str()),
        ("ui_locales", locales[number % locales.len()]),
        (
            "login_hint",
            if number.is_multiple_of(3) { "" } else { &hint },
        ),
        ("state", &state),
        ("nonce", &nonce),
        ("prompt", prompt),
        ("max_age", max_age),
        ("response_mode", mode),
        ("id_token_hint", token_hint),
        (
            "claims",
            if number.is_multiple_of(7) {
                r#"{"userinfo":{"email":{"essential":true}}}"#
            } else {
                ""
            },
        ),
    ];
    // One in twenty does not even name a client.
    let unknown = format!("nobody-{number}");
    let client = if number % 20 == 19 { &unknown } else { client };
    authorize_path(client, redirect_uri, &changes)
}

/// Sends it, as a post now and then; answers what came and where it pointed.
fn send(connection: &mut Connection, session_cookie: &str, number: usize) -> (u16, Option<String>) {
    let path = request(number);
    // Well-formed, and nobody's: the database is asked.
    let forged = format!("{session_cookie}={}", "AABQ".repeat(12));
    let answer = if number % 5 == 4 {
        connection.post_raw(
            "/connect/authorize",
            &[],
            path.split_once('?').unwrap().1.as_bytes(),
        )
    } else {
        connection.send("GET", &path, &[("Cookie", &forged)], b"")
    };
    assert!(
        matches!(answer.status, 200 | 303 | 400),
        "{path}: {} {}",
        answer.status,
        answer.text()
    );
    (answer.status, answer.header("location").map(str::to_owned))
}

/// Does `work` for every number below `count`, on kept-alive connections from several threads.
fn crowd(gatepost: &Gatepost, count: usize, work: impl Fn(&mut Connection, usize) + Sync) {
    thread::scope(|scope| {
        for first in 0..THREADS {
            let work = &work;
            scope.spawn(move || {
                let mut connection = gatepost.connect();
                (first..count)
                    .step_by(THREADS)
                    .for_each(|number| work(&mut connection, number));
            });
        }
    });
}

#[test]
fn ten_thousand_requests_and_as_many_pages_leave_no_row_and_no_memory() {
    let mut document = document();
    document["tenants"] = serde_json::json!([{"name": "acme", "display_name": "ACME Ltd"}]);
    let gatepost = Gatepost::start_with(&document, &[]);
    // Every thread, connection and cache has been used once.
    let session_cookie = session_cookie(&gatepost);
    crowd(&gatepost, 600, |connection, number| {
        drop(send(connection, &session_cookie, number))
    });
    let page = gatepost
        .browser()
        .get(&authorize_path("conf1", RP1, &[]))
        .location()
        .to_owned();
    let page = page
        .strip_prefix(&gatepost.base_url)
        .unwrap_or(&page)
        .to_owned();
    crowd(&gatepost, 300, |connection, _| {
        assert_eq!(connection.send("GET", &page, &[], b"").status, 200)
    });
    let (rows_before, memory_before) = (rows(&gatepost), resident_kib(&gatepost));

    let seen = std::sync::Mutex::new(BTreeMap::<(u16, bool), usize>::new());
    crowd(&gatepost, REQUESTS, |connection, number| {
        let (status, location) = send(connection, &session_cookie, number);
        let to_page = location.is_some_and(|location| location.contains("/login?r="));
        *seen.lock().unwrap().entry((status, to_page)).or_default() += 1;
    });
    let seen = seen.into_inner().unwrap();
    assert_eq!(rows(&gatepost), rows_before);
    let memory = resident_kib(&gatepost);
    println!("{seen:?}; resident {memory_before} -> {memory} KiB");
    assert!(
        memory < memory_before + MOST_GROWTH_KIB,
        "{memory_before} -> {memory} KiB"
    );
    // The crowd was mixed: sign-in pages, errors to the client, forms, refusals.
    assert!(
        seen.get(&(303, true))
            .is_some_and(|count| *count > REQUESTS / 8),
        "{seen:?}"
    );
    for kind in [(303, false), (200, false), (400, false)] {
        assert!(
            seen.get(&kind).is_some_and(|count| *count > 100),
            "{seen:?}"
        );
    }

    let memory_before = memory;
    crowd(&gatepost, PAGES, |connection, _| {
        assert_eq!(connection.send("GET", &page, &[], b"").status, 200)
    });
    assert_eq!(rows(&gatepost), rows_before);
    let memory = resident_kib(&gatepost);
    println!("pages: resident {memory_before} -> {memory} KiB");
    assert!(
        memory < memory_before + MOST_GROWTH_KIB,
        "{memory_before} -> {memory} KiB"
    );
}
