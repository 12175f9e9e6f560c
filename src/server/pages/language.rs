//! The languages the pages speak, and the choice among them.

use crate::config::{Config, LANGUAGES};
use crate::pages::texts::Texts;
use gatepost_protocol::words::json::{JsonObject, Members};
use gatepost_protocol::words::scope::LocalizedText;

/// How many language ranges of one request are looked at; a browser sends fewer than ten.
const MOST_RANGES: usize = 20;
/// Longer ranges are no language: RFC 5646 §4.4.1 lets 35 characters suffice.
const LONGEST_RANGE: usize = 35;
/// The weight of a range that names none (RFC 9110 §12.4.2), in thousandths.
const FULL_WEIGHT: u16 = 1_000;
/// Ranges that ask for the script our Chinese is not written in: they match nothing rather than
/// their language.
const TRADITIONAL_CHINESE: [&str; 4] = ["zh-Hant", "zh-TW", "zh-HK", "zh-MO"];

/// A variant each of [`LANGUAGES`], with its tag, as the `lang` attribute carries it. Its sentences
/// stand in `static/texts/<tag>.txt`.
macro_rules! languages {
    ($($language:ident $tag:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Language { $(#[doc = $tag] $language,)* }

        impl Language {
            pub const ALL: [Language; LANGUAGES.len()] = [$(Language::$language,)*];

            pub const fn tag(self) -> &'static str {
                match self { $(Language::$language => $tag,)* }
            }

            pub fn texts(self) -> &'static Texts {
                match self {
                    $(Language::$language => {
                        static TEXTS: Texts =
                            Texts::read(
                                Language::$language,
                                include_str!(concat!("../../../static/texts/", $tag, ".txt")),
                            );
                        &TEXTS
                    })*
                }
            }

            /// What the page of the audit log says: a name and a text a line.
            pub const fn events(self) -> &'static str {
                match self {
                    $(Language::$language => {
                        include_str!(concat!("../../../static/texts/events/", $tag, ".txt"))
                    })*
                }
            }
        }
    };
}

languages! {
    English "en",
    German "de",
    French "fr",
    Spanish "es",
    Italian "it",
    Portuguese "pt",
    Dutch "nl",
    Polish "pl",
    Japanese "ja",
    SimplifiedChinese "zh-Hans",
}

impl Language {
    /// For whoever asks for none that we speak.
    pub fn of_house(config: &Config) -> Language {
        named(config.language).unwrap_or(Language::English)
    }

    /// The language a person most likely wants: the one `ui_locales` asks for, else the best
    /// weighted of `Accept-Language` (RFC 9110 §12.5.4). Both may be empty or nonsense.
    pub fn choose(ui_locales: &str, accept_language: &str) -> Option<Language> {
        Language::asked_for(ui_locales).or_else(|| heaviest(accept_language))
    }

    /// What a text is in this language: by its own tag, else by another that we speak so (`de-AT`
    /// in German), else without.
    pub fn of(self, text: &LocalizedText) -> &str {
        if let Some(own) = text.by_language.get(&self.tag().to_ascii_lowercase()) {
            return own;
        }
        let mut others = text.by_language.iter();
        let other = others.find(|(tag, _)| look_up(tag) == Some(self));
        other.map_or(&text.plain, |(_, words)| words)
    }

    /// The first of `ui_locales` (OpenID Connect Core §3.1.2.1, space-separated) that we speak.
    pub fn asked_for(ui_locales: &str) -> Option<Language> {
        ui_locales
            .split_ascii_whitespace()
            .take(MOST_RANGES)
            .find_map(look_up)
    }

    /// That of a person's claim `locale` (OpenID Connect Core §5.1), where we speak it.
    pub fn of_claims(claims: &JsonObject) -> Option<Language> {
        claims.text("locale").and_then(Language::asked_for)
    }
}

fn heaviest(accept_language: &str) -> Option<Language> {
    let mut best = None;
    for (language, weight) in accept_language
        .split(',')
        .take(MOST_RANGES)
        .filter_map(weighted)
    {
        if weight > best.map_or(0, |(_, weight)| weight) {
            best = Some((language, weight));
        }
    }
    best.map(|(language, _)| language)
}

/// One member of `Accept-Language`. A weight that cannot be read makes the member void.
fn weighted(member: &str) -> Option<(Language, u16)> {
    let (range, parameter) = member
        .split_once(';')
        .map_or((member, None), |(range, rest)| (range, Some(rest)));
    let weight = parameter.map_or(Some(FULL_WEIGHT), thousandths)?;
    Some((look_up(range.trim())?, weight))
}

/// Reads `q=0.8` as 800.
fn thousandths(parameter: &str) -> Option<u16> {
    let value = parameter
        .trim()
        .strip_prefix(['q', 'Q'])?
        .strip_prefix('=')?;
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let fraction: u16 = format!("{fraction:0<3}").parse().ok()?;
    match (whole, fraction) {
        ("0", _) => Some(fraction),
        ("1", 0) => Some(FULL_WEIGHT),
        (_, _) => None,
    }
}

/// Lookup by RFC 4647 §3.4: the range loses subtags from its end until it names a language of ours.
fn look_up(range: &str) -> Option<Language> {
    if range.len() > LONGEST_RANGE {
        return None;
    }
    let range = range.replace('_', "-");
    let mut rest = range.as_str();
    while !TRADITIONAL_CHINESE
        .iter()
        .any(|traditional| traditional.eq_ignore_ascii_case(rest))
    {
        if let Some(language) = named(rest) {
            return Some(language);
        }
        rest = rest.rsplit_once('-')?.0;
    }
    None
}

/// The language with exactly this tag. Chinese without a script is Simplified Chinese (CLDR, likely
/// subtags).
fn named(tag: &str) -> Option<Language> {
    if tag.eq_ignore_ascii_case("zh") {
        return Some(Language::SimplifiedChinese);
    }
    Language::ALL
        .into_iter()
        .find(|language| language.tag().eq_ignore_ascii_case(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(ui_locales: &str, accept_language: &str) -> Language {
        Language::choose(ui_locales, accept_language).unwrap_or(Language::English)
    }

    #[test]
    fn the_first_known_ui_locale_wins_over_the_browser() {
        assert_eq!(LANGUAGES, Language::ALL.map(Language::tag));
        for language in Language::ALL {
            assert_eq!(chosen(language.tag(), ""), language);
            assert_eq!(chosen("", language.tag()), language);
        }
        for (ui_locales, expected) in [
            ("de", "de"),
            ("de-CH-1996 en", "de"),
            ("DE-at", "de"),
            ("de_DE", "de"),
            ("fr-CA", "fr"),
            ("sv-SE tlh de en", "de"),
            ("es-419", "es"),
            ("pt-BR", "pt"),
            ("pt_PT", "pt"),
            ("ja-JP-u-ca-japanese", "ja"),
            ("  en   de ", "en"),
            ("den deu english german", "nl"),
        ] {
            assert_eq!(chosen(ui_locales, "nl").tag(), expected, "{ui_locales:?}");
        }
        for simplified in [
            "zh",
            "zh-CN",
            "zh_SG",
            "zh-Hans",
            "ZH-HANS-HK",
            "zh-cmn-Hans",
            "zh-TW zh",
        ] {
            assert_eq!(
                chosen(simplified, ""),
                Language::SimplifiedChinese,
                "{simplified:?}"
            );
        }
        for traditional in ["zh-TW", "zh-Hant", "zh_hant_CN", "zh-HK", "zh-MO-x-y"] {
            assert_eq!(
                chosen(traditional, "ja"),
                Language::Japanese,
                "{traditional:?}"
            );
        }
    }

    #[test]
    fn the_heaviest_known_range_wins_and_what_is_odd_gives_english() {
        for (accept_language, expected) in [
            ("de-DE,de;q=0.9,en;q=0.8", "de"),
            ("en;q=0.8, de;q=0.81", "de"),
            ("en;q=0.8,de;q=0.8", "en"),
            ("sv, de;q=0.001", "de"),
            ("fr-CA,fr;q=0.9,en;q=0.8", "fr"),
            ("pl;q=0.3, it-CH;q=0.7, es;q=0.5", "it"),
            ("de ; q=1.000 , en", "de"),
            ("en;q=0.5,DE;Q=1", "de"),
            ("de;q=0", "en"),
            ("de;q=0.000, en;q=0.001", "en"),
            ("*", "en"),
            ("*, de;q=0.5", "de"),
        ] {
            assert_eq!(
                chosen("", accept_language).tag(),
                expected,
                "{accept_language:?}"
            );
        }
        let odd = "| |,,,;;;|de;q=|de;q=2|de;q=1.5|de;q=0.1234|de;q=-1|de;q=+.5|de;q=0.+5|-|--|-de|de;level=1|\u{202e}ed|\
            dé|ｄｅ|de\0|de;q=٠";
        for odd in odd.split('|') {
            assert_eq!(chosen("", odd), Language::English, "{odd:?}");
        }
        assert_eq!(
            chosen(&"-".repeat(100_000), &"-".repeat(100_000)),
            Language::English
        );
        // Only the first twenty count.
        assert_eq!(
            chosen(&format!("{}de", "sv ".repeat(19)), ""),
            Language::German
        );
        assert_eq!(
            chosen(&format!("{}de", "sv ".repeat(20)), ""),
            Language::English
        );
        assert_eq!(
            chosen("", &format!("{}de", "sv,".repeat(20))),
            Language::English
        );
    }
}
