//! What all pages share: the document around the card, its form, and how names and links from
//! outside are shown; and the page that is nothing more, which carries a response back.

use maud::{DOCTYPE, Markup, Render, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::config::Brand;
use crate::pages::icons::{WARNING, icon};
use crate::pages::texts::{Template, Texts};
use gatepost_protocol::words::client::Client;

/// The name under `/static/` of the operator's logo.
pub const BRAND_LOGO: &str = "brand-logo";

#[derive(Clone, Copy)]
pub struct Chrome<'a> {
    pub brand: &'a Brand,
    pub texts: &'a Texts,
    /// Path of the base URL without a trailing slash: empty, or as `/auth`.
    pub base_path: &'a str,
    /// Differs whenever a file under `static/` or the brand's colour differs: lets browsers keep
    /// them for long.
    pub assets_version: &'a str,
    pub request_id: &'a str,
    /// Characters that a new password must have.
    pub least_password: u32,
}

impl<'a> Chrome<'a> {
    /// What an application is called in the page's language.
    pub fn name_of(&self, client: &'a Client) -> &'a str {
        self.texts.language.of(&client.client_name)
    }
}

/// A form of ours: the page around it, where it goes, and the token that ties it to this browser.
#[derive(Clone)]
pub struct PageForm<'a> {
    pub chrome: Chrome<'a>,
    pub action: String,
    pub token: String,
}

impl PageForm<'_> {
    pub fn of(&self, fields: &Markup) -> Markup {
        html! { form method="post" action=(self.action) { (self.token()) (fields) } }
    }

    /// A form of nothing but buttons.
    pub fn of_buttons(&self, buttons: &Markup) -> Markup {
        self.of(&html! { div .actions { (buttons) } })
    }

    pub(crate) fn token(&self) -> Markup {
        hidden("form_token", &self.token)
    }
}

pub fn hidden(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}

/// A button that posts `decision`.
pub fn button(decision: &str, label: impl Render) -> Markup {
    html! { button type="submit" name="decision" value=(decision) { (label) } }
}

/// The same for what most people want.
pub fn primary_button(decision: &str, label: impl Render) -> Markup {
    html! { button .primary type="submit" name="decision" value=(decision) { (label) } }
}

/// The button of a form that has only one, and posts no decision.
pub fn submit(label: &str) -> Markup {
    html! { div .actions { button .primary type="submit" { (label) } } }
}

#[derive(Clone, Copy)]
pub struct Account<'a> {
    /// What they are called: the `name` claim, else the user name.
    pub name: &'a str,
    pub username: &'a str,
}

/// A whole page: head, brand, `card` as the main landmark, footer.
pub(crate) fn document(chrome: Chrome<'_>, title: &str, card: Markup) -> Markup {
    let masthead = html! { header .masthead { (brand_mark(chrome)) } };
    framed(chrome, title, &masthead, &card)
}

/// The same with another `header` above the card.
pub fn framed(chrome: Chrome<'_>, title: &str, header: &Markup, card: &Markup) -> Markup {
    let Chrome { brand, texts, .. } = chrome;
    let links = [
        (&brand.privacy_url, texts.privacy_policy),
        (&brand.terms_url, texts.terms_of_service),
    ];
    html! {
        (DOCTYPE)
        html lang=(texts.language.tag()) {
            head { (head(chrome, title)) }
            body {
                (header)
                main .card { (card) }
                @if let Some(list) = link_list(texts, links) {
                    footer { nav aria-label=(texts.about_this_service) { (list) } }
                }
            }
        }
    }
}

/// The operator's logo; where there is none, our mark beside the name.
pub fn brand_mark(chrome: Chrome<'_>) -> Markup {
    let brand = chrome.brand;
    html! {
        @if brand.logo.is_some() {
            img .brand-logo src={ (chrome.base_path) "/static/" (BRAND_LOGO) } alt=(brand.name);
        } @else {
            p .brand-name {
                img .mark src=(asset(chrome, "icon.svg")) alt="" width="28" height="28";
                bdi { (brand.name) }
            }
        }
    }
}

/// The same with the title as the heading of the card.
pub fn headed(chrome: Chrome<'_>, is_error: bool, title: &str, card: &Markup) -> Markup {
    document_with(chrome, is_error, title, html! { h1 { (title) } (card) })
}

/// The same for a page that tells of an error, in its title, too.
pub fn document_with(chrome: Chrome<'_>, is_error: bool, title: &str, card: Markup) -> Markup {
    document(chrome, &title_with(chrome.texts, is_error, title), card)
}

/// The title of a page, which tells of an error first.
pub fn title_with(texts: &Texts, is_error: bool, title: &str) -> String {
    if is_error {
        texts.error_in_title.fill(title)
    } else {
        title.to_owned()
    }
}

fn head(chrome: Chrome<'_>, title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        meta name="robots" content="noindex";
        // Without the places where a long word may be parted.
        title { (title.replace('\u{ad}', "")) " – " (chrome.brand.name) }
        link rel="icon" type="image/svg+xml" href=(asset(chrome, "icon.svg"));
        link rel="stylesheet" href=(asset(chrome, "app.css"));
        @if chrome.brand.color.is_some() {
            link rel="stylesheet" href=(asset(chrome, "brand.css"));
        }
    }
}

pub(crate) fn asset(chrome: Chrome<'_>, file: &str) -> String {
    format!(
        "{}/static/{file}?v={}",
        chrome.base_path, chrome.assets_version
    )
}

pub fn script(chrome: Chrome<'_>, file: &str) -> Markup {
    html! { script src=(asset(chrome, file)) {} }
}

/// Carries an authorization response back (OAuth 2.0 Form Post Response Mode §2): one form and
/// nothing else. An external script submits it, a button does so in browsers without scripts.
/// `action` is the matched redirect URI, byte for byte.
pub fn form_post_page(chrome: Chrome<'_>, action: &str, fields: &[(&str, String)]) -> Markup {
    let texts = chrome.texts;
    html! {
        (DOCTYPE)
        html lang=(texts.language.tag()) {
            head { (head(chrome, texts.form_post_title)) }
            body {
                main .card .passing {
                    h1 { (texts.form_post_title) }
                    p { (texts.form_post_hint) }
                    form method="post" action=(action) {
                        @for (name, value) in fields {
                            (hidden(name, value))
                        }
                        (submit(texts.form_post_continue))
                    }
                }
                (script(chrome, "form-post.js"))
            }
        }
    }
}

/// Links that leave the page, each in a tab of its own so that a half-filled form is not lost.
/// `None` without any.
fn link_list<const N: usize>(texts: &Texts, links: [(&Option<String>, &str); N]) -> Option<Markup> {
    let links: Vec<_> = links
        .into_iter()
        .filter_map(|(url, words)| Some((web_link(url.as_deref()?)?, words)))
        .collect();
    if links.is_empty() {
        return None;
    }
    Some(html! {
        ul .links {
            @for (url, words) in links {
                li {
                    a href=(url) target="_blank" rel="noopener noreferrer" {
                        (words) span .visually-hidden { " " (texts.opens_in_new_tab) }
                    }
                }
            }
        }
    })
}

/// Where those get help who cannot sign in, if you said where.
pub(crate) fn help(chrome: Chrome<'_>) -> Markup {
    let url = chrome.brand.help_url.as_deref();
    let mailbox = url.filter(|url| url.starts_with("mailto:"));
    let words = chrome.texts.cannot_sign_in;
    html! {
        @if let Some(mailbox) = mailbox {
            p .help { a href=(mailbox) { (words) } }
        } @else if let Some(list) = link_list(chrome.texts, [(&chrome.brand.help_url, words)]) {
            nav .help aria-label=(words) { (list) }
        }
    }
}

/// The application's logo. Gatepost serves it, so that the browser tells no other server. The name
/// always stands beside it.
pub(crate) fn client_logo(chrome: Chrome<'_>, client: &Client) -> Markup {
    let name = utf8_percent_encode(client.client_id.as_str(), NON_ALPHANUMERIC);
    html! {
        @if client.links.logo_uri.is_some() {
            img .client-logo src={ (chrome.base_path) "/clients/" (name) "/logo" } alt="";
        }
    }
}

pub(crate) fn client_links(chrome: Chrome<'_>, client: &Client) -> Markup {
    let texts = chrome.texts;
    let links = &client.links;
    let links = [
        (&links.client_uri, texts.website),
        (&links.policy_uri, texts.privacy_policy),
        (&links.tos_uri, texts.terms_of_service),
    ];
    html! {
        @if let Some(list) = link_list(texts, links) {
            nav .client-links aria-labelledby="about-client" {
                p #about-client .hint { (about(texts.about_client, chrome.name_of(client))) }
                (list)
            }
        }
    }
}

/// A sentence about a name from outside. The name is isolated: right-to-left letters and direction
/// marks in it cannot reorder the words around it.
pub fn about(template: Template, name: &str) -> Markup {
    let (before, after) = template.parts();
    html! { (before) strong { bdi { (name) } } (after) }
}

/// A sentence about an account, with the user name beside the name where it says more. Each is
/// isolated: a name cannot rearrange the user name.
pub(crate) fn about_account(template: Template, account: Account<'_>) -> Markup {
    let (before, after) = template.parts();
    let says_more = account.username != account.name && !account.username.is_empty();
    html! {
        (before)
        strong { bdi { (account.name) } @if says_more { " (" bdi { (account.username) } ")" } }
        (after)
    }
}

/// That the session changed since the page was drawn: it is drawn again and says so.
pub fn session_changed(texts: &Texts, drawn_again: bool) -> Markup {
    html! {
        @if drawn_again { div .notice .problem role="alert" { p { (texts.session_changed) } } }
    }
}

/// The value of `aria-describedby`: the ids of what there is; `None` where there is nothing.
pub(super) fn described_by(ids: [Option<&str>; 2]) -> Option<String> {
    let ids = Vec::from_iter(ids.into_iter().flatten());
    (!ids.is_empty()).then(|| ids.join(" "))
}

/// What was done.
pub fn done(sentence: impl Render) -> Markup {
    html! { div .notice .done role="status" { p { (sentence) } } }
}

/// What is wrong with what was sent.
pub fn problem_notice(texts: &Texts, sentence: &Markup) -> Markup {
    html! {
        div #problem .notice .problem role="alert" {
            h2 { (icon(WARNING)) (texts.there_is_a_problem) }
            (sentence)
        }
    }
}

/// The same with the way to the field that it concerns.
pub fn field_problem(texts: &Texts, field: Option<&str>, sentence: &str) -> Markup {
    let sentence = html! {
        p {
            @match field {
                Some(field) => a href={ "#" (field) } { (sentence) },
                None => (sentence),
            }
        }
    };
    problem_notice(texts, &sentence)
}

/// A link that looks like a button.
pub fn button_to(address: &str, label: &str) -> Markup {
    html! { div .actions { a .button href=(address) { (label) } } }
}

/// The way back to an application, at an address that it registered.
pub(crate) fn back_to(chrome: Chrome<'_>, client: &Client, uri: &str) -> Markup {
    let label = about(chrome.texts.back_to_client, chrome.name_of(client));
    html! { div .actions { a .button href=(uri) rel="noreferrer" { (label) } } }
}

/// A button that looks like a link, about the item with that id.
pub(crate) fn link_button(decision: &str, id: &str, label: &str) -> Markup {
    html! {
        button .link type="submit" name="decision" value=(decision) aria-describedby=(id) {
            (label)
        }
    }
}

/// As people read it out: groups of four of its letters, which are ASCII.
pub(super) fn in_fours(text: &str) -> impl Iterator<Item = &str> {
    let starts = (0..text.len()).step_by(4);
    starts.filter_map(|at| text.get(at..text.len().min(at + 4)))
}

/// The address, if following it stays on the web: whatever was registered, `javascript:` and its
/// like never become a link.
pub(crate) fn web_link(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once("://")?;
    (scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_become_links() {
        assert_eq!(
            web_link("HTTPS://shop.example/a"),
            Some("HTTPS://shop.example/a")
        );
        assert_eq!(
            web_link("http://localhost:8081/"),
            Some("http://localhost:8081/")
        );
        let odd = "|javascript:alert(1)//://|javascript://x| https://x|//shop.example|data:text/html,x|https:x";
        for refused in odd.split('|') {
            assert_eq!(web_link(refused), None, "{refused:?}");
        }
    }
}
