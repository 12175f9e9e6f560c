//! `/login`: the page that asks who is there, for one sealed request: user name and password, or another service to sign in
//! with; and the account chooser of `prompt=select_account`. The tenant of a sign-in comes from that request, never from the
//! form; so does which services there are to choose from.

mod draw;
mod upstream;

use super::answers;
use super::cookies;
use super::form_tokens::{self, Form};
use super::present_session::PresentSession;
use super::sealed_address;
use super::sign_in::{self, Proof};
use super::visit::{Next, Visit};
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::password_sign_in::{Attempt, Outcome, attempt, record_failure};
use crate::http::{Method, Request, Response};
use crate::pages::login::LoginProblem;
use crate::protocol::authorize_request::Ending;
use crate::protocol::interaction::Step;
use crate::protocol::lengths;
use crate::protocol::parameters::Parameters;
use crate::protocol::reason::Reason;
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::secret::SecretText;

use draw::Showing;

pub use upstream::{after_upstream, straight_to};

/// The field, and the parameter of the address.
const SOMEONE_ELSE: &str = "someone_else";

/// Everything this page works on.
#[derive(Clone, Copy)]
struct LoginPage<'a> {
    app: &'a App,
    request: &'a Request,
    visit: &'a Visit,
    present: Option<&'a PresentSession>,
    /// They said that they are not whom this browser knows.
    someone_else: bool,
}

/// Shows the page, or takes its form.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let opened = sealed_address::open(app, request)?;
    // An address alone does not lead past the page that asks for the code.
    if request.method != Method::Post && matches!(opened.request.purpose, SealedPurpose::Device(_)) {
        return Ok(answers::see_other(sealed_address::page(app, "/device", &opened.sealed)));
    }
    let visit = &Visit::resume(app, opened)?;
    let present = PresentSession::find(app, request).map_err(|failure| visit.silent(failure))?;
    let query = Parameters::parse(request.query.as_bytes()).unwrap_or_default();
    let someone_else = query.single(SOMEONE_ELSE).is_ok_and(|said| said.is_some());
    let page = LoginPage { app, request, visit, present: present.as_ref(), someone_else };
    match request.method {
        Method::Post => page.take(),
        Method::Get | Method::Head | Method::Options | Method::Other => page.show(),
    }
}

/// The address of this page for a person who shall be asked who they are, whomever this browser knows, here or upstream.
pub fn as_someone_else(address: String) -> String {
    format!("{address}&{SOMEONE_ELSE}=true")
}

/// The sign-in, as the answer to something sent from another page.
pub fn ask(app: &App, request: &Request, visit: &Visit) -> Result<Response, Failure> {
    LoginPage { app, request, visit, present: None, someone_else: false }.begin("")
}

/// The same for a person who says that they are not whom this browser knows.
pub fn ask_someone_else(app: &App, request: &Request, visit: &Visit) -> Result<Response, Failure> {
    LoginPage { app, request, visit, present: None, someone_else: true }.begin("")
}

impl LoginPage<'_> {
    /// The page, unless the request needs another one or none.
    fn show(self) -> Result<Response, Failure> {
        let next = self.visit.next(self.app, self.request, self.present, Step::Arrival);
        let next = next.map_err(|failure| self.visit.silent(failure))?;
        // Who asked for a fresh sign-in gets one at every showing: going back to this page is not signing in.
        let next = if self.someone_else || self.visit.wants_fresh_sign_in() { Next::Login } else { next };
        match (next, self.present) {
            (Next::SelectAccount, Some(present)) => Ok(self.draw_chooser(present)),
            (Next::Login | Next::Upstream(_) | Next::SelectAccount, _) => {
                self.begin(self.visit.request.login_hint.as_deref().unwrap_or_default())
            }
            (Next::Consent { .. }, _) => Ok(answers::see_other(self.visit.page(self.app, "/consent"))),
            (Next::Answer(_), _) if self.request.method == Method::Head => Ok(answers::nothing_to_show()),
            (Next::Answer(response), _) => Ok(response),
        }
    }

    /// The form; or, where there is nothing to choose, straight to the provider.
    fn begin(self, username: &str) -> Result<Response, Failure> {
        match self.visit.to_sign_in()? {
            Next::Upstream(provider) => self.depart(&provider),
            Next::Login | Next::SelectAccount | Next::Consent { .. } | Next::Answer(_) => {
                Ok(self.draw(Showing::fresh(username)))
            }
        }
    }

    /// Takes the form: a decision on the chooser, a cancellation, another service, or user name and password.
    fn take(self) -> Result<Response, Failure> {
        let form = form_tokens::read_post(self.app, self.request)?;
        let posted = form.single("form_token").map_err(Failure::bad_request)?;
        let decision = form.single("decision").map_err(Failure::bad_request)?;
        let someone_else = form.single(SOMEONE_ELSE).map_err(Failure::bad_request)?.is_some();
        let page = LoginPage { someone_else, ..self };
        let of_chooser = self.present.is_some_and(|present| {
            let session = &present.handle.random;
            form_tokens::matches(self.app, Form::SelectAccount, &self.visit.sealed, Some(session), posted)
        });
        let browser = cookies::pre_session(&self.app.config, self.request);
        let of_login = form_tokens::matches(self.app, Form::Login, &self.visit.sealed, browser.as_ref(), posted);
        match (decision, self.present) {
            (Some("cancel"), _) if of_chooser || of_login => self.cancel(),
            (Some("continue"), Some(present)) if of_chooser => self.go_on_as(present),
            (Some("another"), Some(_)) if of_chooser => LoginPage { someone_else: true, ..self }.begin(""),
            (None, _) if of_login => page.sign_in(&form),
            (Some(_) | None, _) if of_login => Err(Failure::bad_request(Reason::UnknownPageAction)),
            (Some(_) | None, _) => {
                let mut response = page.draw(Showing::again(typed_username(&form), LoginProblem::PageExpired));
                response.note.reason = Some(Reason::PageExpired.code());
                Ok(response)
            }
        }
    }

    /// The person changed their mind.
    fn cancel(self) -> Result<Response, Failure> {
        let path = self.app.config.base_url.path();
        match self.visit.request.ending {
            Ending::Client(_) => Err(self.visit.denied()),
            Ending::Device(_) => Ok(answers::see_other(format!("{path}/device"))),
            Ending::Account { .. } => Ok(answers::see_other(format!("{path}/"))),
        }
    }

    fn go_on_as(self, present: &PresentSession) -> Result<Response, Failure> {
        let next = self.visit.next(self.app, self.request, Some(present), Step::AfterAccountChosen)?;
        match next {
            // Drawn here and not redirected to: its address alone does not say that the account was chosen.
            Next::Consent { may_remember } => {
                Ok(super::consent::draw(self.app, self.request, self.visit, present, may_remember, false))
            }
            Next::Login | Next::Upstream(_) | Next::SelectAccount => self.begin(""),
            Next::Answer(response) => Ok(response),
        }
    }

    fn sign_in(self, form: &Parameters) -> Result<Response, Failure> {
        if let Some(provider) = form.single("identity_provider").map_err(Failure::bad_request)? {
            return self.choose(provider);
        }
        self.visit.to_sign_in()?;
        if !self.visit.choices().password {
            return Err(Failure::bad_request(Reason::UnknownPageAction));
        }
        let username = form.bounded("username", lengths::USERNAME).map_err(Failure::bad_request)?;
        let password = form.single("password").map_err(Failure::bad_request)?;
        if password.is_some_and(|password| password.len() > lengths::PASSWORD_BYTES) {
            return Err(Failure::bad_request(Reason::OverlongParameter));
        }
        match (username, password) {
            (Some(username), Some(password)) => self.try_password(username, &SecretText::new(password)),
            (None, Some(_)) => Ok(self.draw(Showing::again("", LoginProblem::UsernameMissing))),
            (Some(username), None) => Ok(self.draw(Showing::again(username, LoginProblem::PasswordMissing))),
            (None, None) => Ok(self.draw(Showing::again("", LoginProblem::BothMissing))),
        }
    }

    fn try_password(self, username: &str, password: &SecretText) -> Result<Response, Failure> {
        let tenant = self.visit.request.acr_values.tenant.as_ref();
        let source = self.request.source;
        match attempt(self.app, &Attempt { tenant, username, password, source, client_id: None })? {
            Outcome::Accepted(found) => {
                let proof = Proof::password();
                sign_in::complete(self.app, self.request, self.visit, self.present, *found, &proof)
            }
            Outcome::Wrong => {
                record_failure(self.app, self.request, self.visit.request.client_id.as_ref());
                let mut response = self.draw(Showing::again(username, LoginProblem::WrongCredentials));
                response.note.reason = Some(Reason::WrongPassword.code());
                Ok(response)
            }
            Outcome::Throttled(wait) => {
                self.app.note_turned_away(self.request);
                let minutes = answers::minutes(wait);
                let showing = Showing::again(username, LoginProblem::TooManyAttempts { minutes });
                let mut response = self.draw(Showing { status: 429, ..showing });
                response.note.reason = Some(Reason::TooManySignInFailures.code());
                Ok(response.header("Retry-After", wait.as_secs().max(1).to_string()))
            }
        }
    }
}

fn typed_username(form: &Parameters) -> &str {
    form.bounded("username", lengths::USERNAME).ok().flatten().unwrap_or_default()
}
