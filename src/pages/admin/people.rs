//! People: finding them.

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::pages::admin::AdminChrome;
use crate::protocol::login::letters::stored_address;
use crate::store::users::UserRow;

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
    format!(
        "people/{}",
        utf8_percent_encode(user.sub.as_str(), NON_ALPHANUMERIC)
    )
}

/// What a person is called: the name, else the user name or the identifier.
pub fn name_of(user: &UserRow) -> &str {
    let name = user.claims.get("name").and_then(Value::as_str);
    let name = name.filter(|name| !name.trim().is_empty());
    name.unwrap_or_else(|| user.designation())
}

/// The page that finds people. Its form asks for `q`.
pub fn search_page(around: AdminChrome<'_>, search: Search<'_>) -> Markup {
    let texts = around.chrome.texts;
    let is_full = i64::try_from(search.found.len()).is_ok_and(|found| found >= search.most);
    let card = html! {
        form method="get" action={ (around.chrome.base_path) "/admin/people" } role="search" {
            @if !around.ui_locales.is_empty() {
                input type="hidden" name="ui_locales" value=(texts.language.tag());
            }
            div .field {
                label for="q" { (texts.search_people) }
                input #q type="search" name="q" value=(search.typed) maxlength="256" dir="auto"
                    autocapitalize="none" spellcheck="false";
            }
            div .actions { button .primary type="submit" { (texts.search) } }
        }
        @if search.found.is_empty() {
            p role="status" { (texts.nobody_found) }
        } @else {
            ul .items {
                @for user in search.found { li { (found(around, user)) } }
            }
            @if is_full { p .hint { (texts.most_shown.fill(&search.most.to_string())) } }
        }
        div .actions { a .button href=(around.address("invite")) { (texts.invite) } }
    };
    around.document(false, texts.people, &card)
}

fn found(around: AdminChrome<'_>, user: &UserRow) -> Markup {
    let texts = around.chrome.texts;
    html! {
        p {
            a href=(around.address(&page_of(user))) { bdi { (name_of(user)) } }
            @if !user.enabled { " " span .badge { (texts.disabled) } }
        }
        p .hint {
            bdi { (user.designation()) }
            @if let Some(address) = stored_address(&user.claims) { br; bdi { (address) } }
            @if let Some(tenant) = &user.tenant { br; bdi { (tenant) } }
        }
    }
}
