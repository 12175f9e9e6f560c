//! The token request (RFC 6749 §4). The form is read once, into a typed value. Grants never see the
//! form.

mod extension;

pub use extension::ExtensionRequest;

use crate::words::client::{Client, GrantType};
use crate::words::instant::Instant;
use crate::words::legacy_flow::LEGACY_UNTIL;
use crate::words::parameters::{self, Parameters};
use crate::words::reason::{
    Reason, Result, TokenError, TokenErrorCode, invalid_grant, invalid_request, invalid_scope,
    unauthorized_client,
};
use crate::words::scope::ScopeSet;
use crate::words::secret::SecretText;
use crate::words::session::LOCAL;

/// Every parameter that a grant reads. None of them may stand in the URL.
pub const PARAMETERS: [&str; 22] = [
    "grant_type",
    "client_id",
    "client_secret",
    "client_assertion",
    "client_assertion_type",
    "code",
    "redirect_uri",
    "code_verifier",
    "refresh_token",
    "scope",
    "username",
    "password",
    "acr_values",
    "device_code",
    "assertion",
    "subject_token",
    "subject_token_type",
    "actor_token",
    "actor_token_type",
    "requested_token_type",
    "resource",
    "audience",
];

/// Parameters that may be sent only once, even where the grant does not read them: all but
/// `resource` and `audience`.
pub const SINGLE_PARAMETERS: &[&str] = PARAMETERS.split_at(PARAMETERS.len() - 2).0;

/// The request of an authenticated client, for a grant that it may use.
#[derive(Debug, PartialEq)]
pub enum TokenRequest {
    AuthorizationCode(AuthorizationCodeRequest),
    RefreshToken(RefreshTokenRequest),
    ClientCredentials(ClientCredentialsRequest),
    Password(PasswordRequest),
    DeviceCode(DeviceCodeRequest),
    /// Token exchange, JWT bearer, and what operators add.
    Extension(ExtensionRequest),
}

/// The authorization code grant (RFC 6749 §4.1.3). A `scope` is ignored.
#[derive(Debug, PartialEq)]
pub struct AuthorizationCodeRequest {
    pub code: SecretText,
    pub redirect_uri: String,
    pub code_verifier: PresentedVerifier,
    pub resources: Vec<String>,
}

/// `code_verifier`. An empty one is not the same as none: taking it for none has switched PKCE off
/// in other providers.
#[derive(Clone, Debug, PartialEq)]
pub enum PresentedVerifier {
    Absent,
    Empty,
    Sent(SecretText),
}

/// The client credentials grant (RFC 6749 §4.4.2).
#[derive(Debug, PartialEq)]
pub struct ClientCredentialsRequest {
    /// `None` asks for all scopes of the client.
    pub scope: Option<ScopeSet>,
    pub resources: Vec<String>,
}

/// The refresh token grant (RFC 6749 §6).
#[derive(Debug, PartialEq)]
pub struct RefreshTokenRequest {
    pub refresh_token: SecretText,
    /// The scope of this answer's tokens; `None` asks for all that was granted.
    pub scope: Option<ScopeSet>,
    pub resources: Vec<String>,
}

/// The password grant (RFC 6749 §4.3.2).
#[derive(Debug, PartialEq)]
pub struct PasswordRequest {
    pub username: String,
    pub password: SecretText,
    pub acr_values: Option<String>,
    pub scope: Option<ScopeSet>,
    pub resources: Vec<String>,
}

/// The device code grant (RFC 8628 §3.4). A `scope` is ignored.
#[derive(Debug, PartialEq)]
pub struct DeviceCodeRequest {
    pub device_code: SecretText,
    pub resources: Vec<String>,
}

impl TokenRequest {
    /// Reads the form. First `grant_type`, which must be known and allowed for the client, then the
    /// parameters of that grant. `is_extension` tells the grants that this installation adds.
    pub fn from_form(
        parameters: &Parameters,
        client: &Client,
        is_extension: impl Fn(&str) -> bool,
        now: Instant,
    ) -> Result<TokenRequest> {
        let grant_type = served_grant_type(parameters, is_extension)?;
        check_grant_type(&grant_type, client, now)?;
        match grant_type {
            GrantType::AuthorizationCode => {
                authorization_code(parameters).map(TokenRequest::AuthorizationCode)
            }
            GrantType::ClientCredentials => {
                client_credentials(parameters, client).map(TokenRequest::ClientCredentials)
            }
            GrantType::RefreshToken => refresh_token(parameters).map(TokenRequest::RefreshToken),
            GrantType::TokenExchange | GrantType::JwtBearer | GrantType::Extension(_) => {
                extension::read(parameters, &grant_type).map(TokenRequest::Extension)
            }
            GrantType::Password => password(parameters, client).map(TokenRequest::Password),
            GrantType::DeviceCode => device_code(parameters).map(TokenRequest::DeviceCode),
            GrantType::Implicit => Err(unsupported()),
        }
    }
}

/// Whether a known parameter stands in the query, where it would land in logs.
pub fn known_parameter_in_query(query: &Parameters, known: &[&str]) -> bool {
    query.iter().any(|(name, _)| known.contains(&name))
}

fn served_grant_type(
    parameters: &Parameters,
    is_extension: impl Fn(&str) -> bool,
) -> Result<GrantType> {
    let name = parameters
        .bounded("grant_type", parameters::OTHER)
        .map_err(invalid_request)?;
    let name = required(name, Reason::MissingGrantType)?;
    let grant_type = GrantType::from_name(name);
    let is_built_in = GrantType::BUILT_IN.contains(&grant_type);
    if is_built_in && grant_type != GrantType::Implicit || is_extension(name) {
        Ok(grant_type)
    } else {
        Err(unsupported())
    }
}

fn check_grant_type(grant_type: &GrantType, client: &Client, now: Instant) -> Result {
    let is_over = *grant_type == GrantType::Password && client.legacy_is_over(now);
    if !is_over && client.allows_grant(grant_type) {
        return Ok(());
    }
    Err(TokenError {
        detail: is_over.then(|| LEGACY_UNTIL.to_owned()),
        ..unauthorized_client(Reason::UnregisteredGrantType)
    })
}

fn authorization_code(parameters: &Parameters) -> Result<AuthorizationCodeRequest> {
    let code = handle(parameters, "code", Reason::MissingCode, Reason::UnknownCode)?;
    let redirect_uri = parameters
        .bounded("redirect_uri", parameters::REDIRECT_URI)
        .map_err(invalid_request)?;
    Ok(AuthorizationCodeRequest {
        code,
        redirect_uri: required(redirect_uri, Reason::MissingTokenRedirectUri)?.to_owned(),
        code_verifier: code_verifier(parameters)?,
        resources: resources(parameters)?,
    })
}

fn refresh_token(parameters: &Parameters) -> Result<RefreshTokenRequest> {
    Ok(RefreshTokenRequest {
        refresh_token: handle(
            parameters,
            "refresh_token",
            Reason::MissingRefreshToken,
            Reason::UnknownRefreshToken,
        )?,
        scope: scope(parameters)?,
        resources: resources(parameters)?,
    })
}

/// A code or token. One that is too long is not ours: the error is `invalid_grant`, as for an
/// unknown one.
fn handle(
    parameters: &Parameters,
    name: &str,
    missing: Reason,
    unknown: Reason,
) -> Result<SecretText> {
    match parameters.bounded(name, parameters::HANDLE) {
        Ok(sent) => required(sent, missing).map(SecretText::new),
        Err(Reason::OverlongParameter) => Err(invalid_grant(unknown)),
        Err(reason) => Err(invalid_request(reason)),
    }
}

/// Reads `code_verifier`. Its length is not checked here: a wrong verifier uses up the code, and so
/// must one that is too long.
fn code_verifier(parameters: &Parameters) -> Result<PresentedVerifier> {
    let sent = parameters.single("code_verifier");
    Ok(match sent.map_err(invalid_request)? {
        Some(code_verifier) => PresentedVerifier::Sent(SecretText::new(code_verifier)),
        None if parameters.was_sent("code_verifier") => PresentedVerifier::Empty,
        None => PresentedVerifier::Absent,
    })
}

fn client_credentials(
    parameters: &Parameters,
    client: &Client,
) -> Result<ClientCredentialsRequest> {
    if !client.is_confidential() {
        return Err(unauthorized_client(Reason::PublicClientCredentials));
    }
    Ok(ClientCredentialsRequest {
        scope: scope(parameters)?,
        resources: resources(parameters)?,
    })
}

fn password(parameters: &Parameters, client: &Client) -> Result<PasswordRequest> {
    if !client.allows_identity_provider(LOCAL) {
        return Err(unauthorized_client(Reason::NoPasswordSignIn));
    }
    let username = parameters
        .bounded("username", parameters::USERNAME)
        .map_err(invalid_request)?;
    let password = parameters.single("password").map_err(invalid_request)?;
    if password.is_some_and(|password| password.len() > parameters::PASSWORD_BYTES) {
        return Err(invalid_request(Reason::OverlongParameter));
    }
    let acr_values = parameters
        .bounded("acr_values", parameters::OTHER)
        .map_err(invalid_request)?;
    Ok(PasswordRequest {
        username: required(username, Reason::MissingUsername)?.to_owned(),
        password: SecretText::new(required(password, Reason::MissingPassword)?),
        acr_values: acr_values.map(str::to_owned),
        scope: scope(parameters)?,
        resources: resources(parameters)?,
    })
}

fn device_code(parameters: &Parameters) -> Result<DeviceCodeRequest> {
    Ok(DeviceCodeRequest {
        device_code: handle(
            parameters,
            "device_code",
            Reason::MissingDeviceCode,
            Reason::UnknownDeviceCode,
        )?,
        resources: resources(parameters)?,
    })
}

/// Reads `scope`; `None` when it was not sent.
pub(crate) fn scope(parameters: &Parameters) -> Result<Option<ScopeSet>> {
    let Some(text) = parameters
        .bounded("scope", parameters::SCOPE)
        .map_err(invalid_request)?
    else {
        return Ok(None);
    };
    match ScopeSet::parse(text) {
        Some(scope) if !scope.is_empty() => Ok(Some(scope)),
        Some(_) | None => Err(invalid_scope(Reason::UnknownScope)),
    }
}

/// Reads `resource`, which may be sent up to ten times (RFC 8707 §2).
pub(crate) fn resources(parameters: &Parameters) -> Result<Vec<String>> {
    targets(parameters, "resource")
}

/// The values of a repeatable parameter, each once.
fn targets(parameters: &Parameters, name: &str) -> Result<Vec<String>> {
    let mut targets: Vec<String> = Vec::new();
    for (sent, target) in parameters
        .all(name)
        .filter(|target| !target.is_empty())
        .enumerate()
    {
        if sent == parameters::RESOURCES || target.chars().nth(parameters::RESOURCE).is_some() {
            return Err(invalid_request(Reason::OverlongParameter));
        }
        if !targets.iter().any(|known| known == target) {
            targets.push(target.to_owned());
        }
    }
    Ok(targets)
}

fn required<T>(sent: Option<T>, missing: Reason) -> Result<T> {
    sent.ok_or_else(|| invalid_request(missing))
}

fn unsupported() -> TokenError {
    TokenError::new(
        TokenErrorCode::UnsupportedGrantType,
        Reason::UnsupportedGrantType,
    )
}

#[cfg(test)]
mod tests;
