//! `grant_type=authorization_code` (RFC 6749 §4.1.3): the one place where an authorization becomes a grant. The code is
//! opened, judged by the core, and the verdict enacted in one statement; a code that was used before shows there.

use super::GrantContext;
use super::issue::{self, Issue, IssueGrant, IssueUser};
use crate::app::failure::Failure;
use crate::keys::random;
use crate::protocol::authorize::authorization_code::{AuthorizationCode, Redemption, redeem};
use crate::protocol::token::access_token::StandsOn;
use crate::protocol::token::audience::{Narrowed, narrow_granted};
use crate::protocol::token::token_request::AuthorizationCodeRequest;
use crate::protocol::token::token_response::TokenResponse;
use crate::protocol::words::errors::{TokenError, TokenErrorCode};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::secret::SecretText;
use crate::registry::Snapshot;
use crate::store::audit_events::AuditEvent;
use crate::store::grants::{self, NewGrant};
use crate::store::users::UserRow;

use serde_json::Map;

/// Handles start with this, so that secret scanners find them.
pub const PREFIX: &str = "gpc_";

/// Redeems a code.
pub fn handle(context: GrantContext<'_>, request: &AuthorizationCodeRequest) -> Result<TokenResponse, Failure> {
    let GrantContext { app, client, now, .. } = context;
    let code = open(context, &request.code)?;
    // Its name is the statement's to say: redeemed, refused or replayed.
    let event = AuditEvent {
        source: Some(context.request.source),
        request_id: Some(&context.request.id),
        client_id: Some(&code.client_id),
        sub: Some(&code.user.subject),
        sid: code.user.sid.as_ref(),
        ..AuditEvent::default()
    };
    let snapshot = app.registry.snapshot();
    match redeem(&code, request, (&client.client, &snapshot.catalogue), now) {
        Redemption::Redeem => {}
        Redemption::Burn(reason) => {
            if !grants::burn(&app.store, &new_grant(&code), &event)? {
                app.note_replay(context.request, &code.client_id, code.grant);
            }
            return Err(invalid_grant(reason));
        }
        Redemption::ReplayOnly(reason) => {
            grants::revoke_replayed(&app.store, code.grant, &code.client_id, &event)?;
            return Err(invalid_grant(reason));
        }
        Redemption::Reject(reason) => return Err(invalid_grant(reason)),
    }
    // Before the code is spent, so that a resource that is not to be had leaves it as it was.
    let narrowed = narrow_granted(&code.scope, &request.resources, &code.resources, &snapshot.catalogue, app.issuer());
    let narrowed = match narrowed {
        Ok(narrowed) => narrowed,
        Err(error) => {
            // A code that was used before is a replay whatever comes with it.
            grants::revoke_replayed(&app.store, code.grant, &code.client_id, &event)?;
            return Err(error.into());
        }
    };
    match grants::redeem(&app.store, &new_grant(&code), &event)? {
        grants::Redemption::Issued(user) => answer(context, &snapshot, &code, narrowed, &user),
        grants::Redemption::Replayed => Err(invalid_grant(Reason::CodeReplayed)),
        grants::Redemption::ReplayedAgain => {
            app.note_replay(context.request, &code.client_id, code.grant);
            Err(invalid_grant(Reason::CodeReplayed))
        }
        grants::Redemption::NoLongerStands => Err(invalid_grant(Reason::GrantNoLongerStands)),
    }
}

fn open(context: GrantContext<'_>, code: &SecretText) -> Result<AuthorizationCode, Failure> {
    let opened = context.app.vault.authorization_codes.open_text(PREFIX, code.expose());
    opened.ok_or_else(|| invalid_grant(Reason::UnknownCode))
}

fn invalid_grant(reason: Reason) -> Failure {
    TokenError::new(TokenErrorCode::InvalidGrant, reason).into()
}

fn new_grant(code: &AuthorizationCode) -> NewGrant {
    NewGrant {
        id: code.grant,
        attempt: random::bytes(),
        client_id: code.client_id.clone(),
        sign_in: code.user.clone(),
        scope: code.scope.clone(),
        resources: code.resources.clone(),
        claims: code.claims.clone(),
        token_claims: Map::new(),
        epochs: code.epochs,
        issued_at: code.issued_at,
        expires_at: code.grant_expires_at,
    }
}

fn answer(
    context: GrantContext<'_>,
    snapshot: &Snapshot,
    code: &AuthorizationCode,
    narrowed: Narrowed,
    user: &UserRow,
) -> Result<TokenResponse, Failure> {
    let GrantContext { app, client, now, .. } = context;
    issue::tokens(
        app,
        snapshot,
        narrowed,
        &Issue {
            client: &client.client,
            scope: &code.scope,
            user: Some(IssueUser {
                sign_in: &code.user,
                user: &user.to_core(),
                grant: Some(IssueGrant::begun(code.grant, code.grant_expires_at, &code.scope, &client.client)),
                claims: &code.claims,
                nonce: code.nonce.as_deref(),
            }),
            stands_on: StandsOn::Grant(code.grant),
            now,
        },
    )
}
