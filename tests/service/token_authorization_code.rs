//! `grant_type=authorization_code`: what a code gives, once, to its own client, and to nobody else.

use std::sync::Barrier;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::flow::{
    LEFT_OUT, VERIFIER, authorize_path, changed, code, issued, redeem, redeem_as, redeem_with,
    request_of, signed_in, text, userinfo, with_clients,
};
use crate::support::gatepost::{CONF2_SECRET, Gatepost, RP1, RP2, RPS, document};
use crate::support::http::{Answer, Browser};
use crate::support::tables::rows_of;
use crate::support::waiting::{all_at_once, until_served};

fn grants(gatepost: &Gatepost, condition: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM grants WHERE {condition}");
    gatepost.database.value(&sql, &[])
}

#[test]
fn a_request_that_lacks_or_repeats_something_is_refused_and_leaves_the_code_usable() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let code = code(&mut browser, &request_of("conf1", &[]));
    let overlong_uri = format!("{RP1}?{}", "a".repeat(2_000));
    let overlong_code = format!("gpc_{}", "a".repeat(8_200));
    let unregistered = "a".repeat(301);
    for (changes, error) in [
        (&[("code", &*overlong_code)][..], "invalid_grant"),
        (
            &[("grant_type", "Authorization_code")],
            "unsupported_grant_type",
        ),
    ] {
        let answer = redeem_with(&gatepost, "conf1", &code, changes);
        answer.assert_refused(400, error, &format!("{changes:?}"));
    }
    for changes in [
        &[("code", LEFT_OUT)][..],
        &[("code", "")],
        &[("code", &code), ("code", &code)],
        &[("code", &code), ("code", "")],
        &[("redirect_uri", LEFT_OUT)],
        &[("redirect_uri", "")],
        &[("redirect_uri", RP1), ("redirect_uri", RP1)],
        &[("redirect_uri", &overlong_uri)],
        &[("code_verifier", VERIFIER), ("code_verifier", VERIFIER)],
        &[("scope", "openid"), ("scope", "openid")],
        &[("grant_type", LEFT_OUT)],
        &[("grant_type", "")],
        &[("grant_type", &unregistered)],
        &[("grant_type", "authorization_code"); 2],
        &[("Code", &code), ("code", LEFT_OUT)],
    ] {
        let answer = redeem_with(&gatepost, "conf1", &code, changes);
        answer.assert_refused(400, "invalid_request", &format!("{changes:?}"));
    }
    assert_eq!(gatepost.database.count("grants"), 0);
    // Unknown parameters and a scope do no harm, repeated or not.
    let harmless = [("scope", "nope"), ("x", "1"), ("x", "2")];
    let answer = redeem_with(&gatepost, "conf1", &code, &harmless);
    assert_eq!(text(&issued(&answer), "scope"), "openid profile");
}

#[test]
fn the_own_client_spends_the_code_when_redirect_uri_or_verifier_is_wrong() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let (short, long, longer) = (&VERIFIER[..42], "a".repeat(129), "a".repeat(9_000));
    let (plus, kelvin, line, nul) = (
        format!("{VERIFIER}+"),
        VERIFIER.replace('c', "\u{212a}"),
        format!("{VERIFIER}\n"),
        format!("{VERIFIER} "),
    );
    let challenge = crate::support::flow::challenge();
    let another = "another-code-verifier-of-more-than-43-characters";
    let cases: Vec<(&str, &str)> = vec![
        ("redirect_uri", "https://rp1.example/other?a=b"),
        ("redirect_uri", "https://rp1.example/cb/"),
        ("redirect_uri", "https://rp1.example/cb?"),
        ("redirect_uri", "https://rp1.example:443/cb"),
        ("redirect_uri", "HTTPS://rp1.example/cb"),
        ("redirect_uri", "https://rp1.example/%63b"),
        ("redirect_uri", " https://rp1.example/cb"),
        ("redirect_uri", RP2),
        ("code_verifier", LEFT_OUT),
        ("code_verifier", ""),
        ("code_verifier", another),
        ("code_verifier", &challenge),
        ("code_verifier", short),
        ("code_verifier", &long),
        ("code_verifier", &longer),
        ("code_verifier", &plus),
        ("code_verifier", &kelvin),
        ("code_verifier", &line),
        ("code_verifier", &nul),
    ];
    let mut descriptions = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let code = code(&mut browser, &request_of("conf1", &[]));
        let answer = redeem_with(&gatepost, "conf1", &code, &[*case]);
        answer.assert_refused(400, "invalid_grant", &format!("{case:?}"));
        descriptions.push(answer.json()["error_description"].clone());
        let revoked = grants(&gatepost, "revoked_at IS NOT NULL");
        assert_eq!(revoked, index as i64 + 1, "{case:?}");
        let answer = redeem(&gatepost, &code);
        answer.assert_refused(400, "invalid_grant", &format!("right after {case:?}"));
    }
    descriptions.dedup();
    assert_eq!(descriptions.len(), 1, "one public text: {descriptions:?}");
    assert_eq!(grants(&gatepost, "revoked_at IS NULL"), 0);
}

#[test]
fn a_wrong_attempt_after_redemption_revokes_what_the_redemption_gave() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    for case in [("redirect_uri", RP2), ("code_verifier", LEFT_OUT)] {
        let code = code(&mut browser, &request_of("conf1", &[]));
        let first = issued(&redeem(&gatepost, &code));
        let ask = || userinfo(&gatepost, text(&first, "access_token"));
        ask().assert_status(200);
        let answer = redeem_with(&gatepost, "conf1", &code, &[case]);
        answer.assert_refused(400, "invalid_grant", case.0);
        ask().assert_status_for(case.0, 401);
    }
}

#[test]
fn a_verifier_where_no_challenge_was_sent_is_refused() {
    let document = with_clients(document(), &[("plain", json!({"require_pkce": false}))]);
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = signed_in(&gatepost);
    let none = [("code_challenge", ""), ("code_challenge_method", "")];
    let without = request_of("plain", &none);
    let unverified = [("code_verifier", LEFT_OUT)];
    for verifier in [VERIFIER, ""] {
        let code = code(&mut browser, &without);
        let answer = redeem_with(&gatepost, "plain", &code, &[("code_verifier", verifier)]);
        answer.assert_refused(400, "invalid_grant", verifier);
        let answer = redeem_with(&gatepost, "plain", &code, &unverified);
        answer.assert_refused(400, "invalid_grant", "spent");
    }
    let fresh = code(&mut browser, &without);
    issued(&redeem_with(&gatepost, "plain", &fresh, &unverified));
    // Sent by choice, the challenge binds all the same.
    let bound = code(&mut browser, &request_of("plain", &[]));
    let answer = redeem_with(&gatepost, "plain", &bound, &unverified);
    answer.assert_refused(400, "invalid_grant", "bound");
}

#[test]
fn a_stranger_gets_nothing_and_leaves_the_code_usable() {
    let document = with_clients(document(), &[("twin", json!({}))]);
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = signed_in(&gatepost);
    let code = code(&mut browser, &request_of("conf1", &[]));
    for redirect_uri in [RP1, RP2] {
        let answer = redeem_as(&gatepost, ("conf2", CONF2_SECRET), redirect_uri, &code);
        answer.assert_refused(400, "invalid_grant", redirect_uri);
    }
    let answer = redeem_with(&gatepost, "twin", &code, &[]);
    answer.assert_refused(400, "invalid_grant", "same redirect_uri, other client");
    let form = [
        ("client_id", "pub1"),
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", RP1),
        ("code_verifier", VERIFIER),
    ];
    let answer = gatepost.post("/connect/token", &[], &form);
    answer.assert_refused(400, "invalid_grant", "public client");
    assert_eq!(gatepost.database.count("grants"), 0);
    let first = issued(&redeem(&gatepost, &code));
    // Nor can a stranger end what it gave.
    redeem_with(&gatepost, "twin", &code, &[]).assert_refused(400, "invalid_grant", "afterwards");
    userinfo(&gatepost, text(&first, "access_token")).assert_status(200);
}

#[test]
fn an_expired_code_writes_nothing_but_its_replay_still_revokes() {
    let brief = json!({"authorization_code_lifetime": 3});
    let document = with_clients(document(), &[("brief", brief)]);
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = signed_in(&gatepost);
    let late = code(&mut browser, &request_of("brief", &[]));
    sleep(Duration::from_millis(3_100));
    redeem_with(&gatepost, "brief", &late, &[]).assert_refused(400, "invalid_grant", "expired");
    let answer = redeem_with(&gatepost, "brief", &late, &[("redirect_uri", RP2)]);
    answer.assert_refused(400, "invalid_grant", "and wrong");
    assert_eq!(gatepost.database.count("grants"), 0);
    let prompt = code(&mut browser, &request_of("brief", &[]));
    let first = issued(&redeem_with(&gatepost, "brief", &prompt, &[]));
    sleep(Duration::from_millis(3_100));
    userinfo(&gatepost, text(&first, "access_token")).assert_status(200);
    let answer = redeem_with(&gatepost, "brief", &prompt, &[]);
    answer.assert_refused(400, "invalid_grant", "replayed after expiry");
    userinfo(&gatepost, text(&first, "access_token")).assert_status(401);
}

#[test]
fn a_code_dies_with_what_it_stands_on() {
    let gatepost = Gatepost::start();
    let broken = rows_of(
        "
        UPDATE sessions SET ended_at = clock_timestamp() | UPDATE sessions SET ended_at = NULL
        DELETE FROM sessions                             | SELECT 1
        UPDATE users SET enabled = false                 | UPDATE users SET enabled = true
        UPDATE users SET epoch = epoch + 1               | UPDATE users SET epoch = epoch - 1
        UPDATE clients SET epoch = epoch + 1             | UPDATE clients SET epoch = epoch - 1
        UPDATE installation SET epoch = epoch + 1        | UPDATE installation SET epoch = epoch - 1
    ",
    );
    for (index, [end, mend]) in broken.into_iter().enumerate() {
        let mut browser = signed_in(&gatepost);
        let code = code(&mut browser, &request_of("conf1", &[]));
        gatepost.database.run(end);
        redeem(&gatepost, &code).assert_refused(400, "invalid_grant", end);
        gatepost.database.run(mend);
        redeem(&gatepost, &code).assert_refused(400, "invalid_grant", &format!("spent by: {end}"));
        let revoked = grants(&gatepost, "revoked_at IS NOT NULL");
        assert_eq!(revoked, index as i64 + 1, "{end}");
    }
    let mut browser = signed_in(&gatepost);
    let orphan = code(&mut browser, &request_of("conf1", &[]));
    gatepost.run_sql("DELETE FROM users WHERE username = 'alice'");
    redeem(&gatepost, &orphan).assert_refused(400, "invalid_grant", "user removed");
    assert_eq!(grants(&gatepost, "revoked_at IS NULL"), 0);
}

#[test]
fn a_withdrawn_consent_takes_the_code_in_flight_along() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let code = consented(&mut browser);
    gatepost.run_sql("UPDATE consents SET epoch = epoch + 1");
    let answer = redeem_as(&gatepost, ("conf2", CONF2_SECRET), RP2, &code);
    answer.assert_refused(400, "invalid_grant", "consent withdrawn");
    assert_eq!(grants(&gatepost, "revoked_at IS NOT NULL"), 1);
}

fn consented(browser: &mut Browser) -> String {
    let page = browser.visit(&authorize_path("conf2", RP2, &[]));
    browser.decide(&page, "allow", &["profile"], true).code()
}

#[test]
fn what_the_registration_no_longer_allows_is_not_redeemed() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let asked = request_of("conf1", &[("scope", "openid profile orders.read")]);
    let [narrowed, ungranted, disabled] = [(); 3].map(|()| code(&mut browser, &asked));
    let with = |changes: Value| {
        let mut changed = document();
        for (name, value) in changes.as_object().unwrap() {
            changed["clients"][0][name] = value.clone();
        }
        gatepost.apply(&changed);
    };
    with(json!({"scope": "openid profile"}));
    redeem(&gatepost, &narrowed).assert_refused(400, "invalid_grant", "scope taken away");
    with(json!({"grant_types": ["client_credentials"], "response_types": []}));
    let answer = redeem(&gatepost, &ungranted);
    answer.assert_refused(400, "unauthorized_client", "grant type taken away");
    with(json!({"enabled": false}));
    redeem(&gatepost, &disabled).assert_refused(401, "invalid_client", "client disabled");
    gatepost.apply(&document());
    redeem(&gatepost, &narrowed).assert_refused(400, "invalid_grant", "spent");
}

#[test]
fn a_restart_forgets_neither_codes_nor_what_was_redeemed() {
    let mut gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let [used, held] = [(); 2].map(|()| code(&mut browser, &request_of("conf1", &[])));
    let first = issued(&redeem(&gatepost, &used));
    gatepost.stop();
    gatepost.serve();
    userinfo(&gatepost, text(&first, "access_token")).assert_status(200);
    redeem(&gatepost, &used).assert_refused(400, "invalid_grant", "redeemed before");
    userinfo(&gatepost, text(&first, "access_token")).assert_status(401);
    issued(&redeem(&gatepost, &held));
}

#[test]
fn one_kind_of_handle_is_never_taken_for_another() {
    let by_reference = json!({"access_token_type": "reference"});
    let document = with_clients(document(), &[("byref", by_reference)]);
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = signed_in(&gatepost);
    let first = code(&mut browser, &request_of("byref", &[]));
    let tokens_by_reference = issued(&redeem_with(&gatepost, "byref", &first, &[]));
    let second = code(&mut browser, &request_of("conf1", &[]));
    let jwts = issued(&redeem(&gatepost, &second));
    let reference = text(&tokens_by_reference, "access_token");
    let jwt = text(&jwts, "access_token");
    assert!(reference.starts_with("gpa_"));
    let fresh = code(&mut browser, &request_of("byref", &[]));
    let sealed = fresh.trim_start_matches("gpc_");
    let cookie = browser.cookies.values().next().unwrap().clone();
    let renamed = [
        format!("gpc_{}", reference.trim_start_matches("gpa_")),
        format!("gpr_{sealed}"),
        format!("gpd_{sealed}"),
        sealed.to_owned(),
        format!("{fresh}A"),
        fresh[..fresh.len() - 1].to_owned(),
        format!("GPC_{sealed}"),
        format!("{fresh}="),
        format!(" {fresh}"),
        format!("gpc_{}", sealed.chars().rev().collect::<String>()),
        String::from("gpc_"),
        String::from("garbage"),
        String::from("gpc_\u{e9}"),
        cookie,
    ];
    let others = [reference, jwt, text(&jwts, "id_token")];
    for wrong in others.into_iter().chain(renamed.iter().map(String::as_str)) {
        redeem_with(&gatepost, "byref", wrong, &[]).assert_refused(400, "invalid_grant", wrong);
    }
    let as_token = format!("gpa_{sealed}");
    let (id_token, longer) = (text(&jwts, "id_token"), format!("{reference}A"));
    for wrong in [&*fresh, &as_token, id_token, &longer, &renamed[0]] {
        let answer = userinfo(&gatepost, wrong);
        answer.assert_refused(401, "invalid_token", wrong);
    }
    issued(&redeem_with(&gatepost, "byref", &fresh, &[]));
}

#[test]
fn of_sixteen_parallel_redemptions_exactly_one_succeeds_and_its_tokens_are_revoked() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    for round in 0..100 {
        let code = code(&mut browser, &request_of("conf1", &[]));
        let gate = Barrier::new(16);
        let answers = all_at_once(16, |_| {
            gate.wait();
            until_served(|| redeem(&gatepost, &code))
        });
        let (issued, refused): (Vec<&Answer>, Vec<&Answer>) =
            answers.iter().partition(|answer| answer.status == 200);
        assert_eq!(issued.len(), 1, "round {round}");
        for refused in refused {
            refused.assert_refused(400, "invalid_grant", &format!("round {round}"));
        }
        assert_eq!(grants(&gatepost, "revoked_at IS NULL"), 0, "round {round}");
        let told = userinfo(&gatepost, text(&issued[0].json(), "access_token"));
        told.assert_status_for(format!("round {round}"), 401);
    }
    assert_eq!(gatepost.database.count("grants"), 100);
}

#[test]
fn a_public_client_redeems_by_its_name_and_verifier_alone() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let asked = authorize_path("pub1", RPS, &[("scope", "openid")]);
    let fresh = |browser: &mut Browser| code(browser, &asked);
    let usual = |code: &str, changes: &[(&str, &str)]| {
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", "pub1"),
            ("code", code),
            ("redirect_uri", RPS),
            ("code_verifier", VERIFIER),
        ];
        gatepost.post("/connect/token", &[], &changed(&form, changes))
    };
    let code = fresh(&mut browser);
    usual(&code, &[("client_id", LEFT_OUT)]).assert_refused(400, "invalid_client", "nobody");
    let answer = usual(&code, &[("client_id", "conf1")]);
    answer.assert_refused(400, "invalid_client", "a confidential name");
    usual(&code, &[("client_secret", "x")]).assert_refused(400, "invalid_client", "a secret");
    issued(&usual(&code, &[]));
    let code = fresh(&mut browser);
    let answer = usual(&code, &[("code_verifier", LEFT_OUT)]);
    answer.assert_refused(400, "invalid_grant", "no verifier");
    usual(&code, &[]).assert_refused(400, "invalid_grant", "spent");
}

#[test]
fn a_plain_challenge_is_the_verifier_itself_and_only_for_clients_that_may() {
    let document = with_clients(document(), &[("old", json!({"allow_plain_pkce": true}))]);
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = signed_in(&gatepost);
    let (shortest, longest) = ("v".repeat(43), "-._~".repeat(32));
    for verifier in [VERIFIER, &shortest, &longest] {
        let challenge = [("code_challenge", verifier), ("code_challenge_method", "")];
        let asked = request_of("old", &challenge);
        let right = code(&mut browser, &asked);
        let answer = redeem_with(&gatepost, "old", &right, &[("code_verifier", verifier)]);
        issued(&answer);
        let wrong = code(&mut browser, &asked);
        let other = format!("{}x", &verifier[..42]);
        let answer = redeem_with(&gatepost, "old", &wrong, &[("code_verifier", &other)]);
        answer.assert_refused(400, "invalid_grant", verifier);
    }
    // The challenge of one method is not the verifier of the other.
    let hashed = crate::support::flow::challenge();
    let plain = [
        ("code_challenge", &*hashed),
        ("code_challenge_method", "plain"),
    ];
    let plain = code(&mut browser, &request_of("old", &plain));
    let answer = redeem_with(&gatepost, "old", &plain, &[]);
    answer.assert_refused(400, "invalid_grant", "the text behind the hash");
    let s256 = code(&mut browser, &request_of("old", &[]));
    let answer = redeem_with(&gatepost, "old", &s256, &[("code_verifier", &hashed)]);
    answer.assert_refused(400, "invalid_grant", "the hash itself");
    let refused = browser.get(&request_of("conf1", &[("code_challenge_method", "plain")]));
    assert_eq!(refused.query()["error"], "invalid_request");
}

#[test]
fn verifiers_of_43_and_128_characters_pass() {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use sha2::{Digest, Sha256};
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    for verifier in ["v".repeat(43), "-._~".repeat(32)] {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let asked = request_of("conf1", &[("code_challenge", &challenge)]);
        let code = code(&mut browser, &asked);
        let verified = [("code_verifier", &*verifier)];
        issued(&redeem_with(&gatepost, "conf1", &code, &verified));
    }
}

#[test]
fn a_replay_revokes_whatever_else_is_wrong_with_it() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let used = code(&mut browser, &request_of("conf1", &[]));
    let tokens = issued(&redeem(&gatepost, &used));
    let elsewhere = [("resource", "https://nobody.example")];
    let again = redeem_with(&gatepost, "conf1", &used, &elsewhere);
    again.assert_refused(400, "invalid_target", "a foreign resource");
    userinfo(&gatepost, text(&tokens, "access_token")).assert_status(401);
}
