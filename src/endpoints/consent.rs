//! `/consent`: what a client asks for, and what the user makes of it.

use std::collections::BTreeSet;

use serde_json::json;

use super::answers::{self, Presentation};
use super::authorize::silent;
use super::errand::Errand;
use super::form_tokens::{self, Form};
use super::login;
use super::present_session::PresentSession;
use super::visit::{Next, Visit};
use crate::app::App;
use crate::app::failure::Failure;
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::consent::{ConsentScope, ConsentView};
use crate::pages::language::Language;
use crate::protocol::authorize_request::Refusal;
use crate::protocol::claims;
use crate::protocol::errors::AuthorizeErrorCode;
use crate::protocol::interaction::{Step, is_required, may_remember, narrow};
use crate::protocol::parameters::Parameters;
use crate::protocol::reason::Reason;
use crate::protocol::scope::{Catalogue, RegisteredScope, ScopeSet};
use crate::store::audit_events::AuditEvent;
use crate::store::consents::{self, GivenConsent};

/// Shows the page, or takes its form.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let visit = Visit::reopen(app, request)?;
    let present = PresentSession::find(app, request).map_err(|failure| silent(&visit, failure))?;
    match (request.method, &present) {
        (Method::Post, Some(present)) => take(app, request, &visit, present),
        (Method::Post | Method::Get | Method::Head | Method::Options | Method::Other, _) => {
            show(app, request, &visit, present.as_ref(), false)
        }
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
    let next = visit.next(app, request, present, Step::Arrival).map_err(|failure| silent(visit, failure))?;
    match (next, present) {
        (Next::Consent { may_remember }, Some(present)) => {
            draw(app, request, visit, present, may_remember, drawn_again)
        }
        (Next::Login | Next::Upstream(_) | Next::SelectAccount | Next::Consent { .. }, _) => {
            Ok(answers::see_other(visit.page(app, "/login")))
        }
        // Without a page of its own there is nothing here that a fresh sign-in could be seen to stand behind.
        (Next::Answer(_), _) if visit.wants_fresh_sign_in() => Ok(answers::see_other(visit.page(app, "/login"))),
        (Next::Answer(_), _) if request.method == Method::Head => Ok(answers::nothing_to_show()),
        (Next::Answer(response), _) => Ok(response),
    }
}

fn take(app: &App, request: &Request, visit: &Visit, present: &PresentSession) -> Result<Response, Failure> {
    let form = form_tokens::read_post(app, request)?;
    let posted = form.single("form_token").map_err(Failure::bad_request)?;
    if !form_tokens::matches(app, Form::Consent, &visit.sealed, Some(&present.handle.random), posted) {
        return show(app, request, visit, Some(present), true);
    }
    match form.single("decision").map_err(Failure::bad_request)? {
        Some("allow") => allow(app, request, visit, present, &form),
        Some("deny") => Err(visit.refuse(Refusal::new(AuthorizeErrorCode::AccessDenied, Reason::AccessDenied))),
        Some("another") => login::ask_someone_else(app, request, Errand::Authorize(visit)),
        Some(_) | None => Err(Failure::bad_request(Reason::UnknownPageAction)),
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
    let wants_it_remembered = form.single("remember").map_err(Failure::bad_request)?.is_some();
    let granted = narrow(&visit.request.scope, &ticked, &visit.snapshot.catalogue).map_err(|refusal| {
        // Nothing ticked is an answer for the client; a tick that the page does not have is none.
        let is_answer = refusal.code == AuthorizeErrorCode::AccessDenied;
        if is_answer { visit.refuse(refusal) } else { Failure::bad_request(refusal.reason) }
    })?;
    if wants_it_remembered && may_remember(&visit.client.client, &visit.request.redirect) {
        remember(app, request, visit, present, &granted)?;
    }
    match visit.next(app, request, Some(present), Step::AfterConsent { granted })? {
        Next::Answer(response) => Ok(response),
        Next::Login | Next::Upstream(_) | Next::SelectAccount | Next::Consent { .. } => {
            Ok(answers::see_other(visit.page(app, "/login")))
        }
    }
}

/// What was allowed before, still counts and is not asked about now stays allowed.
fn remember(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    granted: &ScopeSet,
) -> Result<(), Failure> {
    let (sub, client_id) = (&present.user.sub, &visit.request.client_id);
    let lifetime = visit.client.client.consent_lifetime;
    let before = visit.find_consent(app, present)?.filter(|row| !row.has_lapsed(app.now())).map(|row| row.to_core());
    let before = before.filter(|consent| consent.stands(lifetime, app.now()));
    let (scopes, claims) = before.map(|consent| (consent.scope, consent.claims)).unwrap_or_default();
    let kept = scopes.iter().filter(|name| !visit.request.scope.contains(name));
    let scopes: ScopeSet = kept.chain(granted.iter()).collect();
    let claims: BTreeSet<String> = claims.into_iter().chain(visit.request.claims.names()).collect();
    consents::give(
        &app.store,
        &GivenConsent {
            sub,
            client_id,
            scopes: &scopes.iter().map(str::to_owned).collect::<Vec<_>>(),
            claims: &claims.into_iter().collect::<Vec<_>>(),
            expires_at: lifetime.map(|lifetime| app.now().plus(lifetime)),
            is_required: visit.needs_consent(),
        },
        &AuditEvent {
            event: "consent_given",
            client_id: Some(client_id),
            sub: Some(sub),
            sid: Some(&present.row.sid),
            source: Some(request.source),
            request_id: Some(&request.id),
            detail: json!({"scope": granted.to_string()}),
        },
    )?;
    Ok(())
}

/// Draws the page for this session.
pub fn draw(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    may_remember: bool,
    drawn_again: bool,
) -> Result<Response, Failure> {
    let token = form_tokens::issue(app, Form::Consent, &visit.sealed, &present.handle.random);
    let action = visit.page(app, "/consent");
    let claims = visit.request.claims.names();
    let claims: Vec<&str> = claims.iter().map(String::as_str).collect();
    let ui_locales = visit.request.ui_locales.as_deref().unwrap_or_default();
    let markup = Presentation { config: &app.config, request }.draw(ui_locales, |chrome| {
        let language = chrome.texts.language;
        pages::consent::page(&ConsentView {
            chrome,
            action: &action,
            form_token: &token,
            client: visit.client_view(language),
            account: present.account(),
            scopes: &scope_views(&visit.request.scope, &visit.snapshot.catalogue, language),
            claims: &claims,
            may_remember,
            drawn_again,
        })
    });
    let mut response = answers::form_page(200, markup);
    response.note.client_id = Some(visit.request.client_id.to_string());
    Ok(response)
}

/// What is asked for, as the page shows it.
pub fn scope_views<'a>(scope: &'a ScopeSet, catalogue: &'a Catalogue, language: Language) -> Vec<ConsentScope<'a>> {
    let registered = scope.iter().filter_map(|name| catalogue.scopes.get(name));
    registered.map(|scope| scope_view(scope, is_required(&scope.name, catalogue), language)).collect()
}

/// A scope as pages show it: the built-in ones in the language's own words.
pub fn scope_view(scope: &RegisteredScope, required: bool, language: Language) -> ConsentScope<'_> {
    // An empty name asks for them.
    let own_words = claims::built_in_scopes().contains(scope);
    ConsentScope {
        name: &scope.name,
        display_name: if own_words { "" } else { language.of(&scope.display_name) },
        description: if own_words { "" } else { language.of(&scope.description) },
        required,
        emphasize: scope.emphasize,
    }
}
