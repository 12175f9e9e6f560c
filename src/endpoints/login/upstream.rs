//! From the login page to an identity provider, and back to it when nobody was signed in there.

use super::LoginPage;
use super::draw::Showing;
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation, WayBack};
use crate::endpoints::external::{self, Purpose};
use crate::endpoints::present_session::PresentSession;
use crate::endpoints::visit::Visit;
use crate::http::{Request, Response};
use crate::pages::error::Problem;
use crate::pages::login::LoginProblem;
use crate::protocol::authorize_request::{Ending, Refusal};
use crate::protocol::reason::Reason;
use crate::protocol::upstream::UpstreamProblem;
use crate::protocol::upstream::way_out::{WayOut, way_out};

/// Sends the person straight to an identity provider, past the login page.
pub fn straight_to(app: &App, request: &Request, visit: &Visit, provider: &str) -> Result<Response, Failure> {
    LoginPage { app, request, visit, present: None, someone_else: false }.depart(provider)
}

/// Answers a sign-in that failed upstream.
pub fn after_upstream(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: Option<&PresentSession>,
    provider: &str,
    problem: &UpstreamProblem,
) -> Result<Response, Failure> {
    LoginPage { app, request, visit, present, someone_else: false }.after(provider, problem)
}

impl LoginPage<'_> {
    /// The button of a provider was pressed.
    pub(super) fn choose(self, provider: &str) -> Result<Response, Failure> {
        if self.visit.choices().offers(provider) {
            return self.depart(provider);
        }
        Err(Failure::bad_request(Reason::UnknownPageAction))
    }

    pub(super) fn depart(self, provider: &str) -> Result<Response, Failure> {
        let purpose = Purpose::SignIn { visit: self.visit, someone_else: self.someone_else };
        match external::depart(self.app, self.request, purpose, provider)? {
            Ok(response) => Ok(self.visit.noted(response)),
            Err(problem) => self.after(provider, &problem),
        }
    }

    fn after(self, provider: &str, problem: &UpstreamProblem) -> Result<Response, Failure> {
        let reason = problem.reason();
        let concerned = (provider, reason);
        self.app.note_upstream_failure(
            external::FAILED,
            self.request,
            self.visit.request.client_id.as_ref(),
            concerned,
        );
        let has_client = matches!(self.visit.request.ending, Ending::Client(_));
        match way_out(problem, provider, &self.visit.choices(), has_client) {
            WayOut::TellClient(refusal) => {
                Err(self.visit.refuse(Refusal { detail: Some(problem.detail(provider)), ..refusal }))
            }
            WayOut::ChooseAgain => {
                // Refused where meanwhile there is nothing left to choose from.
                self.visit.to_sign_in()?;
                let page = self.draw(Showing { problem: sentence(problem), ..Showing::fresh("") });
                Ok(noted(page, provider, problem))
            }
            WayOut::Page => {
                let presentation = Presentation { config: &self.app.config, request: self.request };
                let sign_in = self.visit.page(self.app, "/login");
                let way_back = WayBack { sign_in: &sign_in, ui_locales: self.visit.ui_locales() };
                let page = answers::error_page_with(&presentation, Problem::NotBelieved, reason, Some(way_back));
                Ok(self.visit.noted(noted(page, provider, problem)))
            }
        }
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
