//! Sessions that are bound to a key of their browser (DBSC): what a browser registers and proves,
//! what the cookie of such a session is worth elsewhere, and what ends it. A program plays the
//! browser; a real one is in `tests/e2e`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::bound::{
    BoundBrowser, SETTINGS, bind, bound_cookie, challenge, challenge_offered, pass_half_a_minute,
    proof, refresh, registration, signed_in, signed_in_with,
};
use crate::support::claims::Says;
use crate::support::flow::{
    asks_to_sign_in, authorize_path, damaged, is_signed_in, request_of, sign_in, with_members,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::house::House;
use crate::support::http::{Answer, Browser, ask_alone, encode, free_address};
use crate::support::phone::{Phone, recovery_codes};
use crate::support::postgres::TestDatabase;
use crate::support::shared::Shared;
use crate::support::signer::Signer;
use crate::support::traveller::Traveller;
use crate::support::waiting::{SOON, await_that};

const SENTENCE: &str = "this browser could not show that it is the one that signed in";

fn start() -> Shared {
    Gatepost::lent_with(&document(), &SETTINGS)
}

fn sessions(gatepost: &Gatepost, which: &str) -> i64 {
    let counted = format!("SELECT count(*) FROM sessions WHERE {which}");
    gatepost.database.value(&counted, &[])
}

fn clears_storage(answer: &Answer) -> bool {
    answer.header("clear-site-data") == Some("\"storage\"")
}

/// The sign-in page for a request that any session is enough for.
fn sign_in_page(browser: &mut Browser) -> Answer {
    let page = browser.visit(&request_of("conf1", &[]));
    assert!(asks_to_sign_in(&page), "{}", page.text());
    page
}

#[test]
fn a_stolen_session_cookie_is_worth_nothing_once_half_a_minute_has_passed() {
    let gatepost = start();
    let mut bound = BoundBrowser::sign_in(&gatepost);
    let mut thief = bound.copied();
    assert!(is_signed_in(&mut bound.browser));
    assert!(is_signed_in(&mut thief), "requests may cross");
    pass_half_a_minute(&gatepost);
    assert!(is_signed_in(&mut bound.browser));
    for skipped in [None, Some("quota_exceeded"), Some("unreachable;a=b")] {
        let name = String::from("Secure-Session-Skipped");
        let skipping = skipped.map(|skipped| (name, String::from(skipped)));
        thief.headers = skipping.into_iter().collect();
        assert!(!is_signed_in(&mut thief), "{skipped:?}");
        let page = sign_in_page(&mut thief);
        page.text().assert_says(SENTENCE);
        assert!(!clears_storage(&page), "the session may be shown again");
        thief.get("/account").assert_leads_to("/login");
    }
    gatepost.await_log("why", |log| {
        log.contains("reason=\"GP1480\" detail=\"sid ")
            && log.contains(", skipped quota_exceeded\"")
    });
    assert_eq!(gatepost.database.events("bound_session_refused"), 1);
    let hour_ago = "UPDATE sessions SET refused_at = refused_at - interval '1 hour'";
    gatepost.run_sql(hour_ago);
    assert!(!is_signed_in(&mut thief));
    assert_eq!(gatepost.database.events("bound_session_refused"), 2);
    // Neither does a cookie that shows the key of another session, nor one alone.
    let other = BoundBrowser::sign_in(&gatepost);
    let value = other.browser.cookies[other.cookie()].clone();
    let other_name = other.cookie().to_owned();
    thief.cookies.insert(other_name, value.clone());
    assert!(!is_signed_in(&mut thief));
    thief.cookies.insert(bound.cookie().to_owned(), value);
    assert!(!is_signed_in(&mut thief));
    let mut alone = other.browser.clone();
    alone.cookies.retain(|name, _| name == other.cookie());
    assert!(!is_signed_in(&mut alone));
}

#[test]
fn the_answer_to_a_registration_tells_the_browser_all_it_must_know() {
    let gatepost = start();
    let (mut browser, answer) = signed_in(&gatepost);
    let offered = challenge_offered(&answer).unwrap();
    let proof = registration(&Signer::rs256("device"), &offered);
    let answer = bind(&gatepost, &[&proof]);
    answer.assert_header("cache-control", "no-store");
    let (name, value) = bound_cookie(&answer).unwrap();
    let mut instructions = answer.json();
    let paths = instructions["scope"]["scope_specification"].take();
    assert!(instructions["session_identifier"].take().is_string());
    let expected = json!({
        "session_identifier": null,
        "refresh_url": "https://login.example/session/refresh",
        "allowed_refresh_initiators": ["*"],
        "scope": {"origin": "https://login.example", "include_site": false, "scope_specification": null},
        "credentials": [{"type": "cookie", "name": name, "attributes": "Path=/; HttpOnly; Secure; SameSite=Lax"}],
    });
    assert_eq!(instructions, expected);
    let paths = paths.as_array().unwrap();
    let all_else = json!({"type": "exclude", "domain": "*", "path": "/"});
    assert_eq!(paths[0], all_else);
    assert_eq!(paths[1]["path"], "/connect/authorize");
    assert!(answer.body.len() + value.len() < 4_096);
    assert_eq!(gatepost.database.events("session_bound"), 1);
    browser.cookies.insert(name, value);
    pass_half_a_minute(&gatepost);
    assert!(is_signed_in(&mut browser));
}

#[test]
fn a_registration_that_is_not_in_order_binds_nothing() {
    let gatepost = start();
    let (mut browser, answer) = signed_in(&gatepost);
    let offered = challenge_offered(&answer).unwrap();
    let (key, other) = (Signer::es256("device"), Signer::es256("other"));
    let good = registration(&key, &offered);
    let header = |changes: Value| {
        let header = json!({"typ": "dbsc+jwt", "alg": "ES256", "jwk": key.jwk()});
        with_members(header, &changes)
    };
    let under = |signer: &Signer, changes: Value| {
        signer.sign_under(&header(changes), &json!({"jti": offered}))
    };
    let rsa = Signer::rs256("rsa");
    let ed25519 = Signer::ed25519("ed25519");
    let public = header(json!({"alg": "HS256", "jwk": rsa.jwk()}));
    let by_public = rsa.forge_by_public_key(&public, &json!({"jti": offered}));
    let other_alg = under(&key, json!({"alg": "RS256"}));
    let cases = [
        ("another key's signature", under(&other, json!({}))),
        ("no key", proof(&key, &offered)),
        ("another type", under(&key, json!({"typ": "dpop+jwt"}))),
        ("none", under(&key, json!({"alg": "none"}))),
        ("HS256", under(&key, json!({"alg": "HS256"}))),
        ("another algorithm than its key's", other_alg),
        ("a public key as a secret", by_public),
        ("Ed25519", registration(&ed25519, &offered)),
        ("another challenge", registration(&key, &damaged(&offered))),
        ("no challenge", registration(&key, "")),
        ("too long", under(&key, json!({"a": "a".repeat(4_096)}))),
        ("nonsense", String::from("a.b.c")),
    ];
    for (case, proof) in &cases {
        bind(&gatepost, &[proof]).assert_status_for(case, 401);
    }
    bind(&gatepost, &[]).assert_status(401);
    bind(&gatepost, &[&good, &good]).assert_status(401);
    assert_eq!(sessions(&gatepost, "bound_to IS NOT NULL"), 0);
    gatepost.await_log("why", |log| log.contains("reason=\"GP1481\""));
    // A challenge is of one sign-in: the next one of the same session makes another.
    let answer = signed_in_with(&mut browser);
    bind(&gatepost, &[&good]).assert_status(401);
    let offered = challenge_offered(&answer).unwrap();
    // The first key wins; whose answer was lost gets it again, and no longer half a minute.
    let good = registration(&key, &offered);
    bind(&gatepost, &[&good]).assert_status(200);
    pass_half_a_minute(&gatepost);
    bind(&gatepost, &[&registration(&other, &offered)]).assert_status(401);
    let again = bind(&gatepost, &[&good]);
    again.assert_status(200);
    assert_eq!(gatepost.database.events("session_bound"), 1);
    assert!(!is_signed_in(&mut browser), "it has no bound cookie");
    let (name, value) = bound_cookie(&again).unwrap();
    browser.cookies.insert(name, value);
    assert!(is_signed_in(&mut browser));
    gatepost.run_sql("UPDATE sessions SET ended_at = now()");
    bind(&gatepost, &[&good]).assert_status(401);
}

#[test]
fn a_refresh_takes_a_proof_of_the_sealed_key_and_asks_for_a_fresh_one() {
    let gatepost = start();
    let mut bound = BoundBrowser::sign_in(&gatepost);
    let another = BoundBrowser::sign_in(&gatepost);
    let asked = bound.refresh(&gatepost, &[]);
    let offered = challenge(&asked);
    let wanted = format!("\"{offered}\";id=\"{}\"", bound.identifier());
    asked.assert_header("secure-session-challenge", &wanted);
    let good = proof(&bound.key, &offered);
    let of_registration = proof(&bound.key, &bound.offered);
    for (case, proofs, status) in [
        ("by another key", vec![proof(&another.key, &offered)], 401),
        ("nonsense", vec![String::from("a.b.c")], 401),
        ("twice", vec![good.clone(), good.clone()], 401),
        ("another challenge", vec![proof(&bound.key, "proof_")], 403),
        ("the one of the registration", vec![of_registration], 403),
        ("another session's", vec![another.proof(&gatepost)], 403),
    ] {
        let lines: Vec<&str> = proofs.iter().map(String::as_str).collect();
        let answer = bound.refresh(&gatepost, &lines);
        answer.assert_status_for(case, status);
        let has_challenge = answer.header("secure-session-challenge").is_some();
        assert_eq!(has_challenge, status == 403, "{case}");
        assert_eq!(bound_cookie(&answer), None, "{case}");
    }
    for identifier in ["", "id_", &damaged(bound.identifier()), &bound.offered] {
        refresh(&gatepost, identifier, &[&good]).assert_status_for(identifier, 401);
    }
    gatepost.await_log("why", |log| log.contains("reason=\"GP1482\""));
    // A proof is not spent: browsers send it again for as long as its challenge is good.
    for _ in 0..2 {
        let answer = bound.refresh(&gatepost, &[&good]);
        answer.assert_status(200);
        assert_eq!(answer.header("secure-session-challenge"), None);
        assert!(answer.body.is_empty());
        bound.take_cookie(&answer);
    }
    pass_half_a_minute(&gatepost);
    assert!(is_signed_in(&mut bound.browser));
    // A browser that is refreshed 100 times in a row is not turned away.
    for _ in 0..100 {
        bound.refresh(&gatepost, &[&good]).assert_status(200);
    }
}

#[test]
fn challenges_identifiers_and_cookies_end_by_the_databases_clock() {
    let database = TestDatabase::with_a_clock_of_its_own();
    let mut gatepost = Gatepost::prepare_over(database, &SETTINGS);
    gatepost.apply(&document());
    gatepost.serve();
    let (_, late) = signed_in(&gatepost);
    let mut bound = BoundBrowser::sign_in(&gatepost);
    let good = bound.proof(&gatepost);
    gatepost.travel(61);
    let key = Signer::es256("late");
    let offered = challenge_offered(&late).unwrap();
    bind(&gatepost, &[&registration(&key, &offered)]).assert_status(401);
    assert!(is_signed_in(&mut bound.browser));
    assert!(!is_signed_in(&mut bound.copied()));
    // Both cookies are stolen: that is worth eleven minutes.
    gatepost.travel(599);
    assert!(!is_signed_in(&mut bound.browser));
    let answer = bound.refresh(&gatepost, &[&good]);
    answer.assert_status(200);
    bound.take_cookie(&answer);
    assert!(is_signed_in(&mut bound.browser));
    gatepost.travel(241);
    let offered = challenge(&bound.refresh(&gatepost, &[&good]));
    let good = proof(&bound.key, &offered);
    bound.refresh(&gatepost, &[&good]).assert_status(200);
    gatepost.travel(36_000);
    bound.refresh(&gatepost, &[&good]).assert_status(401);
}

#[test]
fn a_bound_session_keeps_its_key_and_a_refused_one_ends_when_somebody_signs_in_over_it() {
    let gatepost = start();
    let mut bound = BoundBrowser::sign_in(&gatepost);
    pass_half_a_minute(&gatepost);
    let renewed = signed_in_with(&mut bound.browser);
    assert_eq!(challenge_offered(&renewed), None);
    assert!(is_signed_in(&mut bound.browser));
    assert_eq!(sessions(&gatepost, "bound_to IS NOT NULL"), 1);
    let mut copied = bound.copied();
    assert!(!is_signed_in(&mut copied));
    let anew = signed_in_with(&mut copied);
    assert!(challenge_offered(&anew).is_some());
    assert!(is_signed_in(&mut copied));
    assert!(!is_signed_in(&mut bound.browser));
    let live = "bound_to IS NOT NULL AND ended_at IS NULL";
    assert_eq!(sessions(&gatepost, live), 0);
    assert_eq!(gatepost.database.events("signed_out"), 1);
}

#[test]
fn only_the_answer_to_a_sign_in_offers_to_bind_its_session() {
    let gatepost = Gatepost::start_with(&document(), &SETTINGS);
    let (mut browser, _) = signed_in(&gatepost);
    let page = browser.visit("/account");
    let new = "another quite long password";
    let form = [
        ("decision", "change_password"),
        ("present_password", ALICE_PASSWORD),
        ("new_password", new),
        ("new_password_again", new),
    ];
    let changed = browser.submit(&page, &form);
    // A first factor goes on under a new handle, and so does a session that is made stronger.
    let account = browser.visit("/account");
    let new_app = browser.submit(&account, &[("decision", "add_app")]);
    let phone = Phone::from_page(&new_app, 0);
    let code = phone.code(-1);
    let added = browser.submit(&new_app, &[("decision", "add_app"), ("code", &code)]);
    gatepost.run_sql("UPDATE sessions SET acr = '1', amr = '{pwd}'");
    let wish = authorize_path("conf1", RP1, &[("acr_values", "2")]);
    let asked = browser.visit(&wish);
    let stronger = browser.submit(&asked, &[("code", &phone.code(0))]);
    stronger.assert_carries("code");
    for answer in [&changed, &added, &stronger] {
        let set = answer.headers_named("set-cookie").join(" ");
        set.assert_says("-session-");
    }
    let mut other = gatepost.browser();
    let sign_in_page = other.visit(&wish);
    let asked_first = sign_in(&mut other, &sign_in_page, "alice", new);
    let recovery_code = &recovery_codes(&added)[0];
    let whole = other.submit(&asked_first, &[("code", recovery_code)]);
    assert!(challenge_offered(&whole).is_some());
    let late = browser.get(&wish);
    for answer in [page, changed, added, asked, stronger, asked_first, late] {
        assert_eq!(challenge_offered(&answer), None);
    }
}

#[test]
fn signing_out_needs_no_key_and_has_the_browser_forget_its_own() {
    let gatepost = start();
    for case in ["bound", "refused"] {
        let bound = BoundBrowser::sign_in(&gatepost);
        pass_half_a_minute(&gatepost);
        let mut browser = match case {
            "bound" => bound.browser.clone(),
            _ => bound.copied(),
        };
        let page = browser.get("/logout");
        page.assert_says_for(case, "Sign out?");
        assert_eq!(page.text().contains("Alice"), case == "bound");
        assert!(!clears_storage(&page), "{case}: asking ends nothing");
        let answer = browser.submit(&page, &[("decision", "sign_out")]);
        answer.assert_status_for(case, 200);
        assert!(clears_storage(&answer), "{case}");
        let left = browser.cookie_header();
        left.assert_says_not_for(case, "-session-");
        left.assert_says_not_for(case, "-bound-");
        assert_eq!(sessions(&gatepost, "ended_at IS NULL"), 0, "{case}");
        assert!(!is_signed_in(&mut bound.browser.clone()), "{case}");
    }
    let (mut browser, _) = signed_in(&gatepost);
    let page = browser.get("/logout");
    let answer = browser.submit(&page, &[("decision", "sign_out")]);
    assert!(!clears_storage(&answer), "it was not bound");
}

/// Somebody with an account at the provider, as far as its page for signing out: the state that it
/// brings back from there.
fn state_of_a_sign_out(house: &House, wish: &str) -> String {
    let mut browser = house.gatepost.browser();
    let departed = browser.get(&request_of("conf1", &[("acr_values", "idp:up")]));
    let back = Traveller::new().follow(house.up.issuer(), departed);
    browser.get(back.location()).assert_status(303);
    let page = browser.visit(wish);
    let onward = browser.submit(&page, &[("decision", "sign_out")]);
    onward.query()["state"].clone()
}

#[test]
fn no_address_ends_the_session_of_a_browser_that_cannot_show_its_key() {
    const DONE: &str = "https://rp1.example/done";
    let mut document = document();
    document["clients"][0]["post_logout_redirect_uris"] = json!([DONE]);
    let house = House::start_with(document, &json!({"sign_out": true}), &SETTINGS);
    let gatepost = &house.gatepost;
    let wish = [("client_id", "conf1"), ("post_logout_redirect_uri", DONE)];
    let wish = format!("/connect/endsession?{}", encode(&wish));
    let state = state_of_a_sign_out(&house, &wish);
    let signed_out = format!("/external/up/signed-out?{}", encode(&[("state", &state)]));
    let mut bound = BoundBrowser::sign_in(gatepost);
    let mut refused = bound.copied();
    let cookies = refused.cookies.clone();
    pass_half_a_minute(gatepost);
    for address in ["/logout", &wish, &signed_out] {
        refused.visit(address);
        let answer = refused.post(address, &[("decision", "sign_out"), ("form_token", "x")]);
        assert!(!clears_storage(&answer), "{address}");
        assert_eq!(refused.cookies, cookies, "{address}");
        assert!(is_signed_in(&mut bound.browser), "{address}");
    }
    // Whoever comes back to where no session stands leaves nothing of one behind.
    gatepost.run_sql("UPDATE sessions SET ended_at = now()");
    let answer = bound.browser.get(&signed_out);
    assert_eq!(answer.location(), DONE);
    assert!(clears_storage(&answer));
}

#[test]
fn a_browser_that_goes_straight_to_its_provider_is_told_and_cleared_as_on_the_sign_in_page() {
    let house = House::start_with(document(), &json!({}), &SETTINGS);
    let gatepost = &house.gatepost;
    let bound = BoundBrowser::sign_in(gatepost);
    pass_half_a_minute(gatepost);
    let by_provider = request_of("conf1", &[("acr_values", "idp:up")]);
    let mut refused = bound.copied();
    let page = refused.visit(&by_provider);
    page.assert_says(SENTENCE);
    let departed = refused.submit(&page, &[("identity_provider", "up")]);
    let mut over = bound.browser.clone();
    gatepost.run_sql("UPDATE sessions SET ended_at = now()");
    for (answer, is_over) in [(departed, false), (over.get(&by_provider), true)] {
        assert!(answer.location().starts_with(house.up.issuer()));
        assert_eq!(clears_storage(&answer), is_over);
    }
    assert!(!over.cookies.contains_key(bound.cookie()));
}

#[test]
fn the_identifier_of_a_session_that_another_one_follows_is_refreshed_beside_it() {
    let remember = [("GATEPOST_REMEMBER_SESSION_LIFETIME", "2592000")];
    let gatepost = Gatepost::lent_with(&document(), &[&SETTINGS[..], &remember].concat());
    let old = BoundBrowser::sign_in(&gatepost);
    let good = old.proof(&gatepost);
    let mut browser = old.browser.clone();
    let page = browser.visit(&request_of("conf1", &[("prompt", "login")]));
    let form = [
        ("username", "alice"),
        ("password", ALICE_PASSWORD),
        ("remember", "true"),
    ];
    let answer = browser.submit(&page, &form);
    assert!(!clears_storage(&answer), "it offers another registration");
    let offered = challenge_offered(&answer).unwrap();
    let bound = bind(&gatepost, &[&registration(&Signer::es256("new"), &offered)]);
    pass_half_a_minute(&gatepost);
    let (name, value) = bound_cookie(&bound).unwrap();
    assert_ne!(name, old.cookie());
    browser.cookies.insert(name, value);
    let beside = old.refresh(&gatepost, &[&good]);
    beside.assert_status(200);
    let (name, value) = bound_cookie(&beside).unwrap();
    assert_eq!(name, old.cookie());
    browser.cookies.insert(name, value);
    assert!(is_signed_in(&mut browser));
    assert!(!is_signed_in(&mut old.browser.clone()));
}

#[test]
fn what_is_left_of_a_session_that_is_over_is_cleared_before_anybody_signs_in() {
    let gatepost = start();
    let bound = BoundBrowser::sign_in(&gatepost);
    let mut restarted = bound.browser.clone();
    let is_other = |name: &str| !name.contains("-session-");
    restarted.cookies.retain(|name, _| is_other(name));
    let mut ended = bound.browser.clone();
    let mut at_device = bound.browser.clone();
    assert!(!clears_storage(&at_device.get("/device")), "it stands");
    gatepost.run_sql("UPDATE sessions SET ended_at = now()");
    for is_left in [true, false] {
        assert_eq!(clears_storage(&at_device.get("/device")), is_left);
    }
    for browser in [&mut restarted, &mut ended] {
        let page = sign_in_page(browser);
        assert!(clears_storage(&page));
        assert!(!browser.cookies.contains_key(bound.cookie()));
        assert!(!clears_storage(&sign_in_page(browser)), "nothing is left");
        let answer = signed_in_with(browser);
        assert!(!clears_storage(&answer), "it offers another registration");
        assert!(challenge_offered(&answer).is_some());
    }
}

#[test]
fn a_refresh_asks_no_database_and_every_process_answers_it() {
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy_with(&SETTINGS);
    let mut bound = BoundBrowser::sign_in(&gatepost);
    let (_, answer) = signed_in(&gatepost);
    let unbound = registration(&Signer::es256("late"), &challenge_offered(&answer).unwrap());
    let good = bound.proof(&gatepost);
    let mut other = gatepost.beside();
    other.serve();
    // Any other status would end the registration, whatever is wrong with the database.
    let full = "ALTER TABLE sessions ADD CONSTRAINT full_up CHECK (bound_to IS NULL) NOT VALID";
    gatepost.run_sql(full);
    bind(&gatepost, &[&unbound]).assert_status(503);
    gatepost.run_sql("ALTER TABLE sessions DROP CONSTRAINT full_up");
    proxy.cut(true);
    bind(&gatepost, &[&unbound]).assert_status(503);
    for gatepost in [&gatepost, &other] {
        let answer = bound.refresh(gatepost, &[&good]);
        answer.assert_status(200);
        bound.take_cookie(&answer);
    }
    proxy.cut(false);
    pass_half_a_minute(&gatepost);
    for gatepost in [&gatepost, &other] {
        await_that("signed in at each", SOON, || {
            let mut browser = gatepost.browser();
            browser.cookies = bound.browser.cookies.clone();
            let answer = browser.get(&request_of("conf1", &[("prompt", "none")]));
            answer.query().contains_key("code")
        });
    }
}

#[test]
fn a_line_of_the_master_secret_that_is_removed_ends_what_it_sealed() {
    let mut gatepost = Gatepost::start_with(&document(), &SETTINGS);
    let mut bound = BoundBrowser::sign_in(&gatepost);
    let good = bound.proof(&gatepost);
    pass_half_a_minute(&gatepost);
    let line = |byte: u8| STANDARD.encode([byte; 32]) + "\n";
    for (name, lines, status) in [("both", line(7) + &line(42), 200), ("alone", line(7), 401)] {
        let file = gatepost.private_file(name, &lines);
        gatepost.set("GATEPOST_SECRET_FILE", file.to_str().unwrap());
        gatepost.run_well(&["secret", "rotate"], "");
        gatepost.stop();
        gatepost.serve();
        let answer = bound.refresh(&gatepost, &[&good]);
        answer.assert_status_for(name, status);
        assert_eq!(is_signed_in(&mut bound.browser), status == 200, "{name}");
    }
}

#[test]
fn switched_off_it_is_as_if_it_had_never_been_and_switched_on_again_it_holds() {
    let mut gatepost = Gatepost::start_with(&document(), &SETTINGS);
    let bound = BoundBrowser::sign_in(&gatepost);
    pass_half_a_minute(&gatepost);
    let mut copied = bound.copied();
    let proof = bound.proof(&gatepost);
    for (setting, is_worth_something, status) in [("off", true, 404), ("on", false, 200)] {
        gatepost.stop();
        gatepost.set("GATEPOST_BOUND_SESSIONS", setting);
        gatepost.serve();
        assert_eq!(is_signed_in(&mut copied), is_worth_something, "{setting}");
        let answer = bound.refresh(&gatepost, &[&proof]);
        answer.assert_status_for(setting, status);
        let (_, answer) = signed_in(&gatepost);
        assert_eq!(challenge_offered(&answer).is_some(), setting == "on");
    }
    gatepost.stop();
    gatepost.set("GATEPOST_BOUND_SESSIONS", "off");
    gatepost.serve();
    bind(&gatepost, &["a.b.c"]).assert_status(404);
    let mut restarted = bound.browser.clone();
    let is_other = |name: &str| !name.contains("-session-");
    restarted.cookies.retain(|name, _| is_other(name));
    assert!(!clears_storage(&sign_in_page(&mut restarted)));
}

#[test]
fn it_needs_an_origin_of_its_own_with_tls_as_the_server_and_doctor_say() {
    for base_url in ["http://localhost:PORT", "https://login.example/id"] {
        let settings = [("GATEPOST_BASE_URL", base_url), SETTINGS[1]];
        let gatepost = Gatepost::prepare(&settings);
        gatepost.apply(&document());
        let refused = gatepost.run(&["serve"], "");
        assert_eq!(refused.status.code(), Some(78), "{base_url}");
        let fault = "GATEPOST_BOUND_SESSIONS is on, and needs a GATEPOST_BASE_URL with https";
        String::from_utf8_lossy(&refused.stderr).assert_says(fault);
        let examined = gatepost.run(&["doctor"], "");
        assert_eq!(examined.status.code(), Some(1), "{base_url}");
        let told = format!("fails settings: {fault}");
        String::from_utf8_lossy(&examined.stdout).assert_says(&told);
    }
}

#[test]
fn what_came_of_it_is_counted() {
    let address = free_address();
    let settings = [&SETTINGS[..], &[("GATEPOST_ADMIN_LISTEN", &address)]].concat();
    let gatepost = Gatepost::start_with(&document(), &settings);
    let bound = BoundBrowser::sign_in(&gatepost);
    let good = bound.proof(&gatepost);
    bound.refresh(&gatepost, &[&good]).assert_status(200);
    bound.refresh(&gatepost, &["a.b.c"]).assert_status(401);
    bind(&gatepost, &[]).assert_status(401);
    pass_half_a_minute(&gatepost);
    let mut thief = bound.copied();
    is_signed_in(&mut thief);
    let (_, text) = ask_alone(&address, "GET /metrics");
    for line in [
        "gatepost_session_bindings_total{outcome=\"bound\"} 1",
        "gatepost_session_bindings_total{outcome=\"refused\"} 1",
        "gatepost_session_refreshes_total{outcome=\"refreshed\"} 1",
        "gatepost_session_refreshes_total{outcome=\"challenged\"} 1",
        "gatepost_session_refreshes_total{outcome=\"refused\"} 1",
        "gatepost_unbound_requests_total{skipped=\"none\"} 1",
        "gatepost_unbound_requests_total{skipped=\"other\"} 0",
    ] {
        text.assert_says(line);
    }
}
