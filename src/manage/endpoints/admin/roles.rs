//! Roles: `/admin/roles`, and each below it. What is done is judged by the statement that writes.

use std::collections::BTreeSet;

use maud::html;
use serde_json::json;

use super::{Administrator, decoded};
use crate::pages::admin::people::{PeoplePage, SearchedFor};
use crate::pages::admin::roles::{RoleView, list_page, role_page};
use crate::pages::admin::{AdminSection, Told};
use crate::statements::people_list::{self, PeopleAsked};
use crate::statements::roles;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_registrar::role_removal::{take_role, unregister};
use gatepost_registrar::statements::role_removal::clients_that_ask;
use gatepost_server::app::failure::Failure;
use gatepost_server::endpoints::forms;
use gatepost_server::http::{Method, Response};
use gatepost_server::pages::frame::about;
use gatepost_store::audit_events::EventAuthor;

impl Administrator<'_> {
    pub(super) fn list_roles(&self, told: Option<&Told>) -> Result<Response, Failure> {
        let after = self.query()?.bounded("after", parameters::CLIENT_ID)?;
        let _permit = self.survey()?;
        let listed = roles::list(self.store(), self.acting(""), after.unwrap_or_default())?;
        let catalogue = &self.context.transaction.snapshot.catalogue;
        Ok(self.shown(AdminSection::Roles, |around| {
            list_page(around, catalogue, &listed, told)
        }))
    }

    /// Shows the page of a role, or takes one of its forms. `name` stands as it was sent.
    pub(super) fn handle_role(&self, name: &str) -> Result<Response, Failure> {
        let role = &*decoded(name)?;
        if self.context.request.method == Method::Post {
            return self.take_role_form(role);
        }
        let undone = Err(html! { (self.texts().session_changed) });
        self.draw_role(role, self.left_undone()?.then_some(&undone))
    }

    fn draw_role(&self, role: &str, told: Option<&Told>) -> Result<Response, Failure> {
        let asked_roles = &[role];
        let language = self.texts().language.tag();
        let opened = roles::opened(self.store(), None, self.reach, asked_roles, language)?;
        let asked = PeopleAsked {
            tenants: self.reach,
            typed: "",
            roles: Some(asked_roles),
            state: "",
        };
        let is_given = self.given_roles.iter().any(|given| given == role);
        self.with_people(asked, SearchedFor::default(), |people| {
            let view = RoleView {
                role,
                opened: &opened,
                people: PeoplePage {
                    has_ticks: is_given,
                    ..people
                },
                is_given,
                may_be_deleted: is_given && self.reach.contains(&""),
                told,
            };
            self.shown_with_form(AdminSection::Roles, |around, form| {
                role_page(around, form, view)
            })
        })
    }

    fn take_role_form(&self, role: &str) -> Result<Response, Failure> {
        let form = forms::read_post(self.context.app, self.context.request)?;
        if !self.may_act() {
            return self.sign_in_anew();
        }
        let told = match form.single("decision")? {
            _ if !self.matches(&form) => Err(html! { (self.texts().session_changed) }),
            Some("take") => self.take_role(role, &form)?,
            Some("delete") => self.delete_role(role)?,
            _ => return Err(Failure::bad_request(Reason::UnknownPageAction)),
        };
        if form.single("decision")? == Some("delete") && told.is_ok() {
            return self.list_roles(Some(&told));
        }
        self.draw_role(role, Some(&told))
    }

    /// Takes it from all who were ticked, or from nobody.
    fn take_role(&self, role: &str, form: &Parameters) -> Result<Told, Failure> {
        let texts = self.texts();
        let ticked: BTreeSet<&str> = form.all("person").collect();
        if ticked.is_empty() {
            return Ok(Err(html! { (texts.nobody_ticked) }));
        }
        let store = self.store();
        let subs = Vec::from_iter(ticked.into_iter().map(Subject::new));
        let event = |sub| {
            let detail = json!({"changed": ["role"], "old": {"role": [role]}, "new": {"role": []}});
            self.event("user_changed", sub, detail)
        };
        let events = Vec::from_iter(subs.iter().map(event));
        if !roles::take(store, self.acting(""), role, &subs, &events)? {
            store.confirm()?;
            return Ok(Err(html! { (texts.role_changed_meanwhile) }));
        }
        let people = people_list::shown(store, self.acting(""), &subs, None)?;
        let names = Vec::from_iter(people.iter().map(|person| person.found.user.called()));
        Ok(Ok(about(texts.role_was_taken, &names.join(", "))))
    }

    /// In one transaction: where it cannot go, it stands with all of its people.
    fn delete_role(&self, role: &str) -> Result<Told, Failure> {
        let texts = self.texts();
        self.store().change_registry(|writer| {
            let asking = clients_that_ask(writer, role)?;
            if !asking.is_empty() {
                return Ok(Err(about(texts.role_is_asked_for, &asking.join(", "))));
            }
            for hindrance in roles::hold(writer, self.acting(""), role)? {
                match hindrance.as_str() {
                    "" => {}
                    "setting" => return Ok(Err(html! { (texts.role_in_setting) })),
                    _ => return Ok(Err(html! { (texts.role_for_operator) })),
                }
            }
            let request = self.context.request;
            writer.author = Some(EventAuthor {
                by: json!({"by": "admin", "admin": self.sub()}),
                source: request.source,
                request_id: request.id.clone(),
            });
            unregister(writer, role)?;
            while take_role(writer, role)? > 0 {}
            Ok(Ok(about(texts.role_was_deleted, role)))
        })
    }
}
