//! Exports of Keycloak. What is left out is told, and no secret is. What comes of it is a document
//! that can be judged.
#![no_main]

use gatepost::protocol::registration::client_rules::ClientDefaults;
use gatepost::protocol::registration::document::Document;
use gatepost::protocol::registration::import::keycloak;
use gatepost::protocol::registration::references::Stored;
use gatepost::protocol::registration::walker::parse;
use gatepost_fuzz::assert_untold;
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
    let (document, lines) = import.finish();
    assert_untold(&lines, &realm, &SECRETS);
    let document = parse(&document.to_string()).expect("it is JSON");
    let judged = Document::judge(&document, &ClientDefaults::default(), &Stored::default());
    let told: Vec<String> = judged
        .problems
        .iter()
        .map(|problem| problem.to_string())
        .collect();
    assert_untold(&told, &realm, &SECRETS);
});
