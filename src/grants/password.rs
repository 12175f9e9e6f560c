//! `grant_type=password` (RFC 6749 §4.3): the client itself brings user name and password. For clients that are
//! registered for it alone; whoever guesses here meets the login page's own limits.

use super::GrantContext;
use super::user_grant::{self, UserGrant};
use crate::app::failure::Failure;
use crate::app::password_sign_in::{self, Attempt, Outcome};
use crate::protocol::acr_values::{SIGNED_IN, tenant_for_password};
use crate::protocol::audience::narrow;
use crate::protocol::errors::{TokenError, TokenErrorCode};
use crate::protocol::instant::Instant;
use crate::protocol::reason::Reason;
use crate::protocol::session::PASSWORD;
use crate::protocol::token_request::PasswordRequest;
use crate::protocol::token_response::TokenResponse;
use crate::protocol::token_subject::TokenSubject;
use crate::protocol::user_scope::requested_scope;
use crate::store::users::{CurrentUser, UserRow};

/// Issues tokens to whoever knows the password. Unknown, wrong, disabled and throttled are told alike, in like time.
pub fn handle(context: GrantContext<'_>, request: &PasswordRequest) -> Result<TokenResponse, Failure> {
    let GrantContext { app, client, .. } = context;
    let snapshot = app.registry.snapshot();
    let tenant = tenant_for_password(request.acr_values.as_deref(), &client.client, &snapshot.catalogue)
        .map_err(|reason| TokenError::new(TokenErrorCode::InvalidRequest, reason))?;
    let scope = requested_scope(request.scope.as_ref(), &client.client, &snapshot.catalogue)?;
    let narrowed = narrow(&scope, &request.resources, &[], &snapshot.catalogue, app.issuer())?;
    let attempt = Attempt {
        tenant: tenant.as_ref(),
        username: &request.username,
        password: &request.password,
        source: context.request.source,
        client_id: Some(&client.client.client_id),
    };
    let found = try_password(context, &attempt)?;
    let grant = UserGrant {
        sign_in: sign_in(&found.user, context.now),
        scope,
        resources: request.resources.clone(),
        epochs: found.epochs(client.epoch),
        event: "password_granted",
    };
    let issued = user_grant::begin(context, &snapshot, narrowed, &grant)?;
    issued.ok_or_else(|| refused(Reason::GrantNoLongerStands))
}

fn try_password(context: GrantContext<'_>, attempt: &Attempt<'_>) -> Result<CurrentUser, Failure> {
    let app = context.app;
    match password_sign_in::attempt(app, attempt)? {
        Outcome::Accepted(found) => Ok(*found),
        Outcome::Wrong => {
            password_sign_in::record_failure(app, context.request, Some(&context.client.client.client_id));
            Err(refused(Reason::PasswordRefused))
        }
        Outcome::Throttled(_) => {
            app.note_turned_away(context.request);
            password_sign_in::cost_as_much(app, attempt.password)?;
            Err(refused(Reason::PasswordThrottled))
        }
    }
}

fn sign_in(user: &UserRow, auth_time: Instant) -> TokenSubject {
    TokenSubject {
        subject: user.sub.clone(),
        sid: None,
        tenant: user.tenant.clone(),
        identity_provider: None,
        auth_time,
        amr: vec![String::from(PASSWORD)],
        acr: String::from(SIGNED_IN),
    }
}

fn refused(reason: Reason) -> Failure {
    TokenError::new(TokenErrorCode::InvalidGrant, reason).into()
}
