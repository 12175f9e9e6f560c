//! What the token endpoint says (RFC 6749 §5.1, §5.2): JSON objects without null members.

use serde_json::{Map, Value, json};

use super::claims::present;
use crate::protocol::words::scope::ScopeSet;
use crate::protocol::words::secret::SecretText;

/// A successful answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenResponse {
    /// `access_token`
    pub access_token: SecretText,
    /// `expires_in`, seconds.
    pub expires_in: u64,
    /// `id_token`
    pub id_token: Option<SecretText>,
    /// `refresh_token`
    pub refresh_token: Option<SecretText>,
    /// `scope`, always named.
    pub scope: ScopeSet,
    /// What else the grant has to say; never one of the members above.
    pub further: Map<String, Value>,
}

impl TokenResponse {
    /// The JSON object.
    pub fn to_json(&self) -> Map<String, Value> {
        let standard = json!({
            "access_token": self.access_token.expose(),
            "token_type": "Bearer",
            "expires_in": self.expires_in,
            "id_token": self.id_token.as_ref().map(SecretText::expose),
            "refresh_token": self.refresh_token.as_ref().map(SecretText::expose),
            "scope": self.scope.to_string(),
        });
        self.further.clone().into_iter().chain(present(standard)).collect()
    }
}

/// A refusal: `error` and `error_description`.
pub fn error_members(error: &str, description: &str) -> Value {
    json!({ "error": error, "error_description": description })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::words::samples::scope;

    #[test]
    fn a_full_answer_has_every_member_and_a_number_where_one_belongs() {
        let response = TokenResponse {
            access_token: SecretText::new("gpa_a"),
            expires_in: 3_600,
            id_token: Some(SecretText::new("a.b.c")),
            refresh_token: Some(SecretText::new("gpr_r")),
            scope: scope("openid stock"),
            further: Map::from_iter([(String::from("account"), json!(7)), (String::from("scope"), json!("x"))]),
        };
        let expected = json!({
            "access_token": "gpa_a", "token_type": "Bearer", "expires_in": 3600, "id_token": "a.b.c",
            "refresh_token": "gpr_r", "scope": "openid stock", "account": 7
        });
        assert_eq!(Value::Object(response.to_json()), expected);
        assert!(!format!("{response:?}").contains("gpa_a"));
    }

    #[test]
    fn what_there_is_not_is_left_out() {
        let response = TokenResponse {
            access_token: SecretText::new("gpa_a"),
            expires_in: 1,
            id_token: None,
            refresh_token: None,
            scope: scope("stock"),
            further: Map::new(),
        };
        let expected = json!({ "access_token": "gpa_a", "token_type": "Bearer", "expires_in": 1, "scope": "stock" });
        assert_eq!(Value::Object(response.to_json()), expected);
    }
}
