//! How the client proves itself at the token endpoint, and what a code and a refresh token are good
//! for.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::scene::{Call, Suite, assert_error, change, code_in};
use crate::support::flow::{LEFT_OUT, decode_jwt, sign_in, text};
use crate::support::gatepost::{ALICE_PASSWORD, RP1};
use crate::support::signer::Signer;

const UNPROVEN: [&str; 2] = ["invalid_client", "invalid_request"];

/// Every case of a client assertion at the token endpoint: what the module sends, and what it takes
/// for an answer.
pub(super) fn assert_assertions_refused<'s>(
    suite: &'s Suite,
    ask: &dyn Fn() -> Call<'s>,
    case: &str,
) {
    let now = suite.now();
    let first = suite.first;
    let changed = |name: &str, value: Value| suite.assertion(first, &[(name, value)]);
    let refused = match case {
        "none" => ask().unasserted(),
        "expired" => ask().asserting(changed("exp", json!(now - 300))),
        "audience" => ask().asserting(changed("aud", json!("https://other.example/token"))),
        "subject" => ask().asserting(changed("sub", json!(null))),
        _ => panic!("{case}"),
    };
    assert_error(&refused.send(), &[400, 401], &UNPROVEN);
}

/// The second client's name, and an assertion in its name by the first one's key.
pub(super) fn other_client(suite: &Suite) -> String {
    let claims = suite.assertion_claims(suite.second);
    suite.first.key.sign(&claims)
}

/// The suite skips this one unless the client has an RSA key, which the profile does not take here.
/// So this test asks for what the module would: a key for RS256 is not registered, and an assertion
/// that says RS256 is refused.
pub(super) fn assert_rs256_refused<'s>(suite: &'s Suite, ask: &dyn Fn() -> Call<'s>) {
    let rsa = Signer::rs256("first");
    let by_rsa = ask().asserting(rsa.sign(&suite.assertion_claims(suite.first)));
    assert_error(&by_rsa.send(), &[400, 401], &["invalid_client"]);
    let mut registered = json!({
        "client_id": "bank-3", "profile": "fapi2", "redirect_uris": [RP1], "scope": "openid",
        "jwks": {"keys": [rsa.jwk()]},
    });
    let refused = |registered: &Value| {
        let document = json!({"clients": [registered]}).to_string();
        let output = suite.op.run(&["apply", "-"], &document);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = refused(&registered);
    assert!(told.contains("jwks: has no key that fits"), "{told}");
    change(
        &mut registered,
        &[("token_endpoint_auth_signing_alg", json!("RS256"))],
    );
    let told = refused(&registered);
    assert!(told.contains("must be ES256 or EdDSA"), "{told}");
}

#[test]
fn ensure_client_id_in_token_endpoint() {
    let mut suite = Suite::start();
    let code = suite.code(&[]);
    let redeemed = suite
        .redemption(suite.first, &code)
        .with("client_id", suite.second.client_id)
        .asserting(other_client(&suite))
        .send();
    assert_error(&redeemed, &[400, 401], &["invalid_client", "invalid_grant"]);
}

#[test]
fn ensure_holder_of_key_required() {
    let mut suite = Suite::start();
    let code = suite.code(&[]);
    let redeemed = suite.redemption(suite.first, &code).unproved().send();
    assert_error(
        &redeemed,
        &[400],
        &["invalid_request", "invalid_dpop_proof"],
    );
    // The code is as good as before.
    let redeemed = suite.redemption(suite.first, &code).send();
    suite.assert_tokens(suite.first, &redeemed);
}

#[test]
fn ensure_authorization_code_is_bound_to_client() {
    let mut suite = Suite::start();
    let code = suite.code(&[]);
    let redeemed = suite
        .redemption(suite.second, &code)
        .with("redirect_uri", RP1)
        .send();
    assert_error(&redeemed, &[400], &["invalid_grant"]);
}

#[test]
fn attempt_reuse_authorization_code_after_one_second() {
    let mut suite = Suite::start();
    let code = suite.code(&[]);
    let answer = suite.redemption(suite.first, &code).send();
    let tokens = suite.assert_tokens(suite.first, &answer);
    assert_eq!(suite.userinfo(&tokens).status, 200);
    sleep(Duration::from_secs(1));
    let again = suite.redemption(suite.first, &code).send();
    assert_error(&again, &[400], &["invalid_grant"]);
    assert_eq!(suite.userinfo(&tokens).status, 401, "it is revoked");
}

#[test]
fn ensure_token_endpoint_fails_with_expired_auth_code() {
    let mut suite = Suite::start_with_a_clock_of_its_own();
    let code = suite.code(&[]);
    suite.wait(62);
    let redeemed = suite.redemption(suite.first, &code).send();
    assert_error(&redeemed, &[400], &["invalid_grant"]);
}

#[test]
fn ensure_signed_client_assertion_with_rs256_fails() {
    let mut suite = Suite::start();
    let code = suite.code(&[]);
    assert_rs256_refused(&suite, &|| suite.redemption(suite.first, &code));
}

/// The code of a good flow, redeemed with that assertion.
fn assert_refused_with(case: &str) {
    let mut suite = Suite::start();
    let code = suite.code(&[]);
    assert_assertions_refused(&suite, &|| suite.redemption(suite.first, &code), case);
    // It was the assertion alone.
    let redeemed = suite.redemption(suite.first, &code).send();
    suite.assert_tokens(suite.first, &redeemed);
}

#[test]
fn ensure_client_assertion_in_token_endpoint() {
    assert_refused_with("none");
}

#[test]
fn ensure_client_assertion_with_exp_is_5_minutes_in_past_fails() {
    assert_refused_with("expired");
}

#[test]
fn ensure_client_assertion_with_wrong_aud_fails() {
    assert_refused_with("audience");
}

#[test]
fn ensure_client_assertion_with_no_sub_fails() {
    assert_refused_with("subject");
}

#[test]
fn refresh_token() {
    let mut suite = Suite::start();
    let pushed = suite
        .push(suite.first)
        .with("scope", "openid profile offline_access")
        .with("prompt", "consent")
        .send();
    let uri = super::scene::request_uri(&pushed);
    let path = suite.authorize_path(suite.first.client_id, &uri, &[]);
    let page = suite.browser.visit(&path);
    let signed = sign_in(&mut suite.browser, &page, "alice", ALICE_PASSWORD);
    let page = suite.browser.follow(signed);
    let scopes = ["profile", "offline_access"];
    let answer = suite.browser.decide(&page, "allow", &scopes, false);
    let code = code_in(&suite, &answer, RP1);
    let answer = suite.redemption(suite.first, &code).send();
    let tokens = suite.assert_tokens(suite.first, &answer);
    let refresh_token = text(&tokens, "refresh_token").to_owned();
    let refresh = || suite.refresh(suite.first, &refresh_token);
    for _ in 0..2 {
        let refreshed = suite.assert_tokens(suite.first, &refresh().send());
        // It does not rotate.
        let kept = refreshed["refresh_token"].as_str();
        assert!(kept.is_none_or(|kept| kept == refresh_token));
        let claims = |tokens: &Value| decode_jwt(text(tokens, "id_token")).1;
        for claim in ["iss", "sub", "aud", "auth_time"] {
            assert_eq!(claims(&refreshed)[claim], claims(&tokens)[claim], "{claim}");
        }
        assert_ne!(refreshed["access_token"], tokens["access_token"]);
        assert_eq!(suite.userinfo(&refreshed).status, 200);
    }
    let unauthenticated = [
        refresh().unasserted().send(),
        refresh().with("client_id", LEFT_OUT).unasserted().send(),
    ];
    for answer in &unauthenticated {
        let errors = ["invalid_client", "invalid_grant", "invalid_request"];
        assert_error(answer, &[400, 401], &errors);
    }
    let unproved = refresh().unproved().send();
    assert_error(
        &unproved,
        &[400],
        &["invalid_request", "invalid_dpop_proof"],
    );
    // Of the second client it is none.
    let of_other = suite.refresh(suite.second, &refresh_token).send();
    assert_error(&of_other, &[400], &["invalid_grant"]);
    // A confidential client may come with another key (RFC 9449 §5).
    let other = Signer::es256("other");
    let answer = refresh().proving(&other).send();
    suite.assert_tokens(suite.first, &answer);
}
