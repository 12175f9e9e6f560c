//! What may become a password: the least length of the installation, and its list of known ones,
//! wherever a password is set.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::claims::Says;
use crate::support::flow::signed_in;
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, document};
use crate::support::http::{Answer, Browser};

const SHORT: &str = "thirteen char";
const KNOWN: &str = "a password that many people know";
const GOOD: &str = "a password that nobody else has";

/// SHA-1 of [`KNOWN`], by `sha1sum`.
const DIGEST: &str = "0E0741CFC67AB9CB087CC6BBF8330DEDD650C1BE";

/// A list with that digest among others, sorted.
fn list() -> String {
    let other = |index: u32| {
        let digest = Sha256::digest(index.to_be_bytes());
        let digits: String = digest
            .iter()
            .take(20)
            .map(|byte| format!("{byte:02X}"))
            .collect();
        format!("{digits}:{index}\r\n")
    };
    let mut lines: Vec<String> = (0..500).map(other).collect();
    lines.push(format!("{DIGEST}:7\r\n"));
    lines.sort();
    lines.concat()
}

fn start() -> (Gatepost, std::path::PathBuf) {
    let mut gatepost = Gatepost::prepare(&[("GATEPOST_PASSWORD_MIN_LENGTH", "14")]);
    let path = gatepost.private_file("known.txt", &list());
    gatepost.set("GATEPOST_PASSWORD_BLOCKLIST_FILE", path.to_str().unwrap());
    gatepost.apply(&document());
    gatepost.serve();
    (gatepost, path)
}

fn change(browser: &mut Browser, page: &Answer, new: &str) -> Answer {
    let form = [
        ("decision", "change_password"),
        ("present_password", ALICE_PASSWORD),
        ("new_password", new),
        ("new_password_again", new),
    ];
    browser.submit(page, &form)
}

/// Why a command refuses that password; empty where it takes it.
fn refusal(gatepost: &Gatepost, arguments: &[&str], input: &str) -> String {
    let output = gatepost.run(arguments, input);
    match output.status.success() {
        true => String::new(),
        false => String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn the_least_length_and_the_list_hold_wherever_a_password_is_set() {
    let (gatepost, _) = start();
    let mut browser = signed_in(&gatepost);
    let page = browser.visit("/account");
    page.assert_says("At least 14 characters");
    for (password, on_page, in_shell) in [
        (
            SHORT,
            "at least 14 characters",
            "GATEPOST_PASSWORD_MIN_LENGTH",
        ),
        (
            KNOWN,
            "Many people use this password",
            "most guessed passwords",
        ),
    ] {
        let answer = change(&mut browser, &page, password);
        assert!(answer.text().contains(on_page), "{}", answer.text());
        let link = gatepost.run_well(&["user", "reset", "bob"], "");
        let mut other = gatepost.browser();
        let opened = other.get(link.trim());
        let form = other.follow(opened);
        let sent = [("new_password", password), ("new_password_again", password)];
        let answer = other.submit(&form, &sent);
        assert!(answer.text().contains(on_page), "{}", answer.text());

        let described =
            |name: &str| -> Value { json!({"users": [{"username": name, "password": password}]}) };
        for (arguments, input) in [
            (&["user", "add", "carol"][..], password.to_owned()),
            (&["user", "password", "bob"], password.to_owned()),
            (&["apply", "-"], described("carol").to_string()),
        ] {
            let told = refusal(&gatepost, arguments, &input);
            assert!(told.contains(in_shell), "{arguments:?}: {told}");
            assert!(!told.contains(password), "{told}");
        }
        // The password of somebody who is there counts for nothing, and stops nothing.
        let told = refusal(&gatepost, &["apply", "-"], &described("bob").to_string());
        assert_eq!(told, "");
    }
    assert_eq!(refusal(&gatepost, &["user", "add", "carol"], GOOD), "");
    change(&mut browser, &page, GOOD).assert_says("Your password");
}

/// Nobody must be kept from changing a password that a thief may have.
#[test]
fn a_list_that_is_gone_or_not_sorted_takes_nothing_away_and_is_told() {
    let (gatepost, path) = start();
    std::fs::remove_file(&path).unwrap();
    let mut browser = signed_in(&gatepost);
    let page = browser.visit("/account");
    let answer = change(&mut browser, &page, KNOWN);
    assert!(answer.text().contains("is changed"), "{}", answer.text());
    gatepost.await_log("the list is told", |log| {
        log.contains("WARN") && log.contains("taken without a look at")
    });
    let told = String::from_utf8(gatepost.run(&["doctor"], "").stdout).unwrap();
    told.assert_says("new passwords are taken without a look at");
}
