//! The token request (RFC 6749 §4): the form, read once into a typed value with the grant's own parameters inside. A
//! grant never sees the form.

use super::client::{Client, GrantType};
use super::errors::{TokenError, TokenErrorCode};
use super::lengths;
use super::parameters::Parameters;
use super::reason::Reason;
use super::scope::ScopeSet;
use super::secret::SecretText;

/// Every parameter that some grant reads, of this build or a later one: none of them may stand in the URL.
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
    "resource",
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
    "audience",
];

/// Those of them that this build reads and that may stand in a form once only, also where the grant at hand does not read
/// them.
pub const SINGLE_PARAMETERS: [&str; 10] = [
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
];

/// The grants the token endpoint serves, in the order of the metadata.
pub const SERVED_GRANT_TYPES: [GrantType; 3] =
    [GrantType::AuthorizationCode, GrantType::RefreshToken, GrantType::ClientCredentials];

/// A well-formed request of an authenticated client for a grant it may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenRequest {
    /// `authorization_code`
    AuthorizationCode(AuthorizationCodeRequest),
    /// `refresh_token`
    RefreshToken(RefreshTokenRequest),
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

/// Parameters of `refresh_token` (RFC 6749 §6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshTokenRequest {
    /// `refresh_token`, not yet verified.
    pub refresh_token: SecretText,
    /// `scope`, for the tokens of this answer; `None` asks for all that was granted.
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
            GrantType::RefreshToken => refresh_token(parameters).map(TokenRequest::RefreshToken),
            GrantType::Implicit
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
    let name = parameters.bounded("grant_type", lengths::OTHER).map_err(invalid_request)?;
    let name = name.ok_or_else(|| invalid_request(Reason::MissingGrantType))?;
    let grant_type = GrantType::from_name(name);
    if SERVED_GRANT_TYPES.contains(&grant_type) { Ok(grant_type) } else { Err(unsupported()) }
}

fn authorization_code(parameters: &Parameters) -> Result<AuthorizationCodeRequest, TokenError> {
    let code = handle(parameters, "code", Reason::UnknownCode)?;
    let redirect_uri = parameters.bounded("redirect_uri", lengths::REDIRECT_URI).map_err(invalid_request)?;
    Ok(AuthorizationCodeRequest {
        code: SecretText::new(code.ok_or_else(|| invalid_request(Reason::MissingCode))?),
        redirect_uri: redirect_uri.ok_or_else(|| invalid_request(Reason::MissingTokenRedirectUri))?.to_owned(),
        code_verifier: code_verifier(parameters)?,
        resources: resources(parameters)?,
    })
}

fn refresh_token(parameters: &Parameters) -> Result<RefreshTokenRequest, TokenError> {
    let refresh_token = handle(parameters, "refresh_token", Reason::UnknownRefreshToken)?;
    Ok(RefreshTokenRequest {
        refresh_token: SecretText::new(refresh_token.ok_or_else(|| invalid_request(Reason::MissingRefreshToken))?),
        scope: scope(parameters)?,
        resources: resources(parameters)?,
    })
}

/// What we handed out comes back; longer than any of ours, it is none of ours.
fn handle<'a>(parameters: &'a Parameters, name: &str, unknown: Reason) -> Result<Option<&'a str>, TokenError> {
    parameters.bounded(name, lengths::HANDLE).map_err(|reason| {
        let overlong = reason == Reason::OverlongParameter;
        if overlong { TokenError::new(TokenErrorCode::InvalidGrant, unknown) } else { invalid_request(reason) }
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
    let Some(text) = parameters.bounded("scope", lengths::SCOPE).map_err(invalid_request)? else {
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
        if sent == lengths::RESOURCES || resource.chars().nth(lengths::RESOURCE).is_some() {
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

fn unsupported() -> TokenError {
    TokenError::new(TokenErrorCode::UnsupportedGrantType, Reason::UnsupportedGrantType)
}

#[cfg(test)]
mod tests {
    use super::super::client::ClientAuthenticationMethod;
    use super::super::samples;
    use super::*;

    fn refusal(pairs: &[(&str, &str)]) -> (&'static str, Reason) {
        let parameters = Parameters::from_pairs(pairs.iter().copied());
        let error = TokenRequest::from_form(&parameters, &samples::client()).unwrap_err();
        (error.code.as_str(), error.reason)
    }

    fn accepted(pairs: &[(&str, &str)]) -> TokenRequest {
        TokenRequest::from_form(&Parameters::from_pairs(pairs.iter().copied()), &samples::client()).unwrap()
    }

    const CODE: [(&str, &str); 3] =
        [("grant_type", "authorization_code"), ("code", "gpc_x"), ("redirect_uri", "https://shop.example.com/cb")];

    fn code_request(further: &[(&str, &str)]) -> Vec<(String, String)> {
        CODE.iter().chain(further).map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    fn code_refusal(further: &[(&str, &str)]) -> (&'static str, Reason) {
        let pairs = code_request(further);
        refusal(&pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>())
    }

    fn code_accepted(further: &[(&str, &str)]) -> AuthorizationCodeRequest {
        let pairs = code_request(further);
        match accepted(&pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>()) {
            TokenRequest::AuthorizationCode(request) => request,
            TokenRequest::RefreshToken(_) | TokenRequest::ClientCredentials(_) => panic!("another grant"),
        }
    }

    #[test]
    fn grant_type_comes_first() {
        for (pairs, expected) in [
            (&[][..], ("invalid_request", Reason::MissingGrantType)),
            (&[("grant_type", "")], ("invalid_request", Reason::MissingGrantType)),
            (&[("Grant_Type", "authorization_code")], ("invalid_request", Reason::MissingGrantType)),
            (&[("grant_type", "a"), ("grant_type", "b")], ("invalid_request", Reason::RepeatedParameter)),
            (&[("grant_type", "Authorization_Code")], ("unsupported_grant_type", Reason::UnsupportedGrantType)),
            (&[("grant_type", "authorization_code ")], ("unsupported_grant_type", Reason::UnsupportedGrantType)),
            (&[("grant_type", "implicit")], ("unsupported_grant_type", Reason::UnsupportedGrantType)),
            (&[("grant_type", "urn:example:none")], ("unsupported_grant_type", Reason::UnsupportedGrantType)),
        ] {
            assert_eq!(refusal(pairs), expected, "{pairs:?}");
        }
        let long = "g".repeat(301);
        assert_eq!(refusal(&[("grant_type", &long)]), ("invalid_request", Reason::OverlongParameter));
    }

    #[test]
    fn a_grant_the_client_does_not_have_is_unauthorized_before_its_parameters_are_read() {
        let mut client = samples::client();
        client.grant_types = [GrantType::ClientCredentials].into();
        let parameters = Parameters::from_pairs([("grant_type", "authorization_code")]);
        let error = TokenRequest::from_form(&parameters, &client).unwrap_err();
        assert_eq!(error, TokenError::new(TokenErrorCode::UnauthorizedClient, Reason::UnregisteredGrantType));
    }

    #[test]
    fn a_public_client_gets_no_token_of_its_own() {
        let mut client = samples::client();
        client.authentication = ClientAuthenticationMethod::None;
        let parameters = Parameters::from_pairs([("grant_type", "client_credentials")]);
        let error = TokenRequest::from_form(&parameters, &client).unwrap_err();
        assert_eq!(error, TokenError::new(TokenErrorCode::UnauthorizedClient, Reason::PublicClientCredentials));
    }

    #[test]
    fn required_parameters_of_a_code_are_missed_by_name() {
        let grant_type = ("grant_type", "authorization_code");
        assert_eq!(refusal(&[grant_type]), ("invalid_request", Reason::MissingCode));
        assert_eq!(refusal(&[grant_type, ("code", "")]), ("invalid_request", Reason::MissingCode));
        assert_eq!(refusal(&[grant_type, ("code", "x")]), ("invalid_request", Reason::MissingTokenRedirectUri));
        assert_eq!(
            refusal(&[grant_type, ("code", "x"), ("redirect_uri", "")]),
            ("invalid_request", Reason::MissingTokenRedirectUri)
        );
    }

    #[test]
    fn repeated_parameters_are_refused() {
        for further in [("code", "y"), ("redirect_uri", ""), ("grant_type", "authorization_code")] {
            assert_eq!(code_refusal(&[further]), ("invalid_request", Reason::RepeatedParameter), "{further:?}");
        }
        let twice = [("code_verifier", ""), ("code_verifier", "")];
        assert_eq!(code_refusal(&twice), ("invalid_request", Reason::RepeatedParameter));
        assert_eq!(code_accepted(&[("unknown", "1"), ("unknown", "2"), ("scope", "nope")]).resources, [""; 0]);
    }

    #[test]
    fn overlong_values_are_refused_as_what_they_are() {
        let long = |most: usize| "x".repeat(most + 1);
        let (uri, code) = (long(2_000), long(8_192));
        let grant_type = ("grant_type", "authorization_code");
        assert_eq!(refusal(&[grant_type, ("code", &code)]), ("invalid_grant", Reason::UnknownCode));
        assert_eq!(
            refusal(&[grant_type, ("code", "x"), ("redirect_uri", &uri)]),
            ("invalid_request", Reason::OverlongParameter)
        );
        assert_eq!(code_refusal(&[("resource", &uri)]), ("invalid_request", Reason::OverlongParameter));
        assert_eq!(code_accepted(&[("resource", &uri[1..])]).resources.len(), 1);
    }

    #[test]
    fn an_empty_code_verifier_is_told_from_none() {
        assert_eq!(code_accepted(&[]).code_verifier, PresentedVerifier::Absent);
        assert_eq!(code_accepted(&[("code_verifier", "")]).code_verifier, PresentedVerifier::Empty);
        let sent = PresentedVerifier::Sent(SecretText::new("v"));
        assert_eq!(code_accepted(&[("code_verifier", "v")]).code_verifier, sent);
    }

    #[test]
    fn ten_resources_and_no_more() {
        let names: Vec<String> = (0..11).map(|number| format!("https://{number}.example")).collect();
        let pairs: Vec<(&str, &str)> = names.iter().map(|name| ("resource", name.as_str())).collect();
        assert_eq!(code_accepted(&pairs[..10]).resources.len(), 10);
        assert_eq!(code_refusal(&pairs), ("invalid_request", Reason::OverlongParameter));
        assert_eq!(code_accepted(&[pairs[0], pairs[0], ("resource", "")]).resources, [names[0].clone()]);
    }

    #[test]
    fn client_credentials_ask_for_scopes_or_leave_the_choice() {
        let grant_type = ("grant_type", "client_credentials");
        let asked = |pairs: &[(&str, &str)]| match accepted(pairs) {
            TokenRequest::ClientCredentials(request) => request.scope.map(|scope| scope.to_string()),
            TokenRequest::AuthorizationCode(_) | TokenRequest::RefreshToken(_) => panic!("another grant"),
        };
        assert_eq!(asked(&[grant_type]), None);
        assert_eq!(asked(&[grant_type, ("scope", "")]), None);
        assert_eq!(asked(&[grant_type, ("scope", "b  a b")]), Some(String::from("b a")));
    }

    #[test]
    fn a_malformed_scope_is_an_invalid_one() {
        let grant_type = ("grant_type", "client_credentials");
        let spaces = " ".repeat(2_000);
        for scope in ["a\"b", "é", "a\tb", " ", spaces.as_str()] {
            assert_eq!(refusal(&[grant_type, ("scope", scope)]), ("invalid_scope", Reason::UnknownScope), "{scope:?}");
        }
        let long = "a".repeat(2_001);
        assert_eq!(refusal(&[grant_type, ("scope", &long)]), ("invalid_request", Reason::OverlongParameter));
        assert_eq!(
            refusal(&[grant_type, ("scope", "a"), ("scope", "a")]),
            ("invalid_request", Reason::RepeatedParameter)
        );
    }

    #[test]
    fn known_parameters_are_found_in_a_query() {
        let query = |raw: &str| Parameters::parse(raw.as_bytes()).unwrap();
        for raw in ["client_secret=x", "a=1&grant_type=", "%63ode=x", "resource"] {
            assert!(known_parameter_in_query(&query(raw), &PARAMETERS), "{raw}");
        }
        for raw in ["", "trace=1", "Code=x", "codes=x"] {
            assert!(!known_parameter_in_query(&query(raw), &PARAMETERS), "{raw}");
        }
    }
}
