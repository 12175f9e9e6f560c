//! Signing out: the question, and that it is done; and the page that tells clients' scripts of it.

use std::sync::Arc;

use maud::{DOCTYPE, Markup, html};

use crate::pages::frame::{
    Account, Chrome, PageForm, about, about_account, back_to, button, headed, primary_button,
    session_changed,
};
use crate::registry::RegisteredClient;
use gatepost_protocol::words::client::Client;

/// Asks whether to sign out. The form posts `form_token` and `decision` as `sign_out` or `stay`. No
/// account is named to whoever does not show the key of the session.
pub fn page(
    form: &PageForm<'_>,
    account: Option<Account<'_>>,
    client: Option<&Client>,
    drawn_again: bool,
) -> Markup {
    let texts = form.chrome.texts;
    let card = html! {
        @if let Some(client) = client {
            p .lead { (about(texts.client_asks_to_sign_out, form.chrome.name_of(client))) }
        }
        (session_changed(texts, drawn_again))
        @if let Some(account) = account {
            p { (about_account(texts.signed_in_as, account)) }
        }
        p .hint { (texts.sign_out_hint) }
        (form.of_buttons(&html! {
            (primary_button("sign_out", texts.sign_out))
            (button("stay", texts.stay_signed_in))
        }))
    };
    headed(form.chrome, drawn_again, texts.sign_out_title, &card)
}

/// How a sign-out ends for the browser.
#[derive(Default)]
pub struct SignedOut {
    /// What the page loads unseen: the clients' pages that end their part of the session, and where
    /// (OpenID Connect Front-Channel Logout §2).
    pub frames: Vec<(Arc<RegisteredClient>, String)>,
    /// The identity provider that they go on to before they go back to the client, to be signed out
    /// there as well: what it is called, and where.
    pub upstream: Option<(String, String)>,
    /// Without waiting for the person, where there is somewhere to go.
    pub at_once: bool,
}

/// Says that it is done. `back` leads to an address that the client registered and the request
/// matched; `unknown_way_back` says that the request named one that is not registered.
pub fn signed_out_page(
    chrome: Chrome<'_>,
    ended: &SignedOut,
    back: Option<(&Client, &str)>,
    unknown_way_back: bool,
) -> Markup {
    let texts = chrome.texts;
    let card = html! {
        @if !ended.frames.is_empty() { p { (texts.applications_sign_out) } }
        @if unknown_way_back { p { (texts.unknown_way_back) } }
        p { (texts.signed_out_hint) }
        @for (client, address) in &ended.frames {
            iframe src=(address)
                title=(texts.signing_out_of.fill(chrome.name_of(&client.client))) hidden {}
        }
        (way_on(chrome, ended, back))
    };
    headed(chrome, false, texts.signed_out_title, &card)
}

/// To the provider first, else back to the client.
fn way_on(chrome: Chrome<'_>, ended: &SignedOut, back: Option<(&Client, &str)>) -> Markup {
    let texts = chrome.texts;
    html! {
        @if let Some((provider, address)) = &ended.upstream {
            p { (about(texts.going_on_to_provider, provider)) }
            div .actions {
                a .button href=(address) rel="noreferrer" {
                    (about(texts.sign_out_at_provider, provider))
                }
            }
        } @else if let Some((client, uri)) = back {
            @if ended.at_once { p { (about(texts.going_back_to, chrome.name_of(client))) } }
            (back_to(chrome, client, uri))
        }
    }
}

/// The page that clients frame to watch the browser's sign-in (OpenID Connect Session Management
/// §3.3): nothing to see, one script. `cookie` is the name of the cookie that holds the browser's
/// state, `script` the script's address.
pub fn check_session_page(cookie: &str, script: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="robots" content="noindex";
                title { "Check session" }
            }
            body data-cookie=(cookie) { script src=(script) {} }
        }
    }
}
