//! `POST /connect/token` (RFC 6749 §3.2): form, proof, client, grant, in this order.

pub mod assertions;
pub mod client_authentication;
pub mod dpop;
pub mod grants;
pub mod introspection;
pub mod userinfo;

use super::answers;
use super::forms::{refuse_parameters_in_query, require_form};
use crate::app::App;
use crate::app::failure::Result;
use crate::endpoints::token::dpop::authenticate_sender;
use crate::endpoints::token::grants::GrantContext;
use crate::http::{Request, Response};
use gatepost_protocol::token::audience::with_registered_names;
use gatepost_protocol::token::token_request::{self, TokenRequest};
use gatepost_protocol::words::parameters::Parameters;

/// Answers a token request.
pub fn handle(app: &App, request: &Request) -> Result<Response> {
    let parameters = form(request)?;
    app.require_fresh_registry()?;
    let now = app.now();
    let sender = authenticate_sender(app, request, &parameters, now)?;
    dpop::require(&sender)?;
    let client = &sender.client;
    let client_id = &client.client.client_id;
    let grant_type = parameters.single("grant_type").ok().flatten();
    let context = GrantContext {
        app,
        request,
        client,
        proof: sender.proof.as_ref(),
        snapshot: &app.registry.snapshot(),
        now,
    };
    let response =
        grant(context, &parameters).map_err(|failure| failure.about(client_id, grant_type))?;
    let mut response = response.about(client_id);
    response.note.grant = grant_type.map(str::to_owned);
    Ok(dpop::with_nonce(app, &client.client, response, now))
}

fn form(request: &Request) -> Result<Parameters> {
    require_form(request, 400)?;
    let parameters = Parameters::parse(&request.body)?;
    refuse_parameters_in_query(request, &token_request::PARAMETERS)?;
    parameters.refuse_repeated(token_request::SINGLE_PARAMETERS)?;
    Ok(parameters)
}

/// Reads what the client asks for, and calls the grant.
fn grant(context: GrantContext<'_>, parameters: &Parameters) -> Result<Response> {
    let named = with_registered_names(parameters, &context.snapshot.catalogue);
    let has_grant = |name: &str| context.app.has_grant(name);
    let client = &context.client.client;
    let request = TokenRequest::from_form(&named, client, has_grant, context.now)?;
    let answer = grants::handle(context, &request)?;
    Ok(answers::json(200, &answer.members()))
}
