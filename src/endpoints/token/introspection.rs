//! `POST /connect/introspect` (RFC 7662): whether a token is alive, and what it says, for whom it is meant.

use serde_json::{Value, json};

use super::client_authentication::{Introspector, authenticate_introspector};
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers;
use crate::endpoints::forms::{presented_token, refuse_presented_token_in_query, require_form};
use crate::endpoints::token::grants::presented_token::{PresentedToken, open, standing};
use crate::http::{Request, Response};
use crate::protocol::token::access_token::AccessToken;
use crate::protocol::token::introspection::{Caller, access_token_response, refresh_token_response, seen_by};
use crate::protocol::token::refresh_token::{RefreshHandle, ends_at, stands};
use crate::protocol::words::liveness;
use crate::protocol::words::parameters::Parameters;
use crate::registry::RegisteredClient;
use crate::store::users::UserRow;
use crate::store::{grants, tokens};

/// Answers about a token.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    require_form(request, 415)?;
    let parameters = Parameters::parse(&request.body).map_err(Failure::bad_request)?;
    refuse_presented_token_in_query(request)?;
    let introspector = authenticate_introspector(app, request, &parameters, app.now())?;
    let answer = match (open(app, &presented_token(&parameters)?), &introspector) {
        (Some(PresentedToken::Access(token)), _) => of_access_token(app, &introspector, &token)?,
        (Some(PresentedToken::Refresh(handle)), Introspector::Client(client)) => of_refresh_token(app, client, handle)?,
        (Some(PresentedToken::Refresh(_)), Introspector::Resource(_)) | (None, _) => None,
    };
    let mut response = answers::json(200, &answer.unwrap_or_else(|| json!({ "active": false })));
    response.note.client_id = Some(match introspector {
        Introspector::Client(client) => client.client.client_id.to_string(),
        Introspector::Resource(name) => name,
    });
    Ok(response)
}

/// `None`: not active, as far as the caller is concerned.
fn of_access_token(app: &App, introspector: &Introspector, token: &AccessToken) -> Result<Option<Value>, Failure> {
    let caller = match introspector {
        Introspector::Client(client) => Caller::Client(&client.client.client_id),
        Introspector::Resource(name) => Caller::Resource(name),
    };
    let snapshot = app.registry.snapshot();
    let Some(seen) = seen_by(caller, token, &snapshot.catalogue) else { return Ok(None) };
    let (stands, user) = standing(app, token)?;
    if !stands {
        return Ok(None);
    }
    let Some(client) = app.registry.client(&token.client_id)? else { return Ok(None) };
    let subject = (&client.client, user.as_ref());
    Ok(Some(access_token_response(&seen, subject, &snapshot.catalogue, app.issuer()).into()))
}

fn of_refresh_token(app: &App, client: &RegisteredClient, handle: RefreshHandle) -> Result<Option<Value>, Failure> {
    let (client, now) = (&client.client, app.now());
    let Some(grant) = grants::find(&app.store, handle.grant, Some(&client.client_id))? else { return Ok(None) };
    // What the grant stands on, a token for all of it would stand on.
    let whole = grant.as_access_token();
    let standing = tokens::find(&app.store, &whole)?;
    let user = standing.user.as_ref().map(UserRow::to_core);
    let usable = stands(&grant, handle, client, &app.registry.snapshot().catalogue, now)
        && liveness::stands(&whole, user.as_ref(), &standing.facts, now);
    Ok(usable.then(|| refresh_token_response(&grant, ends_at(&grant, client))))
}
