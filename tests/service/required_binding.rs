//! Clients that require bound sessions, and `/admin` where it does. Of a session that is not bound, a
//! sign-in counts at a client for 90 seconds, and a consent page that was drawn within them for ten
//! minutes.

use serde_json::{Value, json};

use crate::admin_people::{ON, boss, registered as administrators, signed_in_by};
use crate::support::bound::{
    self, BoundBrowser, SETTINGS, bind, bound_cookie, challenge_offered, pass_half_a_minute,
    registration,
};
use crate::support::claims::Says;
use crate::support::device::{self, poll, reach_decision, user_code};
use crate::support::flow::{
    asks_to_sign_in, is_signed_in, request_of, sign_in, signed_in, with_clients,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, document};
use crate::support::house::House;
use crate::support::http::Browser;
use crate::support::phone::Phone;
use crate::support::postgres::TestDatabase;
use crate::support::signer::{Signer, now};
use crate::support::traveller::Traveller;

const SILENT: [(&str, &str); 1] = [("prompt", "none")];

fn registered() -> Value {
    let strict = json!({"require_bound_session": true});
    let asking = json!({"require_bound_session": true, "require_consent": true});
    let lax = json!({"require_consent": true});
    with_clients(
        document(),
        &[("strict", strict), ("asking", asking), ("lax", lax)],
    )
}

/// Lets 91 seconds pass since each sign-in.
fn age(gatepost: &Gatepost) {
    gatepost.run_sql("UPDATE sessions SET auth_time = auth_time - interval '91 seconds'");
}

/// Serves over a clock that can be set forward.
fn start_with_a_clock(document: &Value, settings: &[(&str, &str)]) -> Gatepost {
    let database = TestDatabase::with_a_clock_of_its_own();
    let mut gatepost = Gatepost::prepare_over(database, settings);
    gatepost.apply(document);
    gatepost.serve();
    gatepost
}

fn asks(browser: &mut Browser, client_id: &str) -> bool {
    asks_to_sign_in(&browser.visit(&request_of(client_id, &[])))
}

#[test]
fn a_session_without_a_key_counts_for_90_seconds_and_then_asks_each_time() {
    let gatepost = Gatepost::lent_with(&registered(), &[]);
    let mut thief = gatepost.browser();
    let beforehand = thief.get(&request_of("strict", &[])).location().to_owned();
    let mut browser = signed_in(&gatepost);
    for _ in 0..2 {
        let at_once = browser.get(&request_of("strict", &[]));
        at_once.assert_carries("code");
        let silent = browser.get(&request_of("strict", &SILENT));
        silent.assert_carries("code");
        age(&gatepost);
        assert!(is_signed_in(&mut browser), "other clients go on");
        let silent = browser.get(&request_of("strict", &SILENT));
        silent.assert_query("error", "login_required");
        gatepost
            .last_line("/connect/authorize")
            .assert_says("GP1484");
        thief.cookies = browser.cookies.clone();
        assert!(asks(&mut thief, "strict"));
        assert!(asks_to_sign_in(&thief.visit(&beforehand)));
        let page = browser.visit(&request_of("strict", &[]));
        let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
        answer.assert_carries("code");
    }
}

#[test]
fn a_consent_page_that_was_drawn_in_time_is_answered_for_ten_minutes() {
    let gatepost = start_with_a_clock(&registered(), &SETTINGS);
    for (decision, parameter) in [("allow", "code"), ("deny", "error")] {
        let mut browser = signed_in(&gatepost);
        let page = browser.visit(&request_of("asking", &[]));
        page.assert_says("asks for access");
        gatepost.travel(540);
        let answer = browser.decide(&page, decision, &[], false);
        answer.assert_carries_for(decision, parameter);
        assert!(
            asks_to_sign_in(&browser.visit(&page.action())),
            "drawn anew"
        );
        assert!(asks(&mut browser, "asking"));
        gatepost.travel(61);
        let answer = browser.decide(&page, decision, &[], false);
        assert!(asks_to_sign_in(&browser.follow(answer)), "{decision}");
    }
    let mut bound = BoundBrowser::sign_in(&gatepost).browser;
    let page = bound.visit(&request_of("asking", &[]));
    gatepost.travel(601);
    let answer = bound.decide(&page, "allow", &[], false);
    answer.assert_carries("code");
    // The page was drawn before the client required anything.
    let mut browser = signed_in(&gatepost);
    let page = browser.visit(&request_of("lax", &[]));
    let mut document = registered();
    let clients = document["clients"].as_array_mut().unwrap();
    for client in clients
        .iter_mut()
        .filter(|client| client["client_id"] == "lax")
    {
        client["require_bound_session"] = json!(true);
    }
    gatepost.apply(&document);
    gatepost.settle();
    age(&gatepost);
    let answer = browser.decide(&page, "allow", &[], false);
    assert!(asks_to_sign_in(&browser.follow(answer)));
}

#[test]
fn a_factor_that_makes_a_session_stronger_makes_its_sign_in_no_younger() {
    let strict = json!({"require_bound_session": true, "minimum_acr": "2"});
    let gatepost = start_with_a_clock(&with_clients(document(), &[("strict", strict)]), &[]);
    let request = request_of("strict", &[]);
    let mut browser = gatepost.browser();
    let page = browser.visit(&request);
    let page = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let mut phone = Phone::from_page(&page, 0);
    let code = phone.code(-1);
    let added = browser.submit(&page, &[("decision", "add_app"), ("code", &code)]);
    let later = |phone: &mut Phone| {
        gatepost.travel(91);
        phone.ahead += 91;
        phone.code(0)
    };
    later(&mut phone);
    let answer = browser.submit(&added, &[("decision", "continue")]);
    let page = browser.follow(answer);
    assert!(asks_to_sign_in(&page), "one was added");
    // A sign-in counts, however long its second factor takes.
    let page = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let answer = browser.submit(&page, &[("code", &later(&mut phone))]);
    answer.assert_carries("code");
    gatepost.run_sql("UPDATE sessions SET acr = '1', amr = '{pwd}', auth_time = clock_timestamp()");
    let page = browser.visit(&request);
    page.assert_says("Confirm that it is you");
    let answer = browser.submit(&page, &[("code", &later(&mut phone))]);
    assert!(asks_to_sign_in(&browser.follow(answer)), "one was proved");
}

#[test]
fn a_device_is_decided_about_on_the_page_that_was_drawn_in_time() {
    let strict = json!({"require_bound_session": true});
    let gatepost = Gatepost::start_with(&device::with_devices(&[("strict-tv", strict)]), &[]);
    for (decision, outcome) in [("allow", ""), ("deny", "access_denied")] {
        let mut browser = signed_in(&gatepost);
        let asked = device::start(&gatepost, "strict-tv", &[]);
        let page = reach_decision(&mut browser, user_code(&asked));
        age(&gatepost);
        let answer = device::decide(&mut browser, &page, decision, &[]);
        answer.assert_status_for(decision, 200);
        let polled = poll(&gatepost, "strict-tv", &asked).json();
        assert_eq!(polled["error"].as_str().unwrap_or_default(), outcome);
        let another = device::start(&gatepost, "strict-tv", &[]);
        let page = device::enter(&mut browser, user_code(&another));
        assert!(asks_to_sign_in(&page), "{decision}");
    }
}

/// The provider knows them since this morning, and says so.
#[test]
fn a_sign_in_that_the_provider_dates_back_counts_for_its_own_request() {
    let document = with_clients(
        document(),
        &[(
            "strict",
            json!({"require_bound_session": true, "require_consent": true, "identity_providers": ["up"]}),
        )],
    );
    let house = House::start_with(document, &json!({}), &[]);
    house
        .up
        .plan(|plan| plan.id_token = json!({"auth_time": now() - 3_600}));
    let mut person = Traveller::new();
    for round in 1..=2 {
        let page = person.visit(&house.address(&request_of("strict", &[])));
        page.assert_says("asks for access");
        let answer = house
            .browser(&mut person)
            .decide(&page, "allow", &[], false);
        answer.assert_carries_for(round, "code");
        let gone = person
            .went
            .iter()
            .filter(|address| address.contains("/external/"));
        assert_eq!(gone.count(), round, "each visit goes to the provider");
    }
}

#[test]
fn a_browser_that_binds_its_session_signs_in_once_and_its_cookies_open_nothing_elsewhere() {
    let gatepost = Gatepost::lent_with(&registered(), &SETTINGS);
    let mut bound = BoundBrowser::sign_in(&gatepost);
    let (mut unbound, _) = bound::signed_in(&gatepost);
    let mut thief = bound.copied();
    for _ in 0..2 {
        age(&gatepost);
        pass_half_a_minute(&gatepost);
        for path in [request_of("strict", &[]), request_of("strict", &SILENT)] {
            bound.browser.get(&path).assert_carries("code");
        }
        assert!(asks(&mut thief, "strict"));
        // Copied from a browser that binds nothing, which is asked each time, too.
        assert!(is_signed_in(&mut unbound.clone()));
        assert!(asks(&mut unbound.clone(), "strict"));
    }
    let sentence = "Bound to its device";
    let account = bound.browser.get("/account");
    assert_eq!(account.text().matches(sentence).count(), 1);
    unbound.get("/account").assert_says(sentence);
    let mut listed: Vec<bool> = Vec::new();
    for session in gatepost.shown("session list --json").as_array().unwrap() {
        listed.push(session["bound"].as_bool().unwrap());
    }
    listed.sort_unstable();
    assert_eq!(listed, [false, true]);
    let asked = format!("{}{}", gatepost.origin(), request_of("strict", &[]));
    let told = gatepost.run_well(&["explain", &asked], "");
    told.assert_says("unless their browser has bound its session to a key");
}

/// With what a command says where no session is bound.
#[test]
fn the_tools_say_that_everybody_signs_in_at_each_visit_while_the_setting_is_off() {
    let gatepost = Gatepost::prepare(&[]);
    let file = gatepost.private_file("registration", &registered().to_string());
    let planned = gatepost.run(&["plan", file.to_str().unwrap()], "");
    let planned = String::from_utf8(planned.stdout).unwrap();
    planned.assert_says(
        "client \"strict\", \"asking\": everybody signs in at each visit (require_bound_session)",
    );
    gatepost.apply(&registered());
    let asked = format!("{}{}", gatepost.origin(), request_of("strict", &[]));
    for line in [vec!["client", "test", "strict"], vec!["explain", &asked]] {
        let told = gatepost.run(&line, "");
        let told = String::from_utf8(told.stdout).unwrap();
        told.assert_says("require_bound_session: a sign-in counts for 90 seconds");
        told.assert_says("GATEPOST_BOUND_SESSIONS is off");
    }
}

#[test]
fn admin_takes_bound_sessions_alone_and_says_to_any_other_which_browsers_can() {
    let settings = [ON[0], ON[1], ("GATEPOST_ADMIN_BOUND_SESSION", "on")];
    let gatepost = Gatepost::start_with(&administrators(), &settings);
    let mut browser = boss(&gatepost);
    // A moment after the sign-in its browser may still bind the session.
    for refresh in [Some("2"), None] {
        for path in ["/admin/", "/admin/audit"] {
            let page = browser.get(path);
            page.assert_error_page(403, "GP1483", path);
            page.assert_says("such as Chrome 146 or later on Windows");
            assert_eq!(page.header("refresh"), refresh, "{path}");
        }
        gatepost.run_sql("UPDATE sessions SET used_at = used_at - interval '61 seconds'");
    }
    let mut stranger = signed_in(&gatepost);
    stranger
        .get("/admin/")
        .assert_error_page(404, "GP1007", "no administrator");
}

#[test]
fn admin_opens_as_soon_as_the_browser_shows_its_key() {
    let on = [("GATEPOST_ADMIN_BOUND_SESSION", "on")];
    let settings = [&ON[..], &SETTINGS, &on].concat();
    let gatepost = Gatepost::start_with(&administrators(), &settings);
    let (mut browser, answer) = signed_in_by(&gatepost, "boss", "", 0);
    let page = browser.get("/admin/");
    page.assert_error_page(403, "GP1483", "before");
    let offered = challenge_offered(&answer).unwrap();
    let bound = bind(
        &gatepost,
        &[&registration(&Signer::es256("device"), &offered)],
    );
    let page = browser.get("/admin/");
    page.assert_error_page(403, "GP1483", "the session cookie alone");
    assert_eq!(page.header("refresh"), Some("2"));
    browser.cookies.extend(bound_cookie(&bound));
    browser.get("/admin/").assert_status_for("at once", 200);
    pass_half_a_minute(&gatepost);
    age(&gatepost);
    let person = browser.get("/admin/people/sub%7Cboss");
    person.assert_status(200);
    person.assert_says("Bound to its device");
}
