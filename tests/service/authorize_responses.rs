//! Response types, response modes, success and every error: what arrives where.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::flow::{
    authorize_path, changed, decode_jwt, sign_in, signed_in, with_clients, with_members,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};
use crate::support::tables::rows_of;

const WIDE: &str = "openid profile orders.read";
/// Every type, with the scopes that fit it and what comes back.
const TYPES: [(&str, &str, &[&str]); 7] = [
    ("code", "openid profile orders.read", &["code"]),
    ("id_token", "openid profile", &["id_token"]),
    ("token", "orders.read", &["access_token"]),
    ("id_token token", WIDE, &["id_token", "access_token"]),
    ("code id_token", WIDE, &["code", "id_token"]),
    ("code token", WIDE, &["code", "access_token"]),
    (
        "code id_token token",
        WIDE,
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
    let with = |name: &str, value: Value| with_members(all.clone(), &json!({name: value}));
    let quiet = with("authorization_response_iss_on_error", json!(false));
    let clients = [
        ("all", all.clone()),
        ("asks", with("require_consent", json!(true))),
        ("posts", with("default_response_mode", json!("form_post"))),
        ("quiet", quiet),
        ("queries", with("default_response_mode", json!("query"))),
    ];
    let mut document = with_clients(document(), &clients);
    document["tenants"] = json!([{"name": "acme", "display_name": "ACME"}, {"name": "other", "display_name": "Other"}]);
    document
}

fn type_named(response_type: &str) -> (&'static str, &'static str, &'static [&'static str]) {
    let mut types = TYPES.into_iter();
    types.find(|(name, ..)| *name == response_type).unwrap()
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
    let names: BTreeSet<&str> = got.keys().map(String::as_str).collect();
    assert_eq!(names, expected_names(scope, brings), "{case}");
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
    assert_eq!(arrived, went, "{case}: {got:?}");
    let names: Vec<&str> = got.keys().map(String::as_str).collect();
    assert_eq!(
        names.join(" "),
        "error error_description iss state",
        "{case}"
    );
    assert_eq!(got["error"], error, "{case}");
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
    for mode in ["query", "fragment", "form_post"] {
        let path = request("all", "code", mode, &[("redirect_uri", uri)]);
        let path = path.replace("redirect_uri=https%3A%2F%2Frp1.example%2Fcb&", "");
        let (went, _) = browser.get(&path).response_to(uri);
        assert_eq!(went, mode);
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
            let went = place(response_type, mode).unwrap();
            let refusal = "unauthorized_client";
            assert_error(&gatepost, &answer, went, refusal, response_type);
        }
    }
    let unknown = "none|token token|code  token|id_token,token|Token|token none|device_code";
    for unknown in unknown.split('|') {
        let went = match has(unknown, "token") {
            true => "fragment",
            false => "query",
        };
        let answer = browser.get(&request("all", "code", "", &[("response_type", unknown)]));
        let refusal = "unsupported_response_type";
        assert_error(&gatepost, &answer, went, refusal, unknown);
    }
}

#[test]
fn a_clients_own_default_mode_counts_where_it_may_carry_the_type() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (response_type, scope, brings) in TYPES {
        let usual = place(response_type, "").unwrap();
        for (client_id, mode, went) in [
            ("posts", "", "form_post"),
            ("queries", "", usual),
            ("posts", "fragment", "fragment"),
        ] {
            let answer = browser.get(&request(client_id, response_type, mode, &[]));
            assert_success(&gatepost, &answer, (went, scope, brings), response_type);
        }
        let answer = browser.get(&request("posts", response_type, "", &[("scope", "nope")]));
        let (went, refusal) = ("form_post", "invalid_scope");
        assert_error(&gatepost, &answer, went, refusal, response_type);
    }
}

fn has(response_type: &str, word: &str) -> bool {
    response_type.split(' ').any(|other| other == word)
}

/// Changes of a request, the error that they mean, and for which types; for the others it is a
/// success.
const REFUSALS: &str = r#"
    scope=                                      | invalid_scope             | all
    scope=openid nope                           | invalid_scope             | all
    scope=openid address                        | invalid_scope             | all
    scope=profile                               | invalid_scope             | all
    scope=openid profile                        | invalid_scope             | only token
    scope=orders.read                           | invalid_scope             | but token, code
    scope=openid orders.read                    | invalid_scope             | only token, id_token
    nonce=                                      | invalid_request           | with id_token
    code_challenge= & code_challenge_method=    | invalid_request           | with code
    prompt=bogus                                | invalid_request           | all
    prompt=none login                           | invalid_request           | all
    max_age=-1                                  | invalid_request           | all
    max_age=0                                   | login_required            | all
    claims=[]                                   | invalid_request           | all
    claims={"id_token":{"acr":{"essential":true,"value":"9"}}}
                                                | unmet_authentication_requirements | but token
    claims={"id_token":{"sub":{"value":"somebody-else"}}}
                                                | login_required            | but token
    acr_values=tenant:nowhere                   | invalid_request           | all
    acr_values=tenant:acme tenant:other         | invalid_request           | all
    acr_values=tenant:acme                      | login_required            | all
    acr_values=idp:nowhere                      |                           | all
    id_token_hint=x                             | invalid_request           | all
    resource=https://nowhere.example            | invalid_target            | all
    resource=https://stock.example              | invalid_target            | all
    request=x                                   | request_not_supported     | all
    request_uri=https://rp1.example/r           | request_uri_not_supported | all
    scope=nope & prompt=login                   | invalid_scope             | all
"#;

/// Whether such a cell means a type.
fn means(cell: &str, response_type: &str) -> bool {
    let is_one = |types: &str| types.split(", ").any(|one| one == response_type);
    match cell.split_once(' ') {
        Some(("with", word)) => has(response_type, word),
        Some(("only", types)) => is_one(types),
        Some((_, types)) => !is_one(types),
        None => true,
    }
}

#[test]
fn every_error_travels_as_the_success_would() {
    let gatepost = Gatepost::start_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (response_type, _, _) in TYPES {
        for [changes, error, types] in rows_of(REFUSALS) {
            let error = if means(types, response_type) {
                error
            } else {
                ""
            };
            let changes = changes
                .split(" & ")
                .map(|change| change.split_once('=').unwrap());
            let changes: Vec<(&str, &str)> = changes.collect();
            for mode in MODES {
                let case = format!("{response_type} {mode:?} {changes:?}");
                let answer = browser.get(&request("all", response_type, mode, &changes));
                match (error, place(response_type, mode)) {
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
            let state = "s".repeat(4_097);
            let overlong = request("all", response_type, mode, &[("state", &state)]);
            let overlong = browser.get(&overlong);
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
    let (_, claims) = decode_jwt(&narrowed["access_token"]);
    assert_eq!(claims["scope"], "openid profile");
    assert_eq!(claims["aud"], format!("{}/resources", gatepost.base_url));
    let (_, claims) = decode_jwt(&ticked("id_token", &[])["id_token"]);
    assert!(claims.get("name").is_none(), "{claims}");
    // Nothing left to grant is a denial.
    assert_eq!(ticked("token", &[])["error"], "access_denied");
}

#[test]
fn a_client_that_takes_iss_for_something_else_gets_none_with_errors() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for mode in ["query", "fragment", "form_post"] {
        let ask = |change: (&str, &str)| request("quiet", "code", mode, &[change]);
        let page = browser.visit(&ask(("prompt", "consent")));
        for (refused, answer) in [
            ("at once", browser.get(&ask(("scope", "nope")))),
            ("in the end", gatepost.get(&ask(("prompt", "none")))),
            ("by the person", browser.decide(&page, "deny", &[], false)),
        ] {
            let (_, got) = answer.response_to(RP1);
            let names: Vec<&str> = got.keys().map(String::as_str).collect();
            let names = names.join(" ");
            assert_eq!(names, "error error_description state", "{mode} {refused}");
        }
        let (_, got) = browser.get(&ask(("prompt", "none"))).response_to(RP1);
        assert!(got.contains_key("code"), "{mode}");
        assert_eq!(&got["iss"], &gatepost.base_url, "{mode}");
    }
}
