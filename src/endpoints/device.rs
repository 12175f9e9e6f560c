//! `/device` (RFC 8628 §3.3): a person brings the code that their device shows, signs in, and
//! decides. An address alone never leads past the page that asks for the code, whoever follows it
//! and whatever it carries.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::app::App;
use crate::app::failure::Failure;
use crate::app::guesses::Source;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::authorize::consent;
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::visit::{self, Next, Visit};
use crate::endpoints::cookies;
use crate::endpoints::forms::{self, Form, refuse_parameters_in_query, require_form};
use crate::endpoints::login::{LoginPage, second_factor};
use crate::endpoints::token::client_authentication::authenticate;
use crate::http::{Method, Request, Response};
use crate::keys::random;
use crate::pages;
use crate::pages::consent::UserCodeProblem;
use crate::pages::frame::PageForm;
use crate::protocol::authorize::authorize_request::Ending;
use crate::protocol::authorize::interaction::Step;
use crate::protocol::device::device_code::{
    DeviceAuthorizationRequest, DeviceDecision, PARAMETERS, PREFIX, SINGLE_PARAMETERS, UserCode,
};
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::words::client::{Client, GrantType};
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::{Reason, TokenError, TokenErrorCode};
use crate::protocol::words::scope::ScopeSet;
use crate::protocol::words::secret::{SecretBytes, SecretText};
use crate::store::audit_events::AuditEvent;
use crate::store::device_authorizations::{self, Entered, NewDecision, NewDevice};

/// Shows the page, or takes its forms: the code's, and with a sealed request in the address the
/// decision's.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let query = Parameters::parse(request.query.as_bytes())?;
    let has_request = query.was_sent("r");
    let code = match request.method {
        Method::Post if has_request => {
            let visit = Visit::resume(app, visit::open(app, request)?)?;
            let is_here = visit.is_of_device();
            return if is_here {
                consent::answer(app, request, &visit)
            } else {
                Err(visit::invalid())
            };
        }
        Method::Post => return take_code(app, request),
        Method::Get | Method::Head | Method::Options | Method::Other if has_request => {
            let SealedPurpose::Device(code) = visit::open(app, request)?.request.purpose else {
                return Err(visit::invalid());
            };
            Some(code)
        }
        Method::Get | Method::Head | Method::Options | Method::Other => {
            let code = query.bounded("user_code", parameters::OTHER)?;
            // Anything but a code is left out: an address must not put words into our page.
            code.and_then(UserCode::parse)
        }
    };
    Ok(ask(
        app,
        request,
        200,
        &code.map(|code| code.to_string()).unwrap_or_default(),
        None,
    ))
}

/// Asks for the code; one that is known already is to be held against the device.
pub fn ask(
    app: &App,
    request: &Request,
    status: u16,
    code: &str,
    problem: Option<UserCodeProblem>,
) -> Response {
    let known = cookies::pre_session(&app.config, request);
    let browser = known
        .clone()
        .unwrap_or_else(|| SecretBytes::new(random::bytes::<16>()));
    let token = forms::issue(app, Form::UserCode, "", &browser);
    let presentation = Presentation {
        config: &app.config,
        request,
    };
    let action = presentation.in_its_language(format!("{}/device", app.config.base_url.path()));
    let form = PageForm {
        action: &action,
        token: &token,
    };
    let page = pages::consent::user_code_page(presentation.chrome(""), form, code, problem);
    let response = answers::form_page(status, page);
    if known.is_some() {
        response
    } else {
        cookies::set_pre_session(&app.config, response, &browser)
    }
}

fn take_code(app: &App, request: &Request) -> Result<Response, Failure> {
    let form = forms::read_post(app, request)?;
    let typed = form.bounded("user_code", parameters::OTHER)?;
    let shown = typed
        .and_then(UserCode::parse)
        .map(|code| code.to_string())
        .unwrap_or_default();
    let browser = cookies::pre_session(&app.config, request);
    let again = |status, problem, reason: Reason| {
        answers::noted(ask(app, request, status, &shown, Some(problem)), reason)
    };
    if !forms::matches(app, Form::UserCode, "", browser.as_ref(), &form) {
        return Ok(again(
            200,
            UserCodeProblem::PageExpired,
            Reason::PageExpired,
        ));
    }
    let Some(typed) = typed else {
        return Ok(again(
            200,
            UserCodeProblem::Missing,
            Reason::UnknownUserCode,
        ));
    };
    let source = Source::of(request.source);
    // Counted before it is looked at, so that many at once cannot pass the limit.
    let overall = |()| {
        let counted = app.user_code_failures_overall.count((), app.now());
        counted.inspect_err(|_| app.user_code_failures.take_back(&source))
    };
    if let Err(wait) = app
        .user_code_failures
        .count(source, app.now())
        .and_then(overall)
    {
        let minutes = answers::minutes(wait);
        let response = again(
            429,
            UserCodeProblem::TooMany { minutes },
            Reason::TooManyUserCodes,
        );
        return Ok(answers::retry_after(response, wait));
    }
    let found = UserCode::parse(typed).map_or(Ok(None), |code| Visit::to_device(app, code));
    let Some(visit) = found.transpose() else {
        return Ok(again(200, UserCodeProblem::Wrong, Reason::UnknownUserCode));
    };
    app.user_code_failures.take_back(&source);
    app.user_code_failures_overall.take_back(&());
    let visit = visit?;
    // The question's page, or the sign-in's: drawn as the answer to the code, and not redirected
    // to.
    let present = PresentSession::find(app, request)?;
    match (
        visit.next(app, request, present.as_ref(), Step::Arrival)?,
        &present,
    ) {
        (Next::Consent { may_remember }, Some(present)) => Ok(consent::draw(
            app,
            request,
            &visit,
            present,
            may_remember,
            false,
        )),
        (Next::Answer(response), _) => Ok(response),
        (Next::Stronger(stronger), Some(present)) => {
            second_factor::in_session(app, request, &visit, present, stronger)
        }
        (
            Next::Login
            | Next::Upstream(_)
            | Next::SelectAccount
            | Next::Stronger(_)
            | Next::Consent { .. },
            _,
        ) => LoginPage::of(app, request, &visit)
            .with_session(present.as_ref())
            .begin(""),
    }
}

/// Decides about the device, once. Its grant does not depend on the browser session.
pub fn decide(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    decision: DeviceDecision,
    scope: &ScopeSet,
) -> Result<Response, Failure> {
    let (Ending::Device(user_code), Some(client)) = (&visit.request.ending, &visit.client) else {
        return Err(visit::invalid());
    };
    let allowed = decision == DeviceDecision::Allowed;
    let new = NewDecision {
        decision,
        user: &present.sign_in(None, &visit.request),
        scopes: scope,
        session_epochs: present.row.epochs,
        client_epoch: client.epoch,
        ends_lapsed_consent: allowed && client.client.require_consent == Some(true),
    };
    let event = AuditEvent {
        event: if allowed {
            "device_allowed"
        } else {
            "device_denied"
        },
        client_id: Some(&client.client.client_id),
        sub: Some(&present.row.subject),
        sid: Some(&present.row.sid),
        source: Some(request.source),
        request_id: Some(&request.id),
        detail: json!({"scope": scope.to_string()}),
    };
    if !device_authorizations::decide(&app.store, &hashes(app, user_code), &new, &event)? {
        return Err(Failure::bad_request(Reason::DeviceAlreadyDecided));
    }
    let presentation = Presentation {
        config: &app.config,
        request,
    };
    let page = pages::consent::decided_page(presentation.chrome(""), &client.client, allowed);
    Ok(visit.noted(answers::plain_page(200, page)))
}

/// What the database knows a code by, under every line of the master secret.
pub fn hashes(app: &App, user_code: &UserCode) -> Vec<[u8; 32]> {
    app.vault.user_codes.tags(&[user_code.letters().as_bytes()])
}

/// With some billions of user codes even a second drawing is rare.
const DRAWINGS: usize = 8;
/// For how long a client with too many devices waiting is told to wait.
const CROWDED: Duration = Duration::from_secs(60);

/// Answers a device authorization request.
pub fn authorize(app: &App, request: &Request) -> Result<Response, Failure> {
    require_form(request, 400)?;
    let parameters = Parameters::parse(&request.body)?;
    refuse_parameters_in_query(request, &PARAMETERS)?;
    parameters.refuse_repeated(&SINGLE_PARAMETERS)?;
    app.require_fresh_registry()?;
    let client = &authenticate(app, request, &parameters, app.now())?.client;
    let answer = answer(app, request, client, &parameters)
        .map_err(|failure| failure.about(&client.client_id, None))?;
    let mut response = answers::json(200, &answer);
    response.note.client_id = Some(client.client_id.to_string());
    Ok(response)
}

fn answer(
    app: &App,
    request: &Request,
    client: &Client,
    parameters: &Parameters,
) -> Result<Value, Failure> {
    if !client.allows_grant(&GrantType::DeviceCode) {
        return Err(TokenError::new(
            TokenErrorCode::UnauthorizedClient,
            Reason::UnregisteredGrantType,
        )
        .into());
    }
    let snapshot = app.registry.snapshot();
    let asked = DeviceAuthorizationRequest::from_form(
        parameters,
        client,
        &snapshot.catalogue,
        app.issuer(),
    )?;
    let throttled = |reason, retry_after| Failure::Throttled {
        reason,
        retry_after,
    };
    let asking = (client.client_id.clone(), Source::of(request.source));
    let counted = app.device_authorizations.count(asking, app.now());
    counted.map_err(|wait| throttled(Reason::TooManyDeviceAuthorizations, wait))?;
    let device_code = SecretText::new(format!(
        "{PREFIX}{}",
        URL_SAFE_NO_PAD.encode(random::bytes::<32>())
    ));
    for _ in 0..DRAWINGS {
        let Some(user_code) = UserCode::draw(&random::bytes::<32>()) else {
            continue;
        };
        let new = NewDevice {
            device_code_hash: app
                .vault
                .device_codes
                .tag(&[device_code.expose().as_bytes()]),
            user_code_hash: app.vault.user_codes.tag(&[user_code.letters().as_bytes()]),
            client_id: &client.client_id,
            scopes: &asked.scope,
            resources: &asked.resources,
            acr_values: asked.acr_values.as_deref(),
            interval: client.device_interval,
            lifetime: client.lifetimes.device_code,
            most_pending: app.config.limits.device_pending,
        };
        match device_authorizations::insert(&app.store, &new)? {
            Entered::Waiting => {}
            Entered::CodeTaken => continue,
            Entered::TooManyPending => {
                return Err(throttled(Reason::TooManyPendingDevices, CROWDED));
            }
        }
        let page = format!("{}/device", app.issuer().trim_end_matches('/'));
        return Ok(json!({
            "device_code": device_code.expose(),
            "user_code": user_code.to_string(),
            "verification_uri": page,
            "verification_uri_complete": format!("{page}?user_code={user_code}"),
            "expires_in": client.lifetimes.device_code.as_secs(),
            "interval": client.device_interval.as_secs(),
        }));
    }
    Err(Failure::Internal(String::from(
        "no free user code was found",
    )))
}
