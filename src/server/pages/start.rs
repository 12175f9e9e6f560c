//! The start page: the applications that somebody may open, and their own pages.

use std::sync::Arc;

use maud::{Markup, html};

use crate::pages::frame::{Account, Chrome, about_account, client_logo, headed, web_link};
use crate::registry::RegisteredClient;

#[derive(Clone, Copy, Debug)]
pub struct StartPage<'a> {
    pub account: Account<'a>,
    pub is_administrator: bool,
    /// Each with where it begins.
    pub applications: &'a [(Arc<RegisteredClient>, Option<String>)],
}

/// Has links alone, no form. `address` gives that of another page of ours.
pub fn page(chrome: Chrome<'_>, shown: StartPage<'_>, address: impl Fn(&str) -> String) -> Markup {
    let texts = chrome.texts;
    let card = html! {
        p .lead { (about_account(texts.signed_in_as, shown.account)) }
        @if shown.applications.is_empty() { p { (texts.start_empty) } }
        ul .applications {
            @for (client, begins_at) in shown.applications {
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
            li { a href=(address("/account")) { (texts.account_title) } }
            @if shown.is_administrator {
                li { a href=(address("/admin")) { (texts.look_after_people) } }
            }
            li { a href=(address("/logout")) { (texts.sign_out) } }
        }
    };
    headed(chrome, false, texts.start_title, &card)
}
