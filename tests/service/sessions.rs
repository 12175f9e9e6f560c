//! One browser, several tabs, and time: whatever is open when a session begins, changes or ends
//! leads somewhere sensible, and nothing goes round in circles. `Browser::follow` fails a test
//! after ten redirects.

use serde_json::json;

use crate::support::claims::Says;
use crate::support::flow::{
    asks_to_sign_in, authorize_path, code, decode_jwt, redeem, sign_in, signed_in, with_clients,
};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, RP2, document};
use crate::support::http::{Answer, Browser};
use crate::support::phone::add_app;

fn conf1(changes: &[(&str, &str)]) -> String {
    authorize_path("conf1", RP1, changes)
}

/// `conf2` asks for consent.
fn conf2(changes: &[(&str, &str)]) -> String {
    authorize_path("conf2", RP2, changes)
}

fn asks_consent(page: &Answer) -> bool {
    page.status == 200 && page.text().contains("asks for access")
}

fn choose(browser: &mut Browser, page: &Answer, decision: &str) -> Answer {
    browser.submit(page, &[("decision", decision)])
}

fn sign_out(browser: &mut Browser) {
    let page = browser.get("/logout");
    choose(browser, &page, "sign_out").assert_says("You are signed out");
}

fn id_token(gatepost: &Gatepost, answer: &Answer) -> serde_json::Value {
    decode_jwt(
        redeem(gatepost, &answer.query()["code"]).json()["id_token"]
            .as_str()
            .unwrap(),
    )
    .1
}

#[test]
fn tabs_that_wait_at_the_sign_in_go_on_once_one_of_them_is_signed_in() {
    let gatepost = Gatepost::lent();
    let mut browser = gatepost.browser();
    let first = browser.visit(&conf1(&[("state", "first")]));
    let second = browser.visit(&conf1(&[("state", "second")]));
    let third = browser.visit(&conf2(&[("state", "third")]));
    let account = browser.visit("/account");
    let answer = sign_in(&mut browser, &second, "alice", ALICE_PASSWORD);
    assert_eq!(answer.query()["state"], "second");
    // The others need only be loaded again; each goes on with its own request.
    assert_eq!(browser.visit(&first.action()).query()["state"], "first");
    assert!(asks_consent(&browser.visit(&third.action())));
    browser
        .visit(&account.action())
        .assert_says("<h1>Your account</h1>");
    // Sent all the same, their forms go on as if they were loaded again: with her own name, in
    // whatever case, with her address where that is taken, or with none.
    for name in ["alice", "ALICE", ""] {
        let answer = sign_in(&mut browser, &first, name, "whatever was typed");
        assert_eq!(answer.query()["state"], "first", "{name}");
        let answer = sign_in(&mut browser, &third, name, "whatever was typed");
        assert!(asks_consent(&browser.follow(answer)), "{name}");
    }
    // With another name they sign nobody in by what was drawn before; the page that comes back
    // does, and keeps the name.
    for name in ["bob", "nobody", "alice@example.com"] {
        let again = sign_in(&mut browser, &third, name, BOB_PASSWORD);
        assert!(asks_to_sign_in(&again), "{}", again.text());
        again.assert_says("no longer up to date");
        let kept = again.attribute("id=\"username\"", "value");
        assert_eq!(kept.as_deref(), Some(name));
    }
    // Nor does the form go on that asks for another account, or for a sign-in of its own.
    let cancelled = choose(&mut browser, &first, "cancel");
    assert!(asks_to_sign_in(&cancelled), "{}", cancelled.text());
    // It is one session all along.
    assert_eq!(gatepost.database.count("sessions"), 1);
}

#[test]
fn going_back_and_sending_again_never_signs_in_twice_nor_loops() {
    let gatepost = Gatepost::lent();
    let mut browser = gatepost.browser();
    let login = browser.visit(&conf2(&[]));
    let answer = sign_in(&mut browser, &login, "alice", ALICE_PASSWORD);
    let consent = browser.follow(answer);
    let answer = browser.decide(&consent, "allow", &["profile"], true);
    let first = answer.query()["code"].clone();
    // Back to the consent page and back to the sign-in: what is decided needs no page, and each
    // answer has a code of its own.
    for address in [consent.action(), login.action()] {
        let answer = browser.visit(&address);
        assert_ne!(answer.query()["code"], first, "{address}");
    }
    // The forms of both pages, sent a second time.
    let again = browser.decide(&consent, "deny", &[], false);
    assert_eq!(again.query()["error"], "access_denied");
    let again = sign_in(&mut browser, &login, "alice", ALICE_PASSWORD);
    assert_ne!(again.query()["code"], first);
    assert_eq!(gatepost.database.count("sessions"), 1);
}

#[test]
fn a_form_that_a_sign_in_elsewhere_made_stale_never_goes_on_as_somebody_else() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let chooser = browser.visit(&conf1(&[("prompt", "select_account")]));
    let another = choose(&mut browser, &chooser, "another");
    let fresh = browser.visit(&conf1(&[("prompt", "login")]));
    let login = browser.visit(&conf1(&[]));
    assert!(login.query().contains_key("code"));
    let second = browser.visit(&conf2(&[("prompt", "login")]));
    sign_in(&mut browser, &second, "bob", BOB_PASSWORD);
    // It was drawn to sign in as somebody else, or anew: no session is enough.
    for form in [&another, &fresh] {
        let token = form.form_token();
        for name in ["", "bob"] {
            let mut fields = vec![("form_token", token.as_str()), ("username", name)];
            if form.text().contains("name=\"someone_else\"") {
                fields.push(("someone_else", "true"));
            }
            let page = browser.post(&form.action(), &fields);
            assert!(asks_to_sign_in(&page), "{name}: {}", page.text());
        }
    }
    // She chose to go on as Alice; Bob is there now. So the choice is shown once more.
    let again = choose(&mut browser, &chooser, "continue");
    let text = again.text();
    assert!(again.status == 200, "{text}");
    text.assert_says("changed while this page was open");
    text.assert_says("<bdi>Bob</bdi>");
    text.assert_says_not("Alice");
    let answer = choose(&mut browser, &again, "continue");
    assert!(answer.query().contains_key("code"));
}

#[test]
fn a_second_factor_that_a_sign_in_elsewhere_made_superfluous_is_not_asked_for_again() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let (phone, _) = add_app(&mut browser, 0);
    let mut browser = gatepost.browser();
    let [one, other] = ["one", "other"].map(|state| {
        let page = browser.visit(&conf1(&[("state", state)]));
        sign_in(&mut browser, &page, "alice", ALICE_PASSWORD)
    });
    let answer = browser.submit(&one, &[("code", &phone.code(0))]);
    assert_eq!(answer.query()["state"], "one");
    let answer = browser.submit(&other, &[("code", "000000")]);
    assert_eq!(answer.query()["state"], "other");
    // Cancelled is cancelled; and what was Alice's does not go on as Bob.
    let page = browser.submit(&other, &[("decision", "cancel")]);
    assert!(asks_to_sign_in(&page), "{}", page.text());
    let page = browser.visit(&conf2(&[("prompt", "login")]));
    sign_in(&mut browser, &page, "bob", BOB_PASSWORD);
    let page = browser.submit(&other, &[("code", &phone.code(1))]);
    assert!(asks_to_sign_in(&page), "{}", page.text());
}

/// The form by which somebody adds their first factor names nobody.
#[test]
fn a_new_factor_that_was_asked_for_before_somebody_else_signed_in_is_asked_for_no_more() {
    let strong = [("strong", json!({"minimum_acr": "2"}))];
    let gatepost = Gatepost::start_with(&with_clients(document(), &strong), &[]);
    let mut browser = gatepost.browser();
    let login = browser.visit(&authorize_path("strong", RP1, &[]));
    let answer = sign_in(&mut browser, &login, "alice", ALICE_PASSWORD);
    let enrolment = browser.follow(answer);
    enrolment.assert_says("name=\"code\"");
    let page = browser.visit(&conf1(&[("prompt", "login")]));
    sign_in(&mut browser, &page, "bob", BOB_PASSWORD);
    for fields in [&[("code", "000000")][..], &[("decision", "continue")]] {
        let page = browser.submit(&enrolment, fields);
        assert_eq!(page.header("location"), None, "{fields:?}");
        assert!(asks_to_sign_in(&page), "{fields:?}: {}", page.text());
    }
}

/// A button of an identity provider is pressed by somebody who wants to go there.
#[test]
fn a_stale_button_of_a_provider_does_not_go_on_as_whoever_is_signed_in() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    let stale = browser.visit(&conf1(&[]));
    let page = browser.visit(&conf1(&[]));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let fields = [("identity_provider", "up")];
    let page = browser.submit(&stale, &fields);
    assert!(asks_to_sign_in(&page), "{}", page.text());
}

#[test]
fn a_session_that_ends_while_consent_is_asked_leads_through_the_sign_in_back_to_it() {
    let gatepost = Gatepost::start();
    for end in [
        "UPDATE sessions SET ended_at = now()",
        "UPDATE sessions SET expires_at = now() - interval '1 second'",
        "DELETE FROM sessions",
        "UPDATE users SET epoch = epoch + 1",
    ] {
        for prompt in ["", "consent", "select_account", "login"] {
            let mut browser = gatepost.browser();
            let login = browser.visit(&conf2(&[("prompt", prompt)]));
            let answer = sign_in(&mut browser, &login, "alice", ALICE_PASSWORD);
            let consent = browser.follow(answer);
            assert!(asks_consent(&consent), "{prompt}");
            gatepost.database.run(end);
            let answer = browser.decide(&consent, "allow", &["profile"], true);
            let login = browser.follow(answer);
            assert!(asks_to_sign_in(&login), "{end} {prompt}: {}", login.text());
            assert_eq!(gatepost.database.count("consents"), 0);
            let answer = sign_in(&mut browser, &login, "alice", ALICE_PASSWORD);
            let consent = browser.follow(answer);
            assert!(asks_consent(&consent), "{end} {prompt}: {}", consent.text());
            let answer = browser.decide(&consent, "allow", &["profile"], false);
            assert!(answer.query().contains_key("code"), "{end} {prompt}");
        }
    }
}

#[test]
fn signing_out_in_one_tab_is_met_by_all_others() {
    let gatepost = Gatepost::lent();
    let mut browser = signed_in(&gatepost);
    let chooser = browser.visit(&conf1(&[("prompt", "select_account")]));
    let consent = browser.visit(&conf2(&[]));
    let account = browser.get("/account");
    assert!(chooser.text().contains("Continue as") && asks_consent(&consent));
    sign_out(&mut browser);
    let answers = [
        choose(&mut browser, &chooser, "continue"),
        browser.decide(&consent, "allow", &["profile"], true),
        choose(&mut browser, &account, "end_others"),
    ];
    for answer in answers {
        let page = browser.follow(answer);
        assert!(asks_to_sign_in(&page), "{}", page.text());
        assert!(!page.text().contains("Alice"), "who is gone is not named");
    }
    // Loaded again they lead to the sign-in as well, and from there to where they belong.
    let login = browser.visit(&chooser.action());
    let answer = sign_in(&mut browser, &login, "bob", BOB_PASSWORD);
    assert!(answer.query().contains_key("code"));
    let consent = browser.visit(&consent.action());
    assert!(asks_consent(&consent) && consent.text().contains("<bdi>Bob</bdi>"));
}

#[test]
fn one_browser_has_one_session_and_the_last_sign_in_has_it() {
    let gatepost = Gatepost::lent();
    let mut browser = signed_in(&gatepost);
    let alice = code(&mut browser, &conf1(&[]));
    let chooser = browser.visit(&conf1(&[("prompt", "select_account")]));
    let another = choose(&mut browser, &chooser, "another");
    assert!(asks_to_sign_in(&another) && !another.text().contains("Alice"));
    let answer = sign_in(&mut browser, &another, "bob", BOB_PASSWORD);
    assert!(answer.query().contains_key("code"));
    redeem(&gatepost, &alice).assert_member_for(
        "alice's session is over",
        "error",
        "invalid_grant",
    );
    let open =
        "SELECT u.username FROM sessions s JOIN users u USING (sub) WHERE s.ended_at IS NULL";
    let open = gatepost.database.client().query(open, &[]).unwrap();
    assert_eq!(
        open.iter()
            .map(|row| row.get::<_, String>(0))
            .collect::<Vec<_>>(),
        ["bob"]
    );
    // Changing one's mind on the way to another account leaves the session as it was.
    let chooser = browser.visit(&conf1(&[("prompt", "select_account")]));
    let another = choose(&mut browser, &chooser, "another");
    choose(&mut browser, &another, "cancel").assert_query("error", "access_denied");
    browser
        .visit(&conf1(&[("prompt", "select_account")]))
        .assert_says("<bdi>Bob</bdi>");
}

#[test]
fn proving_oneself_anew_keeps_sid_and_end_and_moves_the_rest() {
    let gatepost = Gatepost::lent();
    let mut browser = signed_in(&gatepost);
    let before = id_token(&gatepost, &browser.get(&conf1(&[])));
    // Signed in nine hours ago.
    let aged =
        "UPDATE sessions SET auth_time = auth_time - interval '9 hours', created_at = created_at - interval '9 hours',
                                    expires_at = expires_at - interval '9 hours'";
    gatepost.database.run(aged);
    let end = || -> i64 {
        let asked = "SELECT extract(epoch FROM expires_at - now())::int8 FROM sessions WHERE ended_at IS NULL";
        gatepost.database.value(asked, &[])
    };
    let cookies = browser.cookies.clone();
    for changes in [
        [("prompt", "login")],
        [("max_age", "60")],
        [("max_age", "0")],
    ] {
        gatepost.run_sql("UPDATE sessions SET auth_time = auth_time - interval '2 minutes'");
        let login = browser.visit(&conf1(&changes));
        assert!(asks_to_sign_in(&login), "{changes:?}");
        let answer = sign_in(&mut browser, &login, "alice", ALICE_PASSWORD);
        let after = id_token(&gatepost, &answer);
        assert_eq!(after["sid"], before["sid"], "{changes:?}");
        assert_eq!(after["sub"], before["sub"], "{changes:?}");
        assert!(after["auth_time"].as_i64() >= before["auth_time"].as_i64());
        assert!(
            (3_500..=3_600).contains(&end()),
            "an hour is left, however often one signs in: {}",
            end()
        );
    }
    assert_ne!(browser.cookies, cookies);
    gatepost.run_sql("UPDATE sessions SET expires_at = now() - interval '1 second'");
    browser
        .get(&conf1(&[("prompt", "none")]))
        .assert_query("error", "login_required");
    let login = browser.visit(&conf1(&[]));
    let answer = sign_in(&mut browser, &login, "alice", ALICE_PASSWORD);
    // What ran out does not come back.
    assert_ne!(id_token(&gatepost, &answer)["sid"], before["sid"]);
}
