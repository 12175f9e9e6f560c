//! `POST /external/{idp}/logout` (OpenID Connect Back-Channel Logout 1.0 §2.5): a provider says that somebody signed out there.
//! Sessions here that came from that session, or that person, at that provider end; nobody else's do.

use serde_json::json;

use super::provider::{Connection, not_believed};
use crate::app::App;
use crate::app::failure::{Failure, Refusal};
use crate::app::fetched::Provenance;
use crate::app::guesses::Source;
use crate::endpoints::forms::require_form;
use crate::http::{Request, Response};
use crate::outbound::Asker;
use crate::protocol::keys::jwt::{LOGOUT_TOKEN_TYP, UnverifiedJws};
use crate::protocol::registration::provider::{IdentityProvider, ProviderKind};
use crate::protocol::upstream::UpstreamProblem;
use crate::protocol::upstream::id_token::{TokenProblem, check_typ};
use crate::protocol::upstream::logout_token::{self, LogoutNotice};
use crate::protocol::words::errors::TokenErrorCode;
use crate::protocol::words::lengths;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::Reason;
use crate::store::audit_events::AuditEvent;
use crate::store::upstream_sessions;

const LOGOUT_TOKEN: &str = "the logout token";

/// Takes a logout token: 200 and nothing, or 400 for whatever is not believed.
pub fn handle(app: &App, request: &Request, provider: &str) -> Result<Response, Failure> {
    require_form(request, 400)?;
    if let Some(retry_after) = app.logout_token_failures.wait(&Source::of(request.source), 1, app.now()) {
        app.note_turned_away(request);
        return Err(Failure::Throttled { reason: Reason::TooManyLogoutTokens, retry_after });
    }
    // Before anything else, so that what is no form is answered alike wherever it is sent.
    let form = Parameters::parse(&request.body).map_err(Failure::bad_request)?;
    let token = form.bounded("logout_token", lengths::ASSERTION).map_err(Failure::bad_request)?;
    let token = token.ok_or_else(|| refused(app, request, None, "no logout_token"))?;
    let snapshot = app.registry.snapshot();
    let registered = snapshot.catalogue.identity_providers.get(provider).filter(|provider| provider.enabled);
    let registered = registered.ok_or_else(|| refused(app, request, None, "no such identity provider, or disabled"))?;
    let notice = read(app, registered, token).map_err(|problem| match problem {
        UpstreamProblem::NotBelieved(cause) => refused(app, request, Some(registered), &cause),
        UpstreamProblem::Cancelled | UpstreamProblem::LoginRequired => {
            refused(app, request, Some(registered), "no logout token")
        }
        // Nobody knows yet: the provider may send it again.
        UpstreamProblem::Busy => Failure::Busy,
        UpstreamProblem::Unavailable(cause) => {
            count(app, request);
            log::warn!("request {}: a logout token of {provider} cannot be verified: {cause}", request.id);
            Failure::Busy
        }
    })?;
    let sessions = upstream_sessions::sessions_of(&app.store, registered, &notice).map_err(Failure::NotRevoked)?;
    let event = AuditEvent {
        event: "session_ended",
        source: Some(request.source),
        request_id: Some(&request.id),
        detail: json!({"by": "identity_provider", "identity_provider": provider}),
        ..AuditEvent::default()
    };
    if !upstream_sessions::end(&app.store, registered, &notice, &sessions, &event).map_err(Failure::NotRevoked)? {
        return Err(refused(app, request, Some(registered), "the logout token was used before"));
    }
    Ok(Response::empty(200).header("Cache-Control", "no-store").header("Pragma", "no-cache"))
}

/// What a logout token of that provider says, verified in full. That it is taken once is for the statement that does what it
/// says: one that could not be done may be sent again.
fn read(app: &App, provider: &IdentityProvider, token: &str) -> Result<LogoutNotice, UpstreamProblem> {
    let refused = |problem| not_believed(LOGOUT_TOKEN, problem);
    let jws = UnverifiedJws::parse(token).ok_or_else(|| refused(TokenProblem::Malformed))?;
    check_typ(jws.typ.as_deref(), LOGOUT_TOKEN_TYP).map_err(refused)?;
    let judged = |claims| logout_token::judge(claims, provider.authority(), &provider.client_id, app.now());
    // What no signature could save is refused at once: a stranger's words fetch nothing, and are answered alike whether the
    // provider can be asked or does not even exist.
    let unverified = jws.unverified_claims().ok_or_else(|| refused(TokenProblem::Malformed))?;
    judged(&unverified).map_err(refused)?;
    if let ProviderKind::OAuth { .. } = provider.kind {
        return Err(UpstreamProblem::not_believed("a provider without an issuer sends no logout tokens"));
    }
    let connection = Connection::open(app, provider)?;
    let jws = (&jws, Provenance::Presented);
    let claims = connection.verified_claims(Asker::Worker(&app.outbound), LOGOUT_TOKEN, jws)?;
    judged(&claims).map_err(refused)
}

fn count(app: &App, request: &Request) {
    // No guess, and told whatever the count: it keeps the next ones away.
    let _counted = app.logout_token_failures.count(Source::of(request.source), app.now());
}

fn refused(app: &App, request: &Request, provider: Option<&IdentityProvider>, cause: &str) -> Failure {
    count(app, request);
    let (event, reason) = ("upstream_logout_refused", Reason::LogoutTokenRefused);
    match provider {
        Some(provider) => app.note_upstream_failure(event, request, None, (&provider.name, reason)),
        None => app.note_failure(event, request, None, reason),
    }
    Failure::Refused(Refusal {
        status: 400,
        error: TokenErrorCode::InvalidRequest,
        reason,
        detail: Some(cause.to_owned()),
        challenge: None,
    })
}
