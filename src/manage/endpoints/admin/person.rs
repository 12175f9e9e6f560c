//! One person: `/admin/people/{sub}`. What is done is judged with what is stored, and once more by
//! the statement that writes it.

use serde_json::{Map, Value, json};

use super::links::LinkWay;
use super::wrong_passwords::{self, WrongPasswords};
use super::{Administrator, decoded, not_found, tidy};
use crate::pages;
use crate::pages::admin::AdminSection;
use crate::pages::admin::person::{
    DangerousDeed, PersonDetails, PersonOutcome, PersonProblem, PersonView,
};
use crate::statements::admin_people::{self, ActingAdmin, Person, PersonChange};
use crate::statements::roles;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::login::sign_up::may_be_called;
use gatepost_protocol::registration::administration::{roles_of, set_roles};
use gatepost_protocol::words::identifiers::{Sid, Subject};
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_server::app::failure::Failure;
use gatepost_server::app::letters::AccountChange;
use gatepost_server::endpoints::answers;
use gatepost_server::endpoints::forms;
use gatepost_server::endpoints::letters;
use gatepost_server::endpoints::notices;
use gatepost_server::endpoints::transaction::InSession;
use gatepost_server::http::{Method, Response};
use gatepost_store::StoreError;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::users::UserRow;
use gatepost_store::{authenticators, sessions, sign_up_links, tenant_text};

/// How many sign-ins are shown: the latest ones.
const MOST_SESSIONS: i64 = 100;

/// Something that an administrator does to a person, by a form of their page.
struct Deed<'a> {
    administrator: &'a Administrator<'a>,
    person: &'a Person,
    form: &'a Parameters,
}

impl Administrator<'_> {
    /// Shows the page of a person, or takes one of its forms. `id` is the subject, as it was sent.
    pub(super) fn handle_person(&self, id: &str) -> Result<Response, Failure> {
        let subject = Subject::new(decoded(id)?);
        let InSession { app, request, .. } = self.context;
        let found = admin_people::find(self.store(), self.reach, &subject)?;
        let Some(person) = &found else {
            return self.answer_gone();
        };
        if request.method != Method::Post {
            let asked = self.query()?.bounded("ask", parameters::OTHER)?;
            let deed = DangerousDeed::ALL
                .into_iter()
                .find(|deed| asked == Some(deed.decision()));
            if let Some(deed) = deed.filter(|_| self.may_change(person)) {
                return Ok(self.shown_with_form(AdminSection::People, |around, form| {
                    pages::admin::person::asking_page(around, form, person, deed)
                }));
            }
            let undone = PersonOutcome::Problem(PersonProblem::SessionChanged);
            let outcome = self.left_undone()?.then_some(undone);
            return self.draw_person(person, outcome);
        }
        let form = &forms::read_post(app, request)?;
        if !self.may_act() {
            return self.sign_in_anew();
        }
        let deed = Deed {
            administrator: self,
            person,
            form,
        };
        deed.take()
    }

    /// Nobody is there. It is told more to whoever posts a form that was drawn when somebody was.
    fn answer_gone(&self) -> Result<Response, Failure> {
        let InSession { app, request, .. } = self.context;
        if request.method == Method::Post && self.matches(&forms::read_post(app, request)?) {
            return Ok(self.shown(AdminSection::People, pages::admin::person::gone_page));
        }
        Err(not_found())
    }

    /// Whoever is out of reach is not there.
    pub(super) fn found_person(&self, subject: &Subject) -> Result<Person, Failure> {
        let person = admin_people::find(self.store(), self.reach, subject)?;
        person.ok_or_else(not_found)
    }

    fn wrong_passwords(&self, person: &Person) -> Result<WrongPasswords, Failure> {
        let InSession { app, request, .. } = self.context;
        let told = wrong_passwords::look_up(app, &[&person.found], request.source)?;
        Ok(told.first().copied().unwrap_or_default())
    }

    fn may_change(&self, person: &Person) -> bool {
        let user = &person.found.user;
        &user.sub != self.sub() && self.administration.may_change(&user.claims, self.roles())
    }

    pub(super) fn draw_person(
        &self,
        person: &Person,
        outcome: Option<PersonOutcome<'_>>,
    ) -> Result<Response, Failure> {
        let InSession {
            app,
            transaction,
            current_session,
            ..
        } = self.context;
        let sub = &person.found.user.sub;
        let factors = authenticators::list(&app.store, sub, true)?;
        let sessions = sessions::list_of_user(&app.store, sub, MOST_SESSIONS)?;
        let wrong = self.wrong_passwords(person)?;
        let user = &person.found.user;
        let tenants = [tenant_text(user.tenant.as_ref())];
        let roles = roles_of(&user.claims);
        let language = self.texts().language.tag();
        let opened = roles::opened(&app.store, Some(sub), &tenants, &roles, language)?;
        let view = PersonView {
            person,
            opened: &opened,
            catalogue: &transaction.snapshot.catalogue,
            factors: &factors,
            sessions: &sessions,
            current_session: &current_session.row,
            wrong_tries: wrong.count,
            locked_until: wrong.locked_until,
            may_change: self.may_change(person),
            takes_link: !matches!(self.link_way(person), LinkWay::None),
            by_letter: app.letters.from().is_some(),
            given_roles: self.given_roles,
            tells_old_address: app.letters.from().is_some() && person.address_counts,
        };
        Ok(self.shown_with_form(AdminSection::People, |around, form| {
            pages::admin::person::page(around, form, view, outcome)
        }))
    }
}

impl Deed<'_> {
    fn take(&self) -> Result<Response, Failure> {
        let administrator = self.administrator;
        if !administrator.matches(self.form) {
            return self.answer(PersonOutcome::Problem(PersonProblem::SessionChanged));
        }
        if !administrator.may_change(self.person) {
            return self.refuse(PersonProblem::NotYours, Reason::PersonOfOthers);
        }
        // What is written is made from the row that was just read: it must be the one that was
        // seen.
        let seen = self.form.bounded("version", parameters::OTHER)?;
        if seen != Some(self.person.version.as_str()) {
            return self.after(false);
        }
        let user = &self.person.found.user;
        match self.form.single("decision")? {
            Some("save") => self.save(),
            Some("reset") => self.reset(),
            Some("let_try") => self.let_try(),
            Some("enable") => self.set_enabled(true),
            Some("disable") => self.set_enabled(false),
            Some("end_all") => {
                let event = administrator.event("user_revoked", &user.sub, json!({}));
                self.change(true, false, user, &event)
            }
            Some("end_session") => self.end_session(),
            Some("remove_factors") => self.remove_factors(),
            _ => Err(Failure::bad_request(Reason::UnknownPageAction)),
        }
    }

    fn answer(&self, outcome: PersonOutcome<'_>) -> Result<Response, Failure> {
        self.administrator.draw_person(self.person, Some(outcome))
    }

    /// Says what was not done, and why to the log.
    fn refuse(&self, problem: PersonProblem, reason: Reason) -> Result<Response, Failure> {
        let page = self.answer(PersonOutcome::Problem(problem))?;
        Ok(answers::noted(page, reason))
    }

    /// The page, as everything is stored now. What was done before is confirmed. That, or that
    /// somebody else was faster, is told only where it holds for good.
    fn after(&self, done: bool) -> Result<Response, Failure> {
        let administrator = self.administrator;
        let sub = &self.person.found.user.sub;
        if !done {
            administrator.store().confirm()?;
        }
        let person = administrator.found_person(sub)?;
        if done || self.was_done(&person)? {
            return administrator.draw_person(&person, Some(self.changed()?));
        }
        let problem = PersonProblem::ChangedMeanwhile;
        let typed = self.typed()?;
        let outcome = match self.form.single("decision")? {
            Some("save") => PersonOutcome::Unsaved(&typed, problem),
            _ => PersonOutcome::Problem(problem),
        };
        let page = administrator.draw_person(&person, Some(outcome))?;
        Ok(answers::noted(page, Reason::PersonChanged))
    }

    fn changed(&self) -> Result<PersonOutcome<'_>, Failure> {
        let decision = self.form.single("decision")?;
        Ok(PersonOutcome::Changed(decision.unwrap_or_default()))
    }

    /// Whether somebody did before what the form asks for.
    fn was_done(&self, person: &Person) -> Result<bool, Failure> {
        let user = &person.found.user;
        Ok(match self.form.single("decision")? {
            Some("enable") => user.enabled,
            Some("disable") => !user.enabled,
            Some("save") => self.typed()? == PersonDetails::stored(&user.claims),
            Some("let_try") => self
                .administrator
                .wrong_passwords(person)?
                .locked_until
                .is_none(),
            Some("end_session") => {
                let store = self.administrator.store();
                let found = sessions::find_of_user(store, &self.sid()?, &user.sub)?;
                found.is_some_and(|session| session.ended_at.is_some())
            }
            _ => false,
        })
    }

    /// The session that the form names.
    fn sid(&self) -> Result<Sid, Failure> {
        let sent = self.form.bounded("session", parameters::OTHER)?;
        Ok(Sid::new(sent.unwrap_or_default()))
    }

    fn acting(&self) -> ActingAdmin<'_> {
        self.administrator.acting(&self.person.version)
    }

    fn change(
        &self,
        ends_all: bool,
        drops_factors: bool,
        user: &UserRow,
        event: &AuditEvent<'_>,
    ) -> Result<Response, Failure> {
        let change = PersonChange {
            user,
            ends_all,
            drops_factors,
        };
        let store = self.administrator.store();
        let done = admin_people::change(store, self.acting(), change, event)?;
        self.after(done)
    }

    fn set_enabled(&self, enabled: bool) -> Result<Response, Failure> {
        let before = &self.person.found.user;
        if before.enabled == enabled {
            return self.after(false);
        }
        let detail = json!({"old": {"enabled": !enabled}, "new": {"enabled": enabled}});
        let event = self
            .administrator
            .event("user_changed", &before.sub, detail);
        let user = UserRow {
            enabled,
            ..before.clone()
        };
        self.change(!enabled, false, &user, &event)
    }

    fn remove_factors(&self) -> Result<Response, Failure> {
        let user = &self.person.found.user;
        let detail = json!({"factor": "all"});
        let event = self
            .administrator
            .event("factor_removed", &user.sub, detail);
        let response = self.change(true, true, user, &event)?;
        if response.note.reason.is_none() {
            self.notify(AccountChange::FactorRemoved);
        }
        Ok(response)
    }

    /// Tells the person at the address that they had.
    fn notify(&self, change: AccountChange) {
        let context = self.administrator.context;
        notices::send(
            context.app,
            &context.presentation(),
            &self.person.found.user,
            change,
        );
    }

    fn end_session(&self) -> Result<Response, Failure> {
        let administrator = self.administrator;
        let sid = self.sid()?;
        let Some(day) = sid.day() else {
            return self.after(false);
        };
        let sub = &self.person.found.user.sub;
        let event = AuditEvent {
            sid: Some(&sid),
            ..administrator.event("session_ended", sub, json!({}))
        };
        let store = administrator.store();
        let done = admin_people::end_session(store, self.acting(), sub, day, &sid, &event)?;
        self.after(done)
    }

    /// A link for a new password. The second factors stay.
    fn reset(&self) -> Result<Response, Failure> {
        let administrator = self.administrator;
        let way = administrator.link_way(self.person);
        if matches!(way, LinkWay::NoConfirmedAddress | LinkWay::None) {
            let reason = Reason::NoConfirmedAddress;
            return self.refuse(PersonProblem::NoConfirmedAddress, reason);
        }
        let sub = &self.person.found.user.sub;
        let detail = json!({"mail": matches!(way, LinkWay::Letter(_))});
        let event = administrator.event("link_made", sub, detail);
        let store = administrator.store();
        let noted = admin_people::note_link(store, self.acting(), sub, &event)?;
        if noted {
            administrator.pass_link_on(self.person, &way)
        } else {
            self.after(false)
        }
    }

    /// The form of name, address and roles, as it was filled in.
    fn typed(&self) -> Result<PersonDetails, Failure> {
        let address = self.form.single("address")?.unwrap_or_default();
        let roles = self.administrator.posted_roles(self.form)?;
        Ok(PersonDetails {
            name: tidy(self.form.single("name")?, 200),
            address: address.trim().to_owned(),
            roles: roles.into_iter().map(str::to_owned).collect(),
        })
    }

    fn unsaved(&self, typed: &PersonDetails, problem: PersonProblem) -> Result<Response, Failure> {
        self.answer(PersonOutcome::Unsaved(typed, problem))
    }

    /// Name, address and roles.
    fn save(&self) -> Result<Response, Failure> {
        let administrator = self.administrator;
        let typed = self.typed()?;
        if administrator.lost_role(&typed.roles).is_some() {
            return self.unsaved(&typed, PersonProblem::RoleGone);
        }
        let before = &self.person.found.user;
        let mut user = before.clone();
        set_text(&mut user.claims, "name", &typed.name);
        if let Some(problem) = self.set_address(&mut user, &typed)? {
            return self.unsaved(&typed, problem);
        }
        let had = PersonDetails::stored(&before.claims).roles;
        if had != typed.roles {
            set_roles(&mut user.claims, &typed.roles);
        }
        let names = ["name", "email", "role"];
        let is_another = |name: &&str| user.claims.get(*name) != before.claims.get(*name);
        let mut changed = Vec::from_iter(names.into_iter().filter(is_another));
        changed.extend((user.username != before.username).then_some("username"));
        let has_new_address = changed.contains(&"email");
        if changed.is_empty() {
            return self.answer(self.changed()?);
        }
        let detail = if had == typed.roles {
            json!({"changed": changed})
        } else {
            json!({"changed": changed, "old": {"role": had}, "new": {"role": typed.roles}})
        };
        let event = administrator.event("user_changed", &before.sub, detail);
        let response = match self.change(false, false, &user, &event) {
            Err(Failure::Unavailable(StoreError::Taken(_))) => {
                return self.unsaved(&typed, PersonProblem::UsernameTaken);
            }
            other => other?,
        };
        if has_new_address && response.note.reason.is_none() {
            self.notify(AccountChange::Address);
        }
        Ok(response)
    }

    /// Gives them another address, if one was typed; and with it their user name, where it was the
    /// address.
    fn set_address(
        &self,
        user: &mut UserRow,
        typed: &PersonDetails,
    ) -> Result<Option<PersonProblem>, Failure> {
        let address = typed.address.as_str();
        let before = stored_address(&user.claims).unwrap_or_default();
        if before == address {
            return Ok(None);
        }
        if !address.is_empty() && MailAddress::parse(address).is_err() {
            return Ok(Some(PersonProblem::AddressUnfit));
        }
        let renames = self.form.single("also_username")?.is_some();
        if renames && user.username.as_deref() == Some(before) && !address.is_empty() {
            let store = self.administrator.store();
            if sign_up_links::holds(store, user.tenant.as_ref(), address)? {
                return Ok(Some(PersonProblem::UsernameTaken));
            }
            user.username = Some(address.to_owned());
        }
        let username = user.username.as_deref().unwrap_or_default();
        if !may_be_called(username, address) {
            return Ok(Some(PersonProblem::UsernameOfOthers));
        }
        let claims = &mut user.claims;
        set_text(claims, "email", address);
        // Whoever writes an address does not show that it is theirs.
        match address {
            "" => claims.remove("email_verified"),
            _ => claims.insert(String::from("email_verified"), Value::from(false)),
        };
        Ok(None)
    }

    /// Has their wrong passwords until now count no more.
    fn let_try(&self) -> Result<Response, Failure> {
        let administrator = self.administrator;
        let InSession { app, request, .. } = administrator.context;
        let found = &self.person.found;
        let sub = &found.user.sub;
        if self.was_done(self.person)? {
            return self.after(false);
        }
        if !wrong_passwords::count_pardon(app, sub)? {
            let page = self.answer(PersonOutcome::Problem(PersonProblem::TooManyPardons))?;
            let reason = Reason::TooManySignInFailures;
            return Ok(answers::turned_away(page, reason, letters::HOUR));
        }
        let event = administrator.event("lock_out_ended", sub, json!({}));
        let pardons = wrong_passwords::pardons(app, found, request.source);
        let done = admin_people::pardon(&app.store, self.acting(), sub, &pardons, &event)?;
        self.after(done)
    }
}

fn set_text(claims: &mut Map<String, Value>, claim: &str, text: &str) {
    if text.is_empty() {
        claims.remove(claim);
    } else {
        claims.insert(claim.to_owned(), Value::from(text));
    }
}
