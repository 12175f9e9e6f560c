//! What the operator watches: `/metrics` on the admin listener, well-formed by Prometheus' rules,
//! true, and silent about what requests brought; and lines of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{authorize_path, basic, code, redeem, signed_in, text};
use crate::support::gatepost::{ALICE_PASSWORD, CONF1_SECRET, Gatepost, RP1, document};
use crate::support::http::{Answer, ask_alone as ask, free_address};
use crate::support::jwt::published_keys;
use crate::support::offline::client;
use crate::support::secrets;
use crate::support::waiting::{SOON, await_that};

/// Serves with an admin listener, of which this is the address.
fn start() -> (Gatepost, String) {
    let address = free_address();
    let settings = [("GATEPOST_ADMIN_LISTEN", &*address)];
    let gatepost = Gatepost::start_with(&document(), &settings);
    (gatepost, address)
}

/// Every sample by its name and labels, after checking the text by the rules of the format (version
/// 0.0.4).
fn scrape(address: &str) -> BTreeMap<String, f64> {
    let (head, text) = ask(address, "GET /metrics");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    head.assert_says("text/plain; version=0.0.4; charset=utf-8");
    assert!(text.ends_with('\n'));
    let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
    let mut family = (String::new(), String::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').unwrap();
            assert!(families.insert(name.to_owned()), "{name} comes twice");
            assert!(words.ends_with('.'), "{line}");
            family = (name.to_owned(), String::new());
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, family.0, "help and type belong together");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            family.1 = kind.to_owned();
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let suffix = name.strip_prefix(&family.0);
            let suffix = suffix.unwrap_or_else(|| panic!("{line} is not of {family:?}"));
            let allowed = match family.1.as_str() {
                "histogram" => &["_bucket", "_sum", "_count"][..],
                _ => &[""],
            };
            assert!(allowed.contains(&suffix), "{line}");
            let value: f64 = value.parse().unwrap();
            let earlier = samples.insert(series.to_owned(), value);
            assert!(earlier.is_none(), "{series} comes twice");
        }
    }
    samples
}

fn requests(samples: &BTreeMap<String, f64>, endpoint: &str, status: u16) -> f64 {
    let series =
        format!("gatepost_http_requests_total{{endpoint=\"{endpoint}\",status=\"{status}\"}}");
    samples.get(&series).copied().unwrap_or_default()
}

/// The samples of a family, by their names and labels.
fn of_family<'a>(samples: &'a BTreeMap<String, f64>, family: &str) -> Vec<(&'a str, f64)> {
    let all = samples
        .iter()
        .map(|(series, value)| (series.as_str(), *value));
    all.filter(|(series, _)| series.starts_with(family))
        .collect()
}

fn client_credentials(gatepost: &Gatepost, secret: &str) -> Answer {
    let authorization = basic("conf1", secret);
    let form = [("grant_type", "client_credentials")];
    gatepost.post(
        "/connect/token",
        &[("Authorization", &authorization)],
        &form,
    )
}

#[test]
fn what_was_answered_is_counted_once() {
    let (gatepost, address) = start();
    let before = scrape(&address);
    assert_eq!(requests(&before, "token", 200), 0.0);
    for _ in 0..3 {
        assert_eq!(client_credentials(&gatepost, CONF1_SECRET).status, 200);
    }
    client_credentials(&gatepost, "wrong").assert_refused(401, "invalid_client", "wrong secret");
    let hostile = "a\"} 1\nforged";
    let form = [("grant_type", hostile), ("client_id", hostile)];
    gatepost.post("/connect/token", &[], &form);
    assert_eq!(gatepost.get("/nowhere").status, 404);
    let mut browser = signed_in(&gatepost);
    let code = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    assert_eq!(redeem(&gatepost, &code).status, 200);
    let after = scrape(&address);
    assert_eq!(requests(&after, "token", 200), 4.0);
    assert_eq!(requests(&after, "token", 401), 1.0);
    assert_eq!(requests(&after, "none", 404), 1.0);
    assert!(requests(&after, "authorize", 303) >= 1.0);
    for (grant_type, count) in [("client_credentials", 3.0), ("authorization_code", 1.0)] {
        let series = format!("gatepost_token_responses_total{{grant_type=\"{grant_type}\"}}");
        assert_eq!(after[&series], count, "{series}");
    }
    let failures = of_family(&after, "gatepost_failures_total");
    let failures: f64 = failures.iter().map(|(_, count)| count).sum();
    assert!(failures >= 3.0, "{after:?}");
    // A label is what a request brought.
    assert!(!after.keys().any(|series| series.contains("forged")));
    let histogram =
        |suffix: &str| after[&format!("gatepost_http_request_duration_seconds{suffix}")];
    let answered = [200, 400, 401].map(|status| requests(&after, "token", status));
    let answered: f64 = answered.iter().sum();
    assert_eq!(histogram("_count{endpoint=\"token\"}"), answered);
    let slowest = histogram("_bucket{endpoint=\"token\",le=\"+Inf\"}");
    assert_eq!(slowest, answered);
}

#[test]
fn the_house_is_told_of_as_it_stands() {
    let (gatepost, address) = start();
    client_credentials(&gatepost, CONF1_SECRET);
    let samples = scrape(&address);
    assert_eq!(samples["gatepost_ready"], 1.0);
    let version = env!("CARGO_PKG_VERSION");
    let build = format!("gatepost_build_info{{version=\"{version}\"}}");
    assert_eq!(samples[&build], 1.0);
    for table in ["grants", "sessions", "audit_events"] {
        let partitions = samples[&format!("gatepost_partitions{{table=\"{table}\"}}")];
        assert!((3.0..=4.0).contains(&partitions), "{table}: {partitions}");
    }
    assert!(samples["gatepost_table_bytes{table=\"clients\"}"] >= 8_192.0);
    assert!(!samples.contains_key("gatepost_partitions{table=\"clients\"}"));
    let published = published_keys(&gatepost).len();
    let keys = of_family(&samples, "gatepost_signing_key_age");
    assert_eq!(keys.len(), published, "{keys:?}");
    let connections = samples["gatepost_database_connections"];
    assert!(connections >= 1.0 && connections <= samples["gatepost_database_connections_max"]);
    assert!(samples["gatepost_hashing_places_free"] >= 1.0);
    assert!(samples["gatepost_outbound_places_free"] >= 1.0);
    assert!(samples["gatepost_registry_clients_cached"] >= 1.0);
    assert!(samples["process_resident_memory_bytes"] > 1_000_000.0);
    assert!(samples["process_open_fds"] > 5.0);
}

#[test]
fn metrics_are_the_operators_alone_and_go_on_without_the_database() {
    let (mut gatepost, address) = start();
    let elsewhere = gatepost.get("/metrics");
    elsewhere.assert_status_for("not on the main listener", 404);
    let (head, _) = ask(&address, "POST /metrics");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    gatepost.stop();
    let url = "postgresql://nobody@127.0.0.1:1/nowhere";
    gatepost.set("GATEPOST_DATABASE_URL", url);
    gatepost.launch();
    await_that("it listens", SOON, || TcpStream::connect(&address).is_ok());
    let samples = scrape(&address);
    assert_eq!(samples["gatepost_ready"], 0.0);
    assert!(of_family(&samples, "gatepost_table_bytes").is_empty());
    assert!(ask(&address, "GET /readyz").0.starts_with("HTTP/1.1 503 "));
}

#[test]
fn a_request_is_one_line_of_json_with_its_fields() {
    let (mut gatepost, _) = start();
    gatepost.stop();
    gatepost.set("GATEPOST_LOG_FORMAT", "json");
    gatepost.serve();
    let form = [("grant_type", "client_credentials"), ("scope", "nope")];
    let refused = gatepost.token("conf1", &form);
    refused.assert_refused(400, "invalid_scope", "unknown scope");
    let log = gatepost.log();
    let lines = log.lines().map(serde_json::from_str::<Value>);
    let mut lines = lines.filter_map(Result::ok);
    let line = lines.find(|line| line["path"] == "/connect/token").unwrap();
    assert_eq!(line["status"], 400);
    assert_eq!(line["method"], "POST");
    assert_eq!(line["client_id"], "conf1");
    assert_eq!(text(&line, "id").len(), 16, "{line}");
    assert!(line["ms"].is_u64(), "{line}");
    assert!(text(&line, "reason").starts_with("GP"), "{line}");
}

/// The last line of the log about weak settings, once there are `count` of them.
fn weak_line(gatepost: &Gatepost, count: usize) -> String {
    let lines = || -> Vec<String> {
        let log = gatepost.log();
        let lines = log.lines().filter(|line| line.contains("weak settings"));
        lines.map(str::to_owned).collect()
    };
    await_that("the weak settings", SOON, || {
        let lines = lines();
        assert!(lines.len() <= count, "{lines:?}");
        lines.len() == count
    });
    let last = lines().pop().unwrap_or_default();
    let told = last.split_once("WARN  ");
    told.map(|(_, told)| told.to_owned()).unwrap_or_default()
}

#[test]
fn weak_settings_are_named_with_their_clients_at_start_and_when_that_changes() {
    let mut strong = document();
    for client_id in ["conf1", "conf2"] {
        client(&mut strong, client_id)["require_pkce"] = json!(true);
    }
    // The FAPI profile wants refresh tokens that are reused, and says PKCE by itself.
    strong["clients"].as_array_mut().unwrap().push(json!({
        "client_id": "bank", "profile": "fapi2", "redirect_uris": ["https://bank.example/cb"], "scope": "openid offline_access",
        "grant_types": ["authorization_code", "refresh_token"], "jwks_uri": "https://bank.example/jwks",
        "refresh_token_usage": "reuse",
    }));
    let mut gatepost = Gatepost::start_with(&strong, &[]);
    let uri = json!(["https://weak.example/cb"]);
    let mut clients = vec![
        json!({"client_id": "spa", "token_endpoint_auth_method": "none", "redirect_uris": uri, "scope": "openid",
               "response_types": ["id_token token"], "allow_access_tokens_via_browser": true}),
        json!({"client_id": "hybrid", "redirect_uris": uri, "response_types": ["code id_token"], "scope": "openid",
               "secrets": [{"value": CONF1_SECRET}]}),
        json!({"client_id": "relic", "redirect_uris": uri, "scope": "openid", "secrets": [{"value": CONF1_SECRET}],
               "grant_types": ["authorization_code", "password"], "require_pkce": false, "allow_plain_pkce": true}),
        json!({"client_id": "gone", "redirect_uris": uri, "scope": "openid", "secrets": [{"value": CONF1_SECRET}],
               "require_pkce": false, "enabled": false}),
    ];
    clients.extend((10..23).map(|number| {
        json!({"client_id": format!("re{number}"), "redirect_uris": uri, "scope": "openid offline_access",
               "secrets": [{"value": CONF1_SECRET}], "grant_types": ["authorization_code", "refresh_token"],
               "refresh_token_usage": "reuse"})
    }));
    weak_line(&gatepost, 0);
    gatepost.apply(&json!({"clients": clients}));
    let expected = "weak settings in use: tokens through the browser (hybrid, spa); password grant (relic); \
                    PKCE or nonce (hybrid, re10, re11, re12, re13, re14, re15, re16, re17, re18 and 4 more); \
                    neither PKCE nor nonce (relic); plain PKCE (relic); refresh tokens that are reused (re10, re11, re12, re13, re14, \
                    re15, re16, re17, re18, re19 and 3 more)";
    assert_eq!(weak_line(&gatepost, 1), expected);
    gatepost.apply(&json!({"identity_scopes": [{"name": "other", "claims": ["role"]}]}));
    assert_eq!(weak_line(&gatepost, 1), expected, "said once");
    gatepost.stop();
    gatepost.set("GATEPOST_COOKIE_SAMESITE", "none");
    gatepost.serve();
    let expected = format!("{expected}; cookies with SameSite=None");
    assert_eq!(weak_line(&gatepost, 1), expected, "and at every start");
    for client in &mut clients {
        client["enabled"] = false.into();
    }
    gatepost.apply(&json!({"clients": clients}));
    let expected = "weak settings in use: cookies with SameSite=None";
    assert_eq!(weak_line(&gatepost, 2), expected);
    gatepost.stop();
    gatepost.unset("GATEPOST_COOKIE_SAMESITE");
    gatepost.serve();
    // It has looked at the registration anew by then.
    gatepost.apply(&json!({}));
    weak_line(&gatepost, 0);
}

#[test]
fn a_log_that_held_a_secret_would_fail_its_test() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let code = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    let tokens = redeem(&gatepost, &code).json();
    let cookies = browser.cookies.values().map(String::as_str);
    let cookies: Vec<&str> = cookies.filter(|value| value.len() > 20).collect();
    assert!(!cookies.is_empty());
    let others = [
        &*code,
        text(&tokens, "access_token"),
        CONF1_SECRET,
        ALICE_PASSWORD,
    ];
    for secret in others.into_iter().chain(cookies) {
        let log = format!("INFO  ready\nINFO  path=/ detail=\"{secret}\"\n");
        assert_eq!(secrets::leak_in(&log), log.lines().nth(1));
    }
    gatepost.log().assert_says("path=/connect/token");
    assert_eq!(secrets::leak_in(&gatepost.log()), None);
}
