//! `/admin/invite-several`: everybody of the pasted lines is added, or nobody.
//!
//! A form that is sent again, as its answer was lost, finds the people that it added: their
//! subjects are made of what each line says and of the form.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::Administrator;
use super::links::LinkWay;
use super::pasted_people::{LineRules, PastedPeople, PastedPerson, read};
use super::people::{claims_of, tenant_of};
use crate::pages::admin::AdminSection;
use crate::pages::admin::invite_several::{
    Complaint, InvitedPerson, LineProblem, Pasted, invited_page, page,
};
use crate::pages::admin::people::Invited;
use crate::statements::admin_people::{self, Person};
use crate::statements::invitations::{self, NewPerson};
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::parameters;
use gatepost_server::app::failure::Failure;
use gatepost_server::endpoints::forms;
use gatepost_server::endpoints::transaction::InSession;
use gatepost_server::http::{Method, Response};
use gatepost_server::keys::random;
use gatepost_store::StoreError;

/// How many people one form can invite.
const MOST_PEOPLE: usize = 200;
/// The words of a header, beside those of the page's language.
const HEADER_WORDS: [&str; 5] = ["name", "address", "e-mail", "user name", "roles"];

impl Administrator<'_> {
    /// Shows the form for pasted lines, or takes it.
    pub(super) fn invite_several(&self) -> Result<Response, Failure> {
        let InSession { app, request, .. } = self.context;
        let texts = self.context.chrome().texts;
        let batch = URL_SAFE_NO_PAD.encode(random::bytes::<16>());
        if request.method != Method::Post {
            let undone = self.left_undone()?.then_some(texts.session_changed);
            let pasted = Pasted {
                batch: &batch,
                ..Pasted::default()
            };
            return Ok(self.draw_pasted(pasted, undone, &[]));
        }
        let form = forms::read_post(app, request)?;
        if !self.may_act() {
            return self.sign_in_anew();
        }
        let pasted = Pasted {
            lines: form.single("lines")?.unwrap_or_default(),
            tenant: form.single("tenant")?.unwrap_or_default(),
            batch: form.bounded("batch", parameters::OTHER)?.unwrap_or(&batch),
        };
        if self.matches(&form) {
            self.take_pasted(pasted)
        } else {
            Ok(self.draw_pasted(pasted, Some(texts.session_changed), &[]))
        }
    }

    fn draw_pasted(
        &self,
        pasted: Pasted<'_>,
        complaint: Option<&str>,
        lines: &[LineProblem],
    ) -> Response {
        let invitation = self.invitation();
        let complaint = complaint.map(|sentence| Complaint { sentence, lines });
        self.shown_with_form(AdminSection::People, |around, form| {
            page(around, form, invitation, pasted, complaint)
        })
    }

    fn take_pasted(&self, pasted: Pasted<'_>) -> Result<Response, Failure> {
        let texts = self.context.chrome().texts;
        let tenant = tenant_of(self.reach, pasted.tenant)?;
        let PastedPeople {
            people,
            mut problems,
        } = self.read_pasted(pasted.lines);
        let lines = pasted.lines.lines().filter(|line| !line.trim().is_empty());
        // One more may be a header.
        if people.len() > MOST_PEOPLE || lines.count() > MOST_PEOPLE + 1 {
            return Ok(self.draw_pasted(pasted, Some(texts.too_many_lines), &[]));
        }
        if people.is_empty() && problems.is_empty() {
            return Ok(self.draw_pasted(pasted, Some(texts.no_lines), &[]));
        }
        let new = Vec::from_iter(people.iter().map(|one| self.new_person(pasted, one)));
        let subs = Vec::from_iter(new.iter().map(|one| one.sub.clone()));
        if problems.is_empty() {
            let known = admin_people::find_all(self.store(), self.reach, &subs)?;
            if known.len() == subs.len() {
                self.store().confirm()?;
                return self.welcome_all(&known, true);
            }
            problems = self.held_of(tenant.as_ref(), &people)?;
        }
        if !problems.is_empty() {
            return Ok(self.draw_pasted(pasted, Some(texts.nobody_invited), &problems));
        }
        match self.add_pasted(tenant.as_ref(), &people, &new) {
            Ok(()) => {
                let people = admin_people::find_all(self.store(), self.reach, &subs)?;
                self.welcome_all(&people, false)
            }
            // By the same form, maybe, of which no standby heard.
            Err(StoreError::Taken(_)) => {
                self.store().confirm()?;
                Ok(self.draw_pasted(pasted, Some(texts.username_taken), &[]))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read_pasted(&self, lines: &str) -> PastedPeople {
        let texts = self.context.chrome().texts;
        let roles = self.roles();
        // A role is named as it is registered, or as pages call it.
        let role_of = |text: &str| {
            let is_called = |role: &&String| {
                let registered = roles.get(role.as_str());
                let shown = registered.map(|role| texts.language.of(&role.display_name));
                role.as_str() == text || shown == Some(text)
            };
            self.given_roles.iter().find(is_called).cloned()
        };
        let name = texts.standard_claim("name").unwrap_or(texts.your_name);
        let own_words = [name, texts.email_address, texts.username, texts.roles];
        let header_words = HEADER_WORDS.into_iter().chain(own_words);
        let rules = LineRules {
            texts,
            header_words: &Vec::from_iter(header_words.map(str::to_lowercase)),
            needs_address: self.context.app.letters.from().is_some(),
            role_of: &role_of,
        };
        read(lines, &rules)
    }

    fn new_person(&self, pasted: Pasted<'_>, person: &PastedPerson) -> NewPerson {
        let claims = claims_of(Invited {
            username: &person.username,
            name: &person.name,
            address: &person.address,
            tenant: pasted.tenant,
            roles: &Vec::from_iter(person.roles.iter().map(String::as_str)),
        });
        let said = Value::Object(claims.clone()).to_string();
        let admin = self.sub().as_str();
        let parts = [admin, pasted.batch, pasted.tenant, &person.username, &said];
        let parts = [
            &[b"invited people".as_slice()],
            &parts.map(str::as_bytes)[..],
        ]
        .concat();
        let tag = self.context.app.vault.form_tokens.tag(&parts);
        NewPerson {
            sub: Subject::of_random(tag.first_chunk().copied().unwrap_or_default()),
            username: person.username.clone(),
            claims,
        }
    }

    /// The lines whose user name or address somebody has.
    fn held_of(
        &self,
        tenant: Option<&TenantName>,
        people: &[PastedPerson],
    ) -> Result<Vec<LineProblem>, Failure> {
        let names = people
            .iter()
            .flat_map(|one| [&*one.username, &*one.address]);
        let held = invitations::held(self.store(), tenant, &Vec::from_iter(names))?;
        let is_held =
            |one: &&PastedPerson| held.contains(&one.username) || held.contains(&one.address);
        let problems = people.iter().filter(is_held).map(|one| LineProblem {
            line: one.line,
            sentence: self.context.chrome().texts.line_held.to_owned(),
        });
        Ok(problems.collect())
    }

    fn add_pasted(
        &self,
        tenant: Option<&TenantName>,
        people: &[PastedPerson],
        new: &[NewPerson],
    ) -> Result<(), StoreError> {
        let by_letter = self.context.app.letters.from().is_some();
        let events = people.iter().zip(new).map(|(person, new)| {
            let roles = &person.roles;
            let detail = json!({"link": true, "mail": by_letter, "new": {"role": roles}});
            self.event("user_added", &new.sub, detail)
        });
        invitations::invite(self.store(), tenant, new, &Vec::from_iter(events))
    }

    /// Says who was invited, and passes their links on. Of people who are confirmed letters went;
    /// links that nobody may have seen are made anew.
    fn welcome_all(&self, people: &[Person], is_again: bool) -> Result<Response, Failure> {
        let mut invited = Vec::new();
        for person in people {
            let mut one = InvitedPerson {
                person,
                link: None,
                lacks_letter: false,
            };
            match self.link_way(person) {
                LinkWay::Letter(to) if !is_again => {
                    one.lacks_letter = !self.leave_letter(person, &to)?;
                }
                LinkWay::Shown if person.is_new() && (!is_again || self.notes_link(person)?) => {
                    one.link = Some(self.link_to_show(person));
                }
                _ => {}
            }
            invited.push(one);
        }
        let by_letter = self.context.app.letters.from().is_some();
        Ok(self.shown(AdminSection::People, |around| {
            invited_page(around, by_letter, &invited)
        }))
    }

    fn notes_link(&self, person: &Person) -> Result<bool, Failure> {
        let sub = &person.found.user.sub;
        let event = self.event("link_made", sub, json!({"mail": false}));
        let acting = self.acting(&person.version);
        Ok(admin_people::note_link(self.store(), acting, sub, &event)?)
    }
}
