//! The identity token's claims (OpenID Connect Core §2, §3.1.3.6, §3.3.2.11).

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::claims;
use super::client::SigningAlgorithm;
use super::identifiers::{ClientId, Sid, TenantName};
use super::instant::Instant;
use super::jwt::half_hash;
use super::token_subject::TokenSubject;

/// What one id_token is made of.
#[derive(Clone, Debug)]
pub struct IdToken<'a> {
    /// `iss`
    pub issuer: &'a str,
    /// `aud`
    pub client_id: &'a ClientId,
    /// Who signed in, and how.
    pub user: &'a TokenSubject,
    /// `nonce`, as sent; none in a refreshed one.
    pub nonce: Option<&'a str>,
    /// The access token beside it, for `at_hash`.
    pub access_token: Option<&'a str>,
    /// The code beside it, for `c_hash`; none at the token endpoint.
    pub code: Option<&'a str>,
    /// Mapped user claims; they never overwrite the token's own.
    pub user_claims: Map<String, Value>,
    /// `iat`
    pub issued_at: Instant,
    /// How long it is good for.
    pub lifetime: Duration,
}

impl IdToken<'_> {
    /// The claims to sign with `alg`, whose hash the half hashes follow.
    pub fn claims(self, alg: SigningAlgorithm) -> Map<String, Value> {
        let user = self.user;
        let half = |text: Option<&str>| text.map(|text| json!(half_hash(alg, text)));
        let members = [
            ("iss", Some(json!(self.issuer))),
            ("sub", Some(json!(user.subject.as_str()))),
            ("aud", Some(json!(self.client_id.as_str()))),
            ("exp", Some(json!(self.issued_at.plus(self.lifetime).seconds()))),
            ("iat", Some(json!(self.issued_at.seconds()))),
            ("auth_time", Some(json!(user.auth_time.seconds()))),
            ("amr", Some(json!(user.amr))),
            ("acr", Some(json!(user.acr))),
            ("sid", user.sid.as_ref().map(Sid::as_str).map(Value::from)),
            ("tenant", user.tenant.as_ref().map(TenantName::as_str).map(Value::from)),
            ("idp", user.identity_provider.as_deref().map(Value::from)),
            ("nonce", self.nonce.map(Value::from)),
            ("at_hash", half(self.access_token)),
            ("c_hash", half(self.code)),
        ];
        let present = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let mut claims: Map<String, Value> = present.collect();
        claims::add_unreserved(&mut claims, self.user_claims);
        claims
    }
}
