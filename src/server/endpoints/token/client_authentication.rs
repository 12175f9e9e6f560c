//! How a client proves who it is at the endpoints it calls itself (RFC 6749 §2.3, §3.2.1), and a
//! resource at introspection (RFC 7662 §2.1).

use std::convert::identity;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use crate::app::App;
use crate::app::audit_keeping::Concerned;
use crate::app::failure::{Failure, Refusal, Result, Stopped};
use crate::app::guesses::{Guesses, Source};
use crate::app::metadata_documents::reason_for;
use crate::endpoints::token::assertions::KeySource;
use crate::http::Request;
use crate::registry::RegisteredClient;
use gatepost_protocol::keys::jwt::UnverifiedJws;
use gatepost_protocol::token::assertion::{self, AssertionProblem, ExpectedAssertion};
use gatepost_protocol::token::client_authentication::{
    AuthenticationFailure, ClientVerdict, PresentedClient,
};
use gatepost_protocol::token::workload_identity;
use gatepost_protocol::words::client::{Client, Profile, SigningAlgorithm};
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::Reason;

pub enum Introspector {
    /// A confidential client, about its own tokens.
    Client(Arc<RegisteredClient>),
    /// A resource, about tokens that have one of its scopes.
    Resource(String),
}

/// Judges one reading of what was presented.
type Judge<T> = fn(&App, &PresentedClient, Instant) -> Result<T, Stopped<AuthenticationFailure>>;

/// Authenticates the client of a form, or refuses with the status and challenge that RFC 6749 §5.2
/// asks for.
pub fn authenticate(
    app: &App,
    request: &Request,
    parameters: &Parameters,
    now: Instant,
) -> Result<Arc<RegisteredClient>> {
    prove(app, request, parameters, now, client, identity)
}

/// Authenticates the client or resource that asks about a token. Every failure is a 401.
pub fn authenticate_introspector(
    app: &App,
    request: &Request,
    parameters: &Parameters,
    now: Instant,
) -> Result<Introspector> {
    app.require_fresh_registry()?;
    let answered = AuthenticationFailure::at_introspection;
    prove(app, request, parameters, now, introspector, answered)
}

/// Reads what the request presents, and judges it. Wrong guesses are counted; after too many,
/// nothing is judged. `answered` turns a failure into the one that is answered.
fn prove<T>(
    app: &App,
    request: &Request,
    parameters: &Parameters,
    now: Instant,
    judge: Judge<T>,
    answered: fn(AuthenticationFailure) -> AuthenticationFailure,
) -> Result<T> {
    let refused = |failure| refused(app, answered(failure));
    let headers: Vec<&str> = request.headers.all("authorization").collect();
    let presented = PresentedClient::from_request(&headers, parameters).map_err(refused)?;
    match judge_readings(app, request, &presented, now, judge) {
        Ok(proven) => {
            app.token_is_asked_for();
            Ok(proven)
        }
        Err(stopped) => {
            let failure = stopped.refusal()?;
            let reason = failure.error.reason;
            // An unknown client_id may be anything, even a secret in the wrong field: it is not
            // logged.
            let is_known = reason != Reason::UnknownClientAtToken;
            let name = is_known.then_some(&presented.client_id);
            let event = "client_authentication_failed";
            app.note_failure(event, request, name, Concerned::Nobody, reason);
            let refused = refused(failure);
            Err(if is_known {
                refused.about(&presented.client_id, None)
            } else {
                refused
            })
        }
    }
}

/// Whose wrong guesses count together: guesses from one source at the secret of a registered name,
/// and guesses from one source at all names that are not registered, with an empty name.
struct Guesser<'a> {
    failures: &'a Guesses<(ClientId, Source)>,
    who: (ClientId, Source),
}

impl<'a> Guesser<'a> {
    fn of(app: &'a App, presented: &PresentedClient, source: Source) -> Guesser<'a> {
        let name = &presented.client_id;
        let (failures, name) = if app.registry.knows(name) {
            (&app.client_failures, name.clone())
        } else {
            (&app.made_up_failures, ClientId::new(""))
        };
        Guesser {
            failures,
            who: (name, source),
        }
    }
}

/// Judges the credentials. A Basic header can be read in two ways: the second reading is tried when
/// the first is wrong and the limit leaves room for another guess. Both count as guesses if both
/// are wrong. They are counted after the secret was compared, because a right secret must not
/// count. When many requests guess at once, those beyond the limit get no verdict.
#[allow(
    clippy::expect_used,
    reason = "the loop runs at least once, and then returns or refuses"
)]
fn judge_readings<T>(
    app: &App,
    request: &Request,
    presented: &PresentedClient,
    now: Instant,
    judge: Judge<T>,
) -> Result<T, Stopped<AuthenticationFailure>> {
    let source = Source::of(request.source);
    let raw = presented.retry();
    let mut refused = None;
    let mut tried = Vec::new();
    for reading in iter::once(presented).chain(&raw) {
        let Guesser { failures, who } = Guesser::of(app, reading, source);
        let is_second = tried.iter().any(|tried: &Guesser<'_>| tried.who == who);
        let guesses = if is_second { 2 } else { 1 };
        match (failures.wait(&who, guesses, now), &refused) {
            (Some(wait), None) => return Err(turned_away(app, request, wait).into()),
            (Some(_), Some(_)) => break,
            (None, _) => {}
        }
        match judge(app, reading, now) {
            Ok(proven) => {
                return match failures.wait(&who, guesses, now) {
                    Some(wait) => Err(turned_away(app, request, wait).into()),
                    None => Ok(proven),
                };
            }
            Err(stopped) => {
                let failure = stopped.refusal()?;
                if failure.counts_as_guess() {
                    tried.push(Guesser { failures, who });
                }
                refused = refused.or(Some(failure));
            }
        }
    }
    for Guesser { failures, who } in tried {
        if let Err(wait) = failures.count(who, now) {
            return Err(turned_away(app, request, wait).into());
        }
    }
    Err(Stopped::Refused(refused.expect("there is a first reading")))
}

fn turned_away(app: &App, request: &Request, retry_after: Duration) -> Failure {
    app.note_turned_away(request);
    Failure::Throttled {
        reason: Reason::TooManyClientFailures,
        retry_after,
    }
}

/// Finds the resource or the client of that name: no two share one. A public client cannot prove
/// who it is, so it is told nothing.
fn introspector(
    app: &App,
    presented: &PresentedClient,
    now: Instant,
) -> Result<Introspector, Stopped<AuthenticationFailure>> {
    let snapshot = app.registry.snapshot();
    let name = presented.client_id.as_str();
    if let Some(secrets) = snapshot.resource_secrets.get(name) {
        presented
            .judge_resource(secrets, now)
            .map_err(Stopped::Refused)?;
        return Ok(Introspector::Resource(name.to_owned()));
    }
    let client = client(app, presented, now)?;
    if !client.client.is_confidential() {
        return Err(Stopped::Refused(
            presented.failure(Reason::PublicClientIntrospection),
        ));
    }
    Ok(Introspector::Client(client))
}

fn client(
    app: &App,
    presented: &PresentedClient,
    now: Instant,
) -> Result<Arc<RegisteredClient>, Stopped<AuthenticationFailure>> {
    let recognised = recognise(app, presented, now)?;
    if let Some(OwnAssertion { described, jws }) = &recognised.by_assertion {
        by_assertion(app, presented, &described.client, jws, now)?;
    }
    Ok(recognised.client)
}

/// A client that is who it says, if the assertion proves it that it may have brought.
pub struct RecognisedClient {
    pub client: Arc<RegisteredClient>,
    pub by_assertion: Option<OwnAssertion>,
}

/// An assertion that came as a client's authentication.
pub struct OwnAssertion {
    /// The client, with what its metadata document says.
    pub described: Arc<RegisteredClient>,
    pub jws: Box<UnverifiedJws>,
}

/// Judges all but an assertion, which is good for one use.
pub fn recognise(
    app: &App,
    presented: &PresentedClient,
    now: Instant,
) -> Result<RecognisedClient, Stopped<AuthenticationFailure>> {
    let registered = app
        .registry
        .client(&presented.client_id)
        .map_err(Failure::from)?;
    let client = registered.as_ref().map(|registered| &registered.client);
    let secrets = registered
        .as_ref()
        .map_or(&[][..], |registered| &registered.secrets);
    let assertion = match presented.judge(client, secrets, now) {
        ClientVerdict::Authenticated => None,
        ClientVerdict::ByAssertion(jws) => Some(jws),
        ClientVerdict::Refused(failure) => return Err(Stopped::Refused(failure)),
    };
    let unknown = || Stopped::Refused(presented.failure(Reason::UnknownClientAtToken));
    let client = registered.ok_or_else(unknown)?;
    let by_assertion = match assertion {
        Some(jws) => match app.described(&client) {
            Ok(described) => Some(OwnAssertion { described, jws }),
            Err(problem) => {
                let reason = reason_for(&problem).ok_or(Failure::Busy)?;
                return Err(Stopped::Refused(presented.failure(reason)));
            }
        },
        None => None,
    };
    Ok(RecognisedClient {
        client,
        by_assertion,
    })
}

/// Whether an assertion is for a workload of the client: somebody else issued it.
pub fn is_of_workload(client: &Client, claims: &JsonObject) -> bool {
    let name = client.client_id.as_str();
    let is_own = claims.get("iss").is_some_and(|issuer| issuer == name);
    !is_own && !client.federated.is_empty()
}

/// What an assertion of the client itself must be before its signature is verified. Returns where
/// the keys for that are.
pub fn keys_for<'a>(
    app: &App,
    client: &'a Client,
    jws: &UnverifiedJws,
    claims: &JsonObject,
    now: Instant,
) -> Result<KeySource<'a>, AssertionProblem> {
    if !assertion::is_client_assertion_typ(jws.typ.as_deref()) {
        return Err(AssertionProblem::Malformed);
    }
    let keys = KeySource::of(&client.jwks, &client.jwks_uri).ok_or(AssertionProblem::Key)?;
    if client.profile == Some(Profile::Fapi2) {
        assertion::judge_for_fapi2(claims, app.issuer(), now)?;
    }
    Ok(keys)
}

/// `private_key_jwt`. An assertion that the client issued is verified by the registered keys, and
/// used up. One of another issuer is a workload's.
fn by_assertion(
    app: &App,
    presented: &PresentedClient,
    client: &Client,
    jws: &UnverifiedJws,
    now: Instant,
) -> Result<(), Stopped<AuthenticationFailure>> {
    let claims = jws.unverified_claims().unwrap_or_default();
    if is_of_workload(client, &claims) {
        let refused = |reason| AuthenticationFailure {
            detail: Some(workload_identity::whose(&claims)),
            ..presented.failure(reason)
        };
        let judged = by_workload(app, client, jws, &claims, now);
        return judged.map_err(|stopped| stopped.map(refused));
    }
    let refused = |problem| Stopped::Refused(presented.failure(assertion::reason_for(problem)));
    let keys = keys_for(app, client, jws, &claims, now).map_err(refused)?;
    let audiences = app.client_assertion_audiences();
    let expected = ExpectedAssertion::of_client(&client.client_id, &audiences);
    match app.spend_assertion(jws, keys, &client.assertion_algorithms(), expected, now) {
        Ok(_) => Ok(()),
        Err(stopped) => Err(refused(stopped.refusal()?)),
    }
}

/// A token that another issuer gave to a workload. It is not used up: platforms give out one many
/// times.
fn by_workload(
    app: &App,
    client: &Client,
    jws: &UnverifiedJws,
    unverified: &JsonObject,
    now: Instant,
) -> Result<(), Stopped<Reason>> {
    let entry = workload_identity::registered(&client.federated, unverified, app.issuer());
    let Some(entry) = entry.filter(|_| assertion::is_workload_typ(jws.typ.as_deref())) else {
        return Err(Stopped::Refused(Reason::UnknownWorkload));
    };
    let Some(keys) = KeySource::of(&entry.jwks, &entry.jwks_uri) else {
        return Err(Stopped::Refused(Reason::ClientAssertionKey));
    };
    let claims = app
        .presented_claims(jws, keys, &SigningAlgorithm::ALL)
        .map_err(|stopped| stopped.map(assertion::reason_for))?;
    workload_identity::judge(&claims, entry, app.issuer(), now).map_err(Stopped::Refused)
}

fn refused(app: &App, failure: AuthenticationFailure) -> Failure {
    let rule = app.config.invalid_client_status;
    Failure::Refused(Refusal {
        status: failure.status(rule),
        challenge: failure.challenge(rule),
        error: failure.error.code,
        reason: failure.error.reason,
        detail: failure.detail,
    })
}
