//! Error answers of the standards: what goes out (`error`) together with why (`Reason`).

use super::reason::Reason;

/// `error` at the token endpoint and its neighbours (RFC 6749 §5.2, RFC 8628 §3.5, RFC 8707 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenErrorCode {
    InvalidRequest,
    InvalidClient,
    InvalidGrant,
    UnauthorizedClient,
    UnsupportedGrantType,
    InvalidScope,
    InvalidTarget,
    AuthorizationPending,
    SlowDown,
    AccessDenied,
    ExpiredToken,
}

impl TokenErrorCode {
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenError {
    /// What the client reads.
    pub code: TokenErrorCode,
    /// Why; its description goes out, the rest to the log.
    pub reason: Reason,
    /// For the log.
    pub detail: Option<String>,
}

impl TokenError {
    pub const fn new(code: TokenErrorCode, reason: Reason) -> TokenError {
        TokenError { code, reason, detail: None }
    }

    /// `invalid_scope` for one scope, which the log names.
    pub fn about_scope(reason: Reason, scope: &str) -> TokenError {
        TokenError { detail: Some(scope.to_owned()), ..TokenError::new(TokenErrorCode::InvalidScope, reason) }
    }
}

/// RFC 6749 §4.1.2.1, OpenID Connect Core §3.1.2.6, RFC 8707 §2, Error Code unmet_authentication_requirements §2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizeErrorCode {
    InvalidRequest,
    UnauthorizedClient,
    AccessDenied,
    UnsupportedResponseType,
    InvalidScope,
    InvalidTarget,
    ServerError,
    TemporarilyUnavailable,
    LoginRequired,
    ConsentRequired,
    RequestNotSupported,
    RequestUriNotSupported,
    UnmetAuthenticationRequirements,
}

impl AuthorizeErrorCode {
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
