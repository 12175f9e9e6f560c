//! `grant_type=password` (RFC 6749 §4.3): the client itself brings user name and password. For clients that are
//! registered for it alone; whoever guesses here meets the login page's own limits.

use super::GrantContext;
use super::user_grant;
use crate::app::failure::Failure;
use crate::endpoints::login::password::{self, Attempt, Outcome};
use crate::protocol::token::audience::narrow;
use crate::protocol::token::token_request::PasswordRequest;
use crate::protocol::token::token_response::TokenResponse;
use crate::protocol::words::acr_values::{SIGNED_IN, tenant_for_password};
use crate::protocol::words::errors::{TokenError, TokenErrorCode};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::session::{PASSWORD, SignIn};
use crate::protocol::words::user_scope::requested_scope;
use crate::store::audit_events::AuditEvent;
use crate::store::grants;
use crate::store::users::CurrentUser;

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
    let sign_in = SignIn {
        subject: found.user.sub.clone(),
        sid: None,
        tenant: found.user.tenant.clone(),
        identity_provider: None,
        auth_time: context.now,
        amr: vec![String::from(PASSWORD)],
        acr: String::from(SIGNED_IN),
    };
    let new = user_grant::new_grant(context, sign_in, scope, &request.resources, found.epochs(client.epoch));
    let event = AuditEvent {
        event: "password_granted",
        source: Some(context.request.source),
        request_id: Some(&context.request.id),
        ..AuditEvent::default()
    };
    let user = grants::begin(&app.store, &new, &event)?.ok_or_else(|| refused(Reason::GrantNoLongerStands))?;
    user_grant::answer(context, &snapshot, narrowed, (&new.sign_in, &new.scope), (new.id, new.expires_at), &user)
}

fn try_password(context: GrantContext<'_>, attempt: &Attempt<'_>) -> Result<CurrentUser, Failure> {
    let app = context.app;
    match password::attempt(app, attempt)? {
        Outcome::Accepted(found) => Ok(*found),
        Outcome::Wrong => {
            password::record_failure(app, context.request, Some(&context.client.client.client_id));
            Err(refused(Reason::PasswordRefused))
        }
        Outcome::Throttled(_) => {
            app.note_turned_away(context.request);
            password::cost_as_much(app, attempt.password)?;
            Err(refused(Reason::PasswordThrottled))
        }
    }
}

fn refused(reason: Reason) -> Failure {
    TokenError::new(TokenErrorCode::InvalidGrant, reason).into()
}
