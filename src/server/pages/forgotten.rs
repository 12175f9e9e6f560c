//! The page for people who forgot their password, and the one that says that a letter is on its
//! way; and the question whether to take another address.

use maud::{Markup, html};

use crate::pages::form_problem::{FormProblem, told};
use crate::pages::frame::{Chrome, PageForm, about, button_to, headed, help};

/// The form posts `form_token` and `name`. `back` is the sign-in page.
pub fn page(form: &PageForm<'_>, back: &str, name: &str, problem: Option<FormProblem>) -> Markup {
    let texts = form.chrome.texts;
    let is_missing = problem == Some(FormProblem::NameOrAddressMissing);
    let fields = html! {
        div .field {
            label for="name" { (texts.name_or_address) }
            input #name type="text" name="name" value=(name) required autocomplete="username"
                autocapitalize="none" autocorrect="off" spellcheck="false" dir="auto" autofocus
                aria-invalid=[is_missing.then_some("true")]
                aria-describedby=[is_missing.then_some("problem")];
        }
        div .actions {
            button .primary type="submit" { (texts.send_letter) }
            a .button href=(back) { (texts.cancel) }
        }
    };
    asking_page(
        form.chrome,
        texts.forgotten_title,
        texts.forgotten_hint,
        problem,
        &form.of(&fields),
    )
}

/// Asks where a letter shall go, or something else. The hint gives way to a problem.
pub fn asking_page(
    chrome: Chrome<'_>,
    title: &str,
    hint: &str,
    problem: Option<FormProblem>,
    form: &Markup,
) -> Markup {
    let card = html! {
        @if problem.is_some() { (told(chrome.texts, problem)) } @else { p { (hint) } }
        (form)
        (help(chrome))
    };
    headed(chrome, problem.is_some(), title, &card)
}

/// The same for everybody, whatever was typed. `back` is the sign-in page.
pub fn sent_page(chrome: Chrome<'_>, sentence: &str, back: Option<&str>) -> Markup {
    let texts = chrome.texts;
    let card = html! {
        p { (sentence) }
        p .hint { (texts.letter_sent_advice) }
        @if let Some(back) = back { (button_to(back, texts.to_sign_in_page)) }
        (help(chrome))
    };
    headed(chrome, false, texts.letter_sent_title, &card)
}

/// Asks whether to take another address. The form posts `form_token`; saying no is a link.
pub fn address_page(form: &PageForm<'_>, address: &str, account: &str) -> Markup {
    let texts = form.chrome.texts;
    let card = html! {
        p { (about(texts.confirm_address, address)) }
        (form.of(&html! {
            div .actions {
                button .primary type="submit" { (texts.confirm_address_now) }
                a .button href=(account) { (texts.cancel) }
            }
        }))
    };
    headed(form.chrome, false, texts.confirm_address_title, &card)
}

/// To somebody whose account is disabled now.
pub fn disabled_page(chrome: Chrome<'_>) -> Markup {
    let texts = chrome.texts;
    let title = texts.not_me_disabled_title;
    asking_page(chrome, title, texts.not_me_disabled, None, &html! {})
}

/// To somebody who is not signed in. `sign_in` is the sign-in page.
pub fn sign_in_to_confirm_page(chrome: Chrome<'_>, sign_in: &str) -> Markup {
    let texts = chrome.texts;
    let card = html! {
        p { (texts.sign_in_to_confirm) }
        div .actions { a .button .primary href=(sign_in) { (texts.sign_in) } }
    };
    headed(chrome, false, texts.confirm_address_title, &card)
}
