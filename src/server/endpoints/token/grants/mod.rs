//! One function for each grant type. It takes the request of a client that is authenticated, and
//! returns a response or a failure. All tokens are made in [`issue`]. Grants by URI, from standards
//! or from the operator, are called by [`extension`].

pub mod authorization_code;
pub mod client_credentials;
pub mod device_code;
pub mod extension;
pub mod id_jag;
pub mod issue;
pub mod jwt_bearer;
pub mod password;
pub mod refresh_token;
pub mod token_exchange;

use std::time::Duration;

pub use crate::app::extension_grant::GrantContext;
use crate::app::failure::{Failure, Result};
use crate::keys::random;
use gatepost_protocol::token::grant::{Given, Grant};
use gatepost_protocol::token::id_token::TokenResponse;
use gatepost_protocol::token::token_request::TokenRequest;
use gatepost_protocol::words::reason::{self, Reason};

fn invalid_grant(reason: Reason) -> Failure {
    reason::invalid_grant(reason).into()
}

/// A grant that is redeemed as soon as it is given.
fn begun(context: GrantContext<'_>, given: Given) -> Grant {
    let client = &context.client.client;
    Grant {
        confirmation: context.refresh_key(),
        ..Grant::given(random::bytes(), client, given, context.now, Duration::ZERO)
    }
}

/// Calls the function of the grant type.
pub fn handle(context: GrantContext<'_>, request: &TokenRequest) -> Result<TokenResponse> {
    match request {
        TokenRequest::AuthorizationCode(request) => authorization_code::handle(context, request),
        TokenRequest::RefreshToken(request) => refresh_token::handle(context, request),
        TokenRequest::ClientCredentials(request) => client_credentials::handle(context, request),
        TokenRequest::Password(request) => password::handle(context, request),
        TokenRequest::DeviceCode(request) => device_code::handle(context, request),
        TokenRequest::Extension(request) => extension::handle(context, request),
    }
}
