//! What the demo asks the provider directly: discovery, keys, the token endpoint, UserInfo.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::Agent;
use ureq::http::Response;

use super::{RelyingParty, Setback};

const LONGEST_ANSWER: u64 = 256 * 1024;

/// OpenID Connect Discovery §3.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    issuer: String,
    pub(super) authorization_endpoint: String,
    token_endpoint: String,
    userinfo_endpoint: String,
    pub(super) end_session_endpoint: String,
    jwks_uri: String,
}

/// OpenID Connect Core §3.1.3.3.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TokenResponse {
    pub(super) access_token: String,
    pub(super) id_token: String,
    pub(super) expires_in: Option<u64>,
    pub(super) scope: Option<String>,
}

/// RFC 6749 §5.2.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenError {
    error: String,
    error_description: String,
}

/// It must be about the issuer that was asked.
pub(super) fn discover(agent: &Agent, issuer: &str) -> Result<Metadata, Setback> {
    let url = format!("{issuer}/.well-known/openid-configuration");
    let metadata: Metadata = json(agent.get(&url).call(), "Discovery")?;
    if metadata.issuer != issuer {
        return Err(Setback::new(
            "Discovery failed",
            "The metadata is about another issuer.",
        ));
    }
    Ok(metadata)
}

pub(super) fn keys(agent: &Agent, metadata: &Metadata) -> Result<Value, Setback> {
    json(agent.get(&metadata.jwks_uri).call(), "Fetching the keys")
}

pub(super) fn redeem(
    agent: &Agent,
    metadata: &Metadata,
    relying_party: &RelyingParty,
    code: &str,
    code_verifier: &str,
) -> Result<TokenResponse, Setback> {
    let redirect_uri = relying_party.redirect_uri();
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", redirect_uri.as_str()),
        ("code_verifier", code_verifier),
    ];
    let request = agent
        .post(&metadata.token_endpoint)
        .header("Authorization", basic_credentials(relying_party));
    json(request.send_form(form), "The token endpoint")
}

pub(super) fn userinfo(
    agent: &Agent,
    metadata: &Metadata,
    access_token: &str,
) -> Result<Value, Setback> {
    let request = agent
        .get(&metadata.userinfo_endpoint)
        .header("Authorization", format!("Bearer {access_token}"));
    json(request.call(), "UserInfo")
}

/// Both halves are form-encoded before they are joined (RFC 6749 §2.3.1).
fn basic_credentials(relying_party: &RelyingParty) -> String {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!(
        "{}:{}",
        encoded(&relying_party.client_id),
        encoded(&relying_party.client_secret)
    );
    format!("Basic {}", STANDARD.encode(pair))
}

fn json<T: DeserializeOwned>(
    outcome: Result<Response<ureq::Body>, ureq::Error>,
    step: &str,
) -> Result<T, Setback> {
    let heading = format!("{step} failed");
    let mut response = outcome.map_err(|error| Setback::new(&heading, error.to_string()))?;
    let body = response
        .body_mut()
        .with_config()
        .limit(LONGEST_ANSWER)
        .read_to_vec();
    let body = body.map_err(|error| Setback::new(&heading, error.to_string()))?;
    if response.status() != 200 {
        let told: TokenError = serde_json::from_slice(&body).unwrap_or_default();
        let detail = format!(
            "HTTP {} {} {}",
            response.status().as_u16(),
            told.error,
            told.error_description
        );
        return Err(Setback::new(&heading, detail.trim_end()));
    }
    serde_json::from_slice(&body)
        .map_err(|error| Setback::new(&heading, format!("The answer is malformed: {error}")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::relying_party;
    use super::*;

    #[test]
    fn credentials_are_form_encoded_before_base64() {
        let mut relying_party = relying_party("http://op");
        relying_party.client_id = String::from("a:b");
        relying_party.client_secret = String::from("c d%");
        let encoded = basic_credentials(&relying_party);
        let decoded = STANDARD
            .decode(encoded.strip_prefix("Basic ").unwrap())
            .unwrap();
        assert_eq!(decoded, b"a%3Ab:c+d%25");
    }
}
