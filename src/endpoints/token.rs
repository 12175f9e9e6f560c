//! `POST /connect/token` (RFC 6749 §3.2): form, client, grant, in this order.

use super::answers;
use super::client_login::{authenticate, require_form};
use crate::app::App;
use crate::app::failure::Failure;
use crate::grants::{self, GrantContext};
use crate::http::{Request, Response};
use crate::protocol::parameters::Parameters;
use crate::protocol::reason::Reason;
use crate::protocol::token_request::{self, TokenRequest, known_parameter_in_query};

/// Answers a token request.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    require_form(request, 400)?;
    let parameters = Parameters::parse(&request.body).map_err(Failure::bad_request)?;
    refuse_parameters_in_query(request, &token_request::PARAMETERS)?;
    app.require_fresh_registry()?;
    let now = app.now();
    let client = authenticate(app, request, &parameters, now)?;
    let answer = TokenRequest::from_form(&parameters, &client.client)
        .map_err(Failure::from)
        .and_then(|token_request| grants::handle(GrantContext { app, request, client: &client, now }, &token_request));
    let client_id = &client.client.client_id;
    let mut response = answers::json(200, &answer.map_err(|failure| failure.of_client(client_id))?.to_json().into());
    response.note.client_id = Some(client_id.to_string());
    response.note.grant = parameters.single("grant_type").ok().flatten().map(str::to_owned);
    Ok(response)
}

/// Parameters in the URL end up in logs: refused even where the body has them too.
pub fn refuse_parameters_in_query(request: &Request, known: &[&str]) -> Result<(), Failure> {
    let query = Parameters::parse(request.query.as_bytes()).map_err(Failure::bad_request)?;
    if known_parameter_in_query(&query, known) { Err(Failure::bad_request(Reason::ParameterInQuery)) } else { Ok(()) }
}
