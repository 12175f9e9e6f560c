//! The shape of `sid`: 128 random bits behind the day its row is kept under, so that a token which names a session leads
//! to the row without a search.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::identifiers::Sid;
use super::instant::Day;

/// A `sid` of 27 base64url characters.
pub fn compose(day: Day, random: [u8; 16]) -> Sid {
    let bytes = [&day.0.to_be_bytes()[..], &random[..]].concat();
    Sid::new(URL_SAFE_NO_PAD.encode(bytes))
}

/// The day of a `sid` of ours; `None` for any other text.
pub fn day(sid: &Sid) -> Option<Day> {
    let bytes: [u8; 20] = URL_SAFE_NO_PAD.decode(sid.as_str()).ok()?.try_into().ok()?;
    let (day, _) = bytes.split_first_chunk()?;
    Some(Day(i32::from_be_bytes(*day)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sid_tells_its_day() {
        for number in [0, 20_777, i32::MAX, -1] {
            assert_eq!(day(&compose(Day(number), [7; 16])), Some(Day(number)));
        }
    }

    #[test]
    fn other_texts_have_no_day() {
        for text in
            ["", "a", "AAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAA=", "é"]
        {
            assert_eq!(day(&Sid::new(text)), None, "{text}");
        }
    }
}
