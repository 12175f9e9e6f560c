//! What people see of their own sign-ins, how long these last, and what operators see of them.

use serde_json::Value;

use crate::support::flow::{authorize_path, sign_in, signed_in};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const EDGE: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0";
const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1";

fn browser(gatepost: &Gatepost, user_agent: &str, source: &str) -> Browser {
    let mut browser = gatepost.browser();
    browser.headers.push((String::from("User-Agent"), user_agent.to_owned()));
    browser.headers.push((String::from("X-Forwarded-For"), source.to_owned()));
    browser
}

fn enter(browser: &mut Browser) -> Answer {
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(browser, &page, "alice", ALICE_PASSWORD)
}

fn remembered(browser: &mut Browser) -> Answer {
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    let token = page.fields().remove("form_token").unwrap();
    let form =
        [("form_token", token.as_str()), ("username", "alice"), ("password", ALICE_PASSWORD), ("remember", "true")];
    browser.post(&page.action(), &form)
}

fn cookie(answer: &Answer) -> String {
    let all = answer.headers_named("set-cookie");
    all.into_iter().find(|cookie| cookie.starts_with("gatepost-session-")).unwrap().to_owned()
}

fn max_age(answer: &Answer) -> Option<u64> {
    cookie(answer).split("; ").find_map(|part| part.strip_prefix("Max-Age=")?.parse().ok())
}

fn number(gatepost: &Gatepost, sql: &str) -> i64 {
    gatepost.database.client().query_one(sql, &[]).unwrap().get(0)
}

#[test]
fn each_sign_in_shows_browser_system_address_and_times() {
    let gatepost = Gatepost::start();
    let strange = format!("<script>alert(1)</script>{}", "x".repeat(400));
    for (user_agent, source) in [(EDGE, "198.51.100.7"), (IPHONE, "2001:db8::7"), (&strange, "203.0.113.9")] {
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
    assert_eq!((text.matches("Last used on ").count(), text.matches("<time datetime=").count()), (4, 12));
    let policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; script-src 'self'";
    assert_eq!(page.header("content-security-policy"), Some(policy));
    let script = text.split("<script src=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(own.get(script).header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(number(&gatepost, "SELECT max(length(user_agent))::int8 FROM sessions"), 200);
    // Nothing of it is sent, nothing is shown.
    let mut silent = gatepost.browser();
    enter(&mut silent);
    assert_eq!(number(&gatepost, "SELECT count(*) FROM sessions WHERE user_agent IS NULL"), 1);

    let listed: Value = serde_json::from_str(&gatepost.run_well(&["session", "list", "--json"], "")).unwrap();
    let listed = listed.as_array().unwrap();
    assert!(listed.len() == 5 && listed.iter().all(|one| one["username"] == "alice" && one["used_at"].is_string()));
    assert!(listed.iter().any(|one| one["user_agent"] == EDGE && one["source"] == "198.51.100.7"), "{listed:?}");
    assert!(gatepost.run_well(&["session", "list"], "").lines().skip(1).all(|line| line.contains(" alice ")));
}

#[test]
fn that_a_session_is_in_use_is_noted_once_an_hour() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let noted =
        || number(&gatepost, "SELECT count(*) FROM sessions WHERE used_at > clock_timestamp() - interval '1 minute'");
    for (minutes, expected) in [(59, 0), (61, 1)] {
        gatepost
            .database
            .run(&format!("UPDATE sessions SET used_at = clock_timestamp() - interval '{minutes} minutes'"));
        browser.get(&authorize_path("conf1", RP1, &[]));
        assert_eq!(noted(), expected, "after {minutes} minutes");
    }
    let ended = "SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL OR created_at >= used_at";
    assert_eq!(number(&gatepost, ended), 0);
}

#[test]
fn a_device_is_remembered_only_where_the_operator_offers_it_and_the_person_asks_for_it() {
    let plain = Gatepost::start();
    let mut browser = plain.browser();
    assert!(!browser.visit(&authorize_path("conf1", RP1, &[])).text().contains("name=\"remember\""));
    assert_eq!(max_age(&remembered(&mut browser)), None, "not offered");

    let month = ("GATEPOST_REMEMBER_SESSION_LIFETIME", "2592000");
    let gatepost = Gatepost::start_with(&document(), &[month]);
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    assert!(page.text().contains("Stay signed in on this device"), "{}", page.text());
    assert_eq!(max_age(&sign_in(&mut browser, &page, "alice", ALICE_PASSWORD)), None, "not asked for");
    let mut browser = gatepost.browser();
    let left = max_age(&remembered(&mut browser)).unwrap();
    assert!((2_591_990..=2_592_000).contains(&left), "{left}");
    let seconds = "SELECT floor(extract(epoch FROM max(expires_at - created_at)))::int8 FROM sessions";
    assert_eq!(number(&gatepost, seconds), 2_592_000);
    // A sign-in anew, and a new password, leave it as long as it was.
    let page = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "login")]));
    let again = max_age(&sign_in(&mut browser, &page, "alice", ALICE_PASSWORD)).unwrap();
    assert!((2_591_900..=left).contains(&again), "{again}");
    let token = browser.get("/account").attribute("name=\"form_token\"", "value").unwrap();
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
    assert!(same.text().contains("must not be the present one"), "{}", same.text());
    let changed = max_age(&browser.post("/account", &change(ALICE_PASSWORD, new))).unwrap();
    assert!((2_591_900..=left).contains(&changed), "{changed}");
}

#[test]
fn password_managers_find_where_a_password_is_changed() {
    let gatepost = Gatepost::start();
    let answer = gatepost.get("/.well-known/change-password");
    assert_eq!((answer.status, answer.location()), (303, "/account#password"));
    let page = signed_in(&gatepost).get("/account").text();
    assert!(page.contains("name=\"username\" value=\"alice\" autocomplete=\"username\" hidden readonly"), "{page}");
}
