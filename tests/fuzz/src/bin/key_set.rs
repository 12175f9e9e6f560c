//! Key sets of others (JWK). Each key that is used passes the checks again as it would be written,
//! keeps its thumbprint, and no private key is among them.
#![no_main]

use gatepost::protocol::keys::jwt::{self, PublicKey};
use gatepost::protocol::keys::key_set::{self, KeyChoice, KeySet, PRIVATE_MEMBERS};
use gatepost::protocol::words::client::SigningAlgorithm;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(value) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let items = value.get("keys").and_then(Value::as_array);
    for jwk in items.into_iter().flatten().chain([&value]) {
        let Ok(Some(named)) = key_set::read(jwk) else {
            continue;
        };
        assert!(
            PRIVATE_MEMBERS
                .iter()
                .all(|member| jwk.get(member).is_none())
        );
        let written = named.key.to_jwk();
        let again = PublicKey::from_jwk(&written).expect("what is written is read");
        assert_eq!(again.thumbprint(), named.key.thumbprint());
        assert_eq!(again.to_jwk(), written);
        let checked = key_set::read(&written).expect("and passes the checks");
        assert!(checked.is_some());
        jwt::document([("k", &named.key)]);
    }
    let Some(keys) = KeySet::parse(&value) else {
        return;
    };
    let _ = keys.has_ambiguous_names();
    for algorithm in SigningAlgorithm::ALL {
        if let KeyChoice::One(key) = keys.choose(algorithm, None) {
            assert_eq!(key.algorithm(), algorithm);
            assert!(keys.has_key_for(algorithm));
        }
    }
});
