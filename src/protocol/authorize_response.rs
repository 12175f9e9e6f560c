//! The authorization response (RFC 6749 §4.1.2, OAuth 2.0 Multiple Response Type Encoding Practices, RFC 9207): its
//! parameters, and the one encoder that puts them into a redirect or a form. Nothing else builds a URL from parts.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::errors::AuthorizeErrorCode;
use super::reason::Reason;
use super::redirect_uri::RedirectTarget;
use super::response_mode::ResponseMode;
use super::scope::ScopeSet;
use super::secret::SecretText;

/// Everything but the unreserved characters of RFC 3986 §2.3: a space becomes %20, which every decoder understands.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Names and values in the order they go out.
pub type ResponseParameters = Vec<(&'static str, String)>;

/// What a successful request gets. Members are in the order of the wire.
#[derive(Clone, Debug)]
pub struct AuthorizeSuccess<'a> {
    /// `code`
    pub code: Option<&'a SecretText>,
    /// `id_token`
    pub id_token: Option<&'a SecretText>,
    /// `access_token` and what stands beside it.
    pub access_token: Option<FrontChannelAccessToken<'a>>,
    /// `state`, as sent.
    pub state: Option<&'a str>,
    /// `session_state` (OpenID Connect Session Management §2), only with `openid`.
    pub session_state: Option<&'a str>,
    /// `iss` (RFC 9207)
    pub issuer: &'a str,
}

/// An access token that travels through the browser.
#[derive(Clone, Debug)]
pub struct FrontChannelAccessToken<'a> {
    /// `access_token`
    pub access_token: &'a SecretText,
    /// `expires_in`, seconds.
    pub expires_in: u64,
    /// `scope`
    pub scope: &'a ScopeSet,
}

impl AuthorizeSuccess<'_> {
    /// The parameters.
    pub fn parameters(&self) -> ResponseParameters {
        let secret = |name, value: Option<&SecretText>| value.map(|value| (name, value.expose().to_owned()));
        let text = |name, value: Option<&str>| value.map(|value| (name, value.to_owned()));
        let mut parameters: ResponseParameters =
            [secret("code", self.code), secret("id_token", self.id_token)].into_iter().flatten().collect();
        if let Some(token) = &self.access_token {
            parameters.push(("access_token", token.access_token.expose().to_owned()));
            parameters.push(("token_type", "Bearer".to_owned()));
            parameters.push(("expires_in", token.expires_in.to_string()));
            parameters.push(("scope", token.scope.to_string()));
        }
        let rest =
            [text("state", self.state), text("session_state", self.session_state), text("iss", Some(self.issuer))];
        parameters.extend(rest.into_iter().flatten());
        parameters
    }
}

/// The parameters of an error.
pub fn error_parameters(
    code: AuthorizeErrorCode,
    reason: Reason,
    state: Option<&str>,
    issuer: &str,
) -> ResponseParameters {
    let mut parameters =
        vec![("error", code.as_str().to_owned()), ("error_description", reason.description().to_owned())];
    parameters.extend(state.map(|state| ("state", state.to_owned())));
    parameters.push(("iss", issuer.to_owned()));
    parameters
}

/// A response ready to be sent.
#[derive(Clone, PartialEq, Eq)]
pub enum Delivery {
    /// 303 to this URI.
    Redirect {
        /// `Location`
        location: String,
    },
    /// A page with a form that posts itself.
    Form {
        /// Where to: the redirect URI byte for byte.
        action: String,
        /// The form's fields, unescaped.
        fields: ResponseParameters,
    },
}

impl fmt::Debug for Delivery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Both hold codes and tokens.
        match self {
            Delivery::Redirect { .. } => formatter.write_str("Redirect([redacted])"),
            Delivery::Form { .. } => formatter.write_str("Form([redacted])"),
        }
    }
}

/// Encodes a response for its way back.
pub fn deliver(target: &RedirectTarget, mode: ResponseMode, parameters: ResponseParameters) -> Delivery {
    match mode {
        ResponseMode::Query => Delivery::Redirect { location: with_query(target.uri(), &parameters) },
        ResponseMode::Fragment => Delivery::Redirect { location: format!("{}#{}", target.uri(), encode(&parameters)) },
        ResponseMode::FormPost => Delivery::Form { action: target.uri().to_owned(), fields: parameters },
    }
}

/// `uri` with parameters added to its query; what is there stays byte for byte. `uri` has no fragment.
pub fn with_query(uri: &str, parameters: &[(&'static str, String)]) -> String {
    let separator = match uri.split_once('?') {
        _ if parameters.is_empty() => "",
        None => "?",
        Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    format!("{uri}{separator}{}", encode(parameters))
}

fn encode(parameters: &[(&'static str, String)]) -> String {
    let pairs = parameters.iter().map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, ENCODED)));
    pairs.collect::<Vec<String>>().join("&")
}
