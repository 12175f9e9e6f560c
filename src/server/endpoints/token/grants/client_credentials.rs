//! `grant_type=client_credentials` (RFC 6749 §4.4): a client speaks for itself. Nothing is written.

use super::GrantContext;
use super::issue::{Additions, Issue};
use crate::app::failure::Result;
use gatepost_protocol::token::audience::{Narrowed, granted_scope, narrow};
use gatepost_protocol::token::id_token::TokenResponse;
use gatepost_protocol::token::token_request::ClientCredentialsRequest;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::reason::{Reason, TokenError, unauthorized_client};
use gatepost_protocol::words::scope::ScopeSet;

/// Issues an access token without user, ID token or refresh token.
pub fn handle(
    context: GrantContext<'_>,
    request: &ClientCredentialsRequest,
) -> Result<TokenResponse> {
    let GrantContext {
        app,
        client,
        snapshot,
        ..
    } = context;
    let client = &client.client;
    let given = judge(request, client, &snapshot.catalogue, app.issuer())?;
    let issue = Issue::of_client(context, &given.scope);
    let lasting = client.lifetimes.client_credentials_token;
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
    client: &Client,
    catalogue: &Catalogue,
    issuer: &str,
) -> Result<GivenToClient, TokenError> {
    if !client.is_confidential() {
        return Err(unauthorized_client(Reason::PublicClientCredentials));
    }
    let scope = granted_scope(request.scope.as_ref(), client, catalogue)?;
    let narrowed = narrow(&scope, &request.resources, &[], catalogue, issuer)?;
    Ok(GivenToClient { scope, narrowed })
}
