//! `/logout`: asking first, and what is dead afterwards.

use serde_json::json;

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, is_signed_in, redeem, redeem_as, sign_in, signed_in, userinfo,
};
use crate::support::gatepost::{BOB_PASSWORD, CONF2_SECRET, Gatepost, RP1, RP2, document};
use crate::support::http::{Answer, Browser, encode};
use crate::support::record::masked;

fn post(browser: &mut Browser, page: &Answer, decision: &str) -> Answer {
    browser.submit(page, &[("decision", decision)])
}

#[test]
fn signing_out_ends_the_session_and_everything_that_hangs_on_it() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let mut elsewhere = signed_in(&gatepost);
    let jwt = redeem(
        &gatepost,
        &code(&mut browser, &authorize_path("conf1", RP1, &[])),
    )
    .json();
    let page = browser.visit(&authorize_path("conf2", RP2, &[]));
    let answer = browser.decide(&page, "allow", &["profile"], false);
    let reference = redeem_as(
        &gatepost,
        ("conf2", CONF2_SECRET),
        RP2,
        &answer.query()["code"],
    )
    .json();
    let in_flight = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    let waiting = browser.visit(&authorize_path("conf2", RP2, &[]));
    let old_cookies = browser.cookies.clone();

    let page = browser.get("/logout");
    page.assert_says("Sign out?");
    page.assert_says("Alice Smith");
    assert!(is_signed_in(&mut browser), "asking signs nobody out");
    let done = post(&mut browser, &page, "sign_out");
    assert_eq!((done.status, done.header("location")), (200, None));
    done.assert_says("You are signed out");
    // The state, and the place in the line for passwords, which is worth no session.
    let kept: Vec<&String> = browser.cookies.keys().collect();
    let is_harmless = |name: &&String| {
        ["gatepost-state-", "gatepost-browser-"]
            .iter()
            .any(|one| name.starts_with(one))
    };
    assert!(kept.iter().all(is_harmless), "{kept:?}");

    for cookies in [browser.cookies.clone(), old_cookies.clone()] {
        browser.cookies = cookies;
        let silent = browser.get(&authorize_path("conf1", RP1, &[("prompt", "none")]));
        assert_eq!(silent.query()["error"], "login_required");
        browser
            .visit(&authorize_path("conf1", RP1, &[]))
            .assert_says("name=\"password\"");
    }
    for tokens in [&jwt, &reference] {
        let answer = userinfo(&gatepost, tokens["access_token"].as_str().unwrap());
        assert_eq!(answer.status, 401);
        answer
            .header("www-authenticate")
            .unwrap()
            .assert_says("error=\"invalid_token\"");
    }
    redeem(&gatepost, &in_flight).assert_member("error", "invalid_grant");
    browser.cookies = old_cookies;
    let answer = browser.decide(&waiting, "allow", &["profile"], false);
    assert!(browser.follow(answer).text().contains("name=\"password\""));
    // Another browser of the same person is not concerned.
    assert!(is_signed_in(&mut elsewhere));
}

#[test]
fn only_this_browsers_own_form_signs_out() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let mut attacker = gatepost.browser();
    let login = attacker.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(&mut attacker, &login, "bob", BOB_PASSWORD);
    let page = browser.get("/logout");
    let token = page.form_token();
    let attackers = attacker.get("/logout").form_token();
    let chooser = browser.visit(&authorize_path(
        "conf1",
        RP1,
        &[("prompt", "select_account")],
    ));
    let chooser = chooser.form_token();
    for wrong in ["", "x", &attackers, &chooser, &token[1..]] {
        let answer = browser.post(
            "/logout",
            &[("form_token", wrong), ("decision", "sign_out")],
        );
        answer.assert_says("Sign out?");
        answer.assert_says("changed while");
        assert!(is_signed_in(&mut browser));
    }
    let form = [("form_token", token.as_str()), ("decision", "sign_out")];
    for headers in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        browser
            .post_from("/logout", &[headers], &form)
            .assert_error_page(403, "GP1009", headers.1);
    }
    browser
        .get(&format!("/logout?form_token={token}&decision=sign_out"))
        .assert_says("Sign out?");
    for decision in ["", "allow", "SIGN_OUT"] {
        post(&mut browser, &page, decision).assert_error_page(400, "GP1505", decision);
    }
    assert!(is_signed_in(&mut browser));
    assert_eq!(post(&mut browser, &page, "stay").location(), "/");
    assert!(is_signed_in(&mut browser));
}

#[test]
fn without_a_session_there_is_nothing_to_ask() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    for uri in [
        "",
        "?post_logout_redirect_uri=https://evil.example/",
        "?returnUrl=//evil.example",
        "?r=",
    ] {
        let answer = browser.get(&format!("/logout{uri}"));
        assert_eq!((answer.status, answer.header("location")), (200, None));
        assert!(answer.text().contains("You are signed out"));
        assert!(!masked(&answer.text()).contains("evil"));
    }
    let answer = browser.post("/logout", &[("decision", "sign_out")]);
    assert!(answer.status == 200 && answer.text().contains("You are signed out"));
    // After signing out the form that was sent once does nothing more.
    let mut browser = signed_in(&gatepost);
    let page = browser.get("/logout");
    let cookies = browser.cookies.clone();
    post(&mut browser, &page, "sign_out");
    browser.cookies = cookies;
    post(&mut browser, &page, "sign_out").assert_says("You are signed out");
    assert_eq!(gatepost.get("/logout").headers_named("set-cookie").len(), 0);
}

#[test]
fn a_way_back_that_nobody_vouches_for_is_told_on_the_page_and_in_the_log() {
    const SENTENCE: &str = "The address to return to is not known here";
    const DONE: &str = "https://rp1.example/done";
    let mut registered = document();
    registered["clients"][0]["post_logout_redirect_uris"] = json!([DONE]);
    let gatepost = Gatepost::start_with(&registered, &[]);
    for (client_id, uri, reason) in [
        // It is registered, but nobody said by whom.
        (
            "",
            DONE,
            Some("reason=\"GP1162\" detail=\"received https://rp1.example/"),
        ),
        (
            "conf1",
            "https://elsewhere.example/",
            Some("reason=\"GP1161\" detail=\"received https://elsewhere.example/; registered "),
        ),
        ("conf1", DONE, None),
        ("conf1", "", None),
    ] {
        let told = gatepost.log().len();
        let sent = [("client_id", client_id), ("post_logout_redirect_uri", uri)];
        let page = gatepost.get(&format!("/connect/endsession?{}", encode(&sent)));
        assert_eq!(
            (page.status, page.text().contains(SENTENCE)),
            (200, reason.is_some()),
            "{client_id} {uri}"
        );
        gatepost.await_log("the request", |log| {
            log[told..].contains("path=/connect/endsession")
        });
        let log = gatepost.log()[told..].to_owned();
        assert!(
            reason.map_or(!log.contains("GP116"), |reason| log.contains(reason)),
            "{client_id} {uri}: {log}"
        );
    }
}
