//! Requests that the browser changes, that are long, that lack something, or that ask for more than
//! a code.

use std::collections::BTreeMap;

use serde_json::json;

use super::scene::{SCOPE, Suite, assert_error, code_in, random_text, request_uri};
use crate::support::flow::{LEFT_OUT, authorize_path, decode_jwt, text};
use crate::support::gatepost::RP1;

/// What comes back where the browser brings further parameters beside the `request_uri`, and the
/// claims of the ID token.
fn beside(
    pushed_state: &str,
    further: &[(&str, &str)],
) -> (BTreeMap<String, String>, serde_json::Value) {
    let mut suite = Suite::start();
    let pushed = suite.push(suite.first).with("state", pushed_state).send();
    let path = suite.authorize_path(suite.first.client_id, &request_uri(&pushed), further);
    let answer = suite.open(&path);
    let code = code_in(&suite, &answer, RP1);
    let redeemed = suite.redemption(suite.first, &code).send();
    let tokens = suite.assert_tokens(suite.first, &redeemed);
    assert_eq!(suite.userinfo(&tokens).status, 200);
    let id_token = decode_jwt(text(&tokens, "id_token")).1;
    (answer.query(), id_token)
}

#[test]
fn ensure_different_nonce_inside_and_outside_request_object() {
    let (_, id_token) = beside("inside", &[("nonce", "outside")]);
    assert_eq!(id_token["nonce"], json!("a-nonce-of-the-suite"));
}

#[test]
fn ensure_different_state_inside_and_outside_request_object() {
    let (query, _) = beside("inside", &[("state", "outside")]);
    assert_eq!(query["state"], "inside");
}

#[test]
fn state_only_outside_request_object_not_used() {
    let (query, id_token) = beside(LEFT_OUT, &[("state", "outside")]);
    assert!(!query.contains_key("state"));
    assert_eq!(id_token.get("s_hash"), None);
}

#[test]
fn ensure_authorization_request_with_long_nonce() {
    let mut suite = Suite::start();
    let nonce = random_text(384);
    let tokens = suite.tokens(&[("nonce", &nonce)]);
    let id_token = decode_jwt(text(&tokens, "id_token")).1;
    assert_eq!(id_token["nonce"], json!(nonce));
}

#[test]
fn ensure_authorization_request_with_long_state() {
    let mut suite = Suite::start();
    let state = random_text(1_000);
    let pushed = suite.push(suite.first).with("state", &state).send();
    let answer = suite.answer_to(&pushed);
    code_in(&suite, &answer, RP1);
    assert_eq!(answer.query()["state"], state);
}

#[test]
fn ensure_request_object_without_redirect_uri_fails() {
    let suite = Suite::start();
    let pushed = suite
        .push(suite.first)
        .with("redirect_uri", LEFT_OUT)
        .send();
    assert_error(
        &pushed,
        &[400],
        &["invalid_request", "invalid_request_object"],
    );
}

#[test]
fn plain_fapi_tolerate_unregistered_redirect_uri() {
    let suite = Suite::start();
    let address = format!("{RP1}/{}", random_text(10));
    let pushed = suite
        .push(suite.first)
        .with("redirect_uri", &address)
        .send();
    assert_error(
        &pushed,
        &[400],
        &["invalid_request", "invalid_request_object"],
    );
}

#[test]
fn ensure_unsigned_authorization_request_without_using_par_fails() {
    let mut suite = Suite::start();
    let path = authorize_path(suite.first.client_id, RP1, &[("scope", SCOPE)]);
    let answer = suite.open(&path);
    assert!(answer.location().starts_with(RP1), "{}", answer.location());
    let query = answer.query();
    assert_eq!(query["error"], "invalid_request");
    assert_eq!(query["state"], "the-state");
    assert_eq!(query["iss"], suite.op.base_url);
    assert!(!query.contains_key("code"));
}

/// Where requests are not signed it asks what `ensure_request_object_without_redirect_uri_fails`
/// asks. Here it is of the other client.
#[test]
fn ensure_redirect_uri_in_authorization_request() {
    let suite = Suite::start();
    let pushed = suite
        .push(suite.second)
        .with("redirect_uri", LEFT_OUT)
        .send();
    assert_error(&pushed, &[400], &["invalid_request"]);
}

fn assert_refuses(response_type: &str) {
    let suite = Suite::start();
    let pushed = suite
        .push(suite.first)
        .with("response_type", response_type)
        .send();
    let errors = [
        "unsupported_response_type",
        "invalid_request",
        "unauthorized_client",
    ];
    assert_error(&pushed, &[400], &errors);
    assert_eq!(pushed.header("location"), None);
}

#[test]
fn ensure_response_type_code_idtoken_fails() {
    assert_refuses("code id_token");
}

#[test]
fn ensure_response_type_token_fails() {
    assert_refuses("token");
}
