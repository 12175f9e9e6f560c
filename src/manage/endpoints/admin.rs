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
mod invite_several;
mod links;
mod pasted_people;
mod people;
mod person;
mod roles;
mod wrong_passwords;

use std::borrow::Cow;
use std::time::Duration;

use maud::Markup;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::pages::admin::{AdminChrome, AdminSection};
use crate::statements::admin_people::ActingAdmin;
use gatepost_protocol::registration::administration::{Administration, RegisteredRoles};
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::{Reason, TokenErrorCode};
use gatepost_server::app::failure::Failure;
use gatepost_server::endpoints::answers;
use gatepost_server::endpoints::forms::{self, Form};
use gatepost_server::endpoints::transaction::{InSession, own_page};
use gatepost_server::http::Response;
use gatepost_server::pages::frame::PageForm;
use gatepost_server::pages::texts::Texts;
use gatepost_store::Store;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::worker::Permit;

/// How old a sign-in may be that changes something.
const FRESH: Duration = Duration::from_secs(3_600);
/// The longest path that a sign-in leads back to.
const LONGEST_PAGE: usize = 800;

/// An administrator, who asks for a page in a session that is strong enough.
#[derive(Clone, Copy)]
pub struct Administrator<'a> {
    pub context: InSession<'a>,
    pub administration: &'a Administration,
    /// The tenants whose people they look after; an empty name stands for no tenant.
    pub reach: &'a [&'a str],
    /// The roles that they may give.
    pub given_roles: &'a [String],
    /// What follows `/admin/`, as it was sent.
    pub page: &'a str,
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

/// Whoever has no business here learns nothing.
pub fn not_found() -> Failure {
    Failure::refused(404, TokenErrorCode::InvalidRequest, Reason::NotFound)
}

impl<'a> Administrator<'a> {
    pub fn sub(&self) -> &'a Subject {
        &self.context.current_session.user.sub
    }

    /// The registered roles.
    pub fn roles(&self) -> &'a RegisteredRoles {
        &self.context.transaction.snapshot.catalogue.roles
    }

    pub fn query(&self) -> Result<&Parameters, Failure> {
        Ok(self.context.request.query_parameters()?)
    }

    /// Whether they come back from signing in anew, and what they had sent was not done.
    pub fn left_undone(&self) -> Result<bool, Failure> {
        Ok(self
            .query()?
            .bounded("signed_in", parameters::OTHER)?
            .is_some())
    }

    /// Answers with a page of this section.
    pub fn shown(
        &self,
        section: AdminSection,
        page: impl FnOnce(AdminChrome<'_>) -> Markup,
    ) -> Response {
        let around = AdminChrome {
            chrome: self.context.chrome(),
            section,
            administrator: self.context.current_session.user.called(),
            ui_locales: self.context.transaction.ui_locales(),
        };
        answers::scripted_page(200, page(around))
    }

    pub fn texts(&self) -> &'a Texts {
        self.context.chrome().texts
    }

    pub fn store(&self) -> &'a Store {
        &self.context.app.store
    }

    /// The same with a form that goes to this page.
    pub fn shown_with_form(
        &self,
        section: AdminSection,
        page: impl FnOnce(AdminChrome<'_>, PageForm<'_>) -> Markup,
    ) -> Response {
        let InSession {
            app,
            current_session,
            ..
        } = self.context;
        let path = app.config.base_url.path();
        let address = format!("{path}/admin/{}", self.page);
        let form = PageForm {
            action: &answers::speaking(address, self.context.transaction.ui_locales()),
            token: &forms::issue(app, Form::Admin, self.page, &current_session.handle.random),
        };
        self.shown(section, |around| page(around, form))
    }

    /// Whether the form was drawn for this page, whose address names the person, in this session.
    pub fn matches(&self, form: &Parameters) -> bool {
        let InSession {
            app,
            current_session,
            ..
        } = self.context;
        let browser = Some(&current_session.handle.random);
        forms::matches(app, Form::Admin, self.page, browser, form)
    }

    /// Whether their sign-in is young enough to change something.
    pub fn may_act(&self) -> bool {
        let InSession {
            app,
            current_session,
            ..
        } = self.context;
        app.now() < current_session.row.auth_time.plus(FRESH)
    }

    /// Sends them to sign in once more, and back to this page, which says that nothing was done.
    pub fn sign_in_anew(&self) -> Result<Response, Failure> {
        let InSession {
            app,
            transaction,
            current_session,
            ..
        } = self.context;
        let purpose = SealedPurpose::Admin {
            page: way_back(self.page, &Parameters::from_pairs([("signed_in", "anew")])),
            tenant: current_session.row.tenant.as_ref().map(ToString::to_string),
            ui_locales: transaction.request.ui_locales.clone(),
            anew: true,
        };
        own_page::to_sign_in(app, purpose)
    }

    /// The event of something that they do to a person.
    pub fn event<'b>(&'b self, event: &'b str, sub: &'b Subject, detail: Value) -> AuditEvent<'b> {
        let mut told = json!({"by": "admin", "admin": self.sub()});
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

    /// For what writes, and for what tells who may be changed. A person is changed only where they
    /// have that `version` still.
    pub fn acting<'b>(&'b self, version: &'b str) -> ActingAdmin<'b> {
        ActingAdmin {
            admin: self.sub(),
            reach: self.reach,
            given_roles: &self.administration.given_roles,
            admin_role: &self.administration.role,
            version,
        }
    }

    /// A turn to read many rows. Nobody waits for one: that would hold a worker that others need.
    pub fn survey(&self) -> Result<Permit<'a>, Failure> {
        let context = self.context.app.admin_surveys.take(Duration::ZERO);
        context.ok_or(Failure::Busy)
    }

    /// The roles that were ticked, sorted: some of those that the page offered.
    pub fn posted_roles<'b>(&self, form: &'b Parameters) -> Result<Vec<&'b str>, Failure> {
        let mut roles: Vec<&str> = form.all("role").collect();
        roles.sort_unstable();
        roles.dedup();
        let offered: Vec<&str> = form.all("offered").collect();
        match self.lost_role(&roles) {
            Some(role) if !offered.contains(&role) => {
                Err(Failure::bad_request(Reason::UnknownPageAction))
            }
            _ => Ok(roles),
        }
    }

    /// One of them that cannot be given: it could when the page was drawn.
    pub fn lost_role<'b>(&self, roles: &'b [impl AsRef<str>]) -> Option<&'b str> {
        let is_given = |role: &str| self.given_roles.iter().any(|given| given == role);
        let mut roles = roles.iter().map(AsRef::as_ref);
        roles.find(|role| !is_given(role))
    }
}

/// A name that stands in the path.
pub fn decoded(sent: &str) -> Result<Cow<'_, str>, Failure> {
    let decoded = percent_decode_str(sent).decode_utf8().ok();
    let name = decoded.filter(|name| !name.contains('\0'));
    name.ok_or_else(not_found)
}

/// What was typed, without control characters and what is too long.
pub fn tidy(typed: Option<&str>, most: usize) -> String {
    let typed = typed.unwrap_or_default().trim();
    let kept = typed.chars().filter(|one| !one.is_control());
    kept.take(most).collect()
}
