//! What a client, or a device of a client, asks for, and what the user makes of it: `/consent`, and
//! the question of `/device`.

use std::collections::BTreeSet;

use serde_json::json;

use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::visit::{self, Next, Visit};
use crate::endpoints::device;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::LoginPage;
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::frame::PageForm;
use crate::protocol::authorize::authorize_request::Ending;
use crate::protocol::authorize::interaction::{Step, may_remember, narrow};
use crate::protocol::device::device_code::DeviceDecision;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::{AuthorizeErrorCode, Reason};
use crate::protocol::words::scope::ScopeSet;
use crate::registry::RegisteredClient;
use crate::store::audit_events::AuditEvent;
use crate::store::consents::{self, GivenConsent};

/// `/consent`: shows the page, or takes its form.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let visit = Visit::resume(app, visit::open(app, request)?)?;
    if matches!(visit.request.ending, Ending::Client(_)) {
        answer(app, request, &visit)
    } else {
        Err(visit::invalid())
    }
}

/// Shows the page of this visit, or takes its form.
pub fn answer(app: &App, request: &Request, visit: &Visit) -> Result<Response, Failure> {
    let present = PresentSession::find(app, request).map_err(|failure| visit.silent(failure))?;
    let Some(present) = present.as_ref().filter(|_| request.method == Method::Post) else {
        return show(app, request, visit, present.as_ref(), false);
    };
    let form = forms::read_post(app, request)?;
    if !forms::matches(
        app,
        Form::Consent,
        &visit.sealed,
        Some(&present.handle.random),
        &form,
    ) {
        return show(app, request, visit, Some(present), true);
    }
    match form.single("decision")? {
        Some("allow") => allow(app, request, visit, present, &form),
        Some("deny") if visit.is_of_device() => {
            match visit.next(app, request, Some(present), Step::Arrival)? {
                Next::Consent { .. } => device::decide(
                    app,
                    request,
                    visit,
                    present,
                    DeviceDecision::Denied,
                    &ScopeSet::default(),
                ),
                Next::Login
                | Next::Upstream(_)
                | Next::SelectAccount
                | Next::Stronger(_)
                | Next::Answer(_) => Ok(back(app, request, visit)),
            }
        }
        Some("deny") => Err(visit.denied()),
        Some("another") => LoginPage::of(app, request, visit)
            .for_someone_else()
            .begin(""),
        Some(_) | None => Err(Failure::bad_request(Reason::UnknownPageAction)),
    }
}

/// The page, unless the request needs another one or none.
fn show(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: Option<&PresentSession>,
    drawn_again: bool,
) -> Result<Response, Failure> {
    let next = visit
        .next(app, request, present, Step::Arrival)
        .map_err(|failure| visit.silent(failure))?;
    match (next, present) {
        (Next::Consent { may_remember }, Some(present)) => Ok(draw(
            app,
            request,
            visit,
            present,
            may_remember,
            drawn_again,
        )),
        (
            Next::Login
            | Next::Upstream(_)
            | Next::SelectAccount
            | Next::Stronger(_)
            | Next::Consent { .. },
            _,
        ) => Ok(back(app, request, visit)),
        // Without a page of its own there is nothing here that a fresh sign-in could be seen to
        // stand behind.
        (Next::Answer(_), _) if visit.wants_fresh_sign_in() => Ok(back(app, request, visit)),
        (Next::Answer(_), _) if request.method == Method::Head => Ok(answers::nothing_to_show()),
        (Next::Answer(response), _) => Ok(response),
    }
}

fn back(app: &App, request: &Request, visit: &Visit) -> Response {
    match &visit.request.ending {
        Ending::Device(user_code) => device::ask(app, request, 200, &user_code.to_string(), None),
        Ending::Client(_) | Ending::Account { .. } => answers::see_other(visit.page(app, "/login")),
    }
}

fn allow(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    form: &Parameters,
) -> Result<Response, Failure> {
    let ticked: ScopeSet = form.all("scope").filter(|name| !name.is_empty()).collect();
    let wants_it_remembered = form.single("remember")?.is_some();
    let granted =
        narrow(&visit.request.scope, &ticked, &visit.snapshot.catalogue).map_err(|refusal| {
            // Nothing ticked is an answer for the client; a tick that the page does not have is
            // none.
            let is_answer = refusal.code == AuthorizeErrorCode::AccessDenied;
            if is_answer {
                visit.refuse(refusal)
            } else {
                Failure::bad_request(refusal.reason)
            }
        })?;
    if let Some(client) = &visit.client
        && wants_it_remembered
        && may_remember(&visit.request, Some(&client.client))
    {
        remember(app, request, visit, client, present, &granted)?;
    }
    match visit.next(app, request, Some(present), Step::AfterConsent { granted })? {
        Next::Answer(response) => Ok(response),
        Next::Login
        | Next::Upstream(_)
        | Next::SelectAccount
        | Next::Stronger(_)
        | Next::Consent { .. } => Ok(back(app, request, visit)),
    }
}

/// What was allowed before, still counts and is not asked about now stays allowed.
fn remember(
    app: &App,
    request: &Request,
    visit: &Visit,
    client: &RegisteredClient,
    present: &PresentSession,
    granted: &ScopeSet,
) -> Result<(), Failure> {
    let (sub, client_id, lifetime) = (
        &present.user.sub,
        &client.client.client_id,
        client.client.consent_lifetime,
    );
    let before = visit
        .find_consent(app, present)?
        .filter(|row| !row.has_lapsed(app.now()))
        .map(|row| row.consent);
    let before = before.filter(|consent| consent.stands(lifetime, app.now()));
    let (scopes, claims) = before
        .map(|consent| (consent.scope, consent.claims))
        .unwrap_or_default();
    let kept = scopes
        .iter()
        .filter(|name| !visit.request.scope.contains(name));
    let scopes: ScopeSet = kept.chain(granted.iter()).collect();
    let claims: BTreeSet<String> = claims
        .into_iter()
        .chain(visit.request.claims.names())
        .collect();
    let given = GivenConsent {
        sub,
        client_id,
        scopes: &scopes,
        claims: &claims.into_iter().collect::<Vec<_>>(),
        expires_at: lifetime.map(|lifetime| app.now().plus(lifetime)),
        is_required: client.client.require_consent == Some(true),
    };
    let event = AuditEvent {
        event: "consent_given",
        client_id: Some(client_id),
        sub: Some(sub),
        sid: Some(&present.row.sid),
        source: Some(request.source),
        request_id: Some(&request.id),
        detail: json!({"scope": granted.to_string()}),
    };
    Ok(consents::give(&app.store, &given, &event)?)
}

pub fn draw(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    may_remember: bool,
    drawn_again: bool,
) -> Response {
    let form_token = forms::issue(app, Form::Consent, &visit.sealed, &present.handle.random);
    let presentation = Presentation {
        config: &app.config,
        request,
    };
    // The account page needs no consent.
    let Some(client) = visit.registration() else {
        return back(app, request, visit);
    };
    let page = if visit.is_of_device() {
        "/device"
    } else {
        "/consent"
    };
    let action = presentation.in_language_of(
        visit::page_address(app, page, &visit.sealed),
        visit.ui_locales(),
    );
    let asked = pages::consent::Asked {
        request: &visit.request,
        client,
        catalogue: &visit.snapshot.catalogue,
    };
    let form = PageForm {
        action: &action,
        token: &form_token,
    };
    let chrome = presentation.chrome(visit.ui_locales());
    let page = pages::consent::page(
        chrome,
        form,
        asked,
        present.account(),
        may_remember,
        drawn_again,
    );
    visit.noted(answers::form_page(200, page))
}
