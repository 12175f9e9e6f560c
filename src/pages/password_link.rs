//! The page behind a link by which somebody sets their password.

use maud::{Markup, html};

use crate::pages::account::{AccountProblem, Outcome, password_field, said};
use crate::pages::frame::{Chrome, PageForm, about, document_with};

/// The form posts `form_token`, `new_password` and `new_password_again`.
pub fn page(chrome: Chrome<'_>, form: PageForm<'_>, username: &str, problem: Option<AccountProblem>) -> Markup {
    let texts = chrome.texts;
    let wrong = problem.and_then(|problem| problem.told(texts).0);
    let new = password_field("new_password", "new-password", texts.new_password, wrong, Some(texts.new_password_hint));
    let again = password_field("new_password_again", "new-password", texts.new_password_again, wrong, None);
    let card = html! {
        h1 { (texts.set_password_title) }
        p .lead { (about(texts.set_password_for, username)) }
        @if let Some(problem) = problem { (said(texts, Outcome::Problem(problem))) }
        (form.of(&html! {
            input type="text" name="username" value=(username) autocomplete="username" hidden readonly;
            (new) (again)
            div .actions { button .primary type="submit" { (texts.set_password) } }
        }))
    };
    document_with(chrome, problem.is_some(), texts.set_password_title, card)
}
