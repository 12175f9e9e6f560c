//! What people can be registered with: claims, a user name, an end, a picture.

use serde_json::Value;

use crate::registration::names::{is_invisible, own_claim, require};
use crate::registration::timestamp;
use crate::words::claim_shape::{is_locale, listed};
use crate::words::instant::{Day, Instant};
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

/// Reads until when somebody is there: a moment, whose fraction of a second does not count, or a
/// day, at whose end in UTC they are there no longer. One that is over ends them at once.
pub fn valid_until(text: &str) -> Result<Instant, &'static str> {
    let years = 0..FIRST_YEAR_OF_FIVE_DIGITS;
    let moment = match timestamp::parse_day(text) {
        Some(day) if years.contains(&day.start().seconds()) => {
            let last_moment = Instant::from_seconds(FIRST_YEAR_OF_FIVE_DIGITS - 1);
            return Ok(Day(day.0 + 1).start().min(last_moment));
        }
        Some(_) => None,
        None => timestamp::parse(text),
    };
    match moment {
        Some(moment) if years.contains(&moment.seconds()) => Ok(moment),
        None if timestamp::parse(&format!("{text}Z")).is_some() => {
            Err("must say its zone, as 2027-01-31T18:00:00Z or 2027-01-31T18:00:00+01:00")
        }
        Some(_) | None => Err(
            "must be a day, as 2027-01-31, or a moment with its zone, as 2027-01-31T18:00:00Z, \
             from 1970 to 9999",
        ),
    }
}

/// Its seconds since 1970: it could not be read again.
const FIRST_YEAR_OF_FIVE_DIGITS: i64 = 253_402_300_800;

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
    fn an_end_is_a_moment_with_its_zone_or_a_whole_day_in_utc() {
        let [form, zone] = ["must be a day", "must say its zone"];
        for (text, read) in [
            ("2027-01-31", Ok(1_801_440_000)),
            ("2027-01-31T18:00:00Z", Ok(1_801_418_400)),
            ("2027-01-31T19:00:00.999+01:00", Ok(1_801_418_400)),
            ("1970-01-01", Ok(86_400)),
            ("1970-01-01T00:00:00Z", Ok(0)),
            ("9999-12-31T23:59:59Z", Ok(253_402_300_799)),
            ("1969-12-31T23:59:59Z", Err(form)),
            ("1969-12-30", Err(form)),
            ("9999-12-31", Ok(253_402_300_799)),
            ("1969-12-31", Err(form)),
            ("12000-01-01", Err(form)),
            ("12000-01-01T00:00:00Z", Err(form)),
            ("2027-02-29", Err(form)),
            ("never", Err(form)),
            ("", Err(form)),
            ("2027-01-31T18:00:00", Err(zone)),
            ("2027-01-31 18:00:00.5", Err(zone)),
        ] {
            let found = valid_until(text).map(Instant::seconds);
            match read {
                Ok(seconds) => assert_eq!(found, Ok(seconds), "{text}"),
                Err(rule) => assert!(found.is_err_and(|told| told.starts_with(rule)), "{text}"),
            }
        }
    }

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
