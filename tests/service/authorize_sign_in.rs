//! Who must sign in, and when: `prompt`, `max_age`, `acr_values`, `claims`, `id_token_hint`,
//! `login_hint`, `ui_locales`.

use std::thread::sleep;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::claims::{Members, Says};
use crate::support::flow::{
    asks_to_sign_in, authorize_path, code, decode_jwt, issued, redeem, sign_in, signed_in, text,
    userinfo,
};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, RP2, document};
use crate::support::http::{Answer, Browser};
use crate::support::tables::rows_of;

fn path(changes: &[(&str, &str)]) -> String {
    authorize_path("conf1", RP1, changes)
}

fn error(browser: &mut Browser, changes: &[(&str, &str)]) -> String {
    let answer = browser.visit(&path(changes));
    answer.query().remove("error").unwrap()
}

/// Claims of the ID token that a code is good for.
fn id_token(gatepost: &Gatepost, code: &str) -> Value {
    let tokens = issued(&redeem(gatepost, code));
    decode_jwt(text(&tokens, "id_token")).1
}

/// Those of an ID token that needs no page.
fn claims_for(gatepost: &Gatepost, browser: &mut Browser, changes: &[(&str, &str)]) -> Value {
    id_token(gatepost, &code(browser, &path(changes)))
}

#[track_caller]
fn assert_error(browser: &mut Browser, changes: &[(&str, &str)], expected: &str) {
    assert_eq!(error(browser, changes), expected, "{changes:?}");
}

fn choose(browser: &mut Browser, page: &Answer, decision: &str) -> Answer {
    browser.submit(page, &[("decision", decision)])
}

#[test]
fn prompt_none_never_shows_a_page() {
    let gatepost = Gatepost::shared();
    let mut stranger = gatepost.browser();
    assert_error(&mut stranger, &[("prompt", "none")], "login_required");
    let mut browser = signed_in(&gatepost);
    let first = claims_for(&gatepost, &mut browser, &[]);
    sleep(Duration::from_millis(1_100));
    let silent = claims_for(&gatepost, &mut browser, &[("prompt", "none")]);
    for name in ["sub", "auth_time", "sid", "acr", "amr"] {
        assert_eq!(silent[name], first[name], "{name}");
    }
    assert!(silent["iat"].as_i64() > first["iat"].as_i64());
    let unfit = "none login|consent none|create|Login|NONE|login,consent|none\u{a0}";
    for prompt in unfit.split('|') {
        assert_error(&mut browser, &[("prompt", prompt)], "invalid_request");
    }
}

#[test]
fn a_session_that_no_longer_stands_means_login_required() {
    let gatepost = Gatepost::start();
    // A server tells the time to a few milliseconds.
    for [end, mend] in rows_of(
        "
        UPDATE sessions SET ended_at = now()                         |
        UPDATE sessions SET expires_at = now() - interval '1 second' |
        DELETE FROM sessions                                         |
        UPDATE users SET enabled = false                             | UPDATE users SET enabled = true
        UPDATE users SET epoch = epoch + 1                           |
        UPDATE installation SET epoch = epoch + 1                    | UPDATE installation SET epoch = epoch - 1
        ",
    ) {
        let mut browser = signed_in(&gatepost);
        code(&mut browser, &path(&[("prompt", "none")]));
        gatepost.database.run(end);
        assert_error(&mut browser, &[("prompt", "none")], "login_required");
        assert!(asks_to_sign_in(&browser.visit(&path(&[]))), "{end}");
        gatepost.database.run(mend);
    }
    // A cookie that somebody made up is none.
    let mut browser = signed_in(&gatepost);
    let [long, longer] = [48, 5_000].map(|length| "A".repeat(length));
    for value in ["", "x", "AAAA", &long, &longer, "%00", "\"quoted\""] {
        for cookie in browser.cookies.values_mut() {
            value.clone_into(cookie);
        }
        assert_error(&mut browser, &[("prompt", "none")], "login_required");
    }
}

#[test]
fn prompt_login_asks_again_and_moves_auth_time() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let before = claims_for(&gatepost, &mut browser, &[]);
    sleep(Duration::from_millis(1_100));
    let page = browser.visit(&path(&[("prompt", "login")]));
    assert!(asks_to_sign_in(&page));
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let after = id_token(&gatepost, &answer.query()["code"]);
    assert!(after["auth_time"].as_i64() > before["auth_time"].as_i64());
    assert_eq!(after["sid"], before["sid"]);
    assert_eq!(after["sub"], before["sub"]);
    // What was sent once signs nobody in again: the way back leads to a page.
    let again = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    assert!(asks_to_sign_in(&again), "{} {}", again.status, again.text());
    // Asked for anew, it asks anew.
    let anew = browser.visit(&path(&[("prompt", "login")]));
    assert!(asks_to_sign_in(&anew));
}

#[test]
fn max_age_is_held_and_never_loops() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let fresh = claims_for(&gatepost, &mut browser, &[("max_age", "2147483648")]);
    gatepost.run_sql("UPDATE sessions SET auth_time = auth_time - interval '2 minutes'");
    let aged = claims_for(&gatepost, &mut browser, &[("max_age", "1000")]);
    let [before, after] = [&fresh, &aged].map(|claims| claims["auth_time"].as_i64().unwrap());
    assert_eq!(after + 120, before);
    for max_age in ["60", "119", "1", "0"] {
        let silently = [("max_age", max_age), ("prompt", "none")];
        assert_error(&mut browser, &silently, "login_required");
        let page = browser.visit(&path(&[("max_age", max_age)]));
        assert!(asks_to_sign_in(&page), "{max_age}");
    }
    let page = browser.visit(&path(&[("max_age", "60")]));
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let renewed = id_token(&gatepost, &answer.query()["code"]);
    assert!(renewed["auth_time"].as_i64() > aged["auth_time"].as_i64());
    // With 0 every session that was there before is too old, and the sign-in made for the request
    // is not.
    for _ in 0..2 {
        let page = browser.visit(&path(&[("max_age", "0")]));
        assert!(asks_to_sign_in(&page));
        let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
        answer.assert_carries("code");
    }
    let unfit = "-1|+5|5.5| 5|5 |1e3|99999999999999999999|1000000000000000000|\u{665}|0x10|five";
    for max_age in unfit.split('|') {
        assert_error(&mut browser, &[("max_age", max_age)], "invalid_request");
    }
}

#[test]
fn a_clients_default_max_age_counts_where_the_request_has_none() {
    let mut registered = document();
    registered["clients"][0]["default_max_age"] = json!(60);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    code(&mut browser, &path(&[]));
    gatepost.run_sql("UPDATE sessions SET auth_time = auth_time - interval '2 minutes'");
    assert_error(&mut browser, &[("prompt", "none")], "login_required");
    let lasting = path(&[("prompt", "none"), ("max_age", "600")]);
    code(&mut browser, &lasting);
}

#[test]
fn select_account_offers_the_present_account_and_another() {
    let gatepost = Gatepost::shared();
    let asked = path(&[("prompt", "select_account")]);
    // Without a session signing in is choosing.
    let mut browser = gatepost.browser();
    let page = browser.visit(&asked);
    assert!(asks_to_sign_in(&page));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).assert_carries("code");

    let page = browser.visit(&asked);
    page.assert_says("Alice Smith");
    assert!(!asks_to_sign_in(&page), "{}", page.text());
    choose(&mut browser, &page, "continue").assert_carries("code");
    choose(&mut browser, &page, "cancel").assert_query("error", "access_denied");
    let another = choose(&mut browser, &page, "another");
    assert!(asks_to_sign_in(&another));
    let answer = sign_in(&mut browser, &another, "bob", BOB_PASSWORD);
    let bob = id_token(&gatepost, &answer.query()["code"]);
    // The page drawn for alice means nothing in bob's session.
    let stale = choose(&mut browser, &page, "continue");
    assert_eq!((stale.status, stale.header("location")), (200, None));
    assert_eq!(claims_for(&gatepost, &mut browser, &[])["sub"], bob["sub"]);
    let page = browser.visit(&asked);
    for decision in ["", "allow", "CONTINUE", "sign_out"] {
        let answer = choose(&mut browser, &page, decision);
        assert!(answer.header("location").is_none(), "{decision}");
        assert!(answer.status != 500, "{decision}");
    }
}

#[test]
fn prompts_may_be_combined() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    for prompt in ["login consent", "select_account login consent"] {
        let page = browser.visit(&path(&[("prompt", prompt)]));
        assert!(asks_to_sign_in(&page), "{prompt}");
        let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
        let consent = browser.follow(answer);
        consent.assert_says_for(prompt, "asks for access");
        let answer = browser.decide(&consent, "allow", &["profile"], false);
        answer.assert_carries("code");
    }
    let chooser = browser.visit(&path(&[("prompt", "consent select_account")]));
    let consent = choose(&mut browser, &chooser, "continue");
    consent.assert_says("asks for access");
    let answer = browser.decide(&consent, "allow", &["profile"], false);
    answer.assert_carries("code");
}

#[test]
fn unknown_identity_providers_and_values_change_nothing_but_the_log() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let unknown = "idp:unknown|idp:../x|idp:https://evil.example|idp:|tenant:<script>|urn:x 1 0";
    for values in unknown.split('|') {
        let asked = path(&[("acr_values", values), ("prompt", "none")]);
        code(&mut browser, &asked);
    }
    let log = gatepost.log();
    log.assert_says("identity provider \"https://evil.example\"");
    code(&mut browser, &path(&[("acr_values", "idp:local")]));
    let values = "idp:unknown tenant:<script>alert(1)</script>";
    let page = gatepost.browser().visit(&path(&[("acr_values", values)]));
    assert!(asks_to_sign_in(&page) && !page.text().contains("<script>"));
    let long = "idp:x ".repeat(5_000);
    assert_error(
        &mut browser,
        &[("acr_values", &long[..20_000])],
        "invalid_request",
    );
}

#[test]
fn a_sign_in_stays_within_its_tenant() {
    let mut registered = document();
    registered["tenants"] = json!([{"name": "acme", "display_name": "ACME <b>Ltd</b>"}, {"name": "globex", "display_name": "Globex"}]);
    registered["clients"][0]["tenants"] = json!(["acme"]);
    registered["clients"][1]["tenants"] = json!(["acme", "globex"]);
    let alice = json!({"username": "alice", "password": BOB_PASSWORD, "tenant": "acme"});
    registered["users"].as_array_mut().unwrap().push(alice);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = gatepost.browser();
    // conf1 has one tenant, so that is the one; alice without a tenant is somebody else.
    let page = browser.visit(&path(&[]));
    page.assert_says("ACME &lt;b&gt;Ltd&lt;/b&gt;");
    let wrong = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    assert!(asks_to_sign_in(&wrong));
    // A form cannot say where it signs in.
    let token = wrong.form_token();
    let form = [
        ("form_token", token.as_str()),
        ("username", "alice"),
        ("password", ALICE_PASSWORD),
    ];
    for outside in [
        ("tenant", ""),
        ("tenant", "globex"),
        ("acr_values", "tenant:globex"),
        ("client_id", "conf2"),
    ] {
        let answer = browser.post(&wrong.action(), &[&form[..], &[outside]].concat());
        assert!(asks_to_sign_in(&answer), "{outside:?}");
    }
    let answer = sign_in(&mut browser, &wrong, "alice", BOB_PASSWORD);
    let claims = id_token(&gatepost, &answer.query()["code"]);
    assert_eq!(claims["tenant"], "acme");
    code(&mut browser, &path(&[("acr_values", "tenant:acme")]));
    let unfit = "tenant:globex|tenant:nope|tenant:|tenant:ACME|tenant:acme tenant:globex|\
                 tenant:<script>";
    for values in unfit.split('|') {
        assert_error(&mut browser, &[("acr_values", values)], "invalid_request");
    }
    // A session of one tenant is none in another, nor without one.
    for values in ["tenant:globex", ""] {
        let silent = [("acr_values", values), ("prompt", "none")];
        let answer = browser.get(&authorize_path("conf2", RP2, &silent));
        assert_eq!(answer.query()["error"], "login_required", "{values}");
    }
}

#[test]
fn the_claims_parameter_reaches_no_further_than_the_clients_scopes() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let wanted = r#"{"userinfo":{"name":{"essential":true},"email":null,"phone_number":null,"role":null,"password_hash":null}}"#;
    let asked = path(&[("scope", "openid"), ("claims", wanted)]);
    let code = code(&mut browser, &asked);
    let tokens = issued(&redeem(&gatepost, &code));
    let told = userinfo(&gatepost, text(&tokens, "access_token")).json();
    told.assert_members("email name role sub");
    for claims in [
        "x",
        "[]",
        "{",
        "null",
        "5",
        r#"{"userinfo":1}"#,
        r#"{"id_token":{"sub":{"value":5}}}"#,
    ] {
        assert_error(&mut browser, &[("claims", claims)], "invalid_request");
    }
    let deep = "[".repeat(2_000);
    assert_error(&mut browser, &[("claims", &deep)], "invalid_request");
    for values in [r#"["urn:gold"]"#, "[]"] {
        let claims = format!(r#"{{"id_token":{{"acr":{{"essential":true,"values":{values}}}}}}}"#);
        let claims = ("claims", claims.as_str());
        for changes in [&[claims][..], &[claims, ("prompt", "none")]] {
            assert_error(&mut browser, changes, "unmet_authentication_requirements");
        }
    }
}

#[test]
fn a_subject_that_is_named_is_the_only_one_that_will_do() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let alice = text(&claims_for(&gatepost, &mut browser, &[]), "sub").to_owned();
    let named = |subject: &str| format!(r#"{{"id_token":{{"sub":{{"value":"{subject}"}}}}}}"#);
    let silently = ("prompt", "none");
    let hers = path(&[("claims", &named(&alice)), silently]);
    code(&mut browser, &hers);
    let other = named("somebody-else");
    let others = [("claims", &*other), silently];
    assert_error(&mut browser, &others, "login_required");
    let page = browser.visit(&path(&[("claims", &other)]));
    assert!(asks_to_sign_in(&page));
    let answer = sign_in(&mut browser, &page, "bob", BOB_PASSWORD);
    assert_eq!(answer.query()["error"], "login_required");
    // Bob is signed in all the same.
    let now = claims_for(&gatepost, &mut browser, &[]);
    assert_ne!(now["sub"], alice.as_str());
}

#[test]
fn an_id_token_hint_names_the_subject_however_old_it_is() {
    let mut registered = document();
    registered["clients"][0]["id_token_lifetime"] = json!(1);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    let tokens = redeem(&gatepost, &code(&mut browser, &path(&[]))).json();
    let (hint, access_token) = (text(&tokens, "id_token"), text(&tokens, "access_token"));
    let silently = [("id_token_hint", hint), ("prompt", "none")];
    sleep(Duration::from_millis(2_100));
    code(&mut browser, &path(&silently));

    let mut other = gatepost.browser();
    let page = other.visit(&path(&[("id_token_hint", hint)]));
    let answer = sign_in(&mut other, &page, "bob", BOB_PASSWORD);
    assert_eq!(answer.query()["error"], "login_required");
    assert_error(&mut other, &silently, "login_required");
    let page = other.visit(&path(&[("id_token_hint", hint)]));
    assert!(asks_to_sign_in(&page));
    sign_in(&mut other, &page, "alice", ALICE_PASSWORD).assert_carries("code");

    let [header, payload, signature] = hint.split('.').collect::<Vec<_>>()[..] else {
        panic!("{hint}");
    };
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let kid = text(&decode_jwt(hint).0, "kid").to_owned();
    let bob = json!({"iss": gatepost.base_url, "sub": "bob", "aud": "conf1"});
    let bob = encode(&bob.to_string());
    let none = encode(r#"{"alg":"none","typ":"JWT"}"#);
    let symmetric = encode(&format!(r#"{{"alg":"HS256","typ":"JWT","kid":"{kid}"}}"#));
    let elsewhere = encode(r#"{"alg":"RS256","typ":"JWT","kid":"../../dev/null"}"#);
    let forged = [
        format!("{header}.{bob}.{signature}"),
        format!("{none}.{payload}."),
        format!("{header}.{payload}."),
        format!("{symmetric}.{payload}.{signature}"),
        format!("{elsewhere}.{payload}.{signature}"),
        format!("{header}.{payload}"),
        format!("{hint}x"),
    ];
    let others = [access_token, "x", "a.b.c", "..."];
    for hint in forged.iter().map(String::as_str).chain(others) {
        let hint = [("id_token_hint", hint)];
        assert_error(&mut browser, &hint, "invalid_request");
        assert_error(&mut gatepost.browser(), &hint, "invalid_request");
    }
}

#[test]
fn the_page_speaks_the_language_asked_for_and_knows_the_hinted_name() {
    let gatepost = Gatepost::shared();
    let hint = "\"><script>alert(1)</script>@example";
    let mut browser = gatepost.browser();
    let asked = [("ui_locales", "sv-SE de-CH en"), ("login_hint", hint)];
    let page = browser.visit(&path(&asked));
    page.assert_says_each("lang=\"de\" | Anmelden");
    let username = page.attribute("id=\"username\"", "value");
    assert_eq!(username.as_deref(), Some(hint));
    page.assert_says_not("<script>");
    for (locales, spoken) in [
        ("fr-CA", "fr"),
        ("pt-BR", "pt"),
        ("zh-CN", "zh-Hans"),
        ("pl_PL", "pl"),
        ("ja", "ja"),
    ] {
        let page = browser.visit(&path(&[("ui_locales", locales)]));
        page.assert_says_for(locales, &format!("<html lang=\"{spoken}\">"));
    }
    let long = "x-".repeat(150);
    for locales in ["", "se", "<script>", "de\u{202e}", "zz-zz-zz-zz", &long] {
        let page = browser.visit(&path(&[("ui_locales", locales)]));
        let is_english = page.text().contains("lang=\"en\"");
        assert!(is_english || locales.starts_with("de"), "{locales}");
        page.assert_says_not("<script>");
    }
    let prefers = String::from("de-AT,de;q=0.9,en;q=0.5");
    let prefers = (String::from("Accept-Language"), prefers);
    browser.headers.push(prefers);
    browser.visit(&path(&[])).assert_says("lang=\"de\"");
    let page = browser.visit(&path(&[("ui_locales", "en")]));
    page.assert_says("lang=\"en\"");
}

#[test]
fn whoever_asks_for_no_language_that_there_is_reads_that_of_the_house() {
    let gatepost = Gatepost::start_with(&document(), &[("GATEPOST_LANGUAGE", "de")]);
    for (prefers, ui_locales, spoken) in [
        (None, "", "de"),
        (Some("sv, zz;q=0.5"), "", "de"),
        (Some("*"), "tlh", "de"),
        (Some("fr-CA"), "", "fr"),
        (Some("en"), "", "en"),
        (Some("sv"), "en", "en"),
    ] {
        let mut browser = gatepost.browser();
        let prefers = prefers.map(|text| (String::from("Accept-Language"), text.to_owned()));
        browser.headers.extend(prefers.clone());
        // A page of the sign-in, one of its own, and one about what is wrong.
        let unknown = authorize_path("nobody", RP1, &[("ui_locales", ui_locales)]);
        let account = format!("/account?ui_locales={ui_locales}");
        for path in [path(&[("ui_locales", ui_locales)]), account, unknown] {
            let text = browser.visit(&path).text();
            let wanted = format!("<html lang=\"{spoken}\">");
            assert!(text.contains(&wanted), "{prefers:?} {path}: {text}");
        }
    }
}
