//! Proofs that are good, and codes that are bound to a key.

use serde_json::{Value, json};

use super::scene::{Resource, Suite, assert_error, code_in};
use crate::support::flow::text;
use crate::support::gatepost::RP1;
use crate::support::proofs::thumbprint;
use crate::support::signer::Signer;

/// A whole flow in which all proofs, at the push as well, have these claims changed.
fn flow_with(changes: &dyn Fn(&Suite) -> Vec<(&'static str, Value)>) {
    let mut suite = Suite::start();
    let push = suite.push(suite.first).proving(&suite.first.prover);
    let push = changes(&suite)
        .into_iter()
        .fold(push, |call, (name, value)| call.proof_with(name, value));
    let pushed = push.send();
    let answer = suite.answer_to(&pushed);
    let code = code_in(&suite, &answer, RP1);
    let redemption = suite.redemption(suite.first, &code);
    let redemption = changes(&suite)
        .into_iter()
        .fold(redemption, |call, (name, value)| {
            call.proof_with(name, value)
        });
    let tokens = suite.assert_tokens(suite.first, &redemption.send());
    let resource = Resource::userinfo(suite.first, text(&tokens, "access_token"));
    let answer = suite.resource(&resource, &|mut proof| {
        super::scene::change(&mut proof.claims, &changes(&suite));
        vec![proof.header_line()]
    });
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn access_token_type_header_case_sensitivity() {
    let mut suite = Suite::start();
    let tokens = suite.tokens(&[]);
    for scheme in ["dpOp", "dpop", "DPOP"] {
        let resource = Resource {
            scheme,
            ..Resource::userinfo(suite.first, text(&tokens, "access_token"))
        };
        let answer = suite.resource(&resource, &|proof| vec![proof.header_line()]);
        assert_eq!(answer.status, 200, "{scheme}: {}", answer.text());
    }
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

/// The module's name says 10 seconds; what it sends is 8.
#[test]
fn ensure_dpopproof_with_iat_10seconds_after_succeeds() {
    flow_with(&|suite| vec![("iat", json!(suite.now() + 8))]);
}

#[test]
fn ensure_mismatched_dpop_jkt_fails() {
    let suite = Suite::start();
    let other = thumbprint(&Signer::es256("other"));
    let pushed = suite
        .push(suite.first)
        .with("dpop_jkt", &other)
        .proving(&suite.first.prover)
        .send();
    assert_error(&pushed, &[400], &["invalid_request", "invalid_dpop_proof"]);
}

const MISMATCHED: [&str; 3] = ["invalid_request", "invalid_grant", "invalid_dpop_proof"];

#[test]
fn ensure_token_endpoint_fails_with_mismatched_dpop_proof_jkt() {
    let mut suite = Suite::start();
    let pushed = suite.push(suite.first).proving(&suite.first.prover).send();
    let answer = suite.answer_to(&pushed);
    let code = code_in(&suite, &answer, RP1);
    let other = Signer::es256("other");
    let redeemed = suite.redemption(suite.first, &code).proving(&other).send();
    assert_error(&redeemed, &[400], &MISMATCHED);
}

#[test]
fn ensure_token_endpoint_fails_with_mismatched_dpop_jkt() {
    let mut suite = Suite::start();
    let other = thumbprint(&Signer::es256("other"));
    let code = suite.code(&[("dpop_jkt", &other)]);
    let redeemed = suite.redemption(suite.first, &code).send();
    assert_error(&redeemed, &[400], &MISMATCHED);
}

#[test]
fn ensure_dpopproof_at_par_endpoint_binding_success() {
    flow_with(&|_| Vec::new());
}

#[test]
fn ensure_dpop_auth_code_binding_success() {
    let mut suite = Suite::start();
    let pushed = suite
        .push(suite.first)
        .with("dpop_jkt", &thumbprint(&suite.first.prover))
        .proving(&suite.first.prover)
        .send();
    let answer = suite.answer_to(&pushed);
    let code = code_in(&suite, &answer, RP1);
    let answer = suite.redemption(suite.first, &code).send();
    let tokens = suite.assert_tokens(suite.first, &answer);
    assert_eq!(suite.userinfo(&tokens).status, 200);
}
