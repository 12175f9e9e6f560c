//! The page behind a link by which somebody sets their password.

use maud::{Markup, html};

use crate::pages::account::{AccountProblem, Outcome, said};
use crate::pages::frame::{Chrome, PageForm, about, document_with};
use crate::pages::second_factor::{FactorProblem, NewApp, setup};

/// The form posts `form_token`, `new_password` and `new_password_again`; where an app is set up,
/// too, `app` and `code`.
pub fn page(
    chrome: Chrome<'_>,
    form: PageForm<'_>,
    username: &str,
    problem: Option<AccountProblem>,
    new: Option<NewApp<'_>>,
    app_problem: Option<FactorProblem>,
) -> Markup {
    let texts = chrome.texts;
    let wrong = problem.and_then(|problem| problem.told(texts).0);
    let password = password_field(
        "new_password",
        "new-password",
        texts.new_password,
        wrong,
        Some(texts.new_password_hint),
    );
    let again = password_field(
        "new_password_again",
        "new-password",
        texts.new_password_again,
        wrong,
        None,
    );
    let card = html! {
        h1 { (texts.set_password_title) }
        p .lead { (about(texts.set_password_for, username)) }
        @if let Some(problem) = problem { (said(texts, Outcome::Problem(problem))) }
        @if let Some(problem) = app_problem { (problem.notice(texts)) }
        (form.of(&html! {
            input type="text" name="username" value=(username) autocomplete="username" hidden
                readonly;
            (password) (again)
            @if let Some(app) = new {
                h2 { (texts.add_app_title) } (setup(texts, app, app_problem))
            }
            div .actions { button .primary type="submit" { (texts.set_password) } }
        }))
    };
    document_with(
        chrome,
        problem.is_some() || app_problem.is_some(),
        texts.set_password_title,
        card,
    )
}

pub(super) fn password_field(
    name: &str,
    autocomplete: &str,
    label: &str,
    wrong: Option<&str>,
    hint: Option<&str>,
) -> Markup {
    let id = name.replace('_', "-");
    let is_wrong = wrong == Some(&id);
    let hint_id = format!("{id}-hint");
    let described_by = [is_wrong.then_some("problem"), hint.and(Some(&hint_id))];
    let described_by = described_by
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ");
    html! {
        div .field {
            label for=(id) { (label) }
            input id=(id) type="password" name=(name) required autocomplete=(autocomplete)
                aria-invalid=[is_wrong.then_some("true")]
                aria-describedby=[Some(described_by).filter(|ids| !ids.is_empty())];
            @if let Some(hint) = hint { p .hint id=(hint_id) { (hint) } }
        }
    }
}
