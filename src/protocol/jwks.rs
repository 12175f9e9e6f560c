//! Public keys as JSON Web Keys (RFC 7517, RFC 7518 §6, RFC 8037 §2), named by their thumbprint (RFC 7638).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::client::SigningAlgorithm;

/// A public key's plain numbers, big-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicKey {
    /// RSA; leading zeros do not matter.
    Rsa {
        /// Modulus.
        n: Vec<u8>,
        /// Public exponent.
        e: Vec<u8>,
    },
    /// A point on P-256, both coordinates in full length.
    P256 {
        /// x coordinate.
        x: [u8; 32],
        /// y coordinate.
        y: [u8; 32],
    },
    /// Ed25519.
    Ed25519 {
        /// The encoded point.
        x: [u8; 32],
    },
}

impl PublicKey {
    /// The one algorithm we use such a key for.
    pub fn algorithm(&self) -> SigningAlgorithm {
        match self {
            PublicKey::Rsa { .. } => SigningAlgorithm::Rs256,
            PublicKey::P256 { .. } => SigningAlgorithm::Es256,
            PublicKey::Ed25519 { .. } => SigningAlgorithm::EdDsa,
        }
    }

    /// The key's name: base64url of the SHA-256 over its required members in alphabetical order (RFC 7638 §3).
    pub fn thumbprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.required_members()))
    }

    /// The key as published, for signatures only.
    pub fn to_jwk(&self) -> Value {
        let (alg, kid) = (self.algorithm().as_str(), self.thumbprint());
        match self {
            PublicKey::Rsa { n, e } => {
                json!({ "kty": "RSA", "use": "sig", "alg": alg, "kid": kid, "n": integer(n), "e": integer(e) })
            }
            PublicKey::P256 { x, y } => json!({
                "kty": "EC", "use": "sig", "alg": alg, "kid": kid, "crv": "P-256", "x": octets(x), "y": octets(y)
            }),
            PublicKey::Ed25519 { x } => {
                json!({ "kty": "OKP", "use": "sig", "alg": alg, "kid": kid, "crv": "Ed25519", "x": octets(x) })
            }
        }
    }

    fn required_members(&self) -> String {
        match self {
            PublicKey::Rsa { n, e } => format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, integer(e), integer(n)),
            PublicKey::P256 { x, y } => {
                format!(r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#, octets(x), octets(y))
            }
            PublicKey::Ed25519 { x } => format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, octets(x)),
        }
    }
}

/// The key set, each key once.
pub fn document<'a>(keys: impl IntoIterator<Item = &'a PublicKey>) -> Value {
    let mut distinct: Vec<&PublicKey> = Vec::new();
    for key in keys {
        if !distinct.contains(&key) {
            distinct.push(key);
        }
    }
    json!({ "keys": distinct.into_iter().map(PublicKey::to_jwk).collect::<Vec<Value>>() })
}

/// Base64urlUInt: the fewest octets (RFC 7518 §2).
fn integer(bytes: &[u8]) -> String {
    let significant: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
    octets(&significant)
}

fn octets(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
