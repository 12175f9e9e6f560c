//! Signed tokens of others (JWS, compact). A token that is read is made of its three parts and of
//! nothing else, so no two texts are one token. Its claims become an access token only as they
//! would be written.
#![no_main]

use gatepost::protocol::keys::jwt::{UnverifiedJws, assemble};
use gatepost::protocol::token::access_token::{AccessToken, JwtForm, ScopeClaim};
use gatepost::protocol::token::assertion;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

const ISSUER: &str = "https://login.example";

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    // A header and claims in clear, or a token as it travels.
    let encoded;
    let text = match text.split_once('\n') {
        Some((header, claims)) => {
            use base64::Engine;
            use base64::engine::general_purpose::URL_SAFE_NO_PAD;
            encoded = format!(
                "{}.{}.AAAA",
                URL_SAFE_NO_PAD.encode(header),
                URL_SAFE_NO_PAD.encode(claims)
            );
            encoded.as_str()
        }
        None => text,
    };
    let Some(jws) = UnverifiedJws::parse(text) else {
        return;
    };
    assert_eq!(assemble(jws.signing_input.clone(), &jws.signature), text);
    if let Some(subject) = assertion::subject(&jws) {
        assert!(!subject.is_empty() && !subject.contains(char::is_control));
    }
    let Some(claims) = jws.unverified_claims() else {
        return;
    };
    // A time that is further away is cut to the last one that there is. None of our tokens has one.
    let is_far = |claim: &Value| {
        claim
            .as_i64()
            .is_some_and(|time| time.unsigned_abs() > 1_000_000_000_000)
    };
    if claims.values().any(is_far) {
        return;
    }
    if let Some(token) = AccessToken::from_verified_claims(&claims, ISSUER) {
        let is_array = claims.get("scope").is_some_and(Value::is_array);
        let scope_claim = if is_array {
            ScopeClaim::Array
        } else {
            ScopeClaim::Text
        };
        let written = token.jwt_claims(JwtForm {
            issuer: ISSUER,
            scope_claim,
            client_as_subject: false,
        });
        let written: Map<String, Value> = serde_json::from_value(json!(written)).unwrap();
        let again = AccessToken::from_verified_claims(&written, ISSUER);
        assert_eq!(again.as_ref(), Some(&token), "{written:?}");
    }
});
