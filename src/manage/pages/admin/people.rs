//! People: finding them, and inviting somebody.

use std::collections::BTreeSet;

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::pages::admin::AdminChrome;
use crate::statements::people_list::ListedPerson;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::registration::administration::roles_of;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::strength::Strength;
use gatepost_server::pages::frame::{PageForm, field_problem, hidden, submit};
use gatepost_server::pages::join::JoinProblem;
use gatepost_server::pages::moment::{at, on_day};
use gatepost_server::pages::texts::{Template, Texts};
use gatepost_store::users::UserRow;

/// What the search asks for; empty texts for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchedFor<'a> {
    pub typed: &'a str,
    pub role: &'a str,
    pub state: &'a str,
}

/// One page of people, and what was asked for.
#[derive(Clone, Copy, Debug)]
pub struct PeoplePage<'a> {
    /// Where it stands, below `/admin/`.
    pub page: &'a str,
    pub asked: SearchedFor<'a>,
    /// Whether it says since when they have the role, in the place of the last sign-in.
    pub is_dated: bool,
    /// Whether those who may be changed can be ticked. They post `person`.
    pub has_ticks: bool,
    pub people: &'a [ListedPerson],
    /// Those of them whom too many wrong passwords keep from signing in.
    pub locked_out: &'a BTreeSet<Subject>,
    pub count: PeopleCount,
    /// The subjects behind which and before which there are more.
    pub next: Option<&'a Subject>,
    pub previous: Option<&'a Subject>,
    pub catalogue: &'a Catalogue,
}

/// How many people are what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeopleCount {
    Exactly(i64),
    MoreThan(i64),
    /// It would take a look at everybody.
    Unknown,
}

/// As many people are counted exactly.
pub const MOST_COUNTED: i64 = 1_000;

impl PeopleCount {
    /// Of a count that went one further than is counted exactly, at least.
    pub fn of(count: i64) -> PeopleCount {
        if count > MOST_COUNTED {
            PeopleCount::MoreThan(MOST_COUNTED)
        } else {
            PeopleCount::Exactly(count)
        }
    }

    /// Empty where it is not known.
    pub fn told(self, texts: &Texts) -> String {
        match self {
            PeopleCount::Exactly(count) => count.to_string(),
            PeopleCount::MoreThan(count) => texts.more_than.fill(&count.to_string()),
            PeopleCount::Unknown => String::new(),
        }
    }
}

/// The page of a person, below `/admin/`.
pub fn page_of(user: &UserRow) -> String {
    let sub = utf8_percent_encode(user.sub.as_str(), NON_ALPHANUMERIC);
    format!("people/{sub}")
}

/// The state of those whom too many wrong passwords keep from signing in.
pub const LOCKED: &str = "locked";

/// The states that can be asked for.
pub fn states(texts: &Texts) -> [(&'static str, &'static str); 4] {
    [
        ("invited", texts.invited),
        ("disabled", texts.disabled),
        ("no-second-factor", texts.no_second_factor),
        (LOCKED, texts.locked_out),
    ]
}

/// The page that lists people. Its form asks for `q`, `role` and `state`; `after` and `before` are
/// subjects.
pub fn people_page(around: AdminChrome<'_>, page: PeoplePage<'_>) -> Markup {
    let texts = around.chrome.texts;
    let invite = html! { a .button href=(around.address("invite")) { (texts.invite) } };
    let card = html! {
        (around.search_form("people", &search_fields(around, page)))
        (listing(around, page))
    };
    around.document_beside(false, texts.people, &invite, &card)
}

/// How many they are, the people of this page, and the ways to others.
pub(super) fn listing(around: AdminChrome<'_>, page: PeoplePage<'_>) -> Markup {
    let texts = around.chrome.texts;
    let count = page.count.told(texts);
    html! {
        @if !count.is_empty() { p .hint role="status" { (texts.found.fill(&count)) } }
        @if page.people.is_empty() {
            p role="status" { (texts.nobody_found) }
        } @else {
            (table(around, page))
            @if !page.is_dated { p .hint { (texts.counted_hourly) } }
        }
        (pages(around, page))
    }
}

fn search_fields(around: AdminChrome<'_>, page: PeoplePage<'_>) -> Markup {
    let texts = around.chrome.texts;
    let SearchedFor { typed, role, state } = page.asked;
    html! {
        div .field {
            label for="q" { (texts.search_people) }
            input #q type="search" name="q" value=(typed) maxlength="256" dir="auto"
                autocapitalize="none" spellcheck="false" aria-describedby="q-hint";
            p #q-hint .hint { (texts.search_people_hint) }
        }
        @if !page.catalogue.roles.is_empty() || !role.is_empty() {
            div .field {
                label for="role" { (texts.roles) }
                select #role name="role" {
                    option value="" { (texts.any_role) }
                    @if !page.catalogue.roles.contains_key(role) && !role.is_empty() {
                        option value=(role) selected { (role) }
                    }
                    @for name in page.catalogue.roles.keys() {
                        option value=(name) selected[name == role] {
                            (role_name(around, page.catalogue, name))
                        }
                    }
                }
            }
        }
        div .field {
            label for="state" { (texts.state) }
            select #state name="state" {
                option value="" { (texts.any_state) }
                @for (name, words) in states(texts) {
                    option value=(name) selected[name == state] { (words) }
                }
            }
        }
    }
}

/// What a role is called: as it is registered, else by its name.
pub(super) fn role_name<'a>(
    around: AdminChrome<'a>,
    catalogue: &'a Catalogue,
    role: &'a str,
) -> &'a str {
    let registered = catalogue.roles.get(role);
    registered.map_or(role, |registered| {
        around.chrome.texts.language.of(&registered.display_name)
    })
}

fn table(around: AdminChrome<'_>, page: PeoplePage<'_>) -> Markup {
    let texts = around.chrome.texts;
    let name = texts.standard_claim("name").unwrap_or(texts.your_name);
    let has_tenants = !page.catalogue.tenants.is_empty();
    html! {
        table .people {
            thead {
                tr {
                    th scope="col" { (name) }
                    th scope="col" { (texts.username) }
                    th scope="col" { (texts.email_address) }
                    @if has_tenants { th scope="col" { (texts.organisation) } }
                    th scope="col" { (texts.roles) }
                    th scope="col" {
                        @if page.is_dated { (texts.since) } @else { (texts.last_sign_in) }
                    }
                    th scope="col" { (texts.state) }
                }
            }
            tbody { @for person in page.people { (row(around, page, person)) } }
        }
    }
}

fn row(around: AdminChrome<'_>, page: PeoplePage<'_>, person: &ListedPerson) -> Markup {
    let texts = around.chrome.texts;
    let user = &person.found.user;
    let roles = roles_of(&user.claims);
    let has_tenants = !page.catalogue.tenants.is_empty();
    let lacks_factor =
        user.enabled && user.password_hash.is_some() && user.strongest_acr == Strength::SignedIn;
    html! {
        tr {
            th scope="row" {
                @if page.has_ticks && person.may_be_changed {
                    input type="checkbox" name="person" value=(user.sub) aria-label=(user.called());
                }
                a href=(around.address(&page_of(user))) { bdi { (user.called()) } }
            }
            td { @if let Some(username) = &user.username { bdi { (username) } } }
            td { @if let Some(address) = stored_address(&user.claims) { bdi { (address) } } }
            @if has_tenants {
                td {
                    @if let Some(tenant) = &user.tenant {
                        bdi { (page.catalogue.tenant_name(tenant.as_str())) }
                    }
                }
            }
            td {
                @for (index, role) in roles.iter().enumerate() {
                    @if index > 0 { ", " }
                    bdi { (role_name(around, page.catalogue, role)) }
                }
            }
            td {
                @if page.is_dated {
                    @match person.since {
                        Some(moment) => (at(texts, Template("{}"), moment)),
                        None => (texts.since_before),
                    }
                } @else if let Some(day) = person.used_on {
                    (on_day(texts, Template("{}"), day))
                }
            }
            td {
                @if !user.enabled {
                    span .badge { (texts.disabled) }
                } @else if page.locked_out.contains(&user.sub) {
                    span .badge .warning { (texts.locked_out) }
                } @else if person.is_invited {
                    span .badge { (texts.invited) }
                } @else if lacks_factor {
                    span .badge .warning { (texts.no_second_factor) }
                }
            }
        }
    }
}

/// The ways to the pages before and behind this one.
fn pages(around: AdminChrome<'_>, page: PeoplePage<'_>) -> Markup {
    let texts = around.chrome.texts;
    let ways = [
        (page.previous, "before", texts.previous_page),
        (page.next, "after", texts.next_page),
    ];
    let address = |cursor: &str, sub: &Subject| {
        let SearchedFor { typed, role, state } = page.asked;
        let mut query = form_urlencoded::Serializer::new(format!("{}?", page.page));
        for (name, value) in [("q", typed), ("role", role), ("state", state)] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        around.address(&query.append_pair(cursor, sub.as_str()).finish())
    };
    html! {
        @if page.previous.is_some() || page.next.is_some() {
            nav .pages {
                @for (sub, cursor, words) in ways {
                    @if let Some(sub) = sub {
                        a .button href=(address(cursor, sub)) { (words) }
                    }
                }
            }
        }
    }
}

/// The roles that can be given, those ticked that somebody has. The choices post `role`, and with
/// it as `offered` what there was to choose from.
pub(super) fn role_choices(
    around: AdminChrome<'_>,
    catalogue: &Catalogue,
    given: &[String],
    had: &[impl AsRef<str>],
) -> Markup {
    let texts = around.chrome.texts;
    html! {
        @if !given.is_empty() {
            fieldset {
                legend { (texts.roles) }
                @for role in given { (hidden("offered", role)) }
                ul .scopes {
                    @for (index, role) in given.iter().enumerate() {
                        @let id = format!("role-{index}");
                        li {
                            div .choice {
                                input id=(id) type="checkbox" name="role" value=(role)
                                    checked[had.iter().any(|had| had.as_ref() == role)];
                                div {
                                    label for=(id) { bdi { (role_name(around, catalogue, role)) } }
                                    (role_description(around, catalogue, role))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn role_description(
    around: AdminChrome<'_>,
    catalogue: &Catalogue,
    role: &str,
) -> Markup {
    let registered = catalogue.roles.get(role);
    let description = registered.map_or("", |registered| {
        around.chrome.texts.language.of(&registered.description)
    });
    html! { @if !description.is_empty() { p .hint { bdi { (description) } } } }
}

pub(super) fn name_field(texts: &Texts, name: &str) -> Markup {
    html! {
        div .field {
            label for="name" { (texts.standard_claim("name").unwrap_or(texts.your_name)) }
            input #name type="text" name="name" value=(name) maxlength="200" autocomplete="off"
                dir="auto";
        }
    }
}

/// Somebody who is to be invited.
#[derive(Clone, Copy, Debug, Default)]
pub struct Invited<'a> {
    pub username: &'a str,
    pub name: &'a str,
    pub address: &'a str,
    pub tenant: &'a str,
    pub roles: &'a [&'a str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InviteProblem {
    Account(JoinProblem),
    /// A role was ticked that is not there any more.
    RoleGone,
}

/// What somebody can be invited with.
#[derive(Clone, Copy, Debug)]
pub struct Invitation<'a> {
    pub catalogue: &'a Catalogue,
    /// An empty name stands for no tenant.
    pub tenants: &'a [&'a str],
    pub given_roles: &'a [String],
    pub by_letter: bool,
}

/// The page that invites somebody. Its form posts `form_token`, `username`, `name`, `address`,
/// `tenant`, and any number of `role` and `offered`.
pub fn invite_page(
    around: AdminChrome<'_>,
    form: PageForm<'_>,
    invitation: Invitation<'_>,
    typed: Invited<'_>,
    problem: Option<InviteProblem>,
) -> Markup {
    let texts = around.chrome.texts;
    let told = problem.map(|problem| match problem {
        InviteProblem::Account(problem) => problem.told(texts),
        InviteProblem::RoleGone => (Some("role-0"), texts.role_gone.to_owned()),
    });
    let wrong = told.as_ref().and_then(|(field, _)| *field);
    let is_wrong = |field: &str| (wrong == Some(field)).then_some("true");
    let described = |field: &str| is_wrong(field).map(|_| "problem");
    let card = html! {
        p .lead { (invite_hint(texts, invitation.by_letter)) }
        @if let Some((field, sentence)) = &told {
            (field_problem(texts, field.or(Some("username")), sentence))
        }
        (form.of(&html! {
            div .field {
                label for="username" { (texts.username) }
                input #username type="text" name="username" value=(typed.username) required
                    maxlength="256" autocomplete="off" autocapitalize="none" spellcheck="false"
                    dir="auto" aria-invalid=[is_wrong("username")]
                    aria-describedby=[described("username")];
            }
            (name_field(texts, typed.name))
            div .field {
                label for="new-address" { (texts.email_address) }
                input #new-address type="email" name="address" value=(typed.address) maxlength="254"
                    required[invitation.by_letter] autocomplete="off" dir="auto"
                    aria-invalid=[is_wrong("new-address")]
                    aria-describedby=[described("new-address")];
            }
            (tenant_field(texts, invitation, typed.tenant))
            (role_choices(
                around,
                invitation.catalogue,
                invitation.given_roles,
                typed.roles,
            ))
            (submit(texts.invite))
        }))
    };
    let several = html! {
        a .button href=(around.address("invite-several")) { (texts.invite_several) }
    };
    around.document_beside(problem.is_some(), texts.invite, &several, &card)
}

/// How somebody gets their first link.
pub(super) fn invite_hint(texts: &Texts, by_letter: bool) -> &'static str {
    if by_letter {
        texts.invite_by_letter
    } else {
        texts.invite_by_link
    }
}

pub(super) fn tenant_field(texts: &Texts, invitation: Invitation<'_>, chosen: &str) -> Markup {
    html! {
        @if invitation.tenants.len() > 1 {
            div .field {
                label for="tenant" { (texts.organisation) }
                select #tenant name="tenant" {
                    @for tenant in invitation.tenants {
                        option value=(tenant) selected[*tenant == chosen] {
                            @if tenant.is_empty() { (texts.none) } @else {
                                (invitation.catalogue.tenant_name(tenant))
                            }
                        }
                    }
                }
            }
        }
    }
}
