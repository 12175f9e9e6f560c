//! Registration documents. A refusal says where and why, and tells no secret. A document that is in
//! order, stored and exported, is in order again and the same.
#![no_main]

use std::collections::BTreeMap;

use gatepost::protocol::registration::client_rules::ClientDefaults;
use gatepost::registration::document::{Document, beyond_reading, document, refused_over_http};
use gatepost::registration::plan::{Pruning, RegisteredObject, RegisteredObjects};
use gatepost::registration::references::Stored;
use gatepost::registration::strict_json::parse;
use gatepost_fuzz::assert_untold;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const SECRETS: [&str; 5] = [
    "secrets",
    "client_secret",
    "password",
    "password_hash",
    "totp",
];

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let Ok(value) = parse(text) else {
        return;
    };
    let _ = refused_over_http(&value, true);
    let _ = beyond_reading(&value);
    let pruning = Pruning::of(&value);
    let defaults = ClientDefaults::default();
    let read = match Document::from_json(&value, &defaults, &Stored::default()) {
        Ok(read) => read,
        Err(problems) => {
            assert!(!problems.is_empty());
            let told: Vec<String> = problems.iter().map(|problem| problem.to_string()).collect();
            if let Ok(sent) = serde_json::from_str::<Value>(text) {
                assert_untold(&told, &sent, &SECRETS);
            }
            return;
        }
    };
    let mut registered = RegisteredObjects {
        objects: BTreeMap::new(),
    };
    let mut has_secrets = BTreeMap::new();
    for entry in &read.entries {
        let key = (entry.kind, entry.name.clone());
        let is_kept = entry
            .secrets
            .as_ref()
            .is_some_and(|secrets| !secrets.is_empty());
        has_secrets.insert(key.clone(), is_kept);
        let object = RegisteredObject {
            document: entry.document.clone(),
            client_secret: None,
            secrets: Vec::new(),
        };
        registered.objects.insert(key, object);
    }
    let _ = registered.names(&pruning);
    let exported = document(&registered, &BTreeMap::new()).to_string();
    let exported = parse(&exported).expect("an export can be read");
    let stored = Stored {
        objects: has_secrets,
        ..Stored::default()
    };
    let again = Document::from_json(&exported, &defaults, &stored);
    let again = again.unwrap_or_else(|problems| panic!("the export is refused: {problems:?}"));
    let by_name = |document: &Document| -> BTreeMap<_, _> {
        let entries = document.entries.iter();
        entries
            .map(|entry| ((entry.kind, entry.name.clone()), entry.document.clone()))
            .collect()
    };
    assert_eq!(by_name(&again), by_name(&read));
});
