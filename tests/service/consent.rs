//! The consent page: what is asked, what is granted, what is remembered, and who may answer.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, issued, redeem, redeem_as, sign_in, signed_in, userinfo, with_clients,
};
use crate::support::gatepost::{BOB_PASSWORD, CONF2_SECRET, Gatepost, RP1, RP2, document};
use crate::support::http::{Answer, Browser};
use crate::support::tables::rows_of;
use crate::support::waiting::await_that;

const SCOPE: &str = "openid profile terms orders.read";
const CONF2: (&str, &str) = ("conf2", CONF2_SECRET);

/// `conf2` asks for consent and may ask for more; `terms` cannot be left out.
fn registered() -> Value {
    let mut registered = document();
    registered["identity_scopes"].as_array_mut().unwrap().push(json!(
        {"name": "terms", "display_name": "Your plan", "claims": ["plan"], "required": true, "emphasize": true}
    ));
    registered["clients"][1]["scope"] =
        json!("openid profile email terms orders.read orders.write");
    registered
}

fn path(changes: &[(&str, &str)]) -> String {
    let scope = changes.iter().any(|(name, _)| *name == "scope");
    let usual: &[(&str, &str)] = if scope { &[] } else { &[("scope", SCOPE)] };
    authorize_path("conf2", RP2, &[usual, changes].concat())
}

fn asks(page: &Answer) -> bool {
    page.status == 200 && page.text().contains("asks for access")
}

#[track_caller]
fn assert_asks(page: &Answer) {
    assert!(asks(page), "{} {}", page.status, page.text());
}

const BOTH: [&str; 2] = ["profile", "orders.read"];

#[track_caller]
fn assert_silently(browser: &mut Browser, changes: &[(&str, &str)], error: Option<&str>) {
    let answer = browser.get(&path(&[changes, &[("prompt", "none")]].concat()));
    assert_eq!(answer.query().get("error").map(String::as_str), error);
}

#[track_caller]
fn assert_remembered(browser: &mut Browser, changes: &[(&str, &str)]) {
    assert_silently(browser, changes, None);
}

#[track_caller]
fn assert_not_remembered(browser: &mut Browser, changes: &[(&str, &str)]) {
    assert_silently(browser, changes, Some("consent_required"));
}

/// Answers the page of the usual request.
fn decide(browser: &mut Browser, decision: &str, scopes: &[&str], remember: bool) -> Answer {
    let page = browser.visit(&path(&[]));
    browser.decide(&page, decision, scopes, remember)
}

fn tokens(gatepost: &Gatepost, answer: &Answer) -> Value {
    issued(&redeem_as(gatepost, CONF2, RP2, &answer.query()["code"]))
}

#[test]
fn what_is_not_ticked_is_not_granted() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for [ticked, granted] in rows_of(
        "
        profile orders.read                  | openid profile terms orders.read
        orders.read                          | openid terms orders.read
        orders.read orders.read openid terms | openid terms orders.read
                                             | openid terms
    ",
    ) {
        let ticked: Vec<&str> = ticked.split_whitespace().collect();
        let page = browser.visit(&path(&[]));
        let text = page.text();
        for (scope, locked) in [
            ("openid", true),
            ("profile", false),
            ("terms", true),
            ("orders.read", false),
        ] {
            let value = format!("value=\"{scope}\"");
            let tag = text.split('<').find(|tag| tag.contains(&value)).unwrap();
            assert_eq!(tag.contains(" disabled"), locked, "{tag}");
            assert!(tag.contains(" checked"), "{tag}");
        }
        text.assert_says_each("Your plan | Read orders | Alice Smith");
        let answer = browser.decide(&page, "allow", &ticked, false);
        let got = tokens(&gatepost, &answer);
        assert_eq!(got["scope"], granted, "{ticked:?}");
        let told = userinfo(&gatepost, got["access_token"].as_str().unwrap()).json();
        let has_name = told.get("name").is_some();
        assert_eq!(has_name, granted.contains("profile"), "{told}");
    }
}

#[test]
fn leaving_everything_out_is_a_denial_and_leaving_offline_access_out_gives_no_refresh_token() {
    let mut registered = registered();
    registered["clients"][1]["scope"] = json!("openid orders.read offline_access");
    registered["clients"][1]["grant_types"] = json!(["authorization_code", "refresh_token"]);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[("scope", "orders.read")]));
    let answer = browser.decide(&page, "allow", &[], true);
    assert_eq!(answer.query()["error"].as_str(), "access_denied");
    assert_eq!(answer.query()["state"].as_str(), "the-state");
    assert_eq!(gatepost.database.count("consents"), 0);
    let asked = path(&[("scope", "openid orders.read offline_access")]);
    let page = browser.visit(&asked);
    page.assert_says_each("Keep access while you are away | Please note");
    page.assert_says("even when you are not using it, until you withdraw it");
    let answer = browser.decide(&page, "allow", &["orders.read"], false);
    let without = tokens(&gatepost, &answer);
    assert_eq!(without["scope"], "openid orders.read");
    assert_eq!(without.get("refresh_token"), None);
    let page = browser.visit(&asked);
    let both = ["orders.read", "offline_access"];
    let with = tokens(&gatepost, &browser.decide(&page, "allow", &both, false));
    assert!(with["refresh_token"].is_string(), "{with}");
}

#[test]
fn a_scope_that_was_not_asked_for_cannot_be_granted() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[]));
    let beyond = "orders.write/email/nope/offline_access/profile orders.read/<script>/Profile";
    for scope in beyond.split('/') {
        let answer = browser.decide(&page, "allow", &["profile", scope], true);
        answer.assert_error_page(400, "GP1137", scope);
        answer.assert_says_not("<script");
        assert_eq!(gatepost.database.count("consents"), 0, "{scope}");
    }
    let nothing = browser.decide(&page, "allow", &["profile", ""], true);
    nothing.assert_carries("code");
}

#[test]
fn a_denial_goes_to_the_client_and_is_not_remembered() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (mode, is_query) in [("query", true), ("fragment", false)] {
        let page = browser.visit(&path(&[("response_mode", mode)]));
        let answer = browser.decide(&page, "deny", &["profile"], true);
        let got = match is_query {
            true => answer.query(),
            false => answer.fragment(),
        };
        assert_eq!(got["error"].as_str(), "access_denied");
        assert_eq!(got["state"].as_str(), "the-state");
        answer.assert_leads_to(RP2);
    }
    let page = browser.visit(&path(&[("response_mode", "form_post")]));
    let answer = browser.decide(&page, "deny", &[], true);
    assert_eq!(answer.fields()["error"], "access_denied");
    assert_eq!(gatepost.database.count("consents"), 0);
    assert_asks(&browser.visit(&path(&[])));
    let page = browser.visit(&path(&[]));
    for decision in ["", "Allow", "continue", "cancel", "sign_out"] {
        let answer = browser.decide(&page, decision, &["profile"], true);
        answer.assert_error_page(400, "GP1505", decision);
    }
}

#[test]
fn consent_is_remembered_when_the_user_says_so_and_until_more_is_asked() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    assert_not_remembered(&mut browser, &[]);
    let page = browser.visit(&path(&[]));
    page.assert_says("name=\"remember\"");
    let once = browser.decide(&page, "allow", &BOTH, false);
    tokens(&gatepost, &once);
    assert_not_remembered(&mut browser, &[]);
    decide(&mut browser, "allow", &BOTH, true);
    assert_remembered(&mut browser, &[]);
    tokens(&gatepost, &browser.visit(&path(&[])));
    // The same or less needs no question, more does.
    assert_remembered(&mut browser, &[("scope", "openid profile")]);
    let more = [("scope", "openid profile terms orders.read email")];
    assert_not_remembered(&mut browser, &more);
    let claims = [("claims", r#"{"userinfo":{"email":null}}"#)];
    assert_not_remembered(&mut browser, &claims);
    let page = browser.visit(&path(&claims));
    assert_asks(&page);
    page.assert_says("E-mail address");
    browser.decide(&page, "allow", &BOTH, true);
    assert_remembered(&mut browser, &claims);
    // Allowing something else does not take back what was allowed before.
    let page = browser.visit(&path(&[("scope", "openid email")]));
    browser.decide(&page, "allow", &["email"], true);
    assert_remembered(&mut browser, &more);
    // It is alice's own: bob is asked.
    let mut bob = gatepost.browser();
    let page = bob.visit(&path(&[]));
    let answer = sign_in(&mut bob, &page, "bob", BOB_PASSWORD);
    assert_asks(&bob.follow(answer));
}

#[test]
fn what_was_unticked_is_asked_about_again() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    decide(&mut browser, "allow", &["orders.read"], true);
    assert_not_remembered(&mut browser, &[]);
    assert_remembered(&mut browser, &[("scope", "openid terms orders.read")]);
    // Unticking later what was allowed before takes it back.
    let page = browser.visit(&path(&[("prompt", "consent")]));
    browser.decide(&page, "allow", &[], true);
    assert_not_remembered(&mut browser, &[("scope", "openid orders.read")]);
}

#[test]
fn prompt_consent_asks_every_time_and_every_client() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for _ in 0..2 {
        let page = browser.visit(&path(&[("prompt", "consent")]));
        assert_asks(&page);
        let answer = browser.decide(&page, "allow", &BOTH, true);
        answer.assert_carries("code");
        let page = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "consent")]));
        assert_asks(&page);
        let answer = browser.decide(&page, "allow", &["profile"], true);
        answer.assert_carries("code");
    }
    // What was agreed to on that page is remembered; where nothing is required, nothing is asked.
    assert_remembered(&mut browser, &[]);
    let silently = [("scope", "openid email"), ("prompt", "none")];
    code(&mut browser, &authorize_path("conf1", RP1, &silently));
}

#[test]
fn nobody_else_can_answer_the_page() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[]));
    let mut attacker = gatepost.browser();
    let login = attacker.visit(&path(&[]));
    let answer = sign_in(&mut attacker, &login, "bob", BOB_PASSWORD);
    let attackers_page = attacker.follow(answer);
    let other_request = browser.visit(&path(&[("state", "other")])).form_token();
    let logout = browser.get("/logout").form_token();
    let login_token = login.form_token();
    let attackers = attackers_page.form_token();
    for token in ["", "x", &other_request, &logout, &login_token, &attackers] {
        let form = [
            ("form_token", token),
            ("decision", "allow"),
            ("scope", "profile"),
            ("remember", "true"),
        ];
        for address in [page.action(), attackers_page.action()] {
            if token == attackers && address == attackers_page.action() {
                continue;
            }
            let answer = browser.post(&address, &form);
            assert_asks(&answer);
            answer.assert_stays(200);
            answer.assert_says("Alice Smith");
        }
    }
    // The attacker's own page, sent by the victim, is drawn again for the victim.
    let form = [("form_token", attackers.as_str()), ("decision", "allow")];
    assert_asks(&browser.post(&attackers_page.action(), &form));
    let token = page.form_token();
    let form = [
        ("form_token", token.as_str()),
        ("decision", "allow"),
        ("scope", "profile"),
    ];
    for (name, value) in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
    ] {
        let foreign = browser.post_from(&page.action(), &[(name, value)], &form);
        foreign.assert_error_page(403, "GP1009", value);
    }
    let mut without_cookies = gatepost.browser();
    let answer = without_cookies.post(&page.action(), &form);
    let page_of_nobody = without_cookies.follow(answer);
    page_of_nobody.assert_says("name=\"password\"");
    assert_eq!(gatepost.database.count("consents"), 0);
    // A GET decides nothing.
    let decision = format!("&form_token={token}&decision=allow&scope=profile");
    assert_asks(&browser.get(&(page.action() + &decision)));
}

#[test]
fn a_page_drawn_for_one_session_is_drawn_again_in_another() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[]));
    page.assert_says("Alice Smith");
    let login = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    sign_in(&mut browser, &login, "bob", BOB_PASSWORD);
    let again = browser.decide(&page, "allow", &["profile"], true);
    assert_asks(&again);
    again.assert_says_each("<bdi>Bob</bdi> | changed while this page was open");
    again.assert_says_not("Alice");
    assert_eq!(gatepost.database.count("consents"), 0);
    let allowed = browser.decide(&again, "allow", &["profile"], false);
    allowed.assert_carries("code");
    // Also when the same person signed in anew, and when nobody is signed in any more.
    let page = browser.visit(&path(&[]));
    let login = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    sign_in(&mut browser, &login, "bob", BOB_PASSWORD);
    assert_asks(&browser.decide(&page, "allow", &["profile"], true));
    gatepost.run_sql("UPDATE sessions SET ended_at = now()");
    let answer = browser.decide(&page, "allow", &["profile"], true);
    browser.follow(answer).assert_says("name=\"password\"");
    assert_eq!(gatepost.database.count("consents"), 0);
}

#[test]
fn another_account_can_be_chosen_from_the_page() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let login = decide(&mut browser, "another", &[], false);
    login.assert_says("name=\"password\"");
    login.assert_says_not("alice");
    let answer = sign_in(&mut browser, &login, "bob", BOB_PASSWORD);
    let page = browser.follow(answer);
    assert_asks(&page);
    page.assert_says("<bdi>Bob</bdi>");
    let answer = browser.decide(&page, "allow", &["profile"], false);
    let got = tokens(&gatepost, &answer);
    userinfo(&gatepost, got["access_token"].as_str().unwrap()).assert_member("name", "Bob");
}

#[test]
fn an_application_that_anybody_can_pose_as_is_agreed_to_every_time() {
    let mut registered = document();
    registered["clients"].as_array_mut().unwrap().push(json!({
        "client_id": "trusted", "client_name": "Trusted app", "application_type": "native", "require_consent": false,
        "redirect_uris": ["com.example.trusted:/cb"], "response_types": ["code"], "grant_types": ["authorization_code"],
        "scope": "openid profile", "token_endpoint_auth_method": "none"
    }));
    let spa = "http://localhost:3000/cb";
    let said = json!({"redirect_uris": [spa], "allow_remember_consent": true, "secrets": null, "grant_types": null});
    let gatepost = Gatepost::start_with(&with_clients(registered, &[("spa", said)]), &[]);
    let mut browser = signed_in(&gatepost);
    for uri in ["http://127.0.0.1:5000/cb", "com.example.app:/cb"] {
        for _ in 0..2 {
            let page = browser.visit(&authorize_path("native", uri, &[]));
            assert_asks(&page);
            page.assert_says_not("name=\"remember\"");
            let answer = browser.decide(&page, "allow", &["profile"], true);
            answer.assert_leads_to(&format!("{uri}?code="));
        }
        let silent = browser.get(&authorize_path("native", uri, &[("prompt", "none")]));
        assert_eq!(silent.query()["error"], "consent_required");
    }
    // None was offered to be remembered.
    assert_eq!(gatepost.database.count("consents"), 0);
    let silently = [("prompt", "none")];
    let trusted = "com.example.trusted:/cb";
    code(&mut browser, &authorize_path("trusted", trusted, &silently));
    // On loopback the registration may say that it is remembered.
    let page = browser.visit(&authorize_path("spa", spa, &[]));
    assert_asks(&page);
    page.assert_says("name=\"remember\"");
    browser.decide(&page, "allow", &["profile"], true);
    code(&mut browser, &authorize_path("spa", spa, &silently));
}

#[test]
fn a_withdrawn_consent_ends_codes_tokens_and_memory() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let got = tokens(&gatepost, &decide(&mut browser, "allow", &BOTH, true));
    let in_flight = code(&mut browser, &path(&[]));
    let of_another_client = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    userinfo(&gatepost, got["access_token"].as_str().unwrap()).assert_status(200);
    let withdrawn = "scopes = '{}', claims = '{}', epoch = 1 WHERE client_id = 'conf2'";
    gatepost.run_sql(&format!("UPDATE consents SET {withdrawn}"));
    let refused = redeem_as(&gatepost, CONF2, RP2, &in_flight);
    refused.assert_error(400, "invalid_grant");
    userinfo(&gatepost, got["access_token"].as_str().unwrap()).assert_status(401);
    assert_not_remembered(&mut browser, &[]);
    redeem(&gatepost, &of_another_client).assert_status(200);
    tokens(&gatepost, &decide(&mut browser, "allow", &BOTH, true));
    assert_remembered(&mut browser, &[]);
}

#[test]
fn what_is_withdrawn_while_an_answer_is_on_its_way_is_not_remembered_again() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let claims = [("claims", r#"{"userinfo":{"email":null}}"#)];
    let page = browser.visit(&path(&claims));
    browser.decide(&page, "allow", &BOTH, true);
    assert_remembered(&mut browser, &claims);
    // The answer about another scope reads what is remembered, and waits for a withdrawal.
    let email = [("scope", "openid email")];
    let page = browser.visit(&path(&email));
    let mut other = gatepost.database.client();
    let mut withdrawing = other.transaction().unwrap();
    let withdraw = "UPDATE consents SET scopes = '{}', claims = '{}', epoch = new_epoch()";
    withdrawing.execute(withdraw, &[]).unwrap();
    thread::scope(|scope| {
        let answering = scope.spawn(|| browser.decide(&page, "allow", &["email"], true));
        await_that("the answer waits", Duration::from_secs(4), || {
            gatepost.database.count("pg_locks WHERE NOT granted") > 0
        });
        withdrawing.commit().unwrap();
        let answer = answering.join().unwrap();
        tokens(&gatepost, &answer);
    });
    // What they have just allowed is remembered, and nothing else.
    assert_remembered(&mut browser, &email);
    for withdrawn in ["openid profile", "openid orders.read"] {
        assert_not_remembered(&mut browser, &[("scope", withdrawn)]);
    }
    let held = "SELECT scopes, claims FROM consents";
    let row = gatepost.database.client().query_one(held, &[]).unwrap();
    let [mut remembered, claims] = [0, 1].map(|column| row.get::<_, Vec<String>>(column));
    remembered.sort_unstable();
    assert_eq!(remembered.join(" "), "email openid");
    assert_eq!(claims, Vec::<String>::new());
}

#[test]
fn a_consent_lapses_when_its_time_is_over() {
    let mut registered = registered();
    registered["clients"][1]["consent_lifetime"] = json!(86_400);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    decide(&mut browser, "allow", &BOTH, true);
    assert_remembered(&mut browser, &[]);
    let earlier = "UPDATE consents SET granted_at = granted_at - interval '1 day', expires_at = expires_at - interval '1 day'";
    gatepost.database.run(earlier);
    assert_not_remembered(&mut browser, &[]);
    // What the user agreed to for a day does not last longer because the client's registration
    // changed.
    let client = registered["clients"][1].as_object_mut().unwrap();
    client.remove("consent_lifetime");
    gatepost.apply(&registered);
    assert_not_remembered(&mut browser, &[]);
}

#[test]
fn a_client_that_may_not_have_it_remembered_asks_again() {
    let mut registered = registered();
    registered["clients"][1]["allow_remember_consent"] = json!(false);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    for _ in 0..2 {
        let page = browser.visit(&path(&[]));
        assert_asks(&page);
        page.assert_says_not("name=\"remember\"");
        tokens(&gatepost, &browser.decide(&page, "allow", &BOTH, true));
    }
    assert_eq!(gatepost.database.count("consents"), 0);
}

#[test]
fn a_request_that_was_registered_away_meanwhile_is_refused() {
    let registered = registered();
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[]));
    let mut narrowed = registered.clone();
    narrowed["clients"][1]["scope"] = json!("openid terms profile");
    gatepost.apply(&narrowed);
    let answer = browser.decide(&page, "allow", &BOTH, true);
    assert_eq!(answer.query()["error"], "invalid_scope");
    narrowed["clients"][1]["redirect_uris"] = json!(["https://rp2.example/moved"]);
    gatepost.apply(&narrowed);
    let moved = browser.decide(&page, "allow", &["profile"], true);
    moved.assert_error_page(400, "GP1105", "moved");
    narrowed["clients"][1]["enabled"] = json!(false);
    gatepost.apply(&narrowed);
    let disabled = browser.decide(&page, "allow", &["profile"], true);
    disabled.assert_error_page(400, "GP1103", "disabled");
    assert_eq!(gatepost.database.count("consents"), 0);
}

#[test]
fn a_lapsed_consent_does_not_come_back_with_the_next_one() {
    let mut registered = registered();
    registered["clients"][1]["consent_lifetime"] = json!(3600);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[("scope", "openid profile email")]));
    browser.decide(&page, "allow", &["profile", "email"], true);
    let email = [("scope", "openid email")];
    assert_remembered(&mut browser, &email);
    gatepost.run_sql("UPDATE consents SET granted_at = granted_at - interval '90 days'");
    assert_not_remembered(&mut browser, &email);
    let page = browser.visit(&path(&[("scope", "openid orders.read")]));
    browser.decide(&page, "allow", &["orders.read"], true);
    assert_remembered(&mut browser, &[("scope", "openid orders.read")]);
    assert_not_remembered(&mut browser, &email);
}
