//! What people see of their own sign-ins, how long these last, and what operators see of them.

use serde_json::Value;

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, is_signed_in, issued, redeem, sign_in, signed_in, text, userinfo,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};
use crate::support::phone::add_app;

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const EDGE: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0";
const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1";

fn browser(gatepost: &Gatepost, user_agent: &str, source: &str) -> Browser {
    let mut browser = gatepost.browser_at(source);
    let header = (String::from("User-Agent"), user_agent.to_owned());
    browser.headers.push(header);
    browser
}

fn enter(browser: &mut Browser) -> Answer {
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(browser, &page, "alice", ALICE_PASSWORD)
}

fn remembered(browser: &mut Browser) -> Answer {
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    enter_at(browser, &page, true)
}

/// Signs in at that page, with the box to stay signed in as given.
fn enter_at(browser: &mut Browser, page: &Answer, remember: bool) -> Answer {
    post_at(browser, page, ALICE_PASSWORD, remember)
}

fn post_at(browser: &mut Browser, page: &Answer, password: &str, remember: bool) -> Answer {
    let mut form = vec![("username", "alice"), ("password", password)];
    form.extend(remember.then_some(("remember", "true")));
    browser.submit(page, &form)
}

/// Whether the box to stay signed in is ticked.
fn is_ticked(page: &Answer) -> bool {
    let text = page.text();
    let mut tags = text.split('<');
    let tag = tags.find(|tag| tag.contains("name=\"remember\""));
    let tag = tag.unwrap_or_else(|| panic!("{text}"));
    tag.contains(" checked")
}

/// The page that asks this browser to sign in anew.
fn anew(browser: &mut Browser) -> Answer {
    browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]))
}

/// The one session that has not ended.
struct Standing {
    sid: String,
    /// Seconds from its beginning to its end, and from now.
    lasts: i64,
    left: i64,
}

fn standing(gatepost: &Gatepost) -> Standing {
    let sql = "SELECT sid, floor(extract(epoch FROM expires_at - created_at))::int8,
                      floor(extract(epoch FROM expires_at - clock_timestamp()))::int8
               FROM sessions WHERE ended_at IS NULL";
    let row = gatepost.database.client().query_one(sql, &[]).unwrap();
    Standing {
        sid: row.get(0),
        lasts: row.get(1),
        left: row.get(2),
    }
}

fn offering() -> Gatepost {
    let setting = ("GATEPOST_REMEMBER_SESSION_LIFETIME", "2592000");
    Gatepost::start_with(&document(), &[setting])
}

const TEN_HOURS: i64 = 36_000;

fn cookie(answer: &Answer) -> String {
    let mut all = answer.headers_named("set-cookie").into_iter();
    let session = all.find(|cookie| cookie.starts_with("gatepost-session-"));
    session.unwrap().to_owned()
}

fn max_age(answer: &Answer) -> Option<u64> {
    let cookie = cookie(answer);
    let mut parts = cookie.split("; ");
    parts.find_map(|part| part.strip_prefix("Max-Age=")?.parse().ok())
}

fn number(gatepost: &Gatepost, sql: &str) -> i64 {
    gatepost.database.value(sql, &[])
}

#[test]
fn each_sign_in_shows_browser_system_address_and_times() {
    let gatepost = Gatepost::start();
    let strange = format!("<script>alert(1)</script>{}", "x".repeat(400));
    for (user_agent, source) in [
        (EDGE, "198.51.100.7"),
        (IPHONE, "2001:db8::7"),
        (&strange, "203.0.113.9"),
    ] {
        enter(&mut browser(&gatepost, user_agent, source));
    }
    let mut own = browser(&gatepost, FIREFOX, "192.0.2.1");
    enter(&mut own);
    let page = own.get("/account");
    let text = page.text();
    for shown in [
        "Firefox · Linux",
        "Edge · Windows",
        "Safari · iPhone",
        "A browser that is not known here",
        "From the address ",
        "198.51.100.7",
        "2001:db8::7",
        "203.0.113.9",
        "192.0.2.1",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    assert!(!text.contains("<script>alert"), "{text}");
    assert_eq!(text.matches("Last used on ").count(), 4);
    assert_eq!(text.matches("<time datetime=").count(), 12);
    let policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; script-src 'self'";
    assert_eq!(page.header("content-security-policy"), Some(policy));
    let script = text.split("<script src=\"").nth(1).unwrap();
    let script = own.get(script.split('"').next().unwrap());
    script.assert_header("content-type", "text/javascript; charset=utf-8");
    let longest = "SELECT max(length(user_agent))::int8 FROM sessions";
    assert_eq!(number(&gatepost, longest), 200);
    // Nothing of it is sent, nothing is shown.
    let mut silent = gatepost.browser();
    enter(&mut silent);
    let unnamed = "sessions WHERE user_agent IS NULL";
    gatepost.database.assert_count(unnamed, 1);

    let listed = gatepost.shown("session list --json");
    let listed = listed.as_array().unwrap();
    assert!(listed.len() == 5);
    for one in listed {
        assert_eq!(one["username"], "alice", "{one}");
        assert!(one["used_at"].is_string(), "{one}");
    }
    let is_edge = |one: &Value| one["user_agent"] == EDGE && one["source"] == "198.51.100.7";
    assert!(listed.iter().any(is_edge), "{listed:?}");
    for line in gatepost.run_line("session list").lines().skip(1) {
        line.assert_says(" alice ");
    }
}

#[test]
fn that_a_session_is_in_use_is_noted_once_an_hour() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let in_use = "sessions WHERE used_at > clock_timestamp() - interval '1 minute'";
    for (minutes, expected) in [(59, 0), (61, 1)] {
        let used = format!(
            "UPDATE sessions SET used_at = clock_timestamp() - interval '{minutes} minutes'"
        );
        gatepost.database.run(&used);
        browser.get(&authorize_path("conf1", RP1, &[]));
        let noted = gatepost.database.count(in_use);
        assert_eq!(noted, expected, "after {minutes} minutes");
    }
    let ended = "SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL OR created_at >= used_at";
    assert_eq!(number(&gatepost, ended), 0);
}

#[test]
fn a_device_is_remembered_only_where_the_operator_offers_it_and_the_person_asks_for_it() {
    let plain = Gatepost::start();
    let mut browser = plain.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    page.assert_says_not("name=\"remember\"");
    assert_eq!(max_age(&remembered(&mut browser)), None, "not offered");

    let gatepost = offering();
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    page.assert_says("Stay signed in on this device");
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    assert_eq!(max_age(&answer), None, "not asked for");
    let mut browser = gatepost.browser();
    let left = max_age(&remembered(&mut browser)).unwrap();
    assert!((2_591_990..=2_592_000).contains(&left), "{left}");
    let seconds =
        "SELECT floor(extract(epoch FROM max(expires_at - created_at)))::int8 FROM sessions";
    assert_eq!(number(&gatepost, seconds), 2_592_000);
    // A sign-in anew with the box as it is, and a new password, leave it as long as it was.
    let page = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    assert!(is_ticked(&page), "{}", page.text());
    let again = max_age(&enter_at(&mut browser, &page, true)).unwrap();
    assert!((2_591_900..=left).contains(&again), "{again}");
    let token = browser.get("/account").form_token();
    let new = "another horse, another battery";
    let change = |present, new| {
        [
            ("form_token", token.as_str()),
            ("decision", "change_password"),
            ("present_password", present),
            ("new_password", new),
            ("new_password_again", new),
        ]
    };
    let same = browser.post("/account", &change(ALICE_PASSWORD, ALICE_PASSWORD));
    same.assert_says("must not be the present one");
    let changed = max_age(&browser.post("/account", &change(ALICE_PASSWORD, new))).unwrap();
    assert!((2_591_900..=left).contains(&changed), "{changed}");
}

#[test]
fn the_box_shows_what_the_session_is_and_keeps_what_was_ticked() {
    let gatepost = offering();
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    assert!(!is_ticked(&page), "nobody is signed in");
    let again = post_at(&mut browser, &page, "wrong", true);
    again.assert_says("is not correct");
    assert!(is_ticked(&again), "{}", again.text());
    enter_at(&mut browser, &page, false);
    // The session ends with the browser.
    assert!(!is_ticked(&anew(&mut browser)));

    let mut browser = gatepost.browser();
    remembered(&mut browser);
    let page = anew(&mut browser);
    assert!(is_ticked(&page), "{}", page.text());
    for password in ["wrong", ""] {
        let again = post_at(&mut browser, &page, password, false);
        again.assert_status(200);
        assert!(!is_ticked(&again), "{}", again.text());
    }
    let choosing = authorize_path("conf1", RP1, &[("prompt", "select_account")]);
    let chooser = browser.visit(&choosing);
    let other = browser.submit(&chooser, &[("decision", "another")]);
    assert!(!is_ticked(&other), "for somebody else: {}", other.text());
}

#[test]
fn who_unticks_the_box_keeps_a_session_that_ends_like_any_other() {
    let gatepost = offering();
    let mut browser = gatepost.browser();
    assert!(max_age(&remembered(&mut browser)).is_some());
    let before = standing(&gatepost);
    assert_eq!(before.lasts, 2_592_000);
    let page = anew(&mut browser);
    let answer = enter_at(&mut browser, &page, false);
    answer.assert_status(303);
    assert_eq!(max_age(&answer), None, "{}", answer.text());
    let after = standing(&gatepost);
    assert_eq!((&after.sid, after.lasts), (&before.sid, TEN_HOURS));
    assert!(!is_ticked(&anew(&mut browser)));
    // A session that would have ended by now goes on, as long as one that begins.
    let mut browser = gatepost.browser();
    gatepost.run_sql("UPDATE sessions SET ended_at = clock_timestamp()");
    remembered(&mut browser);
    let three_days = "UPDATE sessions SET created_at = created_at - interval '3 days', expires_at = expires_at - interval '3 days'";
    gatepost.database.run(three_days);
    let before = standing(&gatepost);
    let page = anew(&mut browser);
    let answer = enter_at(&mut browser, &page, false);
    answer.assert_status(303);
    assert_eq!(max_age(&answer), None, "{}", answer.text());
    let after = standing(&gatepost);
    assert_eq!(after.sid, before.sid);
    let left = TEN_HOURS - 60..=TEN_HOURS;
    assert!(left.contains(&after.left), "{}", after.left);
    assert!(after.lasts <= TEN_HOURS, "{}", after.lasts);
    assert!(!is_ticked(&anew(&mut browser)));
}

#[test]
fn who_ticks_the_box_anew_gets_a_new_session_and_the_old_one_ends_as_at_sign_out() {
    let gatepost = offering();
    let mut browser = gatepost.browser();
    let answer = enter(&mut browser);
    let first = standing(&gatepost);
    let tokens = issued(&redeem(&gatepost, &answer.query()["code"]));
    let in_flight = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    let old_cookies = browser.cookies.clone();
    let page = anew(&mut browser);
    let answer = enter_at(&mut browser, &page, true);
    let left = max_age(&answer).unwrap();
    assert!(left > 2_591_900, "{}", cookie(&answer));
    let second = standing(&gatepost);
    assert_eq!(second.lasts, 2_592_000);
    assert_ne!(second.sid, first.sid);
    userinfo(&gatepost, text(&tokens, "access_token")).assert_status(401);
    redeem(&gatepost, &in_flight).assert_member("error", "invalid_grant");
    let counted = "SELECT count(*) FROM audit_events WHERE event = 'signed_out' AND sid = $1";
    let told: i64 = gatepost.database.value(counted, &[&first.sid]);
    assert_eq!(told, 1);
    let mut left_behind = gatepost.browser();
    left_behind.cookies = old_cookies;
    assert!(!is_signed_in(&mut left_behind));
    issued(&redeem(&gatepost, &answer.query()["code"]));
    // Ticked again, it is the same session, as long as it was.
    let page = anew(&mut browser);
    enter_at(&mut browser, &page, true);
    let third = standing(&gatepost);
    assert_eq!((third.sid, third.lasts), (second.sid, 2_592_000));
}

/// Whoever was shown no box said nothing about it.
#[test]
fn a_second_factor_carries_the_box_on_and_where_none_is_offered_nothing_is_heard() {
    let mut gatepost = offering();
    let mut browser = gatepost.browser();
    remembered(&mut browser);
    let (phone, codes) = add_app(&mut browser, 0);
    let before = standing(&gatepost);
    let page = anew(&mut browser);
    let asked = enter_at(&mut browser, &page, true);
    let answer = browser.submit(&asked, &[("code", &phone.code(0))]);
    assert!(max_age(&answer).is_some(), "{}", cookie(&answer));
    assert_eq!(standing(&gatepost).sid, before.sid);

    gatepost.stop();
    gatepost.unset("GATEPOST_REMEMBER_SESSION_LIFETIME");
    gatepost.serve();
    let page = anew(&mut browser);
    let asked = enter_at(&mut browser, &page, false);
    let back = browser.submit(&asked, &[("code", &codes[0])]);
    back.assert_status(303);
    let now = standing(&gatepost);
    assert_eq!((&now.sid, now.lasts), (&before.sid, 2_592_000));

    gatepost.stop();
    gatepost.set("GATEPOST_REMEMBER_SESSION_LIFETIME", "2592000");
    gatepost.serve();
    let page = anew(&mut browser);
    let asked = enter_at(&mut browser, &page, false);
    let answer = browser.submit(&asked, &[("code", &codes[1])]);
    answer.assert_status(303);
    assert_eq!(max_age(&answer), None, "{}", answer.text());
    let now = standing(&gatepost);
    assert_eq!((&now.sid, now.lasts), (&before.sid, TEN_HOURS));
}

#[test]
fn password_managers_find_where_a_password_is_changed() {
    let gatepost = Gatepost::shared();
    let answer = gatepost.get("/.well-known/change-password");
    answer.assert_status(303);
    assert_eq!(answer.location(), "/account#password");
    let page = signed_in(&gatepost).get("/account").text();
    page.assert_says("name=\"username\" value=\"alice\" autocomplete=\"username\" hidden readonly");
}
