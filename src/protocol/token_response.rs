//! What the token endpoint says (RFC 6749 §5.1, §5.2): JSON objects without null members.

use serde_json::{Map, Value, json};

use super::scope::ScopeSet;
use super::secret::SecretText;

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
        let secret = |secret: &SecretText| json!(secret.expose());
        let members = [
            ("access_token", Some(secret(&self.access_token))),
            ("token_type", Some(json!("Bearer"))),
            ("expires_in", Some(json!(self.expires_in))),
            ("id_token", self.id_token.as_ref().map(secret)),
            ("refresh_token", self.refresh_token.as_ref().map(secret)),
            ("scope", Some(json!(self.scope.to_string()))),
        ];
        let standard = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        self.further.clone().into_iter().chain(standard).collect()
    }
}

/// A refusal: `error` and `error_description`.
pub fn error_members(error: &str, description: &str) -> Map<String, Value> {
    let members = [("error", error), ("error_description", description)];
    members.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::errors::TokenErrorCode;
    use super::super::reason::Reason;
    use super::super::samples::scope;
    use super::*;

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

    #[test]
    fn an_error_names_its_code_and_the_public_text_alone() {
        let code = TokenErrorCode::InvalidGrant.as_str();
        let expected = json!({ "error": "invalid_grant", "error_description": "The grant is not valid." });
        assert_eq!(Value::Object(error_members(code, Reason::CodeReplayed.description())), expected);
    }
}
