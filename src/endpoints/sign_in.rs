//! What follows a sign-in that went well: a session, its cookie, an audit event, and the next step of the request.

use std::time::Duration;

use serde_json::json;

use super::answers::{self, Presentation};
use super::cookies::{self, SessionHandle};
use super::errand::Errand;
use super::present_session::PresentSession;
use super::visit::Next;
use crate::app::App;
use crate::app::failure::Failure;
use crate::crypto::random;
use crate::http::{Request, Response};
use crate::protocol::acr_values::SIGNED_IN;
use crate::protocol::identifiers::Sid;
use crate::protocol::instant::Instant;
use crate::protocol::interaction::Step;
use crate::protocol::session::{LOCAL, PASSWORD};
use crate::store::audit_events::AuditEvent;
use crate::store::sessions::{self, SessionRenewal, SessionRow};
use crate::store::users::UserRow;

/// Signs the user in, by their row and the moment it was read, and goes on with what they came for.
pub fn complete(
    app: &App,
    request: &Request,
    errand: Errand<'_>,
    present: Option<&PresentSession>,
    accepted: (UserRow, Instant),
) -> Result<Response, Failure> {
    let browser_state = cookies::new_browser_state();
    let begun = begin(app, request, errand, present, accepted)?;
    let signed_in = PresentSession { browser_state: Some(browser_state.clone()), ..begun };
    let next = errand.next(app, request, Some(&signed_in), Step::AfterSignIn);
    let response = match next {
        Ok(Next::Answer(response)) => response,
        Ok(Next::Consent { .. }) => answers::see_other(errand.page(app, "/consent")),
        Ok(Next::Login | Next::SelectAccount) => answers::see_other(errand.page(app, "/login")),
        // The user is signed in although the client is told no: the browser must learn its session in that answer.
        Err(Failure::Authorize(error)) => {
            answers::authorize_error(&Presentation { config: &app.config, request }, error)
        }
        Err(failure) => return Err(failure),
    };
    let response = cookies::set_session(&app.config, response, &signed_in.handle);
    Ok(cookies::set_browser_state(&app.config, response, &browser_state))
}

/// The same user's session goes on under a new handle; anybody else's ends, and a new one begins.
fn begin(
    app: &App,
    request: &Request,
    errand: Errand<'_>,
    present: Option<&PresentSession>,
    (user, read_at): (UserRow, Instant),
) -> Result<PresentSession, Failure> {
    // A sign-in answers its own request: by the database's clock the request may lie a moment ahead of this process.
    let auth_time = app.now().max(errand.received_at());
    let same_user = |present: &&PresentSession| present.user.sub == user.sub && present.row.tenant == user.tenant;
    let own = present.filter(same_user);
    if let Some(present) = own
        && let Some(renewed) = renew(app, request, errand, present, auth_time)?
    {
        return Ok(PresentSession { user, ..renewed });
    }
    let row = new_row(app, &user, read_at, auth_time);
    let handle = SessionHandle::new(row.day, random::bytes());
    sessions::insert(&app.store, &row, &handle.hash(), &event("signed_in", request, errand, &user, &row.sid))?;
    // One of the same user that was not to be renewed has ended, or goes on under a handle that this browser does not have.
    if let Some(present) = present.filter(|_| own.is_none()) {
        let event = event("signed_out", request, errand, &present.user, &present.row.sid);
        sessions::end(&app.store, present.row.day, &present.row.sid, &event)?;
    }
    Ok(PresentSession { handle, row, user, browser_state: None })
}

fn renew(
    app: &App,
    request: &Request,
    errand: Errand<'_>,
    present: &PresentSession,
    auth_time: Instant,
) -> Result<Option<PresentSession>, Failure> {
    let handle = SessionHandle::new(present.row.day, random::bytes());
    let amr = vec![String::from(PASSWORD)];
    let renewal =
        SessionRenewal { handle_hash: handle.hash(), auth_time, amr: &amr, acr: SIGNED_IN, identity_provider: LOCAL };
    let event = event("signed_in", request, errand, &present.user, &present.row.sid);
    if !sessions::renew(&app.store, &present.row, &renewal, &event)? {
        return Ok(None);
    }
    let identity_provider = String::from(LOCAL);
    let row = SessionRow { auth_time, amr, acr: String::from(SIGNED_IN), identity_provider, ..present.row.clone() };
    Ok(Some(PresentSession { handle, row, ..present.clone() }))
}

fn new_row(app: &App, user: &UserRow, read_at: Instant, auth_time: Instant) -> SessionRow {
    let now = app.now();
    let expires_at = now.plus(app.config.session_lifetime);
    // The row outlives the last access token that the session can have fed: an ended session must be found to be ended.
    let day = expires_at.plus(app.longest_access_token_lifetime()).day();
    SessionRow {
        day,
        sid: Sid::of_day(day, random::bytes()),
        sub: user.sub.clone(),
        auth_time,
        amr: vec![String::from(PASSWORD)],
        acr: String::from(SIGNED_IN),
        tenant: user.tenant.clone(),
        identity_provider: String::from(LOCAL),
        // As old as the row it was judged by: a password changed since then ends this session, too. Not older than the
        // user's own mark, which lies a moment ahead of the change that set it.
        created_at: read_at.max(user.tokens_valid_after.plus(Duration::from_micros(1))),
        expires_at,
        ended_at: None,
    }
}

fn event<'a>(
    name: &'a str,
    request: &'a Request,
    errand: Errand<'a>,
    user: &'a UserRow,
    sid: &'a Sid,
) -> AuditEvent<'a> {
    AuditEvent {
        event: name,
        client_id: errand.client_id(),
        sub: Some(&user.sub),
        sid: Some(sid),
        source: Some(request.source),
        request_id: Some(&request.id),
        detail: json!({"amr": [PASSWORD]}),
    }
}
