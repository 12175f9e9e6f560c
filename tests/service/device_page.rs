//! `/device` as the person in front of it sees it, and as whoever wants to trick them does.

use serde_json::{Value, json};

use crate::support::device::{
    BOX, DEVICE_CODE, TV, allow, decide, document, enter, poll, reach_decision, send_code, start,
    user_code, with_devices,
};
use crate::support::flow::{authorize_path, issued, sign_in, signed_in, text};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1};
use crate::support::http::Answer;
use crate::support::jwt::verified;
use crate::support::waiting::all_at_once;

const WRONG: &str = "No device is waiting with this code";

fn serve() -> Gatepost {
    Gatepost::start_with(&document(), &[])
}

fn asks_for_the_code(page: &Answer) -> String {
    page.assert_status(200);
    assert_eq!(page.action().as_str(), "/device", "{}", page.text());
    page.assert_says_not("name=\"decision\"");
    page.attribute("id=\"user-code\"", "value").unwrap()
}

fn asks_for_a_decision(page: &Answer, code: &str, client_name: &str) {
    page.assert_status(200);
    page.assert_says(code);
    page.assert_says(client_name);
    page.assert_says_each(
        "value=\"allow\" | value=\"deny\" | Is this your device? | sent you the code",
    );
    page.assert_header("referrer-policy", "same-origin");
}

fn expire(gatepost: &Gatepost) {
    let over = "expires_at = clock_timestamp() - interval '1 second' WHERE decided_at IS NULL";
    gatepost.run_sql(&format!("UPDATE device_authorizations SET {over}"));
}

fn decided(gatepost: &Gatepost) -> i64 {
    let counted = "SELECT count(*) FROM device_authorizations WHERE decided_at IS NOT NULL";
    gatepost.database.value(counted, &[])
}

#[test]
fn a_typed_code_leads_over_the_sign_in_to_a_question_with_client_and_scopes() {
    let gatepost = serve();
    let device = start(&gatepost, TV, &[]);
    let code = user_code(&device);
    let mut browser = gatepost.browser();
    let page = browser.get("/device");
    assert_eq!(asks_for_the_code(&page), "");
    page.assert_says("Enter the code that your device shows.");
    // Case, hyphens and spaces do not count.
    let typed = format!(" {} ", code.to_lowercase().replace('-', " "));
    let page = send_code(&mut browser, &page, &typed);
    page.assert_says_each("name=\"password\" | Television");
    let again = sign_in(&mut browser, &page, "alice", "wrong");
    again.assert_says("name=\"password\"");
    let page = sign_in(&mut browser, &again, "alice", ALICE_PASSWORD);
    asks_for_a_decision(&page, code, "Television");
    page.assert_says_each("Your roles | Read orders | Change orders | Alice Smith");
    // openid is locked, the rest can be left out; what was not asked for cannot be added.
    assert!(page.attribute("value=\"openid\"", "disabled").is_none());
    page.assert_says("value=\"openid\" checked disabled");
    let beyond = decide(&mut browser, &page, "allow", &["email"]);
    beyond.assert_error_page(400, "GP1137", "beyond");
    let answer = decide(&mut browser, &page, "allow", &["profile"]);
    answer.assert_says_each("Your device is connected | Television");
    let tokens = issued(&poll(&gatepost, TV, &device));
    assert_eq!(tokens["scope"], "openid profile");
    // It is asked again for the next device, remembered or not.
    let next = start(&gatepost, TV, &[]);
    let page = enter(&mut browser, user_code(&next));
    asks_for_a_decision(&page, user_code(&next), "Television");
    page.assert_says_not("name=\"remember\"");
    assert_eq!(gatepost.database.count("consents"), 0);
}

#[test]
fn a_link_fills_the_code_in_and_decides_nothing_by_itself() {
    let gatepost = serve();
    let device = start(&gatepost, TV, &[]);
    let code = user_code(&device);
    let link = text(&device, "verification_uri_complete").to_owned();
    for mut browser in [gatepost.browser(), signed_in(&gatepost)] {
        let page = browser.get(&link);
        assert_eq!(asks_for_the_code(&page), code);
        page.assert_says("exactly the code that your device shows");
        page.assert_says_not_for("nothing is told of the device yet", "Television");
    }
    let mut browser = signed_in(&gatepost);
    let page = browser.get(&link);
    let page = send_code(&mut browser, &page, code);
    asks_for_a_decision(&page, code, "Television");
    assert_eq!(decided(&gatepost), 0);
    // The address of that page leads back to the code, in this browser and in any other, and so
    // does the sign-in's.
    let address = page.attribute("form ", "action").unwrap();
    let of_sign_in = address.replace("/device", "/login");
    for (browser, address) in [
        (&mut browser, &address),
        (&mut gatepost.browser(), &address),
        (&mut signed_in(&gatepost), &of_sign_in),
    ] {
        assert_eq!(asks_for_the_code(&browser.visit(address)), code);
    }
    // What has not the form of a code is left out of the page.
    for (typed, shown) in [
        ("call%20%2B1%20555%20now", ""),
        ("%3Cscript%3E", ""),
        ("bcdfghjk", "BCDF-GHJK"),
        ("", ""),
    ] {
        let path = format!("/device?user_code={typed}");
        let page = gatepost.browser().get(&path);
        assert_eq!(asks_for_the_code(&page), shown, "{typed}");
    }
    for (query, reason) in [
        ("user_code=a&user_code=b", "GP1002"),
        ("r=nothing", "GP1504"),
    ] {
        let answer = gatepost.browser().get(&format!("/device?{query}"));
        answer.assert_error_page(400, reason, query);
    }
}

/// RFC 8628 §5.4: whoever sent the link may sit at the device.
#[test]
fn a_link_asks_whoever_is_signed_in_and_allowed_that_client_everything_before() {
    for require_consent in [json!(null), json!(false), json!(true)] {
        let mut trusted = json!({
            "grant_types": [DEVICE_CODE, "authorization_code", "refresh_token"], "response_types": ["code"], "redirect_uris": [RP1],
            "allow_remember_consent": true
        });
        if !require_consent.is_null() {
            trusted["require_consent"] = require_consent.clone();
        }
        let gatepost = Gatepost::start_with(&with_devices(&[("trusted-tv", trusted)]), &[]);
        let mut browser = signed_in(&gatepost);
        gatepost.database.run(
            "INSERT INTO consents (sub, client_id, scopes, claims)
             SELECT sub, 'trusted-tv', '{openid,profile,roles,orders.read,orders.write,offline_access}', '{}'
             FROM users WHERE username = 'alice'",
        );
        let device = start(&gatepost, "trusted-tv", &[]);
        let page = browser.get(text(&device, "verification_uri_complete"));
        assert_eq!(asks_for_the_code(&page), user_code(&device));
        let page = send_code(&mut browser, &page, user_code(&device));
        asks_for_a_decision(&page, user_code(&device), "Television");
        page.assert_says_not_for(&require_consent, "name=\"remember\"");
        assert_eq!(decided(&gatepost), 0, "{require_consent}");
        let answer = poll(&gatepost, "trusted-tv", &device);
        answer.assert_refused(400, "authorization_pending", "nobody decided");
        // What the consent covers is no part of what they allow this device.
        decide(&mut browser, &page, "allow", &["profile"]);
        let tokens = issued(&poll(&gatepost, "trusted-tv", &device));
        assert_eq!(tokens["scope"], "openid profile", "{require_consent}");
    }
}

#[test]
fn wrong_expired_and_decided_codes_say_the_same() {
    let gatepost = serve();
    let mut browser = signed_in(&gatepost);
    let used = start(&gatepost, TV, &[]);
    allow(&mut browser, &used);
    let old = start(&gatepost, TV, &[]);
    expire(&gatepost);
    let own = text(&old, "device_code");
    for typed in [
        "BCDF-GHJK",
        "nonsense",
        user_code(&used),
        user_code(&old),
        own,
    ] {
        let page = enter(&mut browser, typed);
        asks_for_the_code(&page);
        page.assert_says(WRONG);
        page.assert_says("<title>Error: Connect a device");
        let invalid = page.attribute("id=\"user-code\"", "aria-invalid");
        assert_eq!(invalid.as_deref(), Some("true"));
    }
    let page = enter(&mut browser, "");
    page.assert_says("<title>Error:");
    page.assert_says_not(WRONG);
}

#[test]
fn ten_wrong_codes_a_minute_make_a_source_wait_and_nobody_else() {
    let overall = [("GATEPOST_LIMIT_USER_CODE_FAILURES_PER_MINUTE_OVERALL", "15")];
    let gatepost = Gatepost::start_with(&document(), &overall);
    let device = start(&gatepost, TV, &[]);
    let mut guesser = gatepost.browser_at("192.0.2.7");
    let is_told_to_wait = |page: &Answer| {
        page.assert_status(429);
        let seconds: u64 = page.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
        page.assert_says("too many failed attempts");
    };
    // Right ones and empty ones do not count.
    for typed in [user_code(&device), "", user_code(&device)] {
        assert_eq!(enter(&mut guesser, typed).status, 200);
    }
    for number in 0..10 {
        assert_eq!(enter(&mut guesser, &format!("{number}")).status, 200);
    }
    is_told_to_wait(&enter(&mut guesser, "BCDF-GHJK"));
    is_told_to_wait(&enter(&mut guesser, user_code(&device)));
    let mut other = gatepost.browser_at("192.0.2.8");
    enter(&mut other, user_code(&device)).assert_says("name=\"password\"");
    for number in 0..5 {
        assert_eq!(enter(&mut other, &format!("{number}")).status, 200);
    }
    // Fifteen in all: now everybody waits.
    let mut anybody = gatepost.browser_at("2001:db8::1");
    is_told_to_wait(&enter(&mut anybody, user_code(&device)));
    assert_eq!(gatepost.browser().get("/device").status, 200);
}

#[test]
fn of_many_codes_at_once_no_more_are_looked_at_than_one_after_the_other() {
    let gatepost = serve();
    let device = start(&gatepost, TV, &[]);
    let at_first = Vec::from_iter((0..150).map(|_| {
        let mut browser = gatepost.browser_at("192.0.2.7");
        let page = browser.get("/device");
        (browser, page)
    }));
    let answers = all_at_once(150, |number| {
        let (browser, page) = &at_first[number];
        send_code(&mut browser.clone(), page, "BCDF-GHJK").status
    });
    let of = |status| answers.iter().filter(|answer| **answer == status).count();
    // Where the server is busy it may say so; whoever is told that a code is wrong was one of ten.
    assert_eq!(of(200), 10, "{answers:?}");
    assert_eq!(of(200) + of(429) + of(503), 150, "{answers:?}");
    let mut other = gatepost.browser_at("192.0.2.8");
    enter(&mut other, user_code(&device)).assert_says("name=\"password\"");
}

#[test]
fn a_decision_is_made_once_and_cannot_be_made_again() {
    let gatepost = serve();
    let mut browser = signed_in(&gatepost);
    for (first, second, answer) in [
        ("allow", "deny", None),
        ("deny", "allow", Some("access_denied")),
    ] {
        let device = start(&gatepost, BOX, &[]);
        let page = reach_decision(&mut browser, user_code(&device));
        assert_eq!(decide(&mut browser, &page, first, &[]).status, 200);
        for decision in [second, first] {
            decide(&mut browser, &page, decision, &[]).assert_error_page(400, "GP1607", decision);
        }
        enter(&mut browser, user_code(&device)).assert_says(WRONG);
        match answer {
            None => drop(issued(&poll(&gatepost, BOX, &device))),
            Some(error) => poll(&gatepost, BOX, &device).assert_refused(400, error, first),
        }
    }
    // Two tabs, one decision: also where both arrive at once.
    let device = start(&gatepost, BOX, &[]);
    let page = reach_decision(&mut browser, user_code(&device));
    let decisions = ["allow", "deny", "allow", "deny"];
    let mut statuses = all_at_once(4, |number| {
        decide(&mut browser.clone(), &page, decisions[number], &[]).status
    });
    statuses.retain(|status| *status == 200);
    assert_eq!(statuses.len(), 1);
    // Expired while the page was open.
    let device = start(&gatepost, BOX, &[]);
    let page = reach_decision(&mut browser, user_code(&device));
    expire(&gatepost);
    decide(&mut browser, &page, "allow", &[]).assert_error_page(400, "GP1607", "expired");
}

#[test]
fn forms_count_only_in_the_browser_and_session_they_were_drawn_for() {
    let gatepost = serve();
    let device = start(&gatepost, TV, &[]);
    let code = user_code(&device);
    let mut alice = signed_in(&gatepost);
    let page = enter(&mut alice, code);
    asks_for_a_decision(&page, code, "Television");
    let (action, token) = (page.action(), page.form_token());
    let form = [("form_token", token.as_str()), ("decision", "allow")];

    // Another session draws the page again for itself; no session asks for the code again.
    let mut bob = gatepost.browser();
    let login = bob.visit(&authorize_path("conf1", RP1, &[]));
    assert_eq!(sign_in(&mut bob, &login, "bob", BOB_PASSWORD).status, 303);
    let redrawn = bob.post(&action, &form);
    asks_for_a_decision(&redrawn, code, "Television");
    redrawn.assert_says_each("Bob | role=\"alert\"");
    asks_for_the_code(&gatepost.browser().post(&action, &form));
    // A token of another page, or none.
    for forged in ["", "AAAA", &alice.get("/device").form_token()] {
        let answer = alice.post(&action, &[("form_token", forged), ("decision", "allow")]);
        asks_for_a_decision(&answer, code, "Television");
    }
    // Sent from somewhere else.
    for (name, value) in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
    ] {
        let code_form = [("form_token", token.as_str()), ("user_code", code)];
        for (address, form) in [(&*action, form), ("/device", code_form)] {
            let answer = alice.post_from(address, &[(name, value)], &form);
            answer.assert_error_page(403, "GP1009", value);
        }
    }
    // A code posted without the page that asks for it.
    let answer = gatepost.browser().post("/device", &[("user_code", code)]);
    assert_eq!(asks_for_the_code(&answer), code);
    answer.assert_says("out of date");
    // Neither a decision nor a request of another kind.
    let maybe = alice.post(&action, &[form[0], ("decision", "maybe")]);
    maybe.assert_error_page(400, "GP1505", "maybe");
    let login = gatepost.browser().visit(&authorize_path("conf1", RP1, &[]));
    let other = login.action().replace("/login", "/device");
    let consent = action.replace("/device", "/consent");
    for answer in [
        alice.get(&other),
        alice.post(&other, &form),
        alice.get(&consent),
    ] {
        answer.assert_error_page(400, "GP1504", "of another kind");
    }
    assert_eq!(decided(&gatepost), 0);
    alice.post(&action, &form).assert_says("is connected");
}

#[test]
fn another_account_can_be_chosen_and_sign_out_in_between_asks_anew() {
    let gatepost = serve();
    let device = start(&gatepost, TV, &[]);
    let mut browser = signed_in(&gatepost);
    let page = enter(&mut browser, user_code(&device));
    let login = decide(&mut browser, &page, "another", &[]);
    let cancelled = browser.submit(&login, &[("decision", "cancel")]);
    assert_eq!(cancelled.location(), "/device");
    let page = enter(&mut browser, user_code(&device));
    let login = decide(&mut browser, &page, "another", &[]);
    let page = sign_in(&mut browser, &login, "bob", BOB_PASSWORD);
    asks_for_a_decision(&page, user_code(&device), "Television");
    gatepost.run_sql("UPDATE sessions SET ended_at = clock_timestamp()");
    asks_for_the_code(&decide(&mut browser, &page, "allow", &[]));
    assert_eq!(decided(&gatepost), 0);
    let page = enter(&mut browser, user_code(&device));
    let page = sign_in(&mut browser, &page, "bob", BOB_PASSWORD);
    decide(&mut browser, &page, "allow", &["profile"]);
    let tokens = issued(&poll(&gatepost, TV, &device));
    let bob = "SELECT sub FROM users WHERE username = 'bob'";
    let bob: String = gatepost.database.value(bob, &[]);
    let (_, claims) = verified(&gatepost, text(&tokens, "id_token"));
    assert_eq!(claims["sub"], bob);
}

fn with_tenants() -> Value {
    let acme = json!({"client_name": "ACME screen", "tenants": ["acme"]});
    let mut document = with_devices(&[
        ("acme-tv", acme),
        ("corp-tv", json!({"identity_providers": ["corp"]})),
        ("strict-tv", json!({"default_max_age": 60})),
    ]);
    document["tenants"] = json!([{"name": "acme", "display_name": "ACME Ltd"}, {"name": "globex"}]);
    document["identity_providers"] = json!([{"name": "corp", "enabled": false, "issuer": "https://corp.example", "client_id": "gatepost"}]);
    let users = document["users"].as_array_mut().unwrap();
    users.push(
        json!({"username": "alice", "tenant": "acme", "password": ALICE_PASSWORD, "claims": {"name": "Alice of ACME"}}),
    );
    document
}

#[test]
fn people_sign_in_under_the_clients_own_rules() {
    let gatepost = Gatepost::start_with(&with_tenants(), &[]);
    let mut browser = signed_in(&gatepost);
    for (client_id, form) in [
        ("acme-tv", [("x", "y")]),
        (TV, [("acr_values", "tenant:acme")]),
    ] {
        let device = start(&gatepost, client_id, &form);
        // The session of the user without a tenant will not do.
        let page = enter(&mut browser, user_code(&device));
        page.assert_says_each("name=\"password\" | ACME Ltd");
        let page = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
        page.assert_says("Alice of ACME");
        decide(&mut browser, &page, "allow", &["profile"]);
        let tokens = issued(&poll(&gatepost, client_id, &device));
        let (_, claims) = verified(&gatepost, text(&tokens, "id_token"));
        assert_eq!(claims["tenant"], "acme");
        browser = signed_in(&gatepost);
    }
    for acr_values in ["tenant:nope", "tenant:acme tenant:globex"] {
        let answer = crate::support::device::ask(&gatepost, TV, &[("acr_values", acr_values)]);
        answer.assert_refused(400, "invalid_request", acr_values);
    }
    // No password is asked for where none would help.
    let device = start(&gatepost, "corp-tv", &[]);
    let page = enter(&mut browser, user_code(&device));
    page.assert_error_page(400, "GP1138", "no way to sign in");
    // A sign-in that is too old for this client is made again, and then it is fresh.
    gatepost.run_sql("UPDATE sessions SET auth_time = auth_time - interval '61 seconds'");
    let device = start(&gatepost, "strict-tv", &[]);
    let page = enter(&mut browser, user_code(&device));
    page.assert_says("name=\"password\"");
    let page = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    decide(&mut browser, &page, "deny", &[]);
    // A client that lost the grant meanwhile has no devices any more.
    let device = start(&gatepost, TV, &[]);
    gatepost.database.run(&format!(
        "UPDATE clients SET metadata = metadata || '{{\"grant_types\": [\"password\"], \"scope\": \"openid\"}}' WHERE client_id = '{TV}';
         UPDATE installation SET registry_version = registry_version + 1"
    ));
    gatepost.settle();
    enter(&mut browser, user_code(&device)).assert_says_for(DEVICE_CODE, WRONG);
    poll(&gatepost, TV, &device).assert_refused(400, "unauthorized_client", "poll");
}

#[test]
fn the_page_speaks_the_readers_language_and_survives_a_base_path() {
    let below = [("GATEPOST_BASE_URL", "http://localhost:PORT/idp")];
    let gatepost = Gatepost::start_with(&document(), &below);
    let form = [("client_id", TV)];
    let device = gatepost.post("/idp/connect/deviceauthorization", &[], &form);
    let device = issued(&device);
    let page = format!("{}/device", gatepost.base_url);
    assert_eq!(device["verification_uri"], page);
    let mut browser = gatepost.browser();
    let german = (String::from("Accept-Language"), String::from("de"));
    browser.headers.push(german);
    let page = browser.get(text(&device, "verification_uri_complete"));
    page.assert_says_each("<html lang=\"de\" | Gerät verbinden");
    assert_eq!(page.action(), "/idp/device");
    let page = send_code(&mut browser, &page, user_code(&device));
    assert!(page.action().starts_with("/idp/login?r="));
    let page = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    page.assert_says("Ist das Ihr Gerät?");
    assert!(page.action().starts_with("/idp/device?r="));
    let mut connection = gatepost.connect();
    assert_eq!(connection.send("HEAD", "/idp/device", &[], b"").status, 200);
    let answer = connection.send("PUT", "/idp/device", &[], b"");
    answer.assert_status(405);
    answer.assert_header("allow", "GET, HEAD, POST");
}
