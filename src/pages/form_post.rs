//! The page that carries an authorization response back by a form (OAuth 2.0 Form Post Response Mode §2).

use maud::{DOCTYPE, Markup, html};

use crate::pages::frame::{Chrome, asset, head};

#[derive(Clone, Copy, Debug)]
pub struct FormPostView<'a> {
    pub chrome: Chrome<'a>,
    /// The matched redirect URI, byte for byte.
    pub action: &'a str,
    pub fields: &'a [(&'a str, &'a str)],
}

/// A page with one form and nothing else; an external script submits it, a button does so in browsers without scripts.
pub fn page(view: &FormPostView<'_>) -> Markup {
    let texts = view.chrome.texts;
    html! {
        (DOCTYPE)
        html lang=(texts.language.tag()) {
            head { (head(view.chrome, texts.form_post_title)) }
            body {
                main .card .passing {
                    h1 { (texts.form_post_title) }
                    p { (texts.form_post_hint) }
                    form method="post" action=(view.action) {
                        @for (name, value) in view.fields { input type="hidden" name=(name) value=(value); }
                        div .actions { button .primary type="submit" { (texts.form_post_continue) } }
                    }
                }
                script src=(asset(view.chrome, "form-post.js")) {}
            }
        }
    }
}
