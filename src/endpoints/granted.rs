//! What a request that may proceed is given: a code, an ID token, an access token, as its response type names them.

use super::present_session::PresentSession;
use super::visit::Visit;
use crate::app::App;
use crate::app::failure::Failure;
use crate::crypto::random;
use crate::grants::issue::{self, Issue, IssueUser};
use crate::protocol::access_token::StandsOn;
use crate::protocol::audience::{Narrowed, narrow};
use crate::protocol::authorization_code::{AuthorizationCode, redirect_uri_hash};
use crate::protocol::authorize_request::{AuthorizeRequest, Refusal};
use crate::protocol::authorize_response::Issued;
use crate::protocol::claims::ClaimNames;
use crate::protocol::client::Lifetimes;
use crate::protocol::epochs::Epochs;
use crate::protocol::errors::AuthorizeErrorCode;
use crate::protocol::identifiers::GrantId;
use crate::protocol::instant::Instant;
use crate::protocol::reason::Reason;
use crate::protocol::scope::{OFFLINE_ACCESS, ScopeSet};
use crate::protocol::secret::SecretText;
use crate::protocol::token_subject::TokenSubject;

/// Issues what was granted to the user of this session.
pub fn issue(
    app: &App,
    visit: &Visit,
    present: &PresentSession,
    (scope, epochs): (&ScopeSet, Epochs),
) -> Result<Issued, Failure> {
    let Visit { request, client, snapshot, .. } = visit;
    let now = app.now();
    let sign_in = sign_in(request, present);
    let claims = claim_names(request);
    let code = match request.response_type.code {
        true => {
            let lifetimes = &client.client.lifetimes;
            Some(code(app, visit, authorization_code(request, lifetimes, &sign_in, (scope, epochs), now))?)
        }
        false => None,
    };
    let narrowed = if request.response_type.token { Some(target(app, visit, scope)?) } else { None };
    let user = IssueUser {
        sign_in: &sign_in,
        user: &present.user.to_core(),
        grant: None,
        claims: &claims,
        nonce: request.nonce.as_deref(),
    };
    let stands_on = StandsOn::User(epochs);
    let issue = Issue { client: &client.client, scope, user: Some(user), stands_on, now };
    issue::through_browser(app, snapshot, &issue, request.response_type, (code, narrowed))
}

fn code(app: &App, visit: &Visit, code: AuthorizationCode) -> Result<SecretText, Failure> {
    let too_long = || visit.refuse(Refusal::new(AuthorizeErrorCode::InvalidRequest, Reason::RequestTooLong));
    issue::authorization_code(app, &code).ok_or_else(too_long)
}

/// Whom an access token through the browser is for. A resource whose scopes the user unticked is not to be had.
fn target(app: &App, visit: &Visit, scope: &ScopeSet) -> Result<Narrowed, Failure> {
    let narrowed = narrow(scope, &[], &visit.request.resources, &visit.snapshot.catalogue, app.issuer());
    narrowed.map_err(|error| visit.refuse(Refusal::new(AuthorizeErrorCode::InvalidTarget, error.reason)))
}

fn authorization_code(
    request: &AuthorizeRequest,
    lifetimes: &Lifetimes,
    sign_in: &TokenSubject,
    (scope, epochs): (&ScopeSet, Epochs),
    now: Instant,
) -> AuthorizationCode {
    let expires_at = now.plus(lifetimes.authorization_code);
    // Fixed now, because the grant's id carries the day of its end: what hangs on a session alone needs no more than
    // one access token's life after the last moment of redemption.
    let grant_expires_at = match scope.contains(OFFLINE_ACCESS) {
        true => now.plus(lifetimes.refresh_token),
        false => expires_at.plus(lifetimes.access_token),
    };
    AuthorizationCode {
        grant: GrantId { day: grant_expires_at.day(), random: random::bytes() },
        client_id: request.client_id.clone(),
        redirect_uri_hash: redirect_uri_hash(request.redirect.uri()),
        challenge: request.code_challenge.as_ref().map(|challenge| challenge.digest()),
        nonce: request.nonce.clone(),
        scope: scope.clone(),
        resources: request.resources.clone(),
        claims: claim_names(request),
        user: sign_in.clone(),
        epochs,
        response_type: request.response_type,
        issued_at: now,
        expires_at,
        grant_expires_at,
    }
}

fn claim_names(request: &AuthorizeRequest) -> ClaimNames {
    ClaimNames {
        userinfo: request.claims.userinfo.iter().cloned().collect(),
        id_token: request.claims.id_token.iter().cloned().collect(),
    }
}

fn sign_in(request: &AuthorizeRequest, present: &PresentSession) -> TokenSubject {
    let named = request.acr_values.identity_provider.is_some();
    TokenSubject {
        subject: present.user.sub.clone(),
        sid: Some(present.row.sid.clone()),
        tenant: present.row.tenant.clone(),
        identity_provider: named.then(|| present.row.identity_provider.clone()),
        auth_time: present.row.auth_time,
        amr: present.row.amr.clone(),
        acr: present.row.acr.clone(),
    }
}
