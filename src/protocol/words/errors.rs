//! Error answers of the standards: what goes out (`error`) together with why (`Reason`).

use super::named::named;
use super::reason::Reason;

named! {
    /// `error` at the token endpoint and its neighbours (RFC 6749 §5.2, RFC 8628 §3.5, RFC 8707 §2).
    pub enum TokenErrorCode {
        InvalidRequest = "invalid_request",
        InvalidClient = "invalid_client",
        InvalidGrant = "invalid_grant",
        UnauthorizedClient = "unauthorized_client",
        UnsupportedGrantType = "unsupported_grant_type",
        InvalidScope = "invalid_scope",
        InvalidTarget = "invalid_target",
        AuthorizationPending = "authorization_pending",
        SlowDown = "slow_down",
        AccessDenied = "access_denied",
        ExpiredToken = "expired_token",
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

named! {
    /// RFC 6749 §4.1.2.1, OpenID Connect Core §3.1.2.6, RFC 8707 §2, Error Code unmet_authentication_requirements §2.
    pub enum AuthorizeErrorCode {
        InvalidRequest = "invalid_request",
        UnauthorizedClient = "unauthorized_client",
        AccessDenied = "access_denied",
        UnsupportedResponseType = "unsupported_response_type",
        InvalidScope = "invalid_scope",
        InvalidTarget = "invalid_target",
        ServerError = "server_error",
        TemporarilyUnavailable = "temporarily_unavailable",
        LoginRequired = "login_required",
        ConsentRequired = "consent_required",
        RequestNotSupported = "request_not_supported",
        RequestUriNotSupported = "request_uri_not_supported",
        UnmetAuthenticationRequirements = "unmet_authentication_requirements",
    }
}
