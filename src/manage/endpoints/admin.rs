//! `/admin`: pages for those who look after people and are no operators. Off unless
//! `GATEPOST_ADMIN_ROLE` names their role. Who comes without it, and whoever names what is out of
//! their reach, gets one and the same 404.
//!
//! The role is read with the session at each request. A page needs a sign-in as strong as
//! `GATEPOST_ADMIN_MINIMUM_ACR`; a change needs one of the last hour, too.

pub mod admission;
mod applications;
mod audit;
mod explanation;
pub mod invitations;
mod links;
mod pasted_people;
mod people;
mod person;
mod roles;
mod wrong_passwords;

use std::time::Duration;

use serde_json::{Value, json};

use crate::pages::admin::AdminChrome;
use crate::pages::admin::person::PersonDetails;
use crate::statements::admin_people::ActingAdmin;
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_server::app::failure::{Failure, Result};
use gatepost_server::endpoints::forms::{self, Form};
use gatepost_server::endpoints::transaction::{InSession, own_page};
use gatepost_server::http::Response;
use gatepost_server::pages::form_problem::FormProblem;
use gatepost_server::pages::frame::PageForm;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::worker::Permit;

/// How old a sign-in may be that changes something.
const FRESH: Duration = Duration::from_secs(3_600);
/// The page whose form changes nothing.
const EXPLAIN: &str = "explain";
/// The longest path that a sign-in leads back to.
const LONGEST_PAGE: usize = 800;

/// An administrator, who asks for a page in a session that is strong enough.
#[derive(Clone, Copy)]
pub struct Administrator<'a> {
    pub context: InSession<'a>,
    /// What is around their pages.
    pub around: AdminChrome<'a>,
    /// For what writes, and for what tells who may be changed.
    pub acting: ActingAdmin<'a>,
    /// What follows `/admin/`, as it was sent.
    pub page: &'a str,
    /// What they sent by a form of ours.
    pub form: Option<&'a Parameters>,
    /// Says that what they sent was not done: it is of another session, or they had to sign in
    /// anew.
    pub undone: Option<FormProblem>,
}

/// The page that a sign-in leads back to, with what it was asked for.
fn way_back(page: &str, query: &Parameters) -> String {
    // These go with the request for the sign-in.
    let own = ["tenant", "ui_locales"];
    let asked = query.iter().filter(|(name, _)| !own.contains(name));
    let encoded = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(asked)
        .finish();
    let joint = if encoded.is_empty() { "" } else { "?" };
    let mut page = format!("{page}{joint}{encoded}");
    if page.len() > LONGEST_PAGE {
        page.clear();
    }
    format!("/admin/{page}")
}

impl<'a> Administrator<'a> {
    pub fn query(&self) -> Result<&Parameters> {
        Ok(self.context.request.query_parameters()?)
    }

    /// A form that goes to this page.
    pub fn page_form(&self) -> PageForm<'a> {
        PageForm {
            chrome: self.around.chrome,
            action: self.around.address(self.page),
            token: self.context.form_token(Form::Admin, self.page),
        }
    }

    /// What was not done: they come back from signing in anew, or the form that they sent was not
    /// drawn for this page, whose address names the person, in this session.
    pub fn what_was_undone(&self) -> Result<Option<FormProblem>> {
        Ok(match self.form {
            Some(form) if self.context.has_form_token(Form::Admin, self.page, form) => None,
            Some(_) => Some(FormProblem::SessionChanged),
            None => {
                let is_back = self.query()?.was_sent("signed_in");
                is_back.then_some(FormProblem::SignInWasOld)
            }
        })
    }

    /// Whether their sign-in is young enough to change something.
    pub fn may_act(&self) -> bool {
        let signed_in_at = self.context.current_session.row.auth_time;
        self.context.app.now() < signed_in_at.plus(FRESH)
    }

    /// Sends them to sign in once more, and back to this page, which says that nothing was done
    /// with a form.
    pub fn sign_in_anew(&self) -> Result<Response> {
        let tenant = self.context.current_session.row.tenant.as_ref();
        let asked = &self.context.transaction.request;
        let undone = self.form.map(|_| ("signed_in", "anew"));
        let purpose = SealedPurpose::Admin {
            page: way_back(self.page, &Parameters::from_pairs(undone)),
            tenant: tenant.map(ToString::to_string),
            ui_locales: asked.ui_locales.clone(),
            anew: true,
        };
        own_page::to_sign_in(self.context.app, purpose)
    }

    /// The event of something that they do to a person.
    pub fn event<'b>(&'b self, event: &'b str, sub: &'b Subject, detail: Value) -> AuditEvent<'b> {
        let mut told = json!({"by": "admin", "admin": self.acting.admin});
        if let (Value::Object(told), Value::Object(detail)) = (&mut told, detail) {
            told.extend(detail);
        }
        AuditEvent {
            event,
            sub: Some(sub),
            detail: told,
            ..self.context.event()
        }
    }

    /// A turn to read many rows. Nobody waits for one: that would hold a worker that others need.
    pub fn survey(&self) -> Result<Permit<'a>> {
        let permit = self.context.app.admin_surveys.take(Duration::ZERO);
        permit.ok_or(Failure::Busy)
    }

    /// Name, address, end and roles, as they were typed and ticked. Roles are some of those that
    /// the page offered.
    pub fn typed_details(&self, form: &Parameters) -> Result<PersonDetails> {
        let mut roles = Vec::from_iter(form.all("role").map(str::to_owned));
        roles.sort_unstable();
        roles.dedup();
        let is_offered = |role| form.all("offered").any(|offered| offered == role);
        if self.lost_role(&roles).is_some_and(|role| !is_offered(role)) {
            return Err(Failure::bad_request(Reason::UnknownPageAction));
        }
        let address = form.single("address")?.unwrap_or_default();
        Ok(PersonDetails {
            name: forms::tidy(form.single("name")?, 200),
            address: address.trim().to_owned(),
            until: forms::tidy(form.single("until")?, 40),
            roles,
        })
    }

    /// One of them that cannot be given: it could when the page was drawn.
    pub fn lost_role<'b>(&self, roles: &'b [String]) -> Option<&'b str> {
        let lost = roles
            .iter()
            .find(|role| !self.around.roles_to_give.contains(role));
        lost.map(String::as_str)
    }
}
