//! The identity token's claims (OpenID Connect Core §2, §3.1.3.6, §3.3.2.11).

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::protocol::keys::jwt::half_hash;
use crate::protocol::token::claims::{self, present};
use crate::protocol::words::client::SigningAlgorithm;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::scope::ScopeSet;
use crate::protocol::words::secret::SecretText;
use crate::protocol::words::session::SignIn;

#[derive(Clone, Debug)]
pub struct IdToken<'a> {
    pub issuer: &'a str,
    pub client_id: &'a ClientId,
    pub user: &'a SignIn,
    /// `nonce`, as sent; none in a refreshed one.
    pub nonce: Option<&'a str>,
    /// The access token beside it, for `at_hash`.
    pub access_token: Option<&'a str>,
    /// The code beside it, for `c_hash`; none at the token endpoint.
    pub code: Option<&'a str>,
    /// Mapped user claims; they never overwrite the token's own.
    pub user_claims: Map<String, Value>,
    pub issued_at: Instant,
    pub lifetime: Duration,
}

impl IdToken<'_> {
    /// The claims to sign with `alg`, whose hash the half hashes follow.
    pub fn claims(self, alg: SigningAlgorithm) -> Map<String, Value> {
        let user = self.user;
        let half = |text: Option<&str>| text.map(|text| half_hash(alg, text));
        let mut claims = claims::present(json!({
            "iss": self.issuer,
            "sub": user.subject,
            "aud": self.client_id,
            "exp": self.issued_at.plus(self.lifetime).seconds(),
            "iat": self.issued_at.seconds(),
            "auth_time": user.auth_time.seconds(),
            "amr": user.amr,
            "acr": user.acr,
            "sid": user.sid,
            "tenant": user.tenant,
            "idp": user.identity_provider,
            "nonce": self.nonce,
            "at_hash": half(self.access_token),
            "c_hash": half(self.code),
        }));
        claims::add_unreserved(&mut claims, self.user_claims);
        claims
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenResponse {
    pub access_token: SecretText,
    pub expires_in: u64,
    pub id_token: Option<SecretText>,
    pub refresh_token: Option<SecretText>,
    /// `scope`, always named.
    pub scope: ScopeSet,
    /// What else the grant has to say; never one of the members above.
    pub further: Map<String, Value>,
}

impl TokenResponse {
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

pub fn error_members(error: &str, description: &str) -> Value {
    json!({ "error": error, "error_description": description })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::words::samples::{self, NOW};

    fn id_token<'a>(client_id: &'a ClientId, user: &'a SignIn) -> IdToken<'a> {
        IdToken {
            issuer: "https://op.example",
            client_id,
            user,
            nonce: None,
            access_token: None,
            code: None,
            user_claims: Map::new(),
            issued_at: NOW,
            lifetime: Duration::from_secs(300),
        }
    }

    #[test]
    fn half_hashes_follow_what_travels_along_and_the_algorithm() {
        let (client_id, user) = (ClientId::new("web"), samples::sign_in());
        let id_token = IdToken {
            access_token: Some("jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y"),
            code: Some("Qcb0Orv1zh30vL1MPRsbm-diHiMwcLyZvn1arpZv-Jxf_11jnpEX3Tgfvk"),
            ..id_token(&client_id, &user)
        };
        let rsa = Value::Object(id_token.clone().claims(SigningAlgorithm::Rs256));
        assert_eq!(rsa["at_hash"], json!("77QmUPtjPfzWtF2AnpK9RQ"));
        assert_eq!(rsa["c_hash"], json!("LDktKdoQak3Pk0cnXxCltA"));
        let ed = Value::Object(id_token.claims(SigningAlgorithm::EdDsa));
        assert!(ed["at_hash"].as_str().unwrap().len() == 43 && ed["c_hash"].as_str().unwrap().len() == 43);
    }
}
