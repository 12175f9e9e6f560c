//! One plain function per grant type, all of one shape: what an authenticated client asked for in, an answer or a
//! failure out. Every token, whatever the grant, is made in [`issue`]; [`presented_token`] reads them again.

pub mod authorization_code;
pub mod client_credentials;
pub mod device_code;
pub mod issue;
pub mod password;
pub mod presented_token;
pub mod refresh_token;
pub mod user_grant;

use crate::app::App;
use crate::app::failure::Failure;
use crate::http::Request;
use crate::protocol::instant::Instant;
use crate::protocol::token_request::TokenRequest;
use crate::protocol::token_response::TokenResponse;
use crate::registry::RegisteredClient;

/// What every grant gets to see: it never meets the raw form.
#[derive(Clone, Copy)]
pub struct GrantContext<'a> {
    /// The house.
    pub app: &'a App,
    /// For the audit event: who sent it, and its id.
    pub request: &'a Request,
    /// The client, authenticated.
    pub client: &'a RegisteredClient,
    /// The moment the request is judged at.
    pub now: Instant,
}

/// The table of grants.
pub fn handle(context: GrantContext<'_>, request: &TokenRequest) -> Result<TokenResponse, Failure> {
    match request {
        TokenRequest::AuthorizationCode(request) => authorization_code::handle(context, request),
        TokenRequest::RefreshToken(request) => refresh_token::handle(context, request),
        TokenRequest::ClientCredentials(request) => client_credentials::handle(context, request),
        TokenRequest::Password(request) => password::handle(context, request),
        TokenRequest::DeviceCode(request) => device_code::handle(context, request),
    }
}
