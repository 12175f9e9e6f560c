//! `grant_type=client_credentials` (RFC 6749 §4.4): a client speaks for itself. Nothing is written.

use super::GrantContext;
use super::issue::{Additions, Issue};
use crate::app::failure::Failure;
use gatepost_protocol::token::audience::{granted_scope, narrow};
use gatepost_protocol::token::id_token::TokenResponse;
use gatepost_protocol::token::token_request::ClientCredentialsRequest;
use gatepost_protocol::words::reason::{Reason, TokenError, TokenErrorCode};

/// Issues an access token without user, ID token or refresh token.
pub fn handle(
    context: GrantContext<'_>,
    request: &ClientCredentialsRequest,
) -> Result<TokenResponse, Failure> {
    let GrantContext {
        app,
        client,
        snapshot,
        ..
    } = context;
    if !client.client.is_confidential() {
        return Err(TokenError::new(
            TokenErrorCode::UnauthorizedClient,
            Reason::PublicClientCredentials,
        )
        .into());
    }
    let scope = granted_scope(request.scope.as_ref(), &client.client, &snapshot.catalogue)?;
    let narrowed = narrow(
        &scope,
        &request.resources,
        &[],
        &snapshot.catalogue,
        app.issuer(),
    )?;
    let issue = Issue::of_client(context, &scope);
    let lasting = client.client.lifetimes.client_credentials_token;
    let issue = Issue {
        lifetime: lasting.unwrap_or(issue.lifetime),
        ..issue
    };
    issue.tokens(narrowed, Additions::default())
}
