//! Begins the session of somebody who has proved who they are.

use serde_json::json;

use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::cookies::{self, SessionHandle};
use crate::endpoints::login::known_browser;
use crate::endpoints::present_session::{KnownConsent, PresentSession};
use crate::endpoints::turn::{Proof, Turn};
use crate::http::Response;
use crate::keys::random;
use crate::protocol::words::identifiers::Sid;
use crate::protocol::words::session::Session;
use crate::store::audit_events::AuditEvent;
use crate::store::sessions;
use crate::store::users::CurrentUser;

/// How many characters of what a browser calls itself are kept.
const USER_AGENT: usize = 200;

/// Signs the user in, as they were read.
///
/// If this browser has a session of the same user, that session goes on under a new handle. It does
/// not if it is to outlive the browser now and did not before. Any other session of this browser
/// ends, and a new one begins. `None` when their way in is no longer one, or when the user was
/// revoked meanwhile.
pub fn begin(
    turn: Turn<'_>,
    found: CurrentUser,
    proof: &Proof,
) -> Result<Option<PresentSession>, Failure> {
    let Turn { app, present, .. } = turn;
    let is_offered = app.config.remember_session_lifetime.is_some();
    let remember = proof.remember.filter(|_| is_offered);
    let new = new_session(turn, &found, proof, remember);
    let user = found.user;
    let arrival = proof.upstream.as_ref();
    let begun = |handle, row| PresentSession {
        handle,
        row,
        user: user.clone(),
        browser_state: Some(cookies::new_browser_state()),
        consent: KnownConsent::Unread,
    };
    let renewable = present
        .filter(|present| present.user.sub == user.sub && present.row.tenant == user.tenant)
        .filter(|present| remember != Some(true) || present.is_remembered(app));
    if let Some(present) = renewable {
        let row = renewed(app, present, new.clone(), remember);
        let handle = SessionHandle::new(row.day, random::bytes());
        let event = event("signed_in", turn, proof, &row);
        if sessions::renew(&app.store, &row, &handle.hash(), arrival, &event)? {
            return Ok(Some(begun(handle, row)));
        }
    }
    let handle = SessionHandle::new(new.day, random::bytes());
    let signed_in = event("signed_in", turn, proof, &new);
    if !sessions::insert(&app.store, &new, &handle.hash(), arrival, &signed_in)? {
        return Ok(None);
    }
    // A session that could not be renewed ends. Where the renewal failed, it has ended already, or
    // goes on under a handle that this browser does not have.
    if let Some(present) = present.filter(|_| renewable.is_none()) {
        let event = event("signed_out", turn, proof, &present.row);
        sessions::end(&app.store, present.row.day, &present.row.sid, &event)?;
    }
    Ok(Some(begun(handle, new)))
}

/// The answer that brings its browser the session that began.
pub fn carried_by(app: &App, response: Response, session: &PresentSession) -> Response {
    let response = session.carried_by(app, response);
    let response = known_browser::remember(app, response, &session.user.sub);
    match &session.browser_state {
        Some(state) => cookies::set_browser_state(&app.config, response, state),
        None => response,
    }
}

fn new_session(
    turn: Turn<'_>,
    found: &CurrentUser,
    proof: &Proof,
    remember: Option<bool>,
) -> Session {
    let Turn {
        app,
        request,
        visit,
        ..
    } = turn;
    let created_at = app.now();
    let lifetime = app
        .config
        .remember_session_lifetime
        .filter(|_| remember == Some(true))
        .unwrap_or(app.config.session_lifetime);
    let expires_at = created_at.plus(lifetime);
    // The row outlives the last access token that the session can have fed: an ended session must
    // be found to be ended.
    let day = expires_at.plus(app.longest_access_token_lifetime()).day();
    Session {
        day,
        sid: Sid::of_day(day, random::bytes()),
        subject: found.user.sub.clone(),
        // A sign-in answers its own request. By the database's clock that may lie a moment ahead of
        // this process.
        auth_time: proof
            .auth_time
            .unwrap_or_else(|| app.now().max(visit.request.received_at)),
        amr: proof.amr.clone(),
        acr: proof.acr.clone(),
        tenant: found.user.tenant.clone(),
        identity_provider: Some(proof.identity_provider.clone()),
        upstream_issuer: proof
            .upstream
            .as_ref()
            .map(|arrival| arrival.session.issuer.clone()),
        epochs: found.session_epochs(),
        source: Some(request.source),
        user_agent: request
            .headers
            .first("user-agent")
            .map(|text| text.chars().take(USER_AGENT).collect()),
        created_at,
        used_at: created_at,
        expires_at,
        ended_at: None,
    }
}

/// The present session after this sign-in: the same session, as long as it was to last, unless the
/// user unticked the box to stay signed in.
fn renewed(app: &App, present: &PresentSession, new: Session, remember: Option<bool>) -> Session {
    let mut before = present.row.clone();
    if remember == Some(false) && present.is_remembered(app) {
        before = before.no_longer_remembered(app.config.session_lifetime, new.created_at);
    }
    Session {
        day: before.day,
        sid: before.sid,
        created_at: before.created_at,
        expires_at: before.expires_at,
        ended_at: before.ended_at,
        ..new
    }
}

fn event<'a>(
    event: &'a str,
    turn: Turn<'a>,
    proof: &Proof,
    session: &'a Session,
) -> AuditEvent<'a> {
    let amr = &proof.amr;
    AuditEvent {
        event,
        sub: Some(&session.subject),
        sid: Some(&session.sid),
        detail: if proof.is_from_upstream() {
            json!({"amr": amr, "identity_provider": proof.identity_provider})
        } else {
            json!({"amr": amr})
        },
        ..turn.event()
    }
}
