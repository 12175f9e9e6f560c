//! One request of a browser within the sign-in: what was asked, for which visit, in which session.
//! Pages take a [`Turn`] and answer with what they have [`Taken`] from their form.
//! `conversation.rs` decides which page comes next.

use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::forms::{self, Form};
use crate::endpoints::present_session::PresentSession;
use crate::endpoints::visit::{self, Visit};
use crate::http::{Request, Response};
use crate::pages::frame::{Chrome, PageForm};
use crate::pages::login::{LoginProblem, SignInFor};
use crate::protocol::authorize::authorize_request::{AuthorizeRefusal, Ending};
use crate::protocol::authorize::interaction::{Interaction, Situation, Step, decide};
use crate::protocol::login::passkey;
use crate::protocol::login::second_factor::tie;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::{AuthorizeErrorCode, Reason};
use crate::protocol::words::session::{LOCAL, PASSWORD};
use crate::protocol::words::strength::Strength;
use crate::store::audit_events::AuditEvent;
use crate::store::consents::ConsentRow;
use crate::store::upstream_sessions::Arrival;
use crate::store::users::{CurrentUser, UserRow};

/// `S` is the session of this browser: `Option<&PresentSession>`, or the session itself where there
/// is one for certain ([`InSession`]).
#[derive(Clone, Copy)]
pub struct Turn<'a, S = Option<&'a PresentSession>> {
    pub app: &'a App,
    pub request: &'a Request,
    pub visit: &'a Visit,
    pub present: S,
    /// They said that they are not whom this browser knows.
    pub someone_else: bool,
}

/// A turn of somebody who is signed in.
pub type InSession<'a> = Turn<'a, &'a PresentSession>;

/// What the address of a page leads to.
pub enum Opening {
    Visit(Box<Visit>),
    /// The visit begins on another page, or nowhere.
    Answer(Response),
}

impl Opening {
    /// That visit; or the page that it begins on, if this is another one.
    pub fn of(visit: Visit, app: &App, is_elsewhere: bool) -> Opening {
        if is_elsewhere {
            Opening::Answer(answers::see_other(visit.page(app, "/login")))
        } else {
            Opening::Visit(Box::new(visit))
        }
    }
}

/// What a page made of the form that was posted to it.
pub enum Taken {
    /// They answered. The request goes on from here.
    Step(Step),
    /// They proved who they are. Their session has not begun.
    Proved(Box<CurrentUser>, Proof),
    /// They added a factor: their session, read again, is stronger now.
    Strengthened(Box<PresentSession>),
    /// They want to sign in another way: as somebody else, or with the provider that they chose.
    OtherWay {
        someone_else: bool,
        provider: Option<String>,
    },
    /// That was no sign-in. The sign-in page says why.
    NotSignedIn(LoginProblem, Reason),
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
    /// When they did; `None` is now.
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
    /// What the user allowed this client before, lapsed or not.
    pub consent: Option<ConsentRow>,
}

impl<'a, S> Turn<'a, S> {
    /// The same turn with that session.
    pub fn within<T>(self, present: T) -> Turn<'a, T> {
        Turn {
            present,
            app: self.app,
            request: self.request,
            visit: self.visit,
            someone_else: self.someone_else,
        }
    }

    pub fn presentation(&self) -> Presentation<'a> {
        Presentation {
            config: &self.app.config,
            request: self.request,
        }
    }

    pub fn chrome(&self) -> Chrome<'a> {
        self.presentation().chrome(self.visit.ui_locales())
    }

    /// Where the form of one of our pages goes.
    pub fn action(&self, page: &str) -> String {
        let address = visit::page_address(self.app, page, &self.visit.sealed);
        self.presentation()
            .in_language_of(address, self.visit.ui_locales())
    }

    /// To one of our pages, with this request.
    pub fn redirect(&self, page: &str) -> Response {
        answers::see_other(self.visit.page(self.app, page))
    }

    /// Ends the request without what was asked for. A client is told why; everybody else goes back
    /// to where they came from.
    pub fn give_up(&self, code: AuthorizeErrorCode, reason: Reason) -> Result<Taken, Failure> {
        let back = match self.visit.request.ending {
            Ending::Client(_) => {
                return Err(self.visit.refuse(AuthorizeRefusal::new(code, reason)));
            }
            Ending::Device(_) => "/device",
            Ending::Account { .. } => "/",
        };
        let path = self.app.config.base_url.path();
        Ok(Taken::Answer(answers::see_other(format!("{path}{back}"))))
    }

    pub fn cancel(&self) -> Result<Taken, Failure> {
        self.give_up(AuthorizeErrorCode::AccessDenied, Reason::AccessDenied)
    }

    /// What the sign-in pages say about the request.
    pub fn purpose(&self) -> SignInFor<'a> {
        SignInFor {
            request: &self.visit.request,
            client: self.visit.registration(),
            catalogue: &self.visit.snapshot.catalogue,
        }
    }

    /// An audit event of this request.
    pub fn event(&self) -> AuditEvent<'a> {
        let event = AuditEvent {
            client_id: self.visit.client_id(),
            ..AuditEvent::default()
        };
        event.by(self.request.source, &self.request.id)
    }
}

impl<'a> Turn<'a> {
    pub fn in_session(self) -> Option<InSession<'a>> {
        self.present.map(|present| self.within(present))
    }

    /// Asks the core what comes next, with what is stored now. Refuses where the user must sign in
    /// and has no way to.
    pub fn judge(self, step: Step) -> Result<Judged, Failure> {
        let Turn {
            app,
            visit,
            present,
            ..
        } = self;
        let consent = match (&visit.request.ending, present) {
            // They may have allowed more just now.
            (Ending::Client(_), Some(present)) if matches!(step, Step::AfterConsent { .. }) => {
                visit.find_consent(app, present)?
            }
            (Ending::Client(_), Some(present)) => visit.known_consent(app, present)?,
            (Ending::Client(_) | Ending::Device(_) | Ending::Account { .. }, _) => None,
        };
        let user = present.map(|present| &present.user);
        let strongest_acr = user.map_or(Strength::SignedIn, |user| user.strongest_acr);
        let may_add_factors = present.is_some_and(|present| present.may_add_factors(app));
        let interaction = decide(&Situation {
            request: &visit.request,
            client: visit.registration(),
            catalogue: &visit.snapshot.catalogue,
            session: present.map(|present| &present.row),
            role: user.and_then(|user| user.claims.get("role")),
            minimum_acr: visit
                .registration()
                .map_or(app.config.client_defaults.minimum_acr, |client| {
                    client.minimum_acr
                }),
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
            hinted_subject: visit.hinted_subject(app)?.as_ref(),
            step,
            now: app.now(),
        });
        if let Interaction::Login { .. } = interaction {
            visit.ways_in()?;
        }
        Ok(Judged {
            interaction,
            consent,
        })
    }
}

impl InSession<'_> {
    /// Whether the posted form was drawn for this request and this session.
    pub fn matches(&self, form: Form, posted: &Parameters) -> bool {
        let browser = Some(&self.present.handle.random);
        forms::matches(self.app, form, &self.visit.sealed, browser, posted)
    }

    /// What ties tickets and challenges to this request and this session.
    pub fn tie(&self) -> [u8; 32] {
        tie(&self.visit.sealed, &self.present.handle.random)
    }

    /// Draws something with a form of one of our pages.
    pub fn with_form<T>(&self, page: &str, form: Form, draw: impl FnOnce(PageForm<'_>) -> T) -> T {
        let browser = &self.present.handle.random;
        draw(PageForm {
            action: &self.action(page),
            token: &forms::issue(self.app, form, &self.visit.sealed, browser),
        })
    }
}
