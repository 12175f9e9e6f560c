//! `/login`: the page that asks who is there, for one sealed request: user name and password, or
//! another service to sign in with; and the account chooser of `prompt=select_account`. The tenant
//! of a sign-in comes from that request, never from the form; so does which services there are to
//! choose from.

pub mod known_browser;
pub mod passkey;
pub mod password;
pub mod second_factor;
pub mod sign_in;

use std::time::Duration;

use super::account::passkeys;
use super::answers::{self, Presentation, WayBack};
use super::cookies;
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::authorize::consent;
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::visit::{self, Next, Visit};
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::password::{Attempt, Outcome, attempt, record_failure};
use crate::endpoints::login::sign_in::Proof;
use crate::endpoints::upstream::{self, Purpose};
use crate::http::{Method, Request, Response};
use crate::keys::random;
use crate::pages;
use crate::pages::error::Problem;
use crate::pages::frame::PageForm;
use crate::pages::login::{AskPasskey, LoginProblem, SignInFor, SignInForm};
use crate::protocol::authorize::authorize_request::{Ending, Refusal};
use crate::protocol::authorize::interaction::Step;
use crate::protocol::login::second_factor::tie;
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::upstream::UpstreamProblem;
use crate::protocol::upstream::choices::{WayOut, way_out};
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::secret::{SecretBytes, SecretText};
use crate::protocol::words::strength::Strength;
use crate::store::StoreError;

/// The field, and the parameter of the address.
const SOMEONE_ELSE: &str = "someone_else";

/// When somebody whose password nobody had the time to look at shall come again.
const BUSY_FOR: Duration = Duration::from_secs(2);

/// Everything this page works on.
#[derive(Clone, Copy)]
pub struct LoginPage<'a> {
    app: &'a App,
    request: &'a Request,
    visit: &'a Visit,
    present: Option<&'a PresentSession>,
    /// They said that they are not whom this browser knows.
    someone_else: bool,
    /// Whether they ticked the box to stay signed in, in a form that is drawn again. `None`: it
    /// shows what their session is.
    ticked: Option<bool>,
}

/// Shows the page, or takes its form.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let opened = visit::open(app, request)?;
    // An address alone does not lead past the page that asks for the code.
    if request.method != Method::Post && matches!(opened.request.purpose, SealedPurpose::Device(_))
    {
        return Ok(answers::see_other(visit::page_address(
            app,
            "/device",
            &opened.sealed,
        )));
    }
    let visit = &Visit::resume(app, opened)?;
    let present = PresentSession::find(app, request).map_err(|failure| visit.silent(failure))?;
    let query = Parameters::parse(request.query.as_bytes()).unwrap_or_default();
    let someone_else = query.single(SOMEONE_ELSE).is_ok_and(|said| said.is_some());
    let page = LoginPage {
        someone_else,
        ..LoginPage::of(app, request, visit).with_session(present.as_ref())
    };
    match request.method {
        Method::Post => page.take(),
        Method::Get | Method::Head | Method::Options | Method::Other => page.show(),
    }
}

/// The address of this page that asks who the person is, even if this browser is signed in, here or
/// upstream.
pub fn as_someone_else(address: String) -> String {
    format!("{address}&{SOMEONE_ELSE}=true")
}

impl<'a> LoginPage<'a> {
    /// As the answer to something sent from another page.
    pub fn of(app: &'a App, request: &'a Request, visit: &'a Visit) -> LoginPage<'a> {
        LoginPage {
            app,
            request,
            visit,
            present: None,
            someone_else: false,
            ticked: None,
        }
    }

    /// In a browser that has this session.
    pub fn with_session(self, present: Option<&'a PresentSession>) -> LoginPage<'a> {
        LoginPage { present, ..self }
    }

    /// For a person who says that they are not whom this browser knows.
    pub fn for_someone_else(self) -> LoginPage<'a> {
        LoginPage {
            someone_else: true,
            ..self
        }
    }

    /// The page, unless the request needs another one or none.
    fn show(self) -> Result<Response, Failure> {
        let next = self
            .visit
            .next(self.app, self.request, self.present, Step::Arrival);
        let next = next.map_err(|failure| self.visit.silent(failure))?;
        // A request for a fresh sign-in gets one each time: going back to this page is not signing
        // in.
        let next = if self.someone_else || self.visit.wants_fresh_sign_in() {
            Next::Login
        } else {
            next
        };
        match (next, self.present) {
            (Next::SelectAccount, Some(present)) => Ok(self.page(200, "", None, Some(present))),
            (Next::Stronger(stronger), Some(present)) => {
                second_factor::in_session(self.app, self.request, self.visit, present, stronger)
            }
            (Next::Login | Next::Upstream(_) | Next::SelectAccount | Next::Stronger(_), _) => {
                self.begin(self.visit.request.login_hint.as_deref().unwrap_or_default())
            }
            (Next::Consent { .. }, _) => {
                Ok(answers::see_other(self.visit.page(self.app, "/consent")))
            }
            (Next::Answer(_), _) if self.request.method == Method::Head => {
                Ok(answers::nothing_to_show())
            }
            (Next::Answer(response), _) => Ok(response),
        }
    }

    /// The form; or, where there is nothing to choose, straight to the provider.
    pub fn begin(self, username: &str) -> Result<Response, Failure> {
        match self.visit.to_sign_in()? {
            Next::Upstream(provider) => self.depart(&provider),
            Next::Login
            | Next::SelectAccount
            | Next::Stronger(_)
            | Next::Consent { .. }
            | Next::Answer(_) => Ok(self.page(200, username, None, None)),
        }
    }

    /// Takes the form: a decision on the chooser, a cancellation, another service, or user name and
    /// password.
    fn take(self) -> Result<Response, Failure> {
        let LoginPage {
            app,
            request,
            visit,
            ..
        } = self;
        let form = forms::read_post(app, request)?;
        let decision = form.single("decision")?;
        let page = LoginPage {
            someone_else: form.single(SOMEONE_ELSE)?.is_some(),
            ..self
        };
        let is_of = |kind, browser| forms::matches(app, kind, &visit.sealed, browser, &form);
        let of_chooser = is_of(
            Form::SelectAccount,
            self.present.map(|present| &present.handle.random),
        );
        let of_login = is_of(
            Form::Login,
            cookies::pre_session(&app.config, request).as_ref(),
        );
        match (decision, self.present) {
            (Some("cancel"), _) if of_chooser || of_login => self.cancelled(),
            (Some("continue"), Some(present)) if of_chooser => self.go_on(present),
            (Some("another"), Some(_)) if of_chooser => self.for_someone_else().begin(""),
            (None, _) if of_login => page.sign_in(&form),
            (Some(_) | None, _) if of_login => Err(Failure::bad_request(Reason::UnknownPageAction)),
            (Some(_) | None, _) => {
                let username = form
                    .bounded("username", parameters::USERNAME)
                    .ok()
                    .flatten()
                    .unwrap_or_default();
                Ok(page.again(username, LoginProblem::PageExpired, Reason::PageExpired))
            }
        }
    }

    fn cancelled(self) -> Result<Response, Failure> {
        let path = self.app.config.base_url.path();
        match self.visit.request.ending {
            Ending::Client(_) => Err(self.visit.denied()),
            Ending::Device(_) => Ok(answers::see_other(format!("{path}/device"))),
            Ending::Account { .. } => Ok(answers::see_other(format!("{path}/"))),
        }
    }

    /// With the session as it is.
    fn go_on(self, present: &PresentSession) -> Result<Response, Failure> {
        let LoginPage {
            app,
            request,
            visit,
            ..
        } = self;
        match visit.next(app, request, Some(present), Step::AfterAccountChosen)? {
            // Drawn here and not redirected to: its address alone does not say that the account was
            // chosen.
            Next::Consent { may_remember } => Ok(consent::draw(
                app,
                request,
                visit,
                present,
                may_remember,
                false,
            )),
            Next::Stronger(stronger) => {
                second_factor::in_session(app, request, visit, present, stronger)
            }
            Next::Login | Next::Upstream(_) | Next::SelectAccount => self.begin(""),
            Next::Answer(response) => Ok(response),
        }
    }

    fn sign_in(self, form: &Parameters) -> Result<Response, Failure> {
        let LoginPage {
            app,
            request,
            visit,
            ..
        } = self;
        if let Some(provider) = form.single("identity_provider")? {
            let offered = visit.choices().offers(provider);
            return if offered {
                self.depart(provider)
            } else {
                Err(Failure::bad_request(Reason::UnknownPageAction))
            };
        }
        visit.to_sign_in()?;
        if !visit.choices().password {
            return Err(Failure::bad_request(Reason::UnknownPageAction));
        }
        let page = LoginPage {
            ticked: Some(form.single("remember")?.is_some()),
            ..self
        };
        let username = form.bounded("username", parameters::USERNAME)?;
        let password = form.single("password")?;
        if password.is_some_and(|password| password.len() > parameters::PASSWORD_BYTES) {
            return Err(Failure::bad_request(Reason::OverlongParameter));
        }
        let (username, password) = match (username, password) {
            (Some(username), Some(password)) => (username, &SecretText::new(password)),
            (None, Some(_)) => {
                return Ok(page.page(200, "", Some(LoginProblem::UsernameMissing), None));
            }
            (Some(username), None) => {
                return Ok(page.page(200, username, Some(LoginProblem::PasswordMissing), None));
            }
            (None, None) => return Ok(page.page(200, "", Some(LoginProblem::BothMissing), None)),
        };
        let tenant = visit.request.acr_values.tenant.as_ref();
        let outcome = attempt(
            app,
            &Attempt {
                tenant,
                username,
                password,
                request,
                client_id: None,
            },
        );
        // Whoever waited in line for too long has no time left for the database.
        if let Err(Failure::Busy | Failure::Unavailable(StoreError::Busy | StoreError::OutOfTime)) =
            outcome
        {
            let response = page.page(503, username, Some(LoginProblem::Busy), None);
            return Ok(answers::retry_after(
                answers::noted(response, Reason::Unavailable),
                BUSY_FOR,
            ));
        }
        match outcome? {
            Outcome::Accepted(found) => {
                let proof = Proof::password(page.ticked);
                match found.user.strongest_acr {
                    Strength::SignedIn => {
                        sign_in::complete(app, request, visit, self.present, *found, &proof)
                    }
                    Strength::TwoFactors | Strength::PhishingResistant => {
                        second_factor::after_password(app, request, visit, &found.user, proof)
                    }
                }
            }
            Outcome::Wrong { user } => {
                record_failure(app, request, visit.client_id(), user.as_ref());
                Ok(page.again(
                    username,
                    LoginProblem::WrongCredentials,
                    Reason::WrongPassword,
                ))
            }
            Outcome::Throttled(wait) => {
                app.note_turned_away(request);
                let problem = LoginProblem::TooManyAttempts {
                    minutes: answers::minutes(wait),
                };
                let response = page.page(429, username, Some(problem), None);
                Ok(answers::retry_after(
                    answers::noted(response, Reason::TooManySignInFailures),
                    wait,
                ))
            }
        }
    }

    /// Tells a person that the application is not open to them; others may use it from here.
    pub fn not_open(self, present: &PresentSession) -> Response {
        answers::noted(
            self.page(403, "", None, Some(present)),
            Reason::NotOpenToUser,
        )
    }

    /// Sends the person to an identity provider.
    pub fn depart(self, provider: &str) -> Result<Response, Failure> {
        let purpose = Purpose::SignIn {
            visit: self.visit,
            someone_else: self.someone_else,
        };
        match upstream::depart(self.app, self.request, purpose, provider)? {
            Ok(response) => Ok(self.visit.noted(response)),
            Err(problem) => self.after(provider, &problem),
        }
    }

    /// Answers a sign-in that failed upstream.
    pub fn after(self, provider: &str, problem: &UpstreamProblem) -> Result<Response, Failure> {
        let LoginPage {
            app,
            request,
            visit,
            ..
        } = self;
        let (reason, detail) = (problem.reason(), Some(problem.detail(provider)));
        let client_id = visit.client_id();
        app.note_upstream_failure(upstream::FAILED, request, client_id, provider, reason);
        let has_client = matches!(visit.request.ending, Ending::Client(_));
        let mut page = match way_out(problem, provider, &visit.choices(), has_client) {
            WayOut::TellClient(refusal) => return Err(visit.refuse(Refusal { detail, ..refusal })),
            WayOut::ChooseAgain => {
                // Refused where meanwhile there is nothing left to choose from.
                visit.to_sign_in()?;
                let sentence = match problem {
                    UpstreamProblem::Cancelled => Some(LoginProblem::UpstreamCancelled),
                    UpstreamProblem::LoginRequired => Some(LoginProblem::UpstreamLoginRequired),
                    UpstreamProblem::Busy | UpstreamProblem::Unavailable(_) => {
                        Some(LoginProblem::UpstreamUnavailable)
                    }
                    UpstreamProblem::NotBelieved(_) => None,
                };
                answers::noted(self.page(200, "", sentence, None), reason)
            }
            WayOut::Page => {
                let presentation = Presentation {
                    config: &app.config,
                    request,
                };
                let way_back = WayBack {
                    sign_in: &visit.page(app, "/login"),
                    ui_locales: visit.ui_locales(),
                };
                let told = (reason, detail.as_deref());
                visit.noted(answers::error_page_with(
                    &presentation,
                    Problem::NotBelieved,
                    told,
                    Some(way_back),
                ))
            }
        };
        page.note.detail = detail;
        Ok(page)
    }

    /// The form once more, and why.
    fn again(self, username: &str, problem: LoginProblem, reason: Reason) -> Response {
        answers::noted(self.page(200, username, Some(problem), None), reason)
    }

    /// Whether the box to stay signed in is drawn ticked: as it was sent, else as the session is.
    /// Who says that they are somebody else begins without.
    fn shows_ticked(self) -> bool {
        let is_remembered = self
            .present
            .is_some_and(|present| present.is_remembered(self.app));
        self.ticked.unwrap_or(is_remembered && !self.someone_else)
    }

    /// Draws the form, and gives the browser the value that ties the form to it unless it has one;
    /// or the chooser, which offers the present account unless the application is closed to it.
    fn page(
        self,
        status: u16,
        username: &str,
        problem: Option<LoginProblem>,
        offered: Option<&PresentSession>,
    ) -> Response {
        let LoginPage {
            app,
            request,
            visit,
            someone_else,
            ..
        } = self;
        let known = cookies::pre_session(&app.config, request);
        let browser = known
            .clone()
            .unwrap_or_else(|| SecretBytes::new(random::bytes::<16>()));
        let form_token = match offered {
            Some(present) => forms::issue(
                app,
                Form::SelectAccount,
                &visit.sealed,
                &present.handle.random,
            ),
            None => forms::issue(app, Form::Login, &visit.sealed, &browser),
        };
        let presentation = Presentation {
            config: &app.config,
            request,
        };
        let address = |page| {
            let address = visit::page_address(app, page, &visit.sealed);
            presentation.in_language_of(address, visit.ui_locales())
        };
        let action = address("/login");
        let to_second_factor = address(second_factor::PAGE);
        let chrome = presentation.chrome(visit.ui_locales());
        let form = PageForm {
            action: &action,
            token: &form_token,
        };
        let purpose = SignInFor {
            request: &visit.request,
            client: visit.registration(),
            catalogue: &visit.snapshot.catalogue,
        };
        let markup = match offered {
            Some(present) => {
                pages::login::chooser_page(chrome, form, purpose, present.account(), status == 200)
            }
            None => {
                let choices = visit.choices();
                let options = || passkeys::request_options(app, tie(&visit.sealed, &browser), &[]);
                let options = choices.password.then(options).flatten();
                let shown = SignInForm {
                    someone_else,
                    username,
                    remember: app
                        .config
                        .remember_session_lifetime
                        .map(|_| self.shows_ticked()),
                    passkey: options.as_deref().map(|options| AskPasskey {
                        action: &to_second_factor,
                        options,
                    }),
                };
                pages::login::page(chrome, form, purpose, &choices, shown, problem)
            }
        };
        let response = visit.noted(answers::scripted_page(status, markup));
        let is_tied = known.is_some() || offered.is_some();
        if is_tied {
            response
        } else {
            cookies::set_pre_session(&app.config, response, &browser)
        }
    }
}
