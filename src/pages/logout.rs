//! Signing out: the question, and that it is done.

use maud::{Markup, html};

use crate::pages::frame::{Account, Chrome, Client, about, about_account, client_logo, document, web_link};

/// Everything the sign-out question shows.
#[derive(Clone, Copy, Debug)]
pub struct LogoutView<'a> {
    /// The frame.
    pub chrome: Chrome<'a>,
    /// Where the form goes.
    pub action: &'a str,
    /// Field `form_token`.
    pub form_token: &'a str,
    /// Who is signed in.
    pub account: Account<'a>,
    /// The application that sent the person here, where that is known.
    pub client: Option<Client<'a>>,
    /// The session changed since the page was drawn: it is drawn again and says so.
    pub drawn_again: bool,
}

/// Everything the page after a sign-out shows.
#[derive(Clone, Copy, Debug)]
pub struct SignedOutView<'a> {
    /// The frame.
    pub chrome: Chrome<'a>,
    /// The application to go back to.
    pub back: Option<BackLink<'a>>,
}

/// A link back to an application.
#[derive(Clone, Copy, Debug)]
pub struct BackLink<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where the link leads; shown as a link only if it is an address on the web.
    pub uri: &'a str,
}

/// Asks whether to sign out. The form posts `form_token` and `decision` as `sign_out` or `stay`.
pub fn page(view: &LogoutView<'_>) -> Markup {
    let texts = view.chrome.texts;
    let title = match view.drawn_again {
        true => texts.error_in_title.fill(texts.sign_out_title),
        false => texts.sign_out_title.to_owned(),
    };
    document(
        view.chrome,
        &title,
        html! {
            @if let Some(client) = view.client { (client_logo(&client)) }
            h1 { (texts.sign_out_title) }
            @if let Some(client) = view.client {
                p .lead { (about(texts.client_asks_to_sign_out, client.name)) }
            }
            @if view.drawn_again { div .notice .problem role="alert" { p { (texts.session_changed) } } }
            p { (about_account(texts.signed_in_as, view.account)) }
            p .hint { (texts.sign_out_hint) }
            form method="post" action=(view.action) {
                input type="hidden" name="form_token" value=(view.form_token);
                div .actions {
                    button .primary type="submit" name="decision" value="sign_out" { (texts.sign_out) }
                    button type="submit" name="decision" value="stay" { (texts.stay_signed_in) }
                }
            }
        },
    )
}

/// Says that the sign-out is done.
pub fn signed_out_page(view: &SignedOutView<'_>) -> Markup {
    let texts = view.chrome.texts;
    document(
        view.chrome,
        texts.signed_out_title,
        html! {
            h1 { (texts.signed_out_title) }
            p { (texts.signed_out_hint) }
            @if let Some(back) = view.back {
                @if let Some(uri) = web_link(Some(back.uri)) {
                    div .actions { a .button href=(uri) rel="noreferrer" { (about(texts.back_to_client, back.name)) } }
                }
            }
        },
    )
}
