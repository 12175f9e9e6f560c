//! `/admin/invite` and `/admin/invite-several`: new people, and the links by which they choose
//! their passwords. Of several pasted lines everybody is added, or nobody.
//!
//! A form that is sent again, as its answer was lost, finds the people that it added: their
//! subjects are made of what it says of each, and of which form it is.

use std::slice;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, json};

use super::Administrator;
use super::links::LinkWay;
use super::pasted_people::{note_held, read};
use crate::endpoints::not_found;
use crate::pages::admin::invitations::{
    InviteForm, InvitedPerson, Newcomer, Pasted, PastedLine, invite_page, invite_several_page,
    invited_page,
};
use crate::pages::admin::page_of;
use crate::statements::admin_people::Person;
use crate::statements::invitations::{self, NewPerson};
use gatepost_protocol::registration::administration::roles_of;
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_server::app::App;
use gatepost_server::app::failure::{Failure, Result};
use gatepost_server::endpoints::answers::scripted_page;
use gatepost_server::endpoints::cookies::SessionHandle;
use gatepost_server::endpoints::forms::{self, Form};
use gatepost_server::http::{Request, Response};
use gatepost_server::keys::random;
use gatepost_server::pages::form_problem::FormProblem;
use gatepost_store::StoreError;

/// How many people one form can invite.
const MOST_PEOPLE: usize = 200;
/// Of their lines, in bytes.
const LONGEST_TEXT: usize = 64 * 1_024;

/// People who were invited.
struct Added {
    people: Vec<Person>,
    /// Whether the same form was sent before.
    is_again: bool,
}

enum Adding {
    Done(Added),
    /// Nobody was added.
    Refused(FormProblem),
}

/// Says which form it is, if it is sent again.
fn new_batch() -> String {
    URL_SAFE_NO_PAD.encode(random::bytes::<16>())
}

/// Whether pasted lines may be long, as a text is that a browser has encoded: from whoever was
/// shown the form for them, whose address says so.
pub fn takes_long_body(app: &App, request: &Request) -> bool {
    SessionHandle::of(&app.config, request).is_some_and(|handle| {
        let browser = Some(&handle.random);
        let query = request.query_parameters();
        query.is_ok_and(|query| forms::matches(app, Form::Admin, "invite-several", browser, query))
    })
}

impl Administrator<'_> {
    /// Shows the form for one person, or takes it.
    pub fn invite(&self) -> Result<Response> {
        let Some(form) = self.form else {
            return Ok(self.draw_invitation(&Newcomer::default(), "", self.undone));
        };
        let typed = Newcomer {
            username: form
                .single("username")?
                .unwrap_or_default()
                .trim()
                .to_owned(),
            details: self.typed_details(form)?,
        };
        let asked = form.single("tenant")?.unwrap_or_default();
        let role_gone = self.lost_role(&typed.details.roles);
        let problem = self
            .undone
            .or(role_gone.map(|_| FormProblem::RoleGone))
            .or(typed.problem(self.around.by_letter));
        if problem.is_some() {
            return Ok(self.draw_invitation(&typed, asked, problem));
        }
        let tenant = self.tenant_of(asked)?;
        let batch = form.bounded("batch", parameters::OTHER)?;
        let new = self.new_person(batch.unwrap_or(&new_batch()), asked, &typed);
        // People also sign in by address: that of somebody else is as good as taken.
        let held = invitations::held(self.acting.store, tenant.as_ref(), &typed.names(), "")?;
        let held = match held.iter().find(|(_, name)| name.is_held) {
            Some((name, _)) if *name == typed.username => Some(FormProblem::UsernameTaken),
            Some(_) => Some(FormProblem::AddressHeld),
            None => None,
        };
        let added = match self.add(tenant.as_ref(), slice::from_ref(&new), held)? {
            Adding::Done(added) => added,
            Adding::Refused(problem) => {
                return Ok(self.draw_invitation(&typed, asked, Some(problem)));
            }
        };
        let person = added.people.first().ok_or_else(not_found)?;
        let at_page = Administrator {
            page: &page_of("people", new.sub.as_str()),
            ..*self
        };
        match at_page.link_way(person) {
            Some(way) if self.gets_link(person, added.is_again)? => {
                at_page.pass_link_on(person, &way)
            }
            _ => at_page.draw_person(person, None, None),
        }
    }

    fn draw_invitation(
        &self,
        typed: &Newcomer,
        tenant: &str,
        problem: Option<FormProblem>,
    ) -> Response {
        let drawn = InviteForm {
            typed,
            tenant,
            batch: &new_batch(),
            problem,
        };
        let form = self.page_form();
        scripted_page(200, invite_page(self.around, &form, drawn))
    }

    /// The tenant that somebody is invited to; what was asked for counts where there is a choice.
    fn tenant_of(&self, asked: &str) -> Result<Option<TenantName>> {
        let tenant = match self.acting.reach {
            [only] => only,
            _ => asked,
        };
        if !self.acting.reach.contains(&tenant) {
            return Err(Failure::bad_request(Reason::UnknownTenant));
        }
        Ok((!tenant.is_empty()).then(|| TenantName::new(tenant)))
    }

    fn new_person(&self, batch: &str, asked_tenant: &str, newcomer: &Newcomer) -> NewPerson {
        let mut claims = Map::new();
        newcomer.details.write(&mut claims);
        let until = &newcomer.details.until;
        let said = json!([
            self.acting.admin,
            batch,
            asked_tenant,
            newcomer.username,
            claims,
            until
        ]);
        let said = said.to_string();
        let tokens = &self.context.app.vault.form_tokens;
        let tag = tokens.tag(&[b"invited people", said.as_bytes()]);
        NewPerson {
            sub: Subject::of_random(tag.first_chunk().copied().unwrap_or_default()),
            username: newcomer.username.clone(),
            // It was looked at before.
            valid_until: newcomer.details.valid_until().unwrap_or_default(),
            claims,
        }
    }

    /// Adds all of them, with an event for each, unless a name is `held`. Where that cannot be
    /// done, the same form did it before, or nobody is added, and it answers why.
    fn add(
        &self,
        tenant: Option<&TenantName>,
        new: &[NewPerson],
        held: Option<FormProblem>,
    ) -> Result<Adding> {
        let by_letter = self.around.by_letter;
        let events = new.iter().map(|new| {
            let roles = roles_of(&new.claims);
            let detail = json!({"link": true, "mail": by_letter, "new": {"role": roles}});
            self.event("user_added", &new.sub, detail)
        });
        let events = Vec::from_iter(events);
        let is_added = held.is_none()
            && match self.acting.invite(tenant, new, &events) {
                Ok(()) => true,
                Err(StoreError::Taken(_)) => false,
                Err(error) => return Err(error.into()),
            };
        if !is_added {
            // By the same form, maybe, of which no standby heard.
            self.acting.store.confirm()?;
        }
        let subs = Vec::from_iter(new.iter().map(|new| new.sub.clone()));
        let people = self.acting.find(&subs, None)?;
        if is_added || people.len() == new.len() {
            return Ok(Adding::Done(Added {
                people,
                is_again: !is_added,
            }));
        }
        let roles = Vec::from_iter(new.iter().flat_map(|new| roles_of(&new.claims)));
        let problem = match held {
            Some(problem) => problem,
            None if self.acting.may_give(&roles)? => FormProblem::UsernameTaken,
            None => FormProblem::RoleGone,
        };
        Ok(Adding::Refused(problem))
    }

    /// Shows the form for pasted lines, or takes it.
    pub fn invite_several(&self) -> Result<Response> {
        let texts = self.around.texts;
        let new_batch = new_batch();
        let undone = self.undone.map(|problem| problem.sentence(texts));
        let mut pasted = Pasted {
            batch: &new_batch,
            complaint: undone.as_deref(),
            ..Pasted::default()
        };
        let Some(form) = self.form else {
            return Ok(self.draw_pasted(pasted));
        };
        pasted.text = form.single("lines")?.unwrap_or_default();
        pasted.tenant = form.single("tenant")?.unwrap_or_default();
        pasted.batch = form
            .bounded("batch", parameters::OTHER)?
            .unwrap_or(&new_batch);
        let mut lines = read(pasted.text, self.around);
        let unread = match lines.len() {
            0 => Some(texts.no_lines),
            many if many > MOST_PEOPLE || pasted.text.len() > LONGEST_TEXT => {
                Some(texts.too_many_lines)
            }
            _ => None,
        };
        pasted.complaint = undone.as_deref().or(unread);
        if pasted.complaint.is_some() {
            return Ok(self.draw_pasted(pasted));
        }
        let is_good = |lines: &[PastedLine]| lines.iter().all(|line| line.mistakes.is_empty());
        let tenant = self.tenant_of(pasted.tenant)?;
        let newcomers = lines.iter().map(|line| &line.newcomer);
        let new = newcomers.map(|newcomer| self.new_person(pasted.batch, pasted.tenant, newcomer));
        let new = Vec::from_iter(new);
        let has_own_mistakes = !is_good(&lines);
        let names = lines.iter().flat_map(|line| line.newcomer.names());
        let held = invitations::held(
            self.acting.store,
            tenant.as_ref(),
            &Vec::from_iter(names),
            "",
        )?;
        note_held(&mut lines, &held, texts);
        let held = (!is_good(&lines)).then_some(FormProblem::UsernameTaken);
        let added = match held {
            Some(problem) if has_own_mistakes => Adding::Refused(problem),
            held => self.add(tenant.as_ref(), &new, held)?,
        };
        let problem = match added {
            Adding::Done(added) => return self.welcome(&added),
            Adding::Refused(problem) => problem.sentence(texts),
        };
        pasted.complaint = Some(match held {
            Some(_) => texts.nobody_invited,
            None => &problem,
        });
        pasted.lines = &lines;
        Ok(self.draw_pasted(pasted))
    }

    fn draw_pasted(&self, pasted: Pasted<'_>) -> Response {
        let form = self.page_form();
        scripted_page(200, invite_several_page(self.around, &form, pasted))
    }

    /// Says who was invited, and passes their links on.
    fn welcome(&self, added: &Added) -> Result<Response> {
        let mut invited = Vec::new();
        for person in &added.people {
            let mut one = InvitedPerson {
                person,
                link: None,
                lacks_letter: false,
            };
            match self.link_way(person) {
                Some(way) if self.gets_link(person, added.is_again)? => match way {
                    LinkWay::Letter(to) => one.lacks_letter = !self.leave_letter(person, &to)?,
                    LinkWay::Shown => one.link = Some(self.link_to_show(person)),
                },
                _ => {}
            }
            invited.push(one);
        }
        Ok(scripted_page(200, invited_page(self.around, &invited)))
    }

    /// Whether somebody who was invited is to get a link. Of who was invited before, nobody may
    /// have seen one: who has not come yet gets another.
    fn gets_link(&self, person: &Person, is_again: bool) -> Result<bool> {
        let by_letter = self.around.by_letter;
        Ok(person.is_new() && (!is_again || self.notes_link(person, by_letter)?))
    }

    /// Tells the audit log of a link that is made for a person, where the administrator may act on
    /// them.
    pub fn notes_link(&self, person: &Person, by_letter: bool) -> Result<bool> {
        let sub = &person.found.user.sub;
        let event = self.event("link_made", sub, json!({"mail": by_letter}));
        Ok(self.acting.note(person, &[], &event)?)
    }
}
