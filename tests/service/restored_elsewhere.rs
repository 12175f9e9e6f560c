//! A backup from a database whose small letters libc makes, restored into one where ICU makes them:
//! there Σ at the end of a word becomes ς, and İ becomes i with a dot of its own.

use std::process::Output;

use serde_json::{Value, json};

use crate::restored::restored_into;
use crate::support::flow::{authorize_path, sign_in};
use crate::support::gatepost::{BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::postgres::TestDatabase;

const BY_ADDRESS: [(&str, &str); 1] = [("GATEPOST_SIGN_IN_WITH", "username,email")];

fn registered(names: &[&str]) -> Value {
    let mut registered = document();
    let users = registered["users"].as_array_mut().unwrap();
    users.retain(|user| user["username"] == "alice");
    for name in names {
        users.push(json!({
            "username": name, "password": BOB_PASSWORD, "sub": sub(name),
            "claims": {"email": format!("{name}@xn--hxajbheg2az3al.example"), "email_verified": true},
        }));
    }
    registered
}

fn sub(name: &str) -> &'static str {
    match name {
        "ΣΑΣ" => "capitals",
        "σας" => "small",
        _ => "dotted",
    }
}

/// That registration from a libc database, in an ICU database.
fn moved(registered: &Value) -> Gatepost {
    moved_from(std::slice::from_ref(registered))
}

/// The same of several, applied one after the other.
fn moved_from(registered: &[Value]) -> Gatepost {
    let before = Gatepost::prepare(&BY_ADDRESS);
    for one in registered {
        before.apply(one);
    }
    let copy = restored_into(TestDatabase::empty_under_icu(), &before.database);
    let mut after = Gatepost::unprepared(copy, &BY_ADDRESS);
    after.base_url.clone_from(&before.base_url);
    after.set("GATEPOST_BASE_URL", &before.base_url);
    after
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Ends with that code, and says so.
fn assert_ends(gatepost: &Gatepost, arguments: &[&str], code: i32, says: &[&str]) {
    let output = gatepost.run(arguments, "{}\n");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for one in says {
        assert!(said.contains(one), "{arguments:?}: {said}");
    }
}

fn lets_in(gatepost: &Gatepost, typed: &str) -> bool {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(&mut browser, &page, typed, BOB_PASSWORD).status == 303
}

/// Keys and names of all users.
fn keys(gatepost: &Gatepost) -> Vec<(String, String)> {
    let sql = "SELECT username_key, username FROM users ORDER BY sub";
    let rows = gatepost.database.client().query(sql, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn nobody_is_served_or_changed_until_migrate_has_made_the_keys_of_all_names_anew() {
    let registered = registered(&["ΣΑΣ", "İsmail"]);
    let mut gatepost = moved(&registered);
    let before = keys(&gatepost);
    for arguments in [
        &["user", "add", "carol", "--no-password"][..],
        &["user", "show", "ΣΑΣ"],
        &["user", "disable", "alice"],
        &["user", "set", "alice", "nickname=Al"],
        &["user", "invite", "alice"],
        &["apply", "-"],
        &["plan", "-"],
        &["session", "list", "--user", "ΣΑΣ"],
        &["audit", "list", "--user", "ΣΑΣ"],
        &["migrate", "--check"],
        &["doctor"],
    ] {
        assert_ends(&gatepost, arguments, 1, &["gatepost migrate"]);
    }
    assert_ends(&gatepost, &["serve"], 78, &["run `gatepost migrate`"]);
    assert_eq!(keys(&gatepost), before);
    for arguments in [&["user", "list"][..], &["export"], &["audit", "list"]] {
        assert_ends(&gatepost, arguments, 0, &[]);
    }

    let told = gatepost.run_well(&["migrate"], "");
    assert!(told.contains("the keys of 2 user names"), "{told}");
    let told = gatepost.run_well(&["migrate"], "");
    assert!(!told.contains("the keys"), "{told}");
    gatepost.run_well(&["migrate", "--check"], "");
    gatepost.serve();
    for typed in ["ΣΑΣ", "σας", "İsmail", "ΣΑΣ@xn--hxajbheg2az3al.example"] {
        assert!(lets_in(&gatepost, typed), "{typed}");
    }
    let planned = gatepost.run_well(&["plan", "-"], &registered.to_string());
    assert!(!planned.contains("İsmail"), "{planned}");
    assert_eq!(gatepost.database.count("users"), 3);
}

#[test]
fn a_database_of_a_build_that_kept_nothing_is_keyed_anew_too() {
    let gatepost = moved(&registered(&["ΣΑΣ"]));
    gatepost.database.run("DELETE FROM lowering");
    assert_ends(
        &gatepost,
        &["user", "show", "ΣΑΣ"],
        1,
        &["gatepost migrate"],
    );
    gatepost.run_well(&["migrate"], "");
    gatepost.run_well(&["user", "show", "ΣΑΣ"], "");
}

#[test]
fn names_that_become_one_are_told_and_nothing_changes_until_one_is_renamed() {
    // Each document for itself: in one document they would be the same by Gatepost's own letters.
    let gatepost = moved_from(&[registered(&["ΣΑΣ", "İsmail"]), registered(&["σας"])]);
    let before = keys(&gatepost);
    let both = ["capitals (ΣΑΣ)", "small (σας)", "migrate --rename"];
    assert_ends(&gatepost, &["migrate"], 1, &both);
    for (rename, code) in [
        ("small", 2),
        ("nobody=Sas", 1),
        ("small=", 1),
        ("small=alice", 1),
        ("dotted=ismail", 1),
    ] {
        assert_ends(&gatepost, &["migrate", "--rename", rename], code, &[]);
    }
    assert_eq!(keys(&gatepost), before);
    assert_ends(
        &gatepost,
        &["user", "show", "alice"],
        1,
        &["gatepost migrate"],
    );

    gatepost.run_well(&["migrate", "--rename", "small=Sas"], "");
    for name in ["sas", "ΣΑΣ", "İsmail"] {
        gatepost.run_well(&["user", "show", name], "");
    }
    let events = gatepost.run_well(&["audit", "list", "--event", "user_changed", "--json"], "");
    assert!(events.contains("σας") && events.contains("Sas"), "{events}");
    let needless = ["migrate", "--rename", "small=Sasha"];
    assert_ends(&gatepost, &needless, 1, &["--rename"]);
}
