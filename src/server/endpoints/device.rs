//! `/device` (RFC 8628 §3.3): a person brings the code that their device shows, signs in, and
//! decides. An address alone never leads past the page that asks for the code, whoever follows it
//! and whatever it carries.

use std::time::Duration;

use serde_json::{Value, json};

use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::app::guesses::Source;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::bound_session;
use crate::endpoints::cookies::{self, Browser};
use crate::endpoints::current_session::Presence;
use crate::endpoints::forms::{self, Form, refuse_parameters_in_query, require_form};
use crate::endpoints::token::client_authentication::authenticate;
use crate::endpoints::transaction::{self, AuthorizationTransaction, Opening};
use crate::http::{Method, Request, Response};
use crate::keys::random;
use crate::pages;
use crate::pages::form_problem::FormProblem;
use crate::pages::frame::PageForm;
use gatepost_protocol::device::device_code::{
    DeviceAuthorizationRequest, PARAMETERS, PREFIX, SINGLE_PARAMETERS, UserCode,
};
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::client::{Client, GrantType};
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::{Reason, unauthorized_client};
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::device_authorizations::{self, Entered, NewDevice};

/// Asks for the code, or takes it. The address of a page that asked before has it under seal.
pub fn open(app: &App, request: &Request) -> Result<Opening> {
    if request.method == Method::Post {
        return take_code(app, request);
    }
    let code = if has_request(request)? {
        let SealedPurpose::Device(code) = transaction::open(app, request)?.request.purpose else {
            return Err(transaction::invalid());
        };
        Some(code)
    } else {
        let query = request.query_parameters()?;
        let code = query.bounded("user_code", parameters::OTHER)?;
        // Anything but a code is left out: an address must not put words into our page.
        code.and_then(UserCode::parse)
    };
    Ok(Opening::Answer(ask(app, request, code.as_ref())))
}

/// Whether the address has a sealed request: a post to it answers the question about the device.
pub fn has_request(request: &Request) -> Result<bool> {
    Ok(request.query_parameters()?.was_sent("r"))
}

/// Asks for the code. One that is known already is to be held against the device.
pub fn ask(app: &App, request: &Request, code: Option<&UserCode>) -> Response {
    draw(app, request, code, None)
}

fn draw(
    app: &App,
    request: &Request,
    code: Option<&UserCode>,
    problem: Option<FormProblem>,
) -> Response {
    let browser = Browser::of(&app.config, request);
    let presentation = Presentation::of(app, request);
    let form = PageForm {
        chrome: presentation.chrome(""),
        action: presentation.in_its_language(app.config.base_url.path_of("/device")),
        token: forms::issue(app, Form::UserCode, "", &browser.value),
    };
    let code = code.map(|code| code.to_string()).unwrap_or_default();
    let page = pages::consent::user_code_page(&form, &code, problem);
    let page = browser.carried_by(&app.config, answers::form_page(200, page));
    // This page is for anybody. So the session is read only where something may be left of one.
    if bound_session::has_cookie(app, request)
        && matches!(Presence::find(app, request, None), Ok(Presence::Nobody))
    {
        return bound_session::forget(app, request, page, false);
    }
    page
}

fn take_code(app: &App, request: &Request) -> Result<Opening> {
    let form = forms::read_post(app, request)?;
    let typed = form.bounded("user_code", parameters::OTHER)?;
    let code = typed.and_then(UserCode::parse);
    let again = |problem, reason| {
        let page = draw(app, request, code.as_ref(), Some(problem));
        Ok(Opening::Answer(answers::noted(page, reason)))
    };
    let browser = cookies::pre_session(&app.config, request);
    if !forms::matches(app, Form::UserCode, "", browser.as_ref(), &form) {
        return again(FormProblem::UserCodePageExpired, Reason::PageExpired);
    }
    if typed.is_none() {
        return again(FormProblem::UserCodeMissing, Reason::UnknownUserCode);
    }
    // Counted before it is looked at, so that many at once cannot pass the limit.
    let source = Source::of(request.source);
    if let Err(wait) = count(app, source) {
        let problem = FormProblem::TooManyAttempts {
            minutes: answers::minutes(wait),
        };
        let page = draw(app, request, code.as_ref(), Some(problem));
        let page = answers::turned_away(page, Reason::TooManyUserCodes, wait);
        return Ok(Opening::Answer(page));
    }
    let found = code
        .clone()
        .and_then(|code| AuthorizationTransaction::to_device(app, code).transpose());
    let Some(transaction) = found else {
        return again(FormProblem::UserCodeWrong, Reason::UnknownUserCode);
    };
    app.user_code_failures.take_back(&source);
    app.user_code_failures_overall.take_back(&());
    Ok(Opening::AuthorizationTransaction(Box::new(transaction?)))
}

/// Counts a code that was typed, for its source and for all together. Says how long to wait where
/// there were too many.
fn count(app: &App, source: Source) -> Result<(), Duration> {
    app.user_code_failures.count(source, app.now())?;
    app.user_code_failures_overall
        .count((), app.now())
        .inspect_err(|_| app.user_code_failures.take_back(&source))
}

/// How often a user code is drawn that may be taken. There are billions, so a second time is rare.
const DRAWINGS: usize = 8;
/// How long a client waits that has too many devices waiting.
const CROWDED: Duration = Duration::from_secs(60);

/// Answers a device authorization request.
pub fn authorize(app: &App, request: &Request) -> Result<Response> {
    require_form(request, 400)?;
    let parameters = request.form_parameters()?;
    refuse_parameters_in_query(request, &PARAMETERS)?;
    parameters.refuse_repeated(&SINGLE_PARAMETERS)?;
    app.require_fresh_registry()?;
    let client = &authenticate(app, request, &parameters, app.now())?.client;
    let answer = answer(app, request, client, &parameters)
        .map_err(|failure| failure.about(&client.client_id, None))?;
    Ok(answers::json(200, &answer).about(&client.client_id))
}

fn answer(app: &App, request: &Request, client: &Client, parameters: &Parameters) -> Result<Value> {
    if !client.allows_grant(&GrantType::DeviceCode) {
        return Err(unauthorized_client(Reason::UnregisteredGrantType).into());
    }
    let snapshot = app.registry.snapshot();
    let asked = DeviceAuthorizationRequest::from_form(
        parameters,
        client,
        &snapshot.catalogue,
        app.issuer(),
    )?;
    let asking = (client.client_id.clone(), Source::of(request.source));
    let counted = app.device_authorizations.count(asking, app.now());
    counted.map_err(|wait| throttled(Reason::TooManyDeviceAuthorizations, wait))?;
    let device_code = SecretText::new(format!("{PREFIX}{}", random::text::<32>()));
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

fn throttled(reason: Reason, retry_after: Duration) -> Failure {
    Failure::Throttled {
        reason,
        retry_after,
    }
}
