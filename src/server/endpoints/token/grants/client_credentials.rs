//! `grant_type=client_credentials` (RFC 6749 §4.4): a client speaks for itself. Nothing is written.

use super::GrantContext;
use super::issue::{Additions, Issue};
use crate::app::failure::Result;
use gatepost_protocol::token::audience::{Narrowed, granted_scope, narrow};
use gatepost_protocol::token::id_token::TokenResponse;
use gatepost_protocol::token::token_request::ClientCredentialsRequest;
use gatepost_protocol::words::reason::TokenError;
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_protocol::words::sender::Sender;

/// Issues an access token without user, ID token or refresh token.
pub fn handle(
    context: GrantContext<'_>,
    request: &ClientCredentialsRequest,
) -> Result<TokenResponse> {
    let sender = context.sender();
    let given = judge(request, sender)?;
    let issue = Issue::of_client(context, &given.scope);
    let lasting = sender.client.lifetimes.client_credentials_token;
    let issue = Issue {
        lifetime: lasting.unwrap_or(issue.lifetime),
        ..issue
    };
    issue.tokens(given.narrowed, Additions::default())
}

/// What a client gets for itself: the scope, and what a token for the resources has of it.
pub struct GivenToClient {
    pub scope: ScopeSet,
    pub narrowed: Narrowed,
}

/// Whether it gets anything.
pub fn judge(
    request: &ClientCredentialsRequest,
    sender: Sender<'_>,
) -> Result<GivenToClient, TokenError> {
    let Sender {
        client,
        catalogue,
        issuer,
        ..
    } = sender;
    let scope = granted_scope(request.scope.as_ref(), client, catalogue)?;
    let narrowed = narrow(&scope, &request.resources, &[], catalogue, issuer)?;
    Ok(GivenToClient { scope, narrowed })
}
