//! Why an application refuses: an address, or a code, explained. What is said is in English.

use maud::{Markup, html};
use serde_json::Value;

use crate::pages::admin::AdminChrome;
use crate::pages::admin::applications::told;
use gatepost_protocol::words::json::Members;
use gatepost_registrar::explanation::Explained;
use gatepost_server::pages::frame::{PageForm, session_changed, submit};

/// Says that the session changed since it was drawn, or what came of the form. The form is posted:
/// an address may be long, and holds what belongs in no log. It is not shown again.
pub fn explain_page(
    around: AdminChrome<'_>,
    form: &PageForm<'_>,
    drawn_again: bool,
    explained: Option<&Explained>,
) -> Markup {
    let texts = around.texts;
    let card = html! {
        (session_changed(texts, drawn_again))
        @if let Some(Explained { findings, about }) = explained {
            (told(findings))
            @for (name, member) in about { (compared(around, name, member)) }
        }
        (form.of(&html! {
            div .field {
                label for="what" { (texts.address_or_code) }
                p #what-hint .hint { (texts.never_tokens) }
                input #what name="what" required autocomplete="off" autocapitalize="none"
                    spellcheck="false" dir="ltr" aria-describedby="what-hint";
            }
            (submit(texts.explain))
        }))
    };
    around.document(drawn_again, texts.why_refused, &card)
}

/// What was sent beside what is registered.
fn compared(around: AdminChrome<'_>, name: &str, member: &Value) -> Markup {
    let texts = around.texts;
    let both = [(texts.sent, "received"), (texts.registered, "registered")];
    html! {
        p { strong { (name) } }
        dl .facts {
            @for (label, key) in both {
                dt { (label) }
                dd { bdi { (member.text(key).unwrap_or_default()) } }
            }
        }
    }
}
