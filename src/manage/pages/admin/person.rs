//! One person: what keeps them from signing in, and what an administrator can do about it.

use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::pages::admin::AdminChrome;
use crate::pages::admin::people::{
    PeopleCount, invite_hint, name_field, page_of, role_choices, role_name,
};
use crate::pages::admin::roles::opened_by;
use crate::statements::admin_people::Person;
use crate::statements::roles::Opened;
use gatepost_protocol::login::letters::{stored_address, verified_address};
use gatepost_protocol::login::second_factor::FactorKind;
use gatepost_protocol::registration::administration::roles_of;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::session::Session;
use gatepost_server::pages::frame::{
    PageForm, about, button, button_to, done, field_problem, hidden, primary_button,
};
use gatepost_server::pages::moment::{at, on_day};
use gatepost_server::pages::second_factor::called;
use gatepost_server::pages::sign_ins::{SignIns, ending};
use gatepost_server::pages::texts::{Template, Texts};
use gatepost_store::authenticators::Authenticator;
use gatepost_store::users::UserRow;

/// What there is to see, as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct PersonView<'a> {
    pub person: &'a Person,
    pub catalogue: &'a Catalogue,
    /// With the recovery codes.
    pub factors: &'a [Authenticator],
    pub sessions: &'a [Session],
    /// The session of the administrator.
    pub current_session: &'a Session,
    /// Wrong passwords of the last hour.
    pub wrong_tries: i64,
    /// What they may open by their roles.
    pub opened: &'a [Opened],
    /// Until when too many of them keep somebody from signing in.
    pub locked_until: Option<Instant>,
    /// Whether the administrator may act on them.
    pub may_change: bool,
    /// Whether a link for a new password is of use to them.
    pub takes_link: bool,
    /// Whether links go by letter.
    pub by_letter: bool,
    pub given_roles: &'a [String],
    /// Whether a letter goes to the address that they have now, when they get another.
    pub tells_old_address: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonOutcome<'a> {
    /// What was asked for is so, by this decision.
    Changed(&'a str),
    /// A link is on its way to this address.
    LetterSent(&'a str),
    /// To pass on.
    Link(&'a str),
    Problem(PersonProblem),
    /// The same, where name, address and roles were typed.
    Unsaved(&'a PersonDetails, PersonProblem),
}

/// Name, address and roles, as they are stored or were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonDetails {
    pub name: String,
    pub address: String,
    /// Sorted.
    pub roles: Vec<String>,
}

impl PersonDetails {
    pub fn stored(claims: &Map<String, Value>) -> PersonDetails {
        let name = claims.get("name").and_then(Value::as_str);
        let mut roles = Vec::from_iter(roles_of(claims).into_iter().map(str::to_owned));
        roles.sort_unstable();
        PersonDetails {
            name: name.unwrap_or_default().to_owned(),
            address: stored_address(claims).unwrap_or_default().to_owned(),
            roles,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonProblem {
    /// The form was drawn for another session, or for another person.
    SessionChanged,
    ChangedMeanwhile,
    /// Administrators do not change them.
    NotYours,
    NoConfirmedAddress,
    AddressUnfit,
    UsernameOfOthers,
    UsernameTaken,
    /// A role was ticked that is not there any more.
    RoleGone,
    /// They were let try too often.
    TooManyPardons,
}

impl PersonProblem {
    fn told(self, texts: &Texts) -> &'static str {
        match self {
            PersonProblem::SessionChanged => texts.session_changed,
            PersonProblem::ChangedMeanwhile => texts.changed_meanwhile,
            PersonProblem::NotYours => texts.not_yours,
            PersonProblem::NoConfirmedAddress => texts.no_confirmed_address,
            PersonProblem::AddressUnfit => texts.address_unfit,
            PersonProblem::UsernameOfOthers => texts.username_of_others,
            PersonProblem::UsernameTaken => texts.username_taken,
            PersonProblem::RoleGone => texts.role_gone,
            PersonProblem::TooManyPardons => texts.too_many_pardons,
        }
    }
}

/// The page of a person. Each of its forms posts `form_token`, `version` and `decision`: `save`
/// with `name`, `address`, `also_username` and any number of `role` and `offered`, `end_session`
/// with `session`, or `end_all`, `reset`, `let_try`, `remove_factors`, `disable`, `enable`.
pub fn page(
    around: AdminChrome<'_>,
    form: PageForm<'_>,
    view: PersonView<'_>,
    outcome: Option<PersonOutcome<'_>>,
) -> Markup {
    let texts = around.chrome.texts;
    let user = &view.person.found.user;
    let name = user.called();
    let card = html! {
        p .lead { bdi { (user.designation()) } }
        @if let Some(outcome) = outcome { (said(around, view.person, outcome)) }
        div .columns {
            div {
                (state(around, view))
                @if view.may_change { (deeds(around, form, view)) } @else {
                    p .hint { (texts.not_yours) }
                }
            }
            div {
                @if view.may_change { (details(around, form, view, outcome)) }
                (sign_ins(texts, form, view))
            }
        }
    };
    let is_error = matches!(
        outcome,
        Some(PersonOutcome::Problem(_) | PersonOutcome::Unsaved(..))
    );
    around.document(is_error, name, &card)
}

fn said(around: AdminChrome<'_>, person: &Person, outcome: PersonOutcome<'_>) -> Markup {
    let texts = around.chrome.texts;
    let name = person.found.user.called();
    match outcome {
        PersonOutcome::Changed(decision) => match decision {
            "disable" => done(about(texts.was_disabled, name)),
            "enable" => done(about(texts.was_enabled, name)),
            "end_all" => done(about(texts.was_signed_out, name)),
            "remove_factors" => done(about(texts.factors_were_removed, name)),
            "let_try" => done(about(texts.was_let_try, name)),
            _ => done(texts.change_made),
        },
        PersonOutcome::LetterSent(address) => {
            link_passed(around, person, &about(texts.letter_under_way, address))
        }
        PersonOutcome::Link(link) => html! {
            (link_passed(around, person, &about(texts.link_shown_once, name)))
            p { code .link-shown { (link) } }
        },
        PersonOutcome::Problem(problem) | PersonOutcome::Unsaved(_, problem) => {
            field_problem(texts, None, problem.told(texts))
        }
    }
}

/// How a link gets to them; and that they are invited, where it is their first.
fn link_passed(around: AdminChrome<'_>, person: &Person, how: &Markup) -> Markup {
    let texts = around.chrome.texts;
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
    let texts = around.chrome.texts;
    let person = view.person;
    let user = &person.found.user;
    let (codes, factors): (Vec<_>, Vec<_>) = view
        .factors
        .iter()
        .partition(|one| one.kind == FactorKind::RecoveryCode);
    let roles = roles_of(&user.claims);
    html! {
        @if let Some(moment) = view.locked_until {
            div .notice .warning { p { (at(texts, texts.locked_until, moment)) } }
        }
        div .details {
            dl {
                dt { (texts.account_state) }
                dd { @if user.enabled { (texts.enabled) } @else { (texts.disabled) } }
                @if let Some(tenant) = &user.tenant {
                    dt { (texts.organisation) }
                    dd { bdi { (view.catalogue.tenant_name(tenant.as_str())) } }
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
                            strong { bdi { (role_name(around, view.catalogue, role)) } }
                            @if !view.given_roles.iter().any(|given| given == role) {
                                " " span .badge .warning { (texts.role_not_yours) }
                            }
                        }
                        (opened_by(around, view.opened, role))
                    }
                    @if let Some(one) = view.opened.first() {
                        @let count = PeopleCount::of(one.to_everybody).told(texts);
                        p { (texts.open_to_everybody.fill(&count)) }
                    }
                    p .hint { (texts.uses_are_late) }
                }
                dt { (texts.last_sign_in) }
                dd {
                    @match person.used_on {
                        Some(day) => (on_day(texts, Template("{}"), day)),
                        None => (texts.none),
                    }
                    p .hint { (texts.counted_hourly) }
                }
                dt { (texts.wrong_tries) }
                dd { (view.wrong_tries) }
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

fn deeds(around: AdminChrome<'_>, form: PageForm<'_>, view: PersonView<'_>) -> Markup {
    let texts = around.chrome.texts;
    let version = &view.person.version;
    let user = &view.person.found.user;
    let asking = |deed: DangerousDeed| {
        let page = format!("{}?ask={}", page_of(user), deed.decision());
        let words = deed.words(texts);
        html! {
            div .actions { a .button .danger href=(around.address(&page)) { (words.label) } }
            p .hint { (words.hint) }
        }
    };
    html! {
        @if view.takes_link || !view.factors.is_empty() || view.locked_until.is_some() {
            h2 { (texts.help_them_sign_in) }
        }
        @if view.locked_until.is_some() {
            (deed(form, view, "let_try", texts.let_try, texts.let_try_hint))
        }
        @if view.takes_link {
            @if view.person.is_new() {
                (deed(form, view, "reset", texts.invite_again, invite_hint(texts, view.by_letter)))
            } @else {
                @let hint = texts.new_password_link_hint;
                (deed(form, view, "reset", texts.new_password_link, hint))
            }
        }
        @if !view.factors.is_empty() { (asking(DangerousDeed::RemoveFactors)) }
        h2 { (texts.end_access) }
        (asking(DangerousDeed::EndEverything))
        @if user.enabled {
            (asking(DangerousDeed::Disable))
        } @else {
            (form.of(&html! {
                (hidden("version", version))
                div .actions { (button("enable", texts.enable)) }
            }))
        }
    }
}

/// A button, and what it does.
fn deed(
    form: PageForm<'_>,
    view: PersonView<'_>,
    decision: &str,
    label: &str,
    hint: &str,
) -> Markup {
    let id = format!("{decision}-hint");
    form.of(&html! {
        (hidden("version", &view.person.version))
        div .actions {
            button type="submit" name="decision" value=(decision) aria-describedby=(id) { (label) }
        }
        p id=(id) .hint { (hint) }
    })
}

/// What is asked for before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DangerousDeed {
    RemoveFactors,
    EndEverything,
    Disable,
}

/// What the pages say of it.
struct DeedWords {
    label: &'static str,
    question: Template,
    hint: &'static str,
    /// What comes back, and what does not.
    afterwards: &'static str,
}

impl DangerousDeed {
    pub const ALL: [DangerousDeed; 3] = [
        DangerousDeed::RemoveFactors,
        DangerousDeed::EndEverything,
        DangerousDeed::Disable,
    ];

    /// As forms post it.
    pub fn decision(self) -> &'static str {
        match self {
            DangerousDeed::RemoveFactors => "remove_factors",
            DangerousDeed::EndEverything => "end_all",
            DangerousDeed::Disable => "disable",
        }
    }

    fn words(self, texts: &Texts) -> DeedWords {
        match self {
            DangerousDeed::RemoveFactors => DeedWords {
                label: texts.remove_factors,
                question: texts.ask_remove_factors,
                hint: texts.remove_factors_hint,
                afterwards: texts.factors_for_good,
            },
            DangerousDeed::EndEverything => DeedWords {
                label: texts.end_everything,
                question: texts.ask_end_everything,
                hint: texts.end_everything_hint,
                afterwards: texts.ended_for_good,
            },
            DangerousDeed::Disable => DeedWords {
                label: texts.disable,
                question: texts.ask_disable,
                hint: texts.disable_hint,
                afterwards: texts.ended_for_good,
            },
        }
    }
}

/// Asks whether it shall be done. Its form posts what a form of the page of the person posts.
pub fn asking_page(
    around: AdminChrome<'_>,
    form: PageForm<'_>,
    person: &Person,
    deed: DangerousDeed,
) -> Markup {
    let texts = around.chrome.texts;
    let user = &person.found.user;
    let words = deed.words(texts);
    let card = html! {
        @if deed != DangerousDeed::EndEverything { p { (words.hint) } }
        p { (texts.end_everything_hint) }
        p { (words.afterwards) }
        (form.of(&html! {
            (hidden("version", &person.version))
            div .actions {
                button .danger type="submit" name="decision" value=(deed.decision()) {
                    (words.label)
                }
                a .button href=(around.address(&page_of(user))) { (texts.cancel) }
            }
        }))
    };
    around.document(false, &words.question.fill(user.called()), &card)
}

fn details(
    around: AdminChrome<'_>,
    form: PageForm<'_>,
    view: PersonView<'_>,
    outcome: Option<PersonOutcome<'_>>,
) -> Markup {
    let texts = around.chrome.texts;
    let user = &view.person.found.user;
    let stored = PersonDetails::stored(&user.claims);
    let typed = match outcome {
        Some(PersonOutcome::Unsaved(typed, _)) => typed,
        _ => &stored,
    };
    let is_called_so = user.username.as_deref() == Some(&stored.address);
    html! {
        section aria-labelledby="details" {
            h2 #details { (texts.name_address_roles) }
            (form.of(&html! {
                (hidden("version", &view.person.version))
                (name_field(texts, &typed.name))
                (beside(texts, &typed.name, &stored.name))
                (address_field(texts, &typed.address, view.tells_old_address))
                (beside(texts, &typed.address, &stored.address))
                @if is_called_so { (also_username(texts)) }
                (role_choices(around, view.catalogue, view.given_roles, &typed.roles))
                div .actions { (primary_button("save", texts.save)) }
            }))
        }
    }
}

/// For those who are called by their address.
fn also_username(texts: &Texts) -> Markup {
    html! {
        div .choice {
            input #also-username type="checkbox" name="also_username" value="true" checked;
            div { label for="also-username" { (texts.also_username) } }
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

fn address_field(texts: &Texts, typed: &str, tells_old_address: bool) -> Markup {
    html! {
        div .field {
            label for="address" { (texts.email_address) }
            input #address type="email" name="address" value=(typed)
                maxlength="254" autocomplete="off" dir="auto" aria-describedby="address-hint";
            p #address-hint .hint {
                (texts.new_address_hint)
                @if tells_old_address { " " (texts.old_address_hint) }
            }
        }
    }
}

/// For whoever did something to somebody who was there before.
pub fn gone_page(around: AdminChrome<'_>) -> Markup {
    let texts = around.chrome.texts;
    let card = html! {
        (field_problem(texts, None, texts.person_gone))
        (button_to(&around.address("people"), texts.search_people))
    };
    around.document(true, texts.people, &card)
}

fn sign_ins(texts: &Texts, form: PageForm<'_>, view: PersonView<'_>) -> Markup {
    let drawn = SignIns {
        catalogue: view.catalogue,
        has_password: view.person.found.user.password_hash.is_some(),
        current_session: view.current_session,
        sessions: view.sessions,
    };
    html! {
        section aria-labelledby="sessions" {
            h2 #sessions { (texts.their_sign_ins) }
            @if view.sessions.is_empty() { p .hint { (texts.none) } } @else {
                ul .items .sign-ins {
                    @for (index, session) in view.sessions.iter().enumerate() {
                        @let id = format!("session-{index}");
                        li {
                            @if view.may_change {
                                (form.of(&html! {
                                    (hidden("version", &view.person.version))
                                    (ending(texts, session, &id))
                                }))
                            }
                            (drawn.one(texts, session, &id))
                        }
                    }
                }
            }
        }
    }
}
