//! The token request (RFC 6749 §4): the form, read once into a typed value with the grant's own parameters inside. A
//! grant never sees the form.

use super::client::{Client, GrantType};
use super::errors::{TokenError, TokenErrorCode};
use super::parameters::Parameters;
use super::reason::Reason;
use super::scope::ScopeSet;
use super::secret::SecretText;

/// Every parameter this endpoint reads: none of them may stand in the URL.
pub const PARAMETERS: [&str; 8] =
    ["grant_type", "client_id", "client_secret", "code", "redirect_uri", "code_verifier", "scope", "resource"];

/// The grants the token endpoint serves, in the order of the metadata.
pub const SERVED_GRANT_TYPES: [GrantType; 2] = [GrantType::AuthorizationCode, GrantType::ClientCredentials];

const MOST_RESOURCES: usize = 10;
const MOST_RESOURCE_CHARACTERS: usize = 2_000;
const MOST_SCOPE_CHARACTERS: usize = 2_000;
const MOST_REDIRECT_URI_CHARACTERS: usize = 2_000;
const MOST_HANDLE_CHARACTERS: usize = 8_192;
const MOST_OTHER_CHARACTERS: usize = 300;

/// A well-formed request of an authenticated client for a grant it may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenRequest {
    /// `authorization_code`
    AuthorizationCode(AuthorizationCodeRequest),
    /// `client_credentials`
    ClientCredentials(ClientCredentialsRequest),
}

/// Parameters of `authorization_code` (RFC 6749 §4.1.3). A `scope` sent along is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationCodeRequest {
    /// `code`, still sealed.
    pub code: SecretText,
    /// `redirect_uri`
    pub redirect_uri: String,
    /// `code_verifier`
    pub code_verifier: PresentedVerifier,
    /// `resource`, each one once.
    pub resources: Vec<String>,
}

/// `code_verifier` as it came. Empty is not absent: that is how PKCE was once switched off from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PresentedVerifier {
    /// Not sent.
    Absent,
    /// Sent without a value.
    Empty,
    /// Sent; not yet checked for form.
    Sent(SecretText),
}

/// Parameters of `client_credentials` (RFC 6749 §4.4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCredentialsRequest {
    /// `scope`; `None` asks for all the client may have.
    pub scope: Option<ScopeSet>,
    /// `resource`, each one once.
    pub resources: Vec<String>,
}

impl TokenRequest {
    /// Reads the form of an authenticated client: `grant_type` missing, unknown, not the client's; then its parameters.
    pub fn from_form(parameters: &Parameters, client: &Client) -> Result<TokenRequest, TokenError> {
        let grant_type = served_grant_type(parameters)?;
        if !client.allows_grant(&grant_type) {
            return Err(TokenError::new(TokenErrorCode::UnauthorizedClient, Reason::UnregisteredGrantType));
        }
        match grant_type {
            GrantType::AuthorizationCode => authorization_code(parameters).map(TokenRequest::AuthorizationCode),
            GrantType::ClientCredentials => client_credentials(parameters, client).map(TokenRequest::ClientCredentials),
            GrantType::Implicit
            | GrantType::RefreshToken
            | GrantType::Password
            | GrantType::DeviceCode
            | GrantType::TokenExchange
            | GrantType::JwtBearer
            | GrantType::Extension(_) => Err(unsupported()),
        }
    }
}

/// Whether the URL of a POST carries one of the endpoint's own parameters: it would land in logs and histories.
pub fn known_parameter_in_query(query: &Parameters, known: &[&str]) -> bool {
    query.iter().any(|(name, _)| known.contains(&name))
}

fn served_grant_type(parameters: &Parameters) -> Result<GrantType, TokenError> {
    let name = parameters.bounded("grant_type", MOST_OTHER_CHARACTERS).map_err(invalid_request)?;
    let name = name.ok_or_else(|| invalid_request(Reason::MissingGrantType))?;
    let grant_type = GrantType::from_name(name);
    if SERVED_GRANT_TYPES.contains(&grant_type) { Ok(grant_type) } else { Err(unsupported()) }
}

fn authorization_code(parameters: &Parameters) -> Result<AuthorizationCodeRequest, TokenError> {
    let code = parameters
        .bounded("code", MOST_HANDLE_CHARACTERS)
        .map_err(|reason| if reason == Reason::OverlongParameter { unknown_code() } else { invalid_request(reason) })?;
    let redirect_uri = parameters.bounded("redirect_uri", MOST_REDIRECT_URI_CHARACTERS).map_err(invalid_request)?;
    Ok(AuthorizationCodeRequest {
        code: SecretText::new(code.ok_or_else(|| invalid_request(Reason::MissingCode))?),
        redirect_uri: redirect_uri.ok_or_else(|| invalid_request(Reason::MissingTokenRedirectUri))?.to_owned(),
        code_verifier: code_verifier(parameters)?,
        resources: resources(parameters)?,
    })
}

/// The length is left to the comparison: one that is too long spends the code like any other wrong one.
fn code_verifier(parameters: &Parameters) -> Result<PresentedVerifier, TokenError> {
    Ok(match parameters.single("code_verifier").map_err(invalid_request)? {
        Some(code_verifier) => PresentedVerifier::Sent(SecretText::new(code_verifier)),
        None if parameters.was_sent("code_verifier") => PresentedVerifier::Empty,
        None => PresentedVerifier::Absent,
    })
}

fn client_credentials(parameters: &Parameters, client: &Client) -> Result<ClientCredentialsRequest, TokenError> {
    if !client.is_confidential() {
        return Err(TokenError::new(TokenErrorCode::UnauthorizedClient, Reason::PublicClientCredentials));
    }
    Ok(ClientCredentialsRequest { scope: scope(parameters)?, resources: resources(parameters)? })
}

/// `scope` of a request that itself asks for scopes; `None` when it leaves the choice to us.
fn scope(parameters: &Parameters) -> Result<Option<ScopeSet>, TokenError> {
    let Some(text) = parameters.bounded("scope", MOST_SCOPE_CHARACTERS).map_err(invalid_request)? else {
        return Ok(None);
    };
    let scope = ScopeSet::parse(text).filter(|scope| !scope.is_empty());
    let invalid = || TokenError::new(TokenErrorCode::InvalidScope, Reason::UnknownScope);
    scope.map(Some).ok_or_else(invalid)
}

/// `resource` may be repeated (RFC 8707 §2), at most ten times.
fn resources(parameters: &Parameters) -> Result<Vec<String>, TokenError> {
    let mut resources: Vec<String> = Vec::new();
    for (sent, resource) in parameters.all("resource").filter(|resource| !resource.is_empty()).enumerate() {
        if sent == MOST_RESOURCES || resource.chars().nth(MOST_RESOURCE_CHARACTERS).is_some() {
            return Err(invalid_request(Reason::OverlongParameter));
        }
        if !resources.iter().any(|known| known == resource) {
            resources.push(resource.to_owned());
        }
    }
    Ok(resources)
}

fn invalid_request(reason: Reason) -> TokenError {
    TokenError::new(TokenErrorCode::InvalidRequest, reason)
}

fn unknown_code() -> TokenError {
    TokenError::new(TokenErrorCode::InvalidGrant, Reason::UnknownCode)
}

fn unsupported() -> TokenError {
    TokenError::new(TokenErrorCode::UnsupportedGrantType, Reason::UnsupportedGrantType)
}
