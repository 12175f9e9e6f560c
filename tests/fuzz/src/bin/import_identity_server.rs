//! Dumps of IdentityServer. What is left out is told, and no secret is. What comes of it is a
//! document that can be judged.
#![no_main]

use std::collections::BTreeMap;

use gatepost::import::identity_server;
use gatepost_fuzz::{NOW, assert_importable, assert_untold};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const SECRETS: [&str; 5] = [
    "ClientSecrets",
    "ApiSecrets",
    "ApiResourceSecrets",
    "PasswordHash",
    "AspNetUserTokens",
];

fuzz_target!(|data: &[u8]| {
    let Ok(dump) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let import = match identity_server::read(dump.clone(), BTreeMap::new(), NOW) {
        Ok(import) => import,
        Err(error) => return assert_untold(&[error], &dump, &SECRETS),
    };
    assert_importable(import, &dump, &SECRETS);
});
