//! The app on a person's phone: the codes that it shows for a key (RFC 6238 §4, 30 seconds, six
//! digits).

use aws_lc_rs::hmac;

const STEP: u64 = 30;

/// The code at that second, and how many seconds it is shown. `None` where the key is no base32.
pub(super) fn app_code(key: &str, second: u64) -> Option<AppCode> {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &from_base32(key)?);
    let tag = hmac::sign(&key, &(second / STEP).to_be_bytes());
    let tag = tag.as_ref();
    // RFC 4226 §5.3.
    let offset = usize::from(tag.last()? & 0x0f);
    let part: [u8; 4] = tag.get(offset..offset + 4)?.try_into().ok()?;
    let number = (u32::from_be_bytes(part) & 0x7fff_ffff) % 1_000_000;
    Some(AppCode {
        digits: format!("{number:06}"),
        seconds_left: STEP - second % STEP,
    })
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct AppCode {
    pub(super) digits: String,
    pub(super) seconds_left: u64,
}

fn from_base32(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut bytes = Vec::new();
    let (mut held, mut bits) = (0_u32, 0);
    for letter in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == letter)?;
        held = held << 5 | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_of_rfc_6238() {
        // Appendix B, "12345678901234567890": the last six digits.
        let key = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
        for (second, digits, seconds_left) in [
            (59, "287082", 1),
            (1_111_111_109, "081804", 1),
            (2_000_000_000, "279037", 10),
        ] {
            let expected = AppCode {
                digits: digits.to_owned(),
                seconds_left,
            };
            assert_eq!(app_code(key, second), Some(expected));
        }
        assert_eq!(app_code("no base32", 0), None);
    }
}
