//! A user on the way through our pages: for a client's authorization request, for a device, or to
//! the account page. The request travels sealed in the address of each page. Each step opens and
//! validates it anew, and judges it unless the page answers by itself. The session and the consent
//! are not in it.
//!
//! One request of their browser within it is a [`RequestContext`]. A page takes it, and returns
//! what its form said: [`Taken`]. The core says what the request needs next, and `conversation.rs`
//! which page that is.

pub mod expired;
pub mod of_device;
pub mod opening;
pub mod own_page;
pub mod tied_page;

use std::sync::Arc;

use serde_json::json;

use crate::app::failure::{Failure, Result};
use crate::app::metadata_documents::undescribed;
use crate::app::{App, id_tokens};
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::current_session::{CurrentSession, KnownConsent};
use crate::endpoints::forms::{self, Form, require_form};
use crate::http::{Method, Request, Response};
use crate::pages::form_problem::FormProblem;
use crate::pages::frame::{Chrome, PageForm};
use crate::pages::login::SignInFor;
use crate::registry::{RegisteredClient, Snapshot};
use gatepost_protocol::authorize::authorize_request::{
    self, AuthorizeError, AuthorizeRefusal, AuthorizeRequest, Ending, LandingPage,
};
use gatepost_protocol::authorize::interaction::{Interaction, Situation, Step, decide};
use gatepost_protocol::authorize::pushed_request::{self, PushedRequest};
use gatepost_protocol::login::passkey;
use gatepost_protocol::login::second_factor::tie;
use gatepost_protocol::sealed_request::{SealedPurpose, SealedRequest, Visit};
use gatepost_protocol::upstream::choices::Choices;
use gatepost_protocol::words::acr_values::AcrValues;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identifiers::{ClientId, Subject};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::Members;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::place::SignInPlace;
use gatepost_protocol::words::reason::{AuthorizeErrorCode, Reason};
use gatepost_protocol::words::session::{LOCAL, PASSWORD};
use gatepost_protocol::words::strength::Strength;
use gatepost_protocol::words::web_url::check_document_url;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::consents::{self, ConsentRow};
use gatepost_store::upstream_sessions::Arrival;
use gatepost_store::users::{CurrentUser, UserRow};

pub use opening::{Opened, invalid, open, open_text, page_address, seal};

/// A request that may go on, and what it was judged against.
pub struct AuthorizationTransaction {
    /// The request, sealed: a page's `r` parameter.
    pub sealed: String,
    /// The request, validated just now.
    pub request: AuthorizeRequest,
    /// The client that asked; `None` for a page of ours.
    pub client: Option<Arc<RegisteredClient>>,
    /// The request as the client pushed it: used up by what the client is given.
    pub pushed: Option<PushedRequest>,
    pub snapshot: Arc<Snapshot>,
}

impl AuthorizationTransaction {
    /// Takes in a request to `/connect/authorize` (OpenID Connect Core §3.1.2).
    pub fn begin(app: &App, request: &Request) -> Result<AuthorizationTransaction> {
        let form;
        let parameters = if request.method == Method::Post {
            require_form(request, 415)?;
            form = request.form_parameters()?;
            &form
        } else {
            request.query_parameters()?
        };
        let transaction = AuthorizationTransaction::from_parameters(app, parameters)?;
        let must_push = transaction
            .registration()
            .is_some_and(|client| client.requires_pushed_requests);
        if must_push && transaction.pushed.is_none() {
            return Err(transaction.refuse_with(
                AuthorizeErrorCode::InvalidRequest,
                Reason::PushedRequestRequired,
            ));
        }
        if transaction.sealed.len() > parameters::SEALED_REQUEST {
            return Err(transaction.too_long());
        }
        transaction.note_ignored(app, parameters);
        Ok(transaction)
    }

    fn from_parameters(app: &App, parameters: &Parameters) -> Result<AuthorizationTransaction> {
        match pushed_request::sealed(parameters) {
            Some(sealed) => {
                let pushed = SealedPurpose::Pushed(open_pushed(app, parameters, sealed)?);
                AuthorizationTransaction::resume(app, seal(app, pushed))
            }
            None => {
                let known = SealedPurpose::Authorize(authorize_request::known(parameters));
                let Opened { request, sealed } = seal(app, known);
                AuthorizationTransaction::of_client(app, parameters, request.received_at, sealed)
            }
        }
    }

    /// Tells the log what was asked for in vain.
    fn note_ignored(&self, app: &App, parameters: &Parameters) {
        let Some(client_id) = self.client_id() else {
            return;
        };
        let client = client_id.in_text();
        if let Some(name) = &self.request.acr_values.dropped_identity_provider {
            let name = name.escape_default();
            log::info!(
                "client {client} asked for the identity provider \"{name}\", which it cannot \
                 have: ignored"
            );
            app.dropped_identity_providers.raise();
        }
        if let Some((_, audience)) = parameters.iter().find(|(name, _)| *name == "audience") {
            let audience: String = audience
                .chars()
                .take(200)
                .flat_map(char::escape_default)
                .collect();
            log::info!(
                "client {client} sent audience \"{audience}\" at authorize: ignored; \
                 resource names an API (RFC 8707)"
            );
        }
    }

    /// Goes on with a request whose seal was opened. It is validated anew, against the
    /// registration of today, with the time at which it first came.
    pub fn resume(app: &App, opened: Opened) -> Result<AuthorizationTransaction> {
        let Opened {
            request:
                SealedRequest {
                    received_at,
                    purpose,
                },
            sealed,
        } = opened;
        let (page, visit) = match purpose {
            SealedPurpose::Authorize(parameters) => {
                return AuthorizationTransaction::of_client(app, &parameters, received_at, sealed);
            }
            SealedPurpose::Pushed(pushed) => {
                let parameters = &pushed.parameters;
                return Ok(AuthorizationTransaction {
                    pushed: Some(pushed.clone()),
                    ..AuthorizationTransaction::of_client(app, parameters, received_at, sealed)?
                });
            }
            SealedPurpose::Device(user_code) => {
                return AuthorizationTransaction::of_device(app, user_code, received_at, sealed)?
                    .ok_or_else(|| Failure::bad_request(Reason::DeviceAlreadyDecided));
            }
            SealedPurpose::Account(visit) => (LandingPage::Account, visit),
            SealedPurpose::Start(visit) => (LandingPage::Start, visit),
            SealedPurpose::AddFactor { visit, decision } => {
                (LandingPage::AddFactor(decision), visit)
            }
            SealedPurpose::Admin {
                page,
                tenant,
                ui_locales,
                anew,
            } => {
                let visit = Visit {
                    tenant,
                    ui_locales,
                    anew,
                    by_password: false,
                };
                (LandingPage::Admin(page), visit)
            }
            _ => return Err(invalid()),
        };
        AuthorizationTransaction::of_page(app, page, visit, received_at, sealed)
    }

    fn of_client(
        app: &App,
        parameters: &Parameters,
        received_at: Instant,
        sealed: String,
    ) -> Result<AuthorizationTransaction> {
        let client_id = authorize_request::client_id(parameters)?;
        let registered = app
            .registry
            .client(&client_id)?
            .ok_or_else(|| unknown(&client_id))?;
        let client = app
            .described(&registered)
            .map_err(|problem| undescribed(&problem, &client_id))?;
        let snapshot = app.registry.snapshot();
        let request = authorize_request::validate(
            parameters,
            &client.client,
            &snapshot.catalogue,
            received_at,
        )?;
        Ok(AuthorizationTransaction {
            sealed,
            request,
            client: Some(client),
            pushed: None,
            snapshot,
        })
    }

    pub fn choices(&self) -> Choices {
        let AcrValues {
            identity_provider,
            tenant,
            ..
        } = &self.request.acr_values;
        let (client, catalogue) = (self.registration(), &self.snapshot.catalogue);
        Choices::of(
            &SignInPlace {
                client,
                tenant: tenant.as_ref(),
                catalogue,
            },
            identity_provider.as_deref(),
        )
    }

    /// The ways to sign in for this request. Refused where there is none.
    pub fn ways_in(&self) -> Result<Choices> {
        let choices = self.choices();
        if choices.is_empty() {
            return Err(self.refuse_with(AuthorizeErrorCode::AccessDenied, Reason::NoWayToSignIn));
        }
        Ok(choices)
    }

    /// Whether the request asks for a sign-in of its own, whatever session there is.
    pub fn wants_fresh_sign_in(&self) -> bool {
        let anew = matches!(self.request.ending, Ending::Account { anew: true, .. });
        anew || self.request.prompt.login || self.request.max_age == Some(0)
    }

    /// Whether a device made the request. No address leads past the page that asks for its code.
    pub fn is_of_device(&self) -> bool {
        matches!(self.request.ending, Ending::Device(_))
    }

    pub fn client_id(&self) -> Option<&ClientId> {
        self.registration().map(|client| &client.client_id)
    }

    pub fn registration(&self) -> Option<&Client> {
        self.client.as_ref().map(|client| &client.client)
    }

    /// `ui_locales`; empty where the request names no language.
    pub fn ui_locales(&self) -> &str {
        self.request.ui_locales.as_deref().unwrap_or_default()
    }

    /// The address of one of our pages for this request. The address carries the language, so that
    /// every page and error after it is in that language.
    pub fn page(&self, app: &App, page: &str) -> String {
        answers::speaking(page_address(app, page, &self.sealed), self.ui_locales())
    }

    /// The response, with the client for its log line.
    pub fn noted(&self, mut response: Response) -> Response {
        response.note.client_id = self.client_id().map(ToString::to_string);
        response
    }

    /// The failure, with the client for its page and its log line.
    pub fn noted_failure(&self, failure: Failure) -> Failure {
        match self.client_id() {
            Some(client_id) => failure.about(client_id, None),
            None => failure,
        }
    }

    /// Tells the client that it is refused. Where no client waits for an answer through this
    /// browser, a page tells the user.
    pub fn refuse(&self, refusal: AuthorizeRefusal) -> Failure {
        Failure::Authorize(self.request.refuse(refusal))
    }

    pub fn refuse_with(&self, code: AuthorizeErrorCode, reason: Reason) -> Failure {
        self.refuse(AuthorizeRefusal::new(code, reason))
    }

    /// The request is too long for an address or a cookie.
    pub fn too_long(&self) -> Failure {
        self.refuse_with(AuthorizeErrorCode::InvalidRequest, Reason::RequestTooLong)
    }

    /// A failure before anything is shown. With `prompt=none` there is nobody to read a page, so
    /// the client is told that the database is away.
    pub fn report_outage(&self, failure: Failure) -> Failure {
        let is_outage = matches!(&failure, Failure::Unavailable(error) if error.is_passing())
            || matches!(failure, Failure::Busy);
        if !self.request.prompt.none || !is_outage {
            return failure;
        }
        self.refuse_with(
            AuthorizeErrorCode::TemporarilyUnavailable,
            Reason::Unavailable,
        )
    }

    /// What the user allowed this client before, lapsed or not: as it was read with the session, or
    /// else as it is now.
    pub fn known_consent(
        &self,
        app: &App,
        current_session: &CurrentSession,
    ) -> Result<Option<ConsentRow>> {
        match &current_session.consent {
            KnownConsent::Read(consent) => Ok(consent.clone()),
            KnownConsent::Unread => self.find_consent(app, current_session),
        }
    }

    /// What the user allows this client now, lapsed or not.
    pub fn find_consent(
        &self,
        app: &App,
        current_session: &CurrentSession,
    ) -> Result<Option<ConsentRow>> {
        let Some(client_id) = self.client_id() else {
            return Ok(None);
        };
        Ok(consents::find(
            &app.store,
            &current_session.user.sub,
            client_id,
        )?)
    }

    /// The subject of `id_token_hint`: one of our ID tokens, expired or not.
    pub fn hinted_subject(&self, app: &App) -> Result<Option<Subject>> {
        let Some(hint) = &self.request.unverified_id_token_hint else {
            return Ok(None);
        };
        let claims = id_tokens::claims(app, &self.snapshot, hint);
        let subject = claims.and_then(|claims| Some(Subject::new(claims.text("sub")?)));
        match subject {
            Some(subject) => Ok(Some(subject)),
            None => Err(self.refuse_with(
                AuthorizeErrorCode::InvalidRequest,
                Reason::InvalidIdTokenHint,
            )),
        }
    }
}

/// Opens the request that a `request_uri` stands for. What is wrong with it is told on a page:
/// nobody vouches for an address to go back to.
fn open_pushed(
    app: &App,
    parameters: &Parameters,
    sealed: &str,
) -> Result<PushedRequest, AuthorizeError> {
    let client_id = authorize_request::client_id(parameters)?;
    let opened = app
        .vault
        .pushed_requests
        .open_text(pushed_request::PREFIX, sealed);
    pushed_request::judge(opened, &client_id, app.now()).map_err(|reason| AuthorizeError::Page {
        client_id: Some(client_id).filter(|client_id| app.registry.knows(client_id)),
        reason,
        detail: None,
    })
}

/// Nobody is registered under that name. Where it may be the address of a metadata document, the
/// log has the registration, to be copied.
fn unknown(client_id: &ClientId) -> AuthorizeError {
    let is_document = check_document_url(client_id.as_str()).is_ok();
    if is_document {
        let client = json!({"client_id": client_id, "metadata_document": true});
        let document = json!({"clients": [client]});
        log::info!("a client that is not registered; to register it, apply {document}");
    }
    AuthorizeError::Page {
        client_id: None,
        reason: if is_document {
            Reason::UnregisteredDocument
        } else {
            Reason::UnknownClient
        },
        detail: None,
    }
}

/// The form asks for what its page does not offer.
pub fn unknown_action() -> Failure {
    Failure::bad_request(Reason::UnknownPageAction)
}

/// One request of a browser within a transaction: what was sent, and who this browser's session
/// says is there. `S` is that session: `Option<&CurrentSession>`, or the session itself where there
/// is one for certain ([`InSession`]).
#[derive(Clone, Copy)]
pub struct RequestContext<'a, S = Option<&'a CurrentSession>> {
    pub app: &'a App,
    pub request: &'a Request,
    pub transaction: &'a AuthorizationTransaction,
    pub current_session: S,
    /// The session of the cookie where it counts as signed out: see `Presence::Refused`.
    pub refused: Option<&'a CurrentSession>,
    /// They said that they are not whom this browser knows.
    pub someone_else: bool,
}

/// The context of somebody who is signed in.
pub type InSession<'a> = RequestContext<'a, &'a CurrentSession>;

/// What the address of a page leads to.
pub enum Opening {
    AuthorizationTransaction(Box<AuthorizationTransaction>),
    /// The transaction begins on another page, or nowhere.
    Answer(Response),
}

impl Opening {
    /// The transaction begins on the sign-in page.
    pub fn at_sign_in(app: &App, transaction: &AuthorizationTransaction) -> Opening {
        Opening::Answer(answers::see_other(transaction.page(app, "/login")))
    }
}

/// What a page made of the form that was posted to it.
pub enum Taken {
    /// They answered; or they only opened the page ([`Step::Arrival`]). The request goes on from
    /// here.
    Step(Step),
    /// They proved who they are. Their session has not begun.
    Proved(Box<CurrentUser>, Proof),
    /// They added a factor: their session, read again, is stronger now.
    Strengthened(Box<CurrentSession>),
    /// They want to sign in another way: as somebody else, or with the provider that they chose.
    OtherWay {
        someone_else: bool,
        provider: Option<String>,
    },
    /// That was no sign-in. The sign-in page says why.
    NotSignedIn(FormProblem, Reason),
    /// They refuse what the device asks for.
    DeviceDenied,
    /// The page answers itself: it is drawn again, or what they came for is over.
    Answer(Response),
}

/// How somebody proved who they are.
pub struct Proof {
    /// `local`, or the name of the upstream provider that vouches for them.
    pub identity_provider: String,
    pub amr: Vec<String>,
    pub acr: String,
    /// When they proved it; `None` is now.
    pub auth_time: Option<Instant>,
    /// How they came from upstream.
    pub upstream: Option<Arrival>,
    /// Whether the sign-in shall outlive the browser. `None` where nobody was asked: then a session
    /// stays as it is.
    pub remember: Option<bool>,
}

impl Proof {
    /// Their password, typed just now.
    pub fn password(remember: Option<bool>) -> Proof {
        Proof {
            identity_provider: String::from(LOCAL),
            amr: vec![String::from(PASSWORD)],
            acr: String::from(Strength::SignedIn.as_str()),
            auth_time: None,
            upstream: None,
            remember,
        }
    }

    pub fn is_from_upstream(&self) -> bool {
        self.identity_provider != LOCAL
    }

    /// Whether it is a password and nothing else, and the user has a second factor: no session
    /// begins before that one is shown, too.
    pub fn lacks_second_factor_of(&self, user: &UserRow) -> bool {
        !self.is_from_upstream()
            && Strength::of(&self.acr) == Strength::SignedIn
            && user.strongest_acr > Strength::SignedIn
    }
}

/// What the core says comes next.
pub struct Judged {
    pub interaction: Interaction,
    /// What the user allows this client, lapsed or not; what they have just agreed to included.
    pub consent: Option<ConsentRow>,
}

impl<'a, S> RequestContext<'a, S> {
    /// The same context with that session.
    pub fn within<T>(self, current_session: T) -> RequestContext<'a, T> {
        RequestContext {
            current_session,
            app: self.app,
            request: self.request,
            transaction: self.transaction,
            refused: self.refused,
            someone_else: self.someone_else,
        }
    }

    pub fn presentation(&self) -> Presentation<'a> {
        Presentation::of(self.app, self.request).about(self.transaction.client_id())
    }

    pub fn chrome(&self) -> Chrome<'a> {
        self.presentation().chrome(self.transaction.ui_locales())
    }

    /// Where the form of one of our pages goes.
    pub fn action(&self, page: &str) -> String {
        let address = page_address(self.app, page, &self.transaction.sealed);
        self.presentation()
            .in_language_of(address, self.transaction.ui_locales())
    }

    /// To one of our pages, with this request.
    pub fn redirect(&self, page: &str) -> Response {
        answers::see_other(self.transaction.page(self.app, page))
    }

    /// What the sign-in pages say about the request.
    pub fn purpose(&self) -> SignInFor<'a> {
        SignInFor {
            request: &self.transaction.request,
            client: self.transaction.registration(),
            catalogue: &self.transaction.snapshot.catalogue,
        }
    }

    /// An audit event of this request.
    pub fn event(&self) -> AuditEvent<'a> {
        let event = AuditEvent {
            client_id: self.transaction.client_id(),
            ..AuditEvent::default()
        };
        self.request.caused(event)
    }
}

impl<'a> RequestContext<'a> {
    pub fn in_session(self) -> Option<InSession<'a>> {
        self.current_session
            .map(|current_session| self.within(current_session))
    }

    /// Ends the request without what was asked for. A client is told why; everybody else goes back
    /// to where they came from. Where that would only ask them to sign in once more, they come to
    /// the page that signs out: it says that they are signed out.
    pub fn give_up(&self, code: AuthorizeErrorCode, reason: Reason) -> Result<Taken> {
        let least = self.app.config.client_defaults.minimum_acr;
        let strength = self
            .current_session
            .map(|session| Strength::of(&session.row.acr));
        let back = match self.transaction.request.ending {
            Ending::Client(_) => {
                return Err(self.transaction.refuse_with(code, reason));
            }
            Ending::Device(_) => "/device",
            Ending::Account { .. } if strength >= Some(least) => "/",
            Ending::Account { .. } => "/logout",
        };
        let address = self.app.config.base_url.path_of(back);
        let address = answers::speaking(address, self.transaction.ui_locales());
        Ok(Taken::Answer(answers::see_other(address)))
    }

    pub fn cancel(&self) -> Result<Taken> {
        self.give_up(AuthorizeErrorCode::AccessDenied, Reason::AccessDenied)
    }

    /// Asks the core what comes next, with what is stored now. Refuses where the user must sign in
    /// and has no way to.
    pub fn judge(self, step: Step) -> Result<Judged> {
        let RequestContext {
            app,
            transaction,
            current_session,
            ..
        } = self;
        let consent = match (&transaction.request.ending, current_session) {
            // They may have allowed more just now.
            (Ending::Client(_), Some(current_session))
                if matches!(step, Step::AfterConsent { .. }) =>
            {
                transaction.find_consent(app, current_session)?
            }
            (Ending::Client(_), Some(current_session)) => {
                transaction.known_consent(app, current_session)?
            }
            (Ending::Client(_) | Ending::Device(_) | Ending::Account { .. }, _) => None,
        };
        let user = current_session.map(|current_session| &current_session.user);
        let strongest_acr = user.map_or(Strength::SignedIn, |user| user.strongest_acr);
        let may_add_factors =
            current_session.is_some_and(|current_session| current_session.may_add_factors(app));
        let interaction = decide(&Situation {
            request: &transaction.request,
            client: transaction.registration(),
            catalogue: &transaction.snapshot.catalogue,
            session: current_session.map(|current_session| &current_session.row),
            is_bound: current_session.is_some_and(|current_session| current_session.is_bound()),
            role: user.and_then(|user| user.claims.get("role")),
            minimum_acr: transaction.minimum_acr(&app.config),
            strongest_acr,
            may_enrol: match passkey::host(app.issuer()) {
                _ if !may_add_factors => Strength::SignedIn,
                Some(_) => Strength::PhishingResistant,
                None => Strength::TwoFactors,
            },
            consent: consent
                .as_ref()
                .filter(|row| !row.has_lapsed(app.now()))
                .map(|row| &row.consent),
            hinted_subject: transaction.hinted_subject(app)?.as_ref(),
            step,
            now: app.now(),
        });
        if let Interaction::Login { .. } = interaction {
            transaction.ways_in()?;
        }
        Ok(Judged {
            interaction,
            consent,
        })
    }
}

impl<'a> InSession<'a> {
    /// An audit event of this request, about the user of this session.
    pub fn own_event(&self, event: &'a str) -> AuditEvent<'a> {
        AuditEvent {
            event,
            sub: Some(&self.current_session.user.sub),
            sid: Some(&self.current_session.row.sid),
            ..self.event()
        }
    }

    /// The token of a form about `matter` that is drawn in this session.
    pub fn form_token(&self, form: Form, matter: &str) -> String {
        forms::issue(self.app, form, matter, &self.current_session.handle.random)
    }

    /// Whether the posted form is that one.
    pub fn has_form_token(&self, form: Form, matter: &str, posted: &Parameters) -> bool {
        let browser = Some(&self.current_session.handle.random);
        forms::matches(self.app, form, matter, browser, posted)
    }

    /// Whether the posted form was drawn for this request and this session.
    pub fn matches(&self, form: Form, posted: &Parameters) -> bool {
        self.has_form_token(form, &self.transaction.sealed, posted)
    }

    /// Whether the request would go on in this session if its page were opened again, and nobody
    /// be asked who they are. Not for a device, whose code is held against it first.
    pub fn goes_on(self) -> Result<bool> {
        let context = self.within(Some(self.current_session));
        let interaction = context.judge(Step::Arrival)?.interaction;
        let asks = matches!(interaction, Interaction::Login { .. });
        Ok(!asks && !self.transaction.wants_fresh_sign_in() && !self.transaction.is_of_device())
    }

    /// What ties tickets and challenges to this request and this session.
    pub fn tie(&self) -> [u8; 32] {
        tie(
            &self.transaction.sealed,
            &self.current_session.handle.random,
        )
    }

    /// A form of one of our pages.
    pub fn form(&self, page: &str, form: Form) -> PageForm<'a> {
        PageForm {
            chrome: self.chrome(),
            action: self.action(page),
            token: self.form_token(form, &self.transaction.sealed),
        }
    }
}
