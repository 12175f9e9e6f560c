//! Whatever an authorization request holds: a standard error, a page or an answer to a registered
//! URI; nothing else.

use serde_json::json;

use crate::support::claims::Says;
use crate::support::flow::{authorize_path, sign_in, signed_in, with_clients};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser};
use crate::support::shared::Shared;

/// What an authorization request may be made of, and what it may not.
pub const PARAMETERS: [&str; 21] = [
    "client_id",
    "redirect_uri",
    "response_type",
    "response_mode",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
    "prompt",
    "max_age",
    "login_hint",
    "ui_locales",
    "acr_values",
    "id_token_hint",
    "claims",
    "display",
    "claims_locales",
    "resource",
    "request",
    "request_uri",
];

/// Texts that mean something to some reader on the way, or are of another type than expected.
const TEXTS: [&str; 24] = [
    "x\r\nSet-Cookie: evil=1\r\n\r\n<html>",
    "\n",
    "\u{202e}evil\u{2066}\u{200b}",
    "\u{feff}\u{ffff}\u{fdd0}",
    "\u{1}\u{7f}\u{85}\u{1b}[31m",
    "<script>alert(1)</script>\"'",
    "{{7*7}} ${x} %s",
    "javascript:alert(1)",
    "//evil.example/",
    "https://evil.example/#@rp1.example",
    "-1",
    "+1",
    "1.5",
    "1e9",
    "99999999999999999999",
    "\u{663}",
    "null",
    "[]",
    "{\"userinfo\":{\"name\":1}}",
    "tenant: idp:",
    "idp:local tenant:acme",
    "eyJhbGciOiJub25lIn0.e30.",
    "a\u{301}\u{1f600}",
    " ",
];

fn gatepost() -> Shared {
    let every = json!({
        "response_types": ["code", "id_token token"], "grant_types": ["authorization_code", "implicit"],
        "allow_access_tokens_via_browser": true, "require_consent": false
    });
    Gatepost::shared_with(&with_clients(document(), &[("every", every)]), &[])
}

/// An answer that leads to a page of ours or to the client, and says nothing back unescaped.
fn assert_harmless(answer: &Answer, case: &str) {
    let location = answer.header("location").unwrap_or_default();
    let ours = location.starts_with("/login?r=") || location.starts_with("/consent?r=");
    let theirs = location
        .strip_prefix(RP1)
        .is_some_and(|rest| rest.starts_with(['?', '#']));
    match answer.status {
        303 => assert!(ours || theirs, "{case}: {location}"),
        200 if answer.text().contains("form-post.js") => assert_eq!(answer.action(), RP1, "{case}"),
        200 | 400 => assert_eq!(location, "", "{case}"),
        other => panic!("{case}: {other}"),
    }
    let text = answer.text();
    text.assert_says_not_for(case, "<script>");
    text.assert_says_not_for(case, "\n<html>");
    assert!(
        answer
            .headers
            .iter()
            .all(|(_, value)| value.is_ascii() && !value.contains("evil=1")),
        "{case}"
    );
}

/// Sends it as a stranger, as somebody signed in, and as a post; each page that follows is looked
/// at as well.
fn send(gatepost: &Gatepost, person: &mut Browser, path: &str, case: &str) -> Answer {
    let mut stranger = gatepost.browser();
    let first = stranger.get(path);
    let (_, form) = path.split_once('?').unwrap();
    let posted = gatepost
        .connect()
        .post_raw("/connect/authorize", &[], form.as_bytes());
    for answer in [first.clone(), posted] {
        assert_harmless(&answer, case);
        assert_harmless(&stranger.follow(answer), case);
    }
    let answer = person.get(path);
    assert_harmless(&answer, case);
    assert_harmless(&person.follow(answer), case);
    first
}

#[test]
fn no_text_in_any_parameter_leads_astray() {
    let gatepost = gatepost();
    let mut person = signed_in(&gatepost);
    for (response_type, mode) in [("code", ""), ("id_token token", "form_post")] {
        for name in PARAMETERS {
            for text in TEXTS {
                let usual = [("response_type", response_type), ("response_mode", mode)];
                let changes = [
                    &usual
                        .into_iter()
                        .filter(|(other, _)| *other != name)
                        .collect::<Vec<_>>()[..],
                    &[(name, text)],
                ];
                let case = format!("{response_type}: {name}={text:?}");
                let answer = send(
                    &gatepost,
                    &mut person,
                    &authorize_path("every", RP1, &changes.concat()),
                    &case,
                );
                if name == "client_id" || name == "redirect_uri" {
                    answer.assert_stays_for(&case, 400);
                }
            }
        }
    }
}

#[test]
fn a_text_that_went_through_the_pages_comes_back_as_it_was() {
    let gatepost = gatepost();
    for text in TEXTS {
        let mut browser = gatepost.browser();
        let hinted = [
            ("login_hint", text),
            ("state", text),
            ("nonce", text),
            ("response_type", "id_token token"),
        ];
        let page = browser.visit(&authorize_path("every", RP1, &hinted));
        assert_harmless(&page, text);
        let got = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD).fragment();
        assert_eq!(got["state"], text);
        assert_eq!(
            crate::support::flow::decode_jwt(&got["id_token"]).1["nonce"],
            text
        );
    }
}

#[test]
fn what_is_of_the_wrong_type_is_named_an_invalid_request() {
    let gatepost = gatepost();
    let told = |name: &str, value: &str| {
        let answer = gatepost.get(&authorize_path("every", RP1, &[(name, value)]));
        let got = if answer.location().starts_with('/') {
            None
        } else {
            answer.query().remove("error")
        };
        got.unwrap_or_default()
    };
    for (name, wrong) in [
        (
            "max_age",
            &[
                "-1",
                "+1",
                "1.5",
                "1e9",
                " 1",
                "1 ",
                "0x10",
                "\u{663}",
                "1000000000000000000",
                "null",
                "true",
            ][..],
        ),
        (
            "claims",
            &[
                "null",
                "[]",
                "1",
                "\"x\"",
                "{",
                "{\"userinfo\":[]}",
                "{\"id_token\":{\"name\":5}}",
                "{}{}",
            ],
        ),
        (
            "prompt",
            &[
                "None",
                "none,login",
                "none none login",
                "create",
                "1",
                "login\u{a0}consent",
            ],
        ),
        ("code_challenge_method", &["s256", "S512", "1", "null"]),
        ("code_challenge", &["short", "[]", "\u{e9}"]),
        (
            "response_mode",
            &["Query", "query.jwt", "web_message", "1", "[]"],
        ),
        (
            "id_token_hint",
            &["x", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "null"],
        ),
    ] {
        for value in wrong {
            assert_eq!(told(name, value), "invalid_request", "{name}={value:?}");
        }
    }
    for (name, fine) in [
        ("max_age", "999999999999999999"),
        ("max_age", "000"),
        ("claims", "{}"),
        ("prompt", " consent  login "),
        ("ui_locales", "!! \u{1f600}"),
        ("display", "hologram"),
        ("acr_values", "idp:%00 tenant"),
        ("login_hint", "\u{202e}"),
    ] {
        assert_eq!(told(name, fine), "", "{name}={fine:?}");
    }
}

#[test]
fn a_missing_parameter_and_an_empty_one_are_the_same() {
    let gatepost = gatepost();
    for (name, expected) in [
        ("client_id", "GP1101"),
        ("redirect_uri", "GP1104"),
        ("response_type", "invalid_request"),
        ("scope", "invalid_scope"),
        ("nonce", "invalid_request"),
        ("state", ""),
        ("prompt", ""),
        ("max_age", ""),
        ("claims", ""),
        ("acr_values", ""),
        ("id_token_hint", ""),
        ("login_hint", ""),
        ("ui_locales", ""),
        ("display", ""),
        ("resource", ""),
        ("request", ""),
        ("request_uri", ""),
        ("code_challenge", ""),
    ] {
        let response_type = if name == "response_type" {
            ("response_type", "")
        } else {
            ("response_type", "id_token token")
        };
        let missing = authorize_path("every", RP1, &[response_type, (name, "")]);
        for path in [
            missing.clone(),
            format!("{missing}&{name}="),
            format!("{missing}&{name}"),
        ] {
            let answer = gatepost.get(&path);
            match expected {
                "" => assert!(
                    answer.location().starts_with("/login?r="),
                    "{path}: {}",
                    answer.location()
                ),
                page if page.starts_with("GP") => answer.assert_error_page(400, page, &path),
                error => assert_eq!(answer.response_to(RP1).1["error"], error, "{path}"),
            }
        }
    }
}

#[test]
fn thirty_two_kibibytes_of_query_are_read_and_not_one_more() {
    let gatepost = gatepost();
    let usual = authorize_path("every", RP1, &[]);
    let before = usual.split_once('?').unwrap().1.len() + "&x=".len();
    for (filler, status) in [("a", 303), ("%", 400)] {
        let full = filler.repeat(32 * 1_024 - before);
        let answer = gatepost
            .connect()
            .try_send("GET", &format!("{usual}&x={full}"), &[], b"")
            .unwrap();
        assert_eq!(answer.status, status, "{filler}");
        let over = gatepost
            .connect()
            .try_send("GET", &format!("{usual}&x={full}{filler}"), &[], b"")
            .unwrap();
        over.assert_stays_for(filler, 414);
    }
    // Many small ones, and known ones among them.
    let pieces = "&a=b & &= &state &scope=openid &resource=https%3A%2F%2Forders.example";
    for piece in pieces.split(' ') {
        let many = piece.repeat((32 * 1_024 - before) / piece.len());
        assert_harmless(&gatepost.get(&format!("{usual}{many}")), piece);
    }
}
