//! The consent page: what is asked, what is granted, what is remembered, and who may answer.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, redeem_as, sign_in, signed_in, userinfo, with_clients,
};
use crate::support::gatepost::{BOB_PASSWORD, CONF2_SECRET, Gatepost, RP1, RP2, document};
use crate::support::http::{Answer, Browser};
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

fn silent_error(browser: &mut Browser, changes: &[(&str, &str)]) -> Option<String> {
    browser
        .get(&path(&[changes, &[("prompt", "none")]].concat()))
        .query()
        .remove("error")
}

fn tokens(gatepost: &Gatepost, answer: &Answer) -> Value {
    let tokens = redeem_as(gatepost, CONF2, RP2, &answer.query()["code"]);
    assert_eq!(tokens.status, 200, "{}", tokens.text());
    tokens.json()
}

#[test]
fn what_is_not_ticked_is_not_granted() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (ticked, granted) in [
        (
            vec!["profile", "orders.read"],
            "openid profile terms orders.read",
        ),
        (vec!["orders.read"], "openid terms orders.read"),
        (
            vec!["orders.read", "orders.read", "openid", "terms"],
            "openid terms orders.read",
        ),
        (vec![], "openid terms"),
    ] {
        let page = browser.visit(&path(&[]));
        let text = page.text();
        for (scope, locked) in [
            ("openid", true),
            ("profile", false),
            ("terms", true),
            ("orders.read", false),
        ] {
            let tag = text
                .split('<')
                .find(|tag| tag.contains(&format!("value=\"{scope}\"")))
                .unwrap();
            assert_eq!(tag.contains(" disabled"), locked, "{tag}");
            assert!(tag.contains(" checked"), "{tag}");
        }
        text.assert_says("Your plan");
        text.assert_says("Read orders");
        text.assert_says("Alice Smith");
        let answer = browser.decide(&page, "allow", &ticked, false);
        let got = tokens(&gatepost, &answer);
        assert_eq!(got["scope"], granted, "{ticked:?}");
        let told = userinfo(&gatepost, got["access_token"].as_str().unwrap()).json();
        assert_eq!(
            told.get("name").is_some(),
            granted.contains("profile"),
            "{told}"
        );
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
    for words in [
        "Keep access while you are away",
        "even when you are not using it, until you withdraw it",
        "Please note",
    ] {
        assert!(page.text().contains(words), "{words}: {}", page.text());
    }
    let without = tokens(
        &gatepost,
        &browser.decide(&page, "allow", &["orders.read"], false),
    );
    assert_eq!(without["scope"], "openid orders.read");
    assert_eq!(without.get("refresh_token"), None);
    let page = browser.visit(&asked);
    let with = tokens(
        &gatepost,
        &browser.decide(&page, "allow", &["orders.read", "offline_access"], false),
    );
    assert!(with["refresh_token"].is_string(), "{with}");
}

#[test]
fn a_scope_that_was_not_asked_for_cannot_be_granted() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[]));
    for scope in [
        "orders.write",
        "email",
        "nope",
        "offline_access",
        "profile orders.read",
        "",
        "<script>",
        "Profile",
    ] {
        let answer = browser.decide(&page, "allow", &["profile", scope], true);
        if scope.is_empty() {
            assert!(answer.query().contains_key("code"));
            gatepost.database.run("DELETE FROM consents");
            continue;
        }
        answer.assert_error_page(400, "GP1137", scope);
        assert!(!answer.text().contains("<script"));
        assert_eq!(gatepost.database.count("consents"), 0, "{scope}");
    }
}

#[test]
fn a_denial_goes_to_the_client_and_is_not_remembered() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (mode, is_query) in [("query", true), ("fragment", false)] {
        let page = browser.visit(&path(&[("response_mode", mode)]));
        let answer = browser.decide(&page, "deny", &["profile"], true);
        let got = if is_query {
            answer.query()
        } else {
            answer.fragment()
        };
        assert_eq!(got["error"].as_str(), "access_denied");
        assert_eq!(got["state"].as_str(), "the-state");
        assert!(answer.location().starts_with(RP2));
    }
    let page = browser.visit(&path(&[("response_mode", "form_post")]));
    assert_eq!(
        browser.decide(&page, "deny", &[], true).fields()["error"],
        "access_denied"
    );
    assert_eq!(gatepost.database.count("consents"), 0);
    assert!(asks(&browser.visit(&path(&[]))));
    let page = browser.visit(&path(&[]));
    for decision in ["", "Allow", "continue", "cancel", "sign_out"] {
        browser
            .decide(&page, decision, &["profile"], true)
            .assert_error_page(400, "GP1505", decision);
    }
}

#[test]
fn consent_is_remembered_when_the_user_says_so_and_until_more_is_asked() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    assert_eq!(
        silent_error(&mut browser, &[]).as_deref(),
        Some("consent_required")
    );
    let page = browser.visit(&path(&[]));
    assert!(page.text().contains("name=\"remember\""));
    let once = browser.decide(&page, "allow", &["profile", "orders.read"], false);
    tokens(&gatepost, &once);
    assert_eq!(
        silent_error(&mut browser, &[]).as_deref(),
        Some("consent_required")
    );
    let page = browser.visit(&path(&[]));
    browser.decide(&page, "allow", &["profile", "orders.read"], true);
    assert_eq!(silent_error(&mut browser, &[]), None);
    tokens(&gatepost, &browser.visit(&path(&[])));
    // The same or less needs no question, more does.
    assert_eq!(
        silent_error(&mut browser, &[("scope", "openid profile")]),
        None
    );
    let more = [("scope", "openid profile terms orders.read email")];
    assert_eq!(
        silent_error(&mut browser, &more).as_deref(),
        Some("consent_required")
    );
    let claims = [("claims", r#"{"userinfo":{"email":null}}"#)];
    assert_eq!(
        silent_error(&mut browser, &claims).as_deref(),
        Some("consent_required")
    );
    let page = browser.visit(&path(&claims));
    assert!(asks(&page), "{}", page.text());
    page.assert_says("E-mail address");
    browser.decide(&page, "allow", &["profile", "orders.read"], true);
    assert_eq!(silent_error(&mut browser, &claims), None);
    // Allowing something else does not take back what was allowed before.
    let page = browser.visit(&path(&[("scope", "openid email")]));
    browser.decide(&page, "allow", &["email"], true);
    assert_eq!(silent_error(&mut browser, &more), None);
    // It is alice's own: bob is asked.
    let mut bob = gatepost.browser();
    let page = bob.visit(&path(&[]));
    let answer = sign_in(&mut bob, &page, "bob", BOB_PASSWORD);
    assert!(asks(&bob.follow(answer)));
}

#[test]
fn what_was_unticked_is_asked_about_again() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[]));
    browser.decide(&page, "allow", &["orders.read"], true);
    assert_eq!(
        silent_error(&mut browser, &[]).as_deref(),
        Some("consent_required")
    );
    assert_eq!(
        silent_error(&mut browser, &[("scope", "openid terms orders.read")]),
        None
    );
    // Unticking later what was allowed before takes it back.
    let page = browser.visit(&path(&[("prompt", "consent")]));
    browser.decide(&page, "allow", &[], true);
    assert_eq!(
        silent_error(&mut browser, &[("scope", "openid orders.read")]).as_deref(),
        Some("consent_required")
    );
}

#[test]
fn prompt_consent_asks_every_time_and_every_client() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for _ in 0..2 {
        let page = browser.visit(&path(&[("prompt", "consent")]));
        assert!(asks(&page));
        browser
            .decide(&page, "allow", &["profile", "orders.read"], true)
            .assert_carries("code");
        let page = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "consent")]));
        assert!(asks(&page));
        browser
            .decide(&page, "allow", &["profile"], true)
            .assert_carries("code");
    }
    // What was agreed to on that page is remembered; where nothing is required, nothing is asked.
    assert_eq!(silent_error(&mut browser, &[]), None);
    code(
        &mut browser,
        &authorize_path(
            "conf1",
            RP1,
            &[("scope", "openid email"), ("prompt", "none")],
        ),
    );
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
            assert!(asks(&answer), "{token}");
            assert!(answer.header("location").is_none(), "{token}");
            assert!(answer.text().contains("Alice Smith"), "{}", answer.text());
        }
    }
    // The attacker's own page, sent by the victim, is drawn again for the victim.
    let form = [("form_token", attackers.as_str()), ("decision", "allow")];
    assert!(asks(&browser.post(&attackers_page.action(), &form)));
    let token = page.form_token();
    let form = [
        ("form_token", token.as_str()),
        ("decision", "allow"),
        ("scope", "profile"),
    ];
    for headers in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
    ] {
        browser
            .post_from(&page.action(), &[headers], &form)
            .assert_error_page(403, "GP1009", headers.1);
    }
    let mut without_cookies = gatepost.browser();
    let answer = without_cookies.post(&page.action(), &form);
    without_cookies
        .follow(answer)
        .assert_says("name=\"password\"");
    assert_eq!(gatepost.database.count("consents"), 0);
    // A GET decides nothing.
    let address = format!(
        "{}&form_token={token}&decision=allow&scope=profile",
        page.action()
    );
    assert!(asks(&browser.get(&address)));
}

#[test]
fn a_page_drawn_for_one_session_is_drawn_again_in_another() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[]));
    assert!(page.text().contains("Alice Smith"));
    let login = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    sign_in(&mut browser, &login, "bob", BOB_PASSWORD);
    let again = browser.decide(&page, "allow", &["profile"], true);
    assert!(asks(&again), "{}", again.text());
    again.assert_says("<bdi>Bob</bdi>");
    again.assert_says_not("Alice");
    assert!(again.text().contains("changed while this page was open"));
    assert_eq!(gatepost.database.count("consents"), 0);
    browser
        .decide(&again, "allow", &["profile"], false)
        .assert_carries("code");
    // Also when the same person signed in anew, and when nobody is signed in any more.
    let page = browser.visit(&path(&[]));
    let login = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    sign_in(&mut browser, &login, "bob", BOB_PASSWORD);
    assert!(asks(&browser.decide(&page, "allow", &["profile"], true)));
    gatepost.run_sql("UPDATE sessions SET ended_at = now()");
    let answer = browser.decide(&page, "allow", &["profile"], true);
    assert!(browser.follow(answer).text().contains("name=\"password\""));
    assert_eq!(gatepost.database.count("consents"), 0);
}

#[test]
fn another_account_can_be_chosen_from_the_page() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[]));
    let login = browser.decide(&page, "another", &[], false);
    login.assert_says("name=\"password\"");
    login.assert_says_not("alice");
    let answer = sign_in(&mut browser, &login, "bob", BOB_PASSWORD);
    let page = browser.follow(answer);
    assert!(asks(&page), "{}", page.text());
    page.assert_says("<bdi>Bob</bdi>");
    let got = tokens(
        &gatepost,
        &browser.decide(&page, "allow", &["profile"], false),
    );
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
            assert!(asks(&page), "{}", page.text());
            page.assert_says_not("name=\"remember\"");
            let answer = browser.decide(&page, "allow", &["profile"], true);
            answer.assert_leads_to(&format!("{uri}?code="));
        }
        let silent = browser.get(&authorize_path("native", uri, &[("prompt", "none")]));
        assert_eq!(silent.query()["error"], "consent_required");
    }
    // None was offered to be remembered.
    assert_eq!(gatepost.database.count("consents"), 0);
    code(
        &mut browser,
        &authorize_path("trusted", "com.example.trusted:/cb", &[("prompt", "none")]),
    );
    // On loopback the registration may say that it is remembered.
    let page = browser.visit(&authorize_path("spa", spa, &[]));
    assert!(asks(&page), "{}", page.text());
    page.assert_says("name=\"remember\"");
    browser.decide(&page, "allow", &["profile"], true);
    code(
        &mut browser,
        &authorize_path("spa", spa, &[("prompt", "none")]),
    );
}

#[test]
fn a_withdrawn_consent_ends_codes_tokens_and_memory() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[]));
    let got = tokens(
        &gatepost,
        &browser.decide(&page, "allow", &["profile", "orders.read"], true),
    );
    let in_flight = code(&mut browser, &path(&[]));
    let of_another_client = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    userinfo(&gatepost, got["access_token"].as_str().unwrap()).assert_status(200);
    gatepost.database.run(
        "UPDATE consents SET scopes = '{}', claims = '{}', epoch = 1 WHERE client_id = 'conf2'",
    );
    let refused = redeem_as(&gatepost, CONF2, RP2, &in_flight);
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"], "invalid_grant");
    userinfo(&gatepost, got["access_token"].as_str().unwrap()).assert_status(401);
    assert_eq!(
        silent_error(&mut browser, &[]).as_deref(),
        Some("consent_required")
    );
    crate::support::flow::redeem(&gatepost, &of_another_client).assert_status(200);
    let page = browser.visit(&path(&[]));
    tokens(
        &gatepost,
        &browser.decide(&page, "allow", &["profile", "orders.read"], true),
    );
    assert_eq!(silent_error(&mut browser, &[]), None);
}

#[test]
fn what_is_withdrawn_while_an_answer_is_on_its_way_is_not_remembered_again() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    let claims = [("claims", r#"{"userinfo":{"email":null}}"#)];
    let page = browser.visit(&path(&claims));
    let scopes = ["profile", "orders.read"];
    browser.decide(&page, "allow", &scopes, true);
    assert_eq!(silent_error(&mut browser, &claims), None);
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
    assert_eq!(silent_error(&mut browser, &email), None);
    for withdrawn in ["openid profile", "openid orders.read"] {
        assert_eq!(
            silent_error(&mut browser, &[("scope", withdrawn)]).as_deref(),
            Some("consent_required"),
            "{withdrawn}"
        );
    }
    let row = gatepost
        .database
        .client()
        .query_one("SELECT scopes, claims FROM consents", &[])
        .unwrap();
    let [mut remembered, claims] = [0, 1].map(|column| row.get::<_, Vec<String>>(column));
    remembered.sort_unstable();
    assert_eq!(
        (remembered, claims),
        (vec![String::from("email"), String::from("openid")], vec![])
    );
}

#[test]
fn a_consent_lapses_when_its_time_is_over() {
    let mut registered = registered();
    registered["clients"][1]["consent_lifetime"] = json!(86_400);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&path(&[]));
    browser.decide(&page, "allow", &["profile", "orders.read"], true);
    assert_eq!(silent_error(&mut browser, &[]), None);
    let earlier = "UPDATE consents SET granted_at = granted_at - interval '1 day', expires_at = expires_at - interval '1 day'";
    gatepost.database.run(earlier);
    assert_eq!(
        silent_error(&mut browser, &[]).as_deref(),
        Some("consent_required")
    );
    // What the user agreed to for a day does not last longer because the client's registration
    // changed.
    registered["clients"][1]
        .as_object_mut()
        .unwrap()
        .remove("consent_lifetime");
    gatepost.apply(&registered);
    assert_eq!(
        silent_error(&mut browser, &[]).as_deref(),
        Some("consent_required")
    );
}

#[test]
fn a_client_that_may_not_have_it_remembered_asks_again() {
    let mut registered = registered();
    registered["clients"][1]["allow_remember_consent"] = json!(false);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    for _ in 0..2 {
        let page = browser.visit(&path(&[]));
        assert!(asks(&page) && !page.text().contains("name=\"remember\""));
        tokens(
            &gatepost,
            &browser.decide(&page, "allow", &["profile", "orders.read"], true),
        );
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
    let answer = browser.decide(&page, "allow", &["profile", "orders.read"], true);
    assert_eq!(answer.query()["error"], "invalid_scope");
    narrowed["clients"][1]["redirect_uris"] = json!(["https://rp2.example/moved"]);
    gatepost.apply(&narrowed);
    browser
        .decide(&page, "allow", &["profile"], true)
        .assert_error_page(400, "GP1105", "moved");
    narrowed["clients"][1]["enabled"] = json!(false);
    gatepost.apply(&narrowed);
    browser
        .decide(&page, "allow", &["profile"], true)
        .assert_error_page(400, "GP1103", "disabled");
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
    assert_eq!(
        silent_error(&mut browser, &[("scope", "openid email")]),
        None
    );
    gatepost.run_sql("UPDATE consents SET granted_at = granted_at - interval '90 days'");
    assert_eq!(
        silent_error(&mut browser, &[("scope", "openid email")]).as_deref(),
        Some("consent_required")
    );
    let page = browser.visit(&path(&[("scope", "openid orders.read")]));
    browser.decide(&page, "allow", &["orders.read"], true);
    assert_eq!(
        silent_error(&mut browser, &[("scope", "openid orders.read")]),
        None
    );
    assert_eq!(
        silent_error(&mut browser, &[("scope", "openid email")]).as_deref(),
        Some("consent_required")
    );
}
