//! What a well-behaved client sees: discovery, the whole flow, and what may be left out or sent in
//! another order.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::scene::{
    DUMMY, Resource, SCOPE, Suite, assert_error, code_in, random_text, request_uri,
};
use crate::support::flow::{LEFT_OUT, decode_jwt, names, sign_in, text};
use crate::support::gatepost::{ALICE_PASSWORD, RP1};
use crate::support::jwt::{half_hash, verified};
use crate::support::proofs::thumbprint;

fn has(metadata: &Value, member: &str, value: &str) -> bool {
    let values = metadata[member].as_array();
    values.is_some_and(|values| values.contains(&json!(value)))
}

pub(super) fn assert_discovery(suite: &Suite) {
    let metadata = suite.op.get("/.well-known/openid-configuration").json();
    assert_eq!(metadata["issuer"], json!(suite.op.base_url));
    for (member, value) in [
        ("response_types_supported", "code"),
        ("grant_types_supported", "authorization_code"),
        ("grant_types_supported", "client_credentials"),
        ("grant_types_supported", "refresh_token"),
        ("scopes_supported", "openid"),
        ("subject_types_supported", "public"),
        ("code_challenge_methods_supported", "S256"),
        ("token_endpoint_auth_methods_supported", "private_key_jwt"),
        ("token_endpoint_auth_signing_alg_values_supported", "ES256"),
        ("token_endpoint_auth_signing_alg_values_supported", "EdDSA"),
        ("id_token_signing_alg_values_supported", "ES256"),
        ("dpop_signing_alg_values_supported", "ES256"),
        ("dpop_signing_alg_values_supported", "EdDSA"),
    ] {
        assert!(has(&metadata, member, value), "{member}: {metadata}");
    }
    assert_eq!(
        metadata["authorization_response_iss_parameter_supported"],
        json!(true)
    );
    let required = metadata.get("require_pushed_authorization_requests");
    assert!(required.is_none_or(Value::is_boolean));
    assert!(!has(
        &metadata,
        "dpop_signing_alg_values_supported",
        "RS256"
    ));
    let endpoints = "authorization_endpoint token_endpoint pushed_authorization_request_endpoint
                     jwks_uri";
    for endpoint in endpoints.split_whitespace() {
        let address = text(&metadata, endpoint);
        assert!(address.starts_with(&suite.op.base_url), "{endpoint}");
    }
}

#[test]
fn discovery_end_point_verification() {
    assert_discovery(&Suite::start());
}

#[test]
fn happy_flow() {
    let mut suite = Suite::start();
    // The first client, without a proof at the push.
    let code = suite.code(&[]);
    let answer = suite.redemption(suite.first, &code).send();
    let tokens = suite.assert_tokens(suite.first, &answer);
    let id_token = decode_jwt(text(&tokens, "id_token")).1;
    assert_eq!(id_token["nonce"], json!("a-nonce-of-the-suite"));
    assert_eq!(id_token.get("sid"), None, "no sign-out uses it");
    let access_token = text(&tokens, "access_token");
    assert_eq!(id_token["at_hash"], json!(half_hash("ES256", access_token)));
    let (header, claims) = verified(&suite.op, access_token);
    assert_eq!(text(&header, "alg"), "ES256");
    assert_eq!(
        claims["cnf"],
        json!({"jkt": thumbprint(&suite.first.prover)})
    );
    assert_eq!(suite.userinfo(&tokens).json()["sub"], id_token["sub"]);
    // The second one by `dpop_jkt` alone, with a nonce of 43 characters.
    let nonce = random_text(43);
    let pushed = suite
        .push(suite.second)
        .with("nonce", &nonce)
        .with("dpop_jkt", &thumbprint(&suite.second.prover))
        .send();
    let path = suite.authorize_path(suite.second.client_id, &request_uri(&pushed), &[]);
    let answer = suite.open(&path);
    let code = code_in(&suite, &answer, DUMMY);
    assert_eq!(answer.query()["state"], "a-state-of-the-suite");
    let answer = suite.redemption(suite.second, &code).send();
    let tokens = suite.assert_tokens(suite.second, &answer);
    assert_eq!(
        decode_jwt(text(&tokens, "id_token")).1["nonce"],
        json!(nonce)
    );
    // Each token is good for the holder of its key alone.
    let access_token = text(&tokens, "access_token");
    let ask = |party, scheme| {
        let resource = Resource {
            scheme,
            ..Resource::userinfo(party, access_token)
        };
        suite
            .resource(&resource, &|proof| vec![proof.header_line()])
            .status
    };
    assert_eq!(ask(suite.second, "DPoP"), 200);
    assert_eq!(ask(suite.first, "DPoP"), 401);
    assert_eq!(ask(suite.second, "Bearer"), 401);
}

#[test]
fn user_rejects_authentication() {
    let mut suite = Suite::start();
    let state = random_text(128);
    for is_second in [false, true] {
        let party = if is_second { suite.second } else { suite.first };
        let (client_id, redirect_uri) = (party.client_id, party.redirect_uri);
        let pushed = suite
            .push(party)
            .with("state", &state)
            .with("prompt", "consent")
            .send();
        let path = suite.authorize_path(client_id, &request_uri(&pushed), &[]);
        let mut page = suite.browser.visit(&path);
        if !is_second {
            let signed = sign_in(&mut suite.browser, &page, "alice", ALICE_PASSWORD);
            page = suite.browser.follow(signed);
        }
        let answer = suite.browser.decide(&page, "deny", &[], false);
        assert!(answer.location().starts_with(redirect_uri));
        let query = answer.query();
        assert_eq!(query["error"], "access_denied");
        assert_eq!(query["state"], state);
        assert_eq!(query["iss"], suite.op.base_url);
        let usual = ["error", "error_description", "iss", "state"];
        let of_address = ["dummy1", "dummy2"];
        let mut expected: BTreeSet<&str> = usual.into_iter().collect();
        if is_second {
            expected.extend(of_address);
            assert_eq!((&*query["dummy1"], &*query["dummy2"]), ("lorem", "ipsum"));
        }
        let seen: BTreeSet<&str> = query.keys().map(String::as_str).collect();
        assert_eq!(seen, expected);
    }
}

#[test]
fn ensure_authorization_request_without_state_success() {
    let mut suite = Suite::start();
    let pushed = suite.push(suite.first).with("state", LEFT_OUT).send();
    let answer = suite.answer_to(&pushed);
    let code = code_in(&suite, &answer, RP1);
    assert!(!answer.query().contains_key("state"));
    let answer = suite.redemption(suite.first, &code).send();
    let tokens = suite.assert_tokens(suite.first, &answer);
    let id_token = decode_jwt(text(&tokens, "id_token")).1;
    assert_eq!(id_token.get("s_hash"), None);
    assert_eq!(suite.userinfo(&tokens).status, 200);
}

#[test]
fn ensure_authorization_request_without_nonce_success() {
    let mut suite = Suite::start();
    let tokens = suite.tokens(&[("nonce", LEFT_OUT)]);
    let id_token = decode_jwt(text(&tokens, "id_token")).1;
    assert_eq!(id_token.get("nonce"), None);
}

#[test]
fn ensure_authorization_request_with_64_char_nonce_success() {
    let mut suite = Suite::start();
    let nonce = random_text(64);
    let tokens = suite.tokens(&[("nonce", &nonce)]);
    let id_token = decode_jwt(text(&tokens, "id_token")).1;
    assert_eq!(id_token["nonce"], json!(nonce));
}

#[test]
fn ensure_other_scope_order_succeeds() {
    let mut suite = Suite::start();
    let words: Vec<&str> = SCOPE.split(' ').rev().collect();
    let tokens = suite.tokens(&[("scope", &words.join(" "))]);
    let granted: BTreeSet<&str> = text(&tokens, "scope").split(' ').collect();
    assert_eq!(granted, SCOPE.split(' ').collect());
}

#[test]
fn test_claims_parameter_identity_claims() {
    let mut suite = Suite::start();
    let metadata = suite.op.get("/.well-known/openid-configuration").json();
    assert_eq!(metadata["claims_parameter_supported"], json!(true));
    // Each claim in another form, and some that nobody has.
    let forms = [
        json!(null),
        json!({"essential": true}),
        json!({"essential": false}),
    ];
    let mut asked = serde_json::Map::new();
    let supported = metadata["claims_supported"].as_array().unwrap();
    for (index, claim) in supported.iter().enumerate() {
        let form = forms[index % forms.len()].clone();
        asked.insert(claim.as_str().unwrap().to_owned(), form);
    }
    asked.insert(random_text(12), json!({"essential": true}));
    asked.insert(random_text(12), json!(null));
    let claims = json!({"id_token": asked, "userinfo": asked}).to_string();
    let tokens = suite.tokens(&[("claims", &claims), ("scope", "openid profile email")]);
    let id_token = decode_jwt(text(&tokens, "id_token")).1;
    let answer = suite.userinfo(&tokens);
    assert_eq!(answer.status, 200);
    let told = answer.json();
    for claim in "name given_name family_name email email_verified".split(' ') {
        assert!(id_token.get(claim).is_some(), "{claim}: {id_token}");
        assert!(told.get(claim).is_some(), "{claim}: {told}");
    }
    assert!(
        names(&told)
            .iter()
            .all(|name| supported.contains(&json!(name)))
    );
    // What is no claims parameter is refused at the push.
    let refused = suite.push(suite.first).with("claims", "[]").send();
    assert_error(&refused, &[400], &["invalid_request"]);
}
