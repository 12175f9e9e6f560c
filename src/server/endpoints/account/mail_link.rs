//! A link that Gatepost sent, at `/account/link`: to people who forgot their password, and to those
//! who are invited. Opening it changes nothing, since mail scanners open links, too. Whoever has a
//! second factor shows it before the form: the mailbox alone sets no password of theirs.

use serde_json::json;

use super::password_link::{
    self, PAGE, hash_unless_present, name_of, over, problem_of, sealed_sign_in_of, used,
};
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::letters::AccountChange;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::cookies::Browser;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::second_factor::{self, ask_at, posted_ticket, show_code};
use crate::endpoints::login::{after_mail_link, passkey};
use crate::endpoints::notices;
use crate::endpoints::visit::{self, Opened, Turn, Visit};
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::account::AccountProblem;
use crate::pages::frame::PageForm;
use crate::pages::second_factor::FactorProblem;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::login::mail_link::{MailLink, MailLinkOrigin};
use gatepost_protocol::login::password_link::FORM_LIFETIME;
use gatepost_protocol::login::second_factor::tie;
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_protocol::words::strength::Strength;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::users::{self, CurrentUser};

pub(super) use gatepost_protocol::login::mail_link::PREFIX;

/// Takes the link out of the address: on to the form, for this browser. `None` where it is over.
pub(super) fn enter(
    app: &App,
    presentation: Presentation<'_>,
    text: &str,
) -> Result<Option<Response>, Failure> {
    let opened = app.vault.mail_links.open_text::<MailLink>(PREFIX, text);
    let Some(link) = opened else {
        return Ok(None);
    };
    if user(app, &link)?.is_none() {
        return Ok(None);
    }
    let browser = Browser::of(&app.config, presentation.request);
    let response = answers::see_other(form_address(app, presentation, link, &browser.value, false));
    Ok(Some(browser.carried_by(&app.config, response)))
}

fn form_address(
    app: &App,
    presentation: Presentation<'_>,
    link: MailLink,
    browser: &SecretBytes,
    factor_shown: bool,
) -> String {
    let purpose = SealedPurpose::MailLink {
        link,
        browser: name_of(browser),
        factor_shown,
    };
    password_link::form_address(app, presentation, purpose)
}

/// The user of the link, while it is good.
fn user(app: &App, link: &MailLink) -> Result<Option<CurrentUser>, Failure> {
    let found = users::find_for_client(&app.store, &link.subject, None)?;
    let Some(found) = found else {
        return Ok(None);
    };
    let is_over = match &link.origin {
        MailLinkOrigin::ByAdministrator(maker) => !app.may_look_after(maker, &found.user)?,
        MailLinkOrigin::ByProgram => app.is_administrator(&found.user.claims),
        MailLinkOrigin::Plain | MailLinkOrigin::OnTheWay(_) => false,
    };
    if is_over {
        return Ok(None);
    }
    let user = found.user.clone().into_core();
    let epoch = found.installation_epoch;
    let stands = link.stands(&user, found.user.factors, epoch, app.now());
    Ok(stands.then_some(found))
}

/// Shows the form of a link that was opened, or takes it.
pub(super) fn handle(
    app: &App,
    request: &Request,
    opened: Opened,
    browser: SecretBytes,
) -> Result<Response, Failure> {
    let presentation = Presentation::of(app, request);
    let is_late = app.now() >= opened.request.received_at.plus(FORM_LIFETIME);
    let SealedPurpose::MailLink {
        link,
        browser: tied,
        factor_shown,
    } = opened.request.purpose
    else {
        return Ok(over(presentation));
    };
    if tied != name_of(&browser) || is_late {
        return Ok(over(presentation));
    }
    let Some(found) = user(app, &link)? else {
        return match request.method {
            // They may have used the link a moment ago.
            Method::Post => used(app, presentation),
            _ => Ok(over(presentation)),
        };
    };
    let open = OpenMailLink {
        app,
        presentation,
        browser,
        sealed: opened.sealed,
        link,
        found,
    };
    open.answer(factor_shown)
}

/// A link that is good, in the browser that opened it.
struct OpenMailLink<'a> {
    app: &'a App,
    presentation: Presentation<'a>,
    browser: SecretBytes,
    sealed: String,
    link: MailLink,
    found: CurrentUser,
}

impl OpenMailLink<'_> {
    fn answer(&self, factor_shown: bool) -> Result<Response, Failure> {
        let needs_factor = self.found.user.strongest_acr > Strength::SignedIn && !factor_shown;
        match (needs_factor, self.presentation.request.method) {
            (true, Method::Post) => self.take_factor(),
            (true, _) => self.ask_factor(None),
            (false, Method::Post) => self.take_password(),
            (false, _) => Ok(self.draw(None)),
        }
    }

    fn action(&self) -> String {
        let address = visit::page_address(self.app, PAGE, &self.sealed);
        self.presentation.in_its_language(address)
    }

    fn turn<'a>(&'a self, visit: &'a Visit) -> Turn<'a> {
        Turn {
            app: self.app,
            request: self.presentation.request,
            visit,
            present: None,
            someone_else: false,
        }
    }

    fn tie(&self) -> [u8; 32] {
        tie(&self.sealed, &self.browser)
    }

    fn ask_factor(&self, problem: Option<FactorProblem>) -> Result<Response, Failure> {
        let visit = Visit::to_account(self.app)?;
        let ticket = second_factor::ticket(self.app, &self.found.user, self.tie());
        ask_at(self.turn(&visit), &self.action(), &ticket, problem)
    }

    /// On to the form, once the factor is right.
    fn take_factor(&self) -> Result<Response, Failure> {
        let visit = &Visit::to_account(self.app)?;
        let turn = self.turn(visit);
        let form = forms::read_post(self.app, self.presentation.request)?;
        let ties = [self.tie()];
        let ticket = posted_ticket(self.app, &form, &ties)?;
        let Some(ticket) = ticket.filter(|one| second_factor::stands(one, &self.found.user)) else {
            return self.ask_factor(None);
        };
        match form.single("decision")? {
            Some("passkey") => match passkey::show(turn, Some(&ticket), &ties, &form)? {
                Ok(_) => Ok(self.go_on()),
                Err(reason) => {
                    let page = self.ask_factor(Some(FactorProblem::PasskeyRefused))?;
                    Ok(answers::noted(page, reason))
                }
            },
            Some(_) => {
                let path = self.app.config.base_url.path();
                Ok(answers::see_other(format!("{path}/")))
            }
            None => match show_code(turn, &self.found, &form)? {
                Ok(()) => Ok(self.go_on()),
                Err(refusal) => {
                    let page = self.ask_factor(Some(refusal.problem))?;
                    Ok(refusal.answer(page))
                }
            },
        }
    }

    fn go_on(&self) -> Response {
        let link = self.link.clone();
        let address = form_address(self.app, self.presentation, link, &self.browser, true);
        answers::see_other(address)
    }

    fn draw(&self, problem: Option<AccountProblem>) -> Response {
        let form = PageForm {
            action: &self.action(),
            token: &forms::issue(self.app, Form::Password, &self.sealed, &self.browser),
        };
        let username = self.found.user.username.as_deref().unwrap_or_default();
        let chrome = self.presentation.chrome("");
        let page = pages::password_link::page(chrome, form, username, problem, None, None);
        answers::form_page(200, page)
    }

    fn take_password(&self) -> Result<Response, Failure> {
        let app = self.app;
        let request = self.presentation.request;
        let form = forms::read_post(app, request)?;
        let new = form.single("new_password")?.unwrap_or_default();
        let again = form.single("new_password_again")?;
        if !forms::matches(
            app,
            Form::Password,
            &self.sealed,
            Some(&self.browser),
            &form,
        ) {
            return Ok(self.draw(Some(AccountProblem::SessionChanged)));
        }
        if let Some(problem) = problem_of(app, new, again) {
            return Ok(self.draw(Some(problem)));
        }
        let present = self.found.user.password_hash.as_ref();
        match hash_unless_present(app, request, present, &SecretText::new(new))? {
            Some(hash) => self.set_password(&hash),
            None => Ok(self.draw(Some(AccountProblem::NewPasswordIsPresent))),
        }
    }

    fn set_password(&self, hash: &SecretText) -> Result<Response, Failure> {
        let app = self.app;
        let request = self.presentation.request;
        let event = AuditEvent {
            event: "password_set_by_link",
            sub: Some(&self.link.subject),
            detail: json!({"by": "user", "link": "mail"}),
            ..AuditEvent::default().by(request.source, &request.id)
        };
        let epochs = Some(self.found.session_epochs());
        let address = stored_address(&self.found.user.claims);
        let subject = &self.link.subject;
        if !users::set_password(&app.store, subject, epochs, hash, address, &event)? {
            return used(app, self.presentation);
        }
        notices::send(
            app,
            &self.presentation,
            &self.found.user,
            AccountChange::Password,
        );
        Ok(answers::see_other(self.sign_in()))
    }

    /// Where they sign in: for the request that they forgot their password on the way to, if it is
    /// still good; else as the user of the link.
    fn sign_in(&self) -> String {
        let app = self.app;
        let username = self.found.user.username.as_deref().unwrap_or_default();
        let waiting = match &self.link.origin {
            MailLinkOrigin::OnTheWay(sealed) => visit::open_text(app, sealed).ok(),
            MailLinkOrigin::Plain
            | MailLinkOrigin::ByAdministrator(_)
            | MailLinkOrigin::ByProgram => None,
        };
        let sealed = match waiting {
            Some(opened) => opened.sealed,
            None => sealed_sign_in_of(app, &self.found.user),
        };
        let address = visit::page_address(app, "/login", &sealed);
        let address = after_mail_link(app, address, username, &sealed);
        self.presentation.in_its_language(address)
    }
}
