//! One person: `/admin/people/{sub}`. What is done is judged with what is stored, and once more by
//! the statement that writes it.

use std::ops::Deref;
use std::slice;

use serde_json::{Value, json};

use super::Administrator;
use super::links::LinkWay;
use super::wrong_passwords;
use crate::endpoints::{decoded, not_found};
use crate::pages::admin::person::{
    PersonDetails, PersonView, WrongPasswords, asking_page, dangerous_deeds, gone_page,
    person_page, was_done,
};
use crate::pages::admin::{Told, not_done};
use crate::statements::admin_people::{Person, PersonChange};
use crate::statements::{invitations, roles};
use gatepost_protocol::login::sign_up::may_be_called;
use gatepost_protocol::registration::administration::roles_of;
use gatepost_protocol::words::identifiers::{Sid, Subject};
use gatepost_protocol::words::json::SetMember;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_server::app::failure::{Failure, Result};
use gatepost_server::app::letters::AccountChange;
use gatepost_server::endpoints::answers::{self, scripted_page};
use gatepost_server::endpoints::letters;
use gatepost_server::endpoints::notices;
use gatepost_server::endpoints::transaction::InSession;
use gatepost_server::http::Response;
use gatepost_server::pages::sign_ins::SignIns;
use gatepost_server::pages::texts::Texts;
use gatepost_store::StoreError;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::users::UserRow;
use gatepost_store::{authenticators, sessions, tenant_text};

/// How many sign-ins are shown: the latest ones.
const MOST_SESSIONS: i64 = 100;

/// Something that an administrator does to a person, by a form of their page.
struct Deed<'a> {
    administrator: &'a Administrator<'a>,
    texts: &'a Texts,
    person: &'a Person,
    /// Of the person.
    user: &'a UserRow,
    form: &'a Parameters,
    decision: &'a str,
    /// Name, address and roles, as the form has them.
    typed: PersonDetails,
}

impl Administrator<'_> {
    /// Shows the page of a person, or takes one of its forms. `id` is the subject, as it was sent.
    pub fn handle_person(&self, id: &str) -> Result<Response> {
        let subject = Subject::new(decoded(id)?);
        let form = self.form.filter(|_| self.undone.is_none());
        let found = self.person_of(&subject)?;
        let Some(person) = &found else {
            // It is told more to whoever posts a form that was drawn when somebody was there.
            form.ok_or_else(not_found)?;
            return Ok(scripted_page(200, gone_page(self.around)));
        };
        if let Some(form) = form {
            let deed = Deed {
                administrator: self,
                texts: self.around.texts,
                person,
                user: &person.found.user,
                form,
                decision: form.single("decision")?.unwrap_or_default(),
                typed: self.typed_details(form)?,
            };
            return deed.take();
        }
        let asked = self.query()?.bounded("ask", parameters::OTHER)?;
        let mut deeds = dangerous_deeds(self.around.texts).into_iter();
        let deed = deeds.find(|deed| asked == Some(deed.decision) && person.may_be_changed);
        if let Some(deed) = deed {
            let form = self.page_form();
            return Ok(scripted_page(
                200,
                asking_page(self.around, &form, person, &deed),
            ));
        }
        let undone = self
            .undone
            .map(|problem| problem.sentence(self.around.texts));
        let undone = undone.as_deref().map(not_done);
        self.draw_person(person, undone.as_ref(), None)
    }

    /// Whoever is out of reach is not there.
    fn person_of(&self, subject: &Subject) -> Result<Option<Person>> {
        Ok(self.acting.find(slice::from_ref(subject), None)?.pop())
    }

    fn wrong_passwords(&self, person: &Person) -> Result<WrongPasswords> {
        let InSession { app, request, .. } = self.context;
        let told = wrong_passwords::look_up(app, &[&person.found], request.source)?;
        Ok(told.first().copied().unwrap_or_default())
    }

    /// The page of a person, with what was done or was not; `typed` was not saved.
    pub fn draw_person(
        &self,
        person: &Person,
        told: Option<&Told>,
        typed: Option<&PersonDetails>,
    ) -> Result<Response> {
        let InSession {
            app,
            current_session,
            ..
        } = self.context;
        let user = &person.found.user;
        let factors = authenticators::list(&app.store, &user.sub, true)?;
        let sessions = sessions::list_of_user(&app.store, &user.sub, MOST_SESSIONS)?;
        let tenants = [tenant_text(user.tenant.as_ref())];
        let roles = roles_of(&user.claims);
        let language = self.around.texts.language.tag();
        let opened = roles::opened(&app.store, Some(&user.sub), &tenants, &roles, language)?;
        let view = PersonView {
            form: &self.page_form(),
            person,
            opened: &opened,
            factors: &factors,
            sign_ins: &SignIns {
                catalogue: self.around.catalogue,
                has_password: user.password_hash.is_some(),
                current_session: &current_session.row,
                sessions: &sessions,
                bound_sessions: app.config.bound_sessions,
            },
            wrong_passwords: self.wrong_passwords(person)?,
            told,
            typed,
        };
        Ok(scripted_page(200, person_page(self.around, view)))
    }
}

impl<'a> Deref for Deed<'a> {
    type Target = Administrator<'a>;

    fn deref(&self) -> &Administrator<'a> {
        self.administrator
    }
}

impl Deed<'_> {
    fn take(&self) -> Result<Response> {
        if !self.person.may_be_changed {
            return self.refuse(self.texts.changed_meanwhile, Reason::PersonOfOthers);
        }
        // What is written is made from the row that was just read: it must be the one that was
        // seen.
        let seen = self.form.bounded("version", parameters::OTHER)?;
        if seen != Some(self.person.version.as_str()) {
            return self.after(false);
        }
        match self.decision {
            "save" => self.save(),
            "reset" => self.reset(),
            "let_try" => self.let_try(),
            "enable" => self.set_enabled(true),
            "disable" => self.set_enabled(false),
            "end_all" => self.change(true, false, self.user, "user_revoked", json!({})),
            "end_session" => self.end_session(),
            "remove_factors" => self.remove_factors(),
            _ => Err(Failure::bad_request(Reason::UnknownPageAction)),
        }
    }

    /// Says what was not done. What was typed to be saved stays in the form.
    fn not_done(&self, person: &Person, sentence: &str) -> Result<Response> {
        let told = not_done(sentence);
        let typed = Some(&self.typed).filter(|_| self.decision == "save");
        self.draw_person(person, Some(&told), typed)
    }

    /// The same, and why to the log.
    fn refuse(&self, sentence: &str, reason: Reason) -> Result<Response> {
        Ok(answers::noted(
            self.not_done(self.person, sentence)?,
            reason,
        ))
    }

    /// The page, as everything is stored now. What was done before is confirmed. That, or that
    /// somebody else was faster, is told only where it holds for good.
    fn after(&self, done: bool) -> Result<Response> {
        if !done {
            self.acting.store.confirm()?;
        }
        let person = self.person_of(&self.user.sub)?.ok_or_else(not_found)?;
        if done || self.was_done(&person)? {
            let told = Ok(was_done(self.texts, &person, self.decision));
            return self.draw_person(&person, Some(&told), None);
        }
        let sentence = if self.acting.may_give(&self.typed.roles)? {
            self.texts.changed_meanwhile
        } else {
            self.texts.role_gone
        };
        let page = self.not_done(&person, sentence)?;
        Ok(answers::noted(page, Reason::PersonChanged))
    }

    /// Whether somebody did before what the form asks for.
    fn was_done(&self, person: &Person) -> Result<bool> {
        let user = &person.found.user;
        Ok(match self.decision {
            "enable" => user.enabled,
            "disable" => !user.enabled,
            "save" => self.typed == PersonDetails::stored(user),
            "let_try" => self.wrong_passwords(person)?.locked_until.is_none(),
            "end_session" => {
                let store = self.acting.store;
                let found = sessions::find_of_user(store, &self.sid()?, &user.sub)?;
                found.is_some_and(|session| session.ended_at.is_some())
            }
            _ => false,
        })
    }

    /// The session that the form names.
    fn sid(&self) -> Result<Sid> {
        let sent = self.form.bounded("session", parameters::OTHER)?;
        Ok(Sid::new(sent.unwrap_or_default()))
    }

    fn change(
        &self,
        ends_all: bool,
        drops_factors: bool,
        user: &UserRow,
        event: &str,
        detail: Value,
    ) -> Result<Response> {
        let event = self.event(event, &user.sub, detail);
        let change = PersonChange {
            version: &self.person.version,
            user,
            ends_all,
            drops_factors,
        };
        let done = self.acting.change(change, &event)?;
        self.after(done)
    }

    fn set_enabled(&self, enabled: bool) -> Result<Response> {
        if self.user.enabled == enabled {
            return self.after(false);
        }
        let detail = json!({"old": {"enabled": !enabled}, "new": {"enabled": enabled}});
        let user = UserRow {
            enabled,
            ..self.user.clone()
        };
        self.change(!enabled, false, &user, "user_changed", detail)
    }

    fn remove_factors(&self) -> Result<Response> {
        let detail = json!({"factor": "all"});
        let response = self.change(true, true, self.user, "factor_removed", detail)?;
        if response.note.reason.is_none() {
            self.notify(AccountChange::FactorRemoved);
        }
        Ok(response)
    }

    /// Tells the person at the address that they had.
    fn notify(&self, change: AccountChange) {
        let context = self.context;
        let by = context.current_session.user.called();
        let presentation = context.presentation();
        notices::send_by_administrator(context.app, &presentation, self.user, change, by);
    }

    fn end_session(&self) -> Result<Response> {
        let sid = self.sid()?;
        let event = AuditEvent {
            sid: Some(&sid),
            ..self.event("session_ended", &self.user.sub, json!({}))
        };
        let done = self.acting.end_session(self.person, &sid, &event)?;
        self.after(done)
    }

    /// A link for a new password. The second factors stay.
    fn reset(&self) -> Result<Response> {
        let Some(way) = self.link_way(self.person) else {
            return self.refuse(self.texts.no_confirmed_address, Reason::NoConfirmedAddress);
        };
        let by_letter = matches!(way, LinkWay::Letter(_));
        if self.notes_link(self.person, by_letter)? {
            self.pass_link_on(self.person, &way)
        } else {
            self.after(false)
        }
    }

    /// Name, address, end and roles.
    fn save(&self) -> Result<Response> {
        let typed = &self.typed;
        if self.lost_role(&typed.roles).is_some() {
            return self.not_done(self.person, self.texts.role_gone);
        }
        let before = self.user;
        let had = PersonDetails::stored(before);
        let has_new_address = typed.address != had.address;
        let mut user = before.clone();
        if has_new_address && let Some(problem) = self.set_address(&mut user, &had.address)? {
            return self.not_done(self.person, problem);
        }
        let has_new_end = self.form.was_sent("until") && typed.until != had.until;
        if has_new_end {
            let Ok(end) = typed.valid_until() else {
                return self.not_done(self.person, self.texts.until_unfit);
            };
            user.valid_until = end;
        }
        typed.write(&mut user.claims);
        let compared = [
            ("name", typed.name != had.name),
            ("email", has_new_address),
            ("role", typed.roles != had.roles),
            ("valid_until", has_new_end),
            ("username", user.username != before.username),
        ];
        let changed = compared.into_iter().filter(|(_, is_another)| *is_another);
        let changed = Vec::from_iter(changed.map(|(name, _)| name));
        if changed.is_empty() {
            return self.after(true);
        }
        let detail = if had.roles == typed.roles {
            json!({"changed": changed})
        } else {
            json!({"changed": changed, "old": {"role": had.roles}, "new": {"role": typed.roles}})
        };
        let response = match self.change(false, false, &user, "user_changed", detail) {
            Err(Failure::Unavailable(StoreError::Taken(_))) => {
                return self.not_done(self.person, self.texts.username_taken);
            }
            other => other?,
        };
        if has_new_address && response.note.reason.is_none() {
            self.notify(AccountChange::Address);
        }
        Ok(response)
    }

    /// Makes the user ready for the address that was typed. It becomes their user name, too, where
    /// that was the address before. Answers what is wrong with it.
    fn set_address(&self, user: &mut UserRow, before: &str) -> Result<Option<&'static str>> {
        let texts = self.texts;
        let address = self.typed.address.as_str();
        if !address.is_empty() && MailAddress::parse(address).is_err() {
            return Ok(Some(texts.address_unfit));
        }
        let renames = self.form.was_sent("also_username")
            && user.username.as_deref() == Some(before)
            && !address.is_empty();
        let store = self.acting.store;
        let sub = self.user.sub.as_str();
        let held = invitations::held(store, user.tenant.as_ref(), &[address], sub)?;
        if held.values().any(|address| address.is_held) {
            return Ok(Some(if renames {
                texts.username_taken
            } else {
                texts.line_held
            }));
        }
        if renames {
            user.username = Some(address.to_owned());
        }
        if !may_be_called(user.username.as_deref().unwrap_or_default(), address) {
            return Ok(Some(texts.username_of_others));
        }
        // Whoever writes an address does not show that it is theirs.
        user.claims.remove("email_verified");
        if !address.is_empty() {
            user.claims.set("email_verified", false);
        }
        Ok(None)
    }

    /// Has their wrong passwords until now count no more.
    fn let_try(&self) -> Result<Response> {
        let InSession { app, request, .. } = self.context;
        let found = &self.person.found;
        let sub = &found.user.sub;
        if self.was_done(self.person)? {
            return self.after(false);
        }
        if !wrong_passwords::count_pardon(app, sub)? {
            let page = self.not_done(self.person, self.texts.too_many_pardons)?;
            let reason = Reason::TooManySignInFailures;
            return Ok(answers::turned_away(page, reason, letters::HOUR));
        }
        let event = self.event("lock_out_ended", sub, json!({}));
        let pardons = wrong_passwords::pardons(app, found, request.source);
        let done = self.acting.note(self.person, &pardons, &event)?;
        self.after(done)
    }
}
