//! What a request that may proceed is given: this is the one place that grants. A client gets a
//! code, an ID token or an access token, as its response type names them; a device gets its grant;
//! the account page is opened.

use serde_json::json;

use crate::app::failure::Failure;
use crate::endpoints::answers;
use crate::endpoints::cookies;
use crate::endpoints::token::grants::issue::{self, Issue, IssueUser};
use crate::endpoints::turn::InSession;
use crate::endpoints::visit::{self, user_code_hashes};
use crate::http::Response;
use crate::keys::random;
use crate::pages;
use crate::protocol::authorize::authorization_code::{AuthorizationCode, redirect_uri_hash};
use crate::protocol::authorize::authorize_request::{AuthorizeRefusal, Ending, ReturnPath};
use crate::protocol::authorize::authorize_response::{self, AuthorizeSuccess, Issued};
use crate::protocol::device::device_code::DeviceDecision;
use crate::protocol::logout::end_session::session_state;
use crate::protocol::token::access_token::StandsOn;
use crate::protocol::token::audience::narrow;
use crate::protocol::token::claims::ClaimNames;
use crate::protocol::token::grant::Grant;
use crate::protocol::words::client::Client;
use crate::protocol::words::epochs::Epochs;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::reason::{AuthorizeErrorCode, Reason};
use crate::protocol::words::scope::ScopeSet;
use crate::protocol::words::session::SignIn;
use crate::registry::RegisteredClient;
use crate::store::audit_events::AuditEvent;
use crate::store::consents::{self, ConsentRow};
use crate::store::device_authorizations::{self, NewDecision};
use crate::store::session_clients;

/// Gives what was asked for, as far as `scope` goes. `consent` is what the user allowed the client
/// before; `agreed`: they have just agreed anew.
pub fn grant(
    turn: InSession<'_>,
    scope: &ScopeSet,
    consent: Option<ConsentRow>,
    agreed: bool,
) -> Result<Response, Failure> {
    let visit = turn.visit;
    match (&visit.request.ending, &visit.client) {
        (Ending::Client(path), Some(client)) => {
            let consent_epoch = consent_epoch(turn, client, consent, agreed)?;
            let epochs = turn.present.row.epochs;
            let granted = Granted {
                turn,
                client: &client.client,
                path,
                scope,
                epochs: epochs.at_client(client.epoch, consent_epoch),
                now: turn.app.now(),
            };
            granted.respond()
        }
        (Ending::Account { anew }, _) => {
            // How the account page is told that they were sent to sign in anew, and did.
            let query = if *anew { "?signed_in=anew" } else { "" };
            let account = format!("{}/account{query}", turn.app.config.base_url.path());
            let account = answers::speaking(account, visit.ui_locales());
            Ok(answers::see_other(account))
        }
        (Ending::Device(_) | Ending::Client(_), _) => {
            decide_device(turn, DeviceDecision::Allowed, scope)
        }
    }
}

/// Decides about the device, once. Its grant does not depend on the browser session.
pub fn decide_device(
    turn: InSession<'_>,
    decision: DeviceDecision,
    scope: &ScopeSet,
) -> Result<Response, Failure> {
    let InSession {
        app,
        visit,
        present,
        ..
    } = turn;
    let (Ending::Device(user_code), Some(client)) = (&visit.request.ending, &visit.client) else {
        return Err(visit::invalid());
    };
    let allowed = decision == DeviceDecision::Allowed;
    let new = NewDecision {
        decision,
        user: &present.sign_in(None, &visit.request),
        scopes: scope,
        session_epochs: present.row.epochs,
        client_epoch: client.epoch,
        ends_lapsed_consent: allowed && client.client.require_consent == Some(true),
    };
    let event = AuditEvent {
        event: if allowed {
            "device_allowed"
        } else {
            "device_denied"
        },
        sub: Some(&present.row.subject),
        sid: Some(&present.row.sid),
        detail: json!({"scope": scope.to_string()}),
        ..turn.event()
    };
    let hashes = user_code_hashes(app, user_code);
    if !device_authorizations::decide(&app.store, &hashes, &new, &event)? {
        return Err(Failure::bad_request(Reason::DeviceAlreadyDecided));
    }
    let page = pages::consent::decided_page(turn.chrome(), &client.client, allowed);
    Ok(answers::plain_page(200, page))
}

/// The epoch that the grant stands on. A new consent, remembered or not, first ends what stood on
/// one that has lapsed.
fn consent_epoch(
    turn: InSession<'_>,
    client: &RegisteredClient,
    consent: Option<ConsentRow>,
    agreed: bool,
) -> Result<i64, Failure> {
    let InSession { app, present, .. } = turn;
    let lapsed = consent
        .as_ref()
        .is_some_and(|row| row.has_lapsed(app.now()));
    if !(agreed && lapsed && client.client.require_consent == Some(true)) {
        return Ok(consent.map_or(0, |row| row.epoch));
    }
    let client_id = &client.client.client_id;
    match consents::end_lapsed(&app.store, &present.user.sub, client_id)? {
        Some(epoch) => Ok(epoch),
        // Somebody was quicker, most likely they themselves.
        None => Ok(turn
            .visit
            .find_consent(app, present)?
            .map_or(0, |row| row.epoch)),
    }
}

/// What a client is given.
struct Granted<'a> {
    turn: InSession<'a>,
    client: &'a Client,
    path: &'a ReturnPath,
    scope: &'a ScopeSet,
    epochs: Epochs,
    now: Instant,
}

impl Granted<'_> {
    /// Issues it, in the answer to the client.
    fn respond(&self) -> Result<Response, Failure> {
        let InSession {
            app,
            visit,
            present,
            ..
        } = self.turn;
        let path = self.path;
        let client = self.client;
        let request = &visit.request;
        // The client has a part in the session, where it wants to hear of its end.
        if client.frontchannel_logout.is_some() || client.backchannel_logout.is_some() {
            let row = &present.row;
            session_clients::enter(&app.store, row.day, &row.sid, &client.client_id)?;
        }
        let issued = self.issue()?;
        let browser_state = present
            .browser_state
            .clone()
            .unwrap_or_else(cookies::new_browser_state);
        // For OpenID requests of clients that run in a browser.
        let origin = path.to.origin();
        let session_state = origin
            .as_ref()
            .filter(|_| request.is_openid())
            .map(|origin| {
                let client_id = client.client_id.as_str();
                session_state(client_id, origin, browser_state.expose(), random::bytes())
            });
        let success = AuthorizeSuccess {
            issued: &issued,
            state: path.state.as_deref(),
            session_state: session_state.as_deref(),
            issuer: app.issuer(),
        };
        let delivery = authorize_response::deliver(&path.to, path.mode, success.parameters());
        let framed_by = origin.filter(|_| request.prompt.none);
        let mut response =
            answers::deliver(&self.turn.presentation(), delivery, framed_by.as_deref());
        response.note.grant = request
            .response_type
            .token
            .then(|| String::from("implicit"));
        Ok(match present.browser_state {
            Some(_) => response,
            None => cookies::set_browser_state(&app.config, response, &browser_state),
        })
    }

    fn issue(&self) -> Result<Issued, Failure> {
        let InSession {
            app,
            visit,
            present,
            ..
        } = self.turn;
        let request = &visit.request;
        let sign_in = present.sign_in(Some(&present.row.sid), request);
        let claims = ClaimNames {
            userinfo: request.claims.userinfo.iter().cloned().collect(),
            id_token: request.claims.id_token.iter().cloned().collect(),
        };
        let code = match request.response_type.code {
            true => {
                let code = self.authorization_code(&sign_in, &claims);
                Some(issue::authorization_code(app, &code).ok_or_else(|| visit.too_long())?)
            }
            false => None,
        };
        // Whom an access token through the browser is for. A resource whose scopes the user
        // unticked is not to be had.
        let narrowed = match request.response_type.token {
            true => {
                let catalogue = &visit.snapshot.catalogue;
                let resources = &request.resources;
                let narrowed = narrow(self.scope, &[], resources, catalogue, app.issuer());
                let code = AuthorizeErrorCode::InvalidTarget;
                Some(
                    narrowed
                        .map_err(|error| visit.refuse(AuthorizeRefusal::new(code, error.reason)))?,
                )
            }
            false => None,
        };
        let issue = Issue {
            app,
            snapshot: &visit.snapshot,
            client: self.client,
            scope: self.scope,
            user: Some(IssueUser {
                sign_in: &sign_in,
                user: &present.user.clone().into_core(),
                grant: None,
                claims: &claims,
                nonce: request.nonce.as_deref(),
            }),
            stands_on: StandsOn::User(self.epochs),
            now: self.now,
        };
        issue.through_browser(request.response_type, code, narrowed)
    }

    fn authorization_code(&self, sign_in: &SignIn, claims: &ClaimNames) -> AuthorizationCode {
        let client = self.client;
        let request = &self.turn.visit.request;
        let lifetime = client.lifetimes.authorization_code;
        // Its end is fixed now, because the grant's id carries the day of it.
        let grant = Grant::given(
            random::bytes(),
            client,
            sign_in.clone(),
            self.scope.clone(),
            self.epochs,
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
        }
    }
}
