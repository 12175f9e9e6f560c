//! The access token that a program got for itself, without a user: what SCIM and the registration
//! are asked with.

use std::sync::Arc;

use gatepost_protocol::token::introspection::{Caller, seen_by};
use gatepost_protocol::token::userinfo::{self, BearerFailure, SentToken, TokenScheme};
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_server::app::App;
use gatepost_server::app::failure::{Failure, Result};
use gatepost_server::endpoints::token::dpop::require_holder;
use gatepost_server::endpoints::token::introspection;
use gatepost_server::http::Request;
use gatepost_server::registry::RegisteredClient;

/// Who asks, and for what.
pub struct ClientToken {
    pub client: Arc<RegisteredClient>,
    /// What of the token's scope the client is registered with now.
    pub scope: ScopeSet,
}

/// Whether the request has a token of ours, not over, for this resource. Asks no database.
pub fn seems_for(app: &App, request: &Request, resource: &str) -> bool {
    let Ok(sent) = sent(request) else {
        return false;
    };
    let token = introspection::access_token(app, &sent.token);
    let token = token.filter(|token| token.user.is_none() && !token.is_expired(app.now()));
    let snapshot = app.registry.snapshot();
    token.is_some_and(|token| {
        seen_by(Caller::Resource(resource), &token, &snapshot.catalogue).is_some()
    })
}

fn sent(request: &Request) -> Result<SentToken, BearerFailure> {
    let query = request.query_parameters();
    let query = query.map_err(BearerFailure::InvalidRequest)?;
    let headers: Vec<&str> = request.headers.all("authorization").collect();
    userinfo::access_token(&headers, query, None)
}

/// Judges the access token as introspection does. It must be for this resource, and have one of
/// these scopes.
pub fn admitted(
    app: &App,
    request: &Request,
    resource: &str,
    scopes: &[&'static str],
) -> Result<ClientToken> {
    let wanted = scopes.first().copied().unwrap_or_default();
    let unadmitted = |scheme, failure| Failure::Unadmitted {
        failure,
        scheme,
        scope: wanted,
    };
    let sent = sent(request).map_err(|failure| unadmitted(TokenScheme::Bearer, failure))?;
    let refused = |failure| unadmitted(sent.scheme, failure);
    let unknown = || refused(BearerFailure::InvalidToken);
    let token = introspection::access_token(app, &sent.token).ok_or_else(unknown)?;
    app.require_fresh_registry()?;
    let snapshot = app.registry.snapshot();
    let seen = seen_by(Caller::Resource(resource), &token, &snapshot.catalogue);
    let seen = seen.ok_or_else(unknown)?;
    require_holder(app, request, &sent, &token, refused)?;
    let (stands, _) = introspection::standing(app, &token)?;
    let client = app.registry.client(&token.client_id)?;
    let client = client.filter(|_| stands).ok_or_else(unknown)?;
    // A scope that was taken away from the client is gone from the tokens it has.
    let registered = &client.client.scope;
    let scope = seen.scope.retain(|name| registered.contains(name));
    let has_scope = scopes.iter().any(|wanted| scope.contains(wanted));
    if token.user.is_some() || !has_scope {
        return Err(refused(BearerFailure::NotOfProgram));
    }
    Ok(ClientToken { client, scope })
}
