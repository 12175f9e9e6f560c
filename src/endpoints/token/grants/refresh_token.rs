//! `grant_type=refresh_token` (RFC 6749 §6): the grant is read, the request judged against it, and the grant moved on by
//! one statement, which also tells a repeated request from a replay.

use super::GrantContext;
use super::issue::{self, Additions, Issue, IssueGrant, IssueUser};
use super::presented_token;
use crate::app::failure::Failure;
use crate::keys::random;
use crate::protocol::token::access_token::StandsOn;
use crate::protocol::token::audience::Narrowed;
use crate::protocol::token::refresh_token::{RefreshHandle, RefreshVerdict, judge};
use crate::protocol::token::token_request::RefreshTokenRequest;
use crate::protocol::token::token_response::TokenResponse;
use crate::protocol::words::errors::{TokenError, TokenErrorCode};
use crate::protocol::words::grant::Grant;
use crate::protocol::words::reason::Reason;
use crate::registry::Snapshot;
use crate::store::audit_events::AuditEvent;
use crate::store::grants;
use crate::store::grants::{NewRefresh, Refreshed};
use crate::store::users::UserRow;

/// Refreshes.
pub fn handle(context: GrantContext<'_>, request: &RefreshTokenRequest) -> Result<TokenResponse, Failure> {
    let GrantContext { app, client, now, .. } = context;
    let unknown = || invalid_grant(Reason::UnknownRefreshToken);
    let handle = presented_token::refresh_handle(app, &request.refresh_token).ok_or_else(unknown)?;
    let grant = grants::find(&app.store, handle.grant, Some(&client.client.client_id))?.ok_or_else(unknown)?;
    let snapshot = app.registry.snapshot();
    let verdict = judge(&grant, handle, request, &client.client, (&snapshot.catalogue, app.issuer()), now);
    match verdict {
        RefreshVerdict::Refresh(narrowed) => {
            let (generation, user) = refresh(context, handle, &grant)?;
            answer(context, &snapshot, &grant, narrowed, (generation, &user))
        }
        RefreshVerdict::OldToken(narrowed) => {
            let (generation, user) = refresh(context, handle, &grant)?;
            answer(context, &snapshot, &grant, narrowed?, (generation, &user))
        }
        RefreshVerdict::Refuse(error) => Err(error.into()),
    }
}

/// The generation to hand out, and the user as they are now.
fn refresh(context: GrantContext<'_>, handle: RefreshHandle, grant: &Grant) -> Result<(i32, UserRow), Failure> {
    let GrantContext { app, request, client, .. } = context;
    let new = NewRefresh {
        handle,
        client_id: &client.client.client_id,
        attempt: random::bytes(),
        usage: client.client.refresh_token_usage,
        retry_window: client.client.lifetimes.refresh_token_retry_window,
    };
    // Its name is the statement's to say: refreshed, repeated or replayed.
    let event = AuditEvent { source: Some(request.source), request_id: Some(&request.id), ..AuditEvent::of(grant) };
    match grants::refresh(&app.store, &new, &event)? {
        Refreshed::Issued { generation, user } => Ok((generation, *user)),
        Refreshed::Revoked => Err(invalid_grant(Reason::RefreshTokenReplayed)),
        Refreshed::NoLongerStands => Err(invalid_grant(Reason::GrantNoLongerStands)),
    }
}

fn invalid_grant(reason: Reason) -> Failure {
    TokenError::new(TokenErrorCode::InvalidGrant, reason).into()
}

fn answer(
    context: GrantContext<'_>,
    snapshot: &Snapshot,
    grant: &Grant,
    narrowed: Narrowed,
    (generation, user): (i32, &UserRow),
) -> Result<TokenResponse, Failure> {
    let GrantContext { app, client, now, .. } = context;
    let scope = narrowed.scope.clone();
    issue::tokens_with(
        app,
        snapshot,
        narrowed,
        &Issue {
            client: &client.client,
            scope: &scope,
            user: Some(IssueUser {
                sign_in: &grant.user,
                user: &user.to_core(),
                grant: Some(IssueGrant {
                    id: grant.id,
                    expires_at: grant.expires_at,
                    refresh_generation: Some(generation),
                }),
                claims: &grant.claims,
                // A refreshed ID token repeats the sign-in, not the request (OpenID Connect Core §12.2).
                nonce: None,
            }),
            stands_on: StandsOn::Grant(grant.id),
            now,
        },
        Additions { claims: grant.token_claims.clone(), ..Additions::default() },
    )
}
