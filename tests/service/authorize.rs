//! Authorization requests that are fine, and where their answers arrive.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, decode_jwt, issued, redeem, redeem_as, sign_in, signed_in, text,
};
use crate::support::gatepost::{ALICE_PASSWORD, CONF1_SECRET, Gatepost, RP1, RPS, document};
use crate::support::http::{Answer, encode};

/// Every character that has a meaning in some encoding on the way.
const NASTY: &str = "a&code=evil#x%25 é 😀+\"'<>`\\;:@/?[]{}|^~-_.*!$(),=%";

fn nasty(length: usize) -> String {
    NASTY.chars().cycle().take(length).collect()
}

fn path(changes: &[(&str, &str)]) -> String {
    authorize_path("conf1", RP1, changes)
}

/// The names of an answer's parameters, with spaces between them.
fn names(parameters: &BTreeMap<String, String>) -> String {
    let names: Vec<&str> = parameters.keys().map(String::as_str).collect();
    names.join(" ")
}

/// The parameters of an answer, and that they arrive in one place only.
fn parameters(answer: &Answer, mode: &str) -> BTreeMap<String, String> {
    let (went, parameters) = answer.response_to(RP1);
    assert_eq!(went, mode);
    let is_either = parameters.contains_key("code") != parameters.contains_key("error");
    assert!(is_either, "{parameters:?}");
    parameters
}

#[test]
fn answers_arrive_where_the_mode_says_with_the_state_byte_for_byte() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let states = [nasty(2_000), "~".repeat(4_096), "%".repeat(4_096)];
    let states = states.iter().map(String::as_str).chain([" ", "+"]);
    let states: Vec<&str> = states.collect();
    for mode in ["query", "fragment", "form_post"] {
        for state in &states {
            let sent = [("response_mode", mode), ("state", state)];
            let answer = browser.get(&path(&sent));
            let got = parameters(&answer, mode);
            assert_eq!(names(&got), "code iss session_state state", "{mode}");
            assert_eq!(&got["state"], state, "{mode}");
            assert_eq!(&got["iss"], &gatepost.base_url, "{mode}");
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            assert!(got["code"].len() >= 43, "{}", got["code"]);
            assert!(got["code"].bytes().all(allowed), "{}", got["code"]);

            let refused = [&sent[..], &[("scope", "openid nope")]].concat();
            let got = parameters(&browser.get(&path(&refused)), mode);
            let expected = "error error_description iss state";
            assert_eq!(names(&got), expected, "{mode}");
            assert_eq!(got["error"].as_str(), "invalid_scope", "{mode}");
            assert_eq!(&got["state"], state, "{mode}");
            assert_eq!(got["iss"], gatepost.base_url);
        }
    }
    // By default a code comes in the query; a state that was not sent does not come back.
    let answer = browser.get(&path(&[("state", "")]));
    let got = parameters(&answer, "query");
    assert_eq!(names(&got), "code iss session_state");
}

#[test]
fn a_request_survives_the_pages_whole() {
    let gatepost = Gatepost::shared();
    let (state, nonce) = (nasty(2_000), nasty(500));
    let mut browser = gatepost.browser();
    let asked = [
        ("state", &*state),
        ("nonce", &nonce),
        ("prompt", "login consent"),
    ];
    let page = browser.visit(&path(&asked));
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let consent = browser.follow(answer);
    consent.assert_says("asks for access");
    let answer = browser.decide(&consent, "allow", &["profile"], false);
    let got = parameters(&answer, "query");
    assert_eq!(got["state"], state);
    let tokens = issued(&redeem(&gatepost, &got["code"]));
    let (_, claims) = decode_jwt(text(&tokens, "id_token"));
    assert_eq!(claims["nonce"], nonce.as_str());
}

#[test]
fn what_does_not_fit_into_a_pages_address_is_refused_at_once() {
    let gatepost = Gatepost::shared();
    let body = encode(&[
        ("client_id", "conf1"),
        ("redirect_uri", RP1),
        ("response_type", "code"),
        ("scope", "openid"),
        ("state", &"é".repeat(4_096)),
    ]);
    let mut connection = gatepost.connect();
    let answer = connection.post_raw("/connect/authorize", &[], body.as_bytes());
    let got = answer.query();
    assert_eq!(got["error"].as_str(), "invalid_request");
    assert_eq!(got["state"].chars().count(), 4_096);
}

#[test]
fn order_and_unknown_parameters_do_not_matter() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let odd = [
        ("display", "popup"),
        ("claims_locales", "se"),
        ("ui_locales", "se"),
        ("login_hint", "nobody@example"),
        ("acr_values", "1 2 urn:x"),
        ("unknown", "1"),
        ("Client_id", "other"),
        ("resource", ""),
    ];
    let asked = path(&odd);
    code(&mut browser, &format!("{asked}&unknown=2&&=&x"));
    let (_, query) = asked.split_once('?').unwrap();
    let reversed = query.split('&').rev().collect::<Vec<_>>().join("&");
    code(&mut browser, &format!("/connect/authorize?{reversed}"));
    let twice = [("scope", "profile  openid openid")];
    code(&mut browser, &path(&twice));
}

#[test]
fn a_post_is_answered_as_a_get_is_after_one_more_step() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let path = authorize_path("conf1", RP1, &[("state", "posted")]);
    let (_, form) = path.split_once('?').unwrap();
    let foreign = [
        ("Origin", "https://rp1.example"),
        ("Sec-Fetch-Site", "cross-site"),
    ];
    let types = "application/x-www-form-urlencoded
                 application/x-www-form-urlencoded;charset=UTF-8";
    for content_type in types.split_whitespace() {
        let headers = [foreign[0], foreign[1], ("Content-Type", content_type)];
        // As browsers post from elsewhere: without Lax cookies. What the query says does not count.
        let address = "/connect/authorize?client_id=conf2&state=other";
        let answer = gatepost.send("POST", address, &headers, form.as_bytes());
        answer.assert_leads_to("/login?r=");
        let answer = browser.visit(answer.location());
        assert_eq!(answer.query()["state"], "posted");
        assert!(answer.query().contains_key("code"));
    }
    let silent = authorize_path("conf1", RP1, &[("prompt", "none")]);
    let (_, form) = silent.split_once('?').unwrap();
    let mut connection = gatepost.connect();
    let answer = connection.post_raw("/connect/authorize", &[], form.as_bytes());
    let nobody = gatepost.browser().visit(answer.location());
    nobody.assert_query("error", "login_required");
    browser.visit(answer.location()).assert_carries("code");
}

#[test]
fn other_methods_and_types_are_refused() {
    let gatepost = Gatepost::shared();
    let path = authorize_path("conf1", RP1, &[]);
    for method in ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let answer = gatepost.send(method, &path, &[], b"");
        answer.assert_status_for(method, 405);
        answer.assert_header_for(method, "allow", "GET, POST");
        assert_eq!(answer.header("location"), None);
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let types = "application/json|text/plain|multipart/form-data; boundary=x|";
    for content_type in types.split('|') {
        let (_, form) = path.split_once('?').unwrap();
        let headers = [("Content-Type", content_type)];
        let answer = gatepost.send("POST", "/connect/authorize", &headers, form.as_bytes());
        answer.assert_error_page(415, "GP1005", content_type);
    }
    let foreign = gatepost.send("GET", &path, &[("Origin", "https://rp1.example")], b"");
    assert_eq!(foreign.header("access-control-allow-origin"), None);
}

#[test]
fn the_query_of_a_registered_uri_stays_as_it_is() {
    let mut registered = document();
    let odd = [
        "https://rp1.example/other?a=b",
        "https://rp1.example/bare?",
        "https://rp1.example/x?code=1&q=a+b%20c",
    ];
    registered["clients"][0]["redirect_uris"] = json!([RP1, odd[0], odd[1], odd[2]]);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    for (uri, expected) in [
        (odd[0], "https://rp1.example/other?a=b&code=gpc_"),
        (odd[1], "https://rp1.example/bare?code=gpc_"),
        (odd[2], "https://rp1.example/x?code=1&q=a+b%20c&code=gpc_"),
    ] {
        let answer = browser.get(&authorize_path("conf1", uri, &[]));
        answer.assert_leads_to(expected);
        let by = |mode| authorize_path("conf1", uri, &[("response_mode", mode)]);
        let answer = browser.get(&by("fragment"));
        answer.assert_leads_to(&format!("{uri}#code=gpc_"));
        let answer = browser.get(&by("form_post"));
        assert_eq!(answer.action(), uri);
    }
    let answer = browser.get(&authorize_path("conf1", odd[0], &[]));
    let conf1 = ("conf1", CONF1_SECRET);
    redeem_as(&gatepost, conf1, odd[0], &answer.query()["code"]).assert_status(200);
}

#[test]
fn a_form_post_page_posts_to_the_registered_uri_and_nowhere_else() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let payload =
        "\"><script>alert(1)</script><form action=https://evil.example><input name='x' value=\"";
    let changes = [("response_mode", "form_post"), ("state", payload)];
    for scope in ["openid", "openid nope"] {
        let changes = [&changes[..], &[("scope", scope)]].concat();
        let answer = browser.get(&path(&changes));
        let text = answer.text();
        assert_eq!(text.matches("<form").count(), 1, "{text}");
        text.assert_says(&format!("<form method=\"post\" action=\"{RP1}\">"));
        assert_eq!(text.matches("<script").count(), 1, "{text}");
        assert_eq!(text.matches("</script>").count(), 1, "{text}");
        text.assert_says("<script src=\"/static/form-post.js");
        text.assert_says("<button");
        assert_eq!(answer.fields()["state"], payload);
        answer.assert_header("x-frame-options", "DENY");
        let policy = answer.header("content-security-policy").unwrap();
        policy.assert_says("frame-ancestors 'none'");
        answer.assert_header("referrer-policy", "origin");
    }
    // Only a client that renews silently awaits its answer in a frame, and only that client may.
    for scope in ["openid", "openid nope"] {
        let silent = [&changes[..], &[("scope", scope), ("prompt", "none")]].concat();
        let answer = browser.get(&authorize_path("conf1", RP1, &silent));
        assert_eq!(answer.header("x-frame-options"), None);
        let policy = answer.header("content-security-policy").unwrap();
        let frames = "frame-ancestors https://rp1.example";
        assert!(policy.ends_with(frames), "{policy}");
    }
}

#[test]
fn a_clients_default_mode_applies_unless_the_request_says_otherwise() {
    let mut registered = document();
    registered["clients"][0]["default_response_mode"] = json!("fragment");
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("pub1", RPS, &[]));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let usual = browser.get(&path(&[]));
    assert!(parameters(&usual, "fragment").contains_key("code"));
    let refused = browser.get(&authorize_path("conf1", RP1, &[("scope", "nope")]));
    assert_eq!(parameters(&refused, "fragment")["error"], "invalid_scope");
    let asked = browser.get(&authorize_path("conf1", RP1, &[("response_mode", "query")]));
    assert!(parameters(&asked, "query").contains_key("code"));
}
