//! Second factors: codes of an app and recovery codes, how strong a sign-in is, and who asks for
//! how much.

use std::process::Command;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::device::{self, DEVICE_CODE, TV};
use crate::support::flow::{
    asks_to_sign_in, authorize_path, changed_members, code, decode_jwt, is_signed_in, issued,
    redeem, redeem_with, sign_in, signed_in, text, tokens, with_clients,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};
use crate::support::offline;
use crate::support::phone::{Phone, add_app, recovery_codes};
use crate::support::waiting::all_at_once;

const UNMET: &str = "unmet_authentication_requirements";
const ESSENTIAL: &str = r#"{"id_token":{"acr":{"essential":true,"values":["2"]}}}"#;

fn start(settings: &[(&str, &str)]) -> Gatepost {
    let offline = "openid offline_access orders.read";
    let mut registered = document();
    let users = registered["users"].as_array_mut().unwrap();
    users.push(json!({"username": "chloe", "password": "quite another password"}));
    let lasting = json!({"scope": offline, "grant_types": ["authorization_code", "refresh_token"]});
    let direct = json!({"scope": "openid", "grant_types": ["password"], "response_types": [], "redirect_uris": []});
    let clients = [
        ("strong", json!({"minimum_acr": "2"})),
        ("lasting", lasting),
        ("direct", direct),
    ];
    Gatepost::start_with(&with_clients(registered, &clients), settings)
}

/// What alice gets who types her password at a request.
fn password_at(browser: &mut Browser, path: &str) -> Answer {
    let page = browser.visit(path);
    sign_in(browser, &page, "alice", ALICE_PASSWORD)
}

fn asks_for_a_code(page: &Answer) {
    page.assert_stays(200);
    page.assert_says("Confirm that it is you");
    page.assert_says("name=\"code\"");
    // No session before the second factor.
    assert!(page.headers_named("set-cookie").is_empty());
}

fn is_wrong(page: &Answer) {
    assert_eq!(page.status, 200, "{}", page.text());
    page.assert_says("That code is not right");
}

fn claims(gatepost: &Gatepost, answer: &Answer) -> Value {
    let tokens = issued(&redeem(gatepost, &answer.code()));
    let (_, access) = decode_jwt(text(&tokens, "access_token"));
    let (_, id_token) = decode_jwt(text(&tokens, "id_token"));
    for name in ["acr", "amr", "auth_time"] {
        assert_eq!(access[name], id_token[name], "{name}");
    }
    id_token
}

fn error(answer: &Answer) -> String {
    answer
        .query()
        .remove("error")
        .unwrap_or_else(|| panic!("no error in {}", answer.location()))
}

fn events(gatepost: &Gatepost, name: &str) -> i64 {
    let counted = "SELECT count(*) FROM audit_events WHERE event = $1 AND sub IS NOT NULL";
    gatepost.database.value(counted, &[&name])
}

/// Lets sessions go on that ended with the first factor: as the build before left them, with a
/// password alone.
fn revive(gatepost: &Gatepost) {
    let ended = "UPDATE sessions s SET ended_at = NULL, user_epoch = u.epoch FROM users u
                 WHERE u.sub = s.sub AND s.ended_at IS NOT NULL";
    // None had ended.
    assert!(gatepost.database.client().execute(ended, &[]).unwrap() > 0);
}

/// A new browser, and the page that it shows after alice's password.
fn asked_for_code(gatepost: &Gatepost) -> (Browser, Answer) {
    let mut browser = gatepost.browser();
    let asked = password_at(&mut browser, &authorize_path("conf1", RP1, &[]));
    (browser, asked)
}

/// What alice gets in a new browser, by her password and that code.
fn enter(gatepost: &Gatepost, code: &str) -> Answer {
    let (mut browser, asked) = asked_for_code(gatepost);
    browser.submit(&asked, &[("code", code)])
}

/// Alice in a new browser, by her password and that code.
fn with_code(gatepost: &Gatepost, code: &str) -> Browser {
    let (mut browser, asked) = asked_for_code(gatepost);
    browser.submit(&asked, &[("code", code)]).assert_status(303);
    browser
}

/// Sends a form of the account page.
fn change(browser: &mut Browser, form: &[(&str, &str)]) -> Answer {
    let account = browser.visit("/account");
    browser.submit(&account, form)
}

const REMOVAL: [(&str, &str); 2] = [("decision", "remove_factor"), ("factor", "totp.")];

#[test]
fn who_has_an_app_is_asked_for_its_code_after_every_right_password() {
    let gatepost = start(&[]);
    let mut own = signed_in(&gatepost);
    let account = own.visit("/account");
    account.assert_says("Only your password protects this account");
    let page = own.submit(&account, &[("decision", "add_app")]);
    page.assert_says("<svg class=\"qr-code\"");
    page.assert_says("role=\"img\"");
    let phone = Phone::from_page(&page, 0);
    let again = own.submit(&page, &[("decision", "add_app"), ("code", "12345")]);
    is_wrong(&again);
    // The same key, so that nobody scans twice.
    assert_eq!(Phone::from_page(&again, 0).code(0), phone.code(0));
    let next = phone.code(-1);
    let added = [("decision", "add_app"), ("code", &*next)];
    recovery_codes(&own.submit(&again, &added));
    let account = own.visit("/account");
    account.assert_says("App that shows codes");
    account.assert_says("Recovery codes left: 10");
    let path = authorize_path("conf1", RP1, &[]);
    // Both were proved here.
    assert_eq!(claims(&gatepost, &own.get(&path))["acr"], "2");
    let mut other = gatepost.browser();
    let asked = password_at(&mut other, &path);
    asks_for_a_code(&asked);
    for wrong in ["", "000000", "abcdef", "12345"] {
        let answer = other.submit(&asked, &[("code", wrong)]);
        answer.assert_status_for(wrong, 200);
        assert_eq!(answer.headers_named("set-cookie"), [""; 0], "{wrong}");
    }
    is_wrong(&other.submit(&asked, &[("code", &phone.code(-1))]));
    let right = phone.code(0);
    let typed = format!(" {} {} ", &right[..3], &right[3..]);
    let answer = other.submit(&asked, &[("code", &typed)]);
    let told = claims(&gatepost, &answer);
    assert_eq!(told["acr"], "2");
    assert_eq!(told["amr"], json!(["pwd", "otp", "mfa"]));

    // Each code counts once, whoever sees it over a shoulder.
    let mut third = gatepost.browser();
    let asked = password_at(&mut third, &path);
    is_wrong(&third.submit(&asked, &[("code", &right)]));
    let next = third.submit(&asked, &[("code", &phone.code(1))]);
    next.assert_status(303);
    for (event, times) in [("factor_added", 1), ("first_factor", 2), ("factor_used", 2)] {
        assert_eq!(events(&gatepost, event), times, "{event}");
    }
}

#[test]
fn a_recovery_code_signs_in_once_and_new_ones_replace_the_old() {
    let gatepost = start(&[]);
    let mut own = signed_in(&gatepost);
    let (_, codes) = add_app(&mut own, 0);
    let enter = |code: &str| enter(&gatepost, code);
    let answer = enter(&codes[3].to_uppercase());
    let both = json!(["pwd", "otp", "mfa"]);
    assert_eq!(claims(&gatepost, &answer)["amr"], both);
    is_wrong(&enter(&codes[3]));
    assert_eq!(events(&gatepost, "recovery_code_used"), 1);
    let account = own.visit("/account");
    account.assert_says("Recovery codes left: 9");
    let page = own.submit(&account, &[("decision", "make_recovery_codes")]);
    let fresh = recovery_codes(&page);
    can_be_saved(&mut own, &page);
    let forged = [("decision", "save_codes"), ("codes", "gpb_AAAA")];
    own.submit(&account, &forged).assert_status(400);
    is_wrong(&enter(&codes[4]));
    enter(&fresh[4]).assert_status(303);
}

/// The recovery codes of the page come as a file.
fn can_be_saved(browser: &mut Browser, page: &Answer) {
    let sealed = page.attribute("name=\"codes\"", "value").unwrap();
    let file = browser.submit(page, &[("decision", "save_codes"), ("codes", &sealed)]);
    assert_eq!(file.text(), recovery_codes(page).join("\r\n"));
    file.assert_header("cache-control", "no-store");
    let attachment = "attachment; filename=recovery-codes.txt";
    file.assert_header("content-disposition", attachment);
}

#[test]
fn of_two_posts_at_once_one_makes_recovery_codes_and_the_other_shows_none() {
    let gatepost = start(&[]);
    let mut own = signed_in(&gatepost);
    let (_, first) = add_app(&mut own, 0);
    let page = own.visit("/account");
    let make = || {
        let mut browser = own.clone();
        browser.submit(&page, &[("decision", "make_recovery_codes")])
    };
    let answers = all_at_once(6, |_| make());
    // However much later it comes: what was shown stays good.
    let late = make();
    let shows = |answer: &&Answer| answer.text().contains("Keep your recovery codes");
    let (shown, told): (Vec<_>, Vec<_>) = answers.iter().chain([&late]).partition(shows);
    let [shown] = shown.as_slice() else {
        panic!("{} of them show codes", shown.len())
    };
    for answer in told {
        answer.assert_status(200);
        answer.assert_says("no codes were made here");
        answer.assert_says_not("<li><code>");
    }
    assert_eq!(events(&gatepost, "factor_added"), 2, "the app and one set");
    // The page that says so makes them anew; a token of another form makes none.
    let other = own.submit(&page, &[("decision", "make_recovery_codes")]);
    other.assert_says("no codes were made here");
    let enter = |code: &str| enter(&gatepost, code);
    is_wrong(&enter(&first[0]));
    enter(&recovery_codes(shown)[0]).assert_status(303);
    let again = recovery_codes(&own.submit(&late, &[("decision", "make_recovery_codes")]));
    enter(&again[0]).assert_status(303);
}

/// Ten wrong passwords from one source make it wait.
#[test]
fn wrong_passwords_are_forgotten_with_the_second_factor_and_not_before() {
    let gatepost = start(&[]);
    let (phone, codes) = add_app(&mut signed_in(&gatepost), 0);
    let path = authorize_path("conf1", RP1, &[]);
    let mut browser = gatepost.browser();
    let fail = |browser: &mut Browser, times: usize| {
        for _ in 0..times {
            let page = browser.visit(&path);
            let refused = sign_in(browser, &page, "Alice", "wrong");
            assert_eq!(refused.status, 200, "{}", refused.text());
            refused.assert_says("is not correct");
        }
    };
    for code in [phone.code(0), codes[0].clone()] {
        fail(&mut browser, 9);
        let asked = password_at(&mut browser, &path);
        let entered = browser.submit(&asked, &[("code", &code)]);
        assert_eq!(entered.status, 303, "{}", entered.text());
        browser.cookies.clear();
    }
    // The right password alone is no whole sign-in, nor is one with a wrong code.
    fail(&mut browser, 9);
    let asked = password_at(&mut browser, &path);
    asks_for_a_code(&asked);
    is_wrong(&browser.submit(&asked, &[("code", "000000")]));
    fail(&mut browser, 1);
    assert_eq!(password_at(&mut browser, &path).status, 429);
}

#[test]
fn what_must_be_strong_leads_to_a_new_factor_and_whoever_declines_is_refused() {
    let gatepost = start(&[]);
    let mut browser = gatepost.browser();
    let essential = authorize_path("conf1", RP1, &[("claims", ESSENTIAL)]);
    let page = password_at(&mut browser, &essential);
    page.assert_says("A second factor is needed here");
    let declined = browser.submit(&page, &[("decision", "cancel")]);
    assert_eq!(error(&declined), UNMET);
    for path in [essential.as_str(), &authorize_path("strong", RP1, &[])] {
        let silent = browser.get(&format!("{path}&prompt=none"));
        assert_eq!(error(&silent), UNMET, "{path}");
        let page = browser.visit(path);
        page.assert_says_for(path, "A second factor is needed here");
    }
    let page = browser.visit(&essential);
    let phone = Phone::from_page(&page, 0);
    let done = browser.submit(&page, &[("decision", "add_app"), ("code", &phone.code(-1))]);
    recovery_codes(&done);
    let answer = browser.submit(&done, &[("decision", "continue")]);
    assert_eq!(claims(&gatepost, &answer)["acr"], "2");
    let strong = browser.get(&authorize_path("strong", RP1, &[]));
    strong.assert_leads_to(&format!("{RP1}?code="));
    // Essential values that a stronger sign-in reaches are told as they were asked for.
    let one = r#"{"id_token":{"acr":{"essential":true,"values":["1"]}}}"#;
    let answer = browser.get(&authorize_path("conf1", RP1, &[("claims", one)]));
    assert_eq!(claims(&gatepost, &answer)["acr"], "1");
}

#[test]
fn a_standing_session_is_made_stronger_and_a_wish_can_wait() {
    let gatepost = start(&[]);
    let mut weak = signed_in(&gatepost);
    let before = claims(&gatepost, &weak.get(&authorize_path("conf1", RP1, &[])));
    let wish = authorize_path("conf1", RP1, &[("acr_values", "2")]);
    let unasked = weak.get(&wish);
    unasked.assert_leads_to_for("who has no factor is not asked", RP1);
    let (phone, _) = add_app(&mut signed_in(&gatepost), 0);
    revive(&gatepost);
    let silent = weak.get(&format!("{wish}&prompt=none"));
    // A wish goes on with what is there.
    assert_eq!(claims(&gatepost, &silent)["acr"], "1");
    let page = weak.visit(&wish);
    asks_for_a_code(&page);
    let skipped = weak.submit(&page, &[("decision", "not_now")]);
    assert_eq!(claims(&gatepost, &skipped)["acr"], "1");
    let must = authorize_path("conf1", RP1, &[("claims", ESSENTIAL)]);
    let silent = weak.get(&format!("{must}&prompt=none"));
    assert_eq!(error(&silent), "interaction_required");
    let page = weak.visit(&must);
    asks_for_a_code(&page);
    assert!(!page.text().contains("not_now"), "{}", page.text());
    let declined = weak.submit(&page, &[("decision", "cancel")]);
    assert_eq!(error(&declined), UNMET);
    let answer = weak.submit(&page, &[("code", &phone.code(0))]);
    let told = claims(&gatepost, &answer);
    assert_eq!(told["acr"], "2");
    assert_eq!(told["amr"], json!(["pwd", "otp", "mfa"]));
    // A password grows no younger.
    for name in ["auth_time", "sid"] {
        assert_eq!(told[name], before[name], "{name}");
    }
    let enough = weak.get(&wish);
    enough.assert_leads_to_for("it is strong enough now", RP1);
}

/// `docs/connect/step-up.md`
#[test]
fn an_api_gets_a_stronger_and_a_younger_sign_in_by_the_lines_of_its_page() {
    let page = std::fs::read_to_string("docs/connect/step-up.md").unwrap();
    let blocks = page.split("```python\n").skip(1);
    let lines: String = blocks
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    let run = |what: &str, input: &Value| {
        let program = format!("{lines}\nimport json, sys\nprint(json.dumps({what}))");
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-c", &program, &input.to_string()]);
        let done = python.output().unwrap();
        let told = String::from_utf8_lossy(&done.stdout).into_owned();
        serde_json::from_str::<Value>(&told).unwrap_or_else(|_| panic!("{done:?}"))
    };
    let required = |claims: &Value| run("require(json.loads(sys.argv[1]))", claims);
    let gatepost = start(&[]);
    let mut weak = signed_in(&gatepost);
    let granted = |answer: &Answer| {
        let tokens = issued(&redeem(&gatepost, &answer.query()["code"]));
        decode_jwt(text(&tokens, "access_token")).1
    };
    let before = granted(&weak.get(&authorize_path("conf1", RP1, &[])));
    let challenge = required(&before);
    challenge
        .to_string()
        .assert_says("insufficient_user_authentication");
    let wanted = run("wanted(json.loads(sys.argv[1]))", &challenge);
    assert_eq!(wanted, json!({"acr_values": "2 phr", "max_age": "900"}));
    let wish = ["acr_values", "max_age"].map(|name| (name, text(&wanted, name)));
    let wish = authorize_path("conf1", RP1, &wish);
    // Who has no factor comes back as they were; a must makes them add one.
    assert_eq!(granted(&weak.get(&wish))["acr"], "1");
    let must = run("MUST", &json!(null));
    let must = authorize_path("conf1", RP1, &[("claims", must.as_str().unwrap())]);
    let page = weak.visit(&must);
    page.assert_says("A second factor is needed here");
    let (phone, _) = add_app(&mut signed_in(&gatepost), 0);
    revive(&gatepost);
    let asked = weak.visit(&wish);
    let strong = granted(&weak.submit(&asked, &[("code", &phone.code(0))]));
    assert_eq!(required(&strong), json!(null), "{strong}");
    // Too old, it is asked for again.
    let aged = changed_members(strong, &json!({"auth_time": 1_000_000}));
    assert_eq!(required(&aged), challenge);
    gatepost.run_sql("UPDATE sessions SET auth_time = auth_time - interval '901 seconds'");
    assert!(asks_to_sign_in(&weak.visit(&wish)));
}

/// The session ended after it was read: what it had proved ended with it.
#[test]
fn a_session_that_ends_while_it_is_made_stronger_is_followed_by_none() {
    let gatepost = start(&[]);
    let mut weak = signed_in(&gatepost);
    let (phone, _) = add_app(&mut signed_in(&gatepost), 0);
    revive(&gatepost);
    let must = authorize_path("conf1", RP1, &[("claims", ESSENTIAL)]);
    let page = weak.visit(&must);
    asks_for_a_code(&page);
    let ended = "UPDATE sessions SET ended_at = clock_timestamp()";
    let database = &gatepost.database;
    let answer = database.meanwhile(ended, || weak.submit(&page, &[("code", &phone.code(0))]));
    answer.assert_leads_to("/login?");
    database.assert_count("sessions WHERE ended_at IS NULL", 0);
}

#[test]
fn nothing_weaker_than_the_clients_minimum_gets_a_token() {
    let gatepost = start(&[]);
    let mut alice = signed_in(&gatepost);
    let scope = "openid offline_access orders.read";
    let tokens = tokens(&gatepost, &mut alice, "lasting", scope);
    let path = authorize_path("lasting", RP1, &[("scope", "openid")]);
    let held = code(&mut alice, &path);
    let password = |username: &str, password: &str| {
        let form = [
            ("grant_type", "password"),
            ("username", username),
            ("password", password),
            ("scope", "openid"),
        ];
        gatepost.token("direct", &form)
    };
    issued(&password("alice", ALICE_PASSWORD));
    let lasting = json!({"minimum_acr": "2", "scope": scope, "grant_types": ["authorization_code", "refresh_token"]});
    let direct = json!({
        "minimum_acr": "2", "scope": "openid", "grant_types": ["password"], "response_types": [], "redirect_uris": [],
    });
    let mut registered = with_clients(document(), &[("lasting", lasting), ("direct", direct)]);
    let clients = registered["clients"].as_array_mut().unwrap();
    clients.retain(|client| client["client_id"] != "strong");
    gatepost.apply(&registered);
    gatepost.settle();
    redeem_with(&gatepost, "lasting", &held, &[]).assert_refused(400, "invalid_grant", "a code");
    let refresh_token = ("refresh_token", text(&tokens, "refresh_token"));
    let form = [("grant_type", "refresh_token"), refresh_token];
    let refresh = || gatepost.token("lasting", &form);
    refresh().assert_refused(400, "invalid_grant", "a refresh");
    password("alice", ALICE_PASSWORD).assert_refused(400, "invalid_grant", "a password");
    let log = gatepost.log();
    assert_eq!(log.matches("GP1802").count(), 3, "{log}");
    // Nothing moved: where it is lowered again, the same token refreshes.
    for client in registered["clients"].as_array_mut().unwrap() {
        client.as_object_mut().unwrap().remove("minimum_acr");
    }
    gatepost.apply(&registered);
    gatepost.settle();
    issued(&refresh());
    // A second factor is nothing that a client could bring along.
    add_app(&mut alice, 0);
    password("alice", ALICE_PASSWORD).assert_refused(400, "invalid_grant", "a password alone");
    gatepost.log().assert_says("GP1803");
}

#[test]
fn a_device_that_needs_more_asks_for_more() {
    let mut registered = device::with_devices(&[]);
    offline::client(&mut registered, TV)["minimum_acr"] = json!("2");
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut weak = signed_in(&gatepost);
    let (phone, _) = add_app(&mut signed_in(&gatepost), 0);
    revive(&gatepost);
    let waiting = device::ask(&gatepost, TV, &[("scope", "openid")]).json();
    let page = device::enter(&mut weak, text(&waiting, "user_code"));
    asks_for_a_code(&page);
    let question = weak.submit(&page, &[("code", &phone.code(0))]);
    question.assert_says("Is this your device?");
    let connected = device::decide(&mut weak, &question, "allow", &["openid"]);
    connected.assert_says("is connected");
    let device_code = ("device_code", text(&waiting, "device_code"));
    let form = [("grant_type", DEVICE_CODE), device_code];
    let tokens = issued(&device::post(&gatepost, "/connect/token", TV, &form));
    assert_eq!(decode_jwt(text(&tokens, "access_token")).1["acr"], "2");
}

#[test]
fn guessed_codes_are_throttled_and_a_recovery_code_still_signs_in() {
    let gatepost = start(&[]);
    let (phone, codes) = add_app(&mut signed_in(&gatepost), 0);
    let (mut thief, asked) = asked_for_code(&gatepost);
    for _ in 0..5 {
        is_wrong(&thief.submit(&asked, &[("code", "000000")]));
    }
    let refused = thief.submit(&asked, &[("code", &phone.code(0))]);
    refused.assert_status(429);
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!(wait > 500, "{wait}");
    // From elsewhere the account goes on, until the hour's measure is full.
    let mut number = 0;
    let mut from_elsewhere = |code: &str| {
        number += 1;
        let mut browser = gatepost.browser_at(&format!("198.51.100.{number}"));
        let asked = password_at(&mut browser, &authorize_path("conf1", RP1, &[]));
        browser.submit(&asked, &[("code", code)])
    };
    assert_eq!(from_elsewhere(&phone.code(0)).status, 303);
    let buckets = "UPDATE sign_in_failures SET failures = 50 WHERE expires_at > clock_timestamp() + interval '59 minutes'";
    gatepost.database.client().execute(buckets, &[]).unwrap();
    assert_eq!(from_elsewhere(&phone.code(1)).status, 429);
    from_elsewhere(&codes[0]).assert_status_for("nobody is locked out", 303);
}

#[test]
fn what_was_proved_is_good_in_its_own_browser_for_its_own_request() {
    let gatepost = start(&[]);
    let mut own = signed_in(&gatepost);
    let (phone, _) = add_app(&mut own, 0);
    let path = authorize_path("conf1", RP1, &[]);
    let (mut browser, asked) = asked_for_code(&gatepost);
    let is_over = |answer: &Answer, what: &str| {
        assert_eq!(answer.status, 200, "{what}");
        answer.assert_says_for(what, "no longer up to date");
    };
    let mut thief = gatepost.browser();
    let other = thief.visit(&path);
    let answer = thief.submit(&asked, &[("code", &phone.code(0))]);
    is_over(&answer, "another browser");
    let ticket = asked.form_token();
    let elsewhere = other.action().replace("/login", "/login/second-factor");
    let mut post = |action: &str, token: &str| {
        let form = [("form_token", token), ("code", &*phone.code(0))];
        browser.post(action, &form)
    };
    is_over(&post(&elsewhere, &ticket), "another request");
    for (token, what) in [("", "none"), ("AAAA", "made up"), (&ticket[1..], "cut")] {
        is_over(&post(&asked.action(), token), what);
    }
    let back = asked.action().replace("/second-factor", "");
    let answer = browser.get(&asked.action());
    assert_eq!(answer.location(), back, "only a form leads on");
    let answer = browser.submit(&asked, &[("decision", "x")]);
    answer.assert_error_page(400, "GP1505", "x");
    // The operator takes the factors away meanwhile.
    gatepost.run_well(&["user", "factors", "alice", "--remove-all"], "");
    let answer = browser.submit(&asked, &[("code", &phone.code(0))]);
    is_over(&answer, "another epoch");
    let account = own.visit("/account");
    account.assert_status(200);
    account.assert_says_for("all sessions ended", "Sign in");
}

#[test]
fn removing_a_factor_signs_out_elsewhere_and_the_last_stays_where_one_is_needed() {
    let gatepost = start(&[("GATEPOST_MINIMUM_ACR", "2")]);
    let mut own = gatepost.browser();
    let page = password_at(&mut own, &authorize_path("conf1", RP1, &[]));
    let phone = Phone::from_page(&page, 0);
    let done = own.submit(&page, &[("decision", "add_app"), ("code", &phone.code(-1))]);
    let codes = recovery_codes(&done);
    let on = own.submit(&done, &[("decision", "continue")]);
    on.assert_status(303);
    let mut other = with_code(&gatepost, &codes[0]);
    let refused = change(&mut own, &REMOVAL);
    refused.assert_says("so the last one was not removed");
    // The operator can.
    let listed = gatepost.shown("user factors alice --json");
    assert_eq!(listed[0]["kind"], "totp", "{listed}");
    assert_eq!(listed[0]["id"], "totp.", "{listed}");
    assert_eq!(listed[1]["name"], "9 left", "{listed}");
    gatepost.run_well(&["user", "factors", "alice", "--remove", "totp."], "");
    assert_eq!(gatepost.run_line("user factors alice --json").trim(), "[]");
    other.visit("/account").assert_says("Sign in");

    let gatepost = start(&[]);
    let mut own = signed_in(&gatepost);
    let (_, codes) = add_app(&mut own, 0);
    let mut other = with_code(&gatepost, &codes[0]);
    let removed = change(&mut own, &REMOVAL);
    removed.assert_says("The second factor is removed");
    let account = other.visit("/account");
    account.assert_says_for("signed out there", "to see your account");
    let account = own.visit("/account");
    account.assert_says("Only your password protects this account");
    asked_for_code(&gatepost).1.assert_status(303);
}

#[test]
fn adding_and_removing_need_a_sign_in_a_moment_ago_with_every_factor() {
    let gatepost = start(&[]);
    let mut weak = signed_in(&gatepost);
    let (phone, _) = add_app(&mut signed_in(&gatepost), 0);
    revive(&gatepost);
    for decision in ["add_app", "add_passkey", "make_recovery_codes"] {
        let anew = change(&mut weak, &[("decision", decision)]);
        anew.assert_leads_to("/login?r=");
        let page = weak.follow(anew);
        page.assert_says("So that nobody else can do this in your name");
    }
    // Its address alone shows no such page.
    let account = weak.visit("/account?signed_in=anew&for=add_app");
    account.assert_says("<h1>Your account</h1>");
    let anew = change(&mut weak, &REMOVAL);
    let page = weak.follow(anew);
    let asked = sign_in(&mut weak, &page, "alice", ALICE_PASSWORD);
    asks_for_a_code(&asked);
    let back = weak.submit(&asked, &[("code", &phone.code(0))]);
    let account = weak.follow(back);
    account.assert_says("You have signed in again");
    let removed = weak.submit(&account, &REMOVAL);
    removed.assert_says("The second factor is removed");
}

#[test]
fn whoever_signs_in_again_to_add_a_factor_goes_on_with_that() {
    let gatepost = start(&[]);
    let mut own = signed_in(&gatepost);
    gatepost.run_sql("UPDATE sessions SET auth_time = auth_time - interval '301 seconds'");
    let account = own.visit("/account?ui_locales=de");
    let anew = own.submit(&account, &[("decision", "add_app")]);
    let page = own.follow(anew);
    let back = sign_in(&mut own, &page, "alice", ALICE_PASSWORD);
    let adding = "/account?signed_in=anew&for=add_app&ui_locales=de";
    assert_eq!(back.location(), adding);
    let page = own.follow(back);
    let phone = Phone::from_page(&page, 0);
    let added = own.submit(&page, &[("decision", "add_app"), ("code", &phone.code(0))]);
    assert_eq!(added.text().matches("<li><code>").count(), 10);
}

#[test]
fn where_links_alone_enrol_a_password_adds_no_first_factor() {
    let gatepost = start(&[("GATEPOST_ENROLMENT", "link")]);
    let mut own = gatepost.browser();
    let refused = password_at(&mut own, &authorize_path("strong", RP1, &[]));
    assert_eq!(error(&refused), UNMET);
    let refused = change(&mut own, &[("decision", "add_app")]);
    refused.assert_says("It was not added");

    let link = gatepost.run_well(&["user", "reset", "alice", "--enrol"], "");
    let mut browser = gatepost.browser();
    let page = browser.visit(link.trim());
    let phone = Phone::from_page(&page, 0);
    let new = "a password of her own choosing";
    let set = |browser: &mut Browser, page: &Answer, new: &str, code: &str| {
        let passwords = [("new_password", new), ("new_password_again", new)];
        browser.submit(page, &[&passwords[..], &[("code", code)]].concat())
    };
    let again = set(&mut browser, &page, new, "000000");
    is_wrong(&again);
    let done = set(&mut browser, &again, new, &phone.code(-1));
    let codes = recovery_codes(&done);
    can_be_saved(&mut browser, &done);
    let forged = [("decision", "save_codes"), ("codes", "gpb_AAAA")];
    browser.submit(&done, &forged).assert_status(400);
    is_link_over(&gatepost.browser().submit(&done, &forged));
    let on = done.attribute("class=\"button primary\"", "href").unwrap();
    let page = browser.visit(&on);
    page.assert_says_for(&on, "to open your applications");
    is_link_over(&gatepost.browser().visit(link.trim()));
    let page = browser.visit(&authorize_path("strong", RP1, &[]));
    let asked = sign_in(&mut browser, &page, "alice", new);
    let back = browser.submit(&asked, &[("code", &codes[0])]);
    back.assert_status(303);

    // A second link takes the lost phone's place; it dies with any change of factors.
    let link = gatepost.run_well(&["user", "reset", "alice", "--enrol"], "");
    recovery_codes(&change(
        &mut browser,
        &[("decision", "make_recovery_codes")],
    ));
    is_link_over(&gatepost.browser().visit(link.trim()));
    let link = gatepost.run_well(&["user", "reset", "alice", "--enrol"], "");
    let mut browser = gatepost.browser();
    let page = browser.visit(link.trim());
    let new_phone = Phone::from_page(&page, 0);
    let new = "yet another password";
    let done = set(&mut browser, &page, new, &new_phone.code(-1));
    assert_eq!(recovery_codes(&done).len(), 10);
    let page = browser.visit(&authorize_path("strong", RP1, &[]));
    let asked = sign_in(&mut browser, &page, "alice", new);
    is_wrong(&browser.submit(&asked, &[("code", &phone.code(0))]));
    is_wrong(&browser.submit(&asked, &[("code", &codes[1])]));
    let back = browser.submit(&asked, &[("code", &new_phone.code(0))]);
    back.assert_status(303);
}

fn is_link_over(answer: &Answer) {
    answer.assert_error_page(400, "GP1810", "the link");
}

#[test]
fn factors_outlive_a_change_of_the_master_secret_and_nobody_comes_in_by_less_without_it() {
    let mut gatepost = start(&[]);
    let (phone, codes) = add_app(&mut signed_in(&gatepost), 0);
    gatepost.stop();
    let line = |byte: u8| format!("{}\n", STANDARD.encode([byte; 32]));
    let with = |gatepost: &mut Gatepost, name: &str, lines: &str| {
        let file = gatepost.private_file(name, lines);
        gatepost.set("GATEPOST_SECRET_FILE", file.to_str().unwrap());
    };
    with(&mut gatepost, "both", &format!("{}{}", line(7), line(42)));
    let told = gatepost.run_well(&["secret", "rotate"], "");
    assert!(told.contains("sealed anew under the first line"), "{told}");
    with(&mut gatepost, "alone", &line(7));
    gatepost.serve();
    enter(&gatepost, &phone.code(0)).assert_status(303);
    gatepost.stop();
    with(&mut gatepost, "another", &line(9));
    let told = gatepost.run_well(&["key", "reset", "--yes"], "");
    told.assert_says("a second factor (totp) of user");
    told.assert_says("user factors");
    gatepost.serve();
    let (mut browser, asked) = asked_for_code(&gatepost);
    asked.assert_says("Confirm that it is you");
    is_wrong(&browser.submit(&asked, &[("code", &codes[0])]));
    gatepost.run_well(&["user", "factors", "alice", "--remove-all"], "");
    asked_for_code(&gatepost).1.assert_status(303);
}

/// Wrong passwords of somebody with an app and of somebody without take as long, and are answered
/// alike.
#[test]
fn who_has_a_second_factor_cannot_be_told_from_outside() {
    let patient = [
        ("GATEPOST_ARGON2_MEMORY_KIB", "7168"),
        ("GATEPOST_ARGON2_PASSES", "1"),
        ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_ACCOUNT", "1000000"),
        ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_SOURCE", "1000000"),
        ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_HOUR", "1000000"),
    ];
    let gatepost = start(&patient);
    add_app(&mut signed_in(&gatepost), 0);
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    let mut taken = [Vec::new(), Vec::new()];
    let mut answers = [String::new(), String::new()];
    for number in 0..2_040 {
        // In pairs, each pair the other way round, so that what drifts takes both along.
        let who = (number % 2 + number / 2 % 2) % 2;
        let form = [("username", ["alice", "chloe"][who]), ("password", "wrong")];
        let begun = Instant::now();
        let answer = browser.submit(&page, &form);
        if number >= 40 {
            taken[who].push(begun.elapsed().as_secs_f64());
        }
        answers[who] = answer.without_challenge().replace("alice", "chloe");
    }
    assert_eq!(answers[0], answers[1]);
    let [one, other] = taken.map(|mut all| {
        // The slowest tenth is the machine's.
        all.sort_by(f64::total_cmp);
        all.truncate(all.len() * 9 / 10);
        let count = f64::from(u32::try_from(all.len()).unwrap());
        let mean = all.iter().sum::<f64>() / count;
        (
            mean,
            all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0) / count,
        )
    });
    let t = (one.0 - other.0) / (one.1 + other.1).sqrt();
    assert!(t.abs() < 4.5, "t = {t}: {} and {} s", one.0, other.0);
}

#[test]
fn a_page_kept_from_before_adds_nothing_to_somebody_who_has_a_factor_by_now() {
    let gatepost = start(&[]);
    let mut thief = gatepost.browser();
    let kept = password_at(&mut thief, &authorize_path("strong", RP1, &[]));
    kept.assert_says("A second factor is needed here");
    let (phone, _) = add_app(&mut signed_in(&gatepost), 0);
    let over = thief.submit(&kept, &[("decision", "add_app"), ("code", "000000")]);
    over.assert_says_for("the thief's session ended", "no longer up to date");
    revive(&gatepost);
    let page = thief.submit(&kept, &[("decision", "add_app"), ("code", "000000")]);
    let own = Phone::from_page(&page, 0);
    let refused = thief.submit(&page, &[("decision", "add_app"), ("code", &own.code(0))]);
    refused.assert_says("It was not added");
    let forged = [
        ("decision", "add_passkey"),
        ("client_data", "e30"),
        ("attestation_object", "oA"),
    ];
    let passkey = thief.submit(&kept, &forged);
    passkey.assert_says("was not accepted");
    assert_eq!(events(&gatepost, "factor_added"), 1);
    asks_for_a_code(&thief.visit(&authorize_path("strong", RP1, &[])));
    enter(&gatepost, &phone.code(0)).assert_status_for("hers is as it was", 303);
}

#[test]
fn one_source_uses_up_nothing_that_an_account_has_from_everywhere() {
    let gatepost = start(&[]);
    let (phone, _) = add_app(&mut signed_in(&gatepost), 0);
    let mut thief = gatepost.browser_at("198.51.100.9");
    let asked = password_at(&mut thief, &authorize_path("conf1", RP1, &[]));
    for _ in 0..120 {
        thief.submit(&asked, &[("code", "000000")]);
    }
    enter(&gatepost, &phone.code(0)).assert_status(303);
    let event = gatepost.events("second_factor_failed").remove(0);
    assert!(event["detail"]["sub"].is_string(), "{event}");
    assert_eq!(event["detail"]["reason"], "GP1805", "{event}");
}

#[test]
fn who_cancels_a_new_factor_where_no_client_waits_comes_back() {
    let gatepost = start(&[("GATEPOST_MINIMUM_ACR", "2")]);
    let mut alice = gatepost.browser();
    let page = password_at(&mut alice, "/account");
    page.assert_says("A second factor is needed here");
    let back = alice.submit(&page, &[("decision", "cancel")]);
    assert_eq!((back.status, back.location()), (303, "/logout"));
    // In the language that they came with.
    let german = alice.visit("/account?ui_locales=de");
    let again = alice.submit(&german, &[("decision", "add_app"), ("code", "000000")]);
    assert!(german.text().contains("lang=\"de\""), "{}", again.text());
    again.assert_says("lang=\"de\"");
}

#[test]
fn the_first_factor_ends_all_else_with_calls_and_the_session_goes_on_under_a_new_handle() {
    let told = json!({"backchannel_logout_uri": "https://rp.example/logout"});
    let gatepost = Gatepost::start_with(&with_clients(document(), &[("told", told)]), &[]);
    let (mut own, mut thief) = (signed_in(&gatepost), signed_in(&gatepost));
    assert_eq!(thief.get(&authorize_path("told", RP1, &[])).status, 303);
    let before = own.cookies.clone();
    let account = own.visit("/account");
    assert!(!account.text().contains("Remove"), "{}", account.text());
    let page = own.submit(&account, &[("decision", "add_app")]);
    let (hint, button) = (
        page.text().find("Everywhere else you are signed out"),
        page.text().find("value=\"add_app\""),
    );
    assert!(hint.is_some() && hint < button, "{}", page.text());
    add_app(&mut own, 0);
    assert!(is_signed_in(&mut own) && !is_signed_in(&mut thief));
    let mut copy = gatepost.browser();
    copy.cookies = before;
    // Who copied the handle does not go on with it.
    assert!(!is_signed_in(&mut copy));
    let due = "session_clients c JOIN sessions s USING (day, sid) WHERE c.client_id = 'told' AND s.ended_at IS NOT NULL \
               AND (c.due_at IS NOT NULL OR c.tries > 0)";
    gatepost.database.assert_count(due, 1);
    assert_eq!(events(&gatepost, "session_ended"), 1);
    let again = own.visit("/account");
    let page = own.submit(&again, &[("decision", "add_app")]);
    page.assert_says_not_for("a second one ends nothing", "Everywhere else");
}

#[test]
fn a_sign_in_that_demands_the_first_factor_ends_all_else_and_still_gets_its_code() {
    let gatepost = start(&[]);
    let offline = "openid offline_access orders.read";
    let mut thief = signed_in(&gatepost);
    let held = |browser: &mut Browser| tokens(&gatepost, browser, "lasting", offline);
    let refresh_token = |browser: &mut Browser| text(&held(browser), "refresh_token").to_owned();
    let refresh = |token: &str| {
        let form = [("grant_type", "refresh_token"), ("refresh_token", token)];
        gatepost.token("lasting", &form).status
    };
    let stolen = refresh_token(&mut thief);
    let mut own = gatepost.browser();
    let essential = [("claims", ESSENTIAL), ("scope", offline)];
    let page = password_at(&mut own, &authorize_path("lasting", RP1, &essential));
    let of_this_session = refresh_token(&mut own);
    let in_flight = code(&mut own, &authorize_path("conf1", RP1, &[]));
    page.assert_says("Everywhere else you are signed out");
    let phone = Phone::from_page(&page, 0);
    let done = own.submit(&page, &[("decision", "add_app"), ("code", &phone.code(-1))]);
    recovery_codes(&done);
    for token in [&stolen, &of_this_session] {
        assert_eq!(refresh(token), 400);
    }
    redeem(&gatepost, &in_flight).assert_status(400);
    assert!(!is_signed_in(&mut thief));
    let answer = own.submit(&done, &[("decision", "continue")]);
    let given = redeem_with(&gatepost, "lasting", &answer.code(), &[]);
    let given = issued(&given);
    assert_eq!(decode_jwt(text(&given, "id_token")).1["acr"], "2");
    assert_eq!(refresh(text(&given, "refresh_token")), 200);
}

#[test]
fn another_app_and_new_recovery_codes_end_nothing() {
    let gatepost = start(&[]);
    let mut own = signed_in(&gatepost);
    let (phone, _) = add_app(&mut own, 0);
    let mut other = with_code(&gatepost, &phone.code(0));
    let held = code(&mut other, &authorize_path("conf1", RP1, &[]));
    let cookies = own.cookies.clone();
    let account = own.visit("/account");
    recovery_codes(&own.submit(&account, &[("decision", "make_recovery_codes")]));
    let page = own.submit(&account, &[("decision", "add_app")]);
    let new = Phone::from_page(&page, 0);
    let added = own.submit(&page, &[("decision", "add_app"), ("code", &new.code(-1))]);
    added.assert_says("The second factor is added");
    issued(&redeem(&gatepost, &held));
    assert!(is_signed_in(&mut other) && is_signed_in(&mut own));
    assert_eq!(own.cookies.clone(), cookies);
    assert_eq!(events(&gatepost, "session_ended"), 0);
    with_code(&gatepost, &new.code(0));
}

/// Each form of the account page that changes who comes in, or who stays; and whether it was done.
const CHANGES: [&[(&str, &str)]; 5] = [
    &[
        ("decision", "change_password"),
        ("present_password", ALICE_PASSWORD),
        ("new_password", "a thief's own long password"),
        ("new_password_again", "a thief's own long password"),
    ],
    &[("decision", "link"), ("provider", "up")],
    &[("decision", "unlink"), ("identity", "x")],
    &[("decision", "end_others")],
    &[("decision", "end_session"), ("session", "x")],
];

#[test]
fn who_has_a_factor_shows_it_a_moment_ago_before_password_links_or_sessions_change() {
    let gatepost = start(&[]);
    let mut weak = signed_in(&gatepost);
    // Who has none is not asked.
    change(&mut weak, CHANGES[3]).assert_status(200);
    let (phone, _) = add_app(&mut signed_in(&gatepost), 0);
    revive(&gatepost);
    let mut strong = with_code(&gatepost, &phone.code(0));
    let older =
        "UPDATE sessions SET auth_time = auth_time - interval '301 seconds' WHERE acr = '2'";
    for (browser, what, sql) in [
        (&mut weak, "a password alone", "SELECT"),
        (&mut strong, "too long ago", older),
    ] {
        gatepost.database.run(sql);
        for form in CHANGES {
            let answer = change(browser, form);
            answer.assert_leads_to_for(format!("{what}, {form:?}"), "/login?r=");
        }
        // What an application may do is taken back by anybody who is in: it lets nobody in.
        let withdrawal = [("decision", "withdraw"), ("client_id", "x")];
        change(browser, &withdrawal).assert_status_for(what, 200);
    }
    assert!(is_signed_in(&mut weak) && is_signed_in(&mut strong));
    assert_eq!(events(&gatepost, "password_changed"), 0);
    assert_eq!(events(&gatepost, "session_ended"), 1);

    // By the sign-in that is asked for, it goes on.
    let anew = change(&mut strong, CHANGES[3]);
    let page = strong.follow(anew);
    let asked = sign_in(&mut strong, &page, "alice", ALICE_PASSWORD);
    let back = strong.submit(&asked, &[("code", &phone.code(1))]);
    let account = strong.follow(back);
    account.assert_says("You have signed in again");
    let ended = strong.submit(&account, CHANGES[3]);
    ended.assert_says("signed out everywhere else");
    assert!(!is_signed_in(&mut weak));
    let changed = change(&mut strong, CHANGES[0]);
    changed.assert_says("Your password is changed");
}
