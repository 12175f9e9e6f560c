//! What a client, or a device of a client, asks for, and what the user makes of it: `/consent`, and
//! the question of `/device`.

use serde_json::json;

use crate::app::failure::Failure;
use crate::endpoints::answers;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::visit::{self, InSession, Taken, Turn, unknown_action};
use crate::http::Response;
use crate::pages;
use gatepost_protocol::authorize::interaction::{Step, may_remember, narrow};
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::AuthorizeErrorCode;
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::consents::{self, GivenConsent};

/// Takes the form of either page. A form that was drawn for another request or session is no
/// answer: the page is shown again.
pub fn take(turn: Turn<'_>) -> Result<Taken, Failure> {
    let Some(turn) = turn.in_session() else {
        return Ok(Taken::Step(Step::Arrival));
    };
    let form = forms::read_post(turn.app, turn.request)?;
    if !turn.matches(Form::Consent, &form) {
        return Ok(Taken::Step(Step::Arrival));
    }
    match form.single("decision")? {
        Some("allow") => allow(turn, &form),
        Some("deny") if turn.visit.is_of_device() => Ok(Taken::DeviceDenied),
        Some("deny") => turn.cancel(),
        Some("another") => Ok(Taken::OtherWay {
            someone_else: true,
            provider: None,
        }),
        _ => Err(unknown_action()),
    }
}

fn allow(turn: InSession<'_>, form: &Parameters) -> Result<Taken, Failure> {
    let visit = turn.visit;
    let ticked: ScopeSet = form.all("scope").filter(|name| !name.is_empty()).collect();
    let wants_it_remembered = form.single("remember")?.is_some();
    let granted = match narrow(&visit.request.scope, &ticked, &visit.snapshot.catalogue) {
        Ok(granted) => granted,
        // Nothing is ticked: the client is told.
        Err(refusal) if refusal.code == AuthorizeErrorCode::AccessDenied => {
            return Err(visit.refuse(refusal));
        }
        // The page does not show that scope.
        Err(refusal) => return Err(Failure::bad_request(refusal.reason)),
    };
    if let Some(client) = visit.registration()
        && wants_it_remembered
        && may_remember(&visit.request, Some(client))
    {
        remember(turn, client, &granted)?;
    }
    Ok(Taken::Step(Step::AfterConsent { granted }))
}

/// Remembers what the user allowed. What they allowed before stays allowed, unless it has lapsed,
/// is asked about now, or is withdrawn meanwhile.
fn remember(turn: InSession<'_>, client: &Client, granted: &ScopeSet) -> Result<(), Failure> {
    let InSession {
        app,
        visit,
        present,
        ..
    } = turn;
    let lifetime = client.consent_lifetime;
    let now = app.now();
    let before = visit
        .known_consent(app, present)?
        .filter(|row| !row.has_lapsed(now) && row.consent.stands(lifetime, now));
    let given = GivenConsent {
        sub: &present.user.sub,
        client_id: &client.client_id,
        asked_scopes: &visit.request.scope,
        scopes: granted,
        claims: &Vec::from_iter(visit.request.claims.names()),
        kept_epoch: before.map(|row| row.epoch),
        expires_at: lifetime.map(|lifetime| now.plus(lifetime)),
        is_required: client.require_consent == Some(true),
    };
    let event = AuditEvent {
        detail: json!({"scope": granted.to_string()}),
        ..turn.own_event("consent_given")
    };
    Ok(consents::give(&app.store, &given, &event)?)
}

/// Draws the page that asks.
pub fn draw(
    turn: InSession<'_>,
    may_remember: bool,
    drawn_again: bool,
) -> Result<Response, Failure> {
    let visit = turn.visit;
    // The account page needs no consent.
    let client = visit.registration().ok_or_else(visit::invalid)?;
    let page = if visit.is_of_device() {
        "/device"
    } else {
        "/consent"
    };
    let page = turn.with_form(page, Form::Consent, |form| {
        pages::consent::page(
            turn.chrome(),
            form,
            pages::consent::Asked {
                request: &visit.request,
                client,
                catalogue: &visit.snapshot.catalogue,
                account: turn.present.account(),
                may_remember,
            },
            drawn_again,
        )
    });
    Ok(answers::form_page(200, page))
}
