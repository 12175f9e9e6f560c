//! The pages behind a sign-up link: the one that asks for an address, and the one behind the
//! letter, which makes the account.

use maud::{Markup, html};

use crate::pages::account::AccountProblem;
use crate::pages::forgotten::{AskingProblem, asking_page};
use crate::pages::frame::{PageForm, about, document_with, field_problem, help, submit};
use crate::pages::password_link::new_password;
use crate::pages::texts::Texts;
use gatepost_protocol::login::sign_up::may_be_called;
use gatepost_protocol::registration::user::check_username;

/// Asks for an address. The form posts `form_token` and `address`.
pub fn address_page(form: &PageForm<'_>, address: &str, problem: Option<AskingProblem>) -> Markup {
    let texts = form.chrome.texts;
    let is_unfit = problem == Some(AskingProblem::Typed);
    let problem = problem.map(|problem| match problem {
        AskingProblem::Typed => html! { a href="#address" { (texts.address_unfit) } },
        AskingProblem::PageExpired => html! { (texts.session_changed) },
    });
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
        problem.as_ref(),
        &form.of(&fields),
    )
}

#[derive(Clone, Copy)]
pub enum JoinProblem {
    UsernameMissing,
    /// The rules of user names refuse it.
    UsernameUnfit,
    /// It reads as an address, and is another.
    UsernameOfOthers,
    UsernameTaken,
    /// With the password, or with the form.
    Other(AccountProblem),
}

impl JoinProblem {
    /// What is wrong with the user name of somebody new with this address.
    pub fn of_name(username: &str, address: &str) -> Option<JoinProblem> {
        if check_username(username).is_err() {
            Some(JoinProblem::UsernameUnfit)
        } else if !may_be_called(username, address) {
            Some(JoinProblem::UsernameOfOthers)
        } else {
            None
        }
    }

    /// The field that it concerns, and what it says.
    pub fn told(self, texts: &Texts) -> (Option<&'static str>, String) {
        let sentence = match self {
            JoinProblem::UsernameMissing => texts.username_missing,
            JoinProblem::UsernameUnfit => texts.username_unfit,
            JoinProblem::UsernameOfOthers => texts.username_of_others,
            JoinProblem::UsernameTaken => texts.username_taken,
            JoinProblem::Other(problem) => return problem.told(texts),
        };
        (Some("username"), sentence.to_owned())
    }
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
    problem: Option<JoinProblem>,
) -> Markup {
    let texts = form.chrome.texts;
    let told = problem.map(|problem| problem.told(texts));
    let wrong = told.as_ref().and_then(|(field, _)| *field);
    let card = html! {
        h1 { (texts.join_title) }
        p .lead { (about(texts.join_address, address)) }
        @if let Some((field, sentence)) = &told {
            (field_problem(texts, *field, sentence))
        }
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
