//! Proof Key for Code Exchange (RFC 7636). An authorization code carries a digest of the challenge.
//! With `plain` the challenge is the verifier, which must not stand in the code.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::words::named::named;
use crate::words::parameters;
use crate::words::reason::Reason;
use crate::words::secret::SecretText;

/// Characters of 32 bytes in base64url.
const S256_LENGTH: usize = 43;

named! {
    #[derive(Serialize, Deserialize)]
    pub enum CodeChallengeMethod {
        Plain = "plain",
        S256 = "S256",
    }
}

impl CodeChallengeMethod {
    /// Reads `code_challenge_method`. Without it, the method is `plain` (RFC 7636 §4.3).
    pub fn parse(name: Option<&str>) -> Result<CodeChallengeMethod, Reason> {
        match name {
            None | Some("plain") => Ok(CodeChallengeMethod::Plain),
            Some("S256") => Ok(CodeChallengeMethod::S256),
            Some(_) => Err(Reason::UnsupportedCodeChallengeMethod),
        }
    }
}

/// A well-formed `code_challenge`. With `plain` it is as secret as the verifier.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeChallenge {
    method: CodeChallengeMethod,
    value: SecretText,
}

impl CodeChallenge {
    /// Reads `code_challenge`: 43 to 128 unreserved characters with `plain`, exactly 43 characters
    /// of base64url with S256.
    pub fn parse(challenge: &str, method: CodeChallengeMethod) -> Result<CodeChallenge, Reason> {
        let well_formed = match method {
            CodeChallengeMethod::Plain => is_verifier(challenge),
            CodeChallengeMethod::S256 => {
                challenge.len() == S256_LENGTH && challenge.bytes().all(is_base64url)
            }
        };
        let value = well_formed
            .then(|| SecretText::new(challenge))
            .ok_or(Reason::MalformedCodeChallenge)?;
        Ok(CodeChallenge { method, value })
    }

    pub fn method(&self) -> CodeChallengeMethod {
        self.method
    }

    pub fn digest(&self) -> CodeChallengeDigest {
        CodeChallengeDigest {
            method: self.method,
            sha256: sha256(self.value.expose()),
        }
    }
}

/// SHA-256 of a `code_challenge`, and its method. The authorization code carries this.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeChallengeDigest {
    pub method: CodeChallengeMethod,
    pub sha256: [u8; 32],
}

/// Compares a verifier with the challenge (RFC 7636 §4.6). A verifier without a challenge is an
/// error: somebody may have removed the challenge from the request (RFC 9700 §2.1.1). All three
/// errors are `invalid_grant`.
pub fn verify(
    challenge: Option<&CodeChallengeDigest>,
    code_verifier: Option<&str>,
) -> Result<(), Reason> {
    match (challenge, code_verifier) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(Reason::CodeVerifierUnexpected),
        (Some(_), None) => Err(Reason::CodeVerifierMissing),
        (Some(challenge), Some(verifier)) if answers(challenge, verifier) => Ok(()),
        (Some(_), Some(_)) => Err(Reason::CodeVerifierMismatch),
    }
}

fn answers(challenge: &CodeChallengeDigest, verifier: &str) -> bool {
    if !is_verifier(verifier) {
        return false;
    }
    let computed = match challenge.method {
        CodeChallengeMethod::Plain => sha256(verifier),
        CodeChallengeMethod::S256 => sha256(&URL_SAFE_NO_PAD.encode(sha256(verifier))),
    };
    verify_slices_are_equal(&computed, &challenge.sha256).is_ok()
}

fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn is_verifier(text: &str) -> bool {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    (parameters::CODE_VERIFIER_LEAST..=parameters::CODE_VERIFIER).contains(&text.len())
        && text.bytes().all(unreserved)
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // RFC 7636 appendix B
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    fn s256(challenge: &str) -> CodeChallengeDigest {
        CodeChallenge::parse(challenge, CodeChallengeMethod::S256)
            .unwrap()
            .digest()
    }

    fn plain(challenge: &str) -> CodeChallengeDigest {
        CodeChallenge::parse(challenge, CodeChallengeMethod::Plain)
            .unwrap()
            .digest()
    }

    #[test]
    fn the_vector_of_rfc_7636_appendix_b_verifies() {
        assert_eq!(verify(Some(&s256(CHALLENGE)), Some(VERIFIER)), Ok(()));
        assert_eq!(verify(Some(&plain(VERIFIER)), Some(VERIFIER)), Ok(()));
    }

    #[test]
    fn another_verifier_does_not() {
        let other = format!("e{}", &VERIFIER[1..]);
        #[rustfmt::skip]
        let rows = [
            CHALLENGE, other.as_str(), "", &VERIFIER[..42], &format!("{VERIFIER}="), &format!("{VERIFIER} "),
            &"a".repeat(129),
        ];
        for verifier in rows {
            assert_eq!(
                verify(Some(&s256(CHALLENGE)), Some(verifier)),
                Err(Reason::CodeVerifierMismatch),
                "{verifier}"
            );
        }
        // Too short to be a verifier, however well it fits.
        let of_a_short_one = s256(&URL_SAFE_NO_PAD.encode(Sha256::digest(b"short")));
        assert_eq!(
            verify(Some(&of_a_short_one), Some("short")),
            Err(Reason::CodeVerifierMismatch)
        );
        // The method belongs to the challenge: a challenge is no verifier of itself, nor the other
        // way round.
        assert_eq!(
            verify(Some(&plain(CHALLENGE)), Some(VERIFIER)),
            Err(Reason::CodeVerifierMismatch)
        );
        assert_eq!(
            verify(Some(&s256(CHALLENGE)), Some(CHALLENGE)),
            Err(Reason::CodeVerifierMismatch)
        );
    }

    #[test]
    fn methods_are_the_two_of_the_standard() {
        assert_eq!(
            CodeChallengeMethod::parse(None),
            Ok(CodeChallengeMethod::Plain)
        );
        for method in [CodeChallengeMethod::Plain, CodeChallengeMethod::S256] {
            assert_eq!(
                CodeChallengeMethod::parse(Some(method.as_str())),
                Ok(method)
            );
        }
        for name in ["", "s256", "S512", "PLAIN", "none", "S256 "] {
            assert_eq!(
                CodeChallengeMethod::parse(Some(name)),
                Err(Reason::UnsupportedCodeChallengeMethod),
                "{name}"
            );
        }
    }

    #[test]
    fn lengths_and_characters_of_a_challenge() {
        for length in [43, 44, 127, 128] {
            assert!(
                CodeChallenge::parse(&"~".repeat(length), CodeChallengeMethod::Plain).is_ok(),
                "{length}"
            );
        }
        for length in [0, 1, 42, 129] {
            assert!(
                CodeChallenge::parse(&"a".repeat(length), CodeChallengeMethod::Plain).is_err(),
                "{length}"
            );
        }
        for length in [0, 42, 44, 128] {
            assert!(
                CodeChallenge::parse(&"a".repeat(length), CodeChallengeMethod::S256).is_err(),
                "{length}"
            );
        }
        for odd in [
            "+", "/", "=", "%", " ", "\n", "\0", "\u{212a}", "\u{e9}", "*",
        ] {
            let text = format!("{}{odd}", "a".repeat(43 - odd.len()));
            assert_eq!(text.len(), 43);
            for method in [CodeChallengeMethod::Plain, CodeChallengeMethod::S256] {
                assert_eq!(
                    CodeChallenge::parse(&text, method),
                    Err(Reason::MalformedCodeChallenge),
                    "{odd:?}"
                );
            }
            assert_eq!(
                verify(Some(&s256(CHALLENGE)), Some(&text)),
                Err(Reason::CodeVerifierMismatch)
            );
        }
        // Unreserved, but not of base64url.
        assert!(CodeChallenge::parse(&"~".repeat(43), CodeChallengeMethod::S256).is_err());
    }

    #[test]
    fn a_challenge_does_not_print() {
        let challenge = CodeChallenge::parse(VERIFIER, CodeChallengeMethod::Plain).unwrap();
        assert!(!format!("{challenge:?}").contains(VERIFIER));
    }

    proptest! {
        #[test]
        fn every_well_formed_verifier_answers_its_own_challenge_only(verifier in "[A-Za-z0-9._~-]{43,128}", other in "[A-Za-z0-9._~-]{43,128}") {
            let challenge = s256(&URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes())));
            prop_assert_eq!(verify(Some(&challenge), Some(&verifier)), Ok(()));
            prop_assert_eq!(verify(Some(&plain(&verifier)), Some(&verifier)), Ok(()));
            prop_assert_eq!(verify(Some(&challenge), Some(&other)).is_ok(), verifier == other);
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,140}") {
            let _ = CodeChallenge::parse(&text, CodeChallengeMethod::Plain);
            let _ = verify(Some(&s256(CHALLENGE)), Some(&text));
        }
    }
}
