//! Signing out there and here. `POST /external/{idp}/logout` (OpenID Connect Back-Channel Logout
//! 1.0 §2.5): a provider says that a user signed out there. Only the sessions end that came from
//! that session or user at that provider. And signing out there once the session here is over
//! (OpenID Connect RP-Initiated Logout 1.0): the browser's last address travels sealed as `state`;
//! nothing else that comes back is followed.

use serde_json::json;

use super::provider::{Connection, not_believed, registered};
use crate::app::App;
use crate::app::audit_keeping::Concerned;
use crate::app::failure::{Failure, Refusal, Result};
use crate::app::fetched::Provenance;
use crate::app::guesses::Source;
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::forms::require_form;
use crate::endpoints::transaction;
use crate::http::{Request, Response};
use crate::outbound::Asker;
use gatepost_protocol::authorize::authorize_response::with_query;
use gatepost_protocol::keys::jwt::{LOGOUT_TOKEN_TYP, UnverifiedJws};
use gatepost_protocol::logout::end_session::{EndSessionRequest, UpstreamReturn};
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::upstream::id_token::{LogoutNotice, TokenProblem, check_typ, judge_logout};
use gatepost_protocol::upstream::{UpstreamProblem, external_url};
use gatepost_protocol::words::identity_provider::{IdentityProvider, ProviderKind};
use gatepost_protocol::words::parameters;
use gatepost_protocol::words::reason::{Reason, TokenErrorCode};
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::upstream_sessions::{self, UpstreamSession};
use gatepost_store::{StoreError, sessions};

const LOGOUT_TOKEN: &str = "the logout token";

/// Takes a logout token: 200 and nothing, or 400 for whatever is not believed.
pub fn handle(app: &App, request: &Request, provider: &str) -> Result<Response> {
    require_form(request, 400)?;
    refuse_too_many(app, request)?;
    // First, so that a body that is no form gets the same answer at every provider's address.
    let form = request.form_parameters().map_err(Failure::bad_request)?;
    let token = form
        .bounded("logout_token", parameters::ASSERTION)
        .map_err(Failure::bad_request)?
        .ok_or_else(|| refused(app, request, None, "no logout_token"))?;
    let snapshot = app.registry.snapshot();
    let provider = registered(&snapshot, provider)
        .ok_or_else(|| refused(app, request, None, "no such identity provider, or disabled"))?;
    take_logout_token(app, request, provider, token)?;
    Ok(Response::empty(200)
        .header("Cache-Control", "no-store")
        .header("Pragma", "no-cache"))
}

fn refuse_too_many(app: &App, request: &Request) -> Result {
    let source = Source::of(request.source);
    let Some(retry_after) = app.logout_token_failures.wait(&source, 1, app.now()) else {
        return Ok(());
    };
    app.note_turned_away(request);
    Err(Failure::Throttled {
        reason: Reason::TooManyLogoutTokens,
        retry_after,
    })
}

fn take_logout_token(
    app: &App,
    request: &Request,
    provider: &IdentityProvider,
    token: &str,
) -> Result {
    let notice = read(app, provider, token).map_err(|problem| match problem {
        UpstreamProblem::NotBelieved(cause) => refused(app, request, Some(provider), &cause),
        UpstreamProblem::Cancelled | UpstreamProblem::LoginRequired => {
            refused(app, request, Some(provider), "no logout token")
        }
        // It may be good: the provider may send it again.
        UpstreamProblem::Busy => Failure::Busy,
        UpstreamProblem::Unavailable(cause) | UpstreamProblem::Unusable(cause) => {
            count(app, request);
            let id = &request.id;
            let name = &provider.name;
            log::warn!("request {id}: a logout token of {name} cannot be verified: {cause}");
            Failure::Busy
        }
    })?;
    if !end_sessions(app, request, provider, &notice).map_err(Failure::NotStored)? {
        let cause = "the logout token was used before";
        return Err(refused(app, request, Some(provider), cause));
    }
    Ok(())
}

/// Ends what the token is about; `false` when it was used before.
fn end_sessions(
    app: &App,
    request: &Request,
    provider: &IdentityProvider,
    notice: &LogoutNotice,
) -> Result<bool, StoreError> {
    let store = &app.store;
    let event = AuditEvent {
        event: "session_ended",
        detail: json!({"by": "identity_provider", "identity_provider": provider.name}),
        ..AuditEvent::default().by(request.source, &request.id)
    };
    let sessions = upstream_sessions::sessions_of(store, provider, notice)?;
    if !upstream_sessions::end(store, provider, notice, &sessions, &event)? {
        return Ok(false);
    }
    // What began while the token was taken, which that statement could not see yet.
    for late in upstream_sessions::sessions_of(store, provider, notice)? {
        let event = AuditEvent {
            sub: Some(&late.sub),
            sid: Some(&late.sid),
            ..event.clone()
        };
        sessions::end(store, late.day, &late.sid, &event)?;
    }
    Ok(true)
}

/// The contents of a logout token of that provider, verified. The statement that acts on it also
/// spends it, so a token whose statement failed may be sent again.
fn read(
    app: &App,
    provider: &IdentityProvider,
    token: &str,
) -> Result<LogoutNotice, UpstreamProblem> {
    let refused = |problem| not_believed(LOGOUT_TOKEN, problem);
    let malformed = || refused(TokenProblem::Malformed);
    let jws = UnverifiedJws::parse(token).ok_or_else(malformed)?;
    check_typ(jws.typ.as_deref(), LOGOUT_TOKEN_TYP).map_err(refused)?;
    let judged =
        |claims| judge_logout(claims, provider.authority(), &provider.client_id, app.now());
    // A token that no signature could save is refused first: strangers make us fetch nothing, and
    // get the same answer whether the provider can be asked or does not exist.
    let unverified = jws.unverified_claims().ok_or_else(malformed)?;
    judged(&unverified).map_err(refused)?;
    if let ProviderKind::OAuth { .. } = provider.kind {
        return Err(UpstreamProblem::not_believed(
            "a provider without an issuer sends no logout tokens",
        ));
    }
    let connection = Connection::open(app, provider)?;
    let claims = connection.verified_claims(
        Asker::Worker(&app.outbound),
        LOGOUT_TOKEN,
        &jws,
        Provenance::Presented,
    )?;
    judged(&claims).map_err(refused)
}

fn count(app: &App, request: &Request) {
    // No guess, and told whatever the count: it keeps the next ones away.
    let _counted = app
        .logout_token_failures
        .count(Source::of(request.source), app.now());
}

fn refused(
    app: &App,
    request: &Request,
    provider: Option<&IdentityProvider>,
    cause: &str,
) -> Failure {
    count(app, request);
    let reason = Reason::LogoutTokenRefused;
    let concerned = provider.map_or(Concerned::Nobody, |provider| {
        Concerned::Provider(&provider.name)
    });
    app.note_failure("upstream_logout_refused", request, None, concerned, reason);
    Failure::Refused(Refusal {
        status: 400,
        error: TokenErrorCode::InvalidRequest,
        reason,
        detail: Some(cause.to_owned()),
        challenge: None,
    })
}

/// An address much longer than that is cut or refused on its way; the ID token in it is only a
/// help.
const LONGEST_ADDRESS: usize = 8_000;

pub struct UpstreamSignOut {
    provider: IdentityProvider,
    id_token: Option<SecretText>,
}

impl UpstreamSignOut {
    /// For a session that came from a provider where signing out here signs out there.
    pub fn of(app: &App, current_session: &CurrentSession) -> Result<Option<UpstreamSignOut>> {
        let snapshot = app.registry.snapshot();
        let provider = registered(&snapshot, current_session.row.identity_provider());
        let Some(provider) = provider.filter(|provider| provider.sign_out) else {
            return Ok(None);
        };
        let upstream = upstream_sessions::find(
            &app.store,
            current_session.row.day,
            &current_session.row.sid,
        )?;
        // Another provider of that name never signed them in, and must not see the ID token of the
        // first.
        let of_issuer = upstream.filter(|upstream| upstream.issuer == provider.authority());
        let Some(upstream) = of_issuer else {
            return Ok(None);
        };
        Ok(Some(UpstreamSignOut {
            provider: provider.clone(),
            id_token: id_token_of(app, &upstream),
        }))
    }

    /// What the provider is called, and where signing out there begins (OpenID Connect RP-Initiated
    /// Logout 1.0 §2), without the ID token where that is too long; `None` where the provider is
    /// away or offers no such thing: the sign-out here is complete without it.
    pub fn onward(&self, app: &App, request: &EndSessionRequest) -> Option<(String, String)> {
        let provider = &self.provider;
        let returns = UpstreamReturn {
            provider: provider.name.clone(),
            request: request.clone(),
        };
        let state = transaction::seal(app, SealedPurpose::SignedOut(returns)).sealed;
        let back = external_url(app.issuer(), &provider.name, "signed-out");
        let metadata = Connection::open(app, provider).ok()?.metadata;
        let endpoint = metadata.end_session_endpoint.as_deref()?;
        let mut parameters = vec![
            ("client_id", provider.client_id.clone()),
            ("post_logout_redirect_uri", back),
            ("state", state),
        ];
        let mut address = with_query(endpoint, &parameters);
        if let Some(token) = &self.id_token {
            parameters.insert(0, ("id_token_hint", token.expose().to_owned()));
            let with_token = with_query(endpoint, &parameters);
            if with_token.len() <= LONGEST_ADDRESS {
                address = with_token;
            }
        }
        if address.len() > LONGEST_ADDRESS {
            return None;
        }
        Some((provider.display_name.clone(), address))
    }
}

fn id_token_of(app: &App, upstream: &UpstreamSession) -> Option<SecretText> {
    let sealed = upstream.sealed_id_token.as_ref()?;
    let bytes = app.vault.upstream_id_tokens.open(sealed)?;
    String::from_utf8(bytes).ok().map(SecretText::new)
}
