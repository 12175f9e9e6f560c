//! `/device` (RFC 8628 §3.3): a person brings the code that their device shows, signs in, and decides. An address alone
//! never leads past the page that asks for the code, whoever follows it and whatever it carries.

use std::time::Duration;

use serde_json::json;

use super::answers::{self, Presentation};
use super::consent::scope_views;
use super::cookies;
use super::device_visit::{self, DeviceVisit};
use super::errand::Errand;
use super::form_tokens::{self, Form};
use super::login;
use super::present_session::PresentSession;
use super::sealed_address;
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::guesses::Source;
use crate::crypto::random;
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::device::{DecidedView, DeviceView, UserCodeProblem, UserCodeView};
use crate::protocol::device_code::{DeviceDecision, UserCode};
use crate::protocol::instant::Instant;
use crate::protocol::interaction::narrow;
use crate::protocol::lengths;
use crate::protocol::parameters::Parameters;
use crate::protocol::reason::Reason;
use crate::protocol::scope::ScopeSet;
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::secret::SecretBytes;
use crate::protocol::token_subject::TokenSubject;
use crate::store::audit_events::AuditEvent;
use crate::store::device_authorizations::{self, NewDecision};

/// Shows the page, or takes its forms: the code's, and with a sealed request in the address the decision's.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let query = Parameters::parse(request.query.as_bytes()).map_err(Failure::bad_request)?;
    let has_request = query.was_sent("r");
    match request.method {
        Method::Post if has_request => take_decision(app, request),
        Method::Post => take_code(app, request),
        Method::Get | Method::Head | Method::Options | Method::Other if has_request => {
            let SealedPurpose::Device(code) = sealed_address::open(app, request)?.request.purpose else {
                return Err(sealed_address::invalid());
            };
            Ok(ask(app, request, 200, &code.to_string(), None))
        }
        Method::Get | Method::Head | Method::Options | Method::Other => {
            let code = query.bounded("user_code", lengths::OTHER).map_err(Failure::bad_request)?;
            // What has not the form of a code is left out: an address must not be able to put words into our page.
            let code = code.and_then(UserCode::parse).map(|code| code.to_string()).unwrap_or_default();
            Ok(ask(app, request, 200, &code, None))
        }
    }
}

/// Asks for the code; one that is known already is to be held against the device.
fn ask(app: &App, request: &Request, status: u16, code: &str, problem: Option<UserCodeProblem>) -> Response {
    let known = cookies::pre_session(&app.config, request);
    let browser = known.clone().unwrap_or_else(|| SecretBytes::new(random::bytes::<16>()));
    let token = form_tokens::issue(app, Form::UserCode, "", &browser);
    let presentation = Presentation { config: &app.config, request };
    let action = presentation.in_its_language(format!("{}/device", app.config.base_url.path()));
    let markup = presentation.draw("", |chrome| {
        pages::device::user_code_page(&UserCodeView {
            chrome,
            action: &action,
            form_token: &token,
            user_code: code,
            to_be_compared: !code.is_empty() && problem.is_none(),
            problem,
        })
    });
    let response = answers::form_page(status, markup);
    if known.is_some() { response } else { cookies::set_pre_session(&app.config, response, &browser) }
}

fn take_code(app: &App, request: &Request) -> Result<Response, Failure> {
    let form = form_tokens::read_post(app, request)?;
    let posted = form.single("form_token").map_err(Failure::bad_request)?;
    let typed = form.bounded("user_code", lengths::OTHER).map_err(Failure::bad_request)?;
    let shown = typed.and_then(UserCode::parse).map(|code| code.to_string()).unwrap_or_default();
    let browser = cookies::pre_session(&app.config, request);
    let again = |status, problem, reason: Reason| {
        let mut response = ask(app, request, status, &shown, Some(problem));
        response.note.reason = Some(reason.code());
        response
    };
    if !form_tokens::matches(app, Form::UserCode, "", browser.as_ref(), posted) {
        return Ok(again(200, UserCodeProblem::PageExpired, Reason::PageExpired));
    }
    let Some(typed) = typed else {
        return Ok(again(200, UserCodeProblem::Missing, Reason::UnknownUserCode));
    };
    let source = Source::of(request.source);
    if let Err(wait) = count(app, source, app.now()) {
        let minutes = answers::minutes(wait);
        let response = again(429, UserCodeProblem::TooMany { minutes }, Reason::TooManyUserCodes);
        return Ok(response.header("Retry-After", wait.as_secs().max(1).to_string()));
    }
    let visit = UserCode::parse(typed).map_or(Ok(None), |code| DeviceVisit::begin(app, &code));
    let visit = match visit {
        Ok(None) => return Ok(again(200, UserCodeProblem::Wrong, Reason::UnknownUserCode)),
        Ok(Some(visit)) => Ok(visit),
        Err(failure) => Err(failure),
    };
    app.user_code_failures.take_back(&source);
    app.user_code_failures_overall.take_back(&());
    next(app, request, &visit?)
}

/// Counts a code before it is looked at, so that of many at once no more are looked at than may be; or says how long nobody
/// may try from there.
fn count(app: &App, source: Source, now: Instant) -> Result<(), Duration> {
    app.user_code_failures.count(source, now)?;
    app.user_code_failures_overall.count((), now).inspect_err(|_| app.user_code_failures.take_back(&source))
}

/// The decision's page, or the sign-in's: drawn as the answer to the code, and not redirected to.
fn next(app: &App, request: &Request, visit: &DeviceVisit) -> Result<Response, Failure> {
    let present = PresentSession::find(app, request)?;
    match present.as_ref().filter(|present| visit.is_answered_by(app, present)) {
        Some(present) => Ok(draw(app, request, visit, present, false)),
        None => login::ask(app, request, Errand::Device(visit)),
    }
}

/// Draws the decision for this session.
pub fn draw(
    app: &App,
    request: &Request,
    visit: &DeviceVisit,
    present: &PresentSession,
    drawn_again: bool,
) -> Response {
    let token = form_tokens::issue(app, Form::Device, &visit.sealed, &present.handle.random);
    let presentation = Presentation { config: &app.config, request };
    let action = presentation.in_its_language(sealed_address::page(app, "/device", &visit.sealed));
    let code = visit.user_code.to_string();
    let scopes = scope_views(&visit.scope, &visit.snapshot.catalogue, presentation.language(""));
    let markup = presentation.draw("", |chrome| {
        pages::device::page(&DeviceView {
            chrome,
            action: &action,
            form_token: &token,
            client: visit.client_view(chrome.texts.language),
            account: present.account(),
            user_code: &code,
            scopes: &scopes,
            drawn_again,
        })
    });
    let mut response = answers::form_page(200, markup);
    response.note.client_id = Some(visit.client.client.client_id.to_string());
    response
}

fn take_decision(app: &App, request: &Request) -> Result<Response, Failure> {
    let opened = sealed_address::open(app, request)?;
    let form = form_tokens::read_post(app, request)?;
    let visit = DeviceVisit::resume(app, &opened)?;
    let present = PresentSession::find(app, request)?;
    let Some(present) = present.filter(|present| visit.is_answered_by(app, present)) else {
        return Ok(ask(app, request, 200, &visit.user_code.to_string(), None));
    };
    let posted = form.single("form_token").map_err(Failure::bad_request)?;
    if !form_tokens::matches(app, Form::Device, &visit.sealed, Some(&present.handle.random), posted) {
        return Ok(draw(app, request, &visit, &present, true));
    }
    let decision = match form.single("decision").map_err(Failure::bad_request)? {
        Some("allow") => DeviceDecision::Allowed,
        Some("deny") => DeviceDecision::Denied,
        Some("another") => return login::ask_someone_else(app, request, Errand::Device(&visit)),
        Some(_) | None => return Err(Failure::bad_request(Reason::UnknownPageAction)),
    };
    decide(app, request, &visit, &present, (decision, &form))
}

fn decide(
    app: &App,
    request: &Request,
    visit: &DeviceVisit,
    present: &PresentSession,
    (decision, form): (DeviceDecision, &Parameters),
) -> Result<Response, Failure> {
    let scope = granted(visit, decision, form)?;
    let new = NewDecision {
        decision,
        user: &sign_in(visit, present),
        scopes: scope.iter().map(str::to_owned).collect(),
        session_epochs: present.row.epochs,
        client_epoch: visit.client.epoch,
        ends_lapsed_consent: decision == DeviceDecision::Allowed && visit.client.client.require_consent == Some(true),
    };
    let event = AuditEvent {
        event: match decision {
            DeviceDecision::Allowed => "device_allowed",
            DeviceDecision::Denied => "device_denied",
        },
        client_id: Some(&visit.client.client.client_id),
        sub: Some(&present.row.sub),
        sid: Some(&present.row.sid),
        source: Some(request.source),
        request_id: Some(&request.id),
        detail: json!({"scope": scope.to_string()}),
    };
    let hashes = device_visit::hashes(app, &visit.user_code);
    if !device_authorizations::decide(&app.store, &hashes, &new, &event)? {
        return Err(Failure::bad_request(Reason::DeviceAlreadyDecided));
    }
    let allowed = decision == DeviceDecision::Allowed;
    let markup = Presentation { config: &app.config, request }.draw("", |chrome| {
        pages::device::decided_page(&DecidedView { chrome, client: visit.client_view(chrome.texts.language), allowed })
    });
    let mut response = answers::plain_page(200, markup);
    response.note.client_id = Some(visit.client.client.client_id.to_string());
    Ok(response)
}

fn granted(visit: &DeviceVisit, decision: DeviceDecision, form: &Parameters) -> Result<ScopeSet, Failure> {
    match decision {
        DeviceDecision::Denied => Ok(ScopeSet::default()),
        DeviceDecision::Allowed => {
            let ticked: ScopeSet = form.all("scope").filter(|name| !name.is_empty()).collect();
            let granted = narrow(&visit.scope, &ticked, &visit.snapshot.catalogue);
            granted.map_err(|refusal| Failure::bad_request(refusal.reason))
        }
    }
}

/// Who decided, without their browser session: the device lives on without it.
fn sign_in(visit: &DeviceVisit, present: &PresentSession) -> TokenSubject {
    let named = visit.acr_values.identity_provider.is_some();
    TokenSubject {
        subject: present.user.sub.clone(),
        sid: None,
        tenant: present.row.tenant.clone(),
        identity_provider: named.then(|| present.row.identity_provider.clone()),
        auth_time: present.row.auth_time,
        amr: present.row.amr.clone(),
        acr: present.row.acr.clone(),
    }
}
