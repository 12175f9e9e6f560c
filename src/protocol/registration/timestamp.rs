//! Timestamps as people write them in a document (RFC 3339 §5.6).

use std::fmt::{self, Write};

use crate::words::instant::{Day, Instant};

/// Reads `2027-01-31T23:59:59Z` or with a numeric offset. Fractions of a second are dropped; leap
/// seconds refused.
pub fn parse(text: &str) -> Option<Instant> {
    let (date, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (time, zone) = rest.split_at_checked(8)?;
    let offset = offset_seconds(behind_fraction(zone)?)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let days = days_since_epoch(year, month, day);
    // A day that the calendar has not would come back as another.
    let in_range = civil(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset;
    in_range.then(|| Instant::from_seconds(seconds))
}

/// What follows the fraction of a second; the whole text where there is none.
fn behind_fraction(text: &str) -> Option<&str> {
    let Some(fraction) = text.strip_prefix('.') else {
        return Some(text);
    };
    let rest = fraction.trim_start_matches(|character: char| character.is_ascii_digit());
    (rest.len() < fraction.len()).then_some(rest)
}

/// Reads `2027-01-31`.
pub fn parse_day(text: &str) -> Option<Day> {
    parse(&format!("{text}T00:00:00Z")).map(Instant::day)
}

pub fn format_day(day: Day) -> String {
    let (year, month, day) = civil(day.0.into());
    format!("{year:04}-{month:02}-{day:02}")
}

/// Writes an instant as `2027-01-31T23:59:59Z`, rounded down to the second.
pub fn format(instant: Instant) -> String {
    with_fraction(instant, format_args!(""))
}

fn with_fraction(instant: Instant, fraction: fmt::Arguments<'_>) -> String {
    let day = instant.seconds().div_euclid(86_400);
    let second = instant.seconds().rem_euclid(86_400);
    let (year, month, day) = civil(day);
    let hour = second / 3_600;
    let minute = second / 60 % 60;
    let second = second % 60;
    let mut text = String::with_capacity(32);
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"
    );
    text
}

/// The same to the millisecond, for logs.
pub fn format_to_the_millisecond(instant: Instant) -> String {
    with_fraction(
        instant,
        format_args!(".{:03}", instant.millis().rem_euclid(1_000)),
    )
}

/// The same to the microsecond, as Postgres keeps it.
pub fn format_to_the_microsecond(instant: Instant) -> String {
    with_fraction(
        instant,
        format_args!(".{:06}", instant.micros().rem_euclid(1_000_000)),
    )
}

/// Year, month and day (both from 1) of a day since 1970, Gregorian. Years are counted from March
/// on, so that the leap day comes last: months then alternate in a pattern of 153 days per five.
pub fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut parsed = [0; N];
    let mut pieces = text.split(separator);
    for (slot, width) in parsed.iter_mut().zip(widths) {
        let piece = pieces.next().filter(|piece| piece.len() == width)?;
        if !is_digits(piece) {
            return None;
        }
        *slot = piece.parse().ok()?;
    }
    pieces.next().is_none().then_some(parsed)
}

fn is_digits(text: &str) -> bool {
    text.as_bytes().iter().all(u8::is_ascii_digit)
}

/// Seconds of `90s`, `15m`, `12h` or `30d`.
pub fn seconds(text: &str) -> Option<u64> {
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let (number, unit) = units
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    if !is_digits(number) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    number.checked_mul(*unit)
}

fn offset_seconds(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let (sign, digits) = match (zone.strip_prefix('+'), zone.strip_prefix('-')) {
        (Some(digits), _) => (1, digits),
        (None, Some(digits)) => (-1, digits),
        (None, None) => return None,
    };
    let [hours, minutes] = numbers(digits, ':', [2, 2])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// The proleptic Gregorian calendar, counted in years that begin in March so that the leap day is
/// the last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        for (text, read) in [
            ("90s", 90),
            ("15m", 900),
            ("12h", 43_200),
            ("30d", 2_592_000),
            ("0d", 0),
        ] {
            assert_eq!(seconds(text), Some(read), "{text}");
        }
        for text in [
            "",
            "900",
            "m",
            "+5",
            "-5s",
            "5 m",
            "1.5h",
            "5M",
            "5ms",
            "m5",
            "1h30m",
            "99999999999999999999",
            "9999999999999999999d",
            "é",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn instants_are_counted_from_1970() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59Z", -1),
            ("2026-11-20T00:00:00Z", 1_795_132_800),
            ("2026-11-20t01:00:00.999+01:00", 1_795_132_800),
            ("2026-11-19T19:30:00-04:30", 1_795_132_800),
            ("2000-02-29T12:00:00z", 951_825_600),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
        ] {
            assert_eq!(parse(text).map(Instant::seconds), Some(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for day in (-719_162_i64..800_000).step_by(97) {
            let instant = Instant::from_seconds(day * 86_400 + day.rem_euclid(86_400));
            assert_eq!(
                parse(&format(instant)),
                Some(instant),
                "{}",
                format(instant)
            );
        }
        assert_eq!(
            format(Instant::from_micros(1_795_132_800_999_999)),
            "2026-11-20T00:00:00Z"
        );
    }

    #[test]
    fn what_is_no_timestamp_is_refused() {
        for text in [
            "",
            "2026-11-20",
            "2026-11-20T00:00:00",
            "2026-11-20T00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-11-00T00:00:00Z",
            "2026-11-20T24:00:00Z",
            "2026-11-20T00:60:00Z",
            "2026-11-20T00:00:60Z",
            "2026-11-20T00:00:00.Z",
            "2026-11-20T00:00:00+0100",
            "2026-11-20T00:00:00+24:00",
            "+026-11-20T00:00:00Z",
            "tomorrow",
            "2026-11-20T00:00:00ZZ",
            "2026/11/20T00:00:00Z",
            "２026-11-20T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
