//! JWTs as a relying party reads them: with the published keys, and by code of its own.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest, Sha256, Sha512};

use super::flow::decode_jwt;
use super::gatepost::Gatepost;

/// The published key set.
pub fn published_keys(gatepost: &Gatepost) -> Vec<Value> {
    let path = format!(
        "{}/.well-known/openid-configuration/jwks",
        gatepost.base_path()
    );
    gatepost.get(&path).json()["keys"]
        .as_array()
        .unwrap()
        .clone()
}

/// Header and claims; the signature must verify with the published key that `kid` names.
pub fn verified(gatepost: &Gatepost, jwt: &str) -> (Value, Value) {
    let (header, claims) = decode_jwt(jwt);
    let keys = published_keys(gatepost);
    let named: Vec<&Value> = keys
        .iter()
        .filter(|key| key["kid"] == header["kid"])
        .collect();
    assert_eq!(named.len(), 1, "keys named {}", header["kid"]);
    assert_eq!(named[0]["alg"], header["alg"]);
    assert!(
        verifies(named[0], jwt),
        "the signature of {jwt} does not verify"
    );
    (header, claims)
}

fn verifies(key: &Value, jwt: &str) -> bool {
    let member = |name: &str| base64url(key[name].as_str().unwrap());
    let (input, signature) = jwt.rsplit_once('.').unwrap();
    let (input, signature) = (input.as_bytes(), base64url(signature));
    match key["alg"].as_str().unwrap() {
        "RS256" => {
            let key = RsaPublicKeyComponents {
                n: member("n"),
                e: member("e"),
            };
            key.verify(&RSA_PKCS1_2048_8192_SHA256, input, &signature)
                .is_ok()
        }
        "ES256" => {
            let point = [vec![4], member("x"), member("y")].concat();
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(input, &signature)
                .is_ok()
        }
        "EdDSA" => UnparsedPublicKey::new(&ED25519, member("x"))
            .verify(input, &signature)
            .is_ok(),
        other => panic!("{other}"),
    }
}

/// `at_hash` (OpenID Connect Core §3.1.3.6): the left half of the hash that belongs to the
/// algorithm.
pub fn half_hash(alg: &str, text: &str) -> String {
    let hash = if matches!(alg, "EdDSA" | "Ed25519") {
        Sha512::digest(text).to_vec()
    } else {
        Sha256::digest(text).to_vec()
    };
    URL_SAFE_NO_PAD.encode(&hash[..hash.len() / 2])
}

/// A JWT of one's own making, with whatever signature `sign` gives it.
pub fn forge(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let input = format!("{}.{}", part(header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(input.as_bytes()));
    format!("{input}.{signature}")
}

pub fn base64url(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}
