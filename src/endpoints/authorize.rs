//! `/connect/authorize` (OpenID Connect Core §3.1.2): takes a request in.

pub mod consent;

use super::answers;
use super::forms::require_form;
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::turn::Opening;
use crate::endpoints::visit::Visit;
use crate::http::{Method, Request};
use crate::protocol::words::parameters::Parameters;

pub fn open(app: &App, request: &Request) -> Result<Opening, Failure> {
    if request.method == Method::Post {
        // A post from another site carries no Lax cookie: the session is looked at one GET later,
        // on a page of ours.
        require_form(request, 415)?;
        let parameters = Parameters::parse(&request.body)?;
        let visit = Visit::begin(app, &parameters)?;
        return Ok(Opening::Answer(answers::see_other(
            visit.page(app, "/login"),
        )));
    }
    let parameters = Parameters::parse(request.query.as_bytes())?;
    Ok(Opening::Visit(Box::new(Visit::begin(app, &parameters)?)))
}
