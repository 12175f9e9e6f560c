//! What the token endpoint says (RFC 6749 §5.1, §5.2): JSON objects without null members.

use serde_json::{Map, Value, json};

use super::errors::TokenError;
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
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// The JSON object of a refusal.
pub fn error_json(error: &TokenError) -> Map<String, Value> {
    error_members(error.code.as_str(), error.reason.description())
}

/// `error` and `error_description`, for endpoints that answer in the same form.
pub fn error_members(error: &str, description: &str) -> Map<String, Value> {
    let members = [("error", error), ("error_description", description)];
    members.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect()
}
