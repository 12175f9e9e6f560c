//! Proof Key for Code Exchange, at redemption (RFC 7636 §4.6): what a code remembers of its challenge, and whether a
//! verifier answers it.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::reason::Reason;

/// `code_challenge_method`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeChallengeMethod {
    /// `plain`: the challenge is the verifier.
    Plain,
    /// `S256`: the challenge is the verifier's SHA-256, base64url.
    S256,
}

impl CodeChallengeMethod {
    /// Every method, in the order of the metadata.
    pub const ALL: [CodeChallengeMethod; 2] = [CodeChallengeMethod::Plain, CodeChallengeMethod::S256];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            CodeChallengeMethod::Plain => "plain",
            CodeChallengeMethod::S256 => "S256",
        }
    }

    /// The method of that name.
    pub fn from_name(name: &str) -> Option<CodeChallengeMethod> {
        CodeChallengeMethod::ALL.into_iter().find(|method| method.as_str() == name)
    }

    /// The byte that stands for it in a sealed code.
    pub fn tag(self) -> u8 {
        match self {
            CodeChallengeMethod::Plain => 0,
            CodeChallengeMethod::S256 => 1,
        }
    }

    /// The method behind that byte.
    pub fn from_tag(tag: u8) -> Option<CodeChallengeMethod> {
        CodeChallengeMethod::ALL.into_iter().find(|method| method.tag() == tag)
    }
}

/// A challenge as a code carries it: hashed, so that its length does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredChallenge {
    /// How the verifier becomes the challenge.
    pub method: CodeChallengeMethod,
    /// SHA-256 of the challenge text.
    pub hash: [u8; 32],
}

impl StoredChallenge {
    /// Of a challenge that the authorization endpoint found well-formed.
    pub fn of(method: CodeChallengeMethod, challenge: &str) -> StoredChallenge {
        StoredChallenge { method, hash: Sha256::digest(challenge.as_bytes()).into() }
    }

    /// Whether `code_verifier` answers this challenge; `CodeVerifierMismatch` when it does not or is malformed.
    pub fn verify(&self, code_verifier: &str) -> Result<(), Reason> {
        if !is_well_formed(code_verifier) {
            return Err(Reason::CodeVerifierMismatch);
        }
        let challenge = match self.method {
            CodeChallengeMethod::Plain => code_verifier.to_owned(),
            CodeChallengeMethod::S256 => URL_SAFE_NO_PAD.encode(Sha256::digest(code_verifier.as_bytes())),
        };
        let hash = Sha256::digest(challenge.as_bytes());
        verify_slices_are_equal(&hash, &self.hash).map_err(|_| Reason::CodeVerifierMismatch)
    }
}

/// 43 to 128 unreserved characters (RFC 7636 §4.1).
fn is_well_formed(code_verifier: &str) -> bool {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    (43..=128).contains(&code_verifier.len()) && code_verifier.bytes().all(unreserved)
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 7636 Appendix B
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn the_verifier_of_rfc_7636_answers_its_challenge() {
        assert_eq!(StoredChallenge::of(CodeChallengeMethod::S256, CHALLENGE).verify(VERIFIER), Ok(()));
        assert_eq!(StoredChallenge::of(CodeChallengeMethod::Plain, VERIFIER).verify(VERIFIER), Ok(()));
    }

    #[test]
    fn methods_are_not_interchangeable() {
        let plain = StoredChallenge::of(CodeChallengeMethod::Plain, CHALLENGE);
        let hashed = StoredChallenge::of(CodeChallengeMethod::S256, VERIFIER);
        assert_eq!(plain.verify(VERIFIER), Err(Reason::CodeVerifierMismatch));
        assert_eq!(hashed.verify(VERIFIER), Err(Reason::CodeVerifierMismatch));
        assert_eq!(
            StoredChallenge::of(CodeChallengeMethod::S256, CHALLENGE).verify(CHALLENGE),
            Err(Reason::CodeVerifierMismatch)
        );
    }

    #[test]
    fn a_malformed_verifier_never_matches_even_its_own_plain_challenge() {
        let long = "a".repeat(129);
        for verifier in [
            "",
            &VERIFIER[1..],
            &long,
            "dBjftJeZ4CVP+mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
            "dBjftJeZ4CVP mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
            "dBjftJeZ4CVP\nmB92K27uhbUJU1p1r_wW1gFWFOEjXk",
            "dBjftJeZ4CVP\u{212a}mB92K27uhbUJU1p1r_wW1gFWFOEj",
            "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk=",
        ] {
            let challenge = StoredChallenge::of(CodeChallengeMethod::Plain, verifier);
            assert_eq!(challenge.verify(verifier), Err(Reason::CodeVerifierMismatch), "{verifier:?}");
        }
    }

    #[test]
    fn the_bounds_of_the_length_are_inside() {
        for verifier in ["~".repeat(43), ".".repeat(128)] {
            assert_eq!(StoredChallenge::of(CodeChallengeMethod::Plain, &verifier).verify(&verifier), Ok(()));
        }
    }

    #[test]
    fn names_and_tags_lead_back_to_the_method() {
        for method in CodeChallengeMethod::ALL {
            assert_eq!(CodeChallengeMethod::from_name(method.as_str()), Some(method));
            assert_eq!(CodeChallengeMethod::from_tag(method.tag()), Some(method));
        }
        assert_eq!(CodeChallengeMethod::from_name("s256"), None);
        assert_eq!(CodeChallengeMethod::from_tag(2), None);
    }
}
