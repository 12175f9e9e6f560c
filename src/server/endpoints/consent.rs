//! What a client, or a device of a client, asks for, and what the user makes of it: `/consent`, and
//! the question of `/device`.

use serde_json::json;

use crate::app::failure::{Failure, Result};
use crate::endpoints::answers;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::transaction::{
    self, AuthorizationTransaction, InSession, RequestContext, Taken, unknown_action,
};
use crate::http::Response;
use crate::pages;
use gatepost_protocol::authorize::interaction::{Step, may_remember, narrow};
use gatepost_protocol::login::bound_session::ConsentInTime;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::AuthorizeErrorCode;
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::consents::{self, GivenConsent};

/// Takes the form of either page. A form that was drawn for another request or session is no
/// answer: the page is shown again.
pub fn take(context: RequestContext<'_>) -> Result<Taken> {
    let Some(context) = context.in_session() else {
        return Ok(Taken::Step(Step::Arrival));
    };
    let form = forms::read_post(context.app, context.request)?;
    if !counts(context, &form)? {
        return Ok(Taken::Step(Step::Arrival));
    }
    match form.single("decision")? {
        Some("allow") => allow(context, &form),
        Some("deny") if context.transaction.is_of_device() => Ok(Taken::DeviceDenied),
        Some("deny") => context.within(Some(context.current_session)).cancel(),
        Some("another") => Ok(Taken::OtherWay {
            someone_else: true,
            provider: None,
        }),
        _ => Err(unknown_action()),
    }
}

/// Whether the client takes sessions with a key alone, but right after a sign-in.
pub fn requires_bound_session(transaction: &AuthorizationTransaction) -> bool {
    transaction
        .registration()
        .is_some_and(|client| client.require_bound_session)
}

/// Whether the form was drawn for this request and this session; and in time, where the client
/// requires bound sessions.
fn counts(context: InSession<'_>, form: &Parameters) -> Result<bool> {
    let InSession {
        app,
        transaction,
        current_session,
        ..
    } = context;
    if !requires_bound_session(transaction) {
        return Ok(context.matches(Form::Consent, form));
    }
    let token = form.bounded("form_token", parameters::HANDLE)?;
    let vault = &app.vault.bound_sessions;
    let drawn: Option<ConsentInTime> =
        token.and_then(|token| vault.open_text(ConsentInTime::PREFIX, token));
    let is_bound = current_session.is_bound();
    Ok(drawn.is_some_and(|drawn| drawn.counts(context.tie(), is_bound, app.now())))
}

fn allow(context: InSession<'_>, form: &Parameters) -> Result<Taken> {
    let transaction = context.transaction;
    let ticked: Vec<&str> = form.all("scope").filter(|name| !name.is_empty()).collect();
    let wants_it_remembered = form.single("remember")?.is_some();
    let granted = match narrow(
        &transaction.request.scope,
        &ticked,
        &transaction.snapshot.catalogue,
    ) {
        Ok(granted) => granted,
        // Nothing is ticked: the client is told.
        Err(refusal) if refusal.code == AuthorizeErrorCode::AccessDenied => {
            return Err(transaction.refuse(refusal));
        }
        // The page does not show that scope.
        Err(refusal) => return Err(Failure::bad_request(refusal.reason)),
    };
    if let Some(client) = transaction.registration()
        && wants_it_remembered
        && may_remember(&transaction.request, Some(client))
    {
        remember(context, client, &granted)?;
    }
    Ok(Taken::Step(Step::AfterConsent { granted }))
}

/// Remembers what the user allowed. What they allowed before stays allowed, unless it has lapsed,
/// is asked about now, or is withdrawn meanwhile.
fn remember(context: InSession<'_>, client: &Client, granted: &ScopeSet) -> Result {
    let InSession {
        app,
        transaction,
        current_session,
        ..
    } = context;
    let lifetime = client.consent_lifetime;
    let now = app.now();
    let before = transaction
        .known_consent(app, current_session)?
        .filter(|row| !row.has_lapsed(now) && row.consent.stands(lifetime, now));
    let given = GivenConsent {
        sub: &current_session.user.sub,
        client_id: &client.client_id,
        asked_scopes: &transaction.request.scope,
        scopes: granted,
        claims: &Vec::from_iter(transaction.request.claims.names()),
        kept_epoch: before.map(|row| row.epoch),
        expires_at: lifetime.map(|lifetime| now.plus(lifetime)),
        is_required: client.require_consent == Some(true),
    };
    let event = AuditEvent {
        detail: json!({"scope": granted.to_string()}),
        ..context.own_event("consent_given")
    };
    Ok(consents::give(&app.store, &given, &event)?)
}

/// Draws the page that asks.
pub fn draw(context: InSession<'_>, may_remember: bool, drawn_again: bool) -> Result<Response> {
    let transaction = context.transaction;
    // The account page needs no consent.
    let client = transaction
        .registration()
        .ok_or_else(transaction::invalid)?;
    let page = if transaction.is_of_device() {
        "/device"
    } else {
        "/consent"
    };
    let asked = pages::consent::Asked {
        request: &transaction.request,
        client,
        catalogue: &transaction.snapshot.catalogue,
        account: context.current_session.account(),
        may_remember,
    };
    let mut form = context.form(page, Form::Consent);
    if requires_bound_session(transaction) {
        let drawn = ConsentInTime {
            tie: context.tie(),
            drawn_at: context.app.now(),
        };
        let vault = &context.app.vault.bound_sessions;
        form.token = vault.seal_text(ConsentInTime::PREFIX, &drawn);
    }
    let page = pages::consent::page(&form, asked, drawn_again);
    Ok(answers::form_page(200, page))
}
