//! What people and clients see while the database is away, and while what is registered cannot be
//! read from it.

use std::thread::sleep;
use std::time::Duration;

use crate::support::flow::{authorize_path, basic, code, sign_in, signed_in, userinfo};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1};
use crate::support::http::Answer;
use crate::support::offline::{self, CONF1, ORDERS, access, refresh};
use crate::support::waiting::{SOON, await_that};

#[test]
fn an_outage_is_a_page_for_people_and_an_error_for_silent_clients() {
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    let mut browser = signed_in(&gatepost);
    let path = authorize_path("conf1", RP1, &[]);
    let silent = authorize_path("conf1", RP1, &[("prompt", "none")]);
    let mut stranger = gatepost.browser();
    let page = stranger.visit(&path);
    let logout = browser.get("/logout");
    code(&mut browser, &path);

    proxy.cut(true);
    let answers = [
        ("authorize", browser.get(&path)),
        (
            "login",
            sign_in(&mut stranger, &page, "alice", ALICE_PASSWORD),
        ),
        ("logout", browser.get("/logout")),
        ("sign out", {
            browser.submit_to("/logout", &logout, &[("decision", "sign_out")])
        }),
    ];
    let dutch = browser.get(&authorize_path("conf1", RP1, &[("ui_locales", "nl-BE")]));
    dutch.assert_says("<h1>We kunnen op dit moment niet antwoorden</h1>");
    for (what, answer) in &answers {
        answer.assert_error_page(503, "GP1901", what);
        assert!(answer.header("retry-after").is_some(), "{what}");
        assert_eq!(answer.headers_named("set-cookie").len(), 0, "{what}");
        for inside in "postgres SQL 127.0.0.1 connection role server".split(' ') {
            assert!(!answer.text().contains(inside), "{what}: {inside}");
        }
    }
    let got = browser.get(&silent).query();
    assert_eq!(got["error"].as_str(), "temporarily_unavailable");
    assert_eq!(got["state"].as_str(), "the-state");
    // Who brings no cookie is asked to sign in without the database.
    gatepost
        .browser()
        .visit(&path)
        .assert_says("name=\"password\"");
    gatepost
        .get("/.well-known/openid-configuration")
        .assert_status(200);

    proxy.cut(false);
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    code(&mut browser, &silent);
    sign_in(&mut stranger, &page, "alice", ALICE_PASSWORD).assert_carries("code");
}

/// Asks about a token as the resource of the orders.
fn introspect(gatepost: &Gatepost, token: &str) -> Answer {
    let authorization = basic(ORDERS.0, ORDERS.1);
    let headers = [("Authorization", authorization.as_str())];
    gatepost.post("/connect/introspect", &headers, &[("token", token)])
}

#[test]
fn nothing_is_granted_by_a_catalogue_that_cannot_be_read_for_half_a_minute() {
    let gatepost = Gatepost::start_with(&offline::document(), &[]);
    let mut browser = signed_in(&gatepost);
    let scope = "openid orders.read offline_access";
    let tokens = CONF1.tokens(&gatepost, &mut browser, scope);
    let path = authorize_path("conf1", RP1, &[]);
    let silent = authorize_path("conf1", RP1, &[("prompt", "none")]);
    let mut stranger = gatepost.browser();
    let page = stranger.visit(&path);
    let is_active = || introspect(&gatepost, access(&tokens)).json()["active"] == true;
    let told = || userinfo(&gatepost, access(&tokens)).status;
    assert!(is_active());
    assert_eq!(told(), 200);

    // Somebody writes into the catalogue by hand.
    gatepost.database.run(
        "INSERT INTO catalogue_entries (kind, name, document)
         VALUES ('resource', 'https://bent.example', '{\"name\": 7}');
         UPDATE installation SET registry_version = registry_version + 1",
    );
    let unread = "unreadable row: resource https://bent.example";
    gatepost.await_log(unread, |log| log.contains(unread));
    // For a while it goes on with what it has read.
    code(&mut browser, &silent);
    assert!(is_active());

    sleep(Duration::from_secs(31));
    for (what, answer) in [
        ("authorize", browser.get(&path)),
        ("nobody is signed in", gatepost.browser().get(&path)),
        (
            "sign in",
            sign_in(&mut stranger, &page, "alice", ALICE_PASSWORD),
        ),
        ("the account", gatepost.browser().visit("/account")),
    ] {
        answer.assert_error_page(503, "GP1901", what);
        assert!(answer.header("retry-after").is_some(), "{what}");
    }
    let got = browser.get(&silent).query();
    assert_eq!(got["error"].as_str(), "temporarily_unavailable");
    assert_eq!(got["state"].as_str(), "the-state");
    for answer in [
        introspect(&gatepost, access(&tokens)),
        CONF1.refresh(&gatepost, refresh(&tokens)),
    ] {
        answer.assert_error(503, "temporarily_unavailable");
    }
    assert_eq!(told(), 503, "UserInfo");
    // What ends something goes on.
    CONF1.revoke(&gatepost, refresh(&tokens));

    gatepost.database.run(
        "DELETE FROM catalogue_entries WHERE name = 'https://bent.example';
         UPDATE installation SET registry_version = registry_version + 1",
    );
    await_that("it is read again", SOON, || {
        browser.get(&silent).query().contains_key("code")
    });
    assert!(!is_active(), "it was revoked");
    let answer = sign_in(&mut stranger, &page, "alice", ALICE_PASSWORD);
    assert!(answer.query().contains_key("code"), "{}", answer.text());
}
