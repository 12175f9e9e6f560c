//! Bearer tokens at our own protected resources (RFC 6750): where the access token stands in a request, and what the
//! challenge says when it does not, or is not good enough.

use super::parameters::Parameters;
use super::reason::Reason;
use super::secret::SecretText;

/// The longest token that is looked at.
const MOST_CHARACTERS: usize = 8_192;

/// A refusal under RFC 6750 §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BearerFailure {
    /// No token at all: 401 with a bare challenge, no error.
    Missing,
    /// 400 `invalid_request`.
    InvalidRequest(Reason),
    /// 401 `invalid_token`.
    InvalidToken,
    /// 403 `insufficient_scope`.
    InsufficientScope,
}

/// Finds the one access token of a request: in the Authorization header, or as `access_token` of a form body.
/// `authorization` are all values of that header; `form` is the body of a POST that has one.
pub fn access_token(
    authorization: &[&str],
    query: &Parameters,
    form: Option<&Parameters>,
) -> Result<SecretText, BearerFailure> {
    if query.was_sent("access_token") {
        return Err(BearerFailure::InvalidRequest(Reason::AccessTokenInQuery));
    }
    let in_header = header_token(authorization)?;
    let in_form = form.map_or(Ok(None), |form| form.single("access_token")).map_err(BearerFailure::InvalidRequest)?;
    match (in_header, in_form) {
        (Some(_), Some(_)) => Err(BearerFailure::InvalidRequest(Reason::SeveralAccessTokens)),
        (Some(token), None) | (None, Some(token)) if is_too_long(token) => Err(BearerFailure::InvalidToken),
        (Some(token), None) | (None, Some(token)) => Ok(SecretText::new(token)),
        (None, None) => Err(BearerFailure::Missing),
    }
}

impl BearerFailure {
    /// Why.
    pub fn reason(self) -> Reason {
        match self {
            BearerFailure::Missing => Reason::NoAccessToken,
            BearerFailure::InvalidRequest(reason) => reason,
            BearerFailure::InvalidToken => Reason::InvalidAccessToken,
            BearerFailure::InsufficientScope => Reason::InsufficientScope,
        }
    }

    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            BearerFailure::InvalidRequest(_) => 400,
            BearerFailure::Missing | BearerFailure::InvalidToken => 401,
            BearerFailure::InsufficientScope => 403,
        }
    }

    /// `error`; none when there was no token.
    pub fn error(self) -> Option<&'static str> {
        match self {
            BearerFailure::Missing => None,
            BearerFailure::InvalidRequest(_) => Some("invalid_request"),
            BearerFailure::InvalidToken => Some("invalid_token"),
            BearerFailure::InsufficientScope => Some("insufficient_scope"),
        }
    }

    /// The value of `WWW-Authenticate`.
    pub fn challenge(self) -> String {
        let mut challenge = String::from("Bearer realm=\"gatepost\"");
        if let Some(error) = self.error() {
            let description = self.reason().description();
            challenge.push_str(&format!(", error=\"{error}\", error_description=\"{description}\""));
        }
        if self == BearerFailure::InsufficientScope {
            challenge.push_str(", scope=\"openid\"");
        }
        challenge
    }
}

/// Another scheme's credentials are no access token; they are for somebody else.
fn header_token<'a>(authorization: &[&'a str]) -> Result<Option<&'a str>, BearerFailure> {
    let header = match authorization {
        [] => return Ok(None),
        [header] => header.trim_matches(' '),
        [_, _, ..] => return Err(BearerFailure::InvalidRequest(Reason::SeveralAccessTokens)),
    };
    let (scheme, token) = header.split_once(' ').unwrap_or((header, ""));
    let token = token.trim_start_matches(' ');
    if !scheme.eq_ignore_ascii_case("Bearer") || token.is_empty() {
        return Ok(None);
    }
    if !is_b64token(token) {
        return Err(BearerFailure::InvalidRequest(Reason::MalformedBearer));
    }
    Ok(Some(token))
}

/// RFC 6750 §2.1.
fn is_b64token(token: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
    let unpadded = token.trim_end_matches('=');
    !unpadded.is_empty() && unpadded.bytes().all(allowed)
}

fn is_too_long(token: &str) -> bool {
    token.chars().nth(MOST_CHARACTERS).is_some()
}
