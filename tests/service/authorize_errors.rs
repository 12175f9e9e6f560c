//! Authorization requests that are refused where the success would go.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::authorize_bad_input::PARAMETERS;
use crate::support::flow::{
    LEFT_OUT, VERIFIER, authorize_path, challenge, code, issued, redeem_with, signed_in, text,
    with_clients,
};
use crate::support::gatepost::{Gatepost, RP1, RP2, RPS, document};
use crate::support::http::encode;
use crate::support::jwt::verified;
use crate::support::tables::rows_of;

/// The error that a request gets by redirect, signed in or not.
fn refused(gatepost: &Gatepost, path: &str) -> BTreeMap<String, String> {
    let answer = gatepost.get(path);
    answer.assert_leads_to_for(path, &format!("{RP1}?error="));
    let got = answer.query();
    assert_eq!(got["iss"], gatepost.base_url);
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    assert!(got["error_description"].bytes().all(plain));
    got
}

fn error(gatepost: &Gatepost, changes: &[(&str, &str)]) -> String {
    let got = refused(gatepost, &authorize_path("conf1", RP1, changes));
    let state = got.get("state").map(String::as_str);
    assert_eq!(state, Some("the-state"), "{changes:?}");
    got["error"].clone()
}

fn path(changes: &[(&str, &str)]) -> String {
    authorize_path("conf1", RP1, changes)
}

#[test]
fn repeated_parameters_are_refused_where_they_can_still_be_told_apart() {
    let gatepost = Gatepost::start();
    let usual = authorize_path("conf1", RP1, &[]);
    for (name, first, second) in [
        ("redirect_uri", "https://evil.example/", RP1),
        ("redirect_uri", RP1, "https://evil.example/"),
        ("redirect_uri", RP1, RP1),
        ("redirect_uri", RP1, ""),
        ("client_id", "conf1", "conf2"),
        ("client_id", "conf1", "conf1"),
        ("client_id", "conf1", ""),
    ] {
        let path = match second {
            "" => format!("{usual}&{name}="),
            _ => path(&[(name, first), (name, second)]),
        };
        gatepost.get(&path).assert_error_page(400, "GP1002", name);
        let told = format!("detail=\"{name}\"");
        gatepost.await_log(&told, |log| log.contains(&told));
    }
    let names = "scope nonce prompt max_age code_challenge code_challenge_method acr_values
                 claims login_hint ui_locales id_token_hint display response_type response_mode";
    for name in names.split_whitespace() {
        let path = format!("{}&{name}=&{name}=a", path(&[(name, "")]));
        let got = refused(&gatepost, &path);
        assert_eq!(got["error"].as_str(), "invalid_request", "{name}");
        assert_eq!(got["state"].as_str(), "the-state", "{name}");
    }
    for second in ["the-state", "other", ""] {
        let got = refused(&gatepost, &format!("{usual}&state={second}"));
        assert_eq!(got["error"].as_str(), "invalid_request");
        assert_eq!(got.get("state"), None);
    }
    // A mode that is said twice is not believed.
    for path in [
        format!("{usual}&response_mode=fragment&response_mode=fragment"),
        format!("{usual}&response_mode=form_post&response_type=code"),
    ] {
        assert_eq!(refused(&gatepost, &path)["error"], "invalid_request");
    }
}

#[test]
fn malformed_encoding_is_a_bad_request_in_every_parameter() {
    let gatepost = Gatepost::shared();
    for name in PARAMETERS.into_iter().chain(["unknown", "%FF"]) {
        for value in "%FF %00 a%00b %C3%28 %ED%A0%80 % %4 %zz %u0041 %F5%80%80%80".split(' ') {
            let path = format!("{}&{name}={value}", path(&[(name, "")]));
            gatepost.get(&path).assert_error_page(400, "GP1001", &path);
        }
    }
    let fine = encode(&[("client_id", "conf1"), ("redirect_uri", RP1)]);
    let body = [fine.as_bytes(), b"&state=\xff\xfe"].concat();
    let mut connection = gatepost.connect();
    let answer = connection.post_raw("/connect/authorize", &[], &body);
    answer.assert_error_page(400, "GP1001", "raw bytes");
}

#[test]
fn what_is_too_long_is_refused_and_never_an_error_of_ours() {
    let gatepost = Gatepost::shared();
    for (name, most) in [
        ("scope", 2_000),
        ("nonce", 1_024),
        ("code_challenge", 128),
        ("login_hint", 256),
        ("claims", 4_096),
        ("id_token_hint", 16 * 1_024),
        ("prompt", 300),
        ("max_age", 300),
        ("acr_values", 300),
        ("ui_locales", 300),
        ("display", 300),
        ("response_type", 300),
        ("response_mode", 300),
        ("code_challenge_method", 300),
        ("resource", 2_000),
    ] {
        for length in [most + 1, 20_000] {
            let error = error(&gatepost, &[(name, &"x".repeat(length))]);
            assert_eq!(error, "invalid_request", "{name} {length}");
        }
    }
    for (name, length) in [
        ("login_hint", 256),
        ("ui_locales", 300),
        ("acr_values", 300),
        ("nonce", 1_024),
        ("display", 300),
    ] {
        let answer = gatepost.get(&path(&[(name, &"x".repeat(length))]));
        answer.assert_leads_to_for(name, "/login?r=");
    }
    let got = refused(&gatepost, &path(&[("state", &"s".repeat(4_097))]));
    assert_eq!(got["error"].as_str(), "invalid_request");
    assert_eq!(got.get("state"), None);

    for length in [33 * 1_024, 60_000] {
        let path = path(&[("unknown", &"x".repeat(length))]);
        let answer = gatepost.connect().try_send("GET", &path, &[], b"").unwrap();
        assert_eq!((answer.status, answer.header("location")), (414, None));
    }
    let form = encode(&[("client_id", "conf1"), ("unknown", &"x".repeat(66_000))]);
    let (path_alone, form_type) = ("/connect/authorize", "application/x-www-form-urlencoded");
    let headers = [("Content-Type", form_type)];
    let mut connection = gatepost.connect();
    let answer = connection.try_send("POST", path_alone, &headers, form.as_bytes());
    assert_eq!(answer.unwrap().status, 413);
    let many = "&x=1".repeat(5_000);
    let answer = gatepost.get(&format!("{}{many}", path(&[])));
    answer.assert_leads_to("/login?r=");
}

#[test]
fn line_breaks_and_bidi_marks_stay_inside_their_parameter() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    for state in [
        "a\r\nSet-Cookie: x=y\r\n\r\n<html>",
        "\n",
        "\u{202e}\u{2066}abc",
        "\u{feff}",
        "\u{7f}\u{1b}[31m",
    ] {
        let answer = browser.get(&authorize_path("conf1", RP1, &[("state", state)]));
        assert_eq!(answer.query()["state"].as_str(), state);
        assert_eq!(answer.headers_named("set-cookie").len(), 0);
        assert!(answer.location().is_ascii());
        let fragment = [("state", state), ("response_mode", "fragment")];
        let answer = browser.get(&path(&fragment));
        assert_eq!(answer.fragment()["state"], state);
    }
}

#[test]
fn response_types_and_modes_that_do_not_fit_are_refused_in_the_place_they_imply() {
    let gatepost = Gatepost::shared();
    for [response_type, response_mode, expected, place] in rows_of(
        "
                       |             | invalid_request           | ?
                       | fragment    | invalid_request           | #
                       | form_post   | invalid_request           | form
                       | web_message | invalid_request           | ?
        none           |             | unsupported_response_type | ?
        CODE           |             | unsupported_response_type | ?
        code code      |             | unsupported_response_type | ?
        code,token     |             | unsupported_response_type | ?
        bogus          | fragment    | unsupported_response_type | #
        bogus          | form_post   | unsupported_response_type | form
        token bogus    |             | unsupported_response_type | #
        id_token bogus | query       | unsupported_response_type | #
        code           | jwt         | invalid_request           | ?
        code           | Query       | invalid_request           | ?
        code           | query.jwt   | invalid_request           | ?
    ",
    ) {
        let changes = [
            ("response_type", response_type),
            ("response_mode", response_mode),
        ];
        let answer = gatepost.get(&authorize_path("conf1", RP1, &changes));
        let got = match place {
            "?" => answer.query(),
            "#" => answer.fragment(),
            _ => answer.fields(),
        };
        assert_eq!(got["error"], expected, "{changes:?}");
        assert_eq!(got["state"].as_str(), "the-state", "{changes:?}");
        assert_eq!(&got["iss"], &gatepost.base_url, "{changes:?}");
    }
    // A type that is not the client's own does not get as far as a page.
    for response_type in ["id_token", "token", "code id_token"] {
        let answer = gatepost.get(&path(&[("response_type", response_type)]));
        let got = answer.fragment();
        let expected = ["unauthorized_client", "unsupported_response_type"];
        let is_told = expected.contains(&got["error"].as_str());
        assert!(is_told, "{response_type}: {got:?}");
    }
}

#[test]
fn scopes_must_be_registered_allowed_and_of_the_right_kind() {
    let gatepost = Gatepost::shared();
    let unfit = "|   |nope|openid nope|OpenID|openid address|openid offline_access|profile|\
                 profile orders.read|openid\tprofile|openid,profile|openid \u{e9}|openid \"|\
                 openid <script>|openid\nprofile";
    for scope in unfit.split('|') {
        assert_eq!(
            error(&gatepost, &[("scope", scope)]),
            "invalid_scope",
            "{scope:?}"
        );
    }
    let beyond = [("scope", "openid orders.read")];
    let answer = gatepost.get(&authorize_path("conf2", RP2, &beyond));
    assert_eq!(answer.query()["error"], "invalid_scope");
    let mut browser = signed_in(&gatepost);
    let fit = "openid|orders.read|orders.read stock.read|openid roles orders.read";
    for scope in fit.split('|') {
        code(&mut browser, &path(&[("scope", scope)]));
    }
}

#[test]
fn pkce_is_required_and_checked() {
    let gatepost = Gatepost::shared();
    let (overlong, short) = ("a".repeat(129), "a".repeat(42));
    let odd = |end: &str| format!("{}{end}", "a".repeat(42));
    let odd = ["+", "\u{212a}", "\n", ".", "="].map(odd);
    let s256 = ("code_challenge_method", "S256");
    let none = [("code_challenge", ""), ("code_challenge_method", "")];
    let methods = ["", "plain", "s256", "none"].map(|method| ("code_challenge_method", method));
    let challenges = odd.iter().chain([&overlong, &short]).map(String::as_str);
    let challenges = challenges.chain([""]);
    let mut all = vec![
        [&none[..], &[("nonce", "")]].concat(),
        [&none[..], &[("scope", "orders.read")]].concat(),
    ];
    all.extend(methods.map(|method| vec![method]));
    all.extend(challenges.map(|challenge| vec![("code_challenge", challenge), s256]));
    for changes in all {
        assert_eq!(error(&gatepost, &changes), "invalid_request", "{changes:?}");
        let is_of_public = |(name, _): &(&str, &str)| !["scope", "nonce"].contains(name);
        let of_public: Vec<_> = changes.into_iter().filter(is_of_public).collect();
        let answer = gatepost.get(&authorize_path("pub1", RPS, &of_public));
        assert_eq!(answer.query()["error"], "invalid_request", "{of_public:?}");
    }
    // Sent empty is not the same as not sent.
    let empty = path(&[("code_challenge", "")]) + "&code_challenge=";
    assert_eq!(refused(&gatepost, &empty)["error"], "invalid_request");
}

#[test]
fn a_confidential_client_ties_its_code_by_a_nonce_where_it_does_not_use_pkce() {
    let clients = [
        ("strict", json!({"require_pkce": true})),
        ("relaxed", json!({"require_pkce": false})),
    ];
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[]);
    let mut browser = signed_in(&gatepost);
    let no_challenge = [("code_challenge", ""), ("code_challenge_method", "")];
    let with_nonce = |client_id: &str| authorize_path(client_id, RP1, &no_challenge);
    let bare = |client_id: &str| {
        let changes = [&no_challenge[..], &[("nonce", "")]].concat();
        authorize_path(client_id, RP1, &changes)
    };
    let redeem = |client_id: &str, code: &str, verifier: &str| {
        redeem_with(&gatepost, client_id, code, &[("code_verifier", verifier)])
    };
    for path in [with_nonce("conf1"), with_nonce("relaxed"), bare("relaxed")] {
        let client_id = match path.contains("relaxed") {
            true => "relaxed",
            false => "conf1",
        };
        let tokens = issued(&redeem(client_id, &code(&mut browser, &path), LEFT_OUT));
        let (_, claims) = verified(&gatepost, text(&tokens, "id_token"));
        let nonce = claims.get("nonce").and_then(Value::as_str);
        let sent = path.contains("nonce=").then_some("the-nonce");
        assert_eq!(nonce, sent, "{path}");
        // A verifier nobody asked for is a challenge that somebody took away.
        let answer = redeem(client_id, &code(&mut browser, &path), VERIFIER);
        answer.assert_refused(400, "invalid_grant", &path);
    }
    for path in [bare("conf1"), bare("strict"), with_nonce("strict")] {
        let answer = browser.get(&path);
        let description = "The parameter code_challenge or nonce is missing.";
        assert_eq!(&*answer.query()["error"], "invalid_request");
        assert_eq!(&*answer.query()["error_description"], description);
    }
    // A challenge that was sent counts, nonce or not.
    for client_id in ["conf1", "relaxed"] {
        let code = code(&mut browser, &authorize_path(client_id, RP1, &[]));
        redeem(client_id, &code, LEFT_OUT).assert_refused(400, "invalid_grant", client_id);
    }
}

#[test]
fn a_client_that_is_registered_without_pkce_is_held_to_it_once_it_tries() {
    let mut registered = document();
    registered["clients"][0]["require_pkce"] = json!(false);
    registered["clients"][0]["allow_plain_pkce"] = json!(true);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    let bare = path(&[("code_challenge", ""), ("code_challenge_method", "")]);
    code(&mut browser, &bare);
    for tried in ["code_challenge=", "code_challenge_method=S256"] {
        let answer = browser.get(&format!("{bare}&{tried}"));
        answer.assert_query_for(tried, "error", "invalid_request");
    }
    let plain = "p".repeat(128);
    for (challenge, method) in [(plain, "plain"), (challenge(), "")] {
        let challenge = ("code_challenge", challenge.as_str());
        let changes = [challenge, ("code_challenge_method", method)];
        code(&mut browser, &path(&changes));
    }
}

#[test]
fn request_objects_are_refused_before_anything_else_but_the_way_back() {
    let gatepost = Gatepost::shared();
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let payload =
        r#"{"state":"inside","response_mode":"fragment","redirect_uri":"https://evil.example/"}"#;
    let object = format!("{}.{}.", part(r#"{"alg":"none"}"#), part(payload));
    let (by_value, by_name) = ("request_not_supported", "request_uri_not_supported");
    for (changes, expected) in [
        (&[("request", "x"), ("scope", "nope")][..], by_value),
        (&[("request_uri", "https://rp1.example/r")], by_name),
        (
            &[("request", &object), ("response_mode", "query")],
            by_value,
        ),
    ] {
        assert_eq!(error(&gatepost, changes), expected, "{changes:?}");
    }
    let bare = [
        ("request", object.as_str()),
        ("state", ""),
        ("response_type", ""),
        ("scope", ""),
    ];
    let answer = gatepost.get(&authorize_path("conf1", RP1, &bare));
    answer.assert_leads_to(&format!("{RP1}#error=request_not_supported"));
    assert_eq!(answer.fragment()["state"], "inside");
    let elsewhere = [("request", object.as_str())];
    let evil = authorize_path("conf1", "https://evil.example/", &elsewhere);
    gatepost.get(&evil).assert_error_page(400, "GP1105", "");
}
