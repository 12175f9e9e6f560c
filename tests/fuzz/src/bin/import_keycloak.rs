//! Exports of Keycloak. What is left out is told, and no secret is. What comes of it is a document
//! that can be judged.
#![no_main]

use gatepost::import::keycloak;
use gatepost_fuzz::{assert_importable, assert_untold};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const SECRETS: [&str; 5] = [
    "secret",
    "secretData",
    "clientSecret",
    "privateKey",
    "credentials",
];

fuzz_target!(|data: &[u8]| {
    let Ok(realm) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let mut import = match keycloak::read(&realm) {
        Ok(import) => import,
        Err(error) => return assert_untold(&[error], &realm, &SECRETS),
    };
    import.trust_addresses();
    assert_importable(import, &realm, &SECRETS);
});
