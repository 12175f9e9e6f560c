//! DPoP proofs: a header and claims in clear, one a line, or a proof as it travels. What is taken
//! was made for this method and this address, now, by a key that may sign proofs, and says so in
//! members of the right kind. `url` says which address it is.
#![no_main]

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gatepost::protocol::keys::key_set::{self, PRIVATE_MEMBERS};
use gatepost::protocol::token::dpop_proof::{ExpectedProof, UnverifiedProof};
use gatepost::protocol::words::client::SigningAlgorithm;
use gatepost_fuzz::NOW;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;

const EXPECTED: [ExpectedProof<'static>; 2] = [
    ExpectedProof {
        method: "POST",
        address: "https://login.example/connect/token",
    },
    ExpectedProof {
        method: "GET",
        address: "http://127.0.0.1:8080/connect/userinfo",
    },
];
const ACCESS_TOKEN: &str = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";

/// The address as browsers read it, without what RFC 9449 §4.3 leaves out.
fn address(text: &str) -> Url {
    let mut url = Url::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    url.set_query(None);
    url.set_fragment(None);
    url
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let encoded = text.split_once('\n').map(|(header, claims)| {
        let (header, claims) = (
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims),
        );
        format!("{header}.{claims}.AAAA")
    });
    let text = encoded.as_deref().unwrap_or(text);
    assert!(UnverifiedProof::read(&[]).is_err() && UnverifiedProof::read(&[text, text]).is_err());
    let Ok(proof) = UnverifiedProof::read(&[text]) else {
        return;
    };
    assert_eq!(proof.jws.typ.as_deref(), Some("dpop+jwt"));
    assert_eq!(proof.jws.alg, proof.key.algorithm());
    assert!(proof.jws.alg != SigningAlgorithm::Rs256);
    let jwk = proof.jws.embedded_key().expect("it brings its key");
    assert!(PRIVATE_MEMBERS.iter().all(|name| jwk.get(name).is_none()));
    let key = proof.key.to_jwk();
    assert!(key_set::read(&key).is_ok_and(|read| read.is_some()));
    for expected in EXPECTED {
        let Ok(taken) = proof.judge(expected, NOW) else {
            continue;
        };
        let claims = proof.jws.unverified_claims().expect("it has claims");
        let member = |name: &str| claims.get(name).and_then(Value::as_str);
        assert_eq!(member("htm"), Some(expected.method));
        let htu = member("htu").expect("htu is a text");
        assert_eq!(address(htu), address(expected.address));
        let issued_at = claims["iat"].as_f64().expect("iat is a number");
        let age = NOW.seconds() as f64 - issued_at;
        // Times are kept in microseconds, and what is finer is cut off.
        assert!((-10.000_001..=60.0).contains(&age), "{age}");
        let jti = member("jti").expect("jti is a text");
        assert!((1..=256).contains(&jti.len()));
        let named = Sha256::digest([&taken.key.0[..], jti.as_bytes()].concat());
        assert_eq!(taken.name[..], named[..]);
        assert_eq!(taken.key, proof.key.key_thumbprint());
        assert_eq!(taken.nonce.as_deref(), member("nonce"));
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(ACCESS_TOKEN));
        assert_eq!(
            taken.is_for_token(ACCESS_TOKEN),
            claims.get("ath") == Some(&Value::from(hash))
        );
        let made_for = proof.made_for().expect("what is taken says what it is for");
        assert!(made_for.method == expected.method && made_for.address == htu);
    }
});
