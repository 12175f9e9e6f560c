//! What all pages share: the document around the card, and how names and links from outside are shown.

use maud::{DOCTYPE, Markup, html};

use crate::pages::brand::{Brand, brand_css};
use crate::pages::texts::{Template, Texts};

#[derive(Clone, Copy, Debug)]
pub struct Chrome<'a> {
    pub brand: &'a Brand<'a>,
    pub texts: &'a Texts,
    /// Path of the base URL without a trailing slash: empty, or as `/auth`.
    pub base_path: &'a str,
    /// Differs whenever a file under `static/` or the brand differs: lets browsers keep them for long.
    pub assets_version: &'a str,
    pub request_id: &'a str,
}

/// An application as the pages name it. Empty texts are treated as absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Client<'a> {
    /// Its registered name, else its `client_id`.
    pub name: &'a str,
    pub logo: Option<&'a str>,
    /// `client_uri`: its home page.
    pub home: Option<&'a str>,
    pub policy: Option<&'a str>,
    pub terms: Option<&'a str>,
}

#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// What they are called: the `name` claim, else the user name.
    pub name: &'a str,
    pub username: &'a str,
}

/// A whole page: head, brand, `card` as the main landmark, footer.
pub(crate) fn document(chrome: Chrome<'_>, title: &str, card: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(chrome.texts.language.tag()) {
            head { (head(chrome, title)) }
            body {
                header .masthead { (masthead(chrome.brand)) }
                main .card { (card) }
                @if let Some(footer) = footer(chrome) { (footer) }
            }
        }
    }
}

pub(crate) fn head(chrome: Chrome<'_>, title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        meta name="robots" content="noindex";
        title { (title) " – " (chrome.brand.name) }
        link rel="icon" type="image/svg+xml" href=(asset(chrome, "icon.svg"));
        link rel="stylesheet" href=(asset(chrome, "app.css"));
        @if brand_css(chrome.brand).is_some() {
            link rel="stylesheet" href=(asset(chrome, "brand.css"));
        }
    }
}

pub(crate) fn asset(chrome: Chrome<'_>, file: &str) -> String {
    format!("{}/static/{file}?v={}", chrome.base_path, chrome.assets_version)
}

fn masthead(brand: &Brand<'_>) -> Markup {
    html! {
        @match given(brand.logo) {
            Some(logo) => img .brand-logo src=(logo) alt=(brand.name);,
            None => p .brand-name { bdi { (brand.name) } },
        }
    }
}

fn footer(chrome: Chrome<'_>) -> Option<Markup> {
    let links = [
        (chrome.brand.privacy_url, chrome.texts.privacy_policy),
        (chrome.brand.terms_url, chrome.texts.terms_of_service),
    ];
    let list = link_list(chrome.texts, &links)?;
    Some(html! { footer { nav aria-label=(chrome.texts.about_this_service) { (list) } } })
}

/// Links that leave the page, each in a tab of its own so that a half-filled form is not lost. `None` without any.
fn link_list(texts: &Texts, links: &[(Option<&str>, &str)]) -> Option<Markup> {
    let links: Vec<(&str, &str)> = links.iter().filter_map(|(url, words)| Some((web_link(*url)?, *words))).collect();
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

/// The application's logo; its name always stands beside it in words.
pub(crate) fn client_logo(client: &Client<'_>) -> Markup {
    html! {
        @if let Some(logo) = given(client.logo) {
            img .client-logo src=(logo) alt="";
        }
    }
}

pub(crate) fn client_links(texts: &Texts, client: &Client<'_>) -> Markup {
    let links =
        [(client.home, texts.website), (client.policy, texts.privacy_policy), (client.terms, texts.terms_of_service)];
    html! {
        @if let Some(list) = link_list(texts, &links) {
            nav .client-links aria-labelledby="about-client" {
                p #about-client .hint { (about(texts.about_client, client.name)) }
                (list)
            }
        }
    }
}

/// A sentence about a name from outside. The name is isolated: right-to-left letters and direction marks in it cannot reorder
/// the words around it.
pub(crate) fn about(template: Template, name: &str) -> Markup {
    let (before, after) = template.parts();
    html! { (before) strong { bdi { (name) } } (after) }
}

/// A sentence about an account, with the user name beside the name where it says more. Each is isolated: a name cannot
/// rearrange the user name.
pub(crate) fn about_account(template: Template, account: Account<'_>) -> Markup {
    let (before, after) = template.parts();
    let says_more = account.username != account.name && !account.username.is_empty();
    html! {
        (before)
        strong { bdi { (account.name) } @if says_more { " (" bdi { (account.username) } ")" } }
        (after)
    }
}

pub(crate) fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// The address, if following it stays on the web: whatever was registered, `javascript:` and its like never become a link.
pub(crate) fn web_link(url: Option<&str>) -> Option<&str> {
    url.filter(|url| {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_become_links() {
        assert_eq!(web_link(Some("HTTPS://shop.example/a")), Some("HTTPS://shop.example/a"));
        assert_eq!(web_link(Some("http://localhost:8081/")), Some("http://localhost:8081/"));
        let odd = "|javascript:alert(1)//://|javascript://x| https://x|//shop.example|data:text/html,x|https:x";
        for refused in odd.split('|') {
            assert_eq!(web_link(Some(refused)), None, "{refused:?}");
        }
        assert_eq!(web_link(None), None);
    }
}
