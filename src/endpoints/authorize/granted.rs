//! What a request that may proceed is given: a code, an ID token, an access token, as its response
//! type names them.

use super::present_session::PresentSession;
use super::visit::Visit;
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::cookies;
use crate::endpoints::token::grants::issue::{self, Issue, IssueUser};
use crate::http::{Request, Response};
use crate::keys::random;
use crate::protocol::authorize::authorization_code::{AuthorizationCode, redirect_uri_hash};
use crate::protocol::authorize::authorize_request::{Refusal, ReturnPath};
use crate::protocol::authorize::authorize_response::{self, AuthorizeSuccess, Issued};
use crate::protocol::logout::end_session::session_state;
use crate::protocol::token::access_token::StandsOn;
use crate::protocol::token::audience::narrow;
use crate::protocol::token::claims::ClaimNames;
use crate::protocol::token::grant::Grant;
use crate::protocol::words::epochs::Epochs;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::reason::AuthorizeErrorCode;
use crate::protocol::words::scope::ScopeSet;
use crate::protocol::words::session::SignIn;
use crate::registry::RegisteredClient;
use crate::store::session_clients;

pub struct Granted<'a> {
    pub visit: &'a Visit,
    pub client: &'a RegisteredClient,
    pub path: &'a ReturnPath,
    pub present: &'a PresentSession,
    pub scope: &'a ScopeSet,
    pub epochs: Epochs,
}

impl Granted<'_> {
    /// Issues it, in the answer to the client.
    pub fn respond(&self, app: &App, http: &Request) -> Result<Response, Failure> {
        let Granted {
            visit,
            path,
            present,
            ..
        } = self;
        let (client, request) = (&self.client.client, &visit.request);
        // The client has a part in the session, where it wants to hear of its end.
        if client.frontchannel_logout.is_some() || client.backchannel_logout.is_some() {
            session_clients::enter(
                &app.store,
                present.row.day,
                &present.row.sid,
                &client.client_id,
            )?;
        }
        let issued = self.issue(app)?;
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
                session_state(
                    client.client_id.as_str(),
                    origin,
                    browser_state.expose(),
                    random::bytes(),
                )
            });
        let success = AuthorizeSuccess {
            issued: &issued,
            state: path.state.as_deref(),
            session_state: session_state.as_deref(),
            issuer: app.issuer(),
        };
        let delivery = authorize_response::deliver(&path.to, path.mode, success.parameters());
        let framed_by = origin.filter(|_| request.prompt.none);
        let presentation = Presentation {
            config: &app.config,
            request: http,
        };
        let mut response = visit.noted(answers::deliver(
            &presentation,
            delivery,
            framed_by.as_deref(),
        ));
        response.note.grant = request
            .response_type
            .token
            .then(|| String::from("implicit"));
        Ok(match present.browser_state {
            Some(_) => response,
            None => cookies::set_browser_state(&app.config, response, &browser_state),
        })
    }

    fn issue(&self, app: &App) -> Result<Issued, Failure> {
        let Granted {
            visit,
            client,
            present,
            scope,
            ..
        } = self;
        let (request, now) = (&visit.request, app.now());
        let sign_in = present.sign_in(Some(&present.row.sid), request);
        let claims = ClaimNames {
            userinfo: request.claims.userinfo.iter().cloned().collect(),
            id_token: request.claims.id_token.iter().cloned().collect(),
        };
        let code = match request.response_type.code {
            true => {
                let code = self.authorization_code(&sign_in, &claims, now);
                Some(issue::authorization_code(app, &code).ok_or_else(|| visit.too_long())?)
            }
            false => None,
        };
        // Whom an access token through the browser is for. A resource whose scopes the user
        // unticked is not to be had.
        let narrowed = match request.response_type.token {
            true => {
                let narrowed = narrow(
                    scope,
                    &[],
                    &request.resources,
                    &visit.snapshot.catalogue,
                    app.issuer(),
                );
                let refused =
                    |reason| visit.refuse(Refusal::new(AuthorizeErrorCode::InvalidTarget, reason));
                Some(narrowed.map_err(|error| refused(error.reason))?)
            }
            false => None,
        };
        let user = IssueUser {
            sign_in: &sign_in,
            user: &present.user.clone().into_core(),
            grant: None,
            claims: &claims,
            nonce: request.nonce.as_deref(),
        };
        let stands_on = StandsOn::User(self.epochs);
        let issue = Issue {
            client: &client.client,
            scope,
            user: Some(user),
            stands_on,
            now,
        };
        issue::through_browser(
            app,
            &visit.snapshot,
            &issue,
            request.response_type,
            code,
            narrowed,
        )
    }

    fn authorization_code(
        &self,
        sign_in: &SignIn,
        claims: &ClaimNames,
        now: Instant,
    ) -> AuthorizationCode {
        let Granted {
            client,
            path,
            scope,
            epochs,
            ..
        } = *self;
        let (request, lifetimes) = (&self.visit.request, &client.client.lifetimes);
        let (random, scope) = (random::bytes(), scope.clone());
        // Its end is fixed now, because the grant's id carries the day of it.
        let grant = Grant::given(
            random,
            &client.client,
            sign_in.clone(),
            scope,
            epochs,
            now,
            lifetimes.authorization_code,
        );
        AuthorizationCode {
            grant: Grant {
                resources: request.resources.clone(),
                claims: claims.clone(),
                ..grant
            },
            redirect_uri_hash: redirect_uri_hash(path.to.uri()),
            challenge: request
                .code_challenge
                .as_ref()
                .map(|challenge| challenge.digest()),
            nonce: request.nonce.clone(),
            response_type: request.response_type,
            expires_at: now.plus(lifetimes.authorization_code),
        }
    }
}
