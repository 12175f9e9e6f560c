//! `grant_type=refresh_token` (RFC 6749 §6).
//!
//! The usual request takes one statement. It reads nothing before: it moves the grant to the next
//! generation only if the request will pass. `within` says what the grant must have for that, and
//! the statement compares. `judge` then finds the same verdict in the row that came back.
//!
//! Otherwise nothing was moved: the request names a `scope` or a `resource`, or the grant is not
//! as `within` says, or what it stands on is gone. Then the grant is read, `judge` finds the
//! verdict, and another statement moves the grant. That one alone tells a repeated request, which
//! gets the same answer again, from a replay, which revokes the grant. Any other request that is
//! refused before the grant is moved leaves it as it is.

use super::{GrantContext, invalid_grant, issue};
use crate::app::App;
use crate::app::failure::Result;
use crate::keys::random;
use gatepost_protocol::token::id_token::TokenResponse;
use gatepost_protocol::token::refresh_token::{
    PresentedRefresh, RefreshHandle, RefreshVerdict, judge, within,
};
use gatepost_protocol::token::token_request::RefreshTokenRequest;
use gatepost_protocol::words::client::RefreshTokenUsage;
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::grants::{self, NewRefresh, Refreshed};

/// Answers a refresh token with new tokens.
pub fn handle(context: GrantContext<'_>, request: &RefreshTokenRequest) -> Result<TokenResponse> {
    let app = context.app;
    let sender = context.sender();
    let client = sender.client;
    let unknown = || invalid_grant(Reason::UnknownRefreshToken);
    let handle = refresh_handle(app, &request.refresh_token).ok_or_else(unknown)?;
    let client_id = &client.client_id;
    let new = NewRefresh {
        handle,
        client_id,
        attempt: random::bytes(),
        reuse: client.refresh_token_usage == RefreshTokenUsage::Reuse,
        retry_window: client.lifetimes.refresh_token_retry_window,
        bind_to: context.refresh_key(),
    };
    // The statement chooses the event's name: `refreshed`, `refresh_repeated` or
    // `refresh_token_replayed`.
    let event = context.request.caused(AuditEvent::default());
    let at_once = match within(request, sender) {
        Some(within) => grants::move_on(&app.store, &new, &within, &event)?,
        None => None,
    };
    let (mut grant, refreshed) = match at_once {
        Some((grant, refreshed)) => (grant, Some(refreshed)),
        None => (
            grants::find(&app.store, handle.grant, Some(client_id))?.ok_or_else(unknown)?,
            None,
        ),
    };
    let presented = PresentedRefresh { handle, request };
    let narrowed = match judge(&grant, presented, sender) {
        RefreshVerdict::Refresh(narrowed) => Ok(narrowed),
        RefreshVerdict::OldToken(narrowed) => narrowed,
        RefreshVerdict::Refuse(error) => {
            // A replay revoked it, perhaps, and its answer was lost before a standby heard of it:
            // whoever is refused now can count on that.
            if error.reason == Reason::GrantRevoked {
                let event = AuditEvent {
                    event: "grant_revoked",
                    ..context.request.caused(AuditEvent::of(&grant))
                };
                grants::revoke(&app.store, handle.grant, Some(client_id), &event)?;
            }
            return Err(error.into());
        }
    };
    let refreshed = match refreshed {
        Some(refreshed) => Some(refreshed),
        None => grants::refresh(&app.store, &new, &event)?,
    };
    let user = match refreshed {
        Some(Refreshed::Issued { generation, user }) => {
            grant.generation = generation;
            user
        }
        Some(Refreshed::Revoked) => return Err(invalid_grant(Reason::RefreshTokenReplayed)),
        Some(Refreshed::NoLongerStands) | None => {
            return Err(invalid_grant(Reason::GrantNoLongerStands));
        }
    };
    let narrowed = narrowed?;
    let scope = narrowed.scope.clone();
    // A refreshed ID token repeats the sign-in, not the request's nonce (OpenID Connect Core
    // §12.2).
    issue::of_grant(context, narrowed, &grant, &user, &scope, None)
}

/// Reads a refresh token. A forged one is refused here, before any query.
pub fn refresh_handle(app: &App, token: &SecretText) -> Option<RefreshHandle> {
    let (handle, tag) = RefreshHandle::parse(token.expose())?;
    app.vault
        .refresh_tokens
        .verify(&[&handle.encode()], &tag)
        .then_some(handle)
}
