//! The sign-in page: who gets in, who does not, and what the page gives away.

use serde_json::json;

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, decode_jwt, is_signed_in, redeem, sign_in, signed_in, userinfo,
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
    answer.assert_sets_none("session");
    assert!(!is_signed_in(browser), "{what}");
}

fn post(browser: &mut Browser, page: &Answer, form: &[(&str, &str)]) -> Answer {
    browser.post(&page.action(), form)
}

/// Alice's right password, with that token.
fn of_alice(token: &str) -> [(&str, &str); 3] {
    [
        ("form_token", token),
        ("username", "alice"),
        ("password", ALICE_PASSWORD),
    ]
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
        let own = [answer.form_token(), sealed, username.to_owned()];
        let text = own.iter().fold(answer.without_challenge(), |text, own| {
            text.replace(own.as_str(), "*")
        });
        let mut headers = answer.headers.clone();
        headers.retain(|(name, _)| name != "date" && name != "x-request-id");
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
    for (form, expected) in [
        (&[][..], "Enter your user name."),
        (
            &[("username", ""), ("password", "")],
            "Enter your password.",
        ),
        (
            &[("username", "alice"), ("password", "")],
            "Enter your password.",
        ),
        (
            &[("username", ""), ("password", ALICE_PASSWORD)],
            "Enter your user name.",
        ),
    ] {
        let answer = browser.submit(&page, form);
        answer.assert_says_for(format!("{form:?}"), expected);
        is_the_page_again(&answer, &mut browser, expected);
    }
    let token = page.form_token();
    let with = |more| [("username", "alice"), ("password", ALICE_PASSWORD), more];
    for form in [
        &with(("username", "alice"))[..],
        &with(("password", "x")),
        &with(("decision", "allow")),
        &[("username", "alice"), ("password", "a\0b")],
    ] {
        let form = [&[("form_token", &*token)], form].concat();
        let answer = post(&mut browser, &page, &form);
        answer.assert_stays_for(format!("{form:?}"), 400);
    }
}

#[test]
fn cancelling_tells_the_client() {
    let gatepost = Gatepost::shared();
    for (mode, place) in [("query", '?'), ("fragment", '#')] {
        let mut browser = gatepost.browser();
        let page = browser.visit(&path(&[("response_mode", mode)]));
        let answer = browser.submit(&page, &[("decision", "cancel")]);
        answer.assert_leads_to(&format!("{RP1}{place}error=access_denied&"));
        let got = match place {
            '?' => answer.query(),
            _ => answer.fragment(),
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
    let other_request = victim.visit(&path(&[("state", "other")])).form_token();
    let other_browser = attacker.visit(&path(&[])).form_token();
    let right = page.form_token();
    let (cut, longer) = (&right[..right.len() - 1], format!("{right}A"));
    let upper = right.to_uppercase();
    let others = [&*upper, &other_request, &other_browser, &longer];
    for wrong in ["", "x", "=", "%00", cut].into_iter().chain(others) {
        let answer = post(&mut victim, &page, &of_alice(wrong));
        is_the_page_again(&answer, &mut victim, wrong);
        answer.assert_says_for(wrong, "no longer up to date");
    }
    let answer = post(&mut victim, &page, &of_alice("")[1..]);
    is_the_page_again(&answer, &mut victim, "no token");
    // The attacker's page and token, sent by the victim's browser, sign nobody in.
    let attackers = attacker.visit(&path(&[]));
    let form = [
        ("form_token", other_browser.as_str()),
        ("username", "bob"),
        ("password", BOB_PASSWORD),
    ];
    let answer = post(&mut victim, &attackers, &form);
    is_the_page_again(&answer, &mut victim, "login CSRF");
    let mut without_cookies = gatepost.browser();
    let answer = post(&mut without_cookies, &page, &of_alice(&right));
    is_the_page_again(&answer, &mut without_cookies, "no cookie");
    // And the page that came back can be used.
    sign_in(&mut victim, &page, "alice", ALICE_PASSWORD).assert_carries("code");
}

#[test]
fn a_form_sent_from_elsewhere_is_forbidden() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    let page = browser.visit(&path(&[]));
    let token = page.form_token();
    let form = of_alice(&token);
    let own = gatepost.base_url.clone();
    let (port, upper) = (format!("{own}1"), own.to_uppercase());
    let evil = "https://evil.example";
    for (origin, site) in [
        (Some(evil), None),
        (Some("null"), None),
        (Some(""), None),
        (Some(&port), None),
        (Some(&upper), None),
        (Some("http://localhost"), None),
        (None, Some("cross-site")),
        (None, Some("same-site")),
        (Some(&own), Some("cross-site")),
        (Some(evil), Some("same-origin")),
    ] {
        let origin = origin.map(|origin| ("Origin", origin));
        let site = site.map(|site| ("Sec-Fetch-Site", site));
        let headers = Vec::from_iter(origin.into_iter().chain(site));
        let answer = browser.post_from(&page.action(), &headers, &form);
        answer.assert_error_page(403, "GP1009", &format!("{headers:?}"));
        assert_eq!(answer.headers_named("set-cookie").len(), 0);
    }
    for content_type in ["application/json", "text/plain", "multipart/form-data"] {
        let cookies = browser.cookie_header();
        let headers = [("Content-Type", content_type), ("Cookie", cookies.as_str())];
        let answer = gatepost.send("POST", &page.action(), &headers, b"username=alice");
        answer.assert_error_page(415, "GP1005", content_type);
    }
    // A browser that says nothing is judged by the token alone.
    let answer = browser.post_from(&page.action(), &[], &form);
    answer.assert_carries("code");
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
    let is_new = before.iter().all(|(name, value)| first[name] != *value);
    assert!(first.len() == 3 && is_new, "{first:?}");
    // Whoever planted the pre-session value has nothing.
    let mut planter = gatepost.browser();
    planter.cookies = before;
    assert!(!is_signed_in(&mut planter));

    // Signing in again gives a new handle, and the old one is dead.
    let page = browser.visit(&path(&[("prompt", "login")]));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let now = &browser.cookies;
    let is_new = now.iter().all(|(name, value)| first[name] != *value);
    assert!(is_new, "{now:?}");
    let mut thief = gatepost.browser();
    thief.cookies = first;
    assert!(!is_signed_in(&mut thief));
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
    assert!(!is_signed_in(&mut left_behind));
}

#[test]
fn the_address_of_a_page_means_nothing_in_another_browser() {
    let gatepost = Gatepost::shared();
    let mut victim = gatepost.browser();
    let page = victim.visit(&path(&[("prompt", "consent")]));
    let answer = sign_in(&mut victim, &page, "alice", ALICE_PASSWORD);
    let consent = victim.follow(answer);
    consent.assert_says("asks for access");
    for address in [page.action(), consent.action()] {
        let mut other = gatepost.browser();
        let got = other.visit(&address);
        is_the_page_again(&got, &mut other, &address);
        // Skipping a step by posting to the next one gets nobody further.
        let token = consent.form_token();
        for form in [
            &[][..],
            &[("decision", "allow")],
            &[
                ("form_token", "x"),
                ("decision", "allow"),
                ("scope", "profile"),
            ],
            &[("form_token", &token), ("decision", "allow")],
        ] {
            let got = other.post(&address, form);
            let got = other.follow(got);
            is_the_page_again(&got, &mut other, &address);
        }
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
    let mut wrong = vec![String::from("x"), issued, page.form_token()];
    let (beginning, end) = (&sealed[..sealed.len() - 4], &sealed[1..]);
    wrong.extend([beginning, end].map(str::to_owned));
    wrong.extend(["AAAA", "."].map(|more| format!("{sealed}{more}")));
    wrong.extend([0, 1, 5, 20, sealed.len() / 2, sealed.len() - 5].map(flipped));
    for page in ["/login", "/consent"] {
        for sealed in &wrong {
            let address = format!("{page}?r={sealed}");
            for answer in [browser.get(&address), browser.post(&address, &[])] {
                answer.assert_error_page(400, "GP1504", sealed);
            }
        }
        for (r, code, case) in [
            (format!("{sealed}&r={sealed}"), "GP1002", "twice"),
            ("A".repeat(8_193), "GP1003", "long"),
            (String::from("%FF"), "GP1001", "bytes"),
        ] {
            let answer = browser.get(&format!("{page}?r={r}"));
            answer.assert_error_page(400, code, case);
        }
    }
}

#[test]
fn a_page_can_be_used_for_an_hour() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let mut browser = gatepost.browser();
    let page = browser.visit(&path(&[]));
    gatepost.travel(3_590);
    let again = browser.visit(&page.action());
    again.assert_says("name=\"password\"");
    gatepost.travel(10);
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    assert_eq!(answer.status, 303);
    assert_ne!(answer.location(), page.action());
    assert!(!is_signed_in(&mut browser));
}

#[test]
fn a_session_lasts_ten_hours_however_often_one_signs_in() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let mut browser = signed_in(&gatepost);
    gatepost.travel(35_990);
    code(&mut browser, &path(&[("prompt", "none")]));
    gatepost.travel(10);
    assert!(!is_signed_in(&mut browser));
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
    let wide = "\u{ff41}\u{ff4c}\u{ff49}\u{ff43}\u{ff45}";
    for (typed, password, gets_in) in [
        ("ALICE", ALICE_PASSWORD, true),
        (wide, ALICE_PASSWORD, true),
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
        let got_in = answer.header("location").is_some();
        assert_eq!(got_in, gets_in, "{typed:?}: {}", answer.text());
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
        again.assert_says_for(name, "name=\"password\"");
        let consent = browser.visit(&address.replace("/login?", "/consent?"));
        consent.assert_says_for(name, "name=\"password\"");
    }
}

#[test]
fn head_answers_no_client() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    let address = browser.get(&path(&[])).location().to_owned();
    let page = browser.get(&address);
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let cookies = browser.cookie_header();
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
    assert!(!is_signed_in(&mut old));
    redeem(&gatepost, &sealed_before).assert_member("error", "invalid_grant");
    let mut browser = gatepost.browser();
    let page = browser.visit(&path(&[]));
    let answer = sign_in(&mut browser, &page, "alice", "another long password");
    let tokens = redeem(&gatepost, &answer.query()["code"]);
    assert_eq!(tokens.status, 200, "{}", tokens.text());
    userinfo(&gatepost, tokens.json()["access_token"].as_str().unwrap()).assert_status(200);
    assert!(is_signed_in(&mut browser));
}
