//! One person: what keeps them from signing in, and what an administrator can do about it.

use maud::{Markup, html};

use crate::pages::admin::AdminChrome;
use crate::pages::admin::people::{PeopleCount, name_field, page_of, role_choices, role_name};
use crate::pages::admin::roles::opened_by;
use crate::statements::admin_people::Person;
use crate::statements::roles::Opened;
use gatepost_protocol::login::letters::{stored_address, verified_address};
use gatepost_protocol::login::second_factor::FactorKind;
use gatepost_protocol::registration::administration::roles_of;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::session::Session;
use gatepost_server::pages::frame::{
    PageForm, about, button, done, field_problem, hidden, primary_button,
};
use gatepost_server::pages::moment::at;
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
    pub wrong_tries: i64,
    /// What they may open by their roles.
    pub opened: &'a [Opened],
    /// Whether the administrator may act on them.
    pub may_change: bool,
    /// Whether a link for a new password is of use to them.
    pub takes_link: bool,
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
        }
    }
}

/// The page of a person. Each of its forms posts `form_token`, `version` and `decision`: `save`
/// with `name`, `address` and any number of `role`, `end_session` with `session`, or `end_all`,
/// `reset`, `remove_factors`, `disable`, `enable`.
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
        @if let Some(outcome) = outcome { (said(texts, name, outcome)) }
        div .columns {
            div {
                (state(around, view))
                @if view.may_change { (deeds(around, form, view)) } @else {
                    p .hint { (texts.not_yours) }
                }
            }
            div {
                @if view.may_change { (details(around, form, view)) }
                (sign_ins(texts, form, view))
            }
        }
    };
    let is_error = matches!(outcome, Some(PersonOutcome::Problem(_)));
    around.document(is_error, name, &card)
}

fn said(texts: &Texts, name: &str, outcome: PersonOutcome<'_>) -> Markup {
    match outcome {
        PersonOutcome::Changed(decision) => match decision {
            "disable" => done(about(texts.was_disabled, name)),
            "enable" => done(about(texts.was_enabled, name)),
            "end_all" => done(about(texts.was_signed_out, name)),
            "remove_factors" => done(about(texts.factors_were_removed, name)),
            _ => done(texts.change_made),
        },
        PersonOutcome::LetterSent(address) => done(about(texts.letter_under_way, address)),
        PersonOutcome::Link(link) => html! {
            (done(about(texts.link_shown_once, name)))
            p { code .link-shown { (link) } }
        },
        PersonOutcome::Problem(problem) => field_problem(texts, None, problem.told(texts)),
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
                    @match person.signed_in_at {
                        Some(moment) => (at(texts, Template("{}"), moment)),
                        None => (texts.none),
                    }
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
        @if view.takes_link || !view.factors.is_empty() { h2 { (texts.help_them_sign_in) } }
        @if view.takes_link {
            (form.of(&html! {
                (hidden("version", version))
                div .actions {
                    button type="submit" name="decision" value="reset"
                        aria-describedby="reset-hint" { (texts.new_password_link) }
                }
                p #reset-hint .hint { (texts.new_password_link_hint) }
            }))
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

fn details(around: AdminChrome<'_>, form: PageForm<'_>, view: PersonView<'_>) -> Markup {
    let texts = around.chrome.texts;
    let claims = &view.person.found.user.claims;
    let name = claims.get("name").and_then(|name| name.as_str());
    html! {
        section aria-labelledby="details" {
            h2 #details { (texts.name_address_roles) }
            (form.of(&html! {
                (hidden("version", &view.person.version))
                (name_field(texts, name.unwrap_or_default()))
                (address_field(texts, stored_address(claims), view.tells_old_address))
                (role_choices(around, view.catalogue, view.given_roles, &roles_of(claims)))
                div .actions { (primary_button("save", texts.save)) }
            }))
        }
    }
}

fn address_field(texts: &Texts, present: Option<&str>, tells_old_address: bool) -> Markup {
    html! {
        div .field {
            label for="address" { (texts.email_address) }
            input #address type="email" name="address" value=(present.unwrap_or_default())
                maxlength="254" autocomplete="off" dir="auto" aria-describedby="address-hint";
            p #address-hint .hint {
                (texts.new_address_hint)
                @if tells_old_address { " " (texts.old_address_hint) }
            }
        }
    }
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
