//! Connecting a device: its code, and what became of it. Whether it may have what it asks for is the consent page's question.

use maud::{Markup, html};

use crate::pages::frame::{Chrome, Client, about, client_logo, document};
use crate::pages::texts::Texts;

#[derive(Clone, Copy, Debug)]
pub struct UserCodeView<'a> {
    pub chrome: Chrome<'a>,
    pub action: &'a str,
    pub form_token: &'a str,
    pub user_code: &'a str,
    /// The code came with the address: it must be held against the device.
    pub to_be_compared: bool,
    pub problem: Option<UserCodeProblem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserCodeProblem {
    Missing,
    /// No device waits under it: never, not any more, or not yet.
    Wrong,
    /// Too many wrong ones; whole minutes to wait, rounded up.
    TooMany {
        minutes: u32,
    },
    /// The form was of another browser, or too old.
    PageExpired,
}

/// Asks for the code. The form posts `form_token` and `user_code`.
pub fn user_code_page(view: &UserCodeView<'_>) -> Markup {
    let texts = view.chrome.texts;
    let title = match view.problem {
        Some(_) => texts.error_in_title.fill(texts.device_title),
        None => texts.device_title.to_owned(),
    };
    let code_wrong = matches!(view.problem, Some(UserCodeProblem::Missing | UserCodeProblem::Wrong));
    document(
        view.chrome,
        &title,
        html! {
            h1 { (texts.device_title) }
            p .lead { @if view.to_be_compared { (texts.device_compare) } @else { (texts.device_hint) } }
            @if let Some(problem) = view.problem { (summary(texts, problem)) }
            form method="post" action=(view.action) {
                input type="hidden" name="form_token" value=(view.form_token);
                div .field {
                    label for="user-code" { (texts.device_code) }
                    input #user-code .user-code type="text" name="user_code" value=(view.user_code) required
                        autocomplete="off" autocapitalize="characters" autocorrect="off" spellcheck="false" dir="ltr"
                        aria-invalid=[code_wrong.then_some("true")] aria-describedby=[code_wrong.then_some("problem")]
                        autofocus[view.user_code.is_empty()];
                }
                div .actions { button .primary type="submit" { (texts.device_continue) } }
            }
        },
    )
}

fn summary(texts: &Texts, problem: UserCodeProblem) -> Markup {
    html! {
        div #problem .notice .problem role="alert" {
            h2 { (texts.there_is_a_problem) }
            @match problem {
                UserCodeProblem::Missing => p { a href="#user-code" { (texts.device_code_missing) } },
                UserCodeProblem::Wrong => p { a href="#user-code" { (texts.device_code_wrong) } },
                UserCodeProblem::TooMany { minutes } => p { (texts.too_many_attempts.fill(&texts.minutes(minutes))) },
                UserCodeProblem::PageExpired => p { (texts.device_page_expired) },
            }
        }
    }
}

pub fn decided_page(chrome: Chrome<'_>, client: Client<'_>, allowed: bool) -> Markup {
    let texts = chrome.texts;
    let (title, hint) = match allowed {
        true => (texts.device_connected_title, texts.device_connected_hint),
        false => (texts.device_denied_title, texts.device_denied_hint),
    };
    document(
        chrome,
        title,
        html! {
            (client_logo(&client))
            h1 { (title) }
            p .lead { (about(hint, client.name)) }
        },
    )
}
