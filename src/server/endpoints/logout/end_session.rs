//! `/connect/endsession` (OpenID Connect RP-Initiated Logout 1.0): signs the user out for a client,
//! at once where no question is needed; otherwise it sends the browser to the page that asks. A
//! client may also call it itself, without a browser: then the session ends that its ID token
//! names.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::app::failure::{Failure, Result};
use crate::app::{App, id_tokens};
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::bound_session;
use crate::endpoints::cookies::{self, SessionHandle};
use crate::endpoints::current_session::{CurrentSession, Presence};
use crate::endpoints::forms::require_form;
use crate::endpoints::transaction;
use crate::endpoints::upstream::logout::UpstreamSignOut;
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::logout::SignedOut;
use crate::registry::RegisteredClient;
use gatepost_protocol::authorize::authorize_request::AuthorizeError;
use gatepost_protocol::logout::end_session::{
    EndSessionRequest, SignOutStep, UpstreamReturn, front_channel_address,
};
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::redirect_uri::origin_of;
use gatepost_protocol::words::session::Session;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::session_clients;
use gatepost_store::sessions;

/// OpenID Connect RP-Initiated Logout §2. Refused with a page when the client is not registered or
/// disabled.
pub fn handle(app: &App, request: &Request) -> Result<Response> {
    if request.method == Method::Post {
        // A post from another site carries no Lax cookie: the session is looked at one GET later,
        // on a page of ours.
        require_form(request, 415)?;
        let parameters = request.form_parameters()?;
        let sign_out = SignOut::begin(app, request, &parameters)?;
        return Ok(answers::see_other(sign_out.page()));
    }
    let sign_out = SignOut::begin(app, request, request.query_parameters()?)?;
    let presence = Presence::find(app, request, None)?;
    let current_session = presence.standing();
    match (sign_out.next(current_session), current_session) {
        (SignOutStep::Ask, _) => Ok(answers::see_other(sign_out.page())),
        (SignOutStep::End | SignOutStep::NobodySignedIn, Some(current_session)) => {
            sign_out.finish(current_session)
        }
        (SignOutStep::End | SignOutStep::NobodySignedIn, None) => sign_out.finish_signed_out(),
    }
}

/// A wish to sign out on its way through our pages, and who has it.
pub struct SignOut<'a> {
    pub(super) app: &'a App,
    pub(super) request: &'a Request,
    /// What was asked for, sealed; empty when no client sent the person here.
    pub sealed: String,
    asked: EndSessionRequest,
    client: Option<Arc<RegisteredClient>>,
}

impl<'a> SignOut<'a> {
    fn begin(app: &'a App, request: &'a Request, parameters: &Parameters) -> Result<SignOut<'a>> {
        let snapshot = app.registry.snapshot();
        let asked =
            EndSessionRequest::read(parameters, |hint| id_tokens::claims(app, &snapshot, hint))?;
        let sealed = transaction::seal(app, SealedPurpose::Logout(asked.clone())).sealed;
        if sealed.len() > parameters::SEALED_REQUEST {
            return Err(Failure::bad_request(Reason::RequestTooLong));
        }
        SignOut::of(app, request, asked, sealed)
    }

    /// Opens the request in the address of the logout page; a plain one when the person came there
    /// alone.
    pub fn reopen(app: &'a App, request: &'a Request) -> Result<SignOut<'a>> {
        let query = request.query_parameters()?;
        if query.single("r")?.is_none() {
            return SignOut::of(app, request, EndSessionRequest::default(), String::new());
        }
        let opened = transaction::open(app, request)?;
        let SealedPurpose::Logout(asked) = opened.request.purpose else {
            return Err(transaction::invalid());
        };
        SignOut::of(app, request, asked, opened.sealed)
    }

    /// A client that is named must be registered; it is looked up at each step. What was done here
    /// and goes on upstream comes back without a seal.
    fn of(
        app: &'a App,
        request: &'a Request,
        asked: EndSessionRequest,
        sealed: String,
    ) -> Result<SignOut<'a>> {
        let mut client = None;
        if let Some(client_id) = &asked.client_id {
            let found = app.registry.client(client_id)?;
            let found = found.ok_or_else(|| refused(None, Reason::UnknownClient))?;
            if !found.client.enabled {
                return Err(refused(Some(client_id.clone()), Reason::DisabledClient));
            }
            client = Some(found);
        }
        Ok(SignOut {
            app,
            request,
            sealed,
            asked,
            client,
        })
    }

    pub fn next(&self, current_session: Option<&CurrentSession>) -> SignOutStep {
        self.asked
            .decide(current_session.map(|current_session| &current_session.row))
    }

    pub fn page(&self) -> String {
        if self.sealed.is_empty() {
            return format!("{}/logout", self.app.config.base_url.path());
        }
        transaction::page_address(self.app, "/logout", &self.sealed)
    }

    pub fn ui_locales(&self) -> &str {
        self.asked.ui_locales.as_deref().unwrap_or_default()
    }

    pub fn client(&self) -> Option<&Client> {
        self.client.as_ref().map(|client| &client.client)
    }

    /// Ends the session that there is, and sends the person on: to the clients' frames, upstream to
    /// be signed out there as well, back to the client, or to a page that says that it is done.
    /// Whoever does not show the key of the session may end it, and is told neither which clients
    /// it had nor where it came from.
    pub fn finish(&self, current_session: &CurrentSession) -> Result<Response> {
        let app = self.app;
        let mut ended = SignedOut {
            at_once: true,
            ..SignedOut::default()
        };
        let mut upstream = None;
        if !current_session.is_refused() {
            ended.frames = frames(app, &current_session.row)?;
            // With its end the session's row forgets the ID token that upstream is shown.
            upstream = UpstreamSignOut::of(app, current_session)?;
        }
        self.end(&current_session.row, Value::Null)?;
        ended.upstream = upstream.and_then(|upstream| upstream.onward(app, &self.asked));
        let answer = cookies::remove_session(&app.config, self.leave(&ended));
        let has_key = current_session.row.bound_to.is_some();
        Ok(bound_session::forget(app, self.request, answer, has_key))
    }

    /// Sends somebody on who is signed in no longer.
    pub fn finish_signed_out(&self) -> Result<Response> {
        self.end_what_is_dead()?;
        self.end_hinted()?;
        let ended = SignedOut {
            at_once: self.asked.hinted.is_some(),
            ..SignedOut::default()
        };
        Ok(self.leave_signed_out(&ended))
    }

    /// The same as [`SignOut::leave`], for a browser in which no session stands: it forgets what is
    /// left of one.
    fn leave_signed_out(&self, ended: &SignedOut) -> Response {
        bound_session::forget(self.app, self.request, self.leave(ended), false)
    }

    fn end(&self, session: &Session, detail: Value) -> Result {
        let event = AuditEvent {
            event: "signed_out",
            client_id: self.asked.client_id.as_ref(),
            sub: Some(&session.subject),
            sid: Some(&session.sid),
            detail,
            ..AuditEvent::default().by(self.request.source, &self.request.id)
        };
        Ok(sessions::end(&self.app.store, session.day, &session.sid, &event).map(drop)?)
    }

    /// Ends the session that the ID token names. This is for clients that send no browser but ask
    /// themselves, server to server. Nothing ends by the token's `sub` alone: its user may have
    /// other sessions, which the client has no token of. An end that is found is confirmed, as in
    /// [`SignOut::end_what_is_dead`].
    fn end_hinted(&self) -> Result {
        if let Some(hinted) = &self.asked.hinted
            && let Some(sid) = &hinted.sid
            && let Some(session) = sessions::find_of_user(&self.app.store, sid, &hinted.subject)?
            && self.app.now() < session.expires_at
        {
            self.end(&session, json!({"by": "id_token_hint"}))?;
        }
        Ok(())
    }

    /// The end of this browser's session may have reached no standby, and after a failover the
    /// session could live again. So it is ended anew, or its end confirmed, before the page says
    /// so.
    fn end_what_is_dead(&self) -> Result {
        let app = self.app;
        if let Some(handle) = SessionHandle::of(&app.config, self.request)
            && let Some(found) = sessions::find(&app.store, handle.day, &handle.hash(), None)?
            && app.now() < found.session.expires_at
        {
            self.end(&found.session, Value::Null)?;
        }
        Ok(())
    }

    /// The end of a sign-out, for a browser that is back from upstream. One that has a session
    /// again is asked.
    fn after_upstream(&self, current_session: Option<&CurrentSession>) -> Result<Response> {
        let ended = SignedOut {
            at_once: true,
            ..SignedOut::default()
        };
        match (self.way_back(), current_session) {
            (None, Some(_)) => Ok(answers::see_other(self.page())),
            (Some(_), Some(_)) => Ok(self.leave(&ended)),
            (_, None) => {
                self.end_what_is_dead()?;
                Ok(self.leave_signed_out(&ended))
            }
        }
    }

    fn way_back(&self) -> Option<String> {
        self.asked.way_back(self.client()?)
    }

    fn leave(&self, ended: &SignedOut) -> Response {
        let upstream = ended.upstream.as_ref().map(|(_, address)| address.clone());
        let next = upstream.or_else(|| self.way_back());
        let mut response = match next.filter(|_| ended.at_once) {
            Some(location) if ended.frames.is_empty() => answers::see_other(location),
            next => self.farewell(ended, next.as_deref()),
        };
        response.note.client_id = self.asked.client_id.as_ref().map(ClientId::to_string);
        response
    }

    /// The page that says that it is done. It loads the clients' frames, and goes on to `next`.
    fn farewell(&self, ended: &SignedOut, next: Option<&str>) -> Response {
        let presentation = Presentation::of(self.app, self.request);
        let chrome = presentation.chrome(self.ui_locales());
        let way_back = self.way_back();
        let back = self.client().zip(way_back.as_deref());
        let is_unknown = back.is_none() && self.asked.unmatched_redirect_uri.is_some();
        let page = pages::logout::signed_out_page(chrome, ended, back, is_unknown);
        let frames = ended.frames.iter();
        let origins: BTreeSet<String> = frames
            .filter_map(|(_, address)| origin_of(address))
            .collect();
        let page = answers::framing_page(page, &origins, next);
        self.noted(page, back.is_some())
    }

    /// Says to the log why the way back that was asked for is none.
    fn noted(&self, page: Response, has_way_back: bool) -> Response {
        let (Some(sent), false) = (&self.asked.unmatched_redirect_uri, has_way_back) else {
            return page;
        };
        let (reason, detail) = match self.client() {
            None => (
                Reason::PostLogoutRedirectUriOfNobody,
                format!("received {sent}"),
            ),
            Some(client) => {
                let registered = client.post_logout_redirect_uris.join(" ");
                (
                    Reason::UnregisteredPostLogoutRedirectUri,
                    format!("received {sent}; registered {registered}"),
                )
            }
        };
        let mut page = answers::noted(page, reason);
        page.note.detail = Some(detail);
        page
    }
}

fn refused(client_id: Option<ClientId>, reason: Reason) -> Failure {
    Failure::Authorize(AuthorizeError::Page {
        client_id,
        reason,
        detail: None,
    })
}

/// The clients' pages that end their part of the session, and where.
fn frames(app: &App, session: &Session) -> Result<Vec<(Arc<RegisteredClient>, String)>> {
    let mut frames = Vec::new();
    for client_id in session_clients::list(&app.store, session.day, &session.sid)? {
        let Some(client) = app.registry.client(&client_id)? else {
            continue;
        };
        if let Some(logout) = &client.client.frontchannel_logout {
            let address = front_channel_address(&logout.uri, app.issuer(), &session.sid);
            frames.push((client, address));
        }
    }
    Ok(frames)
}

/// `/external/{idp}/signed-out`: the browser is back. A sign-out that did not begin here leads to
/// `/logout`, which says that nobody is signed in or asks whether to sign out.
pub fn signed_out(app: &App, request: &Request, provider: &str) -> Result<Response> {
    let query = request.query_parameters().map_err(Failure::bad_request)?;
    let state = query
        .bounded("state", parameters::HANDLE)
        .map_err(Failure::bad_request)?;
    let Some(returns) = state.and_then(|state| begun_here(app, state, provider)) else {
        let mut response = answers::see_other(format!("{}/logout", app.config.base_url.path()));
        response.note.reason = Some(Reason::SignOutNotBegunHere);
        return Ok(response);
    };
    if request.method == Method::Head {
        return Ok(answers::nothing_to_show());
    }
    let presence = Presence::find(app, request, None)?;
    let sign_out = SignOut::of(app, request, returns.request, String::new())?;
    sign_out.after_upstream(presence.standing())
}

fn begun_here(app: &App, state: &str, provider: &str) -> Option<UpstreamReturn> {
    match transaction::open_text(app, state).ok()?.request.purpose {
        SealedPurpose::SignedOut(returns) if returns.provider == provider => Some(returns),
        _ => None,
    }
}
