//! What people can be registered with: claims, a user name, a picture.

use serde_json::Value;

use crate::registration::names::{is_invisible, own_claim, require};
use crate::words::claim_shape::{is_locale, listed};
use crate::words::rule::RuleKept;

/// Whether a document could give a user this claim.
pub fn is_possible_claim(name: &str, value: &Value) -> bool {
    check_claim(name, value).is_ok()
}

/// The rule that keeps a document from giving a user this claim.
pub fn check_claim(name: &str, value: &Value) -> RuleKept {
    own_claim(name)?;
    claim_value(name, value)
}

/// Types of the standard claims (OpenID Connect Core §5.1), and of `role`.
fn claim_value(name: &str, value: &Value) -> RuleKept {
    let (holds, rule) = match name {
        "email_verified" | "phone_number_verified" => (value.is_boolean(), "must be true or false"),
        "updated_at" => (value.is_number(), "must be a number of seconds since 1970"),
        "address" => (value.is_object(), "must be an object"),
        "role" => (
            listed(value).iter().all(Value::is_string),
            "must be a string or an array of strings",
        ),
        "locale" => (
            value.as_str().is_some_and(is_locale),
            "must be a language tag, such as de-DE",
        ),
        "name" | "given_name" | "family_name" | "middle_name" | "nickname"
        | "preferred_username" | "profile" | "picture" | "website" | "email" | "gender"
        | "birthdate" | "zoneinfo" | "phone_number" => (value.is_string(), "must be a string"),
        _ => (!value.is_null(), "must not be null"),
    };
    require(holds, rule)
}

/// The rule for user names: what users type and see is exactly what is compared.
pub fn check_username(text: &str) -> RuleKept {
    if !(1..=256).contains(&text.chars().count()) {
        return Err("must be 1 to 256 characters");
    }
    if text.chars().any(is_invisible) {
        return Err("must not hold control, bidi or zero-width characters");
    }
    if text.trim() != text {
        return Err("must not begin or end with a space");
    }
    Ok(())
}

const MAGIC: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

/// The media type of a picture; `None` for anything else.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    for (magic, media_type) in MAGIC {
        if bytes.starts_with(magic) {
            return Some(media_type);
        }
    }
    is_webp.then_some("image/webp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_else_is_one() {
        for bytes in [
            &b""[..],
            b"\x89PN",
            b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
            b"<?xml version='1.0'?><svg/>",
            b"<!doctype html><script>alert(1)</script>",
            b"GIF90a",
            b"RIFF\0\0\0\0WAVE",
            b"RIFF",
            b" \x89PNG\r\n\x1a\n",
            b"BM",
        ] {
            assert_eq!(media_type(bytes), None, "{bytes:?}");
        }
    }
}
