//! The sign-in page: user name and password, other services to sign in with, or the account that is
//! signed in already.

use maud::{Markup, html};

use crate::pages::form_problem::{FormProblem, told};
use crate::pages::frame::{
    Account, Chrome, PageForm, about, about_account, button, client_links, client_logo,
    document_with, done, field_problem, help, hidden, primary_button, problem_notice,
    session_changed, submit,
};
use crate::pages::second_factor::passkey_form;
use crate::pages::texts::{Text, Texts};
use gatepost_protocol::authorize::authorize_request::{AuthorizeRequest, Ending, LandingPage};
use gatepost_protocol::login::password::SignInWith;
use gatepost_protocol::upstream::choices::Choices;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identifiers::TenantName;

/// For what somebody signs in.
#[derive(Clone, Copy)]
pub struct SignInFor<'a> {
    pub request: &'a AuthorizeRequest,
    /// Who asked for the sign-in; none where the person came for their own account.
    pub client: Option<&'a Client>,
    pub catalogue: &'a Catalogue,
}

/// What the form says when it is drawn.
pub struct SignInForm<'a> {
    /// They said that they are not whom this browser knows.
    pub someone_else: bool,
    /// What they type to say who they are.
    pub with: SignInWith,
    /// Where they go who forgot their password, if letters are sent.
    pub forgotten: Option<&'a str>,
    /// They come from the link by which they set their password.
    pub password_is_set: bool,
    /// The same for a passkey.
    pub passkey_is_set: bool,
    /// `login_hint`, or what was typed before.
    pub username: &'a str,
    /// Whether the box to stay signed in is ticked; `None` where it is not offered.
    pub remember: Option<bool>,
    /// Where passkeys can be asked for.
    pub passkey: Option<AskPasskey<'a>>,
}

/// How a browser is asked for a passkey.
#[derive(Clone, Copy)]
pub struct AskPasskey<'a> {
    /// Where its answer goes.
    pub action: &'a str,
    pub options: &'a str,
    /// What the browser is told of the one that it used.
    pub signals: Option<&'a str>,
}

/// The sign-in page. One form posts `form_token`, `username`, `password`, one `form_token` and
/// `identity_provider` (the name of the service), each with `someone_else` where that was said: the
/// other service shall ask who they are. The first has `remember` where that is ticked. A third
/// posts the answer to `passkey`, as `passkey_form` says, to its own address. `decision` is absent,
/// or `cancel`.
pub fn page(
    form: &PageForm<'_>,
    purpose: SignInFor<'_>,
    choices: &Choices,
    shown: SignInForm<'_>,
    problem: Option<FormProblem>,
) -> Markup {
    let SignInForm {
        someone_else,
        with,
        password_is_set,
        passkey_is_set,
        remember,
        passkey,
        ..
    } = shown;
    let texts = form.chrome.texts;
    let asked = Asked::of(texts, with);
    let known = &purpose.catalogue.identity_providers;
    let providers: Vec<_> = choices
        .providers
        .iter()
        .filter_map(|name| known.get(name))
        .collect();
    // Each in a form of its own: going to another service sends no password along.
    let of_form = |fields: Markup| {
        form.of(&html! {
            @if someone_else { (hidden("someone_else", "true")) }
            (fields)
        })
    };
    let ways = html! {
        @if let Some(problem) = problem {
            (summary(texts, asked, problem))
        } @else if password_is_set {
            (done(texts.password_is_set))
        } @else if passkey_is_set {
            (done(texts.passkey_is_set))
        }
        @if choices.password {
            (of_form(html! {
                (fields(texts, asked.label, shown, problem))
                @if let Some(is_ticked) = remember {
                    div .choice .remember {
                        input #remember type="checkbox" name="remember" value="true"
                            checked[is_ticked];
                        label for="remember" { (texts.remember_device) }
                    }
                }
                // First, because Enter in a field presses the first button of a form.
                (submit(texts.sign_in))
            }))
        }
        @if let Some(AskPasskey { action, options, signals }) = passkey {
            @if let Some(signals) = signals { div hidden data-signals=(signals) {} }
            (passkey_form(&PageForm { action: action.to_owned(), ..form.clone() }, options, false))
        }
        @if choices.password && !providers.is_empty() { p .or { (texts.or) } }
        @if !providers.is_empty() {
            (of_form(html! {
                div .actions {
                    @for provider in &providers {
                        button type="submit" name="identity_provider" value=(provider.name) {
                            (about(texts.sign_in_with, &provider.display_name))
                        }
                    }
                }
            }))
        }
        (of_form(html! { div .actions .more { (cancel(texts)) } }))
    };
    card(form, purpose, texts.sign_in_title, problem.is_some(), &ways)
}

/// `prompt=select_account` with a session: offers this account or another one, no fields. The form
/// posts `form_token` and `decision` as `continue`, `another` or `cancel`; the first only where the
/// application is open to the account.
pub fn chooser_page(
    form: &PageForm<'_>,
    purpose: SignInFor<'_>,
    account: Account<'_>,
    is_open: bool,
    drawn_again: bool,
) -> Markup {
    let texts = form.chrome.texts;
    let title = if is_open {
        texts.choose_account_title
    } else {
        texts.not_open_title
    };
    let chooser = html! {
        (session_changed(texts, drawn_again))
        p { (about_account(texts.signed_in_here_as, account)) }
        @if !is_open { p { (texts.not_open) } }
        div .actions {
            @if is_open {
                (primary_button("continue", about(texts.continue_as, account.name)))
            }
            (button("another", texts.use_another_account))
            (cancel(texts))
        }
    };
    let is_error = !is_open || drawn_again;
    card(form, purpose, title, is_error, &form.of(&chooser))
}

pub(super) fn card(
    form: &PageForm<'_>,
    purpose: SignInFor<'_>,
    heading: &str,
    is_error: bool,
    ways: &Markup,
) -> Markup {
    let chrome = form.chrome;
    let SignInFor {
        request,
        client,
        catalogue,
    } = purpose;
    let tenant = request.acr_values.tenant.as_ref();
    let card = html! {
        @if let Some(client) = client.filter(|_| matches!(request.ending, Ending::Client(_))) {
            (client_logo(chrome, client))
        }
        h1 { (heading) }
        p .lead { (lead(chrome, purpose, heading)) }
        (tenant_notice(chrome.texts, catalogue, tenant))
        (ways)
        (help(chrome))
        @if let Some(client) = client { (client_links(chrome, client)) }
    };
    document_with(chrome, is_error, heading, card)
}

/// Where they go on to.
fn lead(chrome: Chrome<'_>, purpose: SignInFor<'_>, heading: &str) -> Markup {
    let texts = chrome.texts;
    let to_own_page = match &purpose.request.ending {
        Ending::Account {
            page: LandingPage::Start,
            ..
        } => texts.to_your_applications,
        Ending::Account { anew: true, .. } => texts.sign_in_again,
        Ending::Account {
            page: LandingPage::Admin(_),
            ..
        } => texts.to_administer,
        _ => texts.to_see_your_account,
    };
    html! {
        @match purpose.client {
            Some(client) if heading == texts.not_open_title => bdi { (chrome.name_of(client)) },
            Some(client) => (about(texts.to_continue_to, chrome.name_of(client))),
            None => (to_own_page),
        }
    }
}

/// Says whose accounts are meant, where that is a tenant that is registered.
pub(super) fn tenant_notice(
    texts: &Texts,
    catalogue: &Catalogue,
    tenant: Option<&TenantName>,
) -> Markup {
    html! {
        @if let Some(tenant) = tenant.and_then(|name| catalogue.tenants.get(name.as_str())) {
            p .tenant { (about(texts.with_account_of_tenant, &tenant.display_name)) }
        }
    }
}

/// What the page says of the first field.
#[derive(Clone, Copy)]
struct Asked {
    label: Text,
    missing: Text,
    wrong_credentials: Text,
}

impl Asked {
    fn of(texts: &Texts, with: SignInWith) -> Asked {
        match with {
            SignInWith::Username => Asked {
                label: texts.username,
                missing: texts.username_missing,
                wrong_credentials: texts.wrong_credentials,
            },
            SignInWith::UsernameOrAddress => Asked {
                label: texts.username_or_email,
                missing: texts.username_or_email_missing,
                wrong_credentials: texts.wrong_credentials_or_email,
            },
        }
    }
}

fn summary(texts: &Texts, asked: Asked, problem: FormProblem) -> Markup {
    match problem {
        FormProblem::BothMissing => problem_notice(
            texts,
            &html! {
                ul {
                    li { a href="#username" { (asked.missing) } }
                    li { a href="#password" { (texts.password_missing) } }
                }
            },
        ),
        FormProblem::WrongCredentials => {
            field_problem(texts, problem.field(), asked.wrong_credentials)
        }
        FormProblem::UsernameMissing => field_problem(texts, problem.field(), asked.missing),
        _ => told(texts, Some(problem)),
    }
}

fn fields(
    texts: &Texts,
    label: Text,
    shown: SignInForm<'_>,
    problem: Option<FormProblem>,
) -> Markup {
    use FormProblem::{BothMissing, PasswordMissing, UsernameMissing, WrongCredentials};
    let username_wrong = matches!(
        problem,
        Some(WrongCredentials | BothMissing | UsernameMissing)
    );
    let password_wrong = matches!(
        problem,
        Some(WrongCredentials | BothMissing | PasswordMissing)
    );
    html! {
        div .field {
            label for="username" { (label) }
            input #username type="text" name="username" value=(shown.username) required
                autocomplete=(match shown.passkey {
                    Some(_) => "username webauthn",
                    None => "username",
                })
                autocapitalize="none" autocorrect="off" spellcheck="false" dir="auto"
                aria-invalid=[username_wrong.then_some("true")]
                aria-describedby=[username_wrong.then_some("problem")]
                autofocus[shown.username.is_empty()];
        }
        div .field .password {
            label for="password" { (texts.password) }
            input #password type="password" name="password" required autocomplete="current-password"
                aria-invalid=[password_wrong.then_some("true")]
                aria-describedby=[password_wrong.then_some("problem")]
                autofocus[!shown.username.is_empty()];
            // Beside the label, but after the field for who goes on by keyboard.
            @if let Some(address) = shown.forgotten { a href=(address) { (texts.forgotten_title) } }
        }
    }
}

pub(super) fn cancel(texts: &Texts) -> Markup {
    html! {
        button .quiet type="submit" name="decision" value="cancel" formnovalidate { (texts.cancel) }
    }
}
