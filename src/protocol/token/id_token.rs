//! The identity token's claims (OpenID Connect Core §2, §3.1.3.6, §3.3.2.11).

use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::keys::jwt::half_hash;
use crate::token::claims::Object;
use crate::words::client::SigningAlgorithm;
use crate::words::identifiers::ClientId;
use crate::words::instant::Instant;
use crate::words::json::JsonObject;
use crate::words::scope::ScopeSet;
use crate::words::secret::SecretText;
use crate::words::session::SignIn;

#[derive(Clone)]
pub struct IdToken<'a> {
    pub issuer: &'a str,
    pub client_id: &'a ClientId,
    pub user: &'a SignIn,
    /// Whether it names the session: see `Client::gets_sid`.
    pub with_sid: bool,
    /// `nonce`, as sent; none in a refreshed one.
    pub nonce: Option<&'a str>,
    /// The access token beside it, for `at_hash`.
    pub access_token: Option<&'a str>,
    /// The code beside it, for `c_hash`; none at the token endpoint.
    pub code: Option<&'a str>,
    /// Of clients that get ID-JAGs: by it the grant is found.
    pub jti: Option<String>,
    /// Mapped user claims: none of the protocol's own names is among them.
    pub user_claims: JsonObject,
    pub issued_at: Instant,
    pub lifetime: Duration,
}

impl IdToken<'_> {
    /// The claims to sign with `alg`, whose hash the half hashes follow.
    pub fn claims(self, alg: SigningAlgorithm) -> Object {
        let user = self.user;
        let half = |text: Option<&str>| text.map(|text| half_hash(alg, text));
        let own = [
            ("iss", json!(self.issuer)),
            ("sub", json!(user.subject)),
            ("aud", json!(self.client_id)),
            ("exp", json!(self.issued_at.plus(self.lifetime).seconds())),
            ("iat", json!(self.issued_at.seconds())),
            ("auth_time", json!(user.auth_time.seconds())),
            ("amr", json!(user.amr)),
            ("acr", json!(user.acr)),
            ("sid", json!(user.sid.as_ref().filter(|_| self.with_sid))),
            ("tenant", json!(user.tenant)),
            ("idp", json!(user.identity_provider)),
            ("nonce", json!(self.nonce)),
            ("jti", json!(self.jti)),
            ("at_hash", half(self.access_token).into()),
            ("c_hash", half(self.code).into()),
        ];
        Object(own, self.user_claims)
    }
}

pub struct TokenResponse {
    pub access_token: SecretText,
    pub token_type: &'static str,
    pub expires_in: u64,
    pub id_token: Option<SecretText>,
    pub refresh_token: Option<SecretText>,
    /// `scope`, always named.
    pub scope: ScopeSet,
    /// What else the grant has to say; never one of the members above.
    pub further: JsonObject,
}

impl Serialize for TokenResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("access_token", self.access_token.expose())?;
        members.serialize_entry("token_type", self.token_type)?;
        members.serialize_entry("expires_in", &self.expires_in)?;
        if let Some(token) = &self.id_token {
            members.serialize_entry("id_token", token.expose())?;
        }
        if let Some(token) = &self.refresh_token {
            members.serialize_entry("refresh_token", token.expose())?;
        }
        members.serialize_entry("scope", self.scope.as_str())?;
        for (name, value) in &self.further {
            members.serialize_entry(name, value)?;
        }
        members.end()
    }
}

pub fn error_members(error: &str, description: &str) -> Value {
    json!({ "error": error, "error_description": description })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::samples::{self, NOW};

    fn id_token<'a>(client_id: &'a ClientId, user: &'a SignIn) -> IdToken<'a> {
        IdToken {
            issuer: "https://op.example",
            client_id,
            user,
            with_sid: true,
            nonce: None,
            access_token: None,
            code: None,
            jti: None,
            user_claims: JsonObject::new(),
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
        let rsa = json!(id_token.clone().claims(SigningAlgorithm::Rs256));
        assert_eq!(rsa["at_hash"], json!("77QmUPtjPfzWtF2AnpK9RQ"));
        assert_eq!(rsa["c_hash"], json!("LDktKdoQak3Pk0cnXxCltA"));
        let ed = json!(id_token.claims(SigningAlgorithm::EdDsa));
        assert!(
            ed["at_hash"].as_str().unwrap().len() == 43
                && ed["c_hash"].as_str().unwrap().len() == 43
        );
    }

    #[test]
    fn an_error_has_the_two_members_of_the_standard() {
        assert_eq!(
            error_members("invalid_grant", "It is over."),
            serde_json::json!({"error": "invalid_grant", "error_description": "It is over."})
        );
    }
}
