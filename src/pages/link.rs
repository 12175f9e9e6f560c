//! The question whether an account elsewhere shall be a way into one's own.

use maud::{Markup, html};

use crate::pages::frame::{Account, Chrome, about, about_account, document, given};

#[derive(Clone, Copy, Debug)]
pub struct LinkView<'a> {
    pub chrome: Chrome<'a>,
    pub action: &'a str,
    pub form_token: &'a str,
    /// Field `offer`: the account elsewhere, sealed.
    pub offer: &'a str,
    pub account: Account<'a>,
    pub provider: &'a str,
    pub label: Option<&'a str>,
    pub subject: &'a str,
    pub back: &'a str,
}

/// Asks. The form posts `form_token`, `offer` and `decision` as `confirm_link`; saying no is a link.
pub fn page(view: &LinkView<'_>) -> Markup {
    let texts = view.chrome.texts;
    document(
        view.chrome,
        texts.link_title,
        html! {
            h1 { (texts.link_title) }
            p .lead { (about(texts.your_account_at, view.provider)) }
            div .details {
                dl {
                    @if let Some(label) = given(view.label) {
                        dt { (texts.known_there_as) }
                        dd { bdi { (label) } }
                    }
                    dt { (texts.identifier_there) }
                    dd { bdi { (view.subject) } }
                }
            }
            p { (about_account(texts.link_to_account, view.account)) }
            p .hint { (texts.link_warning) }
            form method="post" action=(view.action) {
                input type="hidden" name="form_token" value=(view.form_token);
                input type="hidden" name="offer" value=(view.offer);
                div .actions {
                    button .primary type="submit" name="decision" value="confirm_link" { (texts.link) }
                    a .button href=(view.back) { (texts.cancel) }
                }
            }
        },
    )
}
