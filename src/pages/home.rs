//! The page at the base URL: says what this is, and leads to one's own account, the only thing to do here.

use maud::{Markup, html};

use crate::pages::frame::{Chrome, about, document};

/// The start page; `account` is the address of the account page.
pub fn page(chrome: Chrome<'_>, account: &str) -> Markup {
    let texts = chrome.texts;
    document(
        chrome,
        texts.home_title,
        html! {
            h1 { (texts.home_title) }
            p .lead { (about(texts.home_hint, chrome.brand.name)) }
            p { (texts.home_advice) }
            p { a href=(account) { (texts.account_title) } }
        },
    )
}
