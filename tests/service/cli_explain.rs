//! `gatepost explain`: it says what the server would say, and why a token ended; it changes nothing
//! and shows no secret.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{VERIFIER, authorize_path, basic, signed_in};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, RP1};
use crate::support::http::{Browser, encode};
use crate::support::offline::{CONF1, CONF2, PUB1, REUSE, access, document, refresh};

const OFFLINE: &str = "openid profile orders.read offline_access";

fn start() -> (Gatepost, Browser) {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let browser = signed_in(&gatepost);
    (gatepost, browser)
}

/// What it printed, and whether all is well.
fn said(output: &Output) -> (bool, String) {
    let text = String::from_utf8(output.stdout.clone()).unwrap()
        + std::str::from_utf8(&output.stderr).unwrap();
    (output.status.success(), text)
}

fn explained(gatepost: &Gatepost, input: &str) -> (bool, String) {
    let (good, text) = said(&gatepost.explain(input));
    assert!(!text.contains(CONF1_SECRET), "{text}");
    assert!(!text.contains(VERIFIER), "{text}");
    (good, text)
}

#[test]
fn an_authorization_request_is_judged_as_the_server_judges_it() {
    let (gatepost, mut browser) = start();
    let near = RP1.replace("/callback", "/callbak").replace("/cb", "/bc");
    assert_ne!(near, RP1);
    let cases: [(&str, &[(&str, &str)]); 11] = [
        ("GP1128", &[("id_token_hint", "garbage")]),
        ("GP1105", &[("redirect_uri", &near)]),
        ("GP1104", &[("redirect_uri", "")]),
        ("GP1102", &[("client_id", "conf9")]),
        ("GP1101", &[("client_id", "")]),
        ("GP1108", &[("response_type", "")]),
        ("GP1109", &[("response_type", "kode")]),
        ("GP1115", &[("scope", "openid profil")]),
        ("GP1112", &[("response_mode", "quiry")]),
        ("GP1121", &[("code_challenge_method", "S512")]),
        ("GP1124", &[("max_age", "soon")]),
    ];
    for (reason, changes) in cases {
        let path = authorize_path("conf1", RP1, changes);
        let (good, text) =
            said(&gatepost.run(&["explain", &format!("{}{path}", gatepost.origin())], ""));
        assert!(!good && text.contains(reason), "{reason}: {text}");
        let answer = browser.get(&path);
        gatepost.await_log(reason, |log| log.contains(&format!("reason=\"{reason}\"")));
        assert!(
            answer.status == 400 || answer.location().contains("error="),
            "{reason}"
        );
    }
    let path = authorize_path("conf1", RP1, &[]);
    let (good, text) = said(&gatepost.run(&["explain", path.split_once('?').unwrap().1], ""));
    assert!(good, "{text}");
    assert!(text.contains(RP1), "{text}");
    assert!(browser.get(&path).location().contains("code="), "{text}");

    // Side by side, to the byte.
    let two = authorize_path(
        "conf1",
        RP1,
        &[
            ("redirect_uri", &near),
            ("scope", "openid profil orders.read"),
        ],
    );
    let (_, one) = said(&gatepost.run(&["explain", &two], ""));
    let differs = RP1
        .bytes()
        .zip(near.bytes())
        .take_while(|(left, right)| left == right)
        .count()
        + 1;
    one.assert_says(&format!("they differ from byte {differs}"));
    assert!(!one.contains("GP1115"), "{one}");
    let all = gatepost.run(&["explain", &two, "--all", "--json"], "");
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    let findings = all["findings"].as_array().unwrap();
    let verdicts: Vec<&str> = findings
        .iter()
        .map(|finding| finding["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["fails", "fails", "ok"], "{all:#}");
    assert!(
        findings[1]["text"]
            .as_str()
            .unwrap()
            .contains("the nearest is \"profile\""),
        "{all:#}"
    );
    assert_eq!(
        all["about"]["scope"]["received"], "openid profil orders.read",
        "{all:#}"
    );
    assert!(
        all["about"]["redirect_uri"]["registered"]
            .as_str()
            .unwrap()
            .contains(RP1),
        "{all:#}"
    );
}

#[test]
fn a_good_request_tells_whom_it_is_good_for_and_other_addresses_are_not_called_good() {
    let mut closed = document();
    closed["clients"][0]["allowed_roles"] = json!(["admin", "staff"]);
    let gatepost = Gatepost::start_with(&closed, &[]);
    let origin = gatepost.origin();
    let path = authorize_path("conf1", RP1, &[]);
    let (good, text) = said(&gatepost.run(&["explain", &path], ""));
    let whom = format!(
        "whoever signs in and has the role admin or staff is sent to {RP1}, nobody else (GP1139)"
    );
    assert!(good && text.contains(&whom), "{text}");
    let silent = authorize_path("pub1", PUB1.redirect_uri, &[("prompt", "none")]);
    let (good, text) = said(&gatepost.run(&["explain", &format!("{origin}{silent}")], ""));
    assert!(good, "{text}");
    text.assert_says("by prompt=none only who is signed in");
    text.assert_says("login_required");
    let query = path.split_once('?').unwrap().1;
    for (address, rule) in [
        (
            format!("{origin}/connect/endsession?{query}"),
            "an address of sign-out or of a page",
        ),
        (
            format!("{origin}/login?r=gpq_x&{query}"),
            "an address of sign-out or of a page",
        ),
        (
            format!("/login?{query}"),
            "an address of sign-out or of a page",
        ),
        (
            format!("https://elsewhere.example/connect/authorize?{query}"),
            "an address of another issuer",
        ),
    ] {
        let output = gatepost.run(&["explain", &address], "");
        assert_eq!(output.status.code(), Some(2), "{address}");
        assert!(
            said(&output).1.contains(rule),
            "{address}: {}",
            said(&output).1
        );
    }
    let (_, host) = origin.split_once("://").unwrap();
    for (address, rule) in [
        (
            format!("http://{host}.evil.com/connect/authorize?{query}"),
            "an address of another issuer",
        ),
        (
            format!("http://{host}.evil.com/login?{query}"),
            "an address of another issuer",
        ),
        (
            format!("http://{}/login?{query}", host.to_uppercase()),
            "an address of sign-out or of a page",
        ),
    ] {
        let (_, text) = said(&gatepost.run(&["explain", &address], ""));
        assert!(text.contains(rule), "{address}: {text}");
    }
    for own in [
        format!("HTTP://{}/connect/authorize?{query}", host.to_uppercase()),
        format!("?{query}"),
    ] {
        let (good, text) = said(&gatepost.run(&["explain", &own], ""));
        assert!(good, "{own}: {text}");
    }
    // A query alone may hold a question mark.
    let (good, text) = said(&gatepost.run(&["explain", &format!("{query}&login_hint=a?b")], ""));
    assert!(good, "{text}");
}

#[test]
fn a_client_whose_only_provider_is_off_is_told() {
    let mut document = document();
    document["identity_providers"] = json!([{"name": "corp", "issuer": "https://corp.example",
        "client_id": "gatepost", "enabled": false}]);
    document["clients"][0]["identity_providers"] = json!(["corp"]);
    let gatepost = Gatepost::start_with(&document, &[]);
    let path = authorize_path("conf1", RP1, &[]);
    let (good, text) = said(&gatepost.run(&["explain", &path], ""));
    assert!(!good && text.contains("GP1138"), "{text}");
    let answer = gatepost.browser().get(&path);
    assert!(answer.location().contains("error=access_denied"));
}

#[test]
fn a_client_whose_only_provider_is_of_a_tenant_needs_that_tenant() {
    let mut document = document();
    document["tenants"] = json!([{"name": "acme"}, {"name": "globex"}]);
    document["identity_providers"] = json!([{"name": "corp", "issuer": "https://corp.example",
        "client_id": "gatepost", "tenant": "acme"}]);
    document["clients"][0]["identity_providers"] = json!(["corp"]);
    let gatepost = Gatepost::start_with(&document, &[]);
    for (acr_values, detail) in [
        ("", "send acr_values=tenant:NAME"),
        ("tenant:globex", "is for the tenant globex"),
    ] {
        let path = authorize_path("conf1", RP1, &[("acr_values", acr_values)]);
        let (good, text) = said(&gatepost.run(&["explain", &path], ""));
        assert!(!good, "{acr_values}: {text}");
        assert!(text.contains("GP1138"), "{acr_values}: {text}");
        assert!(text.contains(detail), "{acr_values}: {text}");
        let answer = gatepost.browser().get(&path);
        assert!(
            answer.location().contains("error=access_denied"),
            "{acr_values}"
        );
    }
    let path = authorize_path("conf1", RP1, &[("acr_values", "tenant:acme")]);
    let (good, text) = said(&gatepost.run(&["explain", &path], ""));
    assert!(good && text.contains("it is good"), "{text}");
}

#[test]
fn an_id_token_of_a_disabled_client_is_no_hint() {
    let (gatepost, mut browser) = start();
    let tokens = CONF1.tokens(&gatepost, &mut browser, "openid");
    let id_token = tokens["id_token"].as_str().unwrap();
    let (_, text) = explained(&gatepost, id_token);
    assert!(text.contains("good as an id_token_hint alone"), "{text}");
    let mut disabled = document()["clients"][0].clone();
    disabled["enabled"] = json!(false);
    gatepost.apply(&json!({"clients": [disabled]}));
    let (good, text) = explained(&gatepost, id_token);
    assert!(!good && text.contains("GP1103"), "{text}");
}

#[test]
fn a_token_request_is_judged_and_not_done() {
    let (gatepost, mut browser) = start();
    let code = CONF1.code(&mut browser, &[("scope", OFFLINE)]);
    let sent = |secret: &str, changes: &[(&str, &str)]| {
        let usual = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", RP1),
            ("code_verifier", VERIFIER),
        ];
        let changed = |name: &str| changes.iter().any(|(other, _)| *other == name);
        let kept = usual.into_iter().filter(|(name, _)| !changed(name));
        let form: Vec<_> = kept
            .chain(
                changes
                    .iter()
                    .copied()
                    .filter(|(_, value)| !value.is_empty()),
            )
            .collect();
        format!(
            "POST /connect/token HTTP/1.1\nAuthorization: {}\n\n{}\n",
            basic("conf1", secret),
            encode(&form)
        )
    };
    let other = "a".repeat(43);
    for (reason, request) in [
        ("GP1211", sent(CONF1_SECRET, &[("code_verifier", &other)])),
        ("GP1213", sent(CONF1_SECRET, &[("code_verifier", "")])),
        (
            "GP1210",
            sent(
                CONF1_SECRET,
                &[("redirect_uri", "https://elsewhere.example/")],
            ),
        ),
        ("GP1206", sent(CONF1_SECRET, &[("code", "gpc_nonsense")])),
        (
            "GP1202",
            sent(CONF1_SECRET, &[("grant_type", "authorisation_code")]),
        ),
        ("GP1203", sent(CONF1_SECRET, &[("grant_type", "password")])),
        ("GP1204", sent(CONF1_SECRET, &[("code", "")])),
        ("GP1305", sent("not the secret, of some length", &[])),
        (
            "GP1218",
            sent(CONF1_SECRET, &[("resource", "https://elsewhere.example")]),
        ),
    ] {
        let (good, text) = explained(&gatepost, &request);
        assert!(!good && text.contains(reason), "{reason}: {text}");
    }
    let (good, text) = explained(&gatepost, &sent(CONF1_SECRET, &[]));
    assert!(good && text.contains("it was not redeemed"), "{text}");
    let tokens = CONF1.redeem(&gatepost, &code);
    assert_eq!(tokens.status, 200, "explaining spent it: {}", tokens.text());
    let (good, text) = explained(&gatepost, &sent(CONF1_SECRET, &[]));
    assert!(!good, "{text}");
    assert!(text.contains("GP1207"), "{text}");
    text.assert_says("code_redeemed at");

    let first = refresh(&tokens.json()).to_owned();
    let form = |token: &str| {
        let form = encode(&[("grant_type", "refresh_token"), ("refresh_token", token)]);
        format!("authorization: {}\n{form}", basic("conf1", CONF1_SECRET))
    };
    assert!(explained(&gatepost, &form(&first)).0);
    let second = CONF1.refresh(&gatepost, &first).json();
    let (good, text) = explained(&gatepost, &form(&first));
    assert!(!good && text.contains("there is a newer one"), "{text}");
    assert!(explained(&gatepost, &form(refresh(&second))).0);
    // New tokens are only for those to whom the client is open now.
    let mut closed = document();
    closed["clients"][0]["allowed_roles"] = json!(["nobody-has-this"]);
    gatepost.apply(&json!({"clients": [closed["clients"][0]]}));
    let (good, text) = explained(&gatepost, &form(refresh(&second)));
    assert!(!good && text.contains("GP1139"), "{text}");
    let (good, text) = explained(&gatepost, access(&second));
    assert!(!good, "{text}");
    text.assert_says("it is over");
    assert!(text.contains("GP1139"), "{text}");
    let refused = CONF1.refresh(&gatepost, refresh(&second));
    assert_eq!(refused.json()["error"], "invalid_grant");
    closed["clients"][0]["allowed_roles"] = json!(null);
    closed["clients"][0]["minimum_acr"] = json!("2");
    gatepost.apply(&json!({"clients": [closed["clients"][0]]}));
    let (good, text) = explained(&gatepost, access(&second));
    assert!(!good, "{text}");
    text.assert_says("it is over");
    assert!(text.contains("GP1802"), "{text}");
    gatepost.apply(&json!({"clients": [document()["clients"][0]]}));
    assert!(explained(&gatepost, access(&second)).0);

    // What nobody has for a name may be a secret.
    let swapped = encode(&[
        ("grant_type", "client_credentials"),
        ("client_id", CONF1_SECRET),
    ]);
    assert!(explained(&gatepost, &swapped).1.contains("no such client"));
    let of_another = encode(&[
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh(&second)),
        ("client_id", "pub1"),
    ]);
    let (good, text) = explained(&gatepost, &of_another);
    assert!(!good, "{text}");
    assert!(text.contains("GP1220"), "{text}");
    text.assert_says("it is one of conf1");
    let own = encode(&[
        ("grant_type", "client_credentials"),
        ("client_id", "pub1"),
        ("client_secret", "anything at all"),
    ]);
    let (good, text) = explained(&gatepost, &own);
    assert!(!good, "{text}");
    text.assert_says("registered.token_endpoint_auth_method: none");
    let own = encode(&[("grant_type", "client_credentials"), ("scope", "openid")]);
    let (good, text) = explained(
        &gatepost,
        &format!("Authorization: {}\n{own}", basic("conf1", CONF1_SECRET)),
    );
    assert!(!good && text.contains("GP12"), "{text}");
}

type Ending = fn(&Gatepost, &str);

/// As the account page does.
fn withdraw(gatepost: &Gatepost) {
    let mut browser = signed_in(gatepost);
    let page = browser.visit("/account");
    let answer = browser.submit(&page, &[("decision", "withdraw"), ("client_id", "conf2")]);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn a_token_tells_what_it_stands_on_and_what_ended_it() {
    let (gatepost, mut browser) = start();
    let endings: [(&str, &str, Ending); 5] = [
        (
            "ended: the token itself",
            "access_token_revoked",
            |gatepost, token| CONF2.revoke(gatepost, token),
        ),
        (
            "ended: all that this client was given",
            "client_revoked",
            |gatepost, _| {
                gatepost.run_well(&["client", "revoke", "conf2"], "");
            },
        ),
        (
            "ended: the user's consent",
            "consent_withdrawn",
            |gatepost, _| withdraw(gatepost),
        ),
        (
            "ended: all that this user signed in to",
            "user_revoked",
            |gatepost, _| {
                gatepost.run_well(&["user", "revoke", "alice"], "");
            },
        ),
        (
            "ended: all that this installation gave",
            "everything_revoked",
            |gatepost, _| {
                gatepost.run_well(&["revoke", "--everything"], "");
            },
        ),
    ];
    for (ended, event, end) in endings {
        let tokens = CONF2.tokens(&gatepost, &mut browser, OFFLINE);
        let (good, text) = explained(&gatepost, access(&tokens));
        assert!(good, "{text}");
        text.assert_says("it is alive");
        text.assert_says("client_id: conf2");
        end(&gatepost, access(&tokens));
        let (good, text) = explained(&gatepost, access(&tokens));
        assert!(
            !good && text.contains("it is over") && text.contains(ended) && text.contains(event),
            "{text}"
        );
        let fails = text
            .lines()
            .filter(|line| line.starts_with("fails"))
            .count();
        assert_eq!(fails, 2, "nothing else ended: {text}");
        assert_eq!(
            CONF2.introspect(&gatepost, access(&tokens))["active"],
            false,
            "{event}"
        );
        gatepost.settle();
        browser = signed_in(&gatepost);
    }
    // A family that a replay ended, and a session that a sign-out ended.
    let first = REUSE.tokens(
        &gatepost,
        &mut browser,
        "openid profile offline_access orders.read",
    );
    assert!(explained(&gatepost, refresh(&first)).0);
    REUSE.revoke(&gatepost, refresh(&first));
    let (good, text) = explained(&gatepost, refresh(&first));
    assert!(!good, "{text}");
    assert!(text.contains("GP1223"), "{text}");
    text.assert_says("grant_revoked at");
    let tokens = PUB1.tokens(&gatepost, &mut browser, "openid profile");
    let sessions: Value =
        serde_json::from_str(&gatepost.run_well(&["session", "list", "--json"], "")).unwrap();
    for session in sessions.as_array().unwrap() {
        gatepost.run_well(&["session", "end", session["sid"].as_str().unwrap()], "");
    }
    let (good, text) = explained(&gatepost, access(&tokens));
    assert!(!good, "{text}");
    text.assert_says("ended: the session");
    text.assert_says("session_ended at");
    let id_token = tokens["id_token"].as_str().unwrap();
    assert!(explained(&gatepost, id_token).1.contains("no access token"));
    for nobodys in "gpa_nonsense gpr_nonsense x eyJhbGciOiJSUzI1NiJ9.e30.AAAA".split(' ') {
        assert!(!explained(&gatepost, nobodys).0, "{nobodys}");
    }
}

#[test]
fn codes_and_requests_are_found_and_tokens_kept_off_the_command_line() {
    let (gatepost, mut browser) = start();
    for (code, told) in [
        ("gp1105", "Register exactly this URI"),
        ("gp1480", "Where the log says skipped, the browser says why"),
        ("gp1481", "another key was first"),
        ("gp1482", "the proof is by another key"),
    ] {
        let (good, text) = said(&gatepost.run(&["explain", code], ""));
        assert!(good && text.contains(&code.to_uppercase()), "{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").assert_says(told);
    }
    let tokens = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let answer = CONF1.refresh(&gatepost, refresh(&tokens));
    let id = answer.header("x-request-id").unwrap();
    let (good, text) = said(&gatepost.run(&["explain", "request", id], ""));
    assert!(good, "{text}");
    text.assert_says("refreshed");
    text.assert_says(&format!("journalctl -u gatepost --grep 'id={id}'"));
    let (good, text) = said(&gatepost.run(&["explain", "request", "0000000000000000"], ""));
    assert!(good && text.contains("No audit event"), "{text}");
    for input in [" \n", &"grant_type=".repeat(12_000)] {
        let output = gatepost.explain(input);
        assert!(output.status.code() == Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("128 KiB"));
    }
    // What is judged elsewhere is not called damaged.
    let userinfo = format!(
        "GET /connect/userinfo HTTP/1.1\nAuthorization: Bearer {}",
        access(&tokens)
    );
    for input in [
        "client_id=conf1&response_type=code&scope=openid",
        &userinfo,
        "DPoP: eyJhbGciOiJFUzI1NiJ9.e30.AAAA",
    ] {
        let output = gatepost.explain(input);
        assert_eq!(output.status.code(), Some(2), "{input}");
        let (_, text) = said(&output);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.assert_says("neither a token nor a request to /connect/token");
        text.assert_says_not("damaged");
    }
    for (what, rule) in [
        (access(&tokens), "standard input"),
        (refresh(&tokens), "standard input"),
        ("web", "WHAT must be"),
    ] {
        let output = gatepost.run(&["explain", what], "");
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(rule));
    }
}

#[test]
fn a_parameter_that_was_sent_twice_is_named() {
    let gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&document());
    let path = authorize_path("conf1", RP1, &[("nonce", "a"), ("nonce", "b")]);
    let told = gatepost.run(&["explain", &format!("{}{path}", gatepost.base_url)], "");
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("GP1002"), "{told}");
    told.assert_says("(nonce)");
}
