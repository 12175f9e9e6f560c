//! Response types, response modes, success and every error: what arrives where.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::flow::{authorize_path, changed, sign_in, signed_in, with_clients};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};

/// Every type, with the scopes that fit it and what comes back.
const TYPES: [(&str, &str, &[&str]); 7] = [
    ("code", "openid profile orders.read", &["code"]),
    ("id_token", "openid profile", &["id_token"]),
    ("token", "orders.read", &["access_token"]),
    (
        "id_token token",
        "openid profile orders.read",
        &["id_token", "access_token"],
    ),
    (
        "code id_token",
        "openid profile orders.read",
        &["code", "id_token"],
    ),
    (
        "code token",
        "openid profile orders.read",
        &["code", "access_token"],
    ),
    (
        "code id_token token",
        "openid profile orders.read",
        &["code", "id_token", "access_token"],
    ),
];
/// `""` leaves the mode to the default.
const MODES: [&str; 4] = ["", "query", "fragment", "form_post"];
/// What some encoding on the way would change, break or give a meaning to.
const STATE: &str = "a&code=evil#x?%25 \u{e9} \u{1f600}+\"'<>`\\;:@/[]{}|^~-_.*!$(),=%\t\r\n\u{7f}\u{202e}</script>";

fn registered() -> Value {
    let all = json!({
        "response_types": TYPES.map(|(response_type, _, _)| response_type),
        "grant_types": ["authorization_code", "implicit", "refresh_token"],
        "allow_access_tokens_via_browser": true, "require_consent": false, "require_pkce": true,
        "scope": "openid profile email roles orders.read stock.read offline_access",
    });
    let with = |name: &str, value: Value| {
        let mut client = all.clone();
        client[name] = value;
        client
    };
    let mut document = with_clients(
        document(),
        &[
            ("all", all.clone()),
            ("asks", with("require_consent", json!(true))),
            ("posts", with("default_response_mode", json!("form_post"))),
            (
                "quiet",
                with("authorization_response_iss_on_error", json!(false)),
            ),
            ("queries", with("default_response_mode", json!("query"))),
        ],
    );
    document["tenants"] = json!([{"name": "acme", "display_name": "ACME"}, {"name": "other", "display_name": "Other"}]);
    document
}

fn type_named(response_type: &str) -> (&'static str, &'static str, &'static [&'static str]) {
    TYPES
        .into_iter()
        .find(|(name, _, _)| *name == response_type)
        .unwrap()
}

fn request(client_id: &str, response_type: &str, mode: &str, changes: &[(&str, &str)]) -> String {
    let (_, scope, _) = type_named(response_type);
    let usual = [
        ("response_type", response_type),
        ("scope", scope),
        ("response_mode", mode),
        ("state", STATE),
        ("prompt", "none"),
    ];
    authorize_path(client_id, RP1, &changed(&usual, changes))
}

/// Where the answer must arrive; none where that mode may not carry that type.
fn place(response_type: &str, mode: &str) -> Option<&'static str> {
    match (mode, response_type == "code") {
        ("", true) | ("query", true) => Some("query"),
        ("query", false) => None,
        ("form_post", _) => Some("form_post"),
        _ => Some("fragment"),
    }
}

/// Names of a successful answer.
fn expected_names(scope: &str, brings: &[&'static str]) -> BTreeSet<&'static str> {
    let mut names: BTreeSet<&str> = brings.iter().copied().chain(["iss", "state"]).collect();
    if names.contains("access_token") {
        names.extend(["token_type", "expires_in", "scope"]);
    }
    if scope.contains("openid") {
        names.insert("session_state");
    }
    names
}

fn assert_success(
    gatepost: &Gatepost,
    answer: &Answer,
    (went, scope, brings): (&str, &str, &[&'static str]),
    case: &str,
) {
    let (arrived, got) = answer.response_to(RP1);
    assert_eq!(arrived, went, "{case}: {got:?}");
    assert_eq!(
        got.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        expected_names(scope, brings),
        "{case}"
    );
    assert_eq!(got["state"].as_str(), STATE, "{case}");
    assert_eq!(&got["iss"], &gatepost.base_url, "{case}");
    if let Some(token_type) = got.get("token_type") {
        assert_eq!(token_type.as_str(), "Bearer", "{case}");
        assert_eq!(got["expires_in"].as_str(), "3600", "{case}");
        assert_eq!(got["scope"], scope, "{case}");
    }
}

fn assert_error(gatepost: &Gatepost, answer: &Answer, went: &str, error: &str, case: &str) {
    let (arrived, got) = answer.response_to(RP1);
    assert_eq!(
        (arrived, got.get("error").map(String::as_str)),
        (went, Some(error)),
        "{case}: {got:?}"
    );
    let names: Vec<&str> = got.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["error", "error_description", "iss", "state"],
        "{case}"
    );
    assert_eq!(got["state"].as_str(), STATE, "{case}");
    assert_eq!(&got["iss"], &gatepost.base_url, "{case}");
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    assert!(!got["error_description"].is_empty(), "{case}");
    assert!(got["error_description"].bytes().all(plain), "{case}");
}

#[test]
fn every_type_answers_in_every_mode_that_may_carry_it() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (response_type, scope, brings) in TYPES {
        for mode in MODES {
            let answer = browser.get(&request("all", response_type, mode, &[]));
            let case = format!("{response_type} {mode:?}");
            match place(response_type, mode) {
                Some(went) => assert_success(&gatepost, &answer, (went, scope, brings), &case),
                None => assert_error(&gatepost, &answer, "fragment", "invalid_request", &case),
            }
            // A state that was not sent does not come back.
            let answer = browser.get(&request("all", response_type, mode, &[("state", "")]));
            assert!(!answer.response_to(RP1).1.contains_key("state"), "{case}");
        }
    }
    // A registered query stays in front.
    let uri = "https://rp1.example/other?a=b";
    for (mode, went) in [
        ("query", "query"),
        ("fragment", "fragment"),
        ("form_post", "form_post"),
    ] {
        let path = request("all", "code", mode, &[("redirect_uri", uri)]);
        assert_eq!(
            browser
                .get(&path.replace("redirect_uri=https%3A%2F%2Frp1.example%2Fcb&", ""))
                .response_to(uri)
                .0,
            went
        );
    }
}

#[test]
fn words_come_in_any_order_and_a_client_gets_its_own_types_alone() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (sent, same_as) in [
        ("token id_token", "id_token token"),
        ("id_token code", "code id_token"),
        ("token code", "code token"),
        ("token code id_token", "code id_token token"),
        ("id_token token code", "code id_token token"),
        ("id_token code token", "code id_token token"),
        ("code token id_token", "code id_token token"),
        ("token id_token code", "code id_token token"),
    ] {
        let (_, scope, brings) = type_named(same_as);
        let answer = browser.get(&request("all", same_as, "", &[("response_type", sent)]));
        assert_success(&gatepost, &answer, ("fragment", scope, brings), sent);
    }
    for (response_type, _, _) in TYPES.into_iter().skip(1) {
        for mode in ["", "fragment", "form_post"] {
            let answer = browser.get(&request("conf1", response_type, mode, &[]));
            assert_error(
                &gatepost,
                &answer,
                place(response_type, mode).unwrap(),
                "unauthorized_client",
                response_type,
            );
        }
    }
    for unknown in [
        "none",
        "token token",
        "code  token",
        "id_token,token",
        "Token",
        "token none",
        "device_code",
    ] {
        let went = if unknown.split(' ').any(|word| word == "token") {
            "fragment"
        } else {
            "query"
        };
        let answer = browser.get(&request("all", "code", "", &[("response_type", unknown)]));
        assert_error(
            &gatepost,
            &answer,
            went,
            "unsupported_response_type",
            unknown,
        );
    }
}

#[test]
fn a_clients_own_default_mode_counts_where_it_may_carry_the_type() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (response_type, scope, brings) in TYPES {
        let answer = browser.get(&request("posts", response_type, "", &[]));
        assert_success(
            &gatepost,
            &answer,
            ("form_post", scope, brings),
            response_type,
        );
        let answer = browser.get(&request("posts", response_type, "", &[("scope", "nope")]));
        assert_error(
            &gatepost,
            &answer,
            "form_post",
            "invalid_scope",
            response_type,
        );
        let answer = browser.get(&request("queries", response_type, "", &[]));
        assert_success(
            &gatepost,
            &answer,
            (place(response_type, "").unwrap(), scope, brings),
            response_type,
        );
        let answer = browser.get(&request("posts", response_type, "fragment", &[]));
        assert_success(
            &gatepost,
            &answer,
            ("fragment", scope, brings),
            response_type,
        );
    }
}

/// Which error a change of the request means for a type; an empty one is a success.
type Expected = fn(&str) -> &'static str;

fn has(response_type: &str, word: &str) -> bool {
    response_type.split(' ').any(|other| other == word)
}

fn refusals() -> Vec<(Vec<(&'static str, &'static str)>, Expected)> {
    let acr = r#"{"id_token":{"acr":{"essential":true,"value":"9"}}}"#;
    let sub = r#"{"id_token":{"sub":{"value":"somebody-else"}}}"#;
    vec![
        (vec![("scope", "")], |_| "invalid_scope"),
        (vec![("scope", "openid nope")], |_| "invalid_scope"),
        (vec![("scope", "openid address")], |_| "invalid_scope"),
        (vec![("scope", "profile")], |_| "invalid_scope"),
        (vec![("scope", "openid profile")], |kind| {
            if kind == "token" { "invalid_scope" } else { "" }
        }),
        (vec![("scope", "orders.read")], |kind| {
            if kind == "token" || kind == "code" {
                ""
            } else {
                "invalid_scope"
            }
        }),
        (vec![("scope", "openid orders.read")], |kind| match kind {
            "token" | "id_token" => "invalid_scope",
            _ => "",
        }),
        (vec![("nonce", "")], |kind| {
            if has(kind, "id_token") {
                "invalid_request"
            } else {
                ""
            }
        }),
        (
            vec![("code_challenge", ""), ("code_challenge_method", "")],
            |kind| {
                if has(kind, "code") {
                    "invalid_request"
                } else {
                    ""
                }
            },
        ),
        (vec![("prompt", "bogus")], |_| "invalid_request"),
        (vec![("prompt", "none login")], |_| "invalid_request"),
        (vec![("max_age", "-1")], |_| "invalid_request"),
        (vec![("max_age", "0")], |_| "login_required"),
        (vec![("claims", "[]")], |_| "invalid_request"),
        (vec![("claims", acr)], |kind| {
            if kind == "token" {
                ""
            } else {
                "unmet_authentication_requirements"
            }
        }),
        (vec![("claims", sub)], |kind| {
            if kind == "token" {
                ""
            } else {
                "login_required"
            }
        }),
        (
            vec![("acr_values", "tenant:nowhere")],
            |_| "invalid_request",
        ),
        (
            vec![("acr_values", "tenant:acme tenant:other")],
            |_| "invalid_request",
        ),
        (vec![("acr_values", "tenant:acme")], |_| "login_required"),
        (vec![("acr_values", "idp:nowhere")], |_| ""),
        (vec![("id_token_hint", "x")], |_| "invalid_request"),
        (
            vec![("resource", "https://nowhere.example")],
            |_| "invalid_target",
        ),
        (
            vec![("resource", "https://stock.example")],
            |_| "invalid_target",
        ),
        (vec![("request", "x")], |_| "request_not_supported"),
        (
            vec![("request_uri", "https://rp1.example/r")],
            |_| "request_uri_not_supported",
        ),
        (
            vec![("scope", "nope"), ("prompt", "login")],
            |_| "invalid_scope",
        ),
    ]
}

#[test]
fn every_error_travels_as_the_success_would() {
    let gatepost = Gatepost::start_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (response_type, _, _) in TYPES {
        for (changes, expected) in refusals() {
            for mode in MODES {
                let case = format!("{response_type} {mode:?} {changes:?}");
                let answer = browser.get(&request("all", response_type, mode, &changes));
                match (expected(response_type), place(response_type, mode)) {
                    ("", Some(went)) => {
                        let (arrived, got) = answer.response_to(RP1);
                        assert_eq!((arrived, got.get("error")), (went, None), "{case}");
                    }
                    (error, Some(went)) => assert_error(&gatepost, &answer, went, error, &case),
                    // Whichever of the two faults is told, nothing lands in a query.
                    (error, None) => {
                        let told = answer.fragment()["error"].clone();
                        assert!(told == error || told == "invalid_request", "{case}: {told}");
                    }
                }
            }
        }
        for mode in ["", "fragment", "form_post"] {
            let went = place(response_type, mode).unwrap();
            let case = format!("{response_type} {mode:?}");
            let nobody = gatepost.get(&request("all", response_type, mode, &[]));
            assert_error(&gatepost, &nobody, went, "login_required", &case);
            let unasked = browser.get(&request("asks", response_type, mode, &[]));
            assert_error(&gatepost, &unasked, went, "consent_required", &case);
            let overlong = browser.get(&request(
                "all",
                response_type,
                mode,
                &[("state", &"s".repeat(4_097))],
            ));
            let (arrived, got) = overlong.response_to(RP1);
            assert_eq!(arrived, went, "{case}");
            assert_eq!(got["error"].as_str(), "invalid_request", "{case}");
            assert_eq!(got.get("state"), None, "{case}");
            // An unregistered URI is never answered, whatever mode was asked for.
            let path = request("all", response_type, mode, &[])
                .replace("rp1.example%2Fcb", "rp1.example%2Fcb2");
            browser.get(&path).assert_error_page(400, "GP1105", &case);
        }
    }
}

/// The consent page, reached by signing in.
fn consent_page(gatepost: &Gatepost, response_type: &str, mode: &str) -> (Browser, Answer) {
    let mut browser = gatepost.browser();
    let login = browser.visit(&request("asks", response_type, mode, &[("prompt", "")]));
    let answer = sign_in(&mut browser, &login, "alice", ALICE_PASSWORD);
    let consent = browser.follow(answer);
    consent.assert_says("asks for access");
    (browser, consent)
}

#[test]
fn what_the_person_decides_arrives_in_the_same_place() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    for (response_type, scope, brings) in TYPES {
        for mode in ["", "form_post"] {
            let went = place(response_type, mode).unwrap();
            let case = format!("{response_type} {mode:?}");
            let (mut browser, consent) = consent_page(&gatepost, response_type, mode);
            let optional: Vec<&str> = scope.split(' ').filter(|name| *name != "openid").collect();
            let denied = browser.decide(&consent, "deny", &optional, false);
            assert_error(&gatepost, &denied, went, "access_denied", &case);
            let allowed = browser.decide(&consent, "allow", &optional, false);
            assert_success(&gatepost, &allowed, (went, scope, brings), &case);
            let mut other = gatepost.browser();
            let page = other.visit(&request("all", response_type, mode, &[("prompt", "")]));
            let cancelled = other.submit(&page, &[("decision", "cancel")]);
            assert_error(&gatepost, &cancelled, went, "access_denied", &case);
        }
    }
}

#[test]
fn what_the_person_unticks_is_not_in_the_browsers_tokens() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let ticked = |response_type: &str, scopes: &[&str]| {
        let (mut browser, consent) = consent_page(&gatepost, response_type, "");
        browser.decide(&consent, "allow", scopes, false).fragment()
    };
    let narrowed: BTreeMap<String, String> = ticked("id_token token", &["profile"]);
    assert_eq!(narrowed["scope"], "openid profile");
    let (_, claims) = crate::support::flow::decode_jwt(&narrowed["access_token"]);
    assert_eq!(claims["scope"], "openid profile");
    assert_eq!(
        claims["aud"],
        json!(format!("{}/resources", gatepost.base_url))
    );
    let (_, claims) = crate::support::flow::decode_jwt(&ticked("id_token", &[])["id_token"]);
    assert!(claims.get("name").is_none(), "{claims}");
    // Nothing left to grant is a denial.
    assert_eq!(ticked("token", &[])["error"], "access_denied");
}

#[test]
fn a_client_that_takes_iss_for_something_else_gets_none_with_errors() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for mode in ["query", "fragment", "form_post"] {
        let ask =
            |changes: (&'static str, &'static str)| request("quiet", "code", mode, &[changes]);
        let page = browser.visit(&ask(("prompt", "consent")));
        for (refused, answer) in [
            ("at once", browser.get(&ask(("scope", "nope")))),
            ("in the end", gatepost.get(&ask(("prompt", "none")))),
            ("by the person", browser.decide(&page, "deny", &[], false)),
        ] {
            let (_, got) = answer.response_to(RP1);
            let names: Vec<&str> = got.keys().map(String::as_str).collect();
            assert_eq!(
                names,
                ["error", "error_description", "state"],
                "{mode} {refused}"
            );
        }
        let (_, got) = browser.get(&ask(("prompt", "none"))).response_to(RP1);
        assert!(got.contains_key("code"), "{mode}");
        assert_eq!(&got["iss"], &gatepost.base_url, "{mode}");
    }
}
