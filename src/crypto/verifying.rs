//! Public keys: checking signatures (RFC 7518 §3, RFC 8037 §3), JWK members and thumbprints (RFC 7638).

use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::protocol::client::SigningAlgorithm;

/// The public half of a signing key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifyingKey {
    /// RS256: modulus and exponent, big-endian without leading zeros; at least 2048 bits.
    Rsa {
        /// Modulus.
        n: Vec<u8>,
        /// Public exponent.
        e: Vec<u8>,
    },
    /// ES256: a point on P-256.
    P256 {
        /// 32 bytes.
        x: [u8; 32],
        /// 32 bytes.
        y: [u8; 32],
    },
    /// EdDSA: an Ed25519 public key.
    Ed25519 {
        /// 32 bytes.
        x: [u8; 32],
    },
}

impl VerifyingKey {
    /// Reads the public members of a JWK; `None` when it is not a key of that algorithm. Other members are not looked at.
    pub fn from_jwk(algorithm: SigningAlgorithm, jwk: &Value) -> Option<VerifyingKey> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| text(name).and_then(|value| URL_SAFE_NO_PAD.decode(value).ok());
        let coordinate = |name: &str| bytes(name)?.try_into().ok();
        match (algorithm, text("kty")?, text("crv")) {
            (SigningAlgorithm::Rs256, "RSA", _) => Some(VerifyingKey::Rsa { n: bytes("n")?, e: bytes("e")? }),
            (SigningAlgorithm::Es256, "EC", Some("P-256")) => {
                Some(VerifyingKey::P256 { x: coordinate("x")?, y: coordinate("y")? })
            }
            (SigningAlgorithm::EdDsa, "OKP", Some("Ed25519")) => Some(VerifyingKey::Ed25519 { x: coordinate("x")? }),
            (SigningAlgorithm::Rs256 | SigningAlgorithm::Es256 | SigningAlgorithm::EdDsa, _, _) => None,
        }
    }

    /// The algorithm this key checks.
    pub fn algorithm(&self) -> SigningAlgorithm {
        match self {
            VerifyingKey::Rsa { .. } => SigningAlgorithm::Rs256,
            VerifyingKey::P256 { .. } => SigningAlgorithm::Es256,
            VerifyingKey::Ed25519 { .. } => SigningAlgorithm::EdDsa,
        }
    }

    /// Checks a raw JOSE signature over `signing_input`.
    #[must_use]
    pub fn verify(&self, signing_input: &[u8], unverified_signature: &[u8]) -> bool {
        match self {
            VerifyingKey::Rsa { n, e } => {
                let key = PublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, signing_input, unverified_signature).is_ok()
            }
            VerifyingKey::P256 { x, y } => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, [&[4][..], x, y].concat());
                key.verify(signing_input, unverified_signature).is_ok()
            }
            VerifyingKey::Ed25519 { x } => {
                UnparsedPublicKey::new(&ED25519, x).verify(signing_input, unverified_signature).is_ok()
            }
        }
    }

    /// The JWK as published: the key's members, `kid`, `alg` and `use`.
    pub fn jwk(&self) -> Value {
        let mut jwk = self.required_members();
        jwk.insert(String::from("kid"), json!(self.thumbprint()));
        jwk.insert(String::from("alg"), json!(self.algorithm().as_str()));
        jwk.insert(String::from("use"), json!("sig"));
        Value::Object(jwk)
    }

    /// RFC 7638: SHA-256 over the required members in order of their names, base64url. Our `kid`.
    pub fn thumbprint(&self) -> String {
        // Sorted here, whatever order the map keeps; the values hold nothing that JSON would escape.
        let mut members: Vec<String> =
            self.required_members().iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        members.sort_unstable();
        URL_SAFE_NO_PAD.encode(Sha256::digest(format!("{{{}}}", members.join(","))))
    }

    fn required_members(&self) -> Map<String, Value> {
        let base64 = |bytes: &[u8]| json!(URL_SAFE_NO_PAD.encode(bytes));
        let members = match self {
            VerifyingKey::Rsa { n, e } => vec![("kty", json!("RSA")), ("n", base64(n)), ("e", base64(e))],
            VerifyingKey::P256 { x, y } => {
                vec![("kty", json!("EC")), ("crv", json!("P-256")), ("x", base64(x)), ("y", base64(y))]
            }
            VerifyingKey::Ed25519 { x } => vec![("kty", json!("OKP")), ("crv", json!("Ed25519")), ("x", base64(x))],
        };
        members.into_iter().map(|(name, value)| (String::from(name), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thumbprint_of_rfc_7638_section_3_1() {
        let jwk = json!({"kty": "RSA", "alg": "RS256", "kid": "2011-04-29", "e": "AQAB",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"});
        let key = VerifyingKey::from_jwk(SigningAlgorithm::Rs256, &jwk).unwrap();
        assert_eq!(key.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }

    #[test]
    fn the_ed25519_example_of_rfc_8037() {
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        let key = VerifyingKey::from_jwk(SigningAlgorithm::EdDsa, &jwk).unwrap();
        assert_eq!(key.thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        let input = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        assert!(key.verify(input, &signature));
        assert!(!key.verify(&input[1..], &signature));
    }

    #[test]
    fn the_es256_example_of_rfc_7515() {
        let jwk = json!({"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"});
        let key = VerifyingKey::from_jwk(SigningAlgorithm::Es256, &jwk).unwrap();
        let input = b"eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let signature = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
        assert!(key.verify(input, &URL_SAFE_NO_PAD.decode(signature).unwrap()));
    }

    #[test]
    fn a_jwk_of_another_kind_is_no_key() {
        let okp = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        assert_eq!(VerifyingKey::from_jwk(SigningAlgorithm::Rs256, &okp), None);
        assert_eq!(VerifyingKey::from_jwk(SigningAlgorithm::Es256, &okp), None);
        for jwk in [
            json!({}),
            json!("x"),
            json!({"kty": "OKP", "crv": "X25519", "x": okp["x"]}),
            json!({"kty": "OKP", "crv": "Ed25519", "x": "AA"}),
        ] {
            assert_eq!(VerifyingKey::from_jwk(SigningAlgorithm::EdDsa, &jwk), None, "{jwk}");
        }
    }
}
