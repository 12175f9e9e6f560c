//! People: finding them, and inviting somebody.

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::pages::admin::AdminChrome;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_server::pages::frame::{PageForm, button_to, field_problem, submit};
use gatepost_server::pages::join::JoinProblem;
use gatepost_server::pages::texts::Texts;
use gatepost_store::users::UserRow;

/// What an administrator looks for, and who was found.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    pub typed: &'a str,
    pub found: &'a [UserRow],
    /// More are not shown.
    pub most: i64,
}

/// The page of a person, below `/admin/`.
pub fn page_of(user: &UserRow) -> String {
    let sub = utf8_percent_encode(user.sub.as_str(), NON_ALPHANUMERIC);
    format!("people/{sub}")
}

/// The page that finds people. Its form asks for `q`.
pub fn search_page(around: AdminChrome<'_>, search: Search<'_>) -> Markup {
    let texts = around.chrome.texts;
    let is_full = search.found.len() as i64 >= search.most;
    let card = html! {
        (around.search_form("people", &html! {
            div .field {
                label for="q" { (texts.search_people) }
                input #q type="search" name="q" value=(search.typed) maxlength="256" dir="auto"
                    autocapitalize="none" spellcheck="false";
            }
        }))
        @if search.found.is_empty() {
            p role="status" { (texts.nobody_found) }
        } @else {
            ul .items {
                @for user in search.found { li { (found(around, user)) } }
            }
            @if is_full { p .hint { (texts.most_shown.fill(&search.most.to_string())) } }
        }
        (button_to(&around.address("invite"), texts.invite))
    };
    around.document(false, texts.people, &card)
}

fn found(around: AdminChrome<'_>, user: &UserRow) -> Markup {
    let texts = around.chrome.texts;
    html! {
        p {
            a href=(around.address(&page_of(user))) { bdi { (user.called()) } }
            @if !user.enabled { " " span .badge { (texts.disabled) } }
        }
        p .hint {
            bdi { (user.designation()) }
            @if let Some(address) = stored_address(&user.claims) { br; bdi { (address) } }
            @if let Some(tenant) = &user.tenant { br; bdi { (tenant) } }
        }
    }
}

/// The roles that can be given, those ticked that somebody has. The choices post `role`.
pub(super) fn role_choices(texts: &Texts, given: &[String], had: &[&str]) -> Markup {
    html! {
        @if !given.is_empty() {
            fieldset {
                legend { (texts.roles) }
                ul .scopes {
                    @for (index, role) in given.iter().enumerate() {
                        @let id = format!("role-{index}");
                        li {
                            div .choice {
                                input id=(id) type="checkbox" name="role" value=(role)
                                    checked[had.contains(&role.as_str())];
                                div { label for=(id) { bdi { (role) } } }
                            }
                        }
                    }
                }
            }
        }
    }
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
/// `tenant`, and any number of `role`.
pub fn invite_page(
    around: AdminChrome<'_>,
    form: PageForm<'_>,
    invitation: Invitation<'_>,
    typed: Invited<'_>,
    problem: Option<JoinProblem>,
) -> Markup {
    let texts = around.chrome.texts;
    let told = problem.map(|problem| problem.told(texts));
    let wrong = told.as_ref().and_then(|(field, _)| *field);
    let is_wrong = |field: &str| (wrong == Some(field)).then_some("true");
    let described = |field: &str| is_wrong(field).map(|_| "problem");
    let card = html! {
        p .lead {
            @if invitation.by_letter { (texts.invite_by_letter) } @else { (texts.invite_by_link) }
        }
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
            @if invitation.tenants.len() > 1 {
                div .field {
                    label for="tenant" { (texts.organisation) }
                    select #tenant name="tenant" {
                        @for tenant in invitation.tenants {
                            option value=(tenant) selected[*tenant == typed.tenant] {
                                @if tenant.is_empty() { (texts.none) } @else {
                                    (invitation.catalogue.tenant_name(tenant))
                                }
                            }
                        }
                    }
                }
            }
            (role_choices(texts, invitation.given_roles, typed.roles))
            (submit(texts.invite))
        }))
    };
    around.document(problem.is_some(), texts.invite, &card)
}
