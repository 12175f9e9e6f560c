//! The compact form of JSON Web Tokens (RFC 7515 §3.1): three base64url parts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct UnverifiedToken {
    pub(super) header: Value,
    pub(super) payload: Value,
    pub(super) signature: Vec<u8>,
}

impl UnverifiedToken {
    /// `None` when it is not of this form, as a reference token is not.
    pub(super) fn parse(token: &str) -> Option<UnverifiedToken> {
        let mut parts = token.split('.');
        let (header, payload, signature) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        Some(UnverifiedToken {
            header: json(header)?,
            payload: json(payload)?,
            signature: decode(signature)?,
        })
    }
}

/// What the signature is made over: everything before the last dot.
pub(super) fn signed_part(token: &str) -> &str {
    token.rsplit_once('.').map_or("", |(signed, _)| signed)
}

pub(super) fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn json(part: &str) -> Option<Value> {
    serde_json::from_slice(&decode(part)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_token_is_not_taken_for_a_json_web_token() {
        for token in [
            "gpa_c29tZXRoaW5n",
            "",
            "a.b",
            "a.b.c.d",
            "e30.e30",
            "e30.e30.!",
            "e30.!.e30",
        ] {
            assert_eq!(UnverifiedToken::parse(token), None, "{token}");
        }
        assert!(UnverifiedToken::parse("e30.e30.").is_some());
        assert_eq!(signed_part("e30.e30.sig"), "e30.e30");
    }
}
