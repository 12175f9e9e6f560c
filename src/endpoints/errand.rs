//! What somebody signs in for: a client's request, their own account, or a device of theirs. The login page and what follows a sign-in are the
//! same for all.

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
use crate::protocol::acr_values::named_tenant;
use crate::protocol::authorize_request::Refusal;
use crate::protocol::errors::AuthorizeErrorCode;
use crate::protocol::identifiers::{ClientId, TenantName};
use crate::protocol::instant::Instant;
use crate::protocol::interaction::{Step, offers_password};
use crate::protocol::lengths;
use crate::protocol::parameters::Parameters;
use crate::protocol::reason::Reason;
use crate::protocol::sealed_request::{SealedPurpose, SealedRequest};
use crate::registry::Snapshot;

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
    received_at: Instant,
    snapshot: Arc<Snapshot>,
}

impl AccountVisit {
    /// Takes in what the address of `/account` says.
    pub fn begin(app: &App, query: &Parameters) -> Result<AccountVisit, Failure> {
        let tenant = query.bounded("tenant", lengths::OTHER).map_err(Failure::bad_request)?;
        let ui_locales = query.bounded("ui_locales", lengths::OTHER).map_err(Failure::bad_request)?;
        let asked = [tenant.map(|tenant| ("tenant", tenant)), ui_locales.map(|locales| ("ui_locales", locales))];
        let parameters = Parameters::from_pairs(asked.into_iter().flatten());
        let request = SealedRequest { purpose: SealedPurpose::Account, received_at: app.now(), parameters };
        let sealed = sealed_address::seal(app, &request);
        AccountVisit::resume(app, Opened { request, sealed })
    }

    /// Goes on with a request of which the seal was opened: the tenant must still be there.
    pub fn resume(app: &App, opened: Opened) -> Result<AccountVisit, Failure> {
        let Opened { request, sealed } = opened;
        let snapshot = app.registry.snapshot();
        let tenant = named_tenant(request.parameters.all("tenant"), &snapshot.catalogue, |_| true);
        let tenant = tenant.map_err(Failure::bad_request)?;
        let ui_locales = request.parameters.all("ui_locales").next().unwrap_or_default().to_owned();
        Ok(AccountVisit { sealed, tenant, ui_locales, received_at: request.received_at, snapshot })
    }

    /// The page that asks who is there.
    pub fn login_page(&self, app: &App) -> String {
        sealed_address::page(app, "/login", &self.sealed)
    }

    /// Whether this session will do: where a tenant was named, one of another is none.
    pub fn is_answered_by(&self, present: &PresentSession) -> bool {
        self.tenant.is_none() || present.row.tenant == self.tenant
    }

    fn next(&self, app: &App, present: Option<&PresentSession>) -> Next {
        match present.filter(|present| self.is_answered_by(present)) {
            Some(_) => {
                let account = format!("{}/account", app.config.base_url.path());
                Next::Answer(answers::see_other(answers::speaking(account, &self.ui_locales)))
            }
            None => Next::Login,
        }
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
        let snapshot = match self {
            Errand::Authorize(visit) => &visit.snapshot,
            Errand::Account(visit) => &visit.snapshot,
            Errand::Device(visit) => &visit.snapshot,
        };
        let tenant = snapshot.catalogue.tenants.get(self.tenant()?.as_str())?;
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
    pub fn client_view(self) -> Option<ClientView<'a>> {
        match self {
            Errand::Authorize(visit) => Some(visit.client_view()),
            Errand::Account(_) => None,
            Errand::Device(visit) => Some(visit.client_view()),
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
            Errand::Account(_) | Errand::Device(_) => false,
        }
    }

    /// Refuses where no password may be taken: the person must not type one in vain.
    pub fn require_password_form(self) -> Result<(), Failure> {
        match self {
            Errand::Authorize(visit) => {
                if offers_password(&visit.request, &visit.client.client, &visit.snapshot.catalogue) {
                    return Ok(());
                }
                Err(visit.refuse(Refusal::new(AuthorizeErrorCode::AccessDenied, Reason::NoWayToSignIn)))
            }
            Errand::Account(_) => Ok(()),
            Errand::Device(visit) => visit.require_password_form(),
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
            Errand::Account(visit) => Ok(visit.next(app, present)),
            Errand::Device(visit) => Ok(match present.filter(|present| visit.is_answered_by(app, present)) {
                Some(present) => Next::Answer(device::draw(app, http, visit, present, false)),
                None => Next::Login,
            }),
        }
    }

    /// The address of one of our pages for this.
    pub fn page(self, app: &App, page: &str) -> String {
        match self {
            Errand::Authorize(visit) => visit.page(app, page),
            Errand::Account(visit) => sealed_address::page(app, page, &visit.sealed),
            Errand::Device(visit) => sealed_address::page(app, page, &visit.sealed),
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
