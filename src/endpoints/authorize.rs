//! `/connect/authorize` (OpenID Connect Core §3.1.2): takes a request in, and answers it at once
//! where no question is needed; otherwise sends the browser to the page that asks, or straight to
//! the identity provider that it names.

pub mod consent;
pub mod granted;
pub mod present_session;
pub mod visit;

use super::answers;
use super::forms::require_form;
use super::login::LoginPage;
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::visit::{Next, Visit};
use crate::http::{Method, Request, Response};
use crate::protocol::authorize::interaction::Step;
use crate::protocol::words::parameters::Parameters;

/// Answers an authorization request.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    if request.method == Method::Post {
        // A post from another site carries no Lax cookie: the session is looked at one GET later,
        // on a page of ours.
        require_form(request, 415)?;
        let parameters = Parameters::parse(&request.body)?;
        let visit = Visit::begin(app, &parameters)?;
        return Ok(answers::see_other(visit.page(app, "/login")));
    }
    let parameters = Parameters::parse(request.query.as_bytes())?;
    let visit = Visit::begin(app, &parameters)?;
    let present = PresentSession::find(app, request).map_err(|failure| visit.silent(failure))?;
    let next = visit
        .next(app, request, present.as_ref(), Step::Arrival)
        .map_err(|failure| visit.silent(failure))?;
    Ok(visit.noted(match next {
        Next::Upstream(provider) => LoginPage::of(app, request, &visit)
            .with_session(present.as_ref())
            .depart(&provider)?,
        Next::Login | Next::SelectAccount | Next::Stronger(_) => {
            answers::see_other(visit.page(app, "/login"))
        }
        Next::Consent { .. } => answers::see_other(visit.page(app, "/consent")),
        Next::Answer(response) => response,
    }))
}
