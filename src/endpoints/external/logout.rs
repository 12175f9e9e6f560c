//! `POST /external/{idp}/logout` (OpenID Connect Back-Channel Logout 1.0 §2.5): a provider says that somebody signed out there.
//! Sessions here that came from that session, or that person, at that provider end; nobody else's do.

use serde_json::json;

use crate::app::App;
use crate::app::failure::{Failure, Refusal};
use crate::app::guesses::Source;
use crate::endpoints::forms::require_form;
use crate::federation;
use crate::http::{Request, Response};
use crate::protocol::errors::TokenErrorCode;
use crate::protocol::lengths;
use crate::protocol::parameters::Parameters;
use crate::protocol::reason::Reason;
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::upstream::logout_token::LogoutNotice;
use crate::protocol::upstream::{UpstreamLogout, UpstreamProblem};
use crate::store::audit_events::AuditEvent;
use crate::store::upstream_logout::{self, SessionFromUpstream, SpentToken};

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
    let notice = verified(app, request, registered, token)?;
    let sessions = sessions_of(app, registered, &notice.whom)?;
    if !end(app, request, registered, &notice, &sessions)? {
        return Err(refused(app, request, Some(registered), "the logout token was used before"));
    }
    Ok(Response::empty(200).header("Cache-Control", "no-store").header("Pragma", "no-cache"))
}

fn verified(app: &App, request: &Request, provider: &IdentityProvider, token: &str) -> Result<LogoutNotice, Failure> {
    match federation::logout_token(app, provider, token) {
        Ok(notice) => Ok(notice),
        Err(UpstreamProblem::NotBelieved(cause)) => Err(refused(app, request, Some(provider), &cause)),
        Err(UpstreamProblem::Cancelled | UpstreamProblem::LoginRequired) => {
            Err(refused(app, request, Some(provider), "no logout token"))
        }
        // Nobody knows yet: the provider may send it again.
        Err(UpstreamProblem::Busy) => Err(Failure::Busy),
        Err(UpstreamProblem::Unavailable(cause)) => {
            count(app, request);
            let name = &provider.name;
            log::warn!("request {}: a logout token of {name} cannot be verified: {cause}", request.id);
            Err(Failure::Busy)
        }
    }
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

/// Where both a session and a subject are named, both must fit.
fn sessions_of(
    app: &App,
    provider: &IdentityProvider,
    logout: &UpstreamLogout,
) -> Result<Vec<SessionFromUpstream>, Failure> {
    let found = match (&logout.sid, &logout.subject) {
        (Some(sid), subject) => upstream_logout::of_session(&app.store, provider, sid, subject.as_deref()),
        (None, Some(subject)) => upstream_logout::of_subject(&app.store, provider, subject),
        (None, None) => Ok(Vec::new()),
    };
    found.map_err(Failure::NotRevoked)
}

/// `false` when the token was taken before.
fn end(
    app: &App,
    request: &Request,
    provider: &IdentityProvider,
    notice: &LogoutNotice,
    sessions: &[SessionFromUpstream],
) -> Result<bool, Failure> {
    let token = SpentToken {
        provider: &provider.name,
        issuer: provider.authority(),
        jti: &notice.jti,
        whom: &notice.whom,
        forgotten_at: notice.forgotten_at,
    };
    let event = AuditEvent {
        event: "session_ended",
        source: Some(request.source),
        request_id: Some(&request.id),
        detail: json!({"by": "identity_provider", "identity_provider": provider.name}),
        ..AuditEvent::default()
    };
    upstream_logout::end(&app.store, &token, sessions, &event).map_err(Failure::NotRevoked)
}
