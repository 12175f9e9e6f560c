//! `/login`: the page that asks who is there, for one sealed request; and the account chooser of `prompt=select_account`.
//! The tenant of a sign-in comes from that request, never from the form.

use super::answers::{self, Presentation};
use super::cookies;
use super::device_visit::DeviceVisit;
use super::errand::{AccountVisit, Errand};
use super::form_tokens::{self, Form};
use super::present_session::PresentSession;
use super::sealed_address;
use super::sign_in;
use super::visit::{Next, Visit};
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::password_sign_in::{Attempt, Outcome, attempt, record_failure};
use crate::crypto::random;
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::frame::Account;
use crate::pages::login::{LoginProblem, LoginView};
use crate::protocol::interaction::Step;
use crate::protocol::lengths;
use crate::protocol::parameters::Parameters;
use crate::protocol::reason::Reason;
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::secret::{SecretBytes, SecretText};

/// Everything this page works on.
struct LoginPage<'a> {
    app: &'a App,
    request: &'a Request,
    errand: Errand<'a>,
    present: Option<&'a PresentSession>,
}

/// Shows the page, or takes its form.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let opened = sealed_address::open(app, request)?;
    match opened.request.purpose {
        SealedPurpose::Authorize => answer(app, request, Errand::Authorize(&Visit::resume(app, opened)?)),
        SealedPurpose::Account => answer(app, request, Errand::Account(&AccountVisit::resume(app, opened)?)),
        SealedPurpose::Device if request.method == Method::Post => {
            answer(app, request, Errand::Device(&DeviceVisit::resume(app, &opened)?))
        }
        // An address alone does not lead past the page that asks for the code.
        SealedPurpose::Device => Ok(answers::see_other(sealed_address::page(app, "/device", &opened.sealed))),
        SealedPurpose::Link | SealedPurpose::Logout => Err(sealed_address::invalid()),
    }
}

fn answer(app: &App, request: &Request, errand: Errand<'_>) -> Result<Response, Failure> {
    let present = PresentSession::find(app, request).map_err(|failure| errand.silent(failure))?;
    let page = LoginPage { app, request, errand, present: present.as_ref() };
    match request.method {
        Method::Post => page.take(),
        Method::Get | Method::Head | Method::Options | Method::Other => page.show(),
    }
}

/// The form, as the answer to something sent from another page.
pub fn ask(app: &App, request: &Request, errand: Errand<'_>, present: Option<&PresentSession>) -> Response {
    LoginPage { app, request, errand, present }.draw(200, "", None)
}

impl LoginPage<'_> {
    /// The page, unless the request needs another one or none.
    fn show(&self) -> Result<Response, Failure> {
        let next = self.errand.next(self.app, self.request, self.present, Step::Arrival);
        let next = next.map_err(|failure| self.errand.silent(failure))?;
        // Who asked for a fresh sign-in gets one at every showing: going back to this page is not signing in.
        let next = if self.errand.wants_fresh_sign_in() { Next::Login } else { next };
        match (next, self.present) {
            (Next::SelectAccount, Some(present)) => Ok(self.draw_chooser(present)),
            (Next::Login | Next::SelectAccount, _) => {
                self.errand.require_password_form()?;
                Ok(self.draw(200, self.errand.login_hint(), None))
            }
            (Next::Consent { .. }, _) => Ok(answers::see_other(self.errand.page(self.app, "/consent"))),
            (Next::Answer(_), _) if self.request.method == Method::Head => Ok(answers::nothing_to_show()),
            (Next::Answer(response), _) => Ok(response),
        }
    }

    /// Takes the form: a decision on the chooser, a cancellation, or user name and password.
    fn take(&self) -> Result<Response, Failure> {
        let form = form_tokens::read_post(self.app, self.request)?;
        let posted = form.single("form_token").map_err(Failure::bad_request)?;
        let decision = form.single("decision").map_err(Failure::bad_request)?;
        let of_chooser = self.present.is_some_and(|present| {
            let session = &present.handle.random;
            form_tokens::matches(self.app, Form::SelectAccount, self.errand.sealed(), Some(session), posted)
        });
        let browser = cookies::pre_session(&self.app.config, self.request);
        let of_login = form_tokens::matches(self.app, Form::Login, self.errand.sealed(), browser.as_ref(), posted);
        match (decision, self.present) {
            (Some("cancel"), _) if of_chooser || of_login => self.errand.cancelled(self.app),
            (Some("continue"), Some(present)) if of_chooser => self.go_on_as(present),
            (Some("another"), Some(_)) if of_chooser => Ok(self.draw(200, "", None)),
            (None, _) if of_login => self.sign_in(&form),
            (Some(_) | None, _) if of_login => Err(Failure::bad_request(Reason::UnknownPageAction)),
            (Some(_) | None, _) => {
                let mut response = self.draw(200, typed_username(&form), Some(LoginProblem::PageExpired));
                response.note.reason = Some(Reason::PageExpired.code());
                Ok(response)
            }
        }
    }

    fn go_on_as(&self, present: &PresentSession) -> Result<Response, Failure> {
        let next = self.errand.next(self.app, self.request, Some(present), Step::AfterAccountChosen)?;
        match (next, self.errand) {
            // Drawn here and not redirected to: its address alone does not say that the account was chosen.
            (Next::Consent { may_remember }, Errand::Authorize(visit)) => {
                super::consent::draw(self.app, self.request, visit, present, may_remember, false)
            }
            (Next::Login | Next::SelectAccount | Next::Consent { .. }, _) => Ok(self.draw(200, "", None)),
            (Next::Answer(response), _) => Ok(response),
        }
    }

    fn sign_in(&self, form: &Parameters) -> Result<Response, Failure> {
        self.errand.require_password_form()?;
        let username = form.bounded("username", lengths::USERNAME).map_err(Failure::bad_request)?;
        let password = form.single("password").map_err(Failure::bad_request)?;
        if password.is_some_and(|password| password.len() > lengths::PASSWORD_BYTES) {
            return Err(Failure::bad_request(Reason::OverlongParameter));
        }
        match (username, password) {
            (Some(username), Some(password)) => self.try_password(username, &SecretText::new(password)),
            (None, Some(_)) => Ok(self.draw(200, "", Some(LoginProblem::UsernameMissing))),
            (Some(username), None) => Ok(self.draw(200, username, Some(LoginProblem::PasswordMissing))),
            (None, None) => Ok(self.draw(200, "", Some(LoginProblem::BothMissing))),
        }
    }

    fn try_password(&self, username: &str, password: &SecretText) -> Result<Response, Failure> {
        let tenant = self.errand.tenant();
        let source = self.request.source;
        match attempt(self.app, &Attempt { tenant, username, password, source })? {
            Outcome::Accepted { user, read_at } => {
                sign_in::complete(self.app, self.request, self.errand, self.present, (*user, read_at))
            }
            Outcome::Wrong => {
                record_failure(self.app, self.request, self.errand.client_id())?;
                let mut response = self.draw(200, username, Some(LoginProblem::WrongCredentials));
                response.note.reason = Some(Reason::WrongPassword.code());
                Ok(response)
            }
            Outcome::Throttled(wait) => {
                let minutes = u32::try_from(wait.as_secs().div_ceil(60).max(1)).unwrap_or(u32::MAX);
                let mut response = self.draw(429, username, Some(LoginProblem::TooManyAttempts { minutes }));
                response.note.reason = Some(Reason::TooManySignInFailures.code());
                Ok(response.header("Retry-After", wait.as_secs().max(1).to_string()))
            }
        }
    }

    /// Draws the form, and gives the browser the value that ties the form to it unless it has one.
    fn draw(&self, status: u16, username: &str, problem: Option<LoginProblem>) -> Response {
        let known = cookies::pre_session(&self.app.config, self.request);
        let browser = known.clone().unwrap_or_else(|| SecretBytes::new(random::bytes::<16>()));
        let token = form_tokens::issue(self.app, Form::Login, self.errand.sealed(), &browser);
        let response = self.page(status, username, problem, &token, None);
        if known.is_some() { response } else { cookies::set_pre_session(&self.app.config, response, &browser) }
    }

    fn draw_chooser(&self, present: &PresentSession) -> Response {
        let token = form_tokens::issue(self.app, Form::SelectAccount, self.errand.sealed(), &present.handle.random);
        let account = Account { name: present.display_name(), username: &present.user.username };
        self.page(200, "", None, &token, Some(account))
    }

    fn page(
        &self,
        status: u16,
        username: &str,
        problem: Option<LoginProblem>,
        form_token: &str,
        present_account: Option<Account<'_>>,
    ) -> Response {
        let presentation = Presentation { config: &self.app.config, request: self.request };
        let action = self.errand.page(self.app, "/login");
        let action = match self.errand {
            Errand::Authorize(_) => action,
            Errand::Account(_) | Errand::Device(_) => presentation.in_its_language(action),
        };
        let markup = presentation.draw(self.errand.ui_locales(), |chrome| {
            pages::login::page(&LoginView {
                chrome,
                action: &action,
                form_token,
                client: self.errand.client_view(),
                tenant: self.errand.tenant_display_name(),
                username,
                problem,
                present_account,
            })
        });
        let mut response = answers::form_page(status, markup);
        response.note.client_id = self.errand.client_id().map(ToString::to_string);
        response
    }
}

fn typed_username(form: &Parameters) -> &str {
    form.bounded("username", lengths::USERNAME).ok().flatten().unwrap_or_default()
}
