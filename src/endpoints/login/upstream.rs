//! From the login page to an identity provider, and back to it when nobody was signed in there.

use super::LoginPage;
use super::draw::Showing;
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation, WayBack};
use crate::endpoints::errand::Errand;
use crate::endpoints::external::{self, Purpose};
use crate::endpoints::present_session::PresentSession;
use crate::http::{Request, Response};
use crate::pages::error::Problem;
use crate::pages::login::LoginProblem;
use crate::protocol::authorize_request::Refusal;
use crate::protocol::reason::Reason;
use crate::protocol::upstream::UpstreamProblem;
use crate::protocol::upstream::way_out::{WayOut, way_out};

/// Sends the person straight to an identity provider, past the login page.
pub fn straight_to(app: &App, request: &Request, errand: Errand<'_>, provider: &str) -> Result<Response, Failure> {
    LoginPage { app, request, errand, present: None, someone_else: false }.depart(provider)
}

/// Answers a sign-in that failed upstream.
pub fn after_upstream(
    app: &App,
    request: &Request,
    errand: Errand<'_>,
    present: Option<&PresentSession>,
    provider: &str,
    problem: &UpstreamProblem,
) -> Result<Response, Failure> {
    LoginPage { app, request, errand, present, someone_else: false }.after(provider, problem)
}

impl LoginPage<'_> {
    /// The button of a provider was pressed.
    pub(super) fn choose(self, provider: &str) -> Result<Response, Failure> {
        if self.errand.choices().offers(provider) {
            return self.depart(provider);
        }
        Err(Failure::bad_request(Reason::UnknownPageAction))
    }

    pub(super) fn depart(self, provider: &str) -> Result<Response, Failure> {
        let purpose = match self.someone_else {
            true => Purpose::SignInAsSomeoneElse(self.errand),
            false => Purpose::SignIn(self.errand),
        };
        match external::depart(self.app, self.request, purpose, provider)? {
            Ok(response) => Ok(self.about_client(response)),
            Err(problem) => self.after(provider, &problem),
        }
    }

    fn after(self, provider: &str, problem: &UpstreamProblem) -> Result<Response, Failure> {
        let reason = problem.reason();
        let concerned = (provider, reason);
        self.app.note_upstream_failure(external::FAILED, self.request, self.errand.client_id(), concerned);
        let has_client = matches!(self.errand, Errand::Authorize(_));
        match (way_out(problem, provider, &self.errand.choices(), has_client), self.errand) {
            (WayOut::TellClient(refusal), Errand::Authorize(visit)) => {
                Err(visit.refuse(Refusal { detail: Some(problem.detail(provider)), ..refusal }))
            }
            (WayOut::ChooseAgain | WayOut::TellClient(_), _) => {
                // Refused where meanwhile there is nothing left to choose from.
                self.errand.to_sign_in()?;
                let page = self.draw(Showing { problem: sentence(problem), ..Showing::fresh("") });
                Ok(noted(page, provider, problem))
            }
            (WayOut::Page, _) => {
                let presentation = Presentation { config: &self.app.config, request: self.request };
                let sign_in = self.errand.page(self.app, "/login");
                let way_back = WayBack { sign_in: &sign_in, ui_locales: self.errand.ui_locales() };
                let page = answers::error_page_with(&presentation, Problem::NotBelieved, reason, Some(way_back));
                let page = noted(page, provider, problem);
                Ok(self.about_client(page))
            }
        }
    }

    fn about_client(self, mut response: Response) -> Response {
        response.note.client_id = self.errand.client_id().map(ToString::to_string);
        response
    }
}

fn noted(mut response: Response, provider: &str, problem: &UpstreamProblem) -> Response {
    response.note.reason = Some(problem.reason().code());
    response.note.detail = Some(problem.detail(provider));
    response
}

fn sentence(problem: &UpstreamProblem) -> Option<LoginProblem> {
    match problem {
        UpstreamProblem::Cancelled => Some(LoginProblem::UpstreamCancelled),
        UpstreamProblem::LoginRequired => Some(LoginProblem::UpstreamLoginRequired),
        UpstreamProblem::Busy | UpstreamProblem::Unavailable(_) => Some(LoginProblem::UpstreamUnavailable),
        UpstreamProblem::NotBelieved(_) => None,
    }
}
