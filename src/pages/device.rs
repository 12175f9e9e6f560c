//! Connecting a device: its code, whether it may have what it asks for, and what became of it.

use maud::{Markup, html};

use crate::pages::consent::{ConsentScope, account, scope_choices};
use crate::pages::frame::{Account, Chrome, Client, about, client_links, client_logo, document};
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

#[derive(Clone, Copy, Debug)]
pub struct DeviceView<'a> {
    pub chrome: Chrome<'a>,
    /// Where the forms go: path and query of ours, with the sealed request.
    pub action: &'a str,
    pub form_token: &'a str,
    pub client: Client<'a>,
    pub account: Account<'a>,
    pub user_code: &'a str,
    pub scopes: &'a [ConsentScope<'a>],
    /// The session changed since the page was drawn: it is drawn again and says so.
    pub drawn_again: bool,
}

/// Asks whether the device may have what it asks for. The main form posts `form_token`, `scope` for each ticked scope (never
/// the required ones) and `decision` as `allow` or `deny`; the small one `form_token` and `decision=another`.
pub fn page(view: &DeviceView<'_>) -> Markup {
    let texts = view.chrome.texts;
    let title = match view.drawn_again {
        true => texts.error_in_title.fill(texts.device_title),
        false => texts.device_title.to_owned(),
    };
    document(
        view.chrome,
        &title,
        html! {
            (client_logo(&view.client))
            h1 { (about(texts.device_asks_for_access, view.client.name)) }
            (account(texts, view.account, view.action, view.form_token))
            @if view.drawn_again { div .notice .problem role="alert" { p { (texts.session_changed) } } }
            div .notice .warning {
                h2 { (texts.device_warning_title) }
                p { (about(texts.device_must_show, view.user_code)) }
                p { (texts.device_warning) }
            }
            form method="post" action=(view.action) {
                input type="hidden" name="form_token" value=(view.form_token);
                (scope_choices(texts, view.scopes))
                p .hint { (about(texts.consent_hint, view.client.name)) }
                div .actions {
                    button .primary type="submit" name="decision" value="allow" { (texts.allow) }
                    button type="submit" name="decision" value="deny" { (texts.deny) }
                }
            }
            (client_links(texts, &view.client))
        },
    )
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
