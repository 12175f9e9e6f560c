//! Moments, as the language of the page writes them.

use maud::{Markup, html};

use crate::pages::texts::{Template, Texts};
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::instant::{Day, Instant};

/// A sentence about a moment, to the minute, in UTC. Where scripts run, `times.js` puts the time of
/// the reader in its place.
pub fn at(texts: &Texts, template: Template, instant: Instant) -> Markup {
    let (before, after) = template.parts();
    let whole = timestamp::format(instant);
    let shown = in_words(texts, texts.moment, &whole);
    let shown = shown.as_deref().unwrap_or(&whole);
    html! { (before) time datetime=(whole) { bdi { (shown) " UTC" } } (after) }
}

/// A sentence about the end of somebody: their last day, or the moment where no day ends.
pub fn at_end(texts: &Texts, template: Template, end: Instant) -> Markup {
    match last_day(end) {
        Some(day) => on_day(texts, template, day),
        None => at(texts, template, end),
    }
}

/// The same end, as plain text.
pub(super) fn end_in_words(texts: &Texts, end: Instant) -> String {
    match last_day(end) {
        Some(day) => day_in_words(texts, day),
        None => in_utc(texts, end),
    }
}

/// The day that ends at this moment, in UTC.
fn last_day(end: Instant) -> Option<Day> {
    (end == end.day().start()).then_some(Day(end.day().0 - 1))
}

/// A sentence about a day.
pub fn on_day(texts: &Texts, template: Template, day: Day) -> Markup {
    let (before, after) = template.parts();
    html! {
        (before)
        time datetime=(timestamp::format_day(day)) { (day_in_words(texts, day)) }
        (after)
    }
}

/// A day, as plain text.
pub fn day_in_words(texts: &Texts, day: Day) -> String {
    let whole = timestamp::format_day(day);
    let words = texts.moment.split("{time}").next().unwrap_or_default();
    let shown = in_words(texts, words.trim_end_matches([' ', ',']), &whole);
    shown.unwrap_or(whole)
}

/// A moment in UTC, as plain text.
pub(super) fn in_utc(texts: &Texts, instant: Instant) -> String {
    let whole = timestamp::format(instant);
    format!(
        "{} UTC",
        in_words(texts, texts.moment, &whole).unwrap_or(whole)
    )
}

/// `2027-01-31T23:59:59Z` as the language writes it, or the day alone; `None` beyond the year 9999.
fn in_words(texts: &Texts, template: &str, whole: &str) -> Option<String> {
    let [year, month, day] = [0..4, 5..7, 8..10].map(|part| whole.get(part));
    let number: usize = month?.parse().ok()?;
    let name = texts.months.split(' ').nth(number.checked_sub(1)?)?;
    let text = template.replace("{day}", day?.trim_start_matches('0'));
    let text = text.replace("{month}", name).replace("{year}", year?);
    Some(text.replace("{time}", whole.get(11..16).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::language::Language;

    #[test]
    fn a_moment_is_written_as_the_language_writes_it() {
        let whole = "2027-03-01T09:05:59Z";
        for (language, expected) in [
            (Language::English, "1 Mar 2027, 09:05"),
            (Language::German, "1. März 2027, 09:05"),
            (Language::Portuguese, "1 de março de 2027, 09:05"),
            (Language::Polish, "1 marca 2027, 09:05"),
            (Language::Japanese, "2027年3月1日 09:05"),
        ] {
            assert_eq!(
                in_words(language.texts(), language.texts().moment, whole).as_deref(),
                Some(expected)
            );
        }
        for language in Language::ALL {
            let texts = language.texts();
            assert_eq!(texts.months.split(' ').count(), 12, "{language:?}");
            let text = in_words(texts, texts.moment, "2027-12-31T23:59:59Z").unwrap();
            assert!(!text.contains(['{', '}']) && text.contains("31"), "{text}");
        }
        assert_eq!(
            in_words(Language::English.texts(), "{day}", "+12027-03-01T09:05:59Z"),
            None
        );
    }
}
