//! The pages behind a sign-up link: the one that asks for an address, and the one behind the
//! letter, which makes the account.

use maud::{Markup, html};

use crate::pages::forgotten::asking_page;
use crate::pages::form_problem::{FormProblem, told};
use crate::pages::frame::{PageForm, about, document_with, help, submit};
use crate::pages::password_link::new_password;
use crate::pages::texts::Texts;

/// Asks for an address. The form posts `form_token` and `address`.
pub fn address_page(form: &PageForm<'_>, address: &str, problem: Option<FormProblem>) -> Markup {
    let texts = form.chrome.texts;
    let is_unfit = problem == Some(FormProblem::JoinAddressUnfit);
    let fields = html! {
        div .field {
            label for="address" { (texts.email_address) }
            input #address type="email" name="address" value=(address) required maxlength="254"
                autocomplete="email" dir="auto" autofocus
                aria-invalid=[is_unfit.then_some("true")]
                aria-describedby=[is_unfit.then_some("problem")];
        }
        (submit(texts.send_letter))
    };
    asking_page(
        form.chrome,
        texts.join_title,
        texts.join_hint,
        problem,
        &form.of(&fields),
    )
}

/// What was typed before.
#[derive(Default)]
pub struct Typed<'a> {
    pub username: &'a str,
    pub name: &'a str,
}

/// Makes the account. The form posts `form_token`, `username`, `name`, `new_password` and
/// `new_password_again`.
pub fn page(
    form: &PageForm<'_>,
    address: &str,
    typed: Typed<'_>,
    problem: Option<FormProblem>,
) -> Markup {
    let texts = form.chrome.texts;
    let wrong = problem.and_then(FormProblem::field);
    let card = html! {
        h1 { (texts.join_title) }
        p .lead { (about(texts.join_address, address)) }
        (told(texts, problem))
        (form.of(&html! {
            (names(texts, typed, wrong))
            (new_password(form.chrome, wrong, wrong))
            (submit(texts.create_account))
        }))
        (help(form.chrome))
    };
    document_with(form.chrome, problem.is_some(), texts.join_title, card)
}

/// `wrong` is the id of the field that a problem concerns.
fn names(texts: &Texts, typed: Typed<'_>, wrong: Option<&str>) -> Markup {
    let is_wrong = wrong == Some("username");
    html! {
        div .field {
            label for="username" { (texts.username) }
            input #username type="text" name="username" value=(typed.username) required
                maxlength="256" autocomplete="username" autocapitalize="none" autocorrect="off"
                spellcheck="false" dir="auto" autofocus[is_wrong || wrong.is_none()]
                aria-invalid=[is_wrong.then_some("true")]
                aria-describedby=[is_wrong.then_some("problem")];
        }
        div .field {
            label for="name" { (texts.your_name) }
            input #name type="text" name="name" value=(typed.name) maxlength="200"
                autocomplete="name" dir="auto";
        }
    }
}
