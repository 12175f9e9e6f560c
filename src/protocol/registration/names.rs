//! What names may be made of.

use crate::registration::problem::shown;
use crate::token::claims::is_reserved;
use crate::words::rule::RuleKept;
use crate::words::scope::ScopeSet;

/// The scope of whoever may apply documents over HTTP.
pub const REGISTRATION_WRITE: &str = "registration.write";
/// The scope of whoever may read users over SCIM.
pub const SCIM_READ: &str = "scim.read";
/// The scope of whoever may change them, too.
pub const SCIM_WRITE: &str = "scim.write";

/// Scopes that are there without being registered (OpenID Connect Core §5.4, §11). They are about
/// users: no resource scope may have such a name.
pub const STANDARD_SCOPES: [&str; 6] = [
    "openid",
    "profile",
    "email",
    "address",
    "phone",
    "offline_access",
];

/// Scopes that are there, too, until one of that name is registered.
pub const MEMBERSHIP_SCOPES: [&str; 2] = ["roles", "groups"];

/// A rule as a sentence without subject: "must be ..."; the walker puts the member before it.
pub fn require(holds: bool, rule: &'static str) -> RuleKept {
    if holds { Ok(()) } else { Err(rule) }
}

/// Names of clients (RFC 6749 appendix A.1), at most 200 characters. Text has them in quotes, and a
/// space at an end would not be seen.
pub fn client_id(name: &str) -> RuleKept {
    let fits = token_name(&name.replace(' ', "-")).is_ok() && name.trim() == name;
    require(
        fits,
        "must be 1 to 200 printable ASCII characters without \" and \\, and without a space at \
         either end",
    )
}

/// Names of resources and scopes: the characters of a scope token (RFC 6749 §3.3), at most 200.
pub fn token_name(name: &str) -> RuleKept {
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    let fits = (1..=200).contains(&name.len()) && name.bytes().all(allowed);
    require(
        fits,
        "must be 1 to 200 printable ASCII characters without spaces, \" and \\",
    )
}

/// Names of scopes, as `scope` has them.
pub(super) fn scope_names(text: &str) -> RuleKept {
    ScopeSet::parse(text)
        .map(drop)
        .ok_or("must be scope names separated by spaces")
}

/// Names of tenants and identity providers, which stand in `acr_values` and in paths.
pub fn plain_name(name: &str) -> RuleKept {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let begins_well = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    let fits = begins_well && name.len() <= 64 && name.bytes().all(allowed);
    require(
        fits,
        "must be 1 to 64 letters, digits, - . _, beginning with a letter or digit",
    )
}

pub(super) fn claim_name(name: &str) -> RuleKept {
    let fits = (1..=200).contains(&name.len()) && name.as_bytes().iter().all(u8::is_ascii_graphic);
    require(
        fits,
        "must be 1 to 200 printable ASCII characters without spaces",
    )
}

/// A claim's name in what a scope or resource releases: `sub` may be listed, as it is always there.
pub(super) fn released_claim(name: &str) -> RuleKept {
    if name == "sub" {
        Ok(())
    } else {
        own_claim(name)
    }
}

pub fn own_claim(name: &str) -> RuleKept {
    if is_reserved(name) {
        return Err("is a reserved claim: the token's own, not to be overwritten");
    }
    claim_name(name)
}

/// What people read: one line.
pub fn display_text(text: &str) -> RuleKept {
    let fits = text.chars().count() <= 200 && !text.chars().any(is_invisible);
    require(
        fits,
        "must be at most 200 characters, without control, bidi and zero-width characters",
    )
}

/// Characters that let two texts look alike or one text look like another: controls, bidi marks,
/// zero-width ones (Unicode TR 36 §2.5, §2.10).
pub fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// `names "x", which is not a registered scope; the nearest is "y"`
pub fn not_registered<'a>(
    name: &str,
    kind: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    format!(
        "names {}, which is not a registered {kind}{}",
        shown(name),
        hint(name, known)
    )
}

/// How many characters of a name are compared, so that a hostile name costs no time.
const LONGEST: usize = 64;

/// The candidate with the smallest edit distance, the first of several; `None` when none is so near
/// that it could be meant: one begins with the other, or no more than a third of the longer
/// differs.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = letters(name);
    let mut nearest = None;
    let mut least = usize::MAX;
    for candidate in candidates {
        if let Some(distance) = bearable_distance(&name, &letters(candidate))
            && distance < least
        {
            nearest = Some(candidate);
            least = distance;
        }
    }
    nearest
}

fn letters(text: &str) -> Vec<char> {
    let start = text.chars().take(LONGEST);
    start.flat_map(char::to_lowercase).collect()
}

/// The edit distance; `None` where the one could not be meant by the other.
fn bearable_distance(name: &[char], other: &[char]) -> Option<usize> {
    let bearable = name.len().max(other.len()).div_ceil(3);
    let begins_alike = is_beginning(name, other) || is_beginning(other, name);
    if !begins_alike && name.len().abs_diff(other.len()) > bearable {
        return None;
    }
    let distance = edit_distance(name, other);
    let is_near = distance <= bearable && distance < name.len().min(other.len());
    (is_near || begins_alike).then_some(distance)
}

fn is_beginning(start: &[char], whole: &[char]) -> bool {
    start.len() >= 3 && whole.starts_with(start)
}

/// `; the nearest is "x"`, or nothing.
pub fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(name, candidates) {
        Some(nearest) => format!("; the nearest is {}", shown(nearest)),
        None => String::new(),
    }
}

/// Characters put in, taken out, replaced or swapped with their neighbour (optimal string
/// alignment).
fn edit_distance(left: &[char], right: &[char]) -> usize {
    let mut earlier: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, from) in left.iter().enumerate() {
        let mut next = vec![i + 1];
        let mut before = i + 1;
        for (j, ((to, above), diagonal)) in right
            .iter()
            .zip(row.iter().skip(1))
            .zip(row.iter())
            .enumerate()
        {
            before = (before + 1)
                .min(above + 1)
                .min(diagonal + usize::from(from != to));
            let left_neighbour = i.checked_sub(1);
            let right_neighbour = j.checked_sub(1);
            if let (Some(i), Some(j)) = (left_neighbour, right_neighbour)
                && left.get(i) == Some(to)
                && right.get(j) == Some(from)
            {
                before = before.min(earlier.get(j).map_or(usize::MAX, |swapped| swapped + 1));
            }
            next.push(before);
        }
        earlier = row;
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_their_characters_are_refused() {
        for name in [
            "",
            " ",
            " a",
            "a ",
            "a\"b",
            "a\\b",
            "é",
            "a\tb",
            "a\u{7f}b",
            &"x".repeat(201),
        ] {
            assert!(client_id(name).is_err(), "{name:?}");
        }
        for name in [
            "My shop",
            "https://shop.example/client",
            "a~!#'(b",
            &"x".repeat(200),
        ] {
            assert!(client_id(name).is_ok(), "{name:?}");
        }
        for name in ["", "a b", "a\"", "a\\", "é", "a\n", &"x".repeat(201)] {
            assert!(token_name(name).is_err(), "{name:?}");
        }
        for name in [
            "",
            "-a",
            ".",
            "a/b",
            "a b",
            "a:b",
            "é",
            "..",
            &"x".repeat(65),
        ] {
            assert!(plain_name(name).is_err(), "{name:?}");
        }
        assert!(
            token_name("https://api.example/orders").is_ok() && plain_name("acme-2.eu_x").is_ok()
        );
    }

    #[test]
    fn reserved_claims_cannot_be_filled() {
        for name in [
            "iss",
            "aud",
            "exp",
            "scope",
            "tenant",
            "act",
            "may_act",
            "exchanged_from",
            "access_token",
        ] {
            assert!(own_claim(name).is_err(), "{name}");
        }
        assert!(
            own_claim("role").is_ok()
                && released_claim("sub").is_ok()
                && released_claim("iss").is_err()
        );
    }

    mod nearest {
        use super::super::*;

        #[test]
        fn the_nearest_name_wins() {
            assert_eq!(
                nearest("redirect_uri", ["scope", "redirect_uris", "jwks_uri"]),
                Some("redirect_uris")
            );
            assert_eq!(nearest("Scope", ["scope"]), Some("scope"));
            assert_eq!(
                nearest("from", ["to_resources", "from_clients"]),
                Some("from_clients")
            );
            assert_eq!(
                nearest("user lsit", ["user add", "user list", "client list"]),
                Some("user list")
            );
            assert_eq!(hint("scop", ["scope"]), "; the nearest is \"scope\"");
        }

        #[test]
        fn where_nothing_is_near_nothing_is_named() {
            for (name, known) in [
                ("x", "y"),
                ("canary-91", "scope"),
                ("orders", "openid"),
                ("web", "spa"),
                ("", "a"),
                ("delete", "list"),
            ] {
                assert_eq!(nearest(name, [known]), None, "{name}");
            }
            assert_eq!(
                (nearest("x", []), hint("frobnicate", ["scope", "claims"])),
                (None, String::new())
            );
        }
    }
}
