//! What names may be made of.

use crate::protocol::token::claims::is_reserved;

use super::problem::shown;
use crate::protocol::words::nearest::hint;

/// Scopes that are there without being registered (OpenID Connect Core §5.4, §11).
pub const BUILT_IN_SCOPES: [&str; 6] = ["openid", "profile", "email", "address", "phone", "offline_access"];

/// Names of clients, resources and scopes: the characters of a scope token (RFC 6749 §3.3), at most 200.
pub(super) fn token_name(name: &str) -> Result<(), &'static str> {
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    let fits = (1..=200).contains(&name.len()) && name.bytes().all(allowed);
    if fits { Ok(()) } else { Err("must be 1 to 200 printable ASCII characters without spaces, \" and \\") }
}

/// Names of tenants and identity providers, which stand in `acr_values` and in paths.
pub(super) fn plain_name(name: &str) -> Result<(), &'static str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let fits = begins_well && name.len() <= 64 && name.bytes().all(allowed);
    if fits { Ok(()) } else { Err("must be 1 to 64 letters, digits, - . _, beginning with a letter or digit") }
}

pub(super) fn claim_name(name: &str) -> Result<(), &'static str> {
    let fits = (1..=200).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(()) } else { Err("must be 1 to 200 printable ASCII characters without spaces") }
}

/// A claim's name in what a scope or resource releases: `sub` may be listed, as it is always there.
pub(super) fn released_claim(name: &str) -> Result<(), &'static str> {
    if name == "sub" { Ok(()) } else { own_claim(name) }
}

pub(super) fn own_claim(name: &str) -> Result<(), &'static str> {
    if is_reserved(name) {
        return Err("is a reserved claim: the token's own, not to be overwritten");
    }
    claim_name(name)
}

/// What people read: one line.
pub fn display_text(text: &str) -> Result<(), &'static str> {
    let fits = text.chars().count() <= 200 && !text.chars().any(is_invisible);
    if fits { Ok(()) } else { Err("must be at most 200 characters, without control, bidi and zero-width characters") }
}

/// Characters that let two texts look alike or one text look like another: controls, bidi marks, zero-width ones
/// (Unicode TR 36 §2.5, §2.10).
pub fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// `names "x", which is not a registered scope; the nearest is "y"`
pub(super) fn not_registered<'a>(name: &str, kind: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    format!("names {}, which is not a registered {kind}{}", shown(name), hint(name, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_their_characters_are_refused() {
        for name in ["", "a b", "a\"", "a\\", "é", "a\n", &"x".repeat(201)] {
            assert!(token_name(name).is_err(), "{name:?}");
        }
        for name in ["", "-a", ".", "a/b", "a b", "a:b", "é", "..", &"x".repeat(65)] {
            assert!(plain_name(name).is_err(), "{name:?}");
        }
        assert!(token_name("https://api.example/orders").is_ok() && plain_name("acme-2.eu_x").is_ok());
    }

    #[test]
    fn reserved_claims_cannot_be_filled() {
        for name in ["iss", "aud", "exp", "scope", "tenant", "act", "may_act", "exchanged_from", "access_token"] {
            assert!(own_claim(name).is_err(), "{name}");
        }
        assert!(own_claim("role").is_ok() && released_claim("sub").is_ok() && released_claim("iss").is_err());
    }
}
