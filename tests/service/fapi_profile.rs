//! What operators see of a client with `"profile": "fapi2"`. What it may do is in
//! `fapi_modules.rs`.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::gatepost::{Gatepost, document};
use crate::support::signer::{Signer, key_set};

fn bank() -> Value {
    json!({
        "client_id": "bank", "profile": "fapi2", "redirect_uris": ["https://bank.example/cb"], "scope": "openid orders.read",
        "grant_types": ["authorization_code", "client_credentials"], "jwks": key_set(&[&Signer::es256("k")]),
    })
}

fn registered(bank: &Value) -> Value {
    let mut registered = document();
    registered["clients"]
        .as_array_mut()
        .unwrap()
        .push(bank.clone());
    registered
}

#[test]
fn a_test_of_the_client_says_that_it_keeps_the_profile_and_what_to_try() {
    let mut gatepost = Gatepost::start_with(&registered(&bank()), &[]);
    let told = gatepost.run_well(&["client", "test", "bank"], "");
    for part in [
        "it keeps the FAPI 2.0 Security Profile",
        "this client must send PKCE",
        "DPoP proofs with a nonce",
        "/connect/par",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("/connect/authorize?"), "{told}");
    gatepost.set("GATEPOST_PUSHED_REQUESTS", "off");
    let output = gatepost.run(&["client", "test", "bank"], "");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success());
    assert!(told.contains("GATEPOST_PUSHED_REQUESTS is off"), "{told}");
}

#[test]
fn what_contradicts_the_profile_is_refused_with_its_key_and_what_was_registered_stays() {
    let gatepost = Gatepost::start_with(&registered(&bank()), &[]);
    let before = gatepost.run_well(&["export"], "");
    for (key, value) in [
        ("require_pkce", json!(false)),
        ("dpop_bound_access_tokens", json!(false)),
        ("id_token_signed_response_alg", json!("RS256")),
        ("authorization_code_lifetime", json!("2m")),
    ] {
        let mut bank = bank();
        bank[key] = value;
        let document = json!({"clients": [bank]}).to_string();
        let output = gatepost.run(&["apply", "-"], &document);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{key}");
        said.assert_says(&format!("clients[0] (bank).{key}: must be"));
    }
    // What an export says can be applied, and changes nothing.
    gatepost.run_well(&["apply", "-"], &before);
    assert_eq!(gatepost.run_well(&["export"], ""), before);
}
