//! The start page: the applications that somebody may open, and their own pages.

use std::sync::Arc;

use maud::{Markup, html};

use crate::pages::frame::{Account, Chrome, about_account, client_logo, headed, web_link};
use crate::registry::RegisteredClient;

/// Each application with where it begins. Has links alone, no form. `own` gives the address of
/// another page of ours.
pub fn page(
    chrome: Chrome<'_>,
    account: Account<'_>,
    applications: &[(Arc<RegisteredClient>, Option<String>)],
    is_administrator: bool,
    own: impl Fn(&str) -> String,
) -> Markup {
    let texts = chrome.texts;
    let card = html! {
        p .lead { (about_account(texts.signed_in_as, account)) }
        @if applications.is_empty() { p { (texts.start_empty) } }
        ul .applications {
            @for (client, begins_at) in applications {
                @let name = chrome.name_of(&client.client);
                li {
                    a href=[begins_at.as_deref().and_then(web_link)] {
                        @if client.client.links.logo_uri.is_none() {
                            span .initial aria-hidden="true" { (name) }
                        }
                        (client_logo(chrome, &client.client))
                        bdi { (name) }
                    }
                }
            }
        }
        ul .links {
            li { a href=(own("/account")) { (texts.account_title) } }
            @if is_administrator {
                li { a href=(own("/admin")) { (texts.look_after_people) } }
            }
            li { a href=(own("/logout")) { (texts.sign_out) } }
        }
    };
    headed(chrome, false, texts.start_title, &card)
}
