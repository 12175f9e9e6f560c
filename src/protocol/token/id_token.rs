//! The identity token's claims (OpenID Connect Core §2, §3.1.3.6, §3.3.2.11).

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Value, json};

use crate::keys::jwt::half_hash;
use crate::words::claim_set::{ClaimSet, ClaimValue};
use crate::words::client::SigningAlgorithm;
use crate::words::identifiers::{ClientId, Sid};
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
    pub issued_at: Instant,
    pub lifetime: Duration,
}

impl<'a> IdToken<'a> {
    /// The claims to sign with `alg`, whose hash the half hashes follow. The user's claims go
    /// behind them.
    pub fn claims(self, alg: SigningAlgorithm) -> ClaimSet<'a> {
        let user = self.user;
        let sid = user.sid.as_ref().filter(|_| self.with_sid);
        let half = |text: Option<&str>| text.map(|text| half_hash(alg, text));
        let mut claims = ClaimSet::default();
        user.add_claims(&mut claims);
        claims
            .text("iss", self.issuer)
            .text("aud", self.client_id.as_str())
            .set("exp", self.issued_at.plus(self.lifetime).seconds())
            .set("iat", self.issued_at.seconds())
            .text("sid", sid.map(Sid::as_str))
            .text("idp", user.identity_provider.as_deref())
            .text("nonce", self.nonce)
            .set("jti", self.jti)
            .set("at_hash", half(self.access_token))
            .set("c_hash", half(self.code));
        claims
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
    /// What else the grant has to say. It never replaces one of the members above.
    pub further: JsonObject,
}

impl TokenResponse {
    /// RFC 6749 §5.1, OpenID Connect Core §3.1.3.3.
    pub fn members(&self) -> ClaimSet<'_> {
        let mut members = ClaimSet::default();
        members
            .text("access_token", self.access_token.expose())
            .text("token_type", self.token_type)
            .set("expires_in", self.expires_in)
            .text("id_token", self.id_token.as_ref().map(SecretText::expose))
            .text(
                "refresh_token",
                self.refresh_token.as_ref().map(SecretText::expose),
            )
            .text("scope", self.scope.as_str());
        for (name, value) in &self.further {
            members.add(name, ClaimValue::Json(Cow::Borrowed(value)));
        }
        members
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
