//! DPoP proofs (RFC 9449), made without any code of the product.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gatepost::keys::random;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::gatepost::Gatepost;
use super::http::Answer;
use super::signer::{Signer, now};

/// What a good proof says, for that method and path. Each has a `jti` of its own.
pub fn claims(gatepost: &Gatepost, method: &str, path: &str) -> Value {
    let jti = URL_SAFE_NO_PAD.encode(random::bytes::<16>());
    let address = format!("{}{path}", gatepost.base_url);
    json!({"jti": jti, "htm": method, "htu": address, "iat": now()})
}

pub fn header(signer: &Signer) -> Value {
    json!({"typ": "dpop+jwt", "alg": signer.alg, "jwk": signer.jwk()})
}

/// The claims with one of them changed.
pub fn with(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}

pub fn sign(signer: &Signer, claims: &Value) -> String {
    signer.sign_under(&header(signer), claims)
}

/// A proof for a form.
pub fn for_form(gatepost: &Gatepost, signer: &Signer, path: &str) -> String {
    sign(signer, &claims(gatepost, "POST", path))
}

/// `ath`
pub fn hash(access_token: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(access_token))
}

/// What a proof says that goes with an access token.
pub fn for_token(gatepost: &Gatepost, path: &str, access_token: &str) -> Value {
    with(
        claims(gatepost, "GET", path),
        "ath",
        json!(hash(access_token)),
    )
}

/// The thumbprint of a key (RFC 7638).
pub fn thumbprint(signer: &Signer) -> String {
    let mut jwk = signer.jwk();
    jwk.as_object_mut().unwrap().remove("kid");
    hash(&jwk.to_string())
}

/// The nonce of an answer, which must have one.
pub fn nonce(answer: &Answer) -> String {
    match answer.headers_named("dpop-nonce")[..] {
        [nonce] => nonce.to_owned(),
        ref others => panic!("nonces {others:?} of {}", answer.text()),
    }
}
