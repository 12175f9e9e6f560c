//! `/account`: what a person sees of their sign-ins and applications, and what they can end. Nobody
//! else can.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, decode_jwt, is_signed_in, issued, redeem, sign_in, signed_in, userinfo,
};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, RP2};
use crate::support::http::{Answer, Browser, encode};
use crate::support::offline::{CONF1, CONF2, access, document, refresh};
use crate::support::record::masked;
use crate::support::tables::rows_of;

const NEW_PASSWORD: &str = "a fresh long passphrase";
const OFFLINE: &str = "openid profile offline_access";

fn change_password(browser: &mut Browser, present: &str, new: &str, again: &str) -> Answer {
    let page = browser.get("/account");
    let form = [
        ("decision", "change_password"),
        ("present_password", present),
        ("new_password", new),
        ("new_password_again", again),
    ];
    browser.submit(&page, &form)
}

/// The values of all hidden fields of that name, in order, with spaces between them.
fn hidden(page: &Answer, name: &str) -> String {
    let (text, marker) = (page.text(), format!("name=\"{name}\" value=\""));
    let fields = text.split(&marker).skip(1);
    let values = fields.map(|rest| rest.split_once('"').unwrap().0);
    values.collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_account(page: &Answer) {
    page.assert_status(200);
    page.assert_says("<h1>Your account</h1>");
}

#[track_caller]
fn assert_userinfo(gatepost: &Gatepost, tokens: &Value, status: u16) {
    userinfo(gatepost, access(tokens)).assert_status(status);
}

fn bob(gatepost: &Gatepost) -> Browser {
    let mut browser = gatepost.browser();
    let page = browser.visit("/account");
    let answer = sign_in(&mut browser, &page, "bob", BOB_PASSWORD);
    assert_eq!(answer.location(), "/account", "{}", answer.text());
    browser
}

fn events(gatepost: &Gatepost, name: &str) -> i64 {
    let counted = "SELECT count(*) FROM audit_events WHERE event = $1 AND detail ->> 'by' = 'user'";
    gatepost.database.value(counted, &[&name])
}

#[test]
fn who_is_not_signed_in_signs_in_first_and_comes_back() {
    let gatepost = Gatepost::lent();
    let mut browser = gatepost.browser();
    let answer = browser.get("/account");
    answer.assert_leads_to("/login?r=");
    let page = browser.follow(answer);
    page.assert_says_each("to see your account | name=\"password\"");
    // A wrong password shows the page again. A cancellation does not.
    let wrong = sign_in(&mut browser, &page, "alice", "wrong");
    wrong.assert_status(200);
    wrong.assert_says("not correct");
    let cancelled = browser.submit(&page, &[("decision", "cancel")]);
    browser.follow(cancelled).assert_says("You are signed out");
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    assert_eq!((answer.status, answer.location()), (303, "/account"));
    assert_account(&browser.follow(answer));
    // Back at the page of the sign-in, there is nothing to sign in for.
    assert_account(&browser.visit(&page.action()));
    // Its address is good for this page alone, and for an hour.
    let sealed = page.action().replace("/login?", "/consent?");
    let for_consent = browser.get(&sealed);
    for_consent.assert_error_page(400, "GP1504", "consent");
    // A session that came from an application's request will do.
    assert_account(&signed_in(&gatepost).get("/account"));
    // Posting without a session changes nothing, and leads to the sign-in.
    let mut stranger = gatepost.browser();
    let answer = stranger.post("/account", &[("decision", "end_others")]);
    answer.assert_leads_to("/login?r=");
    let head = gatepost.send("HEAD", "/account", &[], b"");
    assert_eq!((head.status, head.body.len()), (303, 0));
    let put = gatepost.send("PUT", "/account", &[], b"");
    put.assert_header("allow", "GET, HEAD, POST");
}

#[test]
fn the_page_shows_who_where_and_which_applications() {
    let gatepost = Gatepost::lent_with(&document(), &[]);
    let mut elsewhere = signed_in(&gatepost);
    let mut browser = signed_in(&gatepost);
    bob(&gatepost);
    let page = browser.get("/account");
    let text = page.text();
    text.assert_says_each("Alice Smith | alice | No application has lasting access");
    assert!(!masked(&text).contains("Bob"), "{text}");
    for (words, times) in [
        ("Signed in on ", 2),
        ("This browser", 1),
        ("name=\"session\" value=", 1),
        ("With a password", 2),
        (" UTC", 6),
    ] {
        assert_eq!(text.matches(words).count(), times, "{words}");
    }
    // A consent that is remembered, and a grant that lasts without one; what lives for an hour is
    // no lasting access.
    CONF1.tokens(&gatepost, &mut elsewhere, "openid profile");
    assert_eq!(hidden(&browser.get("/account"), "client_id"), "");
    CONF1.tokens(&gatepost, &mut elsewhere, OFFLINE);
    let consent = browser.visit(&authorize_path("conf2", RP2, &[]));
    browser.decide(&consent, "allow", &["profile"], true);
    let page = browser.get("/account");
    assert_eq!(hidden(&page, "client_id"), "conf1 conf2");
    page.assert_says_each("First shop | Second shop | See your profile");
    page.assert_says_each("Keep access while you are away | Allowed since");
    // In the language of the browser.
    let german = (String::from("Accept-Language"), String::from("de"));
    browser.headers.push(german);
    browser.get("/account").assert_says("<h1>Ihr Konto</h1>");
    let page = browser.get("/account?ui_locales=fr");
    page.assert_says("<h1>Votre compte</h1>");
    let page = gatepost.browser().visit("/account?ui_locales=it");
    page.assert_says("per vedere il Suo account");
    assert_eq!(hidden(&bob(&gatepost).get("/account"), "client_id"), "");
}

#[test]
fn one_sign_in_or_all_others_can_be_ended() {
    let gatepost = Gatepost::lent();
    let [mut here, mut there, mut third] = [(); 3].map(|()| signed_in(&gatepost));
    let code = code(&mut there, &authorize_path("conf1", RP1, &[]));
    let tokens = redeem(&gatepost, &code).json();
    let page = here.get("/account");
    let others = hidden(&page, "session");
    // The latest sign-in stands first, so the first of the others is the third browser.
    let (first, second) = others.split_once(' ').unwrap();
    assert!(!second.contains(' '), "{others}");
    let end_first = [("decision", "end_session"), ("session", first)];
    let answer = here.submit(&page, &end_first);
    assert_account(&answer);
    answer.assert_says("You are signed out there.");
    assert!(!is_signed_in(&mut third) && is_signed_in(&mut there) && is_signed_in(&mut here));
    assert_eq!(hidden(&answer, "session"), second);
    let again = here.submit(&page, &end_first);
    again.assert_says("That had ended already");
    let mut fourth = signed_in(&gatepost);
    let answer = here.submit(&page, &[("decision", "end_others")]);
    answer.assert_says("signed out everywhere else");
    assert!(!is_signed_in(&mut there) && !is_signed_in(&mut fourth) && is_signed_in(&mut here));
    assert_userinfo(&gatepost, &tokens, 401);
    assert_eq!(hidden(&answer, "session"), "");
    assert_eq!(events(&gatepost, "session_ended"), 3);
    // This one ends as ever: by the page that asks.
    let own = "SELECT sid FROM sessions WHERE ended_at IS NULL";
    let own: String = gatepost.database.value(own, &[]);
    let answer = here.submit(&page, &[("decision", "end_session"), ("session", &own)]);
    assert_eq!(answer.location(), "/logout");
    assert!(is_signed_in(&mut here));
}

#[test]
fn nobody_ends_somebody_elses_session_by_naming_it() {
    let gatepost = Gatepost::lent_with(&document(), &[]);
    let mut alice = signed_in(&gatepost);
    CONF1.tokens(&gatepost, &mut alice, OFFLINE);
    let sid: String = gatepost.database.value("SELECT sid FROM sessions", &[]);
    let mut mallory = bob(&gatepost);
    let page = mallory.get("/account");
    let (right, long) = ("A".repeat(27), "A".repeat(300));
    for session in [&sid, "", "x", "../..", &right, &long, "' OR 1=1 --"] {
        let answer = mallory.submit(&page, &[("decision", "end_session"), ("session", session)]);
        let harmless =
            answer.text().contains("That had ended already") || answer.text().contains("GP1505");
        assert!(harmless, "{session}: {}", answer.text());
    }
    mallory.submit(&page, &[("decision", "end_others")]);
    // Nor does withdrawing for oneself reach what somebody else allowed.
    for client_id in ["conf1", "nobody", "<script>", "conf1\u{202e}"] {
        let answer = mallory.submit(&page, &[("decision", "withdraw"), ("client_id", client_id)]);
        answer.assert_says("That had ended already");
        answer.assert_says_not("<script>");
    }
    assert!(is_signed_in(&mut alice));
    assert_eq!(hidden(&alice.get("/account"), "client_id"), "conf1");
    assert_eq!(events(&gatepost, "session_ended"), 0);
    assert_eq!(events(&gatepost, "consent_withdrawn"), 0);
}

#[test]
fn a_post_counts_only_from_the_page_of_this_session() {
    let gatepost = Gatepost::start();
    let (mut browser, mut other) = (signed_in(&gatepost), signed_in(&gatepost));
    let page = browser.get("/account");
    let right = page.form_token();
    let of_other = other.get("/account").form_token();
    let of_bob = bob(&gatepost).get("/account").form_token();
    let of_logout = browser.get("/logout").form_token();
    let change = [
        ("decision", "change_password"),
        ("present_password", ALICE_PASSWORD),
        ("new_password", NEW_PASSWORD),
    ];
    for token in ["", "x", &of_other, &of_bob, &of_logout, &right[1..]] {
        for form in [&[("decision", "end_others")][..], &change] {
            let answer = browser.post("/account", &[&[("form_token", token)], form].concat());
            assert_account(&answer);
            answer.assert_says_for(token, "changed while this page was open");
        }
    }
    let form = [("form_token", right.as_str()), ("decision", "end_others")];
    let without = browser.post("/account", &form[1..]);
    without.assert_says("changed while this page was open");
    for (name, value) in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        let foreign = browser.post_from("/account", &[(name, value)], &form);
        foreign.assert_error_page(403, "GP1009", value);
    }
    browser.get(&format!("/account?form_token={right}&decision=end_others"));
    for decision in ["", "END_OTHERS", "sign_out", "allow"] {
        let answer = browser.post("/account", &[form[0], ("decision", decision)]);
        answer.assert_error_page(400, "GP1505", decision);
    }
    let twice = browser.post("/account", &[form[0], form[1], form[1]]);
    twice.assert_error_page(400, "GP1002", "twice");
    assert!(is_signed_in(&mut other));
    // What was drawn before this person signed in anew is drawn again.
    let login = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    sign_in(&mut browser, &login, "alice", ALICE_PASSWORD);
    let old = browser.submit(&page, &form[1..]);
    old.assert_says("changed while this page was open");
    assert!(is_signed_in(&mut other));
}

#[test]
fn withdrawing_access_ends_all_that_the_application_has() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let mut browser = signed_in(&gatepost);
    // Long ago: taking something away needs no fresh sign-in.
    gatepost.run_sql("UPDATE sessions SET auth_time = auth_time - interval '9 hours'");
    let unremembered = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let remembered = CONF2.tokens(&gatepost, &mut browser, OFFLINE);
    let in_flight = CONF2.code(&mut browser, &[]);
    let page = browser.get("/account");
    assert_eq!(hidden(&page, "client_id"), "conf1 conf2");
    let answer = browser.submit(&page, &[("decision", "withdraw"), ("client_id", "conf2")]);
    assert_account(&answer);
    answer.assert_says("<bdi>Second shop</bdi></strong> no longer has access");
    assert_eq!(hidden(&answer, "client_id"), "conf1");
    let late = CONF2.redeem(&gatepost, &in_flight);
    late.assert_member("error", "invalid_grant");
    CONF2.assert_refresh_over(&gatepost, refresh(&remembered));
    assert_userinfo(&gatepost, &remembered, 401);
    assert_eq!(CONF1.refresh(&gatepost, refresh(&unremembered)).status, 200);
    // Allowing it again, be it at once, counts.
    let page = browser.visit(&authorize_path("conf2", RP2, &[("scope", OFFLINE)]));
    let answer = browser.decide(&page, "allow", &["profile", "offline_access"], true);
    let tokens = CONF2.redeem(&gatepost, &answer.query()["code"]);
    let tokens = issued(&tokens);
    assert_userinfo(&gatepost, &tokens, 200);
    assert_eq!(CONF2.refresh(&gatepost, refresh(&tokens)).status, 200);
    assert!(CONF2.code(&mut browser, &[("prompt", "none")]).len() > 20);
    let page = browser.get("/account");
    for (client_id, name) in [("conf1", "First shop"), ("conf2", "Second shop")] {
        let answer = browser.submit(&page, &[("decision", "withdraw"), ("client_id", client_id)]);
        answer.assert_says(name);
    }
    assert_eq!(events(&gatepost, "consent_withdrawn"), 3);
    assert!(is_signed_in(&mut browser), "the session stays");
    CONF2.assert_refresh_over(&gatepost, refresh(&tokens));
}

#[test]
fn what_is_allowed_anew_after_a_withdrawal_outlives_no_revocation() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let withdraw = |browser: &mut Browser| {
        let page = browser.get("/account");
        let answer = browser.submit(&page, &[("decision", "withdraw"), ("client_id", "conf2")]);
        answer.assert_says("no longer has access");
    };
    let all = "user revoke alice/client revoke conf2/revoke --everything";
    for revocation in all.split('/') {
        let mut browser = signed_in(&gatepost);
        CONF2.tokens(&gatepost, &mut browser, OFFLINE);
        withdraw(&mut browser);
        let tokens = CONF2.tokens(&gatepost, &mut browser, OFFLINE);
        assert_userinfo(&gatepost, &tokens, 200);
        gatepost.run_line(revocation);
        assert_userinfo(&gatepost, &tokens, 401);
        CONF2.assert_refresh_over(&gatepost, refresh(&tokens));
        gatepost.settle();
    }
}

#[test]
fn a_new_password_ends_all_but_this_session() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let (mut here, mut there) = (signed_in(&gatepost), signed_in(&gatepost));
    let online = CONF1.tokens(&gatepost, &mut here, "openid profile");
    let offline = CONF1.tokens(&gatepost, &mut here, OFFLINE);
    let in_flight = CONF1.code(&mut here, &[]);
    let bobs = CONF1.tokens(&gatepost, &mut bob(&gatepost), OFFLINE);
    let before = here.cookies.clone();
    let answer = change_password(&mut here, ALICE_PASSWORD, NEW_PASSWORD, NEW_PASSWORD);
    assert_account(&answer);
    answer.assert_says("Your password is changed");
    assert_eq!(hidden(&answer, "session"), "");
    // This session goes on under a new handle, with its sid and its auth_time.
    assert_ne!(here.cookies, before);
    let mut thief = gatepost.browser();
    thief.cookies = before;
    assert!(!is_signed_in(&mut thief) && !is_signed_in(&mut there));
    let tokens = CONF1.tokens(&gatepost, &mut here, OFFLINE);
    let claims = |tokens: &Value| decode_jwt(tokens["id_token"].as_str().unwrap()).1;
    for name in ["sid", "sub", "auth_time"] {
        assert_eq!(claims(&tokens)[name], claims(&online)[name], "{name}");
    }
    assert_userinfo(&gatepost, &tokens, 200);
    assert_eq!(CONF1.refresh(&gatepost, refresh(&tokens)).status, 200);
    // Everything that was there before is over; what is bob's is not.
    assert_userinfo(&gatepost, &online, 401);
    assert_userinfo(&gatepost, &offline, 401);
    CONF1.assert_refresh_over(&gatepost, refresh(&offline));
    let late = CONF1.redeem(&gatepost, &in_flight);
    late.assert_member("error", "invalid_grant");
    assert_eq!(CONF1.refresh(&gatepost, refresh(&bobs)).status, 200);
    // The page is drawn under the new handle: its forms work.
    let third = change_password(&mut here, NEW_PASSWORD, ALICE_PASSWORD, ALICE_PASSWORD);
    third.assert_says("Your password is changed");
    assert_eq!(events(&gatepost, "password_changed"), 2);
    assert_eq!(events(&gatepost, "session_ended"), 1);
    for (password, gets_in) in [(NEW_PASSWORD, false), (ALICE_PASSWORD, true)] {
        let mut browser = gatepost.browser();
        let page = browser.visit("/account");
        let answer = sign_in(&mut browser, &page, "alice", password);
        assert_eq!(answer.status == 303, gets_in, "{password}");
    }
}

#[test]
fn a_password_that_will_not_do_changes_nothing() {
    let gatepost = Gatepost::start();
    let (mut here, mut there) = (signed_in(&gatepost), signed_in(&gatepost));
    let stored = || -> String {
        let found = "SELECT password_hash FROM users WHERE username = 'alice'";
        gatepost.database.value(found, &[])
    };
    let before = stored();
    let long = "x".repeat(1_025);
    let common = ["Password"; 2];
    let same = [NEW_PASSWORD; 2];
    for (present, [new, again], problem) in [
        ("", same, "Enter your present password."),
        ("wrong", same, "The present password is not correct."),
        (BOB_PASSWORD, same, "The present password is not correct."),
        (ALICE_PASSWORD, ["", ""], "at least 8 characters"),
        (ALICE_PASSWORD, ["short", "short"], "at least 8 characters"),
        (ALICE_PASSWORD, common, "Many people use this password"),
        (ALICE_PASSWORD, [&*long; 2], "Choose a shorter one."),
        (
            ALICE_PASSWORD,
            [NEW_PASSWORD, "another passphrase"],
            "are not the same",
        ),
        (ALICE_PASSWORD, [NEW_PASSWORD, ""], "are not the same"),
    ] {
        let answer = change_password(&mut here, present, new, again);
        assert_account(&answer);
        answer.assert_says(problem);
        answer.assert_says_each("role=\"alert\" | <title>Error: ");
        answer.assert_says_not_for("a password is never shown again", NEW_PASSWORD);
        assert_eq!(answer.headers_named("set-cookie").len(), 0);
    }
    let too_long = change_password(&mut here, &long, NEW_PASSWORD, NEW_PASSWORD);
    too_long.assert_error_page(400, "GP1003", "long");
    assert_eq!(stored(), before);
    assert_eq!(events(&gatepost, "password_change_refused"), 2);
    assert!(is_signed_in(&mut here) && is_signed_in(&mut there));
    let log = gatepost.log();
    assert!(!log.contains(NEW_PASSWORD) && !log.contains(ALICE_PASSWORD));
}

#[test]
fn wrong_present_passwords_are_counted_with_those_of_the_sign_in() {
    let limited = [("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_ACCOUNT", "3")];
    let gatepost = Gatepost::start_with(&document(), &limited);
    let mut here = signed_in(&gatepost);
    let mut other = gatepost.browser();
    let page = other.visit("/account");
    sign_in(&mut other, &page, "alice", "wrong");
    for _ in 0..2 {
        change_password(&mut here, "wrong", NEW_PASSWORD, NEW_PASSWORD).assert_status(200);
    }
    let answer = change_password(&mut here, ALICE_PASSWORD, NEW_PASSWORD, NEW_PASSWORD);
    answer.assert_status(429);
    answer.assert_says("too many failed attempts");
    assert!(answer.header("retry-after").is_some());
    sign_in(&mut other, &page, "alice", ALICE_PASSWORD).assert_status(429);
    // What she has goes on, and everything but the password can be changed.
    assert!(is_signed_in(&mut here));
    let page = here.get("/account");
    let ended = here.submit(&page, &[("decision", "end_others")]);
    ended.assert_says("everywhere else");
    gatepost.database.run("DELETE FROM sign_in_failures");
    let answer = change_password(&mut here, ALICE_PASSWORD, NEW_PASSWORD, NEW_PASSWORD);
    answer.assert_says("Your password is changed");
}

#[test]
fn who_is_disabled_or_signed_out_sees_and_changes_nothing() {
    let gatepost = Gatepost::start();
    for [end, mend] in rows_of("
        UPDATE users SET enabled = false                             | UPDATE users SET enabled = true
        UPDATE sessions SET ended_at = now()                         |
        UPDATE sessions SET expires_at = now() - interval '1 second' |
        UPDATE users SET epoch = epoch + 1                           |
    ") {
        let mut browser = signed_in(&gatepost);
        let page = browser.get("/account");
        assert_account(&page);
        gatepost.database.run(end);
        for answer in [
            browser.get("/account"),
            browser.submit(&page, &[("decision", "end_others")]),
        ] {
            answer.assert_leads_to_for(end, "/login?r=");
        }
        gatepost.database.run(mend);
    }
    // Who signs in elsewhere alone has no password to change.
    let mut browser = signed_in(&gatepost);
    let page = browser.get("/account");
    gatepost.run_sql("UPDATE users SET password_hash = NULL");
    let page_without = browser.get("/account");
    page_without.assert_says_not("name=\"present_password\"");
    let form = [
        ("decision", "change_password"),
        ("present_password", ALICE_PASSWORD),
        ("new_password", NEW_PASSWORD),
        ("new_password_again", NEW_PASSWORD),
    ];
    let answer = browser.submit(&page, &form);
    answer.assert_says("The present password is not correct.");
}

#[test]
fn people_change_their_own_name_where_the_operator_lets_them() {
    let closed = Gatepost::lent();
    let mut browser = signed_in(&closed);
    let page = browser.get("/account");
    page.assert_says_not("Change your name");
    let queen = [("decision", "change_name"), ("new_name", "Queen")];
    let refused = browser.submit(&page, &queen);
    refused.assert_error_page(400, "GP1505", "closed");

    let setting = ("GATEPOST_PEOPLE_MAY_CHANGE", "name");
    let gatepost = Gatepost::lent_with(&document(), &[setting]);
    let mut browser = signed_in(&gatepost);
    let (long, kept) = ("x".repeat(201), "x".repeat(200));
    let changed = "Your name was changed.";
    for (typed, told, named) in [
        (" \u{7} ", "The name is missing.", "Alice Smith"),
        ("Alice Smith", changed, "Alice Smith"),
        (" A\nlice\u{7} <b> ", changed, "Alice &lt;b&gt;"),
        (&long, changed, &kept),
    ] {
        let page = browser.get("/account");
        let form = [("decision", "change_name"), ("new_name", typed)];
        let answer = browser.submit(&page, &form);
        answer.assert_says_for(typed, told);
        answer.assert_says_for(typed, &format!("value=\"{named}\""));
    }
    assert_eq!(events(&gatepost, "user_changed"), 2);
    let code = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    let tokens = issued(&redeem(&gatepost, &code));
    userinfo(&gatepost, access(&tokens)).assert_says(&kept);
}

#[test]
fn without_a_client_one_signs_in_without_a_tenant_or_within_the_one_named() {
    let mut registered = document();
    registered["tenants"] =
        json!([{"name": "acme", "display_name": "ACME <b>Ltd</b>"}, {"name": "globex"}]);
    let of_acme = json!({"username": "alice", "password": BOB_PASSWORD, "tenant": "acme", "claims": {"name": "Alice of ACME"}});
    registered["users"].as_array_mut().unwrap().push(of_acme);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = gatepost.browser();
    for tenant in ["nope", "ACME", "<script>", "acme globex", &"x".repeat(301)] {
        let answer = browser.get(&format!("/account?{}", encode(&[("tenant", tenant)])));
        answer.assert_status_for(tenant, 400);
        answer.assert_says_not_for(tenant, "<script>");
    }
    let twice = browser.get("/account?tenant=acme&tenant=globex");
    twice.assert_error_page(400, "GP1002", "twice");
    let page = browser.visit("/account?tenant=acme");
    page.assert_says("ACME &lt;b&gt;Ltd&lt;/b&gt;");
    let other = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    other.assert_status_for("that is another alice", 200);
    let answer = sign_in(&mut browser, &page, "alice", BOB_PASSWORD);
    let page = browser.follow(answer);
    page.assert_says_each("Alice of ACME | ACME &lt;b&gt;Ltd&lt;/b&gt;");
    assert_account(&browser.get("/account"));
    assert_account(&browser.get("/account?tenant=acme"));
    // Another tenant means another sign-in, and the password that is changed is that of this
    // tenant's alice.
    let globex = browser.visit("/account?tenant=globex");
    globex.assert_says("name=\"password\"");
    let answer = change_password(&mut browser, BOB_PASSWORD, NEW_PASSWORD, NEW_PASSWORD);
    answer.assert_says("Your password is changed");
    let mut other = gatepost.browser();
    let page = other.visit("/account");
    page.assert_says_not("ACME");
    let answer = sign_in(&mut other, &page, "alice", ALICE_PASSWORD);
    assert_eq!(answer.location(), "/account");
    // Where no tenant is registered, names mean nothing.
    let plain = Gatepost::start();
    let page = plain.browser().visit("/account?tenant=acme");
    page.assert_says("name=\"password\"");
}
