//! People: finding them, and inviting somebody.

use std::collections::BTreeSet;
use std::iter;
use std::ops::Range;

use maud::{Markup, html};

use crate::pages::admin::{AdminChrome, choice, table, typed_field};
use crate::statements::admin_people::Person;
use crate::statements::people_list::PeopleAsked;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::registration::administration::roles_of;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::strength::Strength;
use gatepost_server::pages::frame::hidden;
use gatepost_server::pages::moment::{at, at_end, on_day};
use gatepost_server::pages::texts::{Template, Texts};
use gatepost_store::users::UserRow;

/// One page of people, and what was asked for.
pub struct PeoplePage<'a> {
    /// Where it stands, below `/admin/`.
    pub page: &'a str,
    pub asked: PeopleAsked<'a>,
    /// Whether it is the page that searches. Other pages say since when people have the role, in
    /// the place of their last sign-in.
    pub is_search: bool,
    /// Whether those who may be changed can be ticked. They post `person`.
    pub has_ticks: bool,
    pub people: Vec<Person>,
    /// Those of them whom too many wrong passwords keep from signing in.
    pub locked_out: BTreeSet<Subject>,
    /// Ends that come so soon are told.
    pub soon: Range<Instant>,
    /// How many people are what was asked for; `None` where it would take a look at everybody.
    pub count: Option<String>,
    /// Whether there are more people with these words, whom no further page shows.
    pub is_cut: bool,
    /// The subjects behind which and before which there are more.
    pub next: Option<Subject>,
    pub previous: Option<Subject>,
}

/// As many people are counted exactly.
pub const MOST_COUNTED: i64 = 1_000;

/// A count that went one further than is counted exactly, at least.
pub fn counted(texts: &Texts, count: i64) -> String {
    if count > MOST_COUNTED {
        texts.more_than.fill(&MOST_COUNTED.to_string())
    } else {
        count.to_string()
    }
}

/// The state of those whom too many wrong passwords keep from signing in.
pub const LOCKED: &str = "locked";

/// The page that lists people. Its form asks for `q`, `role` and `state`; `after` and `before` are
/// subjects.
pub fn people_page(around: AdminChrome<'_>, page: &PeoplePage<'_>) -> Markup {
    let texts = around.texts;
    let invite = html! { a .button href=(around.address("invite")) { (texts.invite) } };
    let card = html! {
        (around.search_form("people", &search_fields(around, page)))
        (listing(around, page))
    };
    around.document_beside(false, texts.people, &invite, &card)
}

/// How many they are, the people of this page, and the ways to others.
pub fn listing(around: AdminChrome<'_>, page: &PeoplePage<'_>) -> Markup {
    let texts = around.texts;
    html! {
        @if let Some(count) = &page.count { p .hint role="status" { (texts.found.fill(count)) } }
        @if page.people.is_empty() {
            p role="status" { (texts.nobody_found) }
        } @else {
            (people_table(around, page))
            @if page.is_search { p .hint { (texts.counted_hourly) } }
        }
        @if page.is_cut { p .hint { (texts.not_all_found) } }
        (pages(around, page))
    }
}

fn search_fields(around: AdminChrome<'_>, page: &PeoplePage<'_>) -> Markup {
    let texts = around.texts;
    let states = [
        ("", texts.any_state),
        ("invited", texts.invited),
        ("disabled", texts.disabled),
        ("no-second-factor", texts.no_second_factor),
        ("not-signed-in", texts.not_signed_in),
        (LOCKED, texts.locked_out),
    ];
    let chosen = page.asked.roles.and_then(<[_]>::first).copied();
    let known = around.catalogue.roles.keys().chain(around.roles_to_give);
    let roles: BTreeSet<&str> = known.map(String::as_str).chain(chosen).collect();
    let has_roles = !roles.is_empty();
    let named = |role| (role, around.role_name(role));
    let roles = iter::once(("", texts.any_role)).chain(roles.into_iter().map(named));
    html! {
        (typed_field("q", texts.search_people, page.asked.typed, texts.search_people_hint))
        @if has_roles {
            (choice("role", texts.roles, chosen.unwrap_or_default(), roles))
        }
        (choice("state", texts.state, page.asked.state, states))
    }
}

fn people_table(around: AdminChrome<'_>, page: &PeoplePage<'_>) -> Markup {
    let texts = around.texts;
    let name = texts.standard_claim("name").unwrap_or(texts.your_name);
    let mut heads = vec![name, texts.username, texts.email_address];
    if !around.catalogue.tenants.is_empty() {
        heads.push(texts.organisation);
    }
    let last_use = if page.is_search {
        texts.last_sign_in
    } else {
        texts.since
    };
    heads.extend([texts.roles, last_use, texts.state]);
    let rows = html! { @for person in &page.people { (row(around, page, person)) } };
    table(&heads, &rows)
}

fn row(around: AdminChrome<'_>, page: &PeoplePage<'_>, person: &Person) -> Markup {
    let texts = around.texts;
    let user = &person.found.user;
    let has_tenants = !around.catalogue.tenants.is_empty();
    let lacks_factor =
        user.may_act() && user.password_hash.is_some() && user.strongest_acr == Strength::SignedIn;
    html! {
        tr {
            th scope="row" {
                @if page.has_ticks && person.may_be_changed {
                    input type="checkbox" name="person" value=(user.sub) aria-label=(user.called());
                }
                (around.link_to("people", user.sub.as_str(), user.called()))
            }
            td { @if let Some(username) = &user.username { bdi { (username) } } }
            td { @if let Some(address) = stored_address(&user.claims) { bdi { (address) } } }
            @if has_tenants {
                td {
                    @if let Some(tenant) = &user.tenant {
                        bdi { (around.catalogue.tenant_name(tenant.as_str())) }
                    }
                }
            }
            td { (roles_had(around, user)) }
            @if page.is_search {
                td data-head=(texts.last_sign_in) {
                    @if let Some(day) = person.used_on { (on_day(texts, Template("{}"), day)) }
                }
            } @else {
                td data-head=(texts.since) {
                    @match person.since {
                        Some(moment) => (at(texts, Template("{}"), moment)),
                        None => (texts.since_before),
                    }
                }
            }
            td {
                @if user.may_act() && page.locked_out.contains(&user.sub) {
                    span .badge .warning { (texts.locked_out) }
                } @else if let Some(state) = unusual_state(texts, person) {
                    span .badge { (state) }
                } @else if lacks_factor {
                    span .badge .warning { (texts.no_second_factor) }
                }
                @if let Some(end) = user.valid_until && page.soon.contains(&end) {
                    " " span .badge .warning { (at_end(texts, texts.ends_at, end)) }
                }
            }
        }
    }
}

/// That somebody is not there, or not yet.
pub fn unusual_state(texts: &Texts, person: &Person) -> Option<&'static str> {
    let user = &person.found.user;
    let states = [
        (!user.enabled, texts.disabled),
        (user.has_ended, texts.has_ended),
        (person.is_new(), texts.invited),
    ];
    let (_, state) = states.into_iter().find(|(is_so, _)| *is_so)?;
    Some(state)
}

/// The names of somebody's roles.
pub fn roles_had(around: AdminChrome<'_>, user: &UserRow) -> Markup {
    html! {
        @for (index, role) in roles_of(&user.claims).into_iter().enumerate() {
            @if index > 0 { ", " }
            bdi { (around.role_name(role)) }
        }
    }
}

/// The ways to the pages before and behind this one.
fn pages(around: AdminChrome<'_>, page: &PeoplePage<'_>) -> Markup {
    let texts = around.texts;
    let ways = [
        (&page.previous, "before", texts.previous_page),
        (&page.next, "after", texts.next_page),
    ];
    let address = |cursor: &str, sub: &Subject| {
        let PeopleAsked { typed, state, .. } = page.asked;
        let mut query = vec![(cursor, sub.as_str())];
        if page.is_search {
            let roles = page.asked.roles.unwrap_or_default().iter();
            query.extend([("q", typed), ("state", state)]);
            query.extend(roles.map(|role| ("role", *role)));
        }
        around.address_with(page.page, &query)
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
pub fn role_choices(around: AdminChrome<'_>, had: &[String]) -> Markup {
    let given = around.roles_to_give;
    html! {
        @if !given.is_empty() {
            fieldset {
                legend { (around.texts.roles) }
                @for role in given { (hidden("offered", role)) }
                ul .scopes {
                    @for (index, role) in given.iter().enumerate() {
                        @let id = format!("role-{index}");
                        li {
                            div .choice {
                                input id=(id) type="checkbox" name="role" value=(role)
                                    checked[had.contains(role)];
                                div {
                                    label for=(id) { bdi { (around.role_name(role)) } }
                                    (around.role_description(role))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
