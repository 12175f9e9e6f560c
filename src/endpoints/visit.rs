//! An authorization request on its way through our pages. It travels sealed in the address of each page, and is opened,
//! validated and decided upon anew at every step: what was asked is in it, who signed in and what they agreed to is not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::answers::{self, Presentation};
use super::client_view::{client_view, logo_address};
use super::cookies;
use super::granted;
use super::id_token_hint;
use super::present_session::PresentSession;
use super::sealed_address::{self, Opened};
use crate::app::App;
use crate::app::failure::Failure;
use crate::crypto::random;
use crate::http::{Request, Response};
use crate::pages::frame::Client as ClientView;
use crate::pages::language::Language;
use crate::protocol::acr_values::AcrValues;
use crate::protocol::authorize_request::{self, AuthorizeError, AuthorizeRequest, Refusal};
use crate::protocol::authorize_response::{self, AuthorizeSuccess};
use crate::protocol::epochs::Epochs;
use crate::protocol::errors::AuthorizeErrorCode;
use crate::protocol::identifiers::Subject;
use crate::protocol::instant::Instant;
use crate::protocol::interaction::{Interaction, Situation, Step, decide};
use crate::protocol::lengths;
use crate::protocol::parameters::Parameters;
use crate::protocol::reason::Reason;
use crate::protocol::scope::ScopeSet;
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::secret::SecretText;
use crate::protocol::session_state::session_state;
use crate::protocol::upstream::choices::{Choices, Place};
use crate::registry::{RegisteredClient, Snapshot};
use crate::store::consents::{self, ConsentRow};
use crate::store::session_clients;

/// A request that may go on, and what it was judged against.
pub struct Visit {
    /// The request, sealed: a page's `r` parameter.
    pub sealed: String,
    /// The request, validated just now.
    pub request: AuthorizeRequest,
    /// Who asked.
    pub client: Arc<RegisteredClient>,
    /// The address of its logo.
    logo: Option<String>,
    /// What is registered.
    pub snapshot: Arc<Snapshot>,
}

/// What a step leads to.
pub enum Next {
    /// The sign-in page.
    Login,
    /// Straight to that identity provider: the request names it, or there is no other way.
    Upstream(String),
    /// The sign-in page, offering the present account.
    SelectAccount,
    /// The consent page.
    Consent {
        /// Whether agreeing may be remembered.
        may_remember: bool,
    },
    /// The answer to the client.
    Answer(Response),
}

impl Next {
    /// Where one of these ways begins; `None` when there is none.
    pub fn to_sign_in(choices: &Choices) -> Option<Next> {
        let straight = || choices.only().map_or(Next::Login, |provider| Next::Upstream(provider.to_owned()));
        (!choices.is_empty()).then(straight)
    }
}

impl Visit {
    /// Takes in a request as a client sent it.
    pub fn begin(app: &App, parameters: &Parameters) -> Result<Visit, Failure> {
        let known = SealedPurpose::Authorize(authorize_request::known(parameters));
        let Opened { request, sealed } = sealed_address::seal(app, known);
        let visit = Visit::validate(app, parameters, request.received_at, sealed)?;
        if visit.sealed.len() > lengths::SEALED_REQUEST {
            return Err(visit.refuse(Refusal::new(AuthorizeErrorCode::InvalidRequest, Reason::RequestTooLong)));
        }
        if let Some(name) = &visit.request.acr_values.dropped_identity_provider {
            let (client_id, name) = (&visit.request.client_id, name.escape_default());
            log::info!("client {client_id} asked for the identity provider \"{name}\", which it cannot have: ignored");
            app.dropped_identity_providers.fetch_add(1, Ordering::Relaxed);
        }
        Ok(visit)
    }

    /// Opens the request in the address of one of our pages, and validates it as if it came now.
    pub fn reopen(app: &App, request: &Request) -> Result<Visit, Failure> {
        Visit::resume(app, sealed_address::open(app, request)?)
    }

    /// Validates a request of which the seal was opened, as if it came now.
    pub fn resume(app: &App, opened: Opened) -> Result<Visit, Failure> {
        let Opened { request, sealed } = opened;
        let SealedPurpose::Authorize(parameters) = request.purpose else { return Err(sealed_address::invalid()) };
        Visit::validate(app, &parameters, request.received_at, sealed)
    }

    fn validate(app: &App, parameters: &Parameters, received_at: Instant, sealed: String) -> Result<Visit, Failure> {
        let client_id = authorize_request::client_id(parameters)?;
        let page = |client_id, reason| Failure::Authorize(AuthorizeError::Page { client_id, reason, detail: None });
        let client = app.registry.client(&client_id)?.ok_or_else(|| page(None, Reason::UnknownClient))?;
        if !client.client.enabled {
            return Err(page(Some(client_id), Reason::DisabledClient));
        }
        let snapshot = app.registry.snapshot();
        let request = authorize_request::validate(parameters, &client.client, &snapshot.catalogue, received_at)?;
        let logo = logo_address(app, &client.client);
        Ok(Visit { sealed, request, client, logo, snapshot })
    }

    /// Decides what comes next, with what is stored now.
    pub fn next(
        &self,
        app: &App,
        http: &Request,
        present: Option<&PresentSession>,
        step: Step,
    ) -> Result<Next, Failure> {
        let hinted = self.hinted_subject(app)?;
        let consent = present.map(|present| self.find_consent(app, present)).transpose()?.flatten();
        let standing = consent.as_ref().filter(|row| !row.has_lapsed(app.now())).map(ConsentRow::to_core);
        let session = present.map(PresentSession::to_core);
        let interaction = decide(&Situation {
            request: &self.request,
            client: &self.client.client,
            catalogue: &self.snapshot.catalogue,
            session: session.as_ref(),
            consent: standing.as_ref(),
            hinted_subject: hinted.as_ref(),
            step: step.clone(),
            now: app.now(),
        });
        match (interaction, present) {
            (Interaction::Proceed { scope }, Some(present)) => {
                let consent_epoch = self.consent_epoch(app, present, consent.as_ref(), &step)?;
                let epochs = present.row.epochs.at_client(self.client.epoch, consent_epoch);
                self.proceed(app, http, present, (scope, epochs)).map(Next::Answer)
            }
            (Interaction::Login { .. } | Interaction::Proceed { .. }, _) => self.to_sign_in(),
            (Interaction::SelectAccount, _) => Ok(Next::SelectAccount),
            (Interaction::Consent { may_remember }, _) => Ok(Next::Consent { may_remember }),
            (Interaction::Refuse(refusal), _) => Err(self.refuse(refusal)),
        }
    }

    /// Which ways to sign in this request has.
    pub fn choices(&self) -> Choices {
        let AcrValues { identity_provider, tenant, .. } = &self.request.acr_values;
        let (client, catalogue) = (Some(&self.client.client), &self.snapshot.catalogue);
        Choices::of(&Place { client, tenant: tenant.as_ref(), catalogue }, identity_provider.as_deref())
    }

    /// Where somebody signs in for this request; refused where nobody can.
    pub fn to_sign_in(&self) -> Result<Next, Failure> {
        let refusal = || Refusal::new(AuthorizeErrorCode::AccessDenied, Reason::NoWayToSignIn);
        Next::to_sign_in(&self.choices()).ok_or_else(|| self.refuse(refusal()))
    }

    /// Whether the request asks for a sign-in of its own, whatever session there is.
    pub fn wants_fresh_sign_in(&self) -> bool {
        self.request.prompt.login || self.request.max_age == Some(0)
    }

    /// The address of one of our pages for this request. The language stands in it, so that whatever becomes of the request
    /// there is told in that language.
    pub fn page(&self, app: &App, page: &str) -> String {
        let address = sealed_address::page(app, page, &self.sealed);
        answers::speaking(address, self.request.ui_locales.as_deref().unwrap_or_default())
    }

    /// The client as pages show it.
    pub fn client_view(&self, language: Language) -> ClientView<'_> {
        client_view(&self.client.client, self.logo.as_deref(), language)
    }

    /// A refusal, on its way to the client.
    pub fn refuse(&self, refusal: Refusal) -> Failure {
        Failure::Authorize(self.request.refuse(refusal))
    }

    /// What the user allowed this client before, lapsed or not.
    pub fn find_consent(&self, app: &App, present: &PresentSession) -> Result<Option<ConsentRow>, Failure> {
        Ok(consents::find(&app.store, &present.user.sub, &self.request.client_id)?)
    }

    /// Who allows anew, remembered or not, first ends what stood on a consent that has lapsed, where the client needs one.
    fn consent_epoch(
        &self,
        app: &App,
        present: &PresentSession,
        consent: Option<&ConsentRow>,
        step: &Step,
    ) -> Result<i64, Failure> {
        let lapsed = consent.is_some_and(|row| row.has_lapsed(app.now()));
        if lapsed && self.needs_consent() && matches!(step, Step::AfterConsent { .. }) {
            if let Some(epoch) = consents::end_lapsed(&app.store, &present.user.sub, &self.request.client_id)? {
                return Ok(epoch);
            }
            // Somebody was quicker, most likely they themselves.
            return Ok(self.find_consent(app, present)?.map_or(0, |row| row.epoch));
        }
        Ok(consent.map_or(0, |row| row.epoch))
    }

    /// Whether what stands on a consent that has lapsed is over.
    pub fn needs_consent(&self) -> bool {
        self.client.client.require_consent == Some(true)
    }

    /// The subject of `id_token_hint`: one of our ID tokens, expired or not.
    fn hinted_subject(&self, app: &App) -> Result<Option<Subject>, Failure> {
        let Some(hint) = &self.request.unverified_id_token_hint else { return Ok(None) };
        let claims = id_token_hint::claims(app, &self.snapshot, hint);
        let subject = claims.and_then(|claims| Some(Subject::new(claims.get("sub")?.as_str()?)));
        let refusal = || Refusal::new(AuthorizeErrorCode::InvalidRequest, Reason::InvalidIdTokenHint);
        subject.map(Some).ok_or_else(|| self.refuse(refusal()))
    }

    fn proceed(
        &self,
        app: &App,
        http: &Request,
        present: &PresentSession,
        (scope, epochs): (ScopeSet, Epochs),
    ) -> Result<Response, Failure> {
        self.enter_session(app, present)?;
        let issued = granted::issue(app, self, present, (&scope, epochs))?;
        let browser_state = present.browser_state.clone().unwrap_or_else(cookies::new_browser_state);
        let session_state = self.session_state(&browser_state);
        let success = AuthorizeSuccess {
            issued: &issued,
            state: self.request.state.as_deref(),
            session_state: session_state.as_deref(),
            issuer: app.issuer(),
        };
        let delivery =
            authorize_response::deliver(&self.request.redirect, self.request.response_mode, success.parameters());
        let framed_by = self.request.redirect.origin().filter(|_| self.request.prompt.none);
        let presentation = Presentation { config: &app.config, request: http };
        let mut response = answers::deliver(&presentation, delivery, framed_by.as_deref());
        response.note.client_id = Some(self.request.client_id.to_string());
        response.note.grant = self.request.response_type.token.then(|| String::from("implicit"));
        Ok(match present.browser_state {
            Some(_) => response,
            None => cookies::set_browser_state(&app.config, response, &browser_state),
        })
    }

    /// Notes that the client has a part in the session, where it wants to hear of its end.
    fn enter_session(&self, app: &App, present: &PresentSession) -> Result<(), Failure> {
        let client = &self.client.client;
        if client.frontchannel_logout.is_some() || client.backchannel_logout.is_some() {
            session_clients::enter(&app.store, present.row.day, &present.row.sid, &client.client_id)?;
        }
        Ok(())
    }

    /// For OpenID requests of clients that run in a browser.
    fn session_state(&self, browser_state: &SecretText) -> Option<String> {
        let origin = self.request.redirect.origin().filter(|_| self.request.is_openid())?;
        Some(session_state(self.request.client_id.as_str(), &origin, browser_state.expose(), random::bytes()))
    }
}
