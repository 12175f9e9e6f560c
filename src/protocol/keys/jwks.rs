//! Public keys as JSON Web Keys (RFC 7517, RFC 7518 §6, RFC 8037 §2), named by their thumbprint (RFC 7638).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::protocol::words::client::SigningAlgorithm;

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

    /// base64url of the SHA-256 over its required members in alphabetical order (RFC 7638 §3): the order of our objects.
    pub fn thumbprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.required_members().to_string()))
    }

    /// For signatures only.
    pub fn to_jwk(&self) -> Value {
        let mut jwk = self.required_members();
        let named = [("use", "sig"), ("alg", self.algorithm().as_str()), ("kid", &self.thumbprint())];
        jwk.as_object_mut()
            .into_iter()
            .for_each(|jwk| jwk.extend(named.map(|(name, text)| (name.to_owned(), json!(text)))));
        jwk
    }

    fn required_members(&self) -> Value {
        let octets = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        // The fewest octets (RFC 7518 §2).
        let integer = |bytes: &[u8]| octets(&bytes.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<u8>>());
        match self {
            PublicKey::Rsa { n, e } => json!({"kty": "RSA", "n": integer(n), "e": integer(e)}),
            PublicKey::P256 { x, y } => json!({"kty": "EC", "crv": "P-256", "x": octets(x), "y": octets(y)}),
            PublicKey::Ed25519 { x } => json!({"kty": "OKP", "crv": "Ed25519", "x": octets(x)}),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    /// RFC 7638 §3.1, RFC 7517 Appendix A.1, RFC 8037 Appendix A.2.
    fn keys() -> [PublicKey; 3] {
        let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
        let (x, y) = ("MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM");
        let ed25519 = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        [
            PublicKey::Rsa { n: bytes(n), e: vec![1, 0, 1] },
            PublicKey::P256 { x: bytes(x).try_into().unwrap(), y: bytes(y).try_into().unwrap() },
            PublicKey::Ed25519 { x: bytes(ed25519).try_into().unwrap() },
        ]
    }

    #[test]
    fn keys_are_published_under_their_thumbprint_and_read_back() {
        let [rsa, p256, ed25519] = keys();
        assert_eq!(rsa.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
        assert_eq!(ed25519.thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        // Nothing private is among them.
        for (key, members) in
            [(rsa, "alg e kid kty n use"), (p256, "alg crv kid kty use x y"), (ed25519, "alg crv kid kty use x")]
        {
            let jwk = key.to_jwk();
            assert_eq!(jwk.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" "), members);
            assert_eq!(PublicKey::from_jwk(&jwk), Some(key));
        }
    }

    #[test]
    fn leading_zeros_change_no_name() {
        let [rsa, ..] = keys();
        let PublicKey::Rsa { n, .. } = &rsa else { panic!("{rsa:?}") };
        let padded = PublicKey::Rsa { n: [&[0, 0][..], n].concat(), e: vec![0, 1, 0, 1] };
        assert_eq!((padded.thumbprint(), padded.to_jwk()), (rsa.thumbprint(), rsa.to_jwk()));
        // A coordinate keeps its full length (RFC 7518 §6.2.1.2).
        let short = PublicKey::P256 { x: [0; 32], y: [0; 32] };
        assert_eq!(short.to_jwk()["x"].as_str().map(str::len), Some(43));
    }
}
