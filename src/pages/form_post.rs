//! The page that carries an authorization response back by a form (OAuth 2.0 Form Post Response Mode §2).

use maud::{DOCTYPE, Markup, html};

use crate::pages::frame::{Chrome, asset, head};

/// A page with one form and nothing else; an external script submits it, a button does so in browsers without scripts.
/// `action` is the matched redirect URI, byte for byte.
pub fn page(chrome: Chrome<'_>, action: &str, fields: &[(&str, String)]) -> Markup {
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
                        @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
                        div .actions { button .primary type="submit" { (texts.form_post_continue) } }
                    }
                }
                script src=(asset(chrome, "form-post.js")) {}
            }
        }
    }
}
