//! How a client proves who it is at the endpoints it calls itself (RFC 6749 §2.3, §3.2.1).

use std::sync::Arc;

use crate::app::App;
use crate::app::failure::{Failure, Refusal};
use crate::app::guesses::Source;
use crate::http::Request;
use crate::protocol::client_authentication::{AuthenticationFailure, ClientVerdict, PresentedClient};
use crate::protocol::instant::Instant;
use crate::protocol::parameters::Parameters;
use crate::protocol::reason::Reason;
use crate::registry::RegisteredClient;

/// Authenticates the client of a form, or refuses with the status and challenge that RFC 6749 §5.2 asks for.
pub fn authenticate(
    app: &App,
    request: &Request,
    parameters: &Parameters,
    now: Instant,
) -> Result<Arc<RegisteredClient>, Failure> {
    let headers: Vec<&str> = request.headers.all("authorization").collect();
    let presented = PresentedClient::from_request(&headers, parameters).map_err(|failure| refused(app, &failure))?;
    let source = Source::of(request.source);
    if let Some(retry_after) = app.client_failures.wait(&presented.client_id, source, now) {
        return Err(Failure::Throttled { reason: Reason::TooManyClientFailures, retry_after });
    }
    match judge(app, &presented, now)? {
        Ok(client) => Ok(client),
        Err(failure) => {
            if failure.counts_as_guess() {
                app.client_failures.count(&presented.client_id, source, now);
            }
            Err(refused(app, &failure))
        }
    }
}

/// Judges what was presented, and once more its raw reading where the header has two.
fn judge(
    app: &App,
    presented: &PresentedClient,
    now: Instant,
) -> Result<Result<Arc<RegisteredClient>, AuthenticationFailure>, Failure> {
    let failure = match judge_once(app, presented, now)? {
        Ok(client) => return Ok(Ok(client)),
        Err(failure) => failure,
    };
    match presented.retry() {
        Some(raw) => Ok(judge_once(app, &raw, now)?.map_err(|_| failure)),
        None => Ok(Err(failure)),
    }
}

fn judge_once(
    app: &App,
    presented: &PresentedClient,
    now: Instant,
) -> Result<Result<Arc<RegisteredClient>, AuthenticationFailure>, Failure> {
    let registered = app.registry.client(&presented.client_id)?;
    let client = registered.as_ref().map(|registered| &registered.client);
    let secrets = registered.as_ref().map_or(&[][..], |registered| &registered.secrets);
    Ok(match (presented.judge(client, secrets, now), registered.clone()) {
        (ClientVerdict::Authenticated, Some(registered)) => Ok(registered),
        (ClientVerdict::Refused(failure), _) => Err(failure),
        (ClientVerdict::Authenticated, None) => {
            return Err(Failure::Internal(String::from("a client that is not registered was authenticated")));
        }
    })
}

fn refused(app: &App, failure: &AuthenticationFailure) -> Failure {
    let rule = app.config.invalid_client_status;
    Failure::Refused(Refusal {
        status: failure.status(rule),
        error: failure.error.code,
        reason: failure.error.reason,
        detail: None,
        challenge: failure.challenge(rule),
    })
}
