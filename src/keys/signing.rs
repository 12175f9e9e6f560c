//! Signing keys: made, kept as PKCS#8, used and checked. Private-key operations are aws-lc-rs's, which run in constant
//! time; the `rsa` crate only makes RSA keys and describes them.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents, UnparsedPublicKey,
};
use rsa::RsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use rsa::traits::PublicKeyParts;

use crate::protocol::keys::jwks::PublicKey;
use crate::protocol::words::client::SigningAlgorithm;
use crate::protocol::words::secret::SecretBytes;

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
        SigningAlgorithm::Rs256 => {
            let key = RsaPrivateKey::new(&mut rand::rand_core::UnwrapErr(rand::rngs::SysRng), RSA_BITS)
                .map_err(|error| format!("making an RSA key: {error}"))?;
            let document = key.to_pkcs8_der().map_err(|error| format!("encoding an RSA key: {error}"))?;
            return Ok(SecretBytes::new(document.as_bytes()));
        }
        SigningAlgorithm::Es256 => EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random),
        SigningAlgorithm::EdDsa => Ed25519KeyPair::generate_pkcs8(&random),
    };
    document
        .map(|document| SecretBytes::new(document.as_ref()))
        .map_err(|_| format!("making a {} key failed", algorithm.as_str()))
}

impl SigningKey {
    /// Reads PKCS#8. The error says what does not fit, never the key.
    pub fn from_pkcs8(algorithm: SigningAlgorithm, pkcs8: &SecretBytes) -> Result<SigningKey, String> {
        let unfit = |error: aws_lc_rs::error::KeyRejected| format!("{} key: {error}", algorithm.as_str());
        let pair = match algorithm {
            SigningAlgorithm::Rs256 => Pair::Rsa(RsaKeyPair::from_pkcs8(pkcs8.expose()).map_err(unfit)?),
            SigningAlgorithm::Es256 => {
                Pair::P256(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.expose()).map_err(unfit)?)
            }
            SigningAlgorithm::EdDsa => Pair::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.expose()).map_err(unfit)?),
        };
        let public_key =
            describe(&pair, pkcs8).ok_or_else(|| format!("{} key: unexpected public part", algorithm.as_str()))?;
        Ok(SigningKey { kid: public_key.thumbprint(), public_key, pair })
    }

    /// The key's name: its RFC 7638 thumbprint.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    pub fn algorithm(&self) -> SigningAlgorithm {
        self.public_key.algorithm()
    }

    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// The JWS signature (RFC 7518 §3.3, §3.4; RFC 8037 §3.1). An RSA signature is checked before it leaves: a faulty one
    /// would give the key away.
    pub fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>, String> {
        let random = SystemRandom::new();
        let failed = |_| format!("signing with {} failed", self.algorithm().as_str());
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, signing_input, &mut signature).map_err(failed)?;
                if !verify(&self.public_key, signing_input, &signature) {
                    return Err(String::from("an RSA signature did not verify and was withheld"));
                }
                Ok(signature)
            }
            Pair::P256(pair) => Ok(pair.sign(&random, signing_input).map_err(failed)?.as_ref().to_vec()),
            Pair::Ed25519(pair) => Ok(pair.sign(signing_input).as_ref().to_vec()),
        }
    }
}

fn describe(pair: &Pair, pkcs8: &SecretBytes) -> Option<PublicKey> {
    match pair {
        Pair::Rsa(_) => {
            let key = RsaPrivateKey::from_pkcs8_der(pkcs8.expose()).ok()?;
            let big_endian = |number: &rsa::BoxedUint| number.to_be_bytes_trimmed_vartime().to_vec();
            Some(PublicKey::Rsa { n: big_endian(key.n()), e: big_endian(key.e()) })
        }
        Pair::P256(pair) => {
            // An uncompressed point: 0x04, x, y (SEC 1 §2.3.3).
            let coordinates = pair.public_key().as_ref().strip_prefix(&[4])?;
            let (x, y) = coordinates.split_first_chunk::<32>()?;
            Some(PublicKey::P256 { x: *x, y: y.try_into().ok()? })
        }
        Pair::Ed25519(pair) => Some(PublicKey::Ed25519 { x: pair.public_key().as_ref().try_into().ok()? }),
    }
}

pub fn verify(key: &PublicKey, signing_input: &[u8], signature: &[u8]) -> bool {
    match key {
        PublicKey::Rsa { n, e } => {
            RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, signing_input, signature).is_ok()
        }
        PublicKey::P256 { x, y } => {
            let point = [&[4], x.as_slice(), y].concat();
            check(&ECDSA_P256_SHA256_FIXED, &point, signing_input, signature)
        }
        PublicKey::Ed25519 { x } => check(&ED25519, x, signing_input, signature),
    }
}

fn check(
    algorithm: &'static dyn signature::VerificationAlgorithm,
    key: &[u8],
    signing_input: &[u8],
    signature: &[u8],
) -> bool {
    UnparsedPublicKey::new(algorithm, key).verify(signing_input, signature).is_ok()
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
            assert_eq!(signature.len(), if algorithm == SigningAlgorithm::Rs256 { 256 } else { 64 });
            assert!(verify(key.public_key(), b"header.payload", &signature));
            assert!(!verify(key.public_key(), b"header.payloae", &signature));
            assert!(!verify(other.public_key(), b"header.payload", &signature));
            assert!(!verify(key.public_key(), b"header.payload", &signature[1..]));
            assert_ne!(key.kid(), other.kid());
        }
    }

    #[test]
    fn an_rsa_signature_is_one_to_an_independent_verifier() {
        use rsa::pkcs1v15::{Signature, VerifyingKey};
        use rsa::signature::Verifier;
        let key = key(SigningAlgorithm::Rs256);
        let PublicKey::Rsa { n, e } = key.public_key() else { panic!("not an RSA key") };
        let public =
            rsa::RsaPublicKey::new(rsa::BoxedUint::from_be_slice_vartime(n), rsa::BoxedUint::from_be_slice_vartime(e));
        let signature = Signature::try_from(key.sign(b"header.payload").unwrap().as_slice()).unwrap();
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
        assert!(SigningKey::from_pkcs8(SigningAlgorithm::Es256, &SecretBytes::new(*b"nonsense")).is_err());
    }
}
