//! Signing out: the question, and that it is done.

use maud::{Markup, html};

use crate::pages::frame::{Account, Chrome, Client, about, about_account, client_logo, document};

#[derive(Clone, Copy, Debug)]
pub struct LogoutView<'a> {
    pub chrome: Chrome<'a>,
    pub action: &'a str,
    pub form_token: &'a str,
    pub account: Account<'a>,
    pub client: Option<Client<'a>>,
    /// The session changed since the page was drawn: it is drawn again and says so.
    pub drawn_again: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct SignedOutView<'a> {
    pub chrome: Chrome<'a>,
    pub back: Option<BackLink<'a>>,
    /// The application named an address to go back to, which nobody registered.
    pub unknown_way_back: bool,
    pub frames: &'a [ClientFrame<'a>],
    /// The identity provider that they go on to first, by itself, to be signed out there as well.
    pub provider: Option<BackLink<'a>>,
    /// Whether the page goes on to `back` by itself.
    pub goes_on: bool,
}

/// A page of an application, loaded unseen (OpenID Connect Front-Channel Logout §2).
#[derive(Clone, Copy, Debug)]
pub struct ClientFrame<'a> {
    pub client_name: &'a str,
    pub address: &'a str,
}

#[derive(Clone, Copy, Debug)]
pub struct BackLink<'a> {
    pub name: &'a str,
    /// Where the link leads: an address that the application registered and the request matched, or the provider's own.
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

pub fn signed_out_page(view: &SignedOutView<'_>) -> Markup {
    let texts = view.chrome.texts;
    document(
        view.chrome,
        texts.signed_out_title,
        html! {
            h1 { (texts.signed_out_title) }
            @if !view.frames.is_empty() { p { (texts.applications_sign_out) } }
            @if view.unknown_way_back { p { (texts.unknown_way_back) } }
            p { (texts.signed_out_hint) }
            @for frame in view.frames {
                iframe src=(frame.address) title=(texts.signing_out_of.fill(frame.client_name)) hidden {}
            }
            @if let Some(provider) = view.provider {
                p { (about(texts.going_on_to_provider, provider.name)) }
                div .actions {
                    a .button href=(provider.uri) rel="noreferrer" { (about(texts.sign_out_at_provider, provider.name)) }
                }
            } @else if let Some(back) = view.back {
                @if view.goes_on { p { (about(texts.going_back_to, back.name)) } }
                div .actions { a .button href=(back.uri) rel="noreferrer" { (about(texts.back_to_client, back.name)) } }
            }
        },
    )
}
