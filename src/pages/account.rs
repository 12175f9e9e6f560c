//! A person's own account: where they are signed in, what applications they allowed, the accounts elsewhere that they sign
//! in with, and their password.

mod linked;

use maud::{Markup, html};

use crate::pages::consent::{ConsentScope, scope_name};
use crate::pages::frame::{Account, Chrome, Client, about, about_account, client_logo, document};
use crate::pages::texts::{Template, Texts};
use crate::protocol::registration::timestamp;
use crate::protocol::words::instant::Instant;

pub use linked::{IdentityItem, ProviderItem};

#[derive(Clone, Copy, Debug)]
pub struct AccountView<'a> {
    pub chrome: Chrome<'a>,
    pub action: &'a str,
    pub form_token: &'a str,
    pub sign_out: &'a str,
    pub account: Account<'a>,
    pub tenant: Option<&'a str>,
    pub outcome: Option<Outcome<'a>>,
    pub sessions: &'a [SessionItem<'a>],
    pub applications: &'a [ApplicationItem<'a>],
    pub identities: &'a [IdentityItem<'a>],
    pub linkable: &'a [ProviderItem<'a>],
    pub has_password: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct SessionItem<'a> {
    pub sid: &'a str,
    pub since: Instant,
    pub until: Instant,
    /// Display name of the identity provider; none for the password.
    pub provider: Option<&'a str>,
    pub is_this: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct ApplicationItem<'a> {
    pub client_id: &'a str,
    pub client: Client<'a>,
    pub scopes: &'a [ConsentScope<'a>],
    pub since: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    SessionEnded,
    OtherSessionsEnded,
    AccessWithdrawn(&'a str),
    PasswordChanged,
    /// They signed in anew, so that they can link an account.
    SignedInAnew,
    IdentityLinked(&'a str),
    IdentityLinkedAlready(&'a str),
    IdentityUnlinked(&'a str),
    Problem(AccountProblem),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountProblem {
    /// The page was drawn for another session.
    SessionChanged,
    /// What was to end had ended before.
    NothingThere,
    PresentPasswordMissing,
    PresentPasswordWrong,
    /// Too many wrong ones; whole minutes to wait, rounded up.
    TooManyAttempts {
        minutes: u32,
    },
    /// The new one is missing, too short, too long or much used.
    NewPasswordUnfit,
    NewPasswordsDiffer,
    LastWayIn,
    LinkedElsewhere,
    LinkExpired,
    /// They were sent to sign in anew, and the provider says that they did so before.
    SignInTooOld,
    LinkCancelled,
    ProviderUnavailable,
}

impl AccountProblem {
    /// The field that it concerns, and what it says.
    fn told(self, texts: &Texts) -> (Option<&'static str>, String) {
        let (field, sentence) = match self {
            AccountProblem::TooManyAttempts { minutes } => {
                return (None, texts.too_many_attempts.fill(&texts.minutes(minutes)));
            }
            AccountProblem::PresentPasswordMissing => (Some("present-password"), texts.present_password_missing),
            AccountProblem::PresentPasswordWrong => (Some("present-password"), texts.present_password_wrong),
            AccountProblem::NewPasswordUnfit => (Some("new-password"), texts.new_password_unfit),
            AccountProblem::NewPasswordsDiffer => (Some("new-password-again"), texts.new_passwords_differ),
            AccountProblem::SessionChanged => (None, texts.session_changed),
            AccountProblem::NothingThere => (None, texts.nothing_there),
            AccountProblem::LastWayIn => (None, texts.last_way_in),
            AccountProblem::LinkedElsewhere => (None, texts.linked_elsewhere),
            AccountProblem::LinkExpired => (None, texts.link_expired),
            AccountProblem::SignInTooOld => (None, texts.sign_in_too_old),
            AccountProblem::LinkCancelled => (None, texts.link_cancelled),
            AccountProblem::ProviderUnavailable => (None, texts.provider_unavailable),
        };
        (field, sentence.to_owned())
    }
}

/// The account page. Each of its forms posts `form_token` and `decision`: `end_session` with `session`, `end_others`, `withdraw`
/// with `client_id`, `unlink` with `identity`, `link` with `provider`, or `change_password` with `present_password`, `new_password`
/// and `new_password_again`.
pub fn page(view: &AccountView<'_>) -> Markup {
    let texts = view.chrome.texts;
    let problem = match view.outcome {
        Some(Outcome::Problem(problem)) => Some(problem),
        Some(
            Outcome::SessionEnded
            | Outcome::OtherSessionsEnded
            | Outcome::AccessWithdrawn(_)
            | Outcome::PasswordChanged
            | Outcome::SignedInAnew
            | Outcome::IdentityLinked(_)
            | Outcome::IdentityLinkedAlready(_)
            | Outcome::IdentityUnlinked(_),
        )
        | None => None,
    };
    let title = match problem {
        Some(_) => texts.error_in_title.fill(texts.account_title),
        None => texts.account_title.to_owned(),
    };
    document(
        view.chrome,
        &title,
        html! {
            h1 { (texts.account_title) }
            p .lead { (about_account(texts.signed_in_as, view.account)) }
            @if let Some(tenant) = view.tenant { p .tenant { (about(texts.with_account_of_tenant, tenant)) } }
            p { a href=(view.sign_out) { (texts.sign_out) } }
            @if let Some(outcome) = view.outcome { (said(texts, outcome)) }
            (sessions(view))
            (applications(view))
            (linked::section(view))
            @if view.has_password { (password(view, problem)) }
        },
    )
}

fn said(texts: &Texts, outcome: Outcome<'_>) -> Markup {
    let done = |sentence: Markup| html! { div .notice .done role="status" { p { (sentence) } } };
    match outcome {
        Outcome::SessionEnded => done(html! { (texts.session_ended) }),
        Outcome::OtherSessionsEnded => done(html! { (texts.other_sessions_ended) }),
        Outcome::AccessWithdrawn(name) => done(about(texts.access_withdrawn, name)),
        Outcome::PasswordChanged => done(html! { (texts.password_changed) }),
        Outcome::SignedInAnew => done(html! { (texts.signed_in_anew) }),
        Outcome::IdentityLinked(provider) => done(about(texts.identity_linked, provider)),
        Outcome::IdentityLinkedAlready(provider) => done(about(texts.identity_linked_already, provider)),
        Outcome::IdentityUnlinked(provider) => done(about(texts.identity_unlinked, provider)),
        Outcome::Problem(problem) => html! {
            div #problem .notice .problem role="alert" {
                h2 { (texts.there_is_a_problem) }
                p {
                    @match problem.told(texts) {
                        (Some(field), sentence) => a href={ "#" (field) } { (sentence) },
                        (None, sentence) => (sentence),
                    }
                }
            }
        },
    }
}

fn sessions(view: &AccountView<'_>) -> Markup {
    let texts = view.chrome.texts;
    html! {
        section aria-labelledby="sessions" {
            h2 #sessions { (texts.sessions_heading) }
            p .hint {
                @if view.has_password { (texts.sessions_hint) } @else { (texts.sessions_hint_without_password) }
            }
            ul .items {
                @for (index, session) in view.sessions.iter().enumerate() { li { (session_item(view, session, index)) } }
            }
            @if view.sessions.iter().any(|session| !session.is_this) {
                (form(view, html! {
                    button type="submit" name="decision" value="end_others" { (texts.end_other_sessions) }
                }))
            }
        }
    }
}

fn session_item(view: &AccountView<'_>, session: &SessionItem<'_>, index: usize) -> Markup {
    let texts = view.chrome.texts;
    let id = format!("session-{index}");
    html! {
        div id=(id) {
            p {
                (at(texts.signed_in_on, session.since))
                @if session.is_this { " " span .badge { (texts.this_browser) } }
            }
            p .hint {
                @match session.provider {
                    Some(provider) => (about(texts.signed_in_through, provider)),
                    None => (texts.signed_in_with_password),
                }
            }
            p .hint { (at(texts.signed_in_until, session.until)) }
        }
        @if !session.is_this {
            (form(view, html! {
                input type="hidden" name="session" value=(session.sid);
                button .link type="submit" name="decision" value="end_session" aria-describedby=(id) { (texts.end_session) }
            }))
        }
    }
}

fn applications(view: &AccountView<'_>) -> Markup {
    let texts = view.chrome.texts;
    html! {
        section aria-labelledby="applications" {
            h2 #applications { (texts.applications_heading) }
            @if view.applications.is_empty() {
                p .hint { (texts.no_applications) }
            } @else {
                p .hint { (texts.withdraw_hint) }
                ul .items {
                    @for (index, application) in view.applications.iter().enumerate() {
                        li { (application_item(view, application, index)) }
                    }
                }
            }
        }
    }
}

fn application_item(view: &AccountView<'_>, application: &ApplicationItem<'_>, index: usize) -> Markup {
    let texts = view.chrome.texts;
    let id = format!("application-{index}");
    html! {
        (client_logo(&application.client))
        p id=(id) { strong { bdi { (application.client.name) } } }
        ul .claims {
            @for scope in application.scopes { li { bdi { (scope_name(texts, scope)) } } }
        }
        p .hint { (at(texts.allowed_since, application.since)) }
        (form(view, html! {
            input type="hidden" name="client_id" value=(application.client_id);
            button .link type="submit" name="decision" value="withdraw" aria-describedby=(id) { (texts.withdraw) }
        }))
    }
}

fn password(view: &AccountView<'_>, problem: Option<AccountProblem>) -> Markup {
    let texts = view.chrome.texts;
    let wrong = problem.and_then(|problem| problem.told(texts).0);
    html! {
        section aria-labelledby="password" {
            h2 #password { (texts.change_password_heading) }
            p .hint { (texts.change_password_hint) }
            (form(view, html! {
                // For password managers: whose password it is.
                input type="hidden" name="username" value=(view.account.username) autocomplete="username";
                (password_field(texts.present_password, "present-password", ("present_password", "current-password"), wrong, None))
                (password_field(texts.new_password, "new-password", ("new_password", "new-password"), wrong, Some(texts.new_password_hint)))
                (password_field(texts.new_password_again, "new-password-again", ("new_password_again", "new-password"), wrong, None))
                div .actions {
                    button .primary type="submit" name="decision" value="change_password" { (texts.change_password) }
                }
            }))
        }
    }
}

fn password_field(
    label: &str,
    id: &str,
    (name, autocomplete): (&str, &str),
    wrong: Option<&str>,
    hint: Option<&str>,
) -> Markup {
    let hint_id = format!("{id}-hint");
    let is_wrong = wrong == Some(id);
    let described_by = match (is_wrong, hint) {
        (true, Some(_)) => Some(format!("problem {hint_id}")),
        (true, None) => Some(String::from("problem")),
        (false, Some(_)) => Some(hint_id.clone()),
        (false, None) => None,
    };
    html! {
        div .field {
            label for=(id) { (label) }
            input id=(id) type="password" name=(name) required autocomplete=(autocomplete)
                aria-invalid=[is_wrong.then_some("true")] aria-describedby=[described_by];
            @if let Some(hint) = hint { p .hint id=(hint_id) { (hint) } }
        }
    }
}

fn form(view: &AccountView<'_>, content: Markup) -> Markup {
    html! {
        form method="post" action=(view.action) {
            input type="hidden" name="form_token" value=(view.form_token);
            (content)
        }
    }
}

/// A sentence about a moment, to the minute, in UTC: the one notation that is the same in every language.
fn at(template: Template, instant: Instant) -> Markup {
    let (before, after) = template.parts();
    let whole = timestamp::format(instant);
    let shown = whole.get(..16).unwrap_or(&whole).replace('T', " ");
    html! { (before) time datetime=(whole) { bdi { (shown) " UTC" } } (after) }
}
