//! The sign-in page: user name and password, or the account that is signed in already.

use maud::{Markup, html};

use crate::pages::frame::{Account, Chrome, Client, about, about_account, client_links, client_logo, document};
use crate::pages::texts::Texts;

/// Everything the sign-in page shows.
#[derive(Clone, Copy, Debug)]
pub struct LoginView<'a> {
    /// The frame.
    pub chrome: Chrome<'a>,
    /// Where the form goes: path and query of ours, with the sealed request.
    pub action: &'a str,
    /// Field `form_token`.
    pub form_token: &'a str,
    /// Who asked for the sign-in; none where the person came for their own account.
    pub client: Option<Client<'a>>,
    /// Display name of the tenant in which the sign-in happens.
    pub tenant: Option<&'a str>,
    /// What the user name field starts with: `login_hint`, or what was typed before; empty for nothing.
    pub username: &'a str,
    /// What was wrong with the form sent before.
    pub problem: Option<LoginProblem>,
    /// `prompt=select_account` with a session: offer this account or another one, no fields.
    pub present_account: Option<Account<'a>>,
}

/// Why the page is shown again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginProblem {
    /// Unknown user, wrong password, disabled account: one text for all.
    WrongCredentials,
    /// The throttle of this account or source; whole minutes to wait, rounded up.
    TooManyAttempts {
        /// At least 1.
        minutes: u32,
    },
    /// The form token was of another page, or the session it was drawn for is gone: drawn again.
    PageExpired,
    /// No user name was entered.
    UsernameMissing,
    /// No password was entered.
    PasswordMissing,
    /// Neither was entered.
    BothMissing,
}

impl LoginProblem {
    fn concerns_username(self) -> bool {
        match self {
            LoginProblem::WrongCredentials | LoginProblem::UsernameMissing | LoginProblem::BothMissing => true,
            LoginProblem::TooManyAttempts { .. } | LoginProblem::PageExpired | LoginProblem::PasswordMissing => false,
        }
    }

    fn concerns_password(self) -> bool {
        match self {
            LoginProblem::WrongCredentials | LoginProblem::PasswordMissing | LoginProblem::BothMissing => true,
            LoginProblem::TooManyAttempts { .. } | LoginProblem::PageExpired | LoginProblem::UsernameMissing => false,
        }
    }
}

/// The sign-in page. The form posts `form_token`, `username`, `password`; `decision` is absent for a sign-in, `cancel`, or in
/// the account chooser `continue` or `another`.
pub fn page(view: &LoginView<'_>) -> Markup {
    let texts = view.chrome.texts;
    let heading = match view.present_account {
        Some(_) => texts.choose_account_title,
        None => texts.sign_in_title,
    };
    let title = match view.problem {
        Some(_) => texts.error_in_title.fill(heading),
        None => heading.to_owned(),
    };
    document(
        view.chrome,
        &title,
        html! {
            @if let Some(client) = &view.client { (client_logo(client)) }
            h1 { (heading) }
            (context(view))
            @if let Some(problem) = view.problem { (summary(texts, problem)) }
            form method="post" action=(view.action) {
                input type="hidden" name="form_token" value=(view.form_token);
                @match view.present_account {
                    Some(account) => (chooser(texts, account)),
                    None => (fields(view)),
                }
            }
            @if let Some(client) = &view.client { (client_links(texts, client)) }
        },
    )
}

/// For whom and with which account one signs in.
fn context(view: &LoginView<'_>) -> Markup {
    let texts = view.chrome.texts;
    html! {
        p .lead {
            @match view.client {
                Some(client) => (about(texts.to_continue_to, client.name)),
                None => (texts.to_see_your_account),
            }
        }
        @if let Some(tenant) = view.tenant {
            p .tenant { (about(texts.with_account_of_tenant, tenant)) }
        }
    }
}

/// What to mend, with a link to the field where there is one.
fn summary(texts: &Texts, problem: LoginProblem) -> Markup {
    let username = html! { a href="#username" { (texts.username_missing) } };
    let password = html! { a href="#password" { (texts.password_missing) } };
    html! {
        div #problem .notice .problem role="alert" {
            h2 { (texts.there_is_a_problem) }
            @match problem {
                LoginProblem::WrongCredentials => p { a href="#username" { (texts.wrong_credentials) } },
                LoginProblem::TooManyAttempts { minutes } => p { (texts.too_many_attempts.fill(&(texts.minutes)(minutes))) },
                LoginProblem::PageExpired => p { (texts.page_expired) },
                LoginProblem::UsernameMissing => p { (username) },
                LoginProblem::PasswordMissing => p { (password) },
                LoginProblem::BothMissing => ul { li { (username) } li { (password) } },
            }
        }
    }
}

fn fields(view: &LoginView<'_>) -> Markup {
    let texts = view.chrome.texts;
    let username_wrong = view.problem.is_some_and(LoginProblem::concerns_username);
    let password_wrong = view.problem.is_some_and(LoginProblem::concerns_password);
    html! {
        div .field {
            label for="username" { (texts.username) }
            input #username type="text" name="username" value=(view.username) required autocomplete="username"
                autocapitalize="none" autocorrect="off" spellcheck="false" dir="auto"
                aria-invalid=[username_wrong.then_some("true")] aria-describedby=[username_wrong.then_some("problem")]
                autofocus[view.username.is_empty()];
        }
        div .field {
            label for="password" { (texts.password) }
            input #password type="password" name="password" required autocomplete="current-password"
                aria-invalid=[password_wrong.then_some("true")] aria-describedby=[password_wrong.then_some("problem")]
                autofocus[!view.username.is_empty()];
        }
        div .actions {
            // First, because Enter in a field presses the first button of a form.
            button .primary type="submit" { (texts.sign_in) }
            (cancel(texts))
        }
    }
}

fn chooser(texts: &Texts, account: Account<'_>) -> Markup {
    html! {
        p { (about_account(texts.signed_in_here_as, account)) }
        div .actions {
            button .primary type="submit" name="decision" value="continue" {
                (about(texts.continue_as, account.name))
            }
            button type="submit" name="decision" value="another" { (texts.use_another_account) }
            (cancel(texts))
        }
    }
}

fn cancel(texts: &Texts) -> Markup {
    html! { button .quiet type="submit" name="decision" value="cancel" formnovalidate { (texts.cancel) } }
}
