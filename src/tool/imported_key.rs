//! A private key that was made elsewhere, in PEM (RFC 7468): PKCS#1, PKCS#8 or SEC 1.

use std::ops::RangeInclusive;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rsa::RsaPrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey, PrivateKeyInfoRef};
use rsa::traits::PublicKeyParts;

use gatepost_protocol::words::client::SigningAlgorithm;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_server::keys::signing::{SigningKey, verify};

/// An imported RSA key may have so many bits.
const RSA_BITS: RangeInclusive<usize> = 2_048..=8_192;
const ENCRYPTED: &str = "the key is encrypted: `openssl pkey -in FILE` asks for its password";

pub struct ImportedKey {
    pub algorithm: SigningAlgorithm,
    pub pkcs8: SecretBytes,
}

/// Reads the one private key of a PEM text. The error says what is wrong, never the key.
pub fn read(pem: &SecretText) -> Result<ImportedKey, String> {
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
            let key = read(&openssl(line)).unwrap_or_else(|problem| panic!("{line}: {problem}"));
            assert_eq!(key.algorithm, algorithm, "{line}");
        }
        assert!(
            read(&openssl(
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
            let problem = read(&pem).map(|key| key.algorithm).expect_err(line);
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
