//! What somebody signs in for: a client's request, their own account, or a device of theirs. The login page and what
//! follows a sign-in are the same for all.

use std::sync::Arc;

use super::answers;
use super::authorize;
use super::device;
use super::device_visit::DeviceVisit;
use super::present_session::PresentSession;
use super::sealed_address::{self, Opened};
use super::visit::{Next, Visit};
use crate::app::App;
use crate::app::failure::Failure;
use crate::http::{Request, Response};
use crate::pages::frame::Client as ClientView;
use crate::pages::language::Language;
use crate::protocol::acr_values::named_tenant;
use crate::protocol::authorize_request::Refusal;
use crate::protocol::errors::AuthorizeErrorCode;
use crate::protocol::identifiers::{ClientId, TenantName};
use crate::protocol::instant::Instant;
use crate::protocol::interaction::Step;
use crate::protocol::lengths;
use crate::protocol::parameters::Parameters;
use crate::protocol::reason::Reason;
use crate::protocol::scope::Catalogue;
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::session::LOCAL;
use crate::protocol::upstream::Ask;
use crate::protocol::upstream::choices::{Choices, Place};
use crate::registry::Snapshot;

/// How the account page is told that somebody was sent to sign in anew, and did.
const SIGNED_IN_ANEW: &str = "?signed_in=anew";

/// Seals whether somebody shall sign in anew, and how.
const ANEW: &str = "anew";
const BY_PASSWORD: &str = "password";

/// What somebody signs in for.
#[derive(Clone, Copy)]
pub enum Errand<'a> {
    /// A client asked.
    Authorize(&'a Visit),
    /// They want to see their account.
    Account(&'a AccountVisit),
    /// A device of theirs waits.
    Device(&'a DeviceVisit),
}

/// Somebody on the way to `/account`.
pub struct AccountVisit {
    /// A page's `r` parameter.
    sealed: String,
    /// The tenant to sign in within; without one, users without a tenant.
    tenant: Option<TenantName>,
    ui_locales: String,
    /// Whether they shall sign in anew, whatever session there is.
    anew: bool,
    /// Whether it must be by their password.
    by_password: bool,
    received_at: Instant,
    snapshot: Arc<Snapshot>,
}

impl AccountVisit {
    /// Takes in what the address of `/account` says.
    pub fn begin(app: &App, query: &Parameters) -> Result<AccountVisit, Failure> {
        let tenant = query.bounded("tenant", lengths::OTHER).map_err(Failure::bad_request)?;
        let ui_locales = query.bounded("ui_locales", lengths::OTHER).map_err(Failure::bad_request)?;
        AccountVisit::seal(app, &[("tenant", tenant), ("ui_locales", ui_locales)])
    }

    /// The same for whoever has a session and shall sign in anew, within its tenant; by their password if they have one.
    pub fn anew(&self, app: &App, present: &PresentSession) -> Result<AccountVisit, Failure> {
        let tenant = present.row.tenant.as_ref().map(TenantName::as_str);
        let how = if present.user.password_hash.is_some() { BY_PASSWORD } else { "1" };
        AccountVisit::seal(app, &[("tenant", tenant), ("ui_locales", Some(&self.ui_locales)), (ANEW, Some(how))])
    }

    fn seal(app: &App, asked: &[(&str, Option<&str>)]) -> Result<AccountVisit, Failure> {
        let parameters = Parameters::from_pairs(asked.iter().filter_map(|(name, value)| Some((*name, (*value)?))));
        AccountVisit::resume(app, sealed_address::seal(app, SealedPurpose::Account(parameters)))
    }

    /// Goes on with a request of which the seal was opened: the tenant must still be there.
    pub fn resume(app: &App, opened: Opened) -> Result<AccountVisit, Failure> {
        let Opened { request, sealed } = opened;
        let snapshot = app.registry.snapshot();
        let SealedPurpose::Account(parameters) = request.purpose else { return Err(sealed_address::invalid()) };
        let tenant = named_tenant(parameters.all("tenant"), &snapshot.catalogue, |_| true);
        let tenant = tenant.map_err(Failure::bad_request)?;
        let ui_locales = parameters.all("ui_locales").next().unwrap_or_default().to_owned();
        let anew = parameters.was_sent(ANEW);
        let by_password = parameters.all(ANEW).any(|how| how == BY_PASSWORD);
        Ok(AccountVisit { sealed, tenant, ui_locales, anew, by_password, received_at: request.received_at, snapshot })
    }

    /// Whether this session will do: where a tenant was named, one of another is none, and one from a provider that is gone
    /// or switched off is none anywhere.
    pub fn is_answered_by(&self, present: &PresentSession) -> bool {
        let tenant = present.row.tenant.as_ref();
        let place = Place { tenant, ..self.place() };
        (self.tenant.is_none() || tenant == self.tenant.as_ref()) && place.accepts(&present.to_core())
    }

    fn place(&self) -> Place<'_> {
        Place { client: None, tenant: self.tenant.as_ref(), catalogue: &self.snapshot.catalogue }
    }

    /// The way to the account page, where this session will do.
    fn answer(&self, app: &App, present: Option<&PresentSession>, step: &Step) -> Option<Next> {
        let may_stay = !self.anew || *step == Step::AfterSignIn;
        present.filter(|present| may_stay && self.is_answered_by(present))?;
        let query = if self.anew { SIGNED_IN_ANEW } else { "" };
        let account = format!("{}/account{query}", app.config.base_url.path());
        Some(Next::Answer(answers::see_other(answers::speaking(account, &self.ui_locales))))
    }
}

impl<'a> Errand<'a> {
    /// The request, sealed: a page's `r` parameter.
    pub fn sealed(self) -> &'a str {
        match self {
            Errand::Authorize(visit) => &visit.sealed,
            Errand::Account(visit) => &visit.sealed,
            Errand::Device(visit) => &visit.sealed,
        }
    }

    /// When they came: a sign-in from then on was made for this.
    pub fn received_at(self) -> Instant {
        match self {
            Errand::Authorize(visit) => visit.request.received_at,
            Errand::Account(visit) => visit.received_at,
            Errand::Device(visit) => visit.received_at,
        }
    }

    /// The tenant to sign in within.
    pub fn tenant(self) -> Option<&'a TenantName> {
        match self {
            Errand::Authorize(visit) => visit.request.acr_values.tenant.as_ref(),
            Errand::Account(visit) => visit.tenant.as_ref(),
            Errand::Device(visit) => visit.acr_values.tenant.as_ref(),
        }
    }

    /// That tenant as pages name it.
    pub fn tenant_display_name(self) -> Option<&'a str> {
        let tenant = self.catalogue().tenants.get(self.tenant()?.as_str())?;
        Some(&tenant.display_name)
    }

    /// Who asked, where a client did.
    pub fn client_id(self) -> Option<&'a ClientId> {
        match self {
            Errand::Authorize(visit) => Some(&visit.request.client_id),
            Errand::Account(_) => None,
            Errand::Device(visit) => Some(&visit.client.client.client_id),
        }
    }

    /// That client as pages show it.
    pub fn client_view(self, language: Language) -> Option<ClientView<'a>> {
        match self {
            Errand::Authorize(visit) => Some(visit.client_view(language)),
            Errand::Account(_) => None,
            Errand::Device(visit) => Some(visit.client_view(language)),
        }
    }

    /// `ui_locales`; empty where nobody asked for a language.
    pub fn ui_locales(self) -> &'a str {
        match self {
            Errand::Authorize(visit) => visit.request.ui_locales.as_deref().unwrap_or_default(),
            Errand::Account(visit) => &visit.ui_locales,
            Errand::Device(_) => "",
        }
    }

    /// What the user name field starts with.
    pub fn login_hint(self) -> &'a str {
        match self {
            Errand::Authorize(visit) => visit.request.login_hint.as_deref().unwrap_or_default(),
            Errand::Account(_) | Errand::Device(_) => "",
        }
    }

    /// Whether a sign-in of its own was asked for, whatever session there is.
    pub fn wants_fresh_sign_in(self) -> bool {
        match self {
            Errand::Authorize(visit) => visit.wants_fresh_sign_in(),
            Errand::Account(visit) => visit.anew,
            Errand::Device(_) => false,
        }
    }

    /// Which ways to sign in there are.
    pub fn choices(self) -> Choices {
        match self {
            Errand::Authorize(visit) => visit.choices(),
            Errand::Account(visit) => Choices::of(&visit.place(), visit.by_password.then_some(LOCAL)),
            Errand::Device(visit) => visit.choices(),
        }
    }

    /// Where somebody signs in for this; refused where nobody can.
    pub fn to_sign_in(self) -> Result<Next, Failure> {
        match self {
            Errand::Authorize(visit) => visit.to_sign_in(),
            Errand::Account(_) | Errand::Device(_) => {
                Next::to_sign_in(&self.choices()).ok_or_else(|| Failure::bad_request(Reason::NoWayToSignIn))
            }
        }
    }

    /// What of it an upstream provider is told.
    pub fn ask_upstream(self) -> Ask {
        match self {
            Errand::Authorize(visit) => Ask::of(&visit.request),
            Errand::Account(visit) => {
                let ui_locales = Some(visit.ui_locales.clone()).filter(|locales| !locales.is_empty());
                Ask { presence: visit.anew, ui_locales, ..Ask::default() }
            }
            Errand::Device(visit) => Ask { max_age: visit.client.client.default_max_age, ..Ask::default() },
        }
    }

    /// What is registered.
    pub fn catalogue(self) -> &'a Catalogue {
        match self {
            Errand::Authorize(visit) => &visit.snapshot.catalogue,
            Errand::Account(visit) => &visit.snapshot.catalogue,
            Errand::Device(visit) => &visit.snapshot.catalogue,
        }
    }

    /// What comes next, with what is stored now.
    pub fn next(
        self,
        app: &App,
        http: &Request,
        present: Option<&PresentSession>,
        step: Step,
    ) -> Result<Next, Failure> {
        match self {
            Errand::Authorize(visit) => visit.next(app, http, present, step),
            Errand::Account(visit) => visit.answer(app, present, &step).map_or_else(|| self.to_sign_in(), Ok),
            Errand::Device(visit) => match present.filter(|present| visit.is_answered_by(app, present)) {
                Some(present) => Ok(Next::Answer(device::draw(app, http, visit, present, false))),
                None => self.to_sign_in(),
            },
        }
    }

    /// The address of one of our pages for this.
    pub fn page(self, app: &App, page: &str) -> String {
        match self {
            Errand::Authorize(visit) => visit.page(app, page),
            Errand::Account(_) | Errand::Device(_) => sealed_address::page(app, page, self.sealed()),
        }
    }

    /// It is too long to go where it must.
    pub fn too_long(self) -> Failure {
        let (code, reason) = (AuthorizeErrorCode::InvalidRequest, Reason::RequestTooLong);
        match self {
            Errand::Authorize(visit) => visit.refuse(Refusal::new(code, reason)),
            Errand::Account(_) | Errand::Device(_) => Failure::bad_request(reason),
        }
    }

    /// They signed in as well as they could, and the request asks for more.
    pub fn not_answered_by_sign_in(self) -> Failure {
        match self {
            Errand::Authorize(visit) => {
                visit.refuse(Refusal::new(AuthorizeErrorCode::LoginRequired, Reason::LoginRequired))
            }
            Errand::Account(_) | Errand::Device(_) => Failure::bad_request(Reason::SignInTooOld),
        }
    }

    /// The person changed their mind.
    pub fn cancelled(self, app: &App) -> Result<Response, Failure> {
        match self {
            Errand::Authorize(visit) => {
                Err(visit.refuse(Refusal::new(AuthorizeErrorCode::AccessDenied, Reason::AccessDenied)))
            }
            Errand::Account(_) => Ok(answers::see_other(format!("{}/", app.config.base_url.path()))),
            Errand::Device(_) => Ok(answers::see_other(format!("{}/device", app.config.base_url.path()))),
        }
    }

    /// A failure before anything is shown: where nobody is there to read a page, an outage is told to the client.
    pub fn silent(self, failure: Failure) -> Failure {
        match self {
            Errand::Authorize(visit) => authorize::silent(visit, failure),
            Errand::Account(_) | Errand::Device(_) => failure,
        }
    }
}
