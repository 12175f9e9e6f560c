//! Roles: `/admin/roles`, and each below it. What is done is judged by the statement that writes.

use std::collections::BTreeSet;

use serde_json::json;

use super::Administrator;
use crate::endpoints::decoded;
use crate::pages::admin::people::PeoplePage;
use crate::pages::admin::person::PersonDetails;
use crate::pages::admin::roles::{RoleView, list_page, role_page};
use crate::pages::admin::{Told, not_done};
use crate::statements::people_list::PeopleAsked;
use crate::statements::roles;
use gatepost_protocol::words::identifiers::{ClientId, Subject};
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_registrar::role_removal::{take_role, unregister};
use gatepost_registrar::statements::role_removal::clients_that_ask;
use gatepost_server::app::failure::{Failure, Result};
use gatepost_server::endpoints::answers::scripted_page;
use gatepost_server::http::Response;
use gatepost_server::pages::frame::{about, done};
use gatepost_store::audit_events::EventAuthor;

impl Administrator<'_> {
    pub fn list_roles(&self, told: Option<&Told>) -> Result<Response> {
        let after = self.query()?.bounded("after", parameters::CLIENT_ID)?;
        let _permit = self.survey()?;
        let listed = self.acting.roles(after.unwrap_or_default())?;
        Ok(scripted_page(200, list_page(self.around, &listed, told)))
    }

    /// Shows the page of a role, or takes one of its forms. `name` stands as it was sent.
    pub fn handle_role(&self, name: &str) -> Result<Response> {
        let role = &*decoded(name)?;
        let told = match (self.undone, self.form) {
            (Some(problem), _) => Some(not_done(&problem.sentence(self.around.texts))),
            (None, Some(form)) => Some(match form.single("decision")? {
                Some("take") => self.take_role(role, form)?,
                Some("delete") => match self.delete_role(role)? {
                    Ok(deleted) => return self.list_roles(Some(&Ok(deleted))),
                    refused => refused,
                },
                _ => return Err(Failure::bad_request(Reason::UnknownPageAction)),
            }),
            (None, None) => None,
        };
        let asked_roles = &[role];
        let language = self.around.texts.language.tag();
        let opened = roles::opened(
            self.acting.store,
            None,
            self.acting.reach,
            asked_roles,
            language,
        )?;
        let is_given = self.around.roles_to_give.iter().any(|given| given == role);
        let asked = PeopleAsked {
            tenants: self.acting.reach,
            roles: Some(asked_roles),
            ..PeopleAsked::default()
        };
        let people = PeoplePage {
            has_ticks: is_given,
            ..self.list_people(asked)?
        };
        let view = RoleView {
            role,
            opened: &opened,
            people: &people,
            is_given,
            may_be_deleted: is_given && self.acting.reach.contains(&""),
            told: told.as_ref(),
        };
        // Whoever takes the role from some of a page stays on it.
        let place = [
            ("before", self.asked_for("before")?),
            ("after", self.asked_for("after")?),
        ];
        let mut form = self.page_form();
        form.action = self.around.address_with(self.page, &place);
        Ok(scripted_page(200, role_page(self.around, &form, view)))
    }

    /// Takes it from all who were ticked, or from nobody.
    fn take_role(&self, role: &str, form: &Parameters) -> Result<Told> {
        let texts = self.around.texts;
        let ticked: BTreeSet<&str> = form.all("person").collect();
        if ticked.is_empty() {
            return Ok(not_done(texts.nobody_ticked));
        }
        let subs = Vec::from_iter(ticked.into_iter().map(Subject::new));
        let people = self.acting.find(&subs, None)?;
        let events = people.iter().map(|person| {
            let user = &person.found.user;
            let had = PersonDetails::stored(user).roles;
            let kept = Vec::from_iter(had.iter().filter(|had| *had != role));
            let detail = json!({"changed": ["role"], "old": {"role": had}, "new": {"role": kept}});
            self.event("user_changed", &user.sub, detail)
        });
        let events = Vec::from_iter(events);
        let versions = Vec::from_iter(people.iter().map(|person| person.version.as_str()));
        if !self.acting.take_role(role, &subs, &versions, &events)? {
            self.acting.store.confirm()?;
            return Ok(not_done(texts.role_changed_meanwhile));
        }
        let names = people.iter().map(|person| person.found.user.called());
        Ok(Ok(done(about(texts.role_was_taken, &joined(", ", names)))))
    }

    /// In one transaction: where it cannot go, it stands with all of its people.
    fn delete_role(&self, role: &str) -> Result<Told> {
        let texts = self.around.texts;
        self.acting.store.change_registry(|writer| {
            for hindrance in self.acting.hold_role(writer, role)? {
                match hindrance.as_str() {
                    "" => {}
                    "setting" => return Ok(not_done(texts.role_in_setting)),
                    _ => return Ok(not_done(texts.role_for_operator)),
                }
            }
            // Only whoever reaches everybody may hear of all clients.
            let asking = clients_that_ask(writer, role)?;
            if !asking.is_empty() {
                let names = self.application_names(&asking)?;
                return Ok(Err(about(texts.role_is_asked_for, &names)));
            }
            let request = self.context.request;
            writer.author = Some(EventAuthor {
                by: json!({"by": "admin", "admin": self.acting.admin}),
                source: request.source,
                request_id: request.id.clone(),
            });
            unregister(writer, role)?;
            while take_role(writer, role)? > 0 {}
            let name = self.around.role_name(role);
            Ok(Ok(done(about(texts.role_was_deleted, name))))
        })
    }

    /// What applications are called.
    fn application_names(&self, client_ids: &[String]) -> Result<String> {
        let chrome = self.context.chrome();
        let mut names = Vec::new();
        for client_id in client_ids {
            let found = self
                .context
                .app
                .registry
                .client(&ClientId::new(client_id))?;
            let name = found.as_ref().map(|found| chrome.name_of(&found.client));
            names.push(name.unwrap_or(client_id).to_owned());
        }
        Ok(names.join(", "))
    }
}
