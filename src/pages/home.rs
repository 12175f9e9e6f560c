//! The page at the base URL: says what this is, and that there is nothing to do here.

use maud::{Markup, html};

use crate::pages::frame::{Chrome, about, document};

/// The start page.
pub fn page(chrome: Chrome<'_>) -> Markup {
    let texts = chrome.texts;
    document(
        chrome,
        texts.home_title,
        html! {
            h1 { (texts.home_title) }
            p .lead { (about(texts.home_hint, chrome.brand.name)) }
            p { (texts.home_advice) }
        },
    )
}
