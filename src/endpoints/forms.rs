//! Reading form posts, whoever sends them: the media type, and parameters where they belong.

use crate::app::failure::Failure;
use crate::http::Request;
use crate::protocol::token::token_request::known_parameter_in_query;
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::{Reason, TokenErrorCode};
use crate::protocol::words::secret::SecretText;

/// Requires `application/x-www-form-urlencoded`, with or without parameters; `status` otherwise.
pub fn require_form(request: &Request, status: u16) -> Result<(), Failure> {
    let content_type = request.headers.first("content-type").unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Ok(());
    }
    Err(Failure::refused(
        status,
        TokenErrorCode::InvalidRequest,
        Reason::UnsupportedContentType,
    ))
}

/// Parameters in the URL end up in logs: refused even where the body has them too.
pub fn refuse_parameters_in_query(request: &Request, known: &[&str]) -> Result<(), Failure> {
    let query = Parameters::parse(request.query.as_bytes())?;
    if known_parameter_in_query(&query, known) {
        Err(Failure::bad_request(Reason::ParameterInQuery))
    } else {
        Ok(())
    }
}

/// What the endpoints that take a token read.
const PRESENTED_TOKEN_PARAMETERS: [&str; 6] = [
    "client_id",
    "client_secret",
    "client_assertion",
    "client_assertion_type",
    "token",
    "token_type_hint",
];

/// The same for an endpoint that takes a token.
pub fn refuse_presented_token_in_query(request: &Request) -> Result<(), Failure> {
    refuse_parameters_in_query(request, &PRESENTED_TOKEN_PARAMETERS)
}

/// `token`. `token_type_hint` helps nobody here, since each token says itself what it is (RFC 7009
/// §2.1, RFC 7662 §2.1): whatever stands in it, it is merely not sent twice.
pub fn presented_token(parameters: &Parameters) -> Result<SecretText, Failure> {
    parameters.single("token_type_hint")?;
    let token = parameters.bounded("token", parameters::HANDLE)?;
    Ok(token.map(SecretText::new).ok_or(Reason::MissingToken)?)
}
