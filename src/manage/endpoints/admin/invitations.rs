//! `/admin/invite` and `/admin/invite-several`: new people, and the links by which they choose
//! their passwords. Of several pasted lines everybody is added, or nobody.
//!
//! A form for several that is sent again, as its answer was lost, finds the people that it added:
//! their subjects are made of what each line says and of the form.

use std::slice;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, json};

use super::Administrator;
use super::links::LinkWay;
use super::pasted_people::read;
use crate::pages::admin::invitations::{
    Invitation, InviteProblem, InvitedPerson, Newcomer, Pasted, PastedLine, invite_page,
    invite_several_page, invited_page,
};
use crate::pages::admin::page_of;
use crate::statements::admin_people::{self, Person};
use crate::statements::invitations::{self, NewPerson};
use gatepost_protocol::registration::administration::roles_of;
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_server::app::failure::Failure;
use gatepost_server::http::Response;
use gatepost_server::keys::random;
use gatepost_server::pages::account::AccountProblem;
use gatepost_server::pages::join::JoinProblem;
use gatepost_store::StoreError;

/// How many people one form can invite.
const MOST_PEOPLE: usize = 200;

const SESSION_CHANGED: InviteProblem =
    InviteProblem::Account(JoinProblem::Other(AccountProblem::SessionChanged));
const TAKEN: InviteProblem = InviteProblem::Account(JoinProblem::UsernameTaken);

/// Says which form it is, if it is sent again.
fn new_batch() -> String {
    URL_SAFE_NO_PAD.encode(random::bytes::<16>())
}

impl Administrator<'_> {
    /// Shows the form for one person, or takes it.
    pub(super) fn invite(&self) -> Result<Response, Failure> {
        let session_changed = self.undone.map(|_| SESSION_CHANGED);
        let Some(form) = self.form else {
            return Ok(self.draw_invitation(&Newcomer::default(), "", session_changed));
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
        let problem = session_changed
            .or(role_gone.map(|_| InviteProblem::RoleGone))
            .or(InviteProblem::of(&typed, self.invitation().by_letter));
        if problem.is_some() {
            return Ok(self.draw_invitation(&typed, asked, problem));
        }
        let tenant = self.tenant_of(asked)?;
        // People also sign in by address: that of somebody else is as good as taken.
        let names = [typed.username.as_str()];
        let is_held = !invitations::held(self.store(), tenant.as_ref(), &names)?.is_empty();
        let new = self.new_person(&new_batch(), asked, &typed);
        if is_held || !self.add(tenant.as_ref(), slice::from_ref(&new))? {
            // By the same invitation, maybe, of which no standby heard.
            self.store().confirm()?;
            return Ok(self.draw_invitation(&typed, asked, Some(TAKEN)));
        }
        let person = self.found_person(&new.sub)?;
        let at_page = Administrator {
            page: &page_of("people", new.sub.as_str()),
            ..*self
        };
        match at_page.link_way(&person) {
            Some(way) => at_page.pass_link_on(&person, &way),
            None => at_page.draw_person(&person, None, None),
        }
    }

    /// What people can be invited with.
    fn invitation(&self) -> Invitation<'_> {
        Invitation {
            catalogue: &self.context.transaction.snapshot.catalogue,
            tenants: self.reach,
            given_roles: self.given_roles,
            by_letter: self.context.app.letters.from().is_some(),
        }
    }

    fn draw_invitation(
        &self,
        typed: &Newcomer,
        asked: &str,
        problem: Option<InviteProblem>,
    ) -> Response {
        let invitation = self.invitation();
        self.shown_with_form(|around, form| {
            invite_page(around, form, invitation, typed, asked, problem)
        })
    }

    /// The tenant that somebody is invited to; what was asked for counts where there is a choice.
    fn tenant_of(&self, asked: &str) -> Result<Option<TenantName>, Failure> {
        let tenant = match self.reach {
            [only] => only,
            _ => asked,
        };
        if !self.reach.contains(&tenant) {
            return Err(Failure::bad_request(Reason::UnknownTenant));
        }
        Ok((!tenant.is_empty()).then(|| TenantName::new(tenant)))
    }

    fn new_person(&self, batch: &str, asked_tenant: &str, newcomer: &Newcomer) -> NewPerson {
        let mut claims = Map::new();
        newcomer.details.write(&mut claims);
        let said = json!([self.sub(), batch, asked_tenant, newcomer.username, claims]).to_string();
        let tokens = &self.context.app.vault.form_tokens;
        let tag = tokens.tag(&[b"invited people", said.as_bytes()]);
        NewPerson {
            sub: Subject::of_random(tag.first_chunk().copied().unwrap_or_default()),
            username: newcomer.username.clone(),
            claims,
        }
    }

    /// Adds all of them, with an event for each. `false` where a name was taken meanwhile: then
    /// nobody is added.
    fn add(&self, tenant: Option<&TenantName>, people: &[NewPerson]) -> Result<bool, Failure> {
        let by_letter = self.invitation().by_letter;
        let events = people.iter().map(|new| {
            let roles = roles_of(&new.claims);
            let detail = json!({"link": true, "mail": by_letter, "new": {"role": roles}});
            self.event("user_added", &new.sub, detail)
        });
        let events = Vec::from_iter(events);
        match invitations::invite(self.store(), tenant, people, &events) {
            Ok(()) => Ok(true),
            Err(StoreError::Taken(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Shows the form for pasted lines, or takes it.
    pub(super) fn invite_several(&self) -> Result<Response, Failure> {
        let texts = self.texts();
        let new_batch = new_batch();
        let mut pasted = Pasted {
            batch: &new_batch,
            complaint: self.undone,
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
        let mut lines = read(pasted.text, texts, self.invitation());
        let unread = match lines.len() {
            0 => Some(texts.no_lines),
            1..=MOST_PEOPLE => None,
            _ => Some(texts.too_many_lines),
        };
        pasted.complaint = self.undone.or(unread);
        if pasted.complaint.is_some() {
            return Ok(self.draw_pasted(pasted));
        }
        let is_good = |lines: &[PastedLine]| lines.iter().all(|line| line.mistakes.is_empty());
        let tenant = self.tenant_of(pasted.tenant)?;
        let newcomers = lines.iter().map(|line| &line.newcomer);
        let new = newcomers.map(|newcomer| self.new_person(pasted.batch, pasted.tenant, newcomer));
        let new = Vec::from_iter(new);
        let subs = Vec::from_iter(new.iter().map(|new| new.sub.clone()));
        if is_good(&lines) {
            let known = self.people(&subs, None)?;
            if known.len() == subs.len() {
                self.store().confirm()?;
                return self.welcome(&known, true);
            }
            self.note_held(tenant.as_ref(), &mut lines)?;
        }
        if !is_good(&lines) {
            pasted.complaint = Some(texts.nobody_invited);
            pasted.lines = &lines;
            return Ok(self.draw_pasted(pasted));
        }
        if !self.add(tenant.as_ref(), &new)? {
            // By the same form, maybe, of which no standby heard.
            self.store().confirm()?;
            pasted.complaint = Some(texts.username_taken);
            return Ok(self.draw_pasted(pasted));
        }
        self.welcome(&self.people(&subs, None)?, false)
    }

    fn draw_pasted(&self, pasted: Pasted<'_>) -> Response {
        let invitation = self.invitation();
        self.shown_with_form(|around, form| invite_several_page(around, form, invitation, pasted))
    }

    /// Tells of each line whose user name or address somebody has.
    fn note_held(
        &self,
        tenant: Option<&TenantName>,
        lines: &mut [PastedLine],
    ) -> Result<(), Failure> {
        let names = lines.iter().flat_map(|line| line.newcomer.names());
        let held = invitations::held(self.store(), tenant, &Vec::from_iter(names))?;
        for line in lines {
            if line
                .newcomer
                .names()
                .iter()
                .any(|name| held.contains(*name))
            {
                line.mistakes.push(self.texts().line_held.to_owned());
            }
        }
        Ok(())
    }

    /// Says who was invited, and passes their links on. Of people who are confirmed letters went;
    /// links that nobody may have seen are made anew.
    fn welcome(&self, people: &[Person], is_again: bool) -> Result<Response, Failure> {
        let mut invited = Vec::new();
        for person in people {
            let mut one = InvitedPerson {
                person,
                link: None,
                lacks_letter: false,
            };
            match self.link_way(person) {
                Some(LinkWay::Letter(to)) if !is_again => {
                    one.lacks_letter = !self.leave_letter(person, &to)?;
                }
                Some(LinkWay::Shown)
                    if person.is_new() && (!is_again || self.notes_link(person, false)?) =>
                {
                    one.link = Some(self.link_to_show(person));
                }
                _ => {}
            }
            invited.push(one);
        }
        let invitation = self.invitation();
        Ok(self.shown(|around| invited_page(around, invitation, &invited)))
    }

    /// Tells the audit log of a link that is made for a person, where the administrator may act on
    /// them.
    pub(super) fn notes_link(&self, person: &Person, by_letter: bool) -> Result<bool, Failure> {
        let sub = &person.found.user.sub;
        let event = self.event("link_made", sub, json!({"mail": by_letter}));
        let acting = self.acting(&person.version);
        Ok(admin_people::note(self.store(), acting, sub, &[], &event)?)
    }
}
