//! The sign-in page: user name and password, other services to sign in with, or the account that is signed in already.

use maud::{Markup, html};

use crate::pages::frame::{Account, Chrome, Client, about, about_account, client_links, client_logo, document};
use crate::pages::texts::Texts;

#[derive(Clone, Copy, Debug)]
pub struct LoginView<'a> {
    pub chrome: Chrome<'a>,
    /// Where the form goes: path and query of ours, with the sealed request.
    pub action: &'a str,
    pub form_token: &'a str,
    /// Who asked for the sign-in; none where the person came for their own account.
    pub client: Option<Client<'a>>,
    pub tenant: Option<&'a str>,
    /// What the user name field starts with: `login_hint`, or what was typed before; empty for nothing.
    pub username: &'a str,
    pub problem: Option<LoginProblem>,
    pub password: bool,
    pub providers: &'a [Provider<'a>],
    /// The person said that they are not whom this browser knows: the other service shall ask who they are.
    pub someone_else: bool,
    /// `prompt=select_account` with a session: offer this account or another one, no fields.
    pub present_account: Option<Account<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub struct Provider<'a> {
    /// As in `idp:<name>`.
    pub name: &'a str,
    pub display_name: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginProblem {
    /// Unknown user, wrong password, disabled account: one text for all.
    WrongCredentials,
    /// The throttle of this account or source; whole minutes to wait, rounded up.
    TooManyAttempts {
        minutes: u32,
    },
    /// The form token was of another page, or the session it was drawn for is gone: drawn again.
    PageExpired,
    UsernameMissing,
    PasswordMissing,
    BothMissing,
    /// They cancelled with the other service, or were refused there.
    UpstreamCancelled,
    UpstreamUnavailable,
    UpstreamLoginRequired,
}

impl LoginProblem {
    /// Whether it concerns the user name, and whether the password.
    fn fields(self) -> (bool, bool) {
        match self {
            LoginProblem::WrongCredentials | LoginProblem::BothMissing => (true, true),
            LoginProblem::UsernameMissing => (true, false),
            LoginProblem::PasswordMissing => (false, true),
            LoginProblem::TooManyAttempts { .. } | LoginProblem::PageExpired => (false, false),
            LoginProblem::UpstreamCancelled
            | LoginProblem::UpstreamUnavailable
            | LoginProblem::UpstreamLoginRequired => (false, false),
        }
    }
}

/// The sign-in page. One form posts `form_token`, `username`, `password`, one `form_token` and `identity_provider` (the name
/// of the service), with `someone_else` where that was said; `decision` is absent for a sign-in, `cancel`, or in the account
/// chooser `continue` or `another`.
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
            @match view.present_account {
                Some(account) => (form(view, &chooser(texts, account))),
                None => (ways(view)),
            }
            @if let Some(client) = &view.client { (client_links(texts, client)) }
        },
    )
}

fn form(view: &LoginView<'_>, content: &Markup) -> Markup {
    html! {
        form method="post" action=(view.action) {
            input type="hidden" name="form_token" value=(view.form_token);
            @if view.someone_else { input type="hidden" name="someone_else" value="true"; }
            (content)
        }
    }
}

/// The ways to sign in. Each in a form of its own: going to another service sends no password along.
fn ways(view: &LoginView<'_>) -> Markup {
    let has_providers = !view.providers.is_empty();
    html! {
        @if view.password { (form(view, &fields(view))) }
        @if view.password && has_providers { p .or { (view.chrome.texts.or) } }
        @if has_providers { (form(view, &providers(view))) }
    }
}

fn providers(view: &LoginView<'_>) -> Markup {
    let texts = view.chrome.texts;
    html! {
        div .actions {
            @for provider in view.providers {
                button type="submit" name="identity_provider" value=(provider.name) {
                    (about(texts.sign_in_with, provider.display_name))
                }
            }
            (cancel(texts))
        }
    }
}

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

fn summary(texts: &Texts, problem: LoginProblem) -> Markup {
    let username = html! { a href="#username" { (texts.username_missing) } };
    let password = html! { a href="#password" { (texts.password_missing) } };
    html! {
        div #problem .notice .problem role="alert" {
            h2 { (texts.there_is_a_problem) }
            @match problem {
                LoginProblem::WrongCredentials => p { a href="#username" { (texts.wrong_credentials) } },
                LoginProblem::TooManyAttempts { minutes } => p { (texts.too_many_attempts.fill(&texts.minutes(minutes))) },
                LoginProblem::PageExpired => p { (texts.page_expired) },
                LoginProblem::UsernameMissing => p { (username) },
                LoginProblem::PasswordMissing => p { (password) },
                LoginProblem::BothMissing => ul { li { (username) } li { (password) } },
                LoginProblem::UpstreamCancelled => p { (texts.upstream_cancelled) },
                LoginProblem::UpstreamUnavailable => p { (texts.upstream_unavailable) },
                LoginProblem::UpstreamLoginRequired => p { (texts.upstream_login_required) },
            }
        }
    }
}

fn fields(view: &LoginView<'_>) -> Markup {
    let texts = view.chrome.texts;
    let (username_wrong, password_wrong) = view.problem.map_or((false, false), LoginProblem::fields);
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
            @if view.providers.is_empty() { (cancel(texts)) }
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
