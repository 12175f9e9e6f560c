//! Public keys as JSON Web Keys (RFC 7517, RFC 7518 §6, RFC 8037 §2), named by their thumbprint (RFC 7638).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::client::SigningAlgorithm;

/// Plain numbers, big-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicKey {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// Both coordinates in full length.
    P256 {
        x: [u8; 32],
        y: [u8; 32],
    },
    Ed25519 {
        x: [u8; 32],
    },
}

impl PublicKey {
    /// `None` for what `to_jwk` would not publish.
    pub fn from_jwk(jwk: &Value) -> Option<PublicKey> {
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(jwk.get(name)?.as_str()?).ok();
        let coordinate = |name: &str| <[u8; 32]>::try_from(bytes(name)?).ok();
        match (jwk.get("kty")?.as_str()?, jwk.get("crv").and_then(Value::as_str)) {
            ("RSA", None) => Some(PublicKey::Rsa { n: bytes("n")?, e: bytes("e")? }),
            ("EC", Some("P-256")) => Some(PublicKey::P256 { x: coordinate("x")?, y: coordinate("y")? }),
            ("OKP", Some("Ed25519")) => Some(PublicKey::Ed25519 { x: coordinate("x")? }),
            _ => None,
        }
    }

    pub fn algorithm(&self) -> SigningAlgorithm {
        match self {
            PublicKey::Rsa { .. } => SigningAlgorithm::Rs256,
            PublicKey::P256 { .. } => SigningAlgorithm::Es256,
            PublicKey::Ed25519 { .. } => SigningAlgorithm::EdDsa,
        }
    }

    /// base64url of the SHA-256 over its required members in alphabetical order (RFC 7638 §3).
    pub fn thumbprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.required_members()))
    }

    /// For signatures only.
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

/// Each key once.
pub fn document<'a>(keys: impl IntoIterator<Item = &'a PublicKey>) -> Value {
    let mut distinct: Vec<&PublicKey> = Vec::new();
    for key in keys {
        if distinct.iter().all(|known| known.thumbprint() != key.thumbprint()) {
            distinct.push(key);
        }
    }
    json!({ "keys": distinct.into_iter().map(PublicKey::to_jwk).collect::<Vec<Value>>() })
}

/// The fewest octets (RFC 7518 §2).
fn integer(bytes: &[u8]) -> String {
    let significant: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
    octets(&significant)
}

fn octets(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 7638 §3.1
    const RSA_N: &str = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    fn rsa() -> PublicKey {
        PublicKey::Rsa { n: bytes(RSA_N), e: vec![1, 0, 1] }
    }

    fn ed25519() -> PublicKey {
        // RFC 8037 Appendix A.2
        PublicKey::Ed25519 { x: bytes("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").try_into().unwrap() }
    }

    fn p256() -> PublicKey {
        // RFC 7517 Appendix A.1
        PublicKey::P256 {
            x: bytes("MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4").try_into().unwrap(),
            y: bytes("4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM").try_into().unwrap(),
        }
    }

    #[test]
    fn a_published_key_is_read_back() {
        let keys = [
            PublicKey::Rsa { n: vec![0xc0; 256], e: vec![1, 0, 1] },
            PublicKey::P256 { x: [1; 32], y: [2; 32] },
            PublicKey::Ed25519 { x: [3; 32] },
        ];
        for key in keys {
            assert_eq!(PublicKey::from_jwk(&key.to_jwk()), Some(key));
        }
        for jwk in [json!({}), json!({"kty": "EC", "crv": "P-384"}), json!({"kty": "OKP", "crv": "Ed25519", "x": "AA"})]
        {
            assert_eq!(PublicKey::from_jwk(&jwk), None, "{jwk}");
        }
    }

    #[test]
    fn thumbprints_of_rfc_7638_and_rfc_8037() {
        assert_eq!(rsa().thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
        assert_eq!(ed25519().thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }

    #[test]
    fn nothing_private_is_published() {
        for key in [rsa(), p256(), ed25519()] {
            let jwk = key.to_jwk();
            for name in ["d", "p", "q", "dp", "dq", "qi", "k", "oth"] {
                assert!(jwk.get(name).is_none(), "{name}");
            }
        }
    }

    #[test]
    fn leading_zeros_change_no_name() {
        let padded = PublicKey::Rsa { n: [&[0, 0][..], &bytes(RSA_N)].concat(), e: vec![0, 1, 0, 1] };
        assert_eq!((padded.thumbprint(), padded.to_jwk()), (rsa().thumbprint(), rsa().to_jwk()));
        // A coordinate keeps its full length (RFC 7518 §6.2.1.2).
        let short = PublicKey::P256 { x: [0; 32], y: [0; 32] };
        assert_eq!(short.to_jwk()["x"].as_str().map(str::len), Some(43));
    }
}
