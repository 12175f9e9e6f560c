//! `POST /connect/revocation` (RFC 7009). What is unknown, foreign or over already answers as what was revoked just now, so
//! that nobody learns anything by asking. 200 means that it is stored.

use super::client_authentication::authenticate;
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::forms::{presented_token, refuse_presented_token_in_query, require_form};
use crate::endpoints::token::grants::presented_token::{PresentedToken, open};
use crate::http::{Request, Response};
use crate::protocol::token::access_token::AccessToken;
use crate::protocol::token::refresh_token::RefreshHandle;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::parameters::Parameters;
use crate::store::audit_events::AuditEvent;
use crate::store::{StoreError, grants, tokens};

/// Revokes a token of the client that asks.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    require_form(request, 415)?;
    let parameters = Parameters::parse(&request.body).map_err(Failure::bad_request)?;
    refuse_presented_token_in_query(request)?;
    let client = authenticate(app, request, &parameters, app.now())?;
    let client_id = &client.client.client_id;
    revoke(app, request, client_id, &parameters).map_err(|failure| failure.about(client_id, None))?;
    let mut response = Response::empty(200).header("Cache-Control", "no-store").header("Pragma", "no-cache");
    response.note.client_id = Some(client_id.to_string());
    Ok(response)
}

fn revoke(app: &App, request: &Request, client_id: &ClientId, parameters: &Parameters) -> Result<(), Failure> {
    let revoked = match open(app, &presented_token(parameters)?) {
        Some(PresentedToken::Refresh(handle)) => revoke_grant(app, request, client_id, handle),
        Some(PresentedToken::Access(token)) if token.client_id == *client_id => revoke_token(app, request, &token),
        Some(PresentedToken::Access(_)) | None => Ok(()),
    };
    revoked.map_err(Failure::NotRevoked)
}

/// Any generation stands for the grant, and its access tokens go with it.
fn revoke_grant(app: &App, request: &Request, client_id: &ClientId, handle: RefreshHandle) -> Result<(), StoreError> {
    let Some(grant) = grants::find(&app.store, handle.grant, Some(client_id))? else { return Ok(()) };
    let event = AuditEvent {
        event: "grant_revoked",
        source: Some(request.source),
        request_id: Some(&request.id),
        ..AuditEvent::of(&grant)
    };
    grants::revoke(&app.store, handle.grant, Some(client_id), &event).map(drop)
}

/// This token alone. One that has run out is dead already, and the partition of its day may be gone.
fn revoke_token(app: &App, request: &Request, token: &AccessToken) -> Result<(), StoreError> {
    if token.is_expired(app.now()) {
        return Ok(());
    }
    let user = token.user.as_ref();
    let event = AuditEvent {
        event: "access_token_revoked",
        client_id: Some(&token.client_id),
        sub: user.map(|user| &user.subject),
        sid: user.and_then(|user| user.sid.as_ref()),
        ..event(request)
    };
    tokens::revoke(&app.store, token.expires_at.day(), &token.jti.encode(), &event)
}

fn event(request: &Request) -> AuditEvent<'_> {
    AuditEvent { source: Some(request.source), request_id: Some(&request.id), ..AuditEvent::default() }
}
