//! The modules that are left for `fapi_client_credentials_grant`, whose protected resource is the
//! SCIM API.

use serde_json::{Value, json};

use super::client_and_code::{assert_assertions_refused, assert_rs256_refused, other_client};
use super::first::assert_discovery;
use super::refused_proofs::assert_judged;
use super::scene::{Party, Resource, Suite, assert_error, change};
use crate::support::flow::text;

const USERS: &str = "/scim/v2/Users";

fn tokens(suite: &Suite, party: &Party) -> Value {
    suite.assert_tokens(party, &suite.client_credentials(party).send())
}

fn users<'r>(party: &'r Party, tokens: &'r Value) -> Resource<'r> {
    Resource {
        path: USERS,
        ..Resource::userinfo(party, text(tokens, "access_token"))
    }
}

/// A token and its use, where these claims of both proofs are changed.
fn flow_with(changes: &dyn Fn(&Suite) -> Vec<(&'static str, Value)>) {
    let suite = Suite::start();
    let asked = changes(&suite).into_iter().fold(
        suite.client_credentials(suite.first),
        |call, (name, value)| call.proof_with(name, value),
    );
    let tokens = suite.assert_tokens(suite.first, &asked.send());
    let answer = suite.resource(&users(suite.first, &tokens), &|mut proof| {
        change(&mut proof.claims, &changes(&suite));
        vec![proof.header_line()]
    });
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn discovery_end_point_verification() {
    assert_discovery(&Suite::start());
}

#[test]
fn happy_flow() {
    let suite = Suite::start();
    for party in [suite.first, suite.second] {
        let tokens = tokens(&suite, party);
        assert!(tokens.get("id_token").is_none() && tokens.get("refresh_token").is_none());
        let ask = |party, scheme| {
            let resource = Resource {
                scheme,
                ..users(party, &tokens)
            };
            suite
                .resource(&resource, &|proof| vec![proof.header_line()])
                .status
        };
        assert_eq!(ask(party, "DPoP"), 200);
        assert_eq!(ask(party, "Bearer"), 401);
        let other = match party.client_id == suite.first.client_id {
            true => suite.second,
            false => suite.first,
        };
        assert_eq!(ask(other, "DPoP"), 401);
    }
}

#[test]
fn access_token_type_header_case_sensitivity() {
    let suite = Suite::start();
    let tokens = tokens(&suite, suite.first);
    let resource = Resource {
        scheme: "dpOp",
        ..users(suite.first, &tokens)
    };
    let answer = suite.resource(&resource, &|proof| vec![proof.header_line()]);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn check_dpop_proof_nbf_exp() {
    flow_with(&|suite| {
        let now = suite.now();
        vec![("nbf", json!(now)), ("exp", json!(now + 300))]
    });
}

#[test]
fn ensure_dpopproof_with_iat_10seconds_before_succeeds() {
    flow_with(&|suite| vec![("iat", json!(suite.now() - 10))]);
}

#[test]
fn ensure_dpopproof_with_iat_10seconds_after_succeeds() {
    flow_with(&|suite| vec![("iat", json!(suite.now() + 8))]);
}

#[test]
fn ensure_client_id_in_token_endpoint() {
    let suite = Suite::start();
    let asked = suite
        .client_credentials(suite.first)
        .with("client_id", suite.second.client_id)
        .asserting(other_client(&suite))
        .send();
    assert_error(&asked, &[400, 401], &["invalid_client", "invalid_grant"]);
}

#[test]
fn ensure_holder_of_key_required() {
    let suite = Suite::start();
    let asked = suite.client_credentials(suite.first).unproved().send();
    assert_error(&asked, &[400], &["invalid_request", "invalid_dpop_proof"]);
}

#[test]
fn ensure_signed_client_assertion_with_rs256_fails() {
    let suite = Suite::start();
    assert_rs256_refused(&suite, &|| suite.client_credentials(suite.first));
}

fn assert_refused_with(case: &str) {
    let suite = Suite::start();
    let ask = || suite.client_credentials(suite.first);
    assert_assertions_refused(&suite, &ask, case);
    suite.assert_tokens(suite.first, &ask().send());
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
fn dpop_negative_tests() {
    let suite = Suite::start();
    let tokens = tokens(&suite, suite.first);
    assert_judged(&suite, USERS, text(&tokens, "access_token"));
}
