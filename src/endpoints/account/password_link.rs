//! `/account/link`: where a link of the operator's leads. Opening it changes nothing, since mail scanners open links, too. It
//! leaves the address at once, for one that is good in this browser alone and for ten minutes; the form there sets the password.

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::account::factors;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::authorize::consent::{self, Form};
use crate::endpoints::authorize::visit;
use crate::endpoints::cookies;
use crate::http::{Method, Request, Response};
use crate::keys::password::PasswordVerdict;
use crate::keys::random;
use crate::pages;
use crate::pages::account::AccountProblem;
use crate::pages::error::Problem;
use crate::pages::frame::PageForm;
use crate::pages::second_factor::{FactorProblem, NewApp};
use crate::protocol::authorize::sealed_request::SealedPurpose;
use crate::protocol::login::password::check_new;
use crate::protocol::login::password_link::{FORM_LIFETIME, PREFIX, PasswordLink};
use crate::protocol::words::acr_values::Strength;
use crate::protocol::words::identifiers;
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::secret::{SecretBytes, SecretText};
use crate::store::audit_events::AuditEvent;
use crate::store::authenticators::{self, Authenticator};
use crate::store::users::{self, CurrentUser};

const PAGE: &str = "/account/link";

/// Takes the link out of the address, shows the form, or takes it.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let presentation = Presentation { config: &app.config, request };
    let over = || Ok(answers::error_page(&presentation, Problem::LinkOver, Reason::LinkOver));
    let known = cookies::pre_session(&app.config, request);
    let query = Parameters::parse(request.query.as_bytes())?;
    if let Ok(Some(text)) = query.bounded("l", parameters::HANDLE) {
        return enter(app, presentation, known, text)?.map_or_else(over, Ok);
    }
    let (Some(browser), Ok(opened)) = (known, visit::open(app, request)) else { return over() };
    let is_late = app.now() >= opened.request.received_at.plus(FORM_LIFETIME);
    let SealedPurpose::SetPassword { link, browser: tied } = opened.request.purpose else { return over() };
    let Some(found) = user(app, &link)?.filter(|_| !is_late && tied == name_of(&browser)) else { return over() };
    let (user, epochs) = (&found.user, found.session_epochs());
    let username = user.username.as_deref().unwrap_or_default();
    let draw = |problem, (before, wrong): (Option<&str>, Option<FactorProblem>)| {
        let action = presentation.in_its_language(visit::page_address(app, PAGE, &opened.sealed));
        let token = consent::issue(app, Form::Password, &opened.sealed, &browser);
        let (chrome, form) = (presentation.chrome(""), PageForm { action: &action, token: &token });
        let page = |new: Option<NewApp<'_>>| {
            answers::form_page(200, pages::password_link::page(chrome, form, username, problem, new, wrong))
        };
        Ok(if link.enrols { factors::with_offer(app, user, before, |new| page(Some(new))) } else { page(None) })
    };
    if request.method != Method::Post {
        return draw(None, (None, None));
    }
    let form = consent::read_post(app, request)?;
    let before = (form.single("app")?, None);
    let (new, again) = (form.single("new_password")?.unwrap_or_default(), form.single("new_password_again")?);
    if !consent::matches(app, Form::Password, &opened.sealed, Some(&browser), &form) {
        return draw(Some(AccountProblem::SessionChanged), before);
    }
    if check_new(new).is_err() {
        return draw(Some(AccountProblem::NewPasswordUnfit), before);
    }
    if again != Some(new) {
        return draw(Some(AccountProblem::NewPasswordsDiffer), before);
    }
    let added = match link.enrols.then(|| factors::shown_right(app, user, &form)).transpose()? {
        None => None,
        Some(Ok(added)) => Some(added),
        Some(Err(problem)) => return draw(None, (before.0, Some(problem))),
    };
    let (turn, new) = (app.take_hashing_turn()?, SecretText::new(new));
    let present = user.password_hash.as_ref();
    if present.is_some() && !link.enrols && turn.verify(present, &new) != PasswordVerdict::Wrong {
        return draw(Some(AccountProblem::NewPasswordIsPresent), before);
    }
    let hash = turn.hash(&new)?;
    drop(turn);
    let event = AuditEvent {
        event: "password_set_by_link",
        sub: Some(&link.subject),
        source: Some(request.source),
        request_id: Some(&request.id),
        detail: json!({"by": "user"}),
        ..AuditEvent::default()
    };
    // As the user of the link and within their tenant, whoever is signed in in this browser.
    let purpose = SealedPurpose::Account {
        tenant: user.tenant.as_ref().map(ToString::to_string),
        ui_locales: None,
        anew: true,
        by_password: true,
    };
    let sign_in = visit::page_address(app, "/login", &visit::seal(app, purpose).sealed);
    let sign_in = presentation.in_its_language(sign_in);
    let Some(added) = added else {
        let is_set = users::set_password(&app.store, &link.subject, Some(epochs), &hash, &event)?;
        return if is_set { Ok(answers::see_other(sign_in)) } else { over() };
    };
    let (codes, rows) = factors::new_recovery_codes(app, &user.sub);
    let all: Vec<Authenticator> = [added].into_iter().chain(rows).collect();
    let reached = (&all[..], Strength::TwoFactors, None);
    if !authenticators::add(&app.store, user, reached, None, Some(&hash), &event)? {
        return over();
    }
    let page = pages::second_factor::recovery_page(presentation.chrome(""), Err(&sign_in), &codes);
    Ok(answers::form_page(200, page))
}

/// Takes the link out of the address: on to the form, for this browser. `None` where it is over.
fn enter(
    app: &App,
    presentation: Presentation<'_>,
    known: Option<SecretBytes>,
    text: &str,
) -> Result<Option<Response>, Failure> {
    let Some(link) = app.vault.password_links.open_text::<PasswordLink>(PREFIX, text) else { return Ok(None) };
    if user(app, &link)?.is_none() {
        return Ok(None);
    }
    let is_known = known.is_some();
    let browser = known.unwrap_or_else(|| SecretBytes::new(random::bytes::<16>()));
    let opened = visit::seal(app, SealedPurpose::SetPassword { link, browser: name_of(&browser) });
    let response = answers::see_other(presentation.in_its_language(visit::page_address(app, PAGE, &opened.sealed)));
    Ok(Some(if is_known { response } else { cookies::set_pre_session(&app.config, response, &browser) }))
}

/// The user of the link, while it is good.
fn user(app: &App, link: &PasswordLink) -> Result<Option<CurrentUser>, Failure> {
    let found = users::find_for_client(&app.store, &link.subject, None)?;
    Ok(found.filter(|CurrentUser { user, installation_epoch, .. }| {
        user.factors == link.factors && link.stands((&user.clone().into_core(), *installation_epoch), app.now())
    }))
}

fn name_of(browser: &SecretBytes) -> String {
    identifiers::encode(&Sha256::digest(browser.expose()))
}
