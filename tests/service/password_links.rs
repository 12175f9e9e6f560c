//! `gatepost user invite` and `user reset`: links by which people set their password.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{authorize_path, lets_in, sign_in, signed_in};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};

const NEW: &str = "a password of her own choosing";

/// With carol, who has no password.
fn start() -> Gatepost {
    let mut registered = document();
    registered["users"]
        .as_array_mut()
        .unwrap()
        .push(json!({"username": "carol"}));
    Gatepost::start_with(&registered, &[])
}

fn link(gatepost: &Gatepost, arguments: &[&str]) -> String {
    let printed = gatepost.run_well(arguments, "");
    let link = printed.trim().to_owned();
    assert!(
        link.starts_with(&format!("{}/account/link?l=gpl_", gatepost.base_url)),
        "{printed}"
    );
    link
}

fn set_password(browser: &mut Browser, page: &Answer, new: &str, again: &str) -> Answer {
    browser.submit(
        page,
        &[("new_password", new), ("new_password_again", again)],
    )
}

fn is_over(answer: &Answer, what: &str) {
    answer.assert_error_page(400, "GP1810", what);
}

fn events(gatepost: &Gatepost, name: &str) -> i64 {
    let counted = "SELECT count(*) FROM audit_events WHERE event = $1 AND sub IS NOT NULL";
    gatepost.database.value(counted, &[&name])
}

#[test]
fn whoever_is_invited_sets_a_password_once_and_signs_in() {
    let gatepost = start();
    let link = link(&gatepost, &["user", "invite", "carol"]);
    // A scanner's looks change nothing, and leave nothing behind.
    for method in ["GET", "HEAD", "GET"] {
        let answer = gatepost.send(
            method,
            link.strip_prefix(gatepost.origin()).unwrap(),
            &[],
            b"",
        );
        answer.assert_status_for(method, 303);
        answer.assert_header_for(method, "referrer-policy", "no-referrer");
        let (_, key) = link.split_once("?l=").unwrap();
        assert!(!answer.location().contains(key), "{}", answer.location());
    }
    let mut browser = gatepost.browser();
    let opened = browser.get(&link);
    let page = browser.follow(opened.clone());
    page.assert_says("Choose your password");
    page.assert_says("carol");
    // The page begins in its first field.
    assert_eq!(page.text().matches(" autofocus").count(), 1);
    // The address of the form is good in this browser alone.
    is_over(
        &gatepost.browser().get(opened.location()),
        "another browser",
    );
    for (new, again, told) in [
        ("short", "short", "8 characters"),
        ("password1", "password1", "Many people use this password"),
        (NEW, "another one than that", "not the same"),
        (NEW, "", "not the same"),
    ] {
        let answer = set_password(&mut browser, &page, new, again);
        assert!(answer.status == 200, "{new}: {}", answer.text());
        assert!(answer.text().contains(told), "{new}: {}", answer.text());
    }
    let forged = [
        ("form_token", "x"),
        ("new_password", NEW),
        ("new_password_again", NEW),
    ];
    assert_eq!(browser.post(&page.action(), &forged).status, 200);
    assert!(!lets_in(&gatepost, "carol", NEW), "nothing was set yet");
    let answer = set_password(&mut browser, &page, NEW, NEW);
    assert_eq!(answer.status, 303);
    answer.assert_leads_to("/login?r=");
    let told = "Your password is set. Sign in with it.";
    let sign_in = browser.follow(answer);
    assert!(sign_in.text().contains(told), "{}", sign_in.text());
    let of_application = browser.get(&authorize_path("conf1", RP1, &[]));
    let address = format!("{}&password_set=true", of_application.location());
    assert!(!browser.get(&address).text().contains(told), "{address}");
    let tried = [("username", "carol"), ("password", "wrong")];
    let wrong = browser.submit(&sign_in, &tried);
    wrong.assert_says("not correct");
    wrong.assert_says_not(told);
    assert!(lets_in(&gatepost, "carol", NEW));
    is_over(
        &set_password(
            &mut browser,
            &page,
            "yet another password",
            "yet another password",
        ),
        "used",
    );
    is_over(&gatepost.browser().get(&link), "used");
    assert_eq!(events(&gatepost, "link_made"), 1);
    assert_eq!(events(&gatepost, "password_set_by_link"), 1);
    assert!(!gatepost.log().contains("gpl_"), "the log has the link");
}

#[test]
fn a_reset_leaves_the_old_password_until_it_is_used_and_then_ends_everything() {
    let gatepost = start();
    let mut elsewhere = signed_in(&gatepost);
    let first = link(&gatepost, &["user", "reset", "alice"]);
    let second = link(&gatepost, &["user", "reset", "alice", "--for", "15m"]);
    assert!(lets_in(&gatepost, "alice", ALICE_PASSWORD));
    let (mut one, mut other) = (gatepost.browser(), gatepost.browser());
    let (page, late) = (one.visit(&first), other.visit(&second));
    let same = set_password(&mut one, &page, ALICE_PASSWORD, ALICE_PASSWORD);
    same.assert_says("must not be the present one");
    assert_eq!(set_password(&mut one, &page, NEW, NEW).status, 303);
    is_over(
        &set_password(&mut other, &late, "a second password", "a second password"),
        "the other link",
    );
    assert!(lets_in(&gatepost, "alice", NEW) && !lets_in(&gatepost, "alice", ALICE_PASSWORD));
    elsewhere
        .get(&authorize_path("conf1", RP1, &[("prompt", "none")]))
        .assert_query("error", "login_required");
}

#[test]
fn a_link_dies_with_what_it_was_made_on() {
    for commands in [
        &[&["user", "password", "alice"][..]][..],
        &[&["user", "disable", "alice"]],
        &[&["user", "disable", "alice"], &["user", "enable", "alice"]],
        &[&["user", "revoke", "alice"]],
        &[&["user", "remove", "alice", "--yes"]],
        &[&["revoke", "--everything", "--yes"]],
    ] {
        let gatepost = start();
        let link = link(&gatepost, &["user", "reset", "alice"]);
        let mut browser = gatepost.browser();
        let page = browser.visit(&link);
        for command in commands {
            gatepost.run_well(command, "the operator's choice\n");
        }
        is_over(
            &set_password(&mut browser, &page, NEW, NEW),
            &format!("{commands:?}"),
        );
        is_over(&gatepost.browser().get(&link), &format!("{commands:?}"));
    }
}

#[test]
fn what_is_no_link_is_told_as_one_that_is_over() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let link = link(&gatepost, &["user", "reset", "alice", "--for", "1h"]);
    let (path, sealed) = link
        .strip_prefix(gatepost.origin())
        .unwrap()
        .split_once("l=")
        .unwrap();
    let cut = &sealed[..sealed.len() - 2];
    let flipped = sealed.replacen(
        &sealed[40..41],
        if &sealed[40..41] == "A" { "B" } else { "A" },
        1,
    );
    for wrong in [
        "",
        "x",
        "gpl_",
        "gpl_AAAA",
        cut,
        &flipped,
        &sealed.replace("gpl_", "gpc_"),
        "%00",
        &"A".repeat(9_000),
    ] {
        let answer = gatepost.get(&format!("{path}l={wrong}"));
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(!answer.text().contains("form_token"), "{wrong}");
    }
    is_over(&gatepost.get("/account/link"), "no link at all");
    is_over(&gatepost.get("/account/link?r=x"), "no form");
    let mut browser = gatepost.browser();
    let page = browser.visit(&link);
    // Another page's address is none of this page's.
    let login = browser.visit(&authorize_path("conf1", RP1, &[])).action();
    is_over(
        &browser.get(&login.replace("/login?", "/account/link?")),
        "the sign-in page's",
    );
    gatepost.travel(601);
    is_over(
        &set_password(&mut browser, &page, NEW, NEW),
        "after ten minutes",
    );
    assert_eq!(browser.visit(&link).status, 200, "opened again");
    gatepost.travel(3_000);
    is_over(&browser.get(&link), "after its hour");
}

#[test]
fn commands_make_links_for_those_whom_they_suit() {
    let gatepost = start();
    let printed = gatepost.run_line("user add dora --invite --for 30d --json");
    let printed: Value = serde_json::from_str(&printed).unwrap();
    printed["link"]
        .as_str()
        .unwrap()
        .assert_says("/account/link?l=gpl_");
    assert!(printed["expires_at"].is_string());
    for (arguments, told) in [
        (&["user", "invite", "alice"][..], "user reset"),
        (&["user", "reset", "carol"], "user invite"),
        (&["user", "invite", "nobody"], "there is no user"),
        (&["user", "invite", "carol", "--for", "31d"], "at most 30d"),
        (&["user", "invite", "carol", "--for", "0h"], "at most 30d"),
        (&["user", "invite", "carol", "--for", "72"], "at most 30d"),
        (
            &["user", "invite", "carol", "--for", "99999999999999999999h"],
            "at most 30d",
        ),
        (&["user", "invite", "carol", "--for", "é"], "at most 30d"),
    ] {
        let output = gatepost.run(arguments, "");
        assert!(!output.status.success(), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(told), "{arguments:?}: {text}");
    }
    // Nobody is added to whom the link cannot be made.
    assert!(
        !gatepost
            .run(&["user", "add", "erin", "--invite", "--for", "99d"], "")
            .status
            .success()
    );
    gatepost.run_well(&["user", "add", "erin", "--invite"], "");
    gatepost.run_well(&["user", "disable", "carol"], "");
    assert!(
        !gatepost
            .run(&["user", "invite", "carol"], "")
            .status
            .success()
    );
}

#[test]
fn a_link_leads_people_to_a_sign_in_of_their_own_whoever_is_signed_in_there() {
    let mut registered = document();
    registered["tenants"] = json!([{"name": "acme", "display_name": "ACME Ltd"}]);
    let tina = json!({"username": "tina", "tenant": "acme", "password": "tina's own password"});
    registered["users"].as_array_mut().unwrap().push(tina);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let link = link(&gatepost, &["user", "reset", "tina", "--tenant", "acme"]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&link);
    let answer = set_password(&mut browser, &page, NEW, NEW);
    let page = browser.follow(answer);
    page.assert_says("with your account at");
    page.assert_says("ACME Ltd");
    let answer = sign_in(&mut browser, &page, "tina", NEW);
    let account = browser.follow(answer);
    account.assert_says("You are signed in as");
    account.assert_says("tina");
    for event in ["link_made", "password_set_by_link"] {
        assert!(
            gatepost
                .run_line(&format!("audit list --event {event}"))
                .contains(event)
        );
    }
}
