//! `response_type`: a set of words in any order (OAuth 2.0 Multiple Response Type Encoding
//! Practices §3, §5).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::named::named;
use crate::words::reason::Reason;
use crate::words::scope::ScopeKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ResponseType {
    pub code: bool,
    pub id_token: bool,
    pub token: bool,
}

impl ResponseType {
    pub const CODE: ResponseType = ResponseType {
        code: true,
        id_token: false,
        token: false,
    };

    pub const ALL: [ResponseType; 7] = [
        ResponseType::CODE,
        ResponseType {
            code: false,
            id_token: true,
            token: false,
        },
        ResponseType {
            code: false,
            id_token: false,
            token: true,
        },
        ResponseType {
            code: false,
            id_token: true,
            token: true,
        },
        ResponseType {
            code: true,
            id_token: true,
            token: false,
        },
        ResponseType {
            code: true,
            id_token: false,
            token: true,
        },
        ResponseType {
            code: true,
            id_token: true,
            token: true,
        },
    ];

    /// Reads the parameter. `None` for an unknown or repeated word, and for an empty text.
    pub fn parse(text: &str) -> Option<ResponseType> {
        let mut parsed = ResponseType {
            code: false,
            id_token: false,
            token: false,
        };
        for word in text.split(' ') {
            let flag = match word {
                "code" => &mut parsed.code,
                "id_token" => &mut parsed.id_token,
                "token" => &mut parsed.token,
                _ => return None,
            };
            if std::mem::replace(flag, true) {
                return None;
            }
        }
        Some(parsed)
    }

    /// Whether the ID token is all that the client gets. It cannot ask UserInfo then, so the ID
    /// token has the claims (OpenID Connect Core §5.4).
    pub fn is_id_token_alone(self) -> bool {
        self.id_token && !self.code && !self.token
    }

    /// Whether a scope of that kind can be asked for: an ID token alone says nothing to an API, and
    /// an access token alone nothing about the user to the client.
    pub fn takes(self, kind: ScopeKind) -> bool {
        let is_token_alone = self.token && !self.code && !self.id_token;
        match kind {
            ScopeKind::Identity => !is_token_alone,
            ScopeKind::Resource => !self.is_id_token_alone(),
        }
    }

    pub fn returns_tokens(self) -> bool {
        self.id_token || self.token
    }
}

impl fmt::Display for ResponseType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        for (is_chosen, word) in [
            (self.code, "code"),
            (self.id_token, "id_token"),
            (self.token, "token"),
        ] {
            if is_chosen {
                words.push(word);
            }
        }
        formatter.write_str(&words.join(" "))
    }
}

named! {
    pub enum ResponseMode {
        Query = "query",
        Fragment = "fragment",
        FormPost = "form_post",
    }
}

impl ResponseMode {
    /// Whether an answer of this response type may travel in this mode. Tokens never travel in a
    /// query.
    pub fn is_legal_for(self, response_type: ResponseType) -> bool {
        match self {
            ResponseMode::Query => !response_type.returns_tokens(),
            ResponseMode::Fragment | ResponseMode::FormPost => true,
        }
    }

    pub fn default_for(response_type: ResponseType) -> ResponseMode {
        if response_type.returns_tokens() {
            ResponseMode::Fragment
        } else {
            ResponseMode::Query
        }
    }
}

/// The words of `prompt`. `none` cannot stand beside another word.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prompts {
    pub none: bool,
    pub login: bool,
    pub consent: bool,
    pub select_account: bool,
}

impl Prompts {
    /// Reads the parameter. An unknown word, an empty text, and `none` beside another word are
    /// `MalformedPrompt`.
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
        if prompts.none == shows_something {
            Err(Reason::MalformedPrompt)
        } else {
            Ok(prompts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_any_order_and_anything_else_is_unknown() {
        assert_eq!(
            ResponseType::parse("token code id_token")
                .unwrap()
                .to_string(),
            "code id_token token"
        );
        for response_type in ResponseType::ALL {
            assert_eq!(
                ResponseType::parse(&response_type.to_string()),
                Some(response_type)
            );
        }
        for text in [
            "",
            " ",
            "code code",
            "code  token",
            "Code",
            "none",
            "code,token",
            "code ",
        ] {
            assert_eq!(ResponseType::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn each_response_type_takes_its_scopes_and_travels_where_it_may() {
        for (text, alone, identity, resource, returns_tokens) in [
            ("code", false, true, true, false),
            ("id_token", true, true, false, true),
            ("token", false, false, true, true),
            ("id_token token", false, true, true, true),
            ("code id_token", false, true, true, true),
            ("code token", false, true, true, true),
            ("code id_token token", false, true, true, true),
        ] {
            let response_type = ResponseType::parse(text).unwrap();
            assert_eq!(response_type.is_id_token_alone(), alone, "{text}");
            assert_eq!(response_type.takes(ScopeKind::Identity), identity, "{text}");
            assert_eq!(response_type.takes(ScopeKind::Resource), resource, "{text}");
            assert_eq!(response_type.returns_tokens(), returns_tokens, "{text}");
            for (mode, is_legal) in [
                (ResponseMode::Query, !returns_tokens),
                (ResponseMode::Fragment, true),
                (ResponseMode::FormPost, true),
            ] {
                assert_eq!(mode.is_legal_for(response_type), is_legal, "{text}");
            }
        }
    }

    mod prompt {
        use proptest::prelude::*;

        use super::super::*;

        #[test]
        fn each_word_is_a_wish_of_its_own() {
            let wishes = |text: &str| {
                let prompts = Prompts::parse(text).unwrap();
                let Prompts {
                    none,
                    login,
                    consent,
                    select_account,
                } = prompts;
                [none, login, consent, select_account]
            };
            assert_eq!(wishes("none"), [true, false, false, false]);
            assert_eq!(wishes("login"), [false, true, false, false]);
            assert_eq!(wishes("consent"), [false, false, true, false]);
            assert_eq!(wishes(" select_account "), [false, false, false, true]);
            assert_eq!(wishes("consent login"), [false, true, true, false]);
        }

        #[test]
        fn anything_else_is_malformed() {
            #[rustfmt::skip]
            let rows = [
                "none login", "login none", "none consent", "create", "login create", "Login", "NONE", " ",
                "login,consent", "login\tconsent", "none none consent",
            ];
            for text in rows {
                assert_eq!(
                    Prompts::parse(text),
                    Err(Reason::MalformedPrompt),
                    "{text:?}"
                );
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
}
