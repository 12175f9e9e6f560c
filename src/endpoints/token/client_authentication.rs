//! How a client proves who it is at the endpoints it calls itself (RFC 6749 §2.3, §3.2.1), and a
//! resource at introspection (RFC 7662 §2.1).

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use crate::app::App;
use crate::app::audit_keeping::Concerned;
use crate::app::failure::{Failure, Refusal};
use crate::app::guesses::Source;
use crate::endpoints::token::assertions::KeySource;
use crate::http::Request;
use crate::protocol::keys::jwt::UnverifiedJws;
use crate::protocol::token::assertion::{self, ExpectedAssertion};
use crate::protocol::token::client_authentication::{
    AuthenticationFailure, ClientVerdict, PresentedClient,
};
use crate::protocol::words::client::Client;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::Reason;
use crate::registry::RegisteredClient;

#[derive(Clone, Debug)]
pub enum Introspector {
    /// A confidential client, about its own tokens.
    Client(Arc<RegisteredClient>),
    /// A resource, about tokens with scopes of it.
    Resource(String),
}

/// A refused authentication, with the registered name that was claimed.
struct Unproven {
    name: Option<ClientId>,
    failure: AuthenticationFailure,
}

/// What was presented, judged; or the store could not be asked.
type Judged<T> = Result<Result<T, AuthenticationFailure>, Failure>;

/// Authenticates the client of a form, or refuses with the status and challenge that RFC 6749 §5.2
/// asks for.
pub fn authenticate(
    app: &App,
    request: &Request,
    parameters: &Parameters,
    now: Instant,
) -> Result<Arc<RegisteredClient>, Failure> {
    prove(app, request, parameters, now, client)?.map_err(|unproven| unproven.refused(app))
}

/// Authenticates who asks about a token: 401 whenever that fails.
pub fn authenticate_introspector(
    app: &App,
    request: &Request,
    parameters: &Parameters,
    now: Instant,
) -> Result<Introspector, Failure> {
    let proven = prove(app, request, parameters, now, introspector)?;
    proven.map_err(|unproven| {
        Unproven {
            failure: unproven.failure.at_introspection(),
            ..unproven
        }
        .refused(app)
    })
}

/// Reads what the request presents and lets `judge` judge it; wrong guesses are counted, too many
/// are not judged at all.
fn prove<T>(
    app: &App,
    request: &Request,
    parameters: &Parameters,
    now: Instant,
    judge: fn(&App, &PresentedClient, Instant) -> Judged<T>,
) -> Result<Result<T, Unproven>, Failure> {
    let headers: Vec<&str> = request.headers.all("authorization").collect();
    let presented = match PresentedClient::from_request(&headers, parameters) {
        Ok(presented) => presented,
        Err(failure) => {
            return Ok(Err(Unproven {
                name: None,
                failure,
            }));
        }
    };
    let judged = judge_readings(app, request, &presented, now, judge)?;
    if judged.is_ok() {
        app.token_is_asked_for();
    }
    if let Err(failure) = &judged {
        // An unknown client_id may be anything, even a secret in the wrong field.
        let reason = failure.error.reason;
        let known = (reason != Reason::UnknownClientAtToken).then_some(&presented.client_id);
        let nobody = Concerned::Nobody;
        app.note_failure(
            "client_authentication_failed",
            request,
            known,
            nobody,
            reason,
        );
    }
    // An unknown name may be a secret in the wrong field: not for the log.
    let is_name =
        |failure: &AuthenticationFailure| failure.error.reason != Reason::UnknownClientAtToken;
    Ok(judged.map_err(|failure| Unproven {
        name: is_name(&failure).then_some(presented.client_id),
        failure,
    }))
}

/// Whose wrong guesses count together.
#[derive(PartialEq)]
enum Guesser {
    /// Those at something registered, from one source.
    At((ClientId, Source)),
    /// Those at whatever nothing is called, from one source.
    AtNothing(Source),
}

impl Guesser {
    fn of(app: &App, presented: &PresentedClient, source: Source) -> Guesser {
        let name = &presented.client_id;
        if app.registry.knows(name) {
            Guesser::At((name.clone(), source))
        } else {
            Guesser::AtNothing(source)
        }
    }

    fn wait(&self, app: &App, guesses: u32, now: Instant) -> Option<Duration> {
        match self {
            Guesser::At(guesser) => app.client_failures.wait(guesser, guesses, now),
            Guesser::AtNothing(source) => app.made_up_failures.wait(source, guesses, now),
        }
    }

    fn count(self, app: &App, now: Instant) -> Result<(), Duration> {
        match self {
            Guesser::At(guesser) => app.client_failures.count(guesser, now),
            Guesser::AtNothing(source) => app.made_up_failures.count(source, now),
        }
    }
}

/// Judges the credentials, and then their raw reading where the header has two and there is room
/// for a second guess. Guesses count if none is right: after the look, since right ones never
/// count. Of many at once, guesses beyond the limit are not answered.
fn judge_readings<T>(
    app: &App,
    request: &Request,
    presented: &PresentedClient,
    now: Instant,
    judge: fn(&App, &PresentedClient, Instant) -> Judged<T>,
) -> Judged<T> {
    let throttled = |retry_after| {
        app.note_turned_away(request);
        Failure::Throttled {
            reason: Reason::TooManyClientFailures,
            retry_after,
        }
    };
    let source = Source::of(request.source);
    let raw = presented.retry();
    let mut refused = None;
    let mut tried = Vec::new();
    for reading in iter::once(presented).chain(&raw) {
        let guesser = Guesser::of(app, reading, source);
        let guesses = if tried.contains(&guesser) { 2 } else { 1 };
        match (guesser.wait(app, guesses, now), &refused) {
            (Some(wait), None) => return Err(throttled(wait)),
            (Some(_), Some(_)) => break,
            (None, _) => {}
        }
        match judge(app, reading, now)? {
            Ok(proven) => {
                return guesser
                    .wait(app, guesses, now)
                    .map_or(Ok(Ok(proven)), |wait| Err(throttled(wait)));
            }
            Err(failure) if failure.counts_as_guess() => {
                tried.push(guesser);
                refused = refused.or(Some(failure));
            }
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    for guesser in tried {
        guesser.count(app, now).map_err(throttled)?;
    }
    refused
        .map(Err)
        .ok_or_else(|| Failure::Internal(String::from("nothing was presented")))
}

/// Clients and resources share one name space. A public client proves nothing, so it is told
/// nothing.
fn introspector(app: &App, presented: &PresentedClient, now: Instant) -> Judged<Introspector> {
    let snapshot = app.registry.snapshot();
    let name = presented.client_id.as_str();
    if let Some(secrets) = snapshot.resource_secrets.get(name) {
        return Ok(presented
            .judge_resource(secrets, now)
            .map(|()| Introspector::Resource(name.to_owned())));
    }
    Ok(client(app, presented, now)?.and_then(|client| {
        let proven = client.client.is_confidential();
        if proven {
            Ok(Introspector::Client(client))
        } else {
            Err(presented.failure(Reason::PublicClientIntrospection))
        }
    }))
}

fn client(app: &App, presented: &PresentedClient, now: Instant) -> Judged<Arc<RegisteredClient>> {
    let registered = app.registry.client(&presented.client_id)?;
    let client = registered.as_ref().map(|registered| &registered.client);
    let secrets = registered
        .as_ref()
        .map_or(&[][..], |registered| &registered.secrets);
    let proven = match presented.judge(client, secrets, now) {
        ClientVerdict::Authenticated => Ok(()),
        ClientVerdict::ByAssertion(jws) => by_assertion(app, presented, client, &jws, now)?,
        ClientVerdict::Refused(failure) => Err(failure),
    };
    match (proven, registered) {
        (Ok(()), Some(registered)) => Ok(Ok(registered)),
        (Err(failure), _) => Ok(Err(failure)),
        (Ok(()), None) => Err(Failure::Internal(String::from(
            "a client that is not registered was authenticated",
        ))),
    }
}

/// `private_key_jwt`: verified by the registered keys, and spent.
fn by_assertion(
    app: &App,
    presented: &PresentedClient,
    client: Option<&Client>,
    jws: &UnverifiedJws,
    now: Instant,
) -> Judged<()> {
    let Some((client, keys)) =
        client.and_then(|client| Some((client, KeySource::of(&client.jwks, &client.jwks_uri)?)))
    else {
        return Ok(Err(presented.failure(Reason::ClientAssertionKey)));
    };
    let name = client.client_id.as_str();
    let expected = ExpectedAssertion {
        issuer: name,
        subject: Some(name),
        audiences: &app.assertion_audiences(),
    };
    let spent = app.spend_assertion(jws, keys, &client.assertion_algorithms(), expected, now)?;
    Ok(spent
        .map(drop)
        .map_err(|problem| presented.failure(assertion::reason_for(problem))))
}

impl Unproven {
    fn refused(self, app: &App) -> Failure {
        let rule = app.config.invalid_client_status;
        let refused = Failure::Refused(Refusal {
            status: self.failure.status(rule),
            error: self.failure.error.code,
            reason: self.failure.error.reason,
            detail: None,
            challenge: self.failure.challenge(rule),
        });
        match self.name {
            Some(name) => refused.about(&name, None),
            None => refused,
        }
    }
}
