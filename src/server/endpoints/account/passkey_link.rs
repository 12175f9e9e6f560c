//! A link from the operator by which somebody makes a passkey. It takes the place of their password
//! and of all their factors. Its page has the address of the links that set a password.

use serde_json::json;

use super::password_link::{OpenLink, form_address, name_of, over, sign_in_of, used, user};
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::letters::AccountChange;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::cookies::Browser;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::{after_passkey_link, new_factor, webauthn};
use crate::endpoints::notices;
use crate::http::Response;
use crate::pages;
use crate::pages::frame::PageForm;
use crate::pages::second_factor::FactorProblem;
use gatepost_protocol::login::mail_link::address_hash;
use gatepost_protocol::login::password_link::{PASSKEY_PREFIX, PasskeyLink};
use gatepost_protocol::login::second_factor::tie;
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::strength::Strength;
use gatepost_store::StoreError;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::authenticators::{self, NewFactors};
use gatepost_store::users::UserRow;

/// Takes the link out of the address: on to the form, for this browser. `None` where it is over.
pub(super) fn enter(
    app: &App,
    presentation: Presentation<'_>,
    text: &str,
) -> Result<Option<Response>, Failure> {
    let opened: Option<PasskeyLink> = app.vault.passkey_links.open_text(PASSKEY_PREFIX, text);
    let Some(link) = opened else {
        return Ok(None);
    };
    let found = user(app, &link.link)?;
    if !found.is_some_and(|found| has_that_address(&found.user, link.address_hash)) {
        return Ok(None);
    }
    let browser = Browser::of(&app.config, presentation.request);
    let purpose = SealedPurpose::SetPasskey {
        link,
        browser: name_of(&browser.value),
    };
    let response = answers::see_other(form_address(app, presentation, purpose));
    Ok(Some(browser.carried_by(&app.config, response)))
}

/// Whether a link that a letter brought is still for the address that it went to.
pub(super) fn has_that_address(user: &UserRow, wanted: Option<[u8; 32]>) -> bool {
    wanted.is_none_or(|wanted| address_hash(&user.claims) == wanted)
}

/// The page that makes the passkey.
pub(super) fn draw(
    open: &OpenLink<'_>,
    problem: Option<FactorProblem>,
) -> Result<Response, Failure> {
    let app = open.app;
    let presentation = open.presentation();
    let Some(party) = webauthn::party(app) else {
        return Ok(over(presentation));
    };
    let user = &open.found.user;
    let name = user.username.as_deref().unwrap_or_default();
    // The passkeys that they have go: the device that has one may make the new one.
    let tie = tie(&open.sealed, &open.browser);
    let options = new_factor::creation(app, user, name, &[], tie, party.id)?;
    let form = PageForm {
        action: &open.action(),
        token: &forms::issue(app, Form::NewFactor, &open.sealed, &open.browser),
    };
    let chrome = presentation.chrome("");
    let page = pages::second_factor::passkey_link_page(chrome, form, name, &options, problem);
    Ok(answers::scripted_page(200, page))
}

/// Takes the passkey.
pub(super) fn take(open: &OpenLink<'_>) -> Result<Response, Failure> {
    let OpenLink {
        app,
        request,
        browser,
        sealed,
        found,
        ..
    } = open;
    let user = &found.user;
    let form = forms::read_post(app, request)?;
    if !forms::matches(app, Form::NewFactor, sealed, Some(browser), &form) {
        return draw(open, Some(FactorProblem::Impossible));
    }
    let made = match new_factor::made(app, request, user, tie(sealed, browser), &form)? {
        Ok(made) => made,
        Err(problem) => return draw(open, Some(problem)),
    };
    let event = AuditEvent {
        event: "passkey_set_by_link",
        sub: Some(&user.sub),
        detail: json!({"by": "user"}),
        ..AuditEvent::default().by(request.source, &request.id)
    };
    let new = NewFactors {
        factors: &[made.factor],
        strongest: Strength::PhishingResistant,
        user_handle: Some(&made.user_handle),
        replaces_all: true,
    };
    match authenticators::add(&app.store, user, &new, None, None, &event) {
        Ok(true) => {}
        Ok(false) => return used(app, open.presentation()),
        // Somebody's passkey already.
        Err(StoreError::Taken(_)) => return draw(open, Some(FactorProblem::PasskeyRefused)),
        Err(error) => return Err(error.into()),
    }
    let presentation = open.presentation();
    notices::send_of_replacement(app, &presentation, user);
    if user.password_hash.is_some() {
        notices::send(app, &presentation, user, AccountChange::PasswordRemoved);
    }
    let address = after_passkey_link(sign_in_of(app, user));
    Ok(answers::see_other(presentation.in_its_language(address)))
}
