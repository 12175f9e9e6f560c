//! JWTs as a client sees them. Each one's header and claims are read; the signature of a walker's
//! first is checked, the rest not: that would measure the load tool.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// The claims of a JWT that says it is signed with that algorithm.
pub fn claims(jwt: &str, alg: &str) -> Result<Value, String> {
    let header = part(jwt, 0)?;
    if header["alg"] == alg {
        part(jwt, 1)
    } else {
        Err(format!("header {header} instead of {alg}"))
    }
}

/// Checks the signature by the key set.
pub fn verify(jwt: &str, alg: &str, keys: &Value) -> Result<(), String> {
    let kid = part(jwt, 0)?["kid"].clone();
    let key = keys["keys"]
        .as_array()
        .and_then(|keys| keys.iter().find(|key| key["kid"] == kid));
    let key = key.ok_or_else(|| format!("no key {kid} in {keys}"))?;
    let member = |name: &str| bytes(key[name].as_str().unwrap_or_default());
    let (input, signature) = jwt.rsplit_once('.').ok_or("not a JWT")?;
    let (input, signature) = (input.as_bytes(), bytes(signature)?);
    let verdict = match alg {
        "RS256" => RsaPublicKeyComponents {
            n: member("n")?,
            e: member("e")?,
        }
        .verify(&RSA_PKCS1_2048_8192_SHA256, input, &signature),
        "ES256" => {
            let point = [vec![4], member("x")?, member("y")?].concat();
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(input, &signature)
        }
        "EdDSA" => UnparsedPublicKey::new(&ED25519, member("x")?).verify(input, &signature),
        other => return Err(format!("nobody here checks {other}")),
    };
    verdict.map_err(|_| format!("a signature that does not verify: {jwt}"))
}

fn part(jwt: &str, index: usize) -> Result<Value, String> {
    let part = jwt.split('.').nth(index).ok_or("not a JWT")?;
    serde_json::from_slice(&bytes(part)?).map_err(|error| error.to_string())
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|error| error.to_string())
}
