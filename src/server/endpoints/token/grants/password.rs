//! `grant_type=password` (RFC 6749 §4.3): the client brings user name and password. Only clients
//! that are registered for this grant may use it. Wrong passwords count together with those of the
//! sign-in page.

use super::{GrantContext, begun, invalid_grant, issue};
use crate::app::failure::Result;
use crate::endpoints::login::password::{self, Attempt, PasswordOutcome};
use crate::keys::random;
use gatepost_protocol::token::audience::{narrow, requested_scope};
use gatepost_protocol::token::grant::{Given, Grant};
use gatepost_protocol::token::id_token::TokenResponse;
use gatepost_protocol::token::token_request::PasswordRequest;
use gatepost_protocol::words::acr_values::tenant_for_password;
use gatepost_protocol::words::legacy_flow::LegacyFlow;
use gatepost_protocol::words::reason::{Reason, invalid_request};
use gatepost_protocol::words::session::{PASSWORD, SignIn};
use gatepost_protocol::words::strength::Strength;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::grants;
use gatepost_store::users::CurrentUser;

/// Issues tokens for the right password. Unknown, wrong, disabled and throttled get the same answer
/// in the same time.
pub fn handle(context: GrantContext<'_>, request: &PasswordRequest) -> Result<TokenResponse> {
    let GrantContext {
        app,
        client,
        snapshot,
        ..
    } = context;
    let tenant = tenant_for_password(
        request.acr_values.as_deref(),
        &client.client,
        &snapshot.catalogue,
    )
    .map_err(invalid_request)?;
    let scope = requested_scope(request.scope.as_ref(), &client.client, &snapshot.catalogue)?;
    let narrowed = narrow(
        &scope,
        &request.resources,
        &[],
        &snapshot.catalogue,
        app.issuer(),
    )?;
    let attempt = Attempt {
        tenant: tenant.as_ref(),
        username: &request.username,
        password: &request.password,
        request: context.request,
        client: Some(&client.client),
    };
    let found = try_password(context, &attempt)?;
    // Both refusals tell something about the user, so the password must be right first.
    if found.user.strongest_acr > Strength::SignedIn {
        return Err(invalid_grant(Reason::PasswordAlone));
    }
    if !client.client.takes(Strength::SignedIn.as_str()) {
        return Err(invalid_grant(Reason::AcrBelowMinimum));
    }
    let given = Given {
        user: SignIn::without_session(
            &found.user.clone().into_core(),
            vec![String::from(PASSWORD)],
            context.now,
        ),
        scope,
        epochs: found.epochs(client.epoch),
        session_ends_at: None,
    };
    let grant = Grant {
        resources: request.resources.clone(),
        ..begun(context, given)
    };
    let event = AuditEvent {
        event: "password_granted",
        ..context.request.caused(AuditEvent::of(&grant))
    };
    let user = grants::begin(&app.store, &grant, random::bytes(), &event)?;
    let user = user.ok_or_else(|| invalid_grant(Reason::GrantNoLongerStands))?;
    app.note_flow(&client.client.client_id, LegacyFlow::Password);
    issue::of_grant(context, narrowed, &grant, &user, &grant.scope, None)
}

fn try_password(context: GrantContext<'_>, attempt: &Attempt<'_>) -> Result<CurrentUser> {
    let app = context.app;
    match password::attempt(app, attempt)? {
        PasswordOutcome::Accepted(found) => Ok(*found),
        PasswordOutcome::Wrong { user } => {
            let client_id = Some(&context.client.client.client_id);
            password::record_failure(app, context.request, client_id, user.as_ref());
            Err(invalid_grant(Reason::PasswordRefused))
        }
        PasswordOutcome::Throttled(_) => {
            app.note_turned_away(context.request);
            password::cost_as_much(app, attempt)?;
            Err(invalid_grant(Reason::PasswordThrottled))
        }
    }
}
