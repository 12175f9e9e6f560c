//! `POST /connect/par` (RFC 9126): the client authenticates as at the token endpoint, and its
//! request is judged as at the authorization endpoint. No row is written.

use super::answers;
use super::forms::{refuse_parameters_in_query, require_form};
use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::app::metadata_documents::undescribed;
use crate::endpoints::token::dpop::{self, AuthenticatedSender, authenticate_sender};
use crate::http::{Request, Response};
use crate::keys::random;
use gatepost_protocol::authorize::authorize_request::{self, AuthorizeError, AuthorizeRefusal};
use gatepost_protocol::authorize::pushed_request::{
    LIFETIME, LONGEST, PREFIX, PushedRequest, REQUEST_URI,
};
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identifiers::{ClientId, KeyThumbprint};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::{JsonObject, SetMember};
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::{AuthorizeErrorCode, Reason, TokenErrorCode};

/// The parameters of a pushed request that are secret.
const CREDENTIALS: [&str; 2] = ["client_secret", "client_assertion"];

/// Answers a pushed request with its `request_uri`.
pub fn handle(app: &App, request: &Request) -> Result<Response> {
    if !app.config.pushed_requests {
        let code = TokenErrorCode::InvalidRequest;
        return Err(Failure::refused(404, code, Reason::NotFound));
    }
    require_form(request, 400)?;
    let parameters = request.form_parameters().map_err(Failure::bad_request)?;
    refuse_parameters_in_query(request, &CREDENTIALS)?;
    app.require_fresh_registry()?;
    let now = app.now();
    let sender = authenticate_sender(app, request, &parameters, now)?;
    let client = app
        .described(&sender.client)
        .map_err(|problem| undescribed(&problem, &sender.client.client.client_id))?;
    let client_id = &client.client.client_id;
    let completed = completed(&sender, &parameters);
    let parameters =
        completed.map_err(|reason| dpop::refused(app, reason, None, &client.client, now))?;
    let catalogue = &app.registry.snapshot().catalogue;
    let judged = judge(&parameters, &client.client, catalogue, now);
    if let Err(refusal) = judged {
        return Ok(refused(app, client_id, &refusal));
    }
    let pushed = PushedRequest {
        id: random::bytes(),
        client_id: client_id.clone(),
        expires_at: now.plus(LIFETIME),
        parameters: authorize_request::known(&parameters),
    };
    let sealed = app.vault.pushed_requests.seal_text(PREFIX, &pushed);
    let request_uri = format!("{REQUEST_URI}{sealed}");
    if request_uri.len() > LONGEST {
        let code = AuthorizeErrorCode::InvalidRequest;
        let refusal = AuthorizeRefusal::new(code, Reason::PushedRequestTooLong);
        return Ok(refused(app, client_id, &refusal));
    }
    let mut answer = JsonObject::new();
    answer.set("request_uri", request_uri);
    answer.set("expires_in", LIFETIME.as_secs());
    let response = answers::json(201, &answer).about(client_id);
    Ok(dpop::with_nonce(app, &client.client, response, now))
}

/// Judges the request as the authorization endpoint does, but for a `request_uri`, which cannot be
/// pushed (RFC 9126 §2.1). There is no page: each refusal is an answer to the client.
fn judge(
    parameters: &Parameters,
    client: &Client,
    catalogue: &Catalogue,
    now: Instant,
) -> Result<(), AuthorizeRefusal> {
    let code = AuthorizeErrorCode::InvalidRequest;
    if parameters.was_sent("request_uri") {
        return Err(AuthorizeRefusal::new(code, Reason::RequestUriUnsupported));
    }
    match authorize_request::validate(parameters, client, catalogue, now) {
        Ok(_) => Ok(()),
        Err(AuthorizeError::Page { reason, detail, .. }) => Err(AuthorizeRefusal {
            code,
            reason,
            detail,
        }),
        Err(AuthorizeError::Redirect(_, refusal)) => Err(refusal),
    }
}

fn refused(app: &App, client_id: &ClientId, refusal: &AuthorizeRefusal) -> Response {
    let cause = (refusal.reason, refusal.detail.as_deref());
    answers::json_error(&app.config, 400, refusal.code.as_str(), cause).about(client_id)
}

/// The request with what the form need not say. The header may have named the client; the proof
/// says `dpop_jkt` (RFC 9449 §10.1), and where the form says it as well, both must be one.
fn completed(sender: &AuthenticatedSender, parameters: &Parameters) -> Result<Parameters, Reason> {
    let proved = sender.proof.as_ref().map(|proof| proof.key.to_text());
    // One without a value counts as left out (RFC 6749 §3.1).
    let said = parameters.all("dpop_jkt").find(|said| !said.is_empty());
    // What is no thumbprint is refused with the rest of the request.
    if let (Some(proof), Some(named)) = (&sender.proof, said.and_then(KeyThumbprint::from_text))
        && proof.key != named
    {
        return Err(Reason::ProofKey);
    }
    let key = proved
        .as_deref()
        .filter(|_| said.is_none())
        .map(|key| ("dpop_jkt", key));
    let sent = parameters
        .iter()
        .filter(|(name, value)| is_kept(name, value));
    let client_id = sender.client.client.client_id.as_str();
    let own = [("client_id", client_id)].into_iter().chain(key);
    Ok(Parameters::from_pairs(own.chain(sent)))
}

fn is_kept(name: &str, value: &str) -> bool {
    match name {
        "client_id" => false,
        "dpop_jkt" => !value.is_empty(),
        _ => true,
    }
}
