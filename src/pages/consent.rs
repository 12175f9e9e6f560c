//! The consent page: who asks, for whom, for what. A device's is one, too, with the code that the device must show.

use maud::{Markup, html};

use crate::pages::frame::{Account, Chrome, Client, about, about_account, client_links, client_logo, document};
use crate::pages::texts::Texts;

#[derive(Clone, Copy, Debug)]
pub struct ConsentView<'a> {
    pub chrome: Chrome<'a>,
    /// Where the forms go: path and query of ours, with the sealed request.
    pub action: &'a str,
    pub form_token: &'a str,
    pub client: Client<'a>,
    pub account: Account<'a>,
    /// What the device shows, where it is one's.
    pub user_code: Option<&'a str>,
    pub scopes: &'a [ConsentScope<'a>],
    pub claims: &'a [&'a str],
    pub may_remember: bool,
    /// The session changed since the page was drawn: it is drawn again and says so.
    pub drawn_again: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct ConsentScope<'a> {
    /// The wire name: the value of the checkbox.
    pub name: &'a str,
    /// Registered display name. Empty: the language's own words for a standard scope, else the wire name.
    pub display_name: &'a str,
    /// Registered description; empty likewise.
    pub description: &'a str,
    /// Cannot be left out. Its checkbox is disabled, so browsers do not send it: the server adds it.
    pub required: bool,
    pub emphasize: bool,
}

/// The consent page. The main form posts `form_token`, `scope` for each ticked scope (never the required ones), `remember=true`
/// and `decision` as `allow` or `deny`; the small one `form_token` and `decision=another`.
pub fn page(view: &ConsentView<'_>) -> Markup {
    let texts = view.chrome.texts;
    let (title, heading) = match view.user_code {
        Some(_) => (texts.device_title, texts.device_asks_for_access),
        None => (texts.consent_title, texts.client_asks_for_access),
    };
    let title = if view.drawn_again { texts.error_in_title.fill(title) } else { title.to_owned() };
    document(
        view.chrome,
        &title,
        html! {
            (client_logo(&view.client))
            h1 { (about(heading, view.client.name)) }
            (account(texts, view.account, view.action, view.form_token))
            @if view.drawn_again { div .notice .problem role="alert" { p { (texts.session_changed) } } }
            @if let Some(user_code) = view.user_code {
                div .notice .warning {
                    h2 { (texts.device_warning_title) }
                    p { (about(texts.device_must_show, user_code)) }
                    p { (texts.device_warning) }
                }
            }
            form method="post" action=(view.action) {
                input type="hidden" name="form_token" value=(view.form_token);
                (scope_choices(texts, view.scopes))
                (claims(texts, view.claims))
                p .hint { (about(texts.consent_hint, view.client.name)) }
                @if view.may_remember { (remember(texts)) }
                div .actions {
                    button .primary type="submit" name="decision" value="allow" { (texts.allow) }
                    button type="submit" name="decision" value="deny" { (texts.deny) }
                }
            }
            (client_links(texts, &view.client))
        },
    )
}

/// Who is signed in, with the way to another account. A form of its own: Enter in the main one must not press its button.
fn account(texts: &Texts, account: Account<'_>, action: &str, form_token: &str) -> Markup {
    html! {
        form .account method="post" action=(action) {
            input type="hidden" name="form_token" value=(form_token);
            p { (about_account(texts.signed_in_as, account)) }
            button .link type="submit" name="decision" value="another" { (texts.not_you) }
        }
    }
}

fn scope_choices(texts: &Texts, scopes: &[ConsentScope<'_>]) -> Markup {
    html! {
        fieldset {
            legend { (texts.scopes_legend) }
            ul .scopes {
                @for (index, scope) in scopes.iter().enumerate() { li { (scope_choice(texts, scope, index)) } }
            }
        }
    }
}

fn scope_choice(texts: &Texts, scope: &ConsentScope<'_>, index: usize) -> Markup {
    let id = format!("scope-{index}");
    let hint = format!("scope-{index}-hint");
    let (name, description) = wording(texts, scope);
    let explained = scope.required || !description.is_empty();
    html! {
        div .choice .emphasized[scope.emphasize] {
            input id=(id) type="checkbox" name="scope" value=(scope.name) checked disabled[scope.required]
                aria-describedby=[explained.then_some(&hint)];
            div {
                label for=(id) {
                    bdi { (name) }
                    @if scope.emphasize { " " span .badge .warning { (texts.scope_emphasized) } }
                    @if scope.required { " " span .badge { (texts.scope_required) } }
                }
                @if explained {
                    p .hint id=(hint) {
                        bdi { (description) }
                        @if scope.required { " " (texts.scope_required_hint) }
                    }
                }
            }
        }
    }
}

pub(crate) fn scope_name<'a>(texts: &'a Texts, scope: &ConsentScope<'a>) -> &'a str {
    wording(texts, scope).0
}

/// Name and description to show: the registered ones, else the language's own.
fn wording<'a>(texts: &'a Texts, scope: &ConsentScope<'a>) -> (&'a str, &'a str) {
    let (own_name, own_description) =
        texts.standard_scope(scope.name).map_or((scope.name, ""), |text| (text.name, text.description));
    let first = |registered: &'a str, own: &'a str| if registered.is_empty() { own } else { registered };
    (first(scope.display_name, own_name), first(scope.description, own_description))
}

fn claims(texts: &Texts, claims: &[&str]) -> Markup {
    html! {
        @if !claims.is_empty() {
            h2 { (texts.claims_heading) }
            ul .claims {
                @for claim in claims { li { bdi { (texts.standard_claim(claim).unwrap_or(claim)) } } }
            }
        }
    }
}

fn remember(texts: &Texts) -> Markup {
    html! {
        div .choice .remember {
            input #remember type="checkbox" name="remember" value="true" checked aria-describedby="remember-hint";
            div {
                label for="remember" { (texts.remember) }
                p #remember-hint .hint { (texts.remember_hint) }
            }
        }
    }
}
