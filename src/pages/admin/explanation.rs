//! Why an application refuses: an address, or a code, explained. What is said is in English.

use maud::{Markup, html};
use serde_json::Value;

use crate::app::explanation::Explained;
use crate::pages::admin::AdminChrome;
use crate::pages::admin::applications::told;
use crate::pages::frame::{PageForm, problem_notice};

/// What came of the form.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    Nothing,
    /// The page was drawn for another session.
    SessionChanged,
    Explained(&'a Explained),
}

/// The form is posted: an address may be long, and holds what belongs in no log. It is not shown
/// again.
pub fn explain_page(around: AdminChrome<'_>, form: PageForm<'_>, asked: Asked<'_>) -> Markup {
    let texts = around.chrome.texts;
    let is_problem = matches!(asked, Asked::SessionChanged);
    let card = html! {
        @if is_problem { (problem_notice(texts, &html! { p { (texts.session_changed) } })) }
        @if let Asked::Explained((findings, about)) = asked {
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
            div .actions { button .primary type="submit" { (texts.explain) } }
        }))
    };
    around.document(is_problem, texts.why_refused, &card)
}

/// What was sent beside what is registered.
fn compared(around: AdminChrome<'_>, name: &str, member: &Value) -> Markup {
    let texts = around.chrome.texts;
    let both = [(texts.sent, "received"), (texts.registered, "registered")];
    html! {
        p { strong { (name) } }
        dl .facts {
            @for (label, key) in both {
                dt { (label) }
                dd { bdi { (member.get(key).and_then(Value::as_str).unwrap_or_default()) } }
            }
        }
    }
}
