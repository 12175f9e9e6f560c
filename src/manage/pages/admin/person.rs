//! One person: what keeps them from signing in, and what an administrator can do about it.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::Value;

use crate::pages::admin::invitations::invite_hint;
use crate::pages::admin::people::{counted, role_choices, unusual_state};
use crate::pages::admin::roles::opened_by;
use crate::pages::admin::{AdminChrome, Told, notice, page_of};
use crate::statements::admin_people::Person;
use crate::statements::roles::Opened;
use gatepost_protocol::login::letters::{stored_address, verified_address};
use gatepost_protocol::login::second_factor::FactorKind;
use gatepost_protocol::registration::administration::{roles_of, set_roles};
use gatepost_protocol::registration::timestamp::format_day;
use gatepost_protocol::registration::user::valid_until;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::{JsonObject, Members};
use gatepost_server::pages::frame::{
    PageForm, about, button, button_to, done, field_problem, hidden, primary_button,
};
use gatepost_server::pages::moment::{at, at_end, on_day};
use gatepost_server::pages::second_factor::called;
use gatepost_server::pages::sign_ins::{SignIns, ending};
use gatepost_server::pages::texts::{Template, Texts};
use gatepost_store::authenticators::Authenticator;
use gatepost_store::users::UserRow;

/// What wrong passwords of a user there were, from everywhere.
#[derive(Clone, Copy, Default)]
pub struct WrongPasswords {
    /// Within an hour.
    pub count: i64,
    /// Until when passwords are not looked at that come from where there were too many wrong ones.
    pub locked_until: Option<Instant>,
}

/// What there is to see, as it is stored.
#[derive(Clone, Copy)]
pub struct PersonView<'a> {
    pub form: &'a PageForm<'a>,
    pub person: &'a Person,
    /// With the recovery codes.
    pub factors: &'a [Authenticator],
    /// Their sessions, and that of the administrator.
    pub sign_ins: &'a SignIns<'a>,
    pub wrong_passwords: WrongPasswords,
    /// What they may open by their roles.
    pub opened: &'a [Opened],
    pub told: Option<&'a Told>,
    /// What was typed and is not saved.
    pub typed: Option<&'a PersonDetails>,
}

/// Name, address, end and roles, as they are stored or were typed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PersonDetails {
    pub name: String,
    pub address: String,
    /// The last day; empty: without an end.
    pub until: String,
    /// Sorted.
    pub roles: Vec<String>,
}

impl PersonDetails {
    pub fn stored(user: &UserRow) -> PersonDetails {
        let last = |end: Instant| format_day(end.minus(Duration::from_micros(1)).day());
        PersonDetails {
            until: user.valid_until.map(last).unwrap_or_default(),
            ..PersonDetails::claimed(&user.claims)
        }
    }

    /// Until when they are there; the error says what is wrong with what was typed.
    pub fn valid_until(&self) -> Result<Option<Instant>, &'static str> {
        let typed = Some(self.until.as_str()).filter(|typed| !typed.is_empty());
        typed.map(valid_until).transpose()
    }

    fn claimed(claims: &JsonObject) -> PersonDetails {
        let name = claims.text("name");
        let mut roles = Vec::from_iter(roles_of(claims).into_iter().map(str::to_owned));
        roles.sort_unstable();
        PersonDetails {
            name: name.unwrap_or_default().to_owned(),
            address: stored_address(claims).unwrap_or_default().to_owned(),
            until: String::new(),
            roles,
        }
    }

    /// Writes the claims that are others than stored.
    pub fn write(&self, claims: &mut JsonObject) {
        let stored = PersonDetails::claimed(claims);
        let texts = [
            ("name", &self.name, stored.name),
            ("email", &self.address, stored.address),
        ];
        for (claim, text, before) in texts {
            if text.is_empty() && !before.is_empty() {
                claims.remove(claim);
            } else if *text != before {
                claims.insert(claim.to_owned(), Value::from(text.as_str()));
            }
        }
        if self.roles != stored.roles {
            set_roles(claims, &self.roles);
        }
    }
}

/// The page of a person. Each of its forms posts `form_token`, `version` and `decision`: `save`
/// with `name`, `address`, `until`, `also_username` and any number of `role` and `offered`,
/// `end_session` with `session`, or `end_all`, `reset`, `let_try`, `remove_factors`, `disable`,
/// `enable`.
pub fn person_page(around: AdminChrome<'_>, view: PersonView<'_>) -> Markup {
    let texts = around.texts;
    let user = &view.person.found.user;
    let card = html! {
        p .lead { bdi { (user.designation()) } }
        (notice(texts, view.told))
        div .columns {
            div {
                (state(around, view))
                @if view.person.may_be_changed { (deeds(around, view)) } @else {
                    p .hint { (texts.not_yours) }
                }
            }
            div {
                @if view.person.may_be_changed { (details(around, view)) }
                (sign_ins(around, view))
            }
        }
    };
    around.document(view.told.is_some_and(Result::is_err), user.called(), &card)
}

/// That it was done what a form of the page asked for.
pub fn was_done(texts: &Texts, person: &Person, decision: &str) -> Markup {
    let name = person.found.user.called();
    let mut deeds = dangerous_deeds(texts).into_iter();
    let done_to = match decision {
        "enable" => Some(texts.was_enabled),
        "let_try" => Some(texts.was_let_try),
        _ => deeds
            .find(|deed| deed.decision == decision)
            .map(|deed| deed.done),
    };
    match done_to {
        Some(template) => done(about(template, name)),
        None => done(texts.change_made),
    }
}

/// That a link is on its way to an address.
pub fn letter_sent(around: AdminChrome<'_>, person: &Person, address: &str) -> Markup {
    link_passed(
        around,
        person,
        &about(around.texts.letter_under_way, address),
    )
}

/// A link to pass on.
pub fn link_shown(around: AdminChrome<'_>, person: &Person, link: &str) -> Markup {
    let name = person.found.user.called();
    html! {
        (link_passed(around, person, &about(around.texts.link_shown_once, name)))
        p { code .link-shown { (link) } }
    }
}

/// How a link gets to them; and that they are invited, where it is their first.
fn link_passed(around: AdminChrome<'_>, person: &Person, how: &Markup) -> Markup {
    let texts = around.texts;
    if !person.is_new() {
        return done(how);
    }
    html! {
        (done(html! { (about(texts.was_invited, person.found.user.called())) " " (how) }))
        (button_to(&around.address("invite"), texts.invite_another))
    }
}

/// What an administrator is asked about by somebody who cannot sign in.
fn state(around: AdminChrome<'_>, view: PersonView<'_>) -> Markup {
    let texts = around.texts;
    let person = view.person;
    let user = &person.found.user;
    let (codes, factors): (Vec<_>, Vec<_>) = view
        .factors
        .iter()
        .partition(|one| one.kind == FactorKind::RecoveryCode);
    let roles = roles_of(&user.claims);
    html! {
        @if let Some(moment) = view.wrong_passwords.locked_until {
            div .notice .warning { p { (at(texts, texts.locked_until, moment)) } }
        }
        div .details {
            dl {
                dt { (texts.account_state) }
                dd { (unusual_state(texts, person).unwrap_or(texts.enabled)) }
                @if let Some(end) = user.valid_until {
                    dt { (texts.valid_until) }
                    dd { (at_end(texts, Template("{}"), end)) }
                }
                @if let Some(tenant) = &user.tenant {
                    dt { (texts.organisation) }
                    dd { bdi { (around.catalogue.tenant_name(tenant.as_str())) } }
                }
                dt { (texts.password) }
                dd { @if user.password_hash.is_some() { (texts.is_set) } @else { (texts.none) } }
                dt { (texts.email_address) }
                dd { (address(texts, user)) }
                dt { (texts.factors_heading) }
                dd {
                    @if factors.is_empty() { (texts.none) }
                    @for one in &factors { p { bdi { (called(texts, one)) } } }
                    @if !codes.is_empty() {
                        p { (texts.recovery_codes_left.fill(&codes.len().to_string())) }
                    }
                }
                dt { (texts.roles_and_opened) }
                dd {
                    @if roles.is_empty() { (texts.none) }
                    @for role in roles {
                        p {
                            strong { bdi { (around.role_name(role)) } }
                            @if !around.roles_to_give.iter().any(|given| given == role) {
                                " " span .badge .warning { (texts.role_not_yours) }
                            }
                        }
                        (opened_by(around, view.opened, role))
                    }
                    @if let Some(one) = view.opened.first() {
                        @let count = counted(texts, one.to_everybody);
                        p { (texts.open_to_everybody.fill(&count)) }
                    }
                    p .hint { (texts.uses_are_late) }
                }
                dt { (texts.last_sign_in) }
                dd {
                    @match person.used_on {
                        Some(day) => (on_day(texts, Template("{}"), day)),
                        None => (texts.never),
                    }
                    p .hint { (texts.counted_hourly) }
                }
                dt { (texts.wrong_tries) }
                dd { (view.wrong_passwords.count) }
            }
        }
    }
}

fn address(texts: &Texts, user: &UserRow) -> Markup {
    html! {
        @match stored_address(&user.claims) {
            Some(address) => {
                p { bdi { (address) } }
                p .hint {
                    @if verified_address(&user.claims).is_some() {
                        (texts.address_confirmed)
                    } @else {
                        (texts.address_not_confirmed)
                    }
                }
            },
            None => (texts.none),
        }
    }
}

fn deeds(around: AdminChrome<'_>, view: PersonView<'_>) -> Markup {
    let texts = around.texts;
    let person = view.person;
    let user = &person.found.user;
    let is_locked_out = view.wrong_passwords.locked_until.is_some();
    let [remove_factors, end_everything, disable] = dangerous_deeds(texts);
    let asking = |deed: DangerousDeed| {
        let page = page_of("people", user.sub.as_str());
        let address = around.address_with(&page, &[("ask", deed.decision)]);
        html! {
            div .actions { a .button .danger href=(address) { (deed.label) } }
            p .hint { (deed.hint) }
        }
    };
    let reset = if person.is_new() {
        [texts.invite_again, invite_hint(around)]
    } else {
        [texts.new_password_link, texts.new_password_link_hint]
    };
    html! {
        @if person.takes_link() || !view.factors.is_empty() || is_locked_out {
            h2 { (texts.help_them_sign_in) }
        }
        @if is_locked_out {
            (deed(view, "let_try", [texts.let_try, texts.let_try_hint]))
        }
        @if person.takes_link() { (deed(view, "reset", reset)) }
        @if !view.factors.is_empty() { (asking(remove_factors)) }
        h2 { (texts.end_access) }
        (asking(end_everything))
        @if user.enabled {
            (asking(disable))
        } @else {
            (of_person(view.form, person, &html! {
                div .actions { (button("enable", texts.enable)) }
            }))
        }
    }
}

/// A form about the person as they were seen.
fn of_person(form: &PageForm<'_>, person: &Person, fields: &Markup) -> Markup {
    form.of(&html! { (hidden("version", &person.version)) (fields) })
}

/// A button, and what it does.
fn deed(view: PersonView<'_>, decision: &str, words: [&str; 2]) -> Markup {
    let [label, hint] = words;
    let id = format!("{decision}-hint");
    of_person(
        view.form,
        view.person,
        &html! {
            div .actions {
                button type="submit" name="decision" value=(decision) aria-describedby=(id) {
                    (label)
                }
            }
            p id=(id) .hint { (hint) }
        },
    )
}

/// What is asked for before it is done, and what the pages say of it.
#[derive(Clone, Copy)]
pub struct DangerousDeed {
    /// As forms post it.
    pub decision: &'static str,
    label: &'static str,
    question: Template,
    hint: &'static str,
    /// What comes back, and what does not.
    afterwards: &'static str,
    done: Template,
}

/// Removing factors, ending everything, and disabling.
pub fn dangerous_deeds(texts: &Texts) -> [DangerousDeed; 3] {
    [
        DangerousDeed {
            decision: "remove_factors",
            label: texts.remove_factors,
            question: texts.ask_remove_factors,
            hint: texts.remove_factors_hint,
            afterwards: texts.factors_for_good,
            done: texts.factors_were_removed,
        },
        DangerousDeed {
            decision: "end_all",
            label: texts.end_everything,
            question: texts.ask_end_everything,
            hint: texts.end_everything_hint,
            afterwards: texts.ended_for_good,
            done: texts.was_signed_out,
        },
        DangerousDeed {
            decision: "disable",
            label: texts.disable,
            question: texts.ask_disable,
            hint: texts.disable_hint,
            afterwards: texts.ended_for_good,
            done: texts.was_disabled,
        },
    ]
}

/// Asks whether it shall be done. Its form posts what a form of the page of the person posts.
pub fn asking_page(
    around: AdminChrome<'_>,
    form: &PageForm<'_>,
    person: &Person,
    deed: &DangerousDeed,
) -> Markup {
    let texts = around.texts;
    let user = &person.found.user;
    let page = page_of("people", user.sub.as_str());
    let card = html! {
        @if deed.hint != texts.end_everything_hint { p { (deed.hint) } }
        p { (texts.end_everything_hint) }
        p { (deed.afterwards) }
        (of_person(form, person, &html! {
            div .actions {
                button .danger type="submit" name="decision" value=(deed.decision) { (deed.label) }
                a .button href=(around.address(&page)) { (texts.cancel) }
            }
        }))
    };
    around.document(false, &deed.question.fill(user.called()), &card)
}

fn details(around: AdminChrome<'_>, view: PersonView<'_>) -> Markup {
    let texts = around.texts;
    let user = &view.person.found.user;
    let stored = PersonDetails::stored(user);
    let typed = view.typed.unwrap_or(&stored);
    let fields = html! {
        (name_field(texts, &typed.name))
        (beside(texts, &typed.name, &stored.name))
        div .field {
            label for="address" { (texts.email_address) }
            input #address type="email" name="address" value=(typed.address)
                maxlength="254" autocomplete="off" dir="auto" aria-describedby="address-hint";
            p #address-hint .hint {
                (texts.new_address_hint)
                @if around.by_letter && view.person.address_counts { " " (texts.old_address_hint) }
            }
        }
        (beside(texts, &typed.address, &stored.address))
        @if user.username.as_deref() == Some(&stored.address) {
            div .choice {
                input #also-username type="checkbox" name="also_username" value="true" checked;
                div { label for="also-username" { (texts.also_username) } }
            }
        }
        (until_field(texts, &typed.until, false))
        (beside(texts, &typed.until, &stored.until))
        (role_choices(around, &typed.roles))
        div .actions { (primary_button("save", texts.save)) }
    };
    html! {
        section aria-labelledby="details" {
            h2 #details { (texts.name_address_roles) }
            (of_person(view.form, view.person, &fields))
        }
    }
}

pub fn name_field(texts: &Texts, name: &str) -> Markup {
    html! {
        div .field {
            label for="name" { (texts.standard_claim("name").unwrap_or(texts.your_name)) }
            input #name type="text" name="name" value=(name) maxlength="200" autocomplete="off"
                dir="auto";
        }
    }
}

pub fn until_field(texts: &Texts, until: &str, is_wrong: bool) -> Markup {
    let invalid = is_wrong.then_some("true");
    let described = invalid.map_or("until-hint", |_| "problem until-hint");
    html! {
        div .field {
            label for="until" { (texts.valid_until) }
            input #until type="date" name="until" value=(until) min="1970-01-01"
                max="9999-12-31" autocomplete="off"
                aria-invalid=[invalid] aria-describedby=(described);
            p #until-hint .hint { (texts.valid_until_hint) }
        }
    }
}

/// What is stored, where something else was typed. Roles stand beside the form in any case.
fn beside(texts: &Texts, typed: &str, stored: &str) -> Markup {
    let stored_or_none = if stored.is_empty() {
        texts.none
    } else {
        stored
    };
    html! { @if typed != stored { p .hint { (about(texts.stored_now, stored_or_none)) } } }
}

/// For whoever did something to somebody who was there before.
pub fn gone_page(around: AdminChrome<'_>) -> Markup {
    let texts = around.texts;
    let card = html! {
        (field_problem(texts, None, texts.person_gone))
        (button_to(&around.address("people"), texts.search_people))
    };
    around.document(true, texts.people, &card)
}

fn sign_ins(around: AdminChrome<'_>, view: PersonView<'_>) -> Markup {
    let texts = around.texts;
    let sessions = view.sign_ins.sessions;
    html! {
        section aria-labelledby="sessions" {
            h2 #sessions { (texts.their_sign_ins) }
            @if sessions.is_empty() { p .hint { (texts.none) } } @else {
                ul .items .sign-ins {
                    @for (index, session) in sessions.iter().enumerate() {
                        @let id = format!("session-{index}");
                        li {
                            @if view.person.may_be_changed {
                                (of_person(view.form, view.person, &ending(texts, session, &id)))
                            }
                            (view.sign_ins.one(texts, session, &id))
                        }
                    }
                }
            }
        }
    }
}
