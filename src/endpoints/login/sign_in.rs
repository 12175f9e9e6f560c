//! What follows a sign-in that went well: a session, its cookie, an audit event, and the next step
//! of the request.

use serde_json::json;

use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::authorize::consent;
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::visit::{Next, Visit};
use crate::endpoints::cookies::{self, SessionHandle};
use crate::endpoints::login::{known_browser, second_factor};
use crate::endpoints::upstream;
use crate::http::{Request, Response};
use crate::keys::random;
use crate::protocol::authorize::authorize_request::Refusal;
use crate::protocol::authorize::interaction::Step;
use crate::protocol::words::identifiers::Sid;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::reason::{AuthorizeErrorCode, Reason};
use crate::protocol::words::session::{LOCAL, PASSWORD, Session};
use crate::protocol::words::strength::Strength;
use crate::store::audit_events::AuditEvent;
use crate::store::sessions;
use crate::store::upstream_sessions::Arrival;
use crate::store::users::CurrentUser;

/// Characters of what a browser calls itself that are kept.
const USER_AGENT: usize = 200;

/// How somebody proved who they are.
#[derive(Clone, Debug)]
pub struct Proof {
    /// `local`, or the name of the upstream provider that vouches for them.
    pub identity_provider: String,
    pub amr: Vec<String>,
    pub acr: String,
    /// When they did; `None` is now.
    pub auth_time: Option<Instant>,
    /// How they came from upstream.
    pub upstream: Option<Arrival>,
    /// Whether the sign-in shall outlive the browser; `None` where nobody was asked: then a session
    /// stays as it is.
    pub remember: Option<bool>,
}

impl Proof {
    /// Their password, typed just now.
    pub fn password(remember: Option<bool>) -> Proof {
        let (identity_provider, amr) = (String::from(LOCAL), vec![String::from(PASSWORD)]);
        Proof {
            identity_provider,
            amr,
            acr: String::from(Strength::SignedIn.as_str()),
            auth_time: None,
            upstream: None,
            remember,
        }
    }

    fn is_from_upstream(&self) -> bool {
        self.identity_provider != LOCAL
    }
}

/// Signs the user in, as they were read, and goes on with what they came for.
pub fn complete(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: Option<&PresentSession>,
    found: CurrentUser,
    proof: &Proof,
) -> Result<Response, Failure> {
    let browser_state = cookies::new_browser_state();
    let Some(begun) = begin(app, request, visit, present, found, proof)? else {
        return Ok(match proof.is_from_upstream() {
            true => upstream::over(app, request, Reason::RoundTripOver),
            // Revoked while they signed in: who they are is asked anew.
            false => answers::see_other(visit.page(app, "/login")),
        });
    };
    let signed_in = PresentSession {
        browser_state: Some(browser_state.clone()),
        ..begun
    };
    let response = go_on(app, request, visit, &signed_in, proof.is_from_upstream())?;
    let response = cookies::set_session(
        &app.config,
        response,
        &signed_in.handle,
        signed_in.max_age(app),
    );
    let response = known_browser::remember(app, response, &signed_in.user.sub);
    Ok(cookies::set_browser_state(
        &app.config,
        response,
        &browser_state,
    ))
}

/// Goes on with the request, in a session that was begun or made stronger just now.
pub fn go_on(
    app: &App,
    request: &Request,
    visit: &Visit,
    signed_in: &PresentSession,
    is_from_upstream: bool,
) -> Result<Response, Failure> {
    let next = match visit.next(app, request, Some(signed_in), Step::AfterSignIn) {
        // Asking upstream again would get the same answer, round and round.
        Ok(Next::Login | Next::Upstream(_)) if is_from_upstream => Err(visit.refuse(Refusal::new(
            AuthorizeErrorCode::LoginRequired,
            Reason::LoginRequired,
        ))),
        next => next,
    };
    Ok(match next {
        Ok(Next::Answer(response)) => response,
        Ok(Next::Consent { may_remember }) if visit.is_of_device() => {
            consent::draw(app, request, visit, signed_in, may_remember, false)
        }
        Ok(Next::Consent { .. }) => answers::see_other(visit.page(app, "/consent")),
        Ok(Next::Stronger(stronger)) => {
            second_factor::in_session(app, request, visit, signed_in, stronger)?
        }
        Ok(Next::Login | Next::Upstream(_) | Next::SelectAccount) => {
            answers::see_other(visit.page(app, "/login"))
        }
        // The user is signed in although the client is told no: the browser must learn its session
        // in that answer.
        Err(Failure::Authorize(error)) => answers::authorize_error(
            &Presentation {
                config: &app.config,
                request,
            },
            error,
        ),
        Err(failure) => return Err(failure),
    })
}

/// The same user's session goes on under a new handle, unless it is to outlive the browser and did
/// not before. Any other ends, and a new one begins. `None` when the way that they came is no way
/// in, or no longer, or the user was revoked meanwhile.
fn begin(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: Option<&PresentSession>,
    found: CurrentUser,
    proof: &Proof,
) -> Result<Option<PresentSession>, Failure> {
    let (epochs, user) = (found.session_epochs(), found.user);
    let (amr, identity_provider, arrival) = (
        &proof.amr,
        &proof.identity_provider,
        proof.upstream.as_ref(),
    );
    // A sign-in answers its own request: by the database's clock the request may lie a moment ahead
    // of this process.
    let auth_time = proof
        .auth_time
        .unwrap_or_else(|| app.now().max(visit.request.received_at));
    let event = |event, sub, sid| AuditEvent {
        event,
        client_id: visit.client_id(),
        sub: Some(sub),
        sid: Some(sid),
        source: Some(request.source),
        request_id: Some(&request.id),
        detail: match proof.is_from_upstream() {
            true => json!({"amr": amr, "identity_provider": identity_provider}),
            false => json!({"amr": amr}),
        },
    };
    let same_user = |present: &&PresentSession| {
        present.user.sub == user.sub && present.row.tenant == user.tenant
    };
    let offered = app.config.remember_session_lifetime;
    let remember = proof.remember.filter(|_| offered.is_some());
    let own = present
        .filter(same_user)
        .filter(|present| remember != Some(true) || present.is_remembered(app));
    let created_at = app.now();
    let lifetime = offered
        .filter(|_| remember == Some(true))
        .unwrap_or(app.config.session_lifetime);
    let expires_at = created_at.plus(lifetime);
    let user_agent = request
        .headers
        .first("user-agent")
        .map(|text| text.chars().take(USER_AGENT).collect());
    // The row outlives the last access token that the session can have fed: an ended session must
    // be found to be ended.
    let day = expires_at.plus(app.longest_access_token_lifetime()).day();
    let new = Session {
        day,
        sid: Sid::of_day(day, random::bytes()),
        subject: user.sub.clone(),
        auth_time,
        amr: amr.clone(),
        acr: proof.acr.clone(),
        tenant: user.tenant.clone(),
        identity_provider: Some(identity_provider.clone()),
        upstream_issuer: arrival.map(|arrival| arrival.session.issuer.clone()),
        epochs,
        source: Some(request.source),
        user_agent,
        created_at,
        used_at: created_at,
        expires_at,
        ended_at: None,
    };
    if let Some(present) = own {
        let mut before = present.row.clone();
        if remember == Some(false) && present.is_remembered(app) {
            before = before.no_longer_remembered(app.config.session_lifetime, created_at);
        }
        let Session {
            day,
            sid,
            created_at,
            expires_at,
            ended_at,
            ..
        } = before;
        let row = Session {
            day,
            sid,
            created_at,
            expires_at,
            ended_at,
            ..new.clone()
        };
        let handle = SessionHandle::new(day, random::bytes());
        let event = event("signed_in", &user.sub, &present.row.sid);
        if sessions::renew(&app.store, &row, &handle.hash(), arrival, &event)? {
            return Ok(Some(PresentSession {
                handle,
                row,
                user,
                browser_state: None,
            }));
        }
    }
    let row = new;
    let handle = SessionHandle::new(day, random::bytes());
    let begun = event("signed_in", &user.sub, &row.sid);
    if !sessions::insert(&app.store, &row, &handle.hash(), arrival, &begun)? {
        return Ok(None);
    }
    // One of the same user that was not to be renewed has ended, or goes on under a handle that
    // this browser does not have.
    if let Some(present) = present.filter(|_| own.is_none()) {
        let event = event("signed_out", &present.user.sub, &present.row.sid);
        sessions::end(&app.store, present.row.day, &present.row.sid, &event)?;
    }
    Ok(Some(PresentSession {
        handle,
        row,
        user,
        browser_state: None,
    }))
}
