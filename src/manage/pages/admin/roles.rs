//! Roles: which there are, who has one, what it opens; taking and deleting it.

use maud::{Markup, html};

use crate::pages::admin::people::{PeoplePage, counted, listing};
use crate::pages::admin::{AdminChrome, Told, notice};
use crate::statements::roles::{ListedRole, MOST_OPENED, Opened, PAGE};
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_server::pages::frame::{PageForm, about, button};
use gatepost_server::pages::moment::on_day;

/// The page that lists roles.
pub fn list_page(around: AdminChrome<'_>, roles: &[ListedRole], told: Option<&Told>) -> Markup {
    let texts = around.texts;
    let card = html! {
        (notice(texts, told))
        ul .items {
            @for ListedRole { name, people } in roles {
                li {
                    (around.link_to("roles", name, around.role_name(name)))
                    @if !around.catalogue.roles.contains_key(name) {
                        " " span .badge { (texts.not_registered) }
                    }
                    (around.role_description(name))
                    p .hint { (texts.people_count.fill(&counted(texts, *people))) }
                }
            }
        }
        (around.next_page("roles", roles.get(PAGE - 1).map(|last| last.name.as_str())))
    };
    around.document(false, texts.roles, &card)
}

/// Which of the applications ask for the role.
pub fn opened_by(around: AdminChrome<'_>, opened: &[Opened], role: &str) -> Markup {
    let texts = around.texts;
    let is_asking = |one: &&Opened| one.role.as_deref() == Some(role);
    let asking = Vec::from_iter(opened.iter().filter(is_asking));
    html! {
        @if !asking.is_empty() {
            p .hint { (texts.opens) }
        } @else if opened.len() < MOST_OPENED {
            p .hint { (texts.opens_nothing) }
        }
        ul .opened {
            @for one in asking {
                li {
                    @let client_id = one.client_id.as_ref().map_or("", ClientId::as_str);
                    @let name = one.name.as_deref().unwrap_or_default();
                    (around.link_to("applications", client_id, name))
                    @if let Some(day) = one.used_on {
                        " " (on_day(texts, texts.last_used_on, day))
                    }
                }
            }
        }
    }
}

/// A role, as it is stored.
#[derive(Clone, Copy)]
pub struct RoleView<'a> {
    pub role: &'a str,
    pub opened: &'a [Opened],
    /// Who has it.
    pub people: &'a PeoplePage<'a>,
    /// Whether the administrator may give it.
    pub is_given: bool,
    /// Whether they are offered to delete it.
    pub may_be_deleted: bool,
    pub told: Option<&'a Told>,
}

/// The page of a role. Its forms post `form_token`, and `decision`: `take` with any number of
/// `person`, or `delete`.
pub fn role_page(around: AdminChrome<'_>, form: &PageForm<'_>, view: RoleView<'_>) -> Markup {
    let texts = around.texts;
    let RoleView { role, people, .. } = view;
    let name = around.role_name(role);
    let is_there = view.is_given || !people.people.is_empty();
    let may_be_taken = people.has_ticks && people.people.iter().any(|person| person.may_be_changed);
    let card = html! {
        (notice(texts, view.told))
        (around.role_description(role))
        (opened_by(around, view.opened, role))
        h2 { (texts.members) }
        @if is_there { (form.of(&html! {
            (listing(around, people))
            @if may_be_taken { div .actions { (button("take", texts.take_role)) } }
        })) } @else { p role="status" { (texts.no_such_role) } }
        @if view.is_given {
            p .hint { a href=(around.address("people")) { (texts.give_role_hint) } }
        }
        @if view.may_be_deleted {
            details {
                summary { (texts.delete_role) }
                p { (about(texts.ask_delete_role, name)) " " (texts.delete_role_hint) }
                (form.of_buttons(&html! {
                    button .danger type="submit" name="decision" value="delete" {
                        (texts.delete_role)
                    }
                }))
            }
        }
    };
    let is_error = view.told.is_some_and(Result::is_err);
    around.document(is_error, name, &card)
}
