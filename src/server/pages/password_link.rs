//! The page behind a link by which somebody sets their password.

use maud::{Markup, html};

use crate::pages::form_problem::{FormProblem, told};
use crate::pages::frame::{Chrome, PageForm, about, described_by, document_with, submit};
use crate::pages::second_factor::{NewApp, setup};

/// The form posts `form_token`, `new_password` and `new_password_again`; where an app is set up,
/// too, `app` and `code`.
pub fn page(
    form: &PageForm<'_>,
    username: &str,
    problem: Option<FormProblem>,
    new: Option<NewApp<'_>>,
) -> Markup {
    let texts = form.chrome.texts;
    let wrong = problem.and_then(FormProblem::field);
    // Where it was the app, the page begins there.
    let is_of_app = matches!(
        problem,
        Some(FormProblem::CodeMissing | FormProblem::CodeWrong | FormProblem::FactorImpossible)
    );
    let first = (!is_of_app).then_some("new-password");
    let card = html! {
        h1 { (texts.set_password_title) }
        p .lead { (about(texts.set_password_for, username)) }
        (told(texts, problem))
        (form.of(&html! {
            input type="text" name="username" value=(username) autocomplete="username" hidden
                readonly;
            (new_password(form.chrome, wrong, first))
            @if let Some(app) = new {
                h2 { (texts.add_app_title) } (setup(texts, app, problem))
            }
            (submit(texts.set_password))
        }))
    };
    document_with(
        form.chrome,
        problem.is_some(),
        texts.set_password_title,
        card,
    )
}

/// The fields of a new password, which is typed twice. `wrong` is the id of the field that a
/// problem concerns, `first` of the one where the page begins.
pub(super) fn new_password(chrome: Chrome<'_>, wrong: Option<&str>, first: Option<&str>) -> Markup {
    let texts = chrome.texts;
    let least = chrome.least_password.to_string();
    let once = PasswordField {
        name: "new_password",
        autocomplete: "new-password",
        label: texts.new_password,
        hint: Some(texts.new_password_hint.fill(&least)),
    };
    let again = PasswordField {
        name: "new_password_again",
        autocomplete: "new-password",
        label: texts.new_password_again,
        hint: None,
    };
    html! { (once.draw(wrong, first)) (again.draw(wrong, first)) }
}

/// A field for a password.
pub(super) struct PasswordField<'a> {
    pub(super) name: &'a str,
    pub(super) autocomplete: &'a str,
    pub(super) label: &'a str,
    pub(super) hint: Option<String>,
}

impl PasswordField<'_> {
    pub(super) fn draw(&self, wrong: Option<&str>, first: Option<&str>) -> Markup {
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
                    autocomplete=(self.autocomplete) autofocus[first == Some(&id)]
                    aria-invalid=[is_wrong.then_some("true")]
                    aria-describedby=[described_by(descriptions)];
                @if let Some(hint) = &self.hint { p .hint id=(hint_id) { (hint) } }
            }
        }
    }
}
