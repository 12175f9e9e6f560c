//! How a sign-in ends: the session begins, and the request is given what it asked for. This is the
//! one place that begins sessions, and the one that grants to a browser (the token endpoint's own
//! grants are in `token/grants`). A client gets a code, an ID token or an access token, as its
//! response type names them; a device gets its grant; the account page is opened.

use serde_json::json;

use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::endpoints::answers;
use crate::endpoints::cookies::{self, SessionHandle};
use crate::endpoints::current_session::{CurrentSession, KnownConsent};
use crate::endpoints::login::known_browser;
use crate::endpoints::token::grants::issue::{self, Issue, IssueUser};
use crate::endpoints::transaction::of_device::user_code_hashes;
use crate::endpoints::transaction::{self, InSession, Proof, RequestContext};
use crate::http::Response;
use crate::keys::random;
use crate::pages;
use crate::pages::error::Problem;
use crate::registry::RegisteredClient;
use gatepost_protocol::authorize::authorization_code::{AuthorizationCode, redirect_uri_hash};
use gatepost_protocol::authorize::authorize_request::{Ending, LandingPage, ReturnPath};
use gatepost_protocol::authorize::authorize_response::{self, AuthorizeSuccess, Issued};
use gatepost_protocol::device::device_code::DeviceDecision;
use gatepost_protocol::login::bound_session::Binding;
use gatepost_protocol::logout::end_session::session_state;
use gatepost_protocol::token::access_token::StandsOn;
use gatepost_protocol::token::audience::narrow;
use gatepost_protocol::token::claims::ClaimNames;
use gatepost_protocol::token::grant::{Given, Grant};
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::epochs::Epochs;
use gatepost_protocol::words::identifiers::Sid;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::reason::{AuthorizeErrorCode, Reason};
use gatepost_protocol::words::response_type::ResponseType;
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::session::{Session, SignIn};
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::consents::{self, ConsentRow};
use gatepost_store::device_authorizations::{self, NewDecision};
use gatepost_store::sessions::{self, NewSession};
use gatepost_store::users::{CurrentUser, UserRow};
use gatepost_store::{session_clients, tokens};

/// How many characters of what a browser calls itself are kept.
const USER_AGENT: usize = 200;

/// Signs the user in, as they were read.
///
/// - This browser has no session: one begins.
/// - It has a session of the same user and tenant, and the sign-in need not make it outlive the
///   browser: it goes on under a new handle.
/// - That session turns out to have ended: a new one begins. A factor that was proved only within
///   that session does not suffice: `None`.
/// - It has any other session, or one that is bound to a key which it did not show: a new one
///   begins, and that one ends.
/// - Their way in is no longer one, or the user was revoked meanwhile: `None`.
pub fn begin_session(
    context: RequestContext<'_>,
    found: CurrentUser,
    proof: &Proof,
) -> Result<Option<CurrentSession>> {
    let RequestContext {
        app,
        current_session,
        ..
    } = context;
    let is_offered = app.config.remember_session_lifetime.is_some();
    let remember = proof.remember.filter(|_| is_offered);
    let new = new_session(context, &found, proof, remember);
    let user = found.user;
    let arrival = proof.upstream.as_ref();
    let renewable = current_session
        .filter(|current_session| {
            current_session.user.sub == user.sub && current_session.row.tenant == user.tenant
        })
        .filter(|current_session| remember != Some(true) || current_session.is_remembered(app));
    if let Some(current_session) = renewable {
        let row = renewed(app, current_session, new.clone(), remember);
        let handle = SessionHandle::new(row.day, random::bytes());
        let event = session_event("signed_in", context, proof, &row);
        let renewed = NewSession {
            session: &row,
            handle_hash: &handle.hash(),
            arrival,
        };
        if renewed.renew(&app.store, &event)? {
            return Ok(Some(CurrentSession {
                binding: current_session.binding,
                ..begun(handle, row, user)
            }));
        }
        // That session has ended meanwhile. The first factor was proved in that session alone, and
        // ended with it.
        if strengthens(context, proof) {
            return Ok(None);
        }
    }
    let handle = SessionHandle::new(new.day, random::bytes());
    let signed_in = session_event("signed_in", context, proof, &new);
    let begun_now = NewSession {
        session: &new,
        handle_hash: &handle.hash(),
        arrival,
    };
    if !begun_now.insert(&app.store, &signed_in)? {
        return Ok(None);
    }
    // A session that could not be renewed ends. Where the renewal failed, it has ended already, or
    // goes on under a handle that this browser does not have.
    let replaced = current_session.filter(|_| renewable.is_none());
    if let Some(replaced) = replaced.or(context.refused) {
        let row = &replaced.row;
        let event = session_event("signed_out", context, proof, row);
        sessions::end(&app.store, row.day, &row.sid, &event)?;
    }
    Ok(Some(begun(handle, new, user)))
}

/// Whether it is a factor that makes the session of this browser stronger. Nobody signs in: the
/// session keeps its `auth_time`.
pub fn strengthens(context: RequestContext<'_>, proof: &Proof) -> bool {
    context.current_session.is_some_and(|current_session| {
        !proof.is_from_upstream() && proof.auth_time == Some(current_session.row.auth_time)
    })
}

fn begun(handle: SessionHandle, row: Session, user: UserRow) -> CurrentSession {
    CurrentSession {
        handle,
        row,
        user,
        browser_state: Some(cookies::new_browser_state()),
        consent: KnownConsent::Unread,
        binding: Binding::Unbound,
    }
}

/// The answer with the cookies of the session that began: the session, its state, and that this
/// browser is known. For such a session [`grant`] sets none of them.
pub fn carried_by(app: &App, response: Response, session: &CurrentSession) -> Response {
    let response = session.carried_by(app, response);
    let response = known_browser::remember(app, response, &session.user.sub);
    match &session.browser_state {
        Some(state) => cookies::set_browser_state(&app.config, response, state),
        None => response,
    }
}

fn new_session(
    context: RequestContext<'_>,
    found: &CurrentUser,
    proof: &Proof,
    remember: Option<bool>,
) -> Session {
    let RequestContext {
        app,
        request,
        transaction,
        ..
    } = context;
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
        // A sign-in must not lie before the request that it answers, or that would ask for a fresh
        // one again. The request may bear a time that lies a moment ahead: another process set it.
        auth_time: proof
            .auth_time
            .unwrap_or_else(|| app.now().max(transaction.request.received_at)),
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
        bound_to: None,
        bound_at: None,
        refused_at: None,
    }
}

/// The present session after this sign-in: the same session, as long as it was to last, unless the
/// user unticked the box to stay signed in.
fn renewed(
    app: &App,
    current_session: &CurrentSession,
    new: Session,
    remember: Option<bool>,
) -> Session {
    let mut before = current_session.row.clone();
    if remember == Some(false) && current_session.is_remembered(app) {
        before = before.no_longer_remembered(app.config.session_lifetime, new.created_at);
    }
    Session {
        day: before.day,
        sid: before.sid,
        created_at: before.created_at,
        expires_at: before.expires_at,
        ended_at: before.ended_at,
        bound_to: before.bound_to,
        bound_at: before.bound_at,
        refused_at: before.refused_at,
        ..new
    }
}

fn session_event<'a>(
    event: &'a str,
    context: RequestContext<'a>,
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
        ..context.event()
    }
}

/// Gives what was asked for, as far as `scope` goes. `consent` is what the user allows the client;
/// `agreed`: they have just agreed anew.
pub fn grant(
    context: InSession<'_>,
    scope: &ScopeSet,
    consent: Option<ConsentRow>,
    agreed: bool,
) -> Result<Response> {
    let transaction = context.transaction;
    match (&transaction.request.ending, &transaction.client) {
        (Ending::Client(path), Some(client)) => {
            let consent_epoch = consent_epoch(context, client, consent, agreed)?;
            let epochs = context.current_session.row.epochs;
            let granted = Granted {
                context,
                client: &client.client,
                path,
                scope,
                epochs: epochs.at_client(client.epoch, consent_epoch),
                now: context.app.now(),
            };
            granted.respond()
        }
        (Ending::Account { anew, page }, _) => Ok(to_own_page(context, page, *anew)),
        (Ending::Device(_) | Ending::Client(_), _) => {
            decide_device(context, DeviceDecision::Allowed, scope)
        }
    }
}

fn to_own_page(context: InSession<'_>, page: &LandingPage, anew: bool) -> Response {
    let page = match (page, anew) {
        (LandingPage::Admin(page), _) => page,
        (LandingPage::Start, _) => "/start",
        // How the account page is told that they were sent to sign in anew, and did.
        (LandingPage::AddFactor(decision), _) => &format!("/account?signed_in=anew&for={decision}"),
        (LandingPage::Account, true) => "/account?signed_in=anew",
        (LandingPage::Account, false) => "/account",
    };
    let address = format!("{}{page}", context.app.config.base_url.path());
    answers::see_other(answers::speaking(address, context.transaction.ui_locales()))
}

/// Decides about the device, once. Its grant does not depend on the browser session.
pub fn decide_device(
    context: InSession<'_>,
    decision: DeviceDecision,
    scope: &ScopeSet,
) -> Result<Response> {
    let InSession {
        app,
        transaction,
        current_session,
        ..
    } = context;
    let (Ending::Device(user_code), Some(client)) =
        (&transaction.request.ending, &transaction.client)
    else {
        return Err(transaction::invalid());
    };
    let allowed = decision == DeviceDecision::Allowed;
    let new = NewDecision {
        decision,
        user: &current_session.sign_in(None, &transaction.request),
        scopes: scope,
        session_epochs: current_session.row.epochs,
        client_epoch: client.epoch,
        ends_lapsed_consent: allowed && client.client.require_consent == Some(true),
    };
    let event = if allowed {
        "device_allowed"
    } else {
        "device_denied"
    };
    let event = AuditEvent {
        detail: json!({"scope": scope.to_string()}),
        ..context.own_event(event)
    };
    let hashes = user_code_hashes(app, user_code);
    if !device_authorizations::decide(&app.store, &hashes, &new, &event)? {
        return Err(Failure::bad_request(Reason::DeviceAlreadyDecided));
    }
    let page = pages::consent::decided_page(context.chrome(), &client.client, allowed);
    Ok(answers::plain_page(200, page))
}

/// The epoch that the grant stands on. A new consent, remembered or not, first ends what stood on
/// one that has lapsed.
fn consent_epoch(
    context: InSession<'_>,
    client: &RegisteredClient,
    consent: Option<ConsentRow>,
    agreed: bool,
) -> Result<i64> {
    let InSession {
        app,
        current_session,
        ..
    } = context;
    let lapsed = consent
        .as_ref()
        .is_some_and(|row| row.has_lapsed(app.now()));
    if !(agreed && lapsed && client.client.require_consent == Some(true)) {
        return Ok(consent.map_or(0, |row| row.epoch));
    }
    let client_id = &client.client.client_id;
    match consents::end_lapsed(&app.store, &current_session.user.sub, client_id)? {
        Some(epoch) => Ok(epoch),
        // Somebody was quicker, most likely they themselves.
        None => Ok(context
            .transaction
            .find_consent(app, current_session)?
            .map_or(0, |row| row.epoch)),
    }
}

/// What a client is given.
struct Granted<'a> {
    context: InSession<'a>,
    client: &'a Client,
    path: &'a ReturnPath,
    scope: &'a ScopeSet,
    epochs: Epochs,
    now: Instant,
}

impl Granted<'_> {
    /// Issues it, in the answer to the client.
    fn respond(&self) -> Result<Response> {
        let InSession {
            app,
            transaction,
            current_session,
            ..
        } = self.context;
        let client = self.client;
        // The client has a part in the session, where it wants to hear of its end.
        if client.frontchannel_logout.is_some() || client.backchannel_logout.is_some() {
            let row = &current_session.row;
            session_clients::enter(&app.store, row.day, &row.sid, &client.client_id)?;
        }
        let issued = self.issue()?;
        // Nothing was handed out yet: what is refused above uses nothing up.
        if !self.use_up()? {
            return Ok(self.used_up());
        }
        let mut response = self.deliver(&issued);
        let request = &transaction.request;
        for flow in request.legacy_flows() {
            app.note_flow(&client.client_id, flow);
        }
        response.note.grant = request
            .response_type
            .token
            .then(|| String::from("implicit"));
        Ok(response)
    }

    fn deliver(&self, issued: &Issued) -> Response {
        let InSession {
            app,
            transaction,
            current_session,
            ..
        } = self.context;
        let path = self.path;
        let request = &transaction.request;
        let browser_state = current_session
            .browser_state
            .clone()
            .unwrap_or_else(cookies::new_browser_state);
        let session_state = self.session_state(&browser_state);
        let success = AuthorizeSuccess {
            issued,
            state: path.state.as_deref(),
            session_state: session_state.as_deref(),
            issuer: app.issuer(),
        };
        let delivery = authorize_response::deliver(&path.to, path.mode, success.parameters());
        let framed_by = request.prompt.none.then(|| path.to.origin()).flatten();
        let response =
            answers::deliver(&self.context.presentation(), delivery, framed_by.as_deref());
        match current_session.browser_state {
            Some(_) => response,
            None => cookies::set_browser_state(&app.config, response, &browser_state),
        }
    }

    /// For OpenID requests of clients that run in a browser.
    fn session_state(&self, browser_state: &SecretText) -> Option<String> {
        if !self.context.transaction.request.is_openid() {
            return None;
        }
        let origin = self.path.to.origin()?;
        let client_id = self.client.client_id.as_str();
        let state = browser_state.expose();
        Some(session_state(client_id, &origin, state, random::bytes()))
    }

    /// A pushed request leads to one answer: whoever is second is shown a page.
    fn use_up(&self) -> Result<bool> {
        let InSession {
            app, transaction, ..
        } = self.context;
        let Some(pushed) = &transaction.pushed else {
            return Ok(true);
        };
        let client_id = &self.client.client_id;
        let pages = app.config.authorization_request_lifetime;
        let forgotten_at = pushed.forgotten_at(pages);
        let name = pushed.name();
        let taken = tokens::take_assertion(&app.store, client_id.as_str(), &name, forgotten_at)?;
        Ok(taken)
    }

    fn used_up(&self) -> Response {
        let transaction = self.context.transaction;
        transaction.noted(answers::error_page_with(
            &self.context.presentation(),
            Problem::RequestUsed,
            (Reason::PushedRequestUsed, None),
            transaction.ui_locales(),
            None,
        ))
    }

    fn issue(&self) -> Result<Issued> {
        let InSession {
            app,
            transaction,
            current_session,
            ..
        } = self.context;
        let request = &transaction.request;
        let sign_in = current_session.sign_in(Some(&current_session.row.sid), request);
        let claims = ClaimNames {
            userinfo: request.claims.userinfo.iter().cloned().collect(),
            id_token: request.claims.id_token.iter().cloned().collect(),
        };
        let code = if request.response_type.code {
            let code = self.authorization_code(&sign_in, &claims);
            Some(issue::authorization_code(app, &code).ok_or_else(|| transaction.too_long())?)
        } else {
            None
        };
        if request.response_type == ResponseType::CODE {
            app.note_use(&self.client.client_id);
            return Ok(Issued {
                code,
                ..Issued::default()
            });
        }
        // Whom an access token through the browser is for. A resource whose scopes the user
        // unticked is not to be had.
        let narrowed = if request.response_type.token {
            let catalogue = &transaction.snapshot.catalogue;
            let resources = &request.resources;
            let narrowed = narrow(self.scope, &[], resources, catalogue, app.issuer());
            let code = AuthorizeErrorCode::InvalidTarget;
            Some(narrowed.map_err(|error| transaction.refuse_with(code, error.reason))?)
        } else {
            None
        };
        let issue = Issue {
            app,
            snapshot: &transaction.snapshot,
            client: self.client,
            scope: self.scope,
            user: Some(IssueUser {
                sign_in: &sign_in,
                user: &current_session.user.clone().into_core(),
                grant: None,
                claims: &claims,
                nonce: request.nonce.as_deref(),
            }),
            stands_on: StandsOn::User(self.epochs),
            lifetime: self.client.lifetimes.access_token,
            bound_to: None,
            now: self.now,
        };
        issue.through_browser(request.response_type, code, narrowed)
    }

    fn authorization_code(&self, sign_in: &SignIn, claims: &ClaimNames) -> AuthorizationCode {
        let client = self.client;
        let request = &self.context.transaction.request;
        let lifetime = client.lifetimes.authorization_code;
        // Its end is fixed now, because the grant's id carries the day of it.
        let grant = Grant::given(
            random::bytes(),
            client,
            Given {
                user: sign_in.clone(),
                scope: self.scope.clone(),
                epochs: self.epochs,
                session_ends_at: Some(self.context.current_session.row.expires_at),
            },
            self.now,
            lifetime,
        );
        AuthorizationCode {
            grant: Grant {
                resources: request.resources.clone(),
                claims: claims.clone(),
                ..grant
            },
            redirect_uri_hash: redirect_uri_hash(self.path.to.uri()),
            challenge: request
                .code_challenge
                .as_ref()
                .map(|challenge| challenge.digest()),
            nonce: request.nonce.clone(),
            response_type: request.response_type,
            expires_at: self.now.plus(lifetime),
            confirmation: request.dpop_jkt,
        }
    }
}
