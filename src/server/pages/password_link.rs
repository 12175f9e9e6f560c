//! The page behind a link by which somebody sets their password.

use maud::{Markup, html};

use crate::pages::account::{AccountProblem, Outcome, said};
use crate::pages::frame::{Chrome, PageForm, about, described_by, document_with, submit};
use crate::pages::second_factor::{FactorProblem, NewApp, factor_problem, setup};

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
    let password = PasswordField {
        // Where the code of the app was wrong, the page begins there.
        has_focus: app_problem.is_none(),
        ..PasswordField::new_one(chrome)
    };
    let again = PasswordField::new_one_again(chrome);
    let card = html! {
        h1 { (texts.set_password_title) }
        p .lead { (about(texts.set_password_for, username)) }
        @if let Some(problem) = problem { (said(texts, Outcome::Problem(problem))) }
        (factor_problem(texts, app_problem))
        (form.of(&html! {
            input type="text" name="username" value=(username) autocomplete="username" hidden
                readonly;
            (password.draw(wrong)) (again.draw(wrong))
            @if let Some(app) = new {
                h2 { (texts.add_app_title) } (setup(texts, app, app_problem))
            }
            (submit(texts.set_password))
        }))
    };
    document_with(
        chrome,
        problem.is_some() || app_problem.is_some(),
        texts.set_password_title,
        card,
    )
}

/// A field for a password.
#[derive(Clone, Debug)]
pub(super) struct PasswordField<'a> {
    pub(super) name: &'a str,
    pub(super) autocomplete: &'a str,
    pub(super) label: &'a str,
    pub(super) hint: Option<String>,
    /// Whether the page begins there.
    pub(super) has_focus: bool,
}

impl PasswordField<'_> {
    pub(super) fn new_one(chrome: Chrome<'_>) -> PasswordField<'static> {
        let texts = chrome.texts;
        PasswordField {
            name: "new_password",
            autocomplete: "new-password",
            label: texts.new_password,
            hint: Some(
                texts
                    .new_password_hint
                    .fill(&chrome.least_password.to_string()),
            ),
            has_focus: false,
        }
    }

    pub(super) fn new_one_again(chrome: Chrome<'_>) -> PasswordField<'static> {
        PasswordField {
            name: "new_password_again",
            label: chrome.texts.new_password_again,
            hint: None,
            ..PasswordField::new_one(chrome)
        }
    }

    /// `wrong` is the id of the field that a problem concerns.
    pub(super) fn draw(&self, wrong: Option<&str>) -> Markup {
        let id = self.name.replace('_', "-");
        let is_wrong = wrong == Some(&id);
        let hint_id = format!("{id}-hint");
        let descriptions = [
            is_wrong.then_some("problem"),
            self.hint.as_ref().and(Some(&hint_id)),
        ];
        html! {
            div .field {
                label for=(id) { (self.label) }
                input id=(id) type="password" name=(self.name) required
                    autocomplete=(self.autocomplete) autofocus[self.has_focus]
                    aria-invalid=[is_wrong.then_some("true")]
                    aria-describedby=[described_by(descriptions)];
                @if let Some(hint) = &self.hint { p .hint id=(hint_id) { (hint) } }
            }
        }
    }
}
