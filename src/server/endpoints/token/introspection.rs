//! `POST /connect/introspect` (RFC 7662): tells a client or a resource whether a token is active,
//! and what it says. And the revocation of tokens (RFC 7009).

use serde_json::json;

use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::endpoints::answers;
use crate::endpoints::forms::{presented_token, refuse_presented_token_in_query, require_form};
use crate::endpoints::token::client_authentication::{
    Introspector, authenticate, authenticate_introspector,
};
use crate::endpoints::token::grants::issue::ACCESS_TOKEN_PREFIX;
use crate::endpoints::token::grants::refresh_token::refresh_handle;
use crate::http::{Request, Response};
use crate::registry::RegisteredClient;
use gatepost_protocol::keys::jwt::{ACCESS_TOKEN_TYP, ID_TOKEN_TYP, UnverifiedJws};
use gatepost_protocol::token::access_token::AccessToken;
use gatepost_protocol::token::introspection::{
    Caller, access_token_response, refresh_token_response, seen_by,
};
use gatepost_protocol::token::liveness;
use gatepost_protocol::token::refresh_token::{self, RefreshHandle, ends_at, stands};
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::session::User;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::{StoreError, grants, tokens};

/// Answers about a token.
pub fn handle(app: &App, request: &Request) -> Result<Response> {
    let parameters = form(request)?;
    let introspector = authenticate_introspector(app, request, &parameters, app.now())?;
    let about = about(app, &introspector, &presented_token(&parameters)?)?;
    let mut response = about.unwrap_or_else(|| answers::json(200, &json!({ "active": false })));
    response.note.client_id = Some(match introspector {
        Introspector::Client(client) => client.client.client_id.to_string(),
        Introspector::Resource(name) => name,
    });
    Ok(response)
}

fn form(request: &Request) -> Result<Parameters> {
    require_form(request, 415)?;
    let parameters = Parameters::parse(&request.body)?;
    refuse_presented_token_in_query(request)?;
    Ok(parameters)
}

/// `None` when the token is not active, or is none of the caller's business.
fn about(app: &App, introspector: &Introspector, token: &SecretText) -> Result<Option<Response>> {
    match (open(app, token), introspector) {
        (Some(PresentedToken::Access(token)), _) => of_access_token(app, introspector, &token),
        (Some(PresentedToken::Refresh(handle)), Introspector::Client(client)) => {
            of_refresh_token(app, client, handle)
        }
        (Some(PresentedToken::Refresh(_)), Introspector::Resource(_)) | (None, _) => Ok(None),
    }
}

fn of_access_token(
    app: &App,
    introspector: &Introspector,
    token: &AccessToken,
) -> Result<Option<Response>> {
    let caller = match introspector {
        Introspector::Client(client) => Caller::Client(&client.client.client_id),
        Introspector::Resource(name) => Caller::Resource(name),
    };
    let snapshot = app.registry.snapshot();
    let Some(seen) = seen_by(caller, token, &snapshot.catalogue) else {
        return Ok(None);
    };
    let (stands, user) = standing(app, token)?;
    if !stands {
        return Ok(None);
    }
    let Some(client) = app.registry.client(&token.client_id)? else {
        return Ok(None);
    };
    let answer = access_token_response(
        &seen,
        &client.client,
        user.as_ref(),
        &snapshot.catalogue,
        app.issuer(),
    );
    Ok(Some(answers::json(200, &answer)))
}

fn of_refresh_token(
    app: &App,
    client: &RegisteredClient,
    handle: RefreshHandle,
) -> Result<Option<Response>> {
    let client = &client.client;
    let Some(grant) = grants::find(&app.store, handle.grant, Some(&client.client_id))? else {
        return Ok(None);
    };
    let standing = tokens::find(&app.store, &grant.as_access_token())?;
    let usable = stands(
        &grant,
        handle,
        client,
        &app.registry.snapshot().catalogue,
        standing.user.as_ref(),
        &standing.facts,
        app.now(),
    );
    let end = ends_at(&grant, client, standing.facts.session);
    Ok(usable.then(|| answers::json(200, &refresh_token_response(&grant, end))))
}

/// Revokes a token of the client that asks.
pub fn revoke_presented(app: &App, request: &Request) -> Result<Response> {
    let parameters = form(request)?;
    let client = authenticate(app, request, &parameters, app.now())?;
    let client_id = &client.client.client_id;
    revoke(app, request, client_id, &parameters)
        .map_err(|failure| failure.about(client_id, None))?;
    // RFC 7009 §2.2 asks for no content; some libraries cannot read an empty answer.
    Ok(answers::json(200, &json!({})).about(client_id))
}

fn revoke(app: &App, request: &Request, client_id: &ClientId, parameters: &Parameters) -> Result {
    let revoked = match open(app, &presented_token(parameters)?) {
        Some(PresentedToken::Refresh(handle)) => revoke_grant(app, request, client_id, handle),
        Some(PresentedToken::Access(token)) if token.client_id == *client_id => {
            revoke_token(app, request, &token)
        }
        Some(PresentedToken::Access(_)) | None => Ok(()),
    };
    revoked.map_err(Failure::NotStored)
}

/// A refresh token of any generation revokes its grant, and the grant's access tokens with it.
fn revoke_grant(
    app: &App,
    request: &Request,
    client_id: &ClientId,
    handle: RefreshHandle,
) -> Result<(), StoreError> {
    let Some(grant) = grants::find(&app.store, handle.grant, Some(client_id))? else {
        return Ok(());
    };
    let event = AuditEvent {
        event: "grant_revoked",
        ..request.caused(AuditEvent::of(&grant))
    };
    grants::revoke(&app.store, handle.grant, Some(client_id), &event).map(drop)
}

/// Revokes this token alone. An expired one needs no revocation, and the partition for its day may
/// be gone.
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
        ..request.caused(AuditEvent::default())
    };
    let jti = token.jti.encode();
    let revoke = if token.is_lasting() {
        tokens::revoke_lasting
    } else {
        tokens::revoke
    };
    revoke(&app.store, token.expires_at.day(), &jti, &event).map(drop)
}

pub enum PresentedToken {
    Access(Box<AccessToken>),
    /// A refresh token of any generation.
    Refresh(RefreshHandle),
}

/// Reads a token. Its form says of which kind it is.
pub fn open(app: &App, token: &SecretText) -> Option<PresentedToken> {
    if token.expose().starts_with(refresh_token::PREFIX) {
        return refresh_handle(app, token).map(PresentedToken::Refresh);
    }
    access_token(app, token)
        .map(Box::new)
        .map(PresentedToken::Access)
}

pub fn access_token(app: &App, token: &SecretText) -> Option<AccessToken> {
    if token.expose().starts_with(ACCESS_TOKEN_PREFIX) {
        let sealer = &app.vault.access_tokens;
        let opened = sealer.open_bound(ACCESS_TOKEN_PREFIX, token.expose())?;
        return Some(AccessToken {
            confirmation: opened.bound_to,
            ..opened.value
        });
    }
    let jws = UnverifiedJws::parse(token.expose())?;
    // The `typ` of an ID token may be that of an access token. It has no `client_id`, so its claims
    // are refused below.
    let is_ours = [Some(ACCESS_TOKEN_TYP), Some(ID_TOKEN_TYP)].contains(&jws.typ.as_deref())
        && app.registry.snapshot().keys.verifies(&jws);
    if !is_ours {
        return None;
    }
    // The signature was verified just above, so we wrote these claims.
    let claims = jws.unverified_claims()?;
    AccessToken::from_verified_claims(&claims, app.issuer())
}

/// Whether a token and everything it stands on are alive, with the tokens that it was exchanged
/// from; and its user.
pub fn standing(app: &App, token: &AccessToken) -> Result<(bool, Option<User>)> {
    let (stands, user) = stands_alone(app, token)?;
    Ok((stands && origins_stand(app, token)?, user))
}

/// The same, without the tokens that it was exchanged from.
fn stands_alone(app: &App, token: &AccessToken) -> Result<(bool, Option<User>)> {
    let client = app.registry.client(&token.client_id)?;
    let client = client.as_ref().map(|client| &client.client);
    let found = tokens::find(&app.store, token)?;
    let stands = liveness::stands(token, client, found.user.as_ref(), &found.facts, app.now());
    Ok((stands, found.user))
}

/// Whether the tokens that this one was exchanged from are alive. True if it was not exchanged.
pub fn origins_stand(app: &App, token: &AccessToken) -> Result<bool> {
    let Some(delegation) = &token.delegation else {
        return Ok(true);
    };
    for origin in delegation.origins_of(token) {
        let (stands, _) = stands_alone(app, &origin)?;
        if !stands {
            return Ok(false);
        }
    }
    Ok(true)
}
