//! The sign-in page: who gets in, who does not, and what the page gives away.

use serde_json::json;

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, decode_jwt, redeem, sign_in, signed_in, userinfo,
};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};

fn path(changes: &[(&str, &str)]) -> String {
    authorize_path("conf1", RP1, changes)
}

/// The sign-in page again, and nobody signed in.
fn is_the_page_again(answer: &Answer, browser: &mut Browser, what: &str) {
    answer.assert_stays_for(what, 200);
    answer.assert_says_for(what, "name=\"password\"");
    assert!(
        !answer
            .headers_named("set-cookie")
            .iter()
            .any(|cookie| cookie.contains("session")),
        "{what}"
    );
    browser
        .get(&path(&[("prompt", "none")]))
        .assert_query_for(what, "error", "login_required");
}

fn post(browser: &mut Browser, page: &Answer, form: &[(&str, &str)]) -> Answer {
    browser.post(&page.action(), form)
}

fn token(page: &Answer) -> String {
    page.form_token()
}

#[test]
fn every_way_to_fail_looks_the_same() {
    let mut registered = document();
    let users = registered["users"].as_array_mut().unwrap();
    users.push(json!({"username": "carol", "password": BOB_PASSWORD, "enabled": false}));
    users.push(json!({"username": "trudy"}));
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut seen = Vec::new();
    for (username, password) in [
        ("alice", "wrong"),
        ("nobod", "wrong"),
        ("carol", BOB_PASSWORD),
        ("carol", "wrong"),
        ("trudy", "wrong"),
        ("trudy", "*"),
    ] {
        let mut browser = gatepost.browser();
        let page = browser.visit(&path(&[]));
        let answer = sign_in(&mut browser, &page, username, password);
        is_the_page_again(&answer, &mut browser, username);
        let sealed = answer.action().split_once("?r=").unwrap().1.to_owned();
        let own = [token(&answer), sealed, username.to_owned()];
        let text = own.iter().fold(answer.without_challenge(), |text, own| {
            text.replace(own.as_str(), "*")
        });
        let headers: Vec<_> = answer
            .headers
            .iter()
            .filter(|(name, _)| name != "date" && name != "x-request-id")
            .cloned()
            .collect();
        text.assert_says("The user name or the password is not correct");
        assert!(!text.contains(password) || password.len() < 2, "{text}");
        seen.push((text, headers));
    }
    for other in &seen {
        assert_eq!(*other, seen[0]);
    }
}

#[test]
fn missing_fields_are_asked_for_by_name() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    let page = browser.visit(&path(&[]));
    let token = token(&page);
    for (form, expected) in [
        (vec![], "Enter your user name."),
        (
            vec![("username", ""), ("password", "")],
            "Enter your password.",
        ),
        (
            vec![("username", "alice"), ("password", "")],
            "Enter your password.",
        ),
        (
            vec![("username", ""), ("password", ALICE_PASSWORD)],
            "Enter your user name.",
        ),
    ] {
        let answer = post(
            &mut browser,
            &page,
            &[&[("form_token", token.as_str())], &form[..]].concat(),
        );
        assert!(answer.text().contains(expected), "{form:?}");
        is_the_page_again(&answer, &mut browser, expected);
    }
    for form in [
        vec![
            ("username", "alice"),
            ("username", "alice"),
            ("password", ALICE_PASSWORD),
        ],
        vec![
            ("username", "alice"),
            ("password", ALICE_PASSWORD),
            ("password", "x"),
        ],
        vec![
            ("username", "alice"),
            ("password", ALICE_PASSWORD),
            ("decision", "allow"),
        ],
        vec![("username", "alice"), ("password", "a\0b")],
    ] {
        let answer = post(
            &mut browser,
            &page,
            &[&[("form_token", token.as_str())], &form[..]].concat(),
        );
        assert_eq!(
            (answer.status, answer.header("location")),
            (400, None),
            "{form:?}"
        );
    }
}

#[test]
fn cancelling_tells_the_client() {
    let gatepost = Gatepost::shared();
    for (mode, place) in [("query", '?'), ("fragment", '#')] {
        let mut browser = gatepost.browser();
        let page = browser.visit(&path(&[("response_mode", mode)]));
        let form = [
            ("form_token", token(&page)),
            ("decision", String::from("cancel")),
        ];
        let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
        let answer = post(&mut browser, &page, &form);
        answer.assert_leads_to(&format!("{RP1}{place}error=access_denied&"));
        let got = if place == '?' {
            answer.query()
        } else {
            answer.fragment()
        };
        assert_eq!(got["state"].as_str(), "the-state");
        assert_eq!(&got["iss"], &gatepost.base_url);
    }
    // Without the form's token nobody can cancel for somebody else.
    let mut browser = gatepost.browser();
    let page = browser.visit(&path(&[]));
    let answer = post(&mut browser, &page, &[("decision", "cancel")]);
    is_the_page_again(&answer, &mut browser, "cancel");
}

#[test]
fn a_form_counts_only_with_the_token_of_its_request_and_browser() {
    let gatepost = Gatepost::shared();
    let (mut victim, mut attacker) = (gatepost.browser(), gatepost.browser());
    let page = victim.visit(&path(&[]));
    let other_request = token(&victim.visit(&path(&[("state", "other")])));
    let other_browser = token(&attacker.visit(&path(&[])));
    let right = token(&page);
    let cut = &right[..right.len() - 1];
    for wrong in [
        "",
        "x",
        "=",
        "%00",
        cut,
        &right.to_uppercase(),
        &other_request,
        &other_browser,
        &format!("{right}A"),
    ] {
        let form = [
            ("form_token", wrong),
            ("username", "alice"),
            ("password", ALICE_PASSWORD),
        ];
        let answer = post(&mut victim, &page, &form);
        is_the_page_again(&answer, &mut victim, wrong);
        assert!(answer.text().contains("no longer up to date"), "{wrong}");
    }
    let answer = post(
        &mut victim,
        &page,
        &[("username", "alice"), ("password", ALICE_PASSWORD)],
    );
    is_the_page_again(&answer, &mut victim, "no token");
    // The attacker's page and token, sent by the victim's browser, sign nobody in.
    let attackers = attacker.visit(&path(&[]));
    let form = [
        ("form_token", other_browser.as_str()),
        ("username", "bob"),
        ("password", BOB_PASSWORD),
    ];
    is_the_page_again(
        &post(&mut victim, &attackers, &form),
        &mut victim,
        "login CSRF",
    );
    let mut without_cookies = gatepost.browser();
    let form = [
        ("form_token", right.as_str()),
        ("username", "alice"),
        ("password", ALICE_PASSWORD),
    ];
    is_the_page_again(
        &post(&mut without_cookies, &page, &form),
        &mut without_cookies,
        "no cookie",
    );
    // And the page that came back can be used.
    sign_in(&mut victim, &page, "alice", ALICE_PASSWORD).assert_carries("code");
}

#[test]
fn a_form_sent_from_elsewhere_is_forbidden() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    let page = browser.visit(&path(&[]));
    let token = token(&page);
    let form = [
        ("form_token", token.as_str()),
        ("username", "alice"),
        ("password", ALICE_PASSWORD),
    ];
    let own = gatepost.base_url.clone();
    let (port, upper) = (format!("{own}1"), own.to_uppercase());
    for headers in [
        vec![("Origin", "https://evil.example")],
        vec![("Origin", "null")],
        vec![("Origin", "")],
        vec![("Origin", port.as_str())],
        vec![("Origin", upper.as_str())],
        vec![("Origin", "http://localhost")],
        vec![("Sec-Fetch-Site", "cross-site")],
        vec![("Sec-Fetch-Site", "same-site")],
        vec![("Origin", own.as_str()), ("Sec-Fetch-Site", "cross-site")],
        vec![
            ("Origin", "https://evil.example"),
            ("Sec-Fetch-Site", "same-origin"),
        ],
    ] {
        let answer = browser.post_from(&page.action(), &headers, &form);
        answer.assert_error_page(403, "GP1009", &format!("{headers:?}"));
        assert_eq!(answer.headers_named("set-cookie").len(), 0);
    }
    for content_type in ["application/json", "text/plain", "multipart/form-data"] {
        let cookies: Vec<String> = browser
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookies = cookies.join("; ");
        let headers = [("Content-Type", content_type), ("Cookie", cookies.as_str())];
        let answer = gatepost.send("POST", &page.action(), &headers, b"username=alice");
        answer.assert_error_page(415, "GP1005", content_type);
    }
    // A browser that says nothing is judged by the token alone.
    browser
        .post_from(&page.action(), &[], &form)
        .assert_carries("code");
}

#[test]
fn a_sign_in_never_takes_over_what_was_in_the_cookie_jar() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    let page = browser.visit(&path(&[]));
    let before = browser.cookies.clone();
    assert_eq!(before.len(), 1);
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let first = browser.cookies.clone();
    // Session and state; and the value of before is drawn anew, with whom this browser signed in.
    assert!(
        first.len() == 3 && before.iter().all(|(name, value)| first[name] != *value),
        "{first:?}"
    );
    // Whoever planted the pre-session value has nothing.
    let mut planter = gatepost.browser();
    planter.cookies = before;
    planter
        .get(&path(&[("prompt", "none")]))
        .assert_query("error", "login_required");

    // Signing in again gives a new handle, and the old one is dead.
    let page = browser.visit(&path(&[("prompt", "login")]));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    assert!(
        browser
            .cookies
            .iter()
            .all(|(name, value)| first[name] != *value),
        "{:?}",
        browser.cookies
    );
    let mut thief = gatepost.browser();
    thief.cookies = first;
    thief
        .get(&path(&[("prompt", "none")]))
        .assert_query("error", "login_required");
    code(&mut browser, &path(&[("prompt", "none")]));
}

#[test]
fn signing_in_as_somebody_else_ends_the_first_session() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let alice = browser.cookies.clone();
    let tokens = redeem(&gatepost, &code(&mut browser, &path(&[]))).json();
    let in_flight = code(&mut browser, &path(&[]));
    let page = browser.visit(&path(&[("prompt", "login")]));
    let answer = sign_in(&mut browser, &page, "bob", BOB_PASSWORD);
    let bob = redeem(&gatepost, &answer.query()["code"]).json();
    let subject = |tokens: &serde_json::Value| decode_jwt(tokens["id_token"].as_str().unwrap()).1;
    assert_ne!(subject(&bob)["sub"], subject(&tokens)["sub"]);
    assert_ne!(subject(&bob)["sid"], subject(&tokens)["sid"]);
    userinfo(&gatepost, tokens["access_token"].as_str().unwrap()).assert_status(401);
    redeem(&gatepost, &in_flight).assert_member("error", "invalid_grant");
    userinfo(&gatepost, bob["access_token"].as_str().unwrap()).assert_status(200);
    let mut left_behind = gatepost.browser();
    left_behind.cookies = alice;
    left_behind
        .get(&path(&[("prompt", "none")]))
        .assert_query("error", "login_required");
}

#[test]
fn the_address_of_a_page_means_nothing_in_another_browser() {
    let gatepost = Gatepost::shared();
    let mut victim = gatepost.browser();
    let page = victim.visit(&path(&[("prompt", "consent")]));
    let answer = sign_in(&mut victim, &page, "alice", ALICE_PASSWORD);
    let consent = victim.follow(answer);
    assert!(consent.text().contains("asks for access"));
    for address in [page.action(), consent.action()] {
        let mut other = gatepost.browser();
        let got = other.visit(&address);
        is_the_page_again(&got, &mut other, &address);
        // Skipping a step by posting to the next one gets nobody further.
        for form in [
            vec![],
            vec![("decision", "allow")],
            vec![
                ("form_token", "x"),
                ("decision", "allow"),
                ("scope", "profile"),
            ],
        ] {
            let got = other.post(&address, &form);
            let got = other.follow(got);
            is_the_page_again(&got, &mut other, &address);
        }
        let form = [
            ("form_token", token(&consent)),
            ("decision", String::from("allow")),
        ];
        let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
        let got = other.post(&address, &form);
        let got = other.follow(got);
        is_the_page_again(&got, &mut other, &address);
    }
}

#[test]
fn an_address_that_was_tampered_with_is_not_valid() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let issued = code(&mut browser, &path(&[]));
    let page = browser.visit(&path(&[("prompt", "login")]));
    let action = page.action();
    let (_, sealed) = action.split_once("?r=").unwrap();
    let flipped = |index: usize| {
        let mut bytes = sealed.as_bytes().to_vec();
        bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    };
    let mut wrong = vec![
        String::from("x"),
        issued,
        token(&page),
        sealed[1..].to_owned(),
    ];
    wrong.extend([
        sealed[..sealed.len() - 4].to_owned(),
        format!("{sealed}AAAA"),
        format!("{sealed}."),
    ]);
    wrong.extend([0, 1, 5, 20, sealed.len() / 2, sealed.len() - 5].map(flipped));
    for page in ["/login", "/consent"] {
        for sealed in &wrong {
            browser
                .get(&format!("{page}?r={sealed}"))
                .assert_error_page(400, "GP1504", sealed);
            browser
                .post(&format!("{page}?r={sealed}"), &[])
                .assert_error_page(400, "GP1504", sealed);
        }
        browser
            .get(&format!("{page}?r={sealed}&r={sealed}"))
            .assert_error_page(400, "GP1002", "twice");
        browser
            .get(&format!("{page}?r={}", "A".repeat(8_193)))
            .assert_error_page(400, "GP1003", "long");
        browser
            .get(&format!("{page}?r=%FF"))
            .assert_error_page(400, "GP1001", "bytes");
    }
}

#[test]
fn a_page_can_be_used_for_an_hour() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let mut browser = gatepost.browser();
    let page = browser.visit(&path(&[]));
    gatepost.travel(3_590);
    browser
        .visit(&page.action())
        .assert_says("name=\"password\"");
    gatepost.travel(10);
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    assert_eq!(answer.status, 303);
    assert_ne!(answer.location(), page.action());
    browser
        .get(&path(&[("prompt", "none")]))
        .assert_query("error", "login_required");
}

#[test]
fn a_session_lasts_ten_hours_however_often_one_signs_in() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let mut browser = signed_in(&gatepost);
    gatepost.travel(35_990);
    code(&mut browser, &path(&[("prompt", "none")]));
    gatepost.travel(10);
    browser
        .get(&path(&[("prompt", "none")]))
        .assert_query("error", "login_required");
    let page = browser.visit(&path(&[]));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).assert_carries("code");
}

#[test]
fn user_names_are_compared_in_one_canonical_form() {
    let mut registered = document();
    let users = registered["users"].as_array_mut().unwrap();
    for username in ["Jos\u{e9}", "\u{fb01}nn", "I\u{307}rem", &"x".repeat(60)] {
        users.push(json!({"username": username, "password": BOB_PASSWORD}));
    }
    let gatepost = Gatepost::start_with(&registered, &[]);
    let x = "x".repeat(60);
    for (typed, password, gets_in) in [
        ("ALICE", ALICE_PASSWORD, true),
        (
            "\u{ff41}\u{ff4c}\u{ff49}\u{ff43}\u{ff45}",
            ALICE_PASSWORD,
            true,
        ),
        ("jos\u{e9}", BOB_PASSWORD, true),
        ("JOSE\u{301}", BOB_PASSWORD, true),
        ("jose", BOB_PASSWORD, false),
        ("finn", BOB_PASSWORD, true),
        ("\u{130}REM", BOB_PASSWORD, true),
        (&x, BOB_PASSWORD, true),
        (&x[1..], BOB_PASSWORD, false),
        ("\u{430}lice", ALICE_PASSWORD, false),
        ("ali\u{200b}ce", ALICE_PASSWORD, false),
        ("\u{200f}alice", ALICE_PASSWORD, false),
        ("alice ", ALICE_PASSWORD, false),
        ("alice\n", ALICE_PASSWORD, false),
        ("alice'--", ALICE_PASSWORD, false),
        ("%", ALICE_PASSWORD, false),
    ] {
        let mut browser = gatepost.browser();
        let page = browser.visit(&path(&[]));
        let answer = sign_in(&mut browser, &page, typed, password);
        assert_eq!(
            answer.header("location").is_some(),
            gets_in,
            "{typed:?}: {}",
            answer.text()
        );
        if !gets_in {
            is_the_page_again(&answer, &mut browser, typed);
        }
    }
    let mut browser = gatepost.browser();
    let page = browser.visit(&path(&[]));
    let answer = sign_in(&mut browser, &page, &"u".repeat(257), "x");
    answer.assert_error_page(400, "GP1003", "long name");
}

#[test]
fn every_byte_of_a_password_counts() {
    let longest = format!("{}!", "p\u{e9}".repeat(341));
    assert_eq!(longest.len(), 1_024);
    let mut registered = document();
    let users = registered["users"].as_array_mut().unwrap();
    users.push(json!({"username": "long", "password": longest}));
    users.push(json!({"username": "hundred", "password": "h".repeat(100)}));
    let gatepost = Gatepost::start_with(&registered, &[]);
    let changed = format!("{}X{}", "h".repeat(80), "h".repeat(19));
    for (username, password, status) in [
        ("long", longest.as_str(), 303),
        ("long", &longest[..1_023], 200),
        ("long", &format!("{longest}x"), 400),
        ("long", &"x".repeat(60_000), 400),
        ("hundred", &changed, 200),
        ("hundred", &"h".repeat(99), 200),
        ("hundred", &"h".repeat(101), 200),
        ("hundred", &"h".repeat(100), 303),
        ("alice", &format!("{ALICE_PASSWORD} "), 200),
        ("alice", &ALICE_PASSWORD.to_uppercase(), 200),
    ] {
        let mut browser = gatepost.browser();
        let page = browser.visit(&path(&[]));
        let answer = sign_in(&mut browser, &page, username, password);
        assert_eq!(answer.status, status, "{username} {} bytes", password.len());
        if status == 400 {
            answer.assert_error_page(400, "GP1003", username);
        }
    }
}

#[test]
fn going_back_to_the_page_of_a_fresh_sign_in_signs_nobody_in() {
    let gatepost = Gatepost::shared();
    for (name, value) in [("prompt", "login"), ("max_age", "0")] {
        let mut browser = signed_in(&gatepost);
        let address = browser.get(&path(&[(name, value)])).location().to_owned();
        let page = browser.get(&address);
        sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).assert_carries("code");
        let again = browser.get(&address);
        again.assert_stays_for(name, 200);
        assert!(again.text().contains("name=\"password\""), "{name}");
        let consent = browser.visit(&address.replace("/login?", "/consent?"));
        assert!(consent.text().contains("name=\"password\""), "{name}");
    }
}

#[test]
fn head_answers_no_client() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    let address = browser.get(&path(&[])).location().to_owned();
    let page = browser.get(&address);
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let cookies: Vec<String> = browser
        .cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let cookies = cookies.join("; ");
    for address in [address.clone(), address.replace("/login?", "/consent?")] {
        let answer = gatepost.send("HEAD", &address, &[("Cookie", &cookies)], b"");
        answer.assert_stays_for(&address, 204);
    }
    assert!(browser.get(&address).query().contains_key("code"));
}

#[test]
fn after_a_password_change_the_new_password_works_at_once_and_old_sessions_end() {
    let gatepost = Gatepost::start();
    let mut old = signed_in(&gatepost);
    let sealed_before = code(&mut old, &path(&[]));
    gatepost.run_well(&["user", "password", "alice"], "another long password\n");
    old.get(&path(&[("prompt", "none")]))
        .assert_query("error", "login_required");
    redeem(&gatepost, &sealed_before).assert_member("error", "invalid_grant");
    let mut browser = gatepost.browser();
    let page = browser.visit(&path(&[]));
    let answer = sign_in(&mut browser, &page, "alice", "another long password");
    let tokens = redeem(&gatepost, &answer.query()["code"]);
    assert_eq!(tokens.status, 200, "{}", tokens.text());
    userinfo(&gatepost, tokens.json()["access_token"].as_str().unwrap()).assert_status(200);
    assert_eq!(
        browser
            .get(&path(&[("prompt", "none")]))
            .query()
            .get("error"),
        None
    );
}
