//! Error answers of the standards: what goes out (`error`) together with why (`Reason`).

use super::reason::Reason;

/// `error` at the token endpoint and its neighbours (RFC 6749 §5.2, RFC 8628 §3.5, RFC 8707 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenErrorCode {
    /// `invalid_request`
    InvalidRequest,
    /// `invalid_client`
    InvalidClient,
    /// `invalid_grant`
    InvalidGrant,
    /// `unauthorized_client`
    UnauthorizedClient,
    /// `unsupported_grant_type`
    UnsupportedGrantType,
    /// `invalid_scope`
    InvalidScope,
    /// `invalid_target`
    InvalidTarget,
    /// `authorization_pending`
    AuthorizationPending,
    /// `slow_down`
    SlowDown,
    /// `access_denied`
    AccessDenied,
    /// `expired_token`
    ExpiredToken,
}

impl TokenErrorCode {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            TokenErrorCode::InvalidRequest => "invalid_request",
            TokenErrorCode::InvalidClient => "invalid_client",
            TokenErrorCode::InvalidGrant => "invalid_grant",
            TokenErrorCode::UnauthorizedClient => "unauthorized_client",
            TokenErrorCode::UnsupportedGrantType => "unsupported_grant_type",
            TokenErrorCode::InvalidScope => "invalid_scope",
            TokenErrorCode::InvalidTarget => "invalid_target",
            TokenErrorCode::AuthorizationPending => "authorization_pending",
            TokenErrorCode::SlowDown => "slow_down",
            TokenErrorCode::AccessDenied => "access_denied",
            TokenErrorCode::ExpiredToken => "expired_token",
        }
    }
}

/// A refused token request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenError {
    /// What the client reads.
    pub code: TokenErrorCode,
    /// Why; its description goes out, the rest to the log.
    pub reason: Reason,
    /// What the log may know beyond that.
    pub detail: Option<String>,
}

impl TokenError {
    /// Pairs a code with its reason.
    pub const fn new(code: TokenErrorCode, reason: Reason) -> TokenError {
        TokenError { code, reason, detail: None }
    }

    /// `invalid_scope` for one scope among those asked for, which the log names.
    pub fn about_scope(reason: Reason, scope: &str) -> TokenError {
        TokenError { detail: Some(scope.to_owned()), ..TokenError::new(TokenErrorCode::InvalidScope, reason) }
    }
}

/// `error` at the authorization endpoint (RFC 6749 §4.1.2.1, OpenID Connect Core §3.1.2.6, RFC 8707 §2,
/// OpenID Connect Core Error Code unmet_authentication_requirements §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizeErrorCode {
    /// `invalid_request`
    InvalidRequest,
    /// `unauthorized_client`
    UnauthorizedClient,
    /// `access_denied`
    AccessDenied,
    /// `unsupported_response_type`
    UnsupportedResponseType,
    /// `invalid_scope`
    InvalidScope,
    /// `invalid_target`
    InvalidTarget,
    /// `server_error`
    ServerError,
    /// `temporarily_unavailable`
    TemporarilyUnavailable,
    /// `login_required`
    LoginRequired,
    /// `consent_required`
    ConsentRequired,
    /// `request_not_supported`
    RequestNotSupported,
    /// `request_uri_not_supported`
    RequestUriNotSupported,
    /// `unmet_authentication_requirements`
    UnmetAuthenticationRequirements,
}

impl AuthorizeErrorCode {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            AuthorizeErrorCode::InvalidRequest => "invalid_request",
            AuthorizeErrorCode::UnauthorizedClient => "unauthorized_client",
            AuthorizeErrorCode::AccessDenied => "access_denied",
            AuthorizeErrorCode::UnsupportedResponseType => "unsupported_response_type",
            AuthorizeErrorCode::InvalidScope => "invalid_scope",
            AuthorizeErrorCode::InvalidTarget => "invalid_target",
            AuthorizeErrorCode::ServerError => "server_error",
            AuthorizeErrorCode::TemporarilyUnavailable => "temporarily_unavailable",
            AuthorizeErrorCode::LoginRequired => "login_required",
            AuthorizeErrorCode::ConsentRequired => "consent_required",
            AuthorizeErrorCode::RequestNotSupported => "request_not_supported",
            AuthorizeErrorCode::RequestUriNotSupported => "request_uri_not_supported",
            AuthorizeErrorCode::UnmetAuthenticationRequirements => "unmet_authentication_requirements",
        }
    }
}
