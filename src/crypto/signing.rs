//! Private signing keys. RSA keys are made and described by the `rsa` crate and used by aws-lc-rs alone, whose
//! private-key operations run in constant time.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rsa::RsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use rsa::traits::PublicKeyParts;

use super::CryptoError;
use super::verifying::VerifyingKey;
use crate::protocol::client::SigningAlgorithm;
use crate::protocol::secret::SecretBytes;

const RSA_BITS: usize = 2_048;

/// A key that signs.
pub struct SigningKey {
    private: Private,
    public: VerifyingKey,
    pkcs8: SecretBytes,
}

enum Private {
    Rsa(Box<RsaKeyPair>),
    P256(Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

impl SigningKey {
    /// Makes a new key. RSA takes a second or so.
    pub fn generate(algorithm: SigningAlgorithm) -> Result<SigningKey, CryptoError> {
        let failed = || CryptoError::new("key generation failed");
        let pkcs8 = match algorithm {
            SigningAlgorithm::Rs256 => {
                let key = RsaPrivateKey::new(&mut rand::rng(), RSA_BITS).map_err(|_| failed())?;
                SecretBytes::new(key.to_pkcs8_der().map_err(|_| failed())?.as_bytes())
            }
            SigningAlgorithm::Es256 => {
                let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
                SecretBytes::new(made.map_err(|_| failed())?.as_ref())
            }
            SigningAlgorithm::EdDsa => {
                let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
                SecretBytes::new(made.map_err(|_| failed())?.as_ref())
            }
        };
        SigningKey::from_pkcs8(algorithm, pkcs8)
    }

    /// Takes a key from PKCS#8 (RFC 5958). Refused: RSA under 2048 bits, other curves, damaged keys.
    pub fn from_pkcs8(algorithm: SigningAlgorithm, pkcs8: SecretBytes) -> Result<SigningKey, CryptoError> {
        let unfit = || CryptoError::new(format!("not a usable {} key", algorithm.as_str()));
        let (private, public) = match algorithm {
            SigningAlgorithm::Rs256 => rsa(pkcs8.expose()).ok_or_else(unfit)?,
            SigningAlgorithm::Es256 => p256(pkcs8.expose()).ok_or_else(unfit)?,
            SigningAlgorithm::EdDsa => ed25519(pkcs8.expose()).ok_or_else(unfit)?,
        };
        Ok(SigningKey { private, public, pkcs8 })
    }

    /// The key as PKCS#8, to be wrapped.
    pub fn pkcs8(&self) -> &SecretBytes {
        &self.pkcs8
    }

    /// The public half: JWK, thumbprint, verification.
    pub fn public(&self) -> &VerifyingKey {
        &self.public
    }

    /// Signs; answers the raw JOSE signature (ES256: r and s, 64 bytes). An RSA signature is checked before it leaves: one
    /// computed wrongly, by a fault in the machine, could give the key away.
    pub fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let failed = || CryptoError::new("signing failed");
        match &self.private {
            Private::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signing_input, &mut signature)
                    .map_err(|_| failed())?;
                self.public.verify(signing_input, &signature).then_some(signature).ok_or_else(failed)
            }
            Private::P256(key) => {
                let signature = key.sign(&SystemRandom::new(), signing_input).map_err(|_| failed())?;
                Ok(signature.as_ref().to_vec())
            }
            Private::Ed25519(key) => Ok(key.sign(signing_input).as_ref().to_vec()),
        }
    }
}

fn rsa(pkcs8: &[u8]) -> Option<(Private, VerifyingKey)> {
    let described = RsaPrivateKey::from_pkcs8_der(pkcs8).ok()?;
    let public = VerifyingKey::Rsa { n: described.n_bytes().into_vec(), e: described.e_bytes().into_vec() };
    // Refuses moduli under 2048 bits.
    let pair = RsaKeyPair::from_pkcs8(pkcs8).ok()?;
    Some((Private::Rsa(Box::new(pair)), public))
}

fn p256(pkcs8: &[u8]) -> Option<(Private, VerifyingKey)> {
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8).ok()?;
    let point: [u8; 65] = pair.public_key().as_ref().try_into().ok()?;
    let (x, rest) = point.get(1..)?.split_first_chunk()?;
    let public = VerifyingKey::P256 { x: *x, y: rest.try_into().ok()? };
    Some((Private::P256(Box::new(pair)), public))
}

fn ed25519(pkcs8: &[u8]) -> Option<(Private, VerifyingKey)> {
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8).ok()?;
    let public = VerifyingKey::Ed25519 { x: pair.public_key().as_ref().try_into().ok()? };
    Some((Private::Ed25519(Box::new(pair)), public))
}

#[cfg(test)]
mod tests {
    use rsa::pkcs1v15::Pkcs1v15Sign;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn rs256_signatures_verify_by_another_implementation() {
        let key = SigningKey::generate(SigningAlgorithm::Rs256).unwrap();
        let signature = key.sign(b"header.payload").unwrap();
        let other = RsaPrivateKey::from_pkcs8_der(key.pkcs8().expose()).unwrap().to_public_key();
        let hashed = Sha256::digest(b"header.payload");
        assert!(other.verify(Pkcs1v15Sign::new::<Sha256>(), &hashed, &signature).is_ok());
        assert_eq!(signature.len(), 256);
        assert!(!key.public().verify(b"header.payloae", &signature));
    }

    #[test]
    fn elliptic_signatures_are_64_raw_bytes_and_bind_the_input() {
        for algorithm in [SigningAlgorithm::Es256, SigningAlgorithm::EdDsa] {
            let key = SigningKey::generate(algorithm).unwrap();
            let signature = key.sign(b"header.payload").unwrap();
            assert_eq!(signature.len(), 64, "{algorithm:?}");
            assert!(key.public().verify(b"header.payload", &signature));
            assert!(!key.public().verify(b"header.payloae", &signature));
            assert!(!key.public().verify(b"header.payload", &signature[..63]));
            assert!(!SigningKey::generate(algorithm).unwrap().public().verify(b"header.payload", &signature));
        }
    }

    #[test]
    fn a_key_survives_the_way_through_storage() {
        for algorithm in [SigningAlgorithm::Es256, SigningAlgorithm::EdDsa] {
            let key = SigningKey::generate(algorithm).unwrap();
            let again = SigningKey::from_pkcs8(algorithm, key.pkcs8().clone()).unwrap();
            assert_eq!(again.public(), key.public());
            let published = VerifyingKey::from_jwk(algorithm, &key.public().jwk()).unwrap();
            assert!(published.verify(b"x", &again.sign(b"x").unwrap()));
            assert!(!key.public().jwk().to_string().contains("\"d\""));
        }
    }

    #[test]
    fn keys_of_another_kind_damaged_or_short_are_refused() {
        let key = SigningKey::generate(SigningAlgorithm::EdDsa).unwrap();
        assert!(SigningKey::from_pkcs8(SigningAlgorithm::Es256, key.pkcs8().clone()).is_err());
        assert!(SigningKey::from_pkcs8(SigningAlgorithm::Rs256, key.pkcs8().clone()).is_err());
        let cut = SecretBytes::new(&key.pkcs8().expose()[..20]);
        assert!(SigningKey::from_pkcs8(SigningAlgorithm::EdDsa, cut).is_err());
        let weak = RsaPrivateKey::new(&mut rand::rng(), 1_024).unwrap();
        let weak = SecretBytes::new(weak.to_pkcs8_der().unwrap().as_bytes());
        assert!(SigningKey::from_pkcs8(SigningAlgorithm::Rs256, weak).is_err());
    }
}
