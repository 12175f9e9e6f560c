//! The device grant (RFC 8628) as a device sees it: asking for codes, polling, and its tokens.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::claims::Members;
use crate::support::device::{
    BOX, DEVICE_CODE, SCOPE, TV, allow, ask, decide, document, pass_the_interval, poll, poll_with,
    post, reach_decision, start, user_code, with_devices,
};
use crate::support::flow::{authorize_path, basic, issued, names, signed_in, text, userinfo};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, RP1};
use crate::support::http::{Answer, Browser};
use crate::support::jwt::verified;
use crate::support::offline::client;
use crate::support::shared::Shared;
use crate::support::waiting::{SOON, all_at_once, await_that, until_served};

fn serve() -> Shared {
    Gatepost::lent_with(&document(), &[])
}

/// A server that a test may change.
fn serve_own() -> Gatepost {
    Gatepost::start_with(&document(), &[])
}

fn expire(gatepost: &Gatepost) {
    let over = "expires_at = clock_timestamp() - interval '1 second'";
    gatepost.run_sql(&format!("UPDATE device_authorizations SET {over}"));
}

/// A poll that gives nothing, with this error.
#[track_caller]
fn assert_polled(gatepost: &Gatepost, device: &Value, error: &str, case: &str) {
    poll(gatepost, TV, device).assert_refused(400, error, case);
}

#[test]
fn a_device_waits_is_allowed_and_gets_its_tokens_once() {
    let gatepost = serve_own();
    for client_id in [TV, BOX] {
        let answer = ask(&gatepost, client_id, &[]);
        answer.assert_status(200);
        answer.assert_header("pragma", "no-cache");
        let device = answer.json();
        device.assert_members(
            "device_code expires_in interval user_code verification_uri verification_uri_complete",
        );
        assert_eq!(device["expires_in"], 600);
        assert_eq!(device["interval"], 5);
        let page = format!("{}/device", gatepost.base_url);
        assert_eq!(device["verification_uri"], page);
        let complete = format!("{page}?user_code={}", user_code(&device));
        assert_eq!(device["verification_uri_complete"], complete);

        let answer = poll(&gatepost, client_id, &device);
        answer.assert_refused(400, "authorization_pending", "the first, at once");
        allow(&mut gatepost.browser(), &device);
        // A decision is told at once, however soon after the last poll.
        let answer = poll(&gatepost, client_id, &device);
        let tokens = issued(&answer);
        answer.assert_header("cache-control", "no-store");
        tokens.assert_members("access_token expires_in id_token refresh_token scope token_type");
        assert_eq!(tokens["scope"], json!(SCOPE));
        assert_eq!(tokens["token_type"], "Bearer");
        let (_, id_token) = verified(&gatepost, text(&tokens, "id_token"));
        // No `sid`.
        id_token.assert_members("acr amr at_hash aud auth_time exp iat iss sub");
        assert_eq!(id_token["aud"], json!(client_id));
        assert_eq!(id_token["amr"], json!(["pwd"]));
        let told = userinfo(&gatepost, text(&tokens, "access_token"));
        told.assert_member("name", "Alice Smith");

        poll(&gatepost, client_id, &device).assert_refused(400, "invalid_grant", "redeemed");
        userinfo(&gatepost, text(&tokens, "access_token"))
            .assert_status_for("a late poll ends nothing", 200);
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", text(&tokens, "refresh_token")),
        ];
        let refreshed = issued(&post(&gatepost, "/connect/token", client_id, &form));
        let (_, again) = verified(&gatepost, text(&refreshed, "id_token"));
        assert_eq!(again["auth_time"], id_token["auth_time"]);
        assert_eq!(again.get("sid"), None);
    }
    assert_eq!(gatepost.database.events("device_allowed"), 2);
    assert_eq!(gatepost.database.events("device_code_redeemed"), 2);
    let discovery = gatepost.get("/.well-known/openid-configuration").json();
    let endpoint = format!("{}/connect/deviceauthorization", gatepost.base_url);
    assert_eq!(discovery["device_authorization_endpoint"], endpoint);
    let grant_types = discovery["grant_types_supported"].as_array();
    assert!(grant_types.unwrap().contains(&json!(DEVICE_CODE)));
}

#[test]
fn a_consent_that_lapses_before_the_device_asks_again_gives_it_nothing() {
    let mut registered = document();
    client(&mut registered, TV)["require_consent"] = json!(true);
    let gatepost = Gatepost::start_with(&registered, &[]);
    for (lapses, status) in [
        ("clock_timestamp() + interval '1 hour'", 200),
        ("clock_timestamp()", 400),
    ] {
        gatepost.database.run(&format!(
            "INSERT INTO consents (sub, client_id, scopes, claims, granted_at, expires_at)
             SELECT sub, '{TV}', '{{openid}}', '{{}}', clock_timestamp(), clock_timestamp() + interval '1 hour' FROM users WHERE username = 'alice'
             ON CONFLICT DO NOTHING"
        ));
        let device = ask(&gatepost, TV, &[]).json();
        allow(&mut gatepost.browser(), &device);
        gatepost.run_sql(&format!("UPDATE consents SET expires_at = {lapses}"));
        assert_eq!(poll(&gatepost, TV, &device).status, status, "{lapses}");
    }
}

#[test]
fn codes_are_hard_to_guess_and_not_in_the_database() {
    let gatepost = serve();
    let devices: Vec<Value> = (0..40).map(|_| start(&gatepost, TV, &[])).collect();
    let letters = devices.iter().flat_map(|device| user_code(device).chars());
    let letters: BTreeSet<char> = letters.collect();
    let alphabet = BTreeSet::from_iter("BCDFGHJKLMNPQRSTVWXZ-".chars());
    assert!(letters.is_subset(&alphabet), "{letters:?}");
    assert!(letters.len() > 15, "{letters:?}");
    for device in &devices {
        let (device_code, user_code) = (text(device, "device_code"), user_code(device));
        assert_eq!(user_code.len(), 9, "{user_code}");
        assert_eq!(user_code.chars().nth(4), Some('-'), "{user_code}");
        let random = device_code.strip_prefix("gpd_").unwrap();
        assert!(random.len() == 43);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        assert!(random.bytes().all(is_plain));
    }
    let distinct = devices.iter().map(|device| text(device, "device_code"));
    assert_eq!(BTreeSet::from_iter(distinct).len(), 40);
    let stored = "SELECT coalesce(string_agg(d::text, ' '), '') FROM device_authorizations d";
    let stored: String = gatepost.database.value(stored, &[]);
    for device in &devices {
        let code = user_code(device);
        for known in [text(device, "device_code"), code, &code.replace('-', "")] {
            assert!(!stored.contains(known), "{known}");
            let hex: String = known.bytes().map(|byte| format!("{byte:02x}")).collect();
            assert!(!stored.contains(&hex), "{known}");
        }
    }
}

#[test]
fn the_request_is_held_against_the_registration() {
    let quick = json!({"device_code_lifetime": 77, "device_interval": 2});
    let empty = json!({"scope": "", "grant_types": [DEVICE_CODE]});
    let document = with_devices(&[("quick", quick), ("empty", empty)]);
    let gatepost = Gatepost::start_with(&document, &[]);
    let quick = start(&gatepost, "quick", &[]);
    assert_eq!(quick["expires_in"], 77);
    assert_eq!(quick["interval"], 2);
    let long = "s".repeat(2_001);
    let (secret, stock) = (("client_secret", CONF1_SECRET), "https://stock.example");
    for (client_id, form, error) in [
        (TV, ("scope", "openid email"), "invalid_scope"),
        (TV, ("scope", "openid nope"), "invalid_scope"),
        (TV, ("scope", "é"), "invalid_scope"),
        (TV, ("scope", long.as_str()), "invalid_request"),
        ("empty", ("x", "y"), "invalid_scope"),
        (TV, ("resource", stock), "invalid_target"),
        (TV, ("resource", "nowhere"), "invalid_target"),
        ("conf1", secret, "unauthorized_client"),
        ("nobody", ("x", "y"), "invalid_client"),
        (TV, ("client_secret", "a secret"), "invalid_client"),
    ] {
        let answer = ask(&gatepost, client_id, &[form]);
        answer.assert_refused(400, error, &format!("{client_id} {form:?}"));
    }
    const PATH: &str = "/connect/deviceauthorization";
    for name in ["scope", "client_id", "client_secret", "acr_values"] {
        let form = [("client_id", TV), (name, "openid"), (name, "openid")];
        let answer = gatepost.post(PATH, &[], &form);
        answer.assert_refused(400, "invalid_request", name);
    }
    let nobody = gatepost.post(PATH, &[], &[]);
    nobody.assert_refused(400, "invalid_client", "nobody");
    let wrong = [("Authorization", &*basic(BOX, "wrong"))];
    let answer = gatepost.post(PATH, &wrong, &[]);
    answer.assert_refused(401, "invalid_client", "wrong secret");
    answer.assert_header("www-authenticate", "Basic realm=\"gatepost\"");
    for query in ["client_id=tv", "scope=openid", "acr_values=1"] {
        let answer = gatepost.post(&format!("{PATH}?{query}"), &[], &[("client_id", TV)]);
        answer.assert_refused(400, "invalid_request", query);
    }
    let mut connection = gatepost.connect();
    let answer = connection.send("GET", PATH, &[], b"");
    answer.assert_status(405);
    answer.assert_header("allow", "POST, OPTIONS");
    let json = [("Content-Type", "application/json")];
    let answer = connection.send("POST", PATH, &json, b"{}");
    answer.assert_refused(400, "invalid_request", "JSON");
    let form = [("client_id", TV), ("scope", "nope")];
    for (origin, is_allowed) in [
        ("https://tv.example", true),
        ("https://evil.example", false),
    ] {
        let answer = gatepost.post(PATH, &[("Origin", origin)], &form);
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, is_allowed.then_some(origin));
    }
    // Only what was answered was entered.
    assert_eq!(gatepost.database.count("device_authorizations"), 1);
}

#[test]
fn who_polls_too_often_is_told_to_slow_down_by_five_seconds_each_time() {
    let gatepost = serve();
    let device = start(&gatepost, TV, &[]);
    let interval = || -> i32 {
        let held = "SELECT poll_interval FROM device_authorizations";
        gatepost.database.value(held, &[])
    };
    assert_polled(&gatepost, &device, "authorization_pending", "first");
    assert_eq!(interval(), 5);
    assert_polled(&gatepost, &device, "slow_down", "second");
    assert_polled(&gatepost, &device, "slow_down", "third");
    assert_eq!(interval(), 15);
    // What was polite before is too early now, and what is late enough is heard.
    let ago = |seconds: u32| {
        let polled = format!("polled_at = clock_timestamp() - interval '{seconds} seconds'");
        gatepost.run_sql(&format!("UPDATE device_authorizations SET {polled}"));
    };
    ago(13);
    assert_polled(&gatepost, &device, "slow_down", "13 of 15 s");
    ago(21);
    assert_polled(&gatepost, &device, "authorization_pending", "21 of 20 s");
    assert_eq!(interval(), 20);
}

#[test]
fn unknown_foreign_expired_and_denied_codes_are_told_apart_in_this_order() {
    let gatepost = serve();
    let device = start(&gatepost, TV, &[]);
    let own = text(&device, "device_code");
    let made_up = format!("gpd_{}", "A".repeat(43));
    for (client_id, device_code, error) in [
        (BOX, own, "invalid_grant"),
        (TV, &made_up, "invalid_grant"),
        (TV, user_code(&device), "invalid_grant"),
        (TV, &own.to_uppercase(), "invalid_grant"),
        (TV, &format!("{own} "), "invalid_grant"),
        (TV, &"x".repeat(8_193), "invalid_grant"),
        (TV, "", "invalid_request"),
        ("conf1", own, "invalid_client"),
    ] {
        let changes = [("device_code", device_code)];
        let answer = poll_with(&gatepost, client_id, &device, &changes);
        answer.assert_refused(400, error, &format!("{client_id} {device_code}"));
    }
    let form = [("grant_type", DEVICE_CODE), ("device_code", "x")];
    let answer = gatepost.token("conf1", &form);
    answer.assert_refused(400, "unauthorized_client", "not registered for it");
    let twice = [
        ("client_id", TV),
        ("grant_type", DEVICE_CODE),
        ("device_code", own),
        ("device_code", own),
    ];
    let answer = gatepost.post("/connect/token", &[], &twice);
    answer.assert_refused(400, "invalid_request", "repeated");
    let query = format!("/connect/token?device_code={own}");
    let answer = post(&gatepost, &query, TV, &twice[1..3]);
    answer.assert_refused(400, "invalid_request", "in the query");
    // None of this was a poll of it.
    assert_polled(&gatepost, &device, "authorization_pending", "untouched");

    let mut browser = gatepost.browser();
    let page = reach_decision(&mut browser, user_code(&device));
    decide(&mut browser, &page, "deny", &[]).assert_says("was not connected");
    assert_polled(&gatepost, &device, "access_denied", "denied, however early");
    assert_polled(&gatepost, &device, "access_denied", "and again");
    expire(&gatepost);
    assert_polled(&gatepost, &device, "expired_token", "too late to hear it");
    let answer = poll_with(&gatepost, BOX, &device, &[]);
    answer.assert_refused(400, "invalid_grant", "still another client's");

    let device = start(&gatepost, TV, &[]);
    assert_polled(&gatepost, &device, "authorization_pending", "in time");
    expire(&gatepost);
    assert_polled(
        &gatepost,
        &device,
        "expired_token",
        "expired, however early",
    );
    assert_eq!(gatepost.database.events("device_denied"), 1);
    gatepost.database.assert_count("grants", 0);
}

#[test]
fn of_many_redemptions_at_once_over_two_processes_one_gets_the_tokens() {
    let mut first = serve_own();
    let mut second = first.beside();
    second.serve();
    let mut browser = signed_in(&first);
    for _ in 0..5 {
        let device = start(&first, TV, &[]);
        allow(&mut browser, &device);
        let gateposts = [&first, &second];
        let answers = all_at_once(8, |number| {
            until_served(|| poll(gateposts[number % 2], TV, &device))
        });
        let (winners, losers): (Vec<&Answer>, Vec<&Answer>) =
            answers.iter().partition(|answer| answer.status == 200);
        assert_eq!(winners.len(), 1);
        for loser in losers {
            loser.assert_refused(400, "invalid_grant", "second");
        }
        userinfo(&second, text(&winners[0].json(), "access_token")).assert_status(200);
    }
    first.database.assert_count("grants", 5);
    assert_eq!(first.database.events("device_code_redeemed"), 5);
    first.stop();
}

#[test]
fn what_was_withdrawn_before_the_redemption_gives_nothing() {
    let gatepost = serve_own();
    let allowed = |change: &dyn Fn()| {
        let device = start(&gatepost, TV, &[]);
        allow(&mut gatepost.browser(), &device);
        change();
        poll(&gatepost, TV, &device)
    };
    let alice = |set: &str| {
        let change = format!("UPDATE users SET {set} WHERE username = 'alice'");
        gatepost.run_sql(&change);
    };
    let disable = || alice("enabled = false");
    let run_out = || alice("valid_until = now()");
    let revoke = || drop(gatepost.run_line("user revoke alice"));
    let revoke_client = || drop(gatepost.run_line("client revoke tv"));
    for (change, case) in [
        (&disable as &dyn Fn(), "disabled"),
        (&run_out, "run out"),
        (&revoke, "revoked"),
        (&revoke_client, "client revoked"),
    ] {
        allowed(change).assert_refused(400, "invalid_grant", case);
        alice("enabled = true, valid_until = NULL");
        gatepost.settle();
    }
    let narrow = || {
        let mut narrowed = document();
        client(&mut narrowed, TV)["scope"] = json!("openid profile offline_access");
        gatepost.apply(&narrowed);
    };
    allowed(&narrow).assert_refused(400, "invalid_grant", "a scope taken away");
    gatepost.apply(&document());
    // Signing out does not: a device lives on without the browser it was allowed from.
    let device = start(&gatepost, TV, &[]);
    let mut browser = gatepost.browser();
    allow(&mut browser, &device);
    gatepost.run_sql("UPDATE sessions SET ended_at = clock_timestamp()");
    let tokens = issued(&poll(&gatepost, TV, &device));
    userinfo(&gatepost, text(&tokens, "access_token")).assert_status(200);
    // Spent for nothing.
    assert_eq!(gatepost.database.events("grant_refused"), 4);
}

#[test]
fn what_is_allowed_right_after_a_revocation_is_within_reach_of_the_next_one() {
    let gatepost = serve_own();
    for _ in 0..3 {
        let device = start(&gatepost, TV, &[]);
        allow(&mut gatepost.browser(), &device);
        let tokens = issued(&poll(&gatepost, TV, &device));
        userinfo(&gatepost, text(&tokens, "access_token")).assert_status(200);
        gatepost.run_line("user revoke alice");
        userinfo(&gatepost, text(&tokens, "access_token")).assert_status(401);
    }
}

#[test]
fn a_device_that_is_allowed_after_a_consent_lapsed_survives_the_next_one_that_is_remembered() {
    let client = json!({
        "require_consent": true, "consent_lifetime": 3_600, "redirect_uris": [RP1], "response_types": ["code"],
        "grant_types": ["authorization_code", DEVICE_CODE, "refresh_token"],
    });
    let gatepost = Gatepost::start_with(&with_devices(&[("both", client)]), &[]);
    let mut browser = signed_in(&gatepost);
    let tokens = |browser: &mut Browser| {
        let device = start(&gatepost, "both", &[]);
        allow(browser, &device);
        issued(&poll(&gatepost, "both", &device))
    };
    let refresh = |tokens: &Value| {
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", text(tokens, "refresh_token")),
        ];
        post(&gatepost, "/connect/token", "both", &form)
    };
    let remember = |browser: &mut Browser| {
        let page = browser.visit(&authorize_path("both", RP1, &[]));
        let answer = browser.decide(&page, "allow", &["profile"], true);
        answer.assert_carries("code");
    };
    remember(&mut browser);
    let before = tokens(&mut browser);
    gatepost.database.run(
        "UPDATE consents SET granted_at = granted_at - interval '1 hour', expires_at = clock_timestamp() - interval '1 second'",
    );
    let after = tokens(&mut browser);
    let answer = refresh(&before);
    // It stood on the consent that lapsed.
    answer.assert_refused(400, "invalid_grant", "lapsed");
    let after = issued(&refresh(&after));
    remember(&mut browser);
    issued(&refresh(&after));
}

#[test]
fn a_device_gets_what_its_user_ticked_within_the_resource_it_asked_for() {
    let gatepost = serve();
    let mut browser = signed_in(&gatepost);
    let orders = "https://orders.example";
    let mut granted = |asked: (&str, &str), ticked: &[&str], polled: &[(&str, &str)]| {
        let device = start(&gatepost, BOX, &[asked]);
        let page = reach_decision(&mut browser, user_code(&device));
        let decided = decide(&mut browser, &page, "allow", ticked);
        decided.assert_says("is connected");
        issued(&poll_with(&gatepost, BOX, &device, polled))
    };
    let scope = ("scope", "openid profile orders.read");
    let tokens = granted(scope, &["profile"], &[]);
    assert_eq!(tokens["scope"], "openid profile", "no refresh token");
    assert_eq!(names(&tokens).len(), 5, "no refresh token");
    let (resource, offline) = (("resource", orders), ["orders.read", "offline_access"]);
    let tokens = granted(resource, &offline, &[("scope", "ignored")]);
    assert_eq!(tokens["scope"], "openid orders.read offline_access");
    assert_eq!(names(&tokens).len(), 6);
    // The user left out all of the resource: what is left stands for none.
    let tokens = granted(resource, &["profile"], &[]);
    assert_eq!(tokens["scope"], "openid profile");
    // A resource that is not to be had leaves the code as it was.
    let device = start(&gatepost, BOX, &[resource]);
    allow(&mut browser, &device);
    let stock = [("resource", "https://stock.example")];
    let wrong = poll_with(&gatepost, BOX, &device, &stock);
    wrong.assert_refused(400, "invalid_target", "another resource");
    let further = [resource, ("code_verifier", "of no use here")];
    issued(&poll_with(&gatepost, BOX, &device, &further));
}

#[test]
fn askings_and_pending_devices_are_limited() {
    let settings = [
        ("GATEPOST_LIMIT_DEVICE_AUTHORIZATIONS_PER_MINUTE", "3"),
        ("GATEPOST_LIMIT_DEVICE_PENDING", "5"),
    ];
    let gatepost = Gatepost::start_with(&document(), &settings);
    let from = |source: &str, client_id: &str| {
        let headers = [("X-Forwarded-For", source)];
        let form = [("client_id", client_id)];
        gatepost.post("/connect/deviceauthorization", &headers, &form)
    };
    let is_told_to_wait = |answer: &Answer| {
        answer.assert_refused(429, "temporarily_unavailable", "limit");
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    };
    for _ in 0..3 {
        assert_eq!(from("192.0.2.1", TV).status, 200);
    }
    is_told_to_wait(&from("192.0.2.1", TV));
    // Addresses of one network are one source, another one has its own count, and so has another
    // client.
    for last in 1..=3 {
        let wanted = if last < 3 { 200 } else { 429 };
        let answer = from(&format!("2001:db8:1:2::{last}"), TV);
        answer.assert_status_for("beyond five waiting", wanted);
    }
    is_told_to_wait(&from("192.0.2.2", TV));
    gatepost.database.run("UPDATE device_authorizations SET expires_at = clock_timestamp() - interval '1 second' WHERE ctid = (SELECT min(ctid) FROM device_authorizations)");
    assert_eq!(from("192.0.2.2", TV).status, 200, "one is over");
    is_told_to_wait(&from("192.0.2.2", TV));
    start(&gatepost, BOX, &[]);
    // An authenticated client's polls are not limited.
    let device = start(&gatepost, BOX, &[]);
    for _ in 0..30 {
        pass_the_interval(&gatepost);
        poll(&gatepost, BOX, &device).assert_refused(400, "authorization_pending", "poll");
    }
}

#[test]
fn what_is_long_over_is_cleaned_away() {
    let mut gatepost = serve_own();
    start(&gatepost, TV, &[]);
    gatepost.database.run(
        "INSERT INTO device_authorizations (device_code_hash, user_code_hash, client_id, scopes, resources, poll_interval, expires_at)
         SELECT sha256(n::text::bytea), sha256(n::text::bytea), 'tv', '{}', '{}', 5, clock_timestamp() - interval '61 minutes'
         FROM generate_series(1, 1200) AS n;
         INSERT INTO device_authorizations (device_code_hash, user_code_hash, client_id, scopes, resources, poll_interval, expires_at)
         VALUES ('just', 'just', 'tv', '{}', '{}', 5, clock_timestamp() - interval '59 minutes')",
    );
    // The server looks after the house when it starts, and every minute.
    gatepost.stop();
    gatepost.serve();
    await_that("what is long over is gone", SOON, || {
        gatepost.database.count("device_authorizations") == 2
    });
}
