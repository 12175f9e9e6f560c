//! `prompt`: what the client wants to be shown or not (OpenID Connect Core §3.1.2.1).

use super::reason::Reason;

/// `none` never stands beside another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prompts {
    pub none: bool,
    pub login: bool,
    pub consent: bool,
    pub select_account: bool,
}

impl Prompts {
    /// An unknown word, none at all, or `none` beside another is `MalformedPrompt`.
    pub fn parse(text: &str) -> Result<Prompts, Reason> {
        let mut prompts = Prompts::default();
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            match word {
                "none" => prompts.none = true,
                "login" => prompts.login = true,
                "consent" => prompts.consent = true,
                "select_account" => prompts.select_account = true,
                _ => return Err(Reason::MalformedPrompt),
            }
        }
        let shows_something = prompts.login || prompts.consent || prompts.select_account;
        if prompts.none == shows_something { Err(Reason::MalformedPrompt) } else { Ok(prompts) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_words_are_read_in_any_order() {
        let both = Prompts { login: true, consent: true, ..Prompts::default() };
        assert_eq!(Prompts::parse("none"), Ok(Prompts { none: true, ..Prompts::default() }));
        assert_eq!(Prompts::parse("login consent"), Ok(both));
        assert_eq!(Prompts::parse("consent  login login"), Ok(both));
        assert_eq!(Prompts::parse("select_account"), Ok(Prompts { select_account: true, ..Prompts::default() }));
    }

    #[test]
    fn anything_else_is_malformed() {
        #[rustfmt::skip]
        let rows = [
            "none login", "login none", "none consent", "create", "login create", "Login", "NONE", " ",
            "login,consent", "login\tconsent", "none none consent",
        ];
        for text in rows {
            assert_eq!(Prompts::parse(text), Err(Reason::MalformedPrompt), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn none_is_always_alone(text in "((none|login|consent|select_account|x| ) ?){0,5}") {
            if let Ok(prompts) = Prompts::parse(&text) {
                prop_assert_ne!(prompts.none, prompts.login || prompts.consent || prompts.select_account);
            }
        }
    }
}
