//! Signing keys, kept as PKCS#8. They are made here; `tool/imported_key.rs` reads those of others.
//! aws-lc-rs signs, in constant time. The `rsa` crate only makes, checks and describes RSA keys.

use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use rand::rand_core::UnwrapErr;
use rand::rngs::SysRng;
use rsa::RsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use rsa::traits::PublicKeyParts;

use gatepost_protocol::keys::jwt::PublicKey;
use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::secret::SecretBytes;

const RSA_BITS: usize = 2_048;

#[derive(Debug)]
pub struct SigningKey {
    kid: String,
    public_key: PublicKey,
    pair: Pair,
}

#[derive(Debug)]
enum Pair {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// A new private key as PKCS#8 (RFC 5208).
pub fn generate(algorithm: SigningAlgorithm) -> Result<SecretBytes, String> {
    let random = SystemRandom::new();
    let document = match algorithm {
        SigningAlgorithm::Rs256 => return generate_rsa(),
        SigningAlgorithm::Es256 => {
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
        }
        SigningAlgorithm::EdDsa => Ed25519KeyPair::generate_pkcs8(&random),
    };
    document
        .map(|document| SecretBytes::new(document.as_ref()))
        .map_err(|_| format!("making a {} key failed", algorithm.as_str()))
}

fn generate_rsa() -> Result<SecretBytes, String> {
    let key = RsaPrivateKey::new(&mut UnwrapErr(SysRng), RSA_BITS)
        .map_err(|error| format!("making an RSA key: {error}"))?;
    let document = key
        .to_pkcs8_der()
        .map_err(|_| "that RSA key cannot be kept as PKCS#8")?;
    Ok(SecretBytes::new(document.as_bytes()))
}

impl SigningKey {
    /// Reads PKCS#8. The error says what does not fit, never the key.
    pub fn from_pkcs8(
        algorithm: SigningAlgorithm,
        pkcs8: &SecretBytes,
    ) -> Result<SigningKey, String> {
        let pair = pair(algorithm, pkcs8.expose())
            .map_err(|error| format!("{} key: {error}", algorithm.as_str()))?;
        let public_key = describe(&pair, pkcs8)
            .ok_or_else(|| format!("{} key: unexpected public part", algorithm.as_str()))?;
        Ok(SigningKey {
            kid: public_key.thumbprint(),
            public_key,
            pair,
        })
    }

    /// The same key under the name that it has elsewhere.
    pub fn called(self, kid: &str) -> SigningKey {
        SigningKey {
            kid: kid.to_owned(),
            ..self
        }
    }

    /// The key's name: its RFC 7638 thumbprint, unless it was imported under another.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    pub fn algorithm(&self) -> SigningAlgorithm {
        self.public_key.algorithm()
    }

    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// The JWS signature (RFC 7518 §3.3, §3.4; RFC 8037 §3.1). A faulty RSA signature would give
    /// the key away: aws-lc checks each by the public key (`rsa_default_private_transform`).
    pub fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>, String> {
        let random = SystemRandom::new();
        let failed = |_| format!("signing with {} failed", self.algorithm().as_str());
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, signing_input, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
            Pair::P256(pair) => Ok(pair
                .sign(&random, signing_input)
                .map_err(failed)?
                .as_ref()
                .to_vec()),
            Pair::Ed25519(pair) => Ok(pair.sign(signing_input).as_ref().to_vec()),
        }
    }
}

fn pair(algorithm: SigningAlgorithm, pkcs8: &[u8]) -> Result<Pair, KeyRejected> {
    Ok(match algorithm {
        SigningAlgorithm::Rs256 => Pair::Rsa(RsaKeyPair::from_pkcs8(pkcs8)?),
        SigningAlgorithm::Es256 => Pair::P256(EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            pkcs8,
        )?),
        SigningAlgorithm::EdDsa => Pair::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8)?),
    })
}

fn describe(pair: &Pair, pkcs8: &SecretBytes) -> Option<PublicKey> {
    match pair {
        Pair::Rsa(..) => {
            let key = RsaPrivateKey::from_pkcs8_der(pkcs8.expose()).ok()?;
            Some(PublicKey::Rsa {
                n: key.n().to_be_bytes_trimmed_vartime().to_vec(),
                e: key.e().to_be_bytes_trimmed_vartime().to_vec(),
            })
        }
        Pair::P256(pair) => {
            // An uncompressed point: 0x04, x, y (SEC 1 §2.3.3).
            let coordinates = pair.public_key().as_ref().strip_prefix(&[4])?;
            let (x, y) = coordinates.split_first_chunk::<32>()?;
            Some(PublicKey::P256 {
                x: *x,
                y: y.try_into().ok()?,
            })
        }
        Pair::Ed25519(pair) => Some(PublicKey::Ed25519 {
            x: pair.public_key().as_ref().try_into().ok()?,
        }),
    }
}

pub fn verify(key: &PublicKey, signing_input: &[u8], signature: &[u8]) -> bool {
    let verified = match key {
        PublicKey::Rsa { n, e } => RsaPublicKeyComponents { n, e }.verify(
            &RSA_PKCS1_2048_8192_SHA256,
            signing_input,
            signature,
        ),
        PublicKey::P256 { x, y } => {
            let point = [&[4], x.as_slice(), y].concat();
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signing_input, signature)
        }
        PublicKey::Ed25519 { x } => {
            UnparsedPublicKey::new(&ED25519, x).verify(signing_input, signature)
        }
    };
    verified.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(algorithm: SigningAlgorithm) -> SigningKey {
        SigningKey::from_pkcs8(algorithm, &generate(algorithm).unwrap()).unwrap()
    }

    #[test]
    fn every_algorithm_signs_what_its_public_key_verifies() {
        for algorithm in SigningAlgorithm::ALL {
            let (key, other) = (key(algorithm), key(algorithm));
            let signature = key.sign(b"header.payload").unwrap();
            assert_eq!(key.algorithm(), algorithm);
            assert_eq!(
                signature.len(),
                if algorithm == SigningAlgorithm::Rs256 {
                    256
                } else {
                    64
                }
            );
            assert!(verify(key.public_key(), b"header.payload", &signature));
            assert!(!verify(key.public_key(), b"header.payloae", &signature));
            assert!(!verify(other.public_key(), b"header.payload", &signature));
            assert!(!verify(
                key.public_key(),
                b"header.payload",
                &signature[1..]
            ));
            assert_ne!(key.kid(), other.kid());
        }
    }

    #[test]
    fn an_rsa_signature_is_one_to_an_independent_verifier() {
        use rsa::pkcs1v15::{Signature, VerifyingKey};
        use rsa::signature::Verifier;
        let key = key(SigningAlgorithm::Rs256);
        let PublicKey::Rsa { n, e } = key.public_key() else {
            panic!("not an RSA key")
        };
        let public = rsa::RsaPublicKey::new(
            rsa::BoxedUint::from_be_slice_vartime(n),
            rsa::BoxedUint::from_be_slice_vartime(e),
        );
        let signature =
            Signature::try_from(key.sign(b"header.payload").unwrap().as_slice()).unwrap();
        let verifying = VerifyingKey::<sha2::Sha256>::new(public.unwrap());
        assert!(verifying.verify(b"header.payload", &signature).is_ok());
        assert!(verifying.verify(b"header.payloae", &signature).is_err());
    }

    #[test]
    fn a_key_of_another_kind_is_refused() {
        let pkcs8 = generate(SigningAlgorithm::Es256).unwrap();
        for algorithm in [SigningAlgorithm::Rs256, SigningAlgorithm::EdDsa] {
            assert!(SigningKey::from_pkcs8(algorithm, &pkcs8).is_err());
        }
        assert!(
            SigningKey::from_pkcs8(SigningAlgorithm::Es256, &SecretBytes::new(*b"nonsense"))
                .is_err()
        );
    }
}
