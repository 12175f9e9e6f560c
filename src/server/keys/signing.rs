//! Signing keys. They are made here, or imported from PEM (RFC 7468), and kept as PKCS#8. aws-lc-rs
//! signs, in constant time. The `rsa` crate only makes, checks and describes RSA keys.

use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rsa::RsaPrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey, PrivateKeyInfoRef};
use rsa::traits::PublicKeyParts;

use gatepost_protocol::keys::jwt::PublicKey;
use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};

/// An imported RSA key may have so many bits. One that is made here has the fewest.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;
const ENCRYPTED: &str = "the key is encrypted: `openssl pkey -in FILE` asks for its password";

#[derive(Debug)]
pub struct SigningKey {
    kid: String,
    public_key: PublicKey,
    pair: Pair,
}

#[derive(Debug)]
enum Pair {
    /// With the public key that checks each signature before it leaves.
    Rsa(RsaKeyPair, ParsedPublicKey),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// A new private key as PKCS#8 (RFC 5208).
pub fn generate(algorithm: SigningAlgorithm) -> Result<SecretBytes, String> {
    let random = SystemRandom::new();
    let document = match algorithm {
        SigningAlgorithm::Rs256 => {
            let key = RsaPrivateKey::new(
                &mut rand::rand_core::UnwrapErr(rand::rngs::SysRng),
                *RSA_BITS.start(),
            )
            .map_err(|error| format!("making an RSA key: {error}"))?;
            return of_rsa(key).map(|key| key.pkcs8);
        }
        SigningAlgorithm::Es256 => {
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
        }
        SigningAlgorithm::EdDsa => Ed25519KeyPair::generate_pkcs8(&random),
    };
    document
        .map(|document| SecretBytes::new(document.as_ref()))
        .map_err(|_| format!("making a {} key failed", algorithm.as_str()))
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

    /// The JWS signature (RFC 7518 §3.3, §3.4; RFC 8037 §3.1). An RSA signature is checked before
    /// it leaves: a faulty one would give the key away.
    pub fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>, String> {
        let random = SystemRandom::new();
        let failed = |_| format!("signing with {} failed", self.algorithm().as_str());
        match &self.pair {
            Pair::Rsa(pair, public) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, signing_input, &mut signature)
                    .map_err(failed)?;
                if public.verify_sig(signing_input, &signature).is_err() {
                    return Err(String::from(
                        "an RSA signature did not verify and was withheld",
                    ));
                }
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
        SigningAlgorithm::Rs256 => {
            let pair = RsaKeyPair::from_pkcs8(pkcs8)?;
            let public = ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key())?;
            Pair::Rsa(pair, public)
        }
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

#[derive(Clone, Debug)]
pub struct ImportedKey {
    pub algorithm: SigningAlgorithm,
    pub pkcs8: SecretBytes,
}

/// Reads the one private key of a PEM text: PKCS#1, PKCS#8 or SEC 1. The error says what is wrong,
/// never the key.
pub fn import(pem: &SecretText) -> Result<ImportedKey, String> {
    let (label, der) = only_key(pem)?;
    let key = match label {
        "RSA PRIVATE KEY" => {
            of_rsa(RsaPrivateKey::from_pkcs1_der(der.expose()).map_err(|_| unreadable("PKCS#1"))?)
        }
        "EC PRIVATE KEY" => of_p256(&der),
        "PRIVATE KEY" => of_pkcs8(&der),
        "ENCRYPTED PRIVATE KEY" => Err(String::from(ENCRYPTED)),
        "OPENSSH PRIVATE KEY" => Err(String::from(
            "OpenSSH's own form is not read: `ssh-keygen -p -m PKCS8 -f FILE` turns it",
        )),
        "PUBLIC KEY" | "RSA PUBLIC KEY" | "CERTIFICATE" => Err(String::from(
            "that is a public key; the private one is needed",
        )),
        other => Err(format!(
            "a \"{}\" is not a private key",
            other.escape_debug()
        )),
    }?;
    try_out(&key)?;
    Ok(key)
}

/// The label and the content of the one block that is a key.
fn only_key(pem: &SecretText) -> Result<(&str, SecretBytes), String> {
    let mut keys = Vec::new();
    for text in pem.expose().split("-----BEGIN ").skip(1) {
        let (label, der) = block(text)?;
        if label != "EC PARAMETERS" {
            keys.push((label, der));
        }
    }
    let Ok([key]) = <[_; 1]>::try_from(keys) else {
        return Err(String::from(
            "there must be one private key in PEM, from -----BEGIN to -----END, and nothing else",
        ));
    };
    Ok(key)
}

/// The label and the content of a block, from behind `-----BEGIN `.
fn block(text: &str) -> Result<(&str, SecretBytes), String> {
    let (label, rest) = text
        .split_once("-----")
        .ok_or("the line with -----BEGIN is cut")?;
    let (body, _) = rest
        .split_once(&format!("-----END {label}-----"))
        .ok_or("the line with -----END is missing")?;
    if body.contains("Proc-Type:") {
        return Err(String::from(ENCRYPTED));
    }
    let body: String = body.split_whitespace().collect();
    let der = STANDARD
        .decode(body)
        .map_err(|_| "what stands between -----BEGIN and -----END is not base64")?;
    Ok((label, SecretBytes::new(der)))
}

/// Nobody could verify a signature if the private and the public half did not belong together.
fn try_out(key: &ImportedKey) -> Result<(), String> {
    let signer = SigningKey::from_pkcs8(key.algorithm, &key.pkcs8)?;
    if verify(signer.public_key(), b"a trial", &signer.sign(b"a trial")?) {
        Ok(())
    } else {
        Err(String::from(
            "what the key signs does not verify under its public part",
        ))
    }
}

fn unreadable(form: &str) -> String {
    format!("the key cannot be read: it is not {form}")
}

fn of_pkcs8(der: &SecretBytes) -> Result<ImportedKey, String> {
    let info = PrivateKeyInfoRef::try_from(der.expose()).map_err(|_| unreadable("PKCS#8"))?;
    match info.algorithm.oid.to_string().as_str() {
        "1.2.840.113549.1.1.1" => of_rsa(
            RsaPrivateKey::from_pkcs8_der(der.expose())
                .map_err(|_| unreadable("an RSA key in PKCS#8"))?,
        ),
        "1.2.840.10045.2.1" => of_p256(der),
        "1.3.101.112" => of_ed25519(der),
        other => Err(format!(
            "keys of the kind {other} are not taken: RSA, EC on P-256 and Ed25519 are"
        )),
    }
}

fn of_rsa(key: RsaPrivateKey) -> Result<ImportedKey, String> {
    let bits = usize::try_from(key.n().bits()).unwrap_or(usize::MAX);
    if !RSA_BITS.contains(&bits) {
        let least = RSA_BITS.start();
        let most = RSA_BITS.end();
        return Err(format!(
            "an RSA key must have {least} to {most} bits; this one has {bits}"
        ));
    }
    // Smaller ones have a history of attacks, and no advantage here.
    if key.e().to_be_bytes_trimmed_vartime().as_ref() != [1, 0, 1] {
        return Err(String::from(
            "the public exponent of an RSA key must be 65537",
        ));
    }
    key.validate()
        .map_err(|_| "the numbers of that RSA key do not belong together")?;
    let document = key
        .to_pkcs8_der()
        .map_err(|_| "that RSA key cannot be kept as PKCS#8")?;
    Ok(ImportedKey {
        algorithm: SigningAlgorithm::Rs256,
        pkcs8: SecretBytes::new(document.as_bytes()),
    })
}

fn of_p256(der: &SecretBytes) -> Result<ImportedKey, String> {
    let pair = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, der.expose());
    let pair = pair.map_err(|_| "an EC key must be one on P-256 (prime256v1)")?;
    let document = pair
        .to_pkcs8v1()
        .map_err(|_| "that EC key cannot be kept as PKCS#8")?;
    Ok(ImportedKey {
        algorithm: SigningAlgorithm::Es256,
        pkcs8: SecretBytes::new(document.as_ref()),
    })
}

fn of_ed25519(der: &SecretBytes) -> Result<ImportedKey, String> {
    // OpenSSL leaves the public part out.
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.expose());
    let pair = pair.map_err(|_| unreadable("an Ed25519 key in PKCS#8"))?;
    let document = pair
        .to_pkcs8()
        .map_err(|_| "that Ed25519 key cannot be kept as PKCS#8")?;
    Ok(ImportedKey {
        algorithm: SigningAlgorithm::EdDsa,
        pkcs8: SecretBytes::new(document.as_ref()),
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

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

    /// What OpenSSL, which wrote none of this, makes of its arguments.
    fn openssl(line: &str) -> SecretText {
        let output = Command::new("sh").arg("-c").arg(line).output().unwrap();
        assert!(
            output.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        SecretText::new(String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    fn keys_made_by_openssl_are_read_in_every_form() {
        for (line, algorithm) in [
            ("openssl genrsa -traditional 2048", SigningAlgorithm::Rs256),
            (
                "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072",
                SigningAlgorithm::Rs256,
            ),
            (
                "openssl ecparam -name prime256v1 -genkey",
                SigningAlgorithm::Es256,
            ),
            (
                "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256",
                SigningAlgorithm::Es256,
            ),
            (
                "openssl genpkey -algorithm ED25519",
                SigningAlgorithm::EdDsa,
            ),
        ] {
            let key = import(&openssl(line)).unwrap_or_else(|problem| panic!("{line}: {problem}"));
            assert_eq!(key.algorithm, algorithm, "{line}");
        }
        assert!(
            import(&openssl(
                "openssl genpkey -algorithm ED25519 | sed 's/$/\\r/'"
            ))
            .is_ok(),
            "lines of Windows"
        );
    }

    #[test]
    fn weak_foreign_and_broken_keys_are_refused_without_being_shown() {
        for (line, rule) in [
            (
                "openssl genrsa -traditional 1024",
                "must have 2048 to 8192 bits; this one has 1024",
            ),
            (
                "openssl genrsa -3 2048",
                "exponent of an RSA key must be 65537",
            ),
            (
                "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384",
                "must be one on P-256",
            ),
            (
                "openssl ecparam -name secp384r1 -genkey -noout",
                "must be one on P-256",
            ),
            (
                "openssl genpkey -algorithm X25519",
                "keys of the kind 1.3.101.110 are not taken",
            ),
            ("openssl genpkey -algorithm ED448", "are not taken"),
            (
                "openssl genpkey -algorithm RSA-PSS -pkeyopt rsa_keygen_bits:2048",
                "are not taken",
            ),
            (
                "openssl genrsa -aes128 -passout pass:x -traditional 2048",
                "the key is encrypted",
            ),
            (
                "openssl genpkey -algorithm ED25519 -aes128 -pass pass:x",
                "the key is encrypted",
            ),
            (
                "openssl genpkey -algorithm ED25519 | openssl pkey -pubout",
                "that is a public key",
            ),
            (
                "openssl genpkey -algorithm ED25519 | openssl pkey -pubout | sed 's/PUBLIC/PRIVATE/'",
                "not PKCS#8",
            ),
            (
                "openssl genrsa 2048 | sed 's/PRIVATE KEY/EC PRIVATE KEY/'",
                "must be one on P-256",
            ),
            (
                "openssl genrsa 2048 | sed 's/PRIVATE KEY/RSA PRIVATE KEY/'",
                "not PKCS#1",
            ),
            ("openssl genrsa 2048 | sed '$d'", "-----END is missing"),
            ("openssl genrsa 2048 | sed '5s/^..../!!!!/'", "not base64"),
            ("openssl genrsa 2048 | sed '5d'", "cannot be read"),
            (
                "openssl genpkey -algorithm ED25519; openssl genpkey -algorithm ED25519",
                "one private key",
            ),
            ("true", "one private key"),
            ("echo hunter2", "one private key"),
        ] {
            let pem = openssl(line);
            let problem = import(&pem).map(|key| key.algorithm).expect_err(line);
            assert!(problem.contains(rule), "{line}: {problem}");
            let leaks = |text: &str| text.len() > 12 && problem.contains(text);
            assert!(
                !pem.expose()
                    .lines()
                    .filter(|line| !line.starts_with("--"))
                    .any(leaks),
                "{problem}"
            );
        }
    }
}
