//! `response_type`: a set of words in any order (OAuth 2.0 Multiple Response Type Encoding Practices §3, §5).

use std::fmt;

use serde::{Deserialize, Serialize};

/// A known combination: never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResponseType {
    pub code: bool,
    pub id_token: bool,
    pub token: bool,
}

impl ResponseType {
    pub const CODE: ResponseType = ResponseType { code: true, id_token: false, token: false };

    /// In the order of the metadata.
    pub const ALL: [ResponseType; 7] = [
        ResponseType::CODE,
        ResponseType { code: false, id_token: true, token: false },
        ResponseType { code: false, id_token: false, token: true },
        ResponseType { code: false, id_token: true, token: true },
        ResponseType { code: true, id_token: true, token: false },
        ResponseType { code: true, id_token: false, token: true },
        ResponseType { code: true, id_token: true, token: true },
    ];

    /// `None` for an unknown word, a repeated one, or none at all.
    pub fn parse(text: &str) -> Option<ResponseType> {
        let mut parsed = ResponseType { code: false, id_token: false, token: false };
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

    /// Nothing then leads to userinfo (OpenID Connect Core §5.4).
    pub fn is_id_token_alone(self) -> bool {
        self.id_token && !self.code && !self.token
    }

    pub fn returns_tokens(self) -> bool {
        self.id_token || self.token
    }
}

impl fmt::Display for ResponseType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [(self.code, "code"), (self.id_token, "id_token"), (self.token, "token")];
        let chosen: Vec<&str> = words.into_iter().filter(|(chosen, _)| *chosen).map(|(_, word)| word).collect();
        formatter.write_str(&chosen.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_any_order_and_anything_else_is_unknown() {
        assert_eq!(ResponseType::parse("token code id_token").unwrap().to_string(), "code id_token token");
        for response_type in ResponseType::ALL {
            assert_eq!(ResponseType::parse(&response_type.to_string()), Some(response_type));
        }
        for text in ["", " ", "code code", "code  token", "Code", "none", "code,token", "code "] {
            assert_eq!(ResponseType::parse(text), None, "{text:?}");
        }
    }
}
