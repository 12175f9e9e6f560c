//! Who is signed in with the browser that sent a request.

use std::time::Duration;

use crate::app::App;
use crate::app::failure::Result;
use crate::endpoints::bound_session;
use crate::endpoints::cookies::{self, SessionHandle};
use crate::http::{Request, Response};
use crate::pages::frame::Account;
use gatepost_protocol::authorize::authorize_request::AuthorizeRequest;
use gatepost_protocol::login::bound_session::Binding;
use gatepost_protocol::words::identifiers::{ClientId, Sid};
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::session::{Session, SignIn};
use gatepost_protocol::words::strength::Strength;
use gatepost_store::consents::ConsentRow;
use gatepost_store::sessions::{self, FoundSession};
use gatepost_store::users::UserRow;

const USE_NOTED_AFTER: Duration = Duration::from_secs(3_600);

/// A live session: it has not ended or run out, its user exists and is enabled, and nothing was
/// revoked since.
#[derive(Clone)]
pub struct CurrentSession {
    /// The cookie's handle; ties forms to this session.
    pub handle: SessionHandle,
    pub row: Session,
    pub user: UserRow,
    /// The browser's part of `session_state`. `None` when this browser sent none.
    pub browser_state: Option<SecretText>,
    pub consent: KnownConsent,
    /// Whether it is bound to a key of its browser, and the request showed that.
    pub binding: Binding,
}

/// Whom the cookies of a request show.
pub enum Presence {
    /// They show no session, or none that stands.
    Nobody,
    SignedIn(Box<CurrentSession>),
    /// Their session stands, and is bound to a key that the request does not show
    /// ([`Binding::Refused`]): it counts as signed out, and may only be ended.
    Refused(Box<CurrentSession>),
}

/// What the user allows the client of this request, as far as the session's look-up told.
#[derive(Clone)]
pub enum KnownConsent {
    Unread,
    /// Lapsed or not; `None` where there is none.
    Read(Option<ConsentRow>),
}

impl Presence {
    /// Whom this request shows, with what they allow that client. The one place that judges whether
    /// a bound session comes from its browser.
    pub fn find(app: &App, request: &Request, client_id: Option<&ClientId>) -> Result<Presence> {
        let Some(handle) = SessionHandle::of(&app.config, request) else {
            return Ok(Presence::Nobody);
        };
        let browser_state = cookies::browser_state(&app.config, request);
        let Some(mut session) = CurrentSession::read(app, handle, browser_state, client_id)? else {
            return Ok(Presence::Nobody);
        };
        session.binding = bound_session::judge(app, request, &session.row);
        Ok(match session.binding {
            Binding::Unbound | Binding::Proved | Binding::Crossing => {
                note_use(app, &session.row);
                Presence::SignedIn(Box::new(session))
            }
            Binding::Refused => {
                bound_session::note_refusal(app, request, &session.row);
                Presence::Refused(Box::new(session))
            }
        })
    }

    pub fn signed_in(&self) -> Option<&CurrentSession> {
        match self {
            Presence::SignedIn(session) => Some(session),
            Presence::Nobody | Presence::Refused(_) => None,
        }
    }

    pub fn refused(&self) -> Option<&CurrentSession> {
        match self {
            Presence::Refused(session) => Some(session),
            Presence::Nobody | Presence::SignedIn(_) => None,
        }
    }

    /// The session that may be ended from here, whether the request shows its key or not.
    pub fn standing(&self) -> Option<&CurrentSession> {
        self.signed_in().or(self.refused())
    }
}

impl CurrentSession {
    /// The session that this browser is signed in with, if it is.
    pub fn find(app: &App, request: &Request) -> Result<Option<CurrentSession>> {
        Ok(match Presence::find(app, request, None)? {
            Presence::SignedIn(session) => Some(*session),
            Presence::Nobody | Presence::Refused(_) => None,
        })
    }

    /// The same session as it is now. The request that showed it is the same.
    pub fn read_again(&self, app: &App) -> Result<Option<CurrentSession>> {
        let browser_state = self.browser_state.clone();
        let read = CurrentSession::read(app, self.handle.clone(), browser_state, None)?;
        Ok(read.map(|session| CurrentSession {
            binding: self.binding,
            ..session
        }))
    }

    /// The session of that handle if it stands, bound or not.
    fn read(
        app: &App,
        handle: SessionHandle,
        browser_state: Option<SecretText>,
        client_id: Option<&ClientId>,
    ) -> Result<Option<CurrentSession>> {
        let Some(found) = sessions::find(&app.store, handle.day, &handle.hash(), client_id)? else {
            return Ok(None);
        };
        let stands = found.stands(app.now());
        let FoundSession {
            session,
            user,
            consent,
            ..
        } = found;
        let consent = match client_id {
            Some(_) => KnownConsent::Read(consent),
            None => KnownConsent::Unread,
        };
        Ok(user.filter(|_| stands).map(|user| CurrentSession {
            handle,
            row: session,
            user,
            browser_state,
            consent,
            binding: Binding::Unbound,
        }))
    }

    /// Whether it outlives the browser.
    pub fn is_remembered(&self, app: &App) -> bool {
        let is_offered = app.config.remember_session_lifetime.is_some();
        is_offered && self.row.expires_at.since(self.row.created_at) > app.config.session_lifetime
    }

    /// How many seconds are left of a session that outlives the browser.
    pub fn max_age(&self, app: &App) -> Option<u64> {
        self.is_remembered(app)
            .then(|| self.row.expires_at.since(app.now()).as_secs())
    }

    /// Whether the user may add factors. Factors are for people with a password or a passkey; the
    /// first one is the operator's to allow.
    pub fn may_add_factors(&self, app: &App) -> bool {
        let has_some = self.user.strongest_acr > Strength::SignedIn;
        self.user.has_own_way_in() && (app.config.enrols || has_some)
    }

    /// Whether it has a key of its browser, and the request showed that.
    pub fn is_bound(&self) -> bool {
        self.binding == Binding::Proved
    }

    /// See [`Presence::Refused`].
    pub fn is_refused(&self) -> bool {
        self.binding == Binding::Refused
    }

    /// The answer that brings its browser the handle of this session.
    pub fn carried_by(&self, app: &App, response: Response) -> Response {
        cookies::set_session(&app.config, response, &self.handle, self.max_age(app))
    }

    /// What tokens say about the sign-in. They name the session (`sid`) that they were given in,
    /// but not where a device gets them; and the provider if the request named one.
    pub fn sign_in(&self, sid: Option<&Sid>, request: &AuthorizeRequest) -> SignIn {
        let named = request.acr_values.identity_provider.is_some();
        SignIn {
            subject: self.user.sub.clone(),
            sid: sid.cloned(),
            tenant: self.row.tenant.clone(),
            identity_provider: named.then(|| self.row.identity_provider().to_owned()),
            auth_time: self.row.auth_time,
            amr: self.row.amr.clone(),
            acr: request.claims.acr_claim(&self.row.acr).to_owned(),
        }
    }

    pub fn account(&self) -> Account<'_> {
        Account {
            name: self.display_name(),
            username: self.user.username.as_deref().unwrap_or_default(),
        }
    }

    /// What the person is called: the `name` claim, else the user name; without one, what they are
    /// called elsewhere.
    pub fn display_name(&self) -> &str {
        let given = self.claim("name").or(self.user.username.as_deref());
        given
            .or_else(|| self.claim("preferred_username"))
            .or_else(|| self.claim("email"))
            .unwrap_or(self.user.sub.as_str())
    }

    fn claim(&self, name: &str) -> Option<&str> {
        let text = self.user.claims.get(name)?.as_str()?;
        (!text.is_empty()).then_some(text)
    }
}

/// Only the account page needs this note, so a busy database does without it.
fn note_use(app: &App, session: &Session) {
    let an_hour_ago = app.now().minus(USE_NOTED_AFTER);
    if session.used_at <= an_hour_ago
        && let Err(error) = sessions::touch(&app.store, session, an_hour_ago)
    {
        log::info!("that a session is in use was not noted: {error}");
    }
}
