//! The consent page: who asks, for whom, for what. A device's is one, too, with the code that the
//! device must show; and the pages before and after that: its code, and what became of it.

use maud::{Markup, html};

use crate::pages::form_problem::{FormProblem, told};
use crate::pages::frame::{
    Account, Chrome, PageForm, about, about_account, button, client_links, client_logo,
    document_with, headed, primary_button, session_changed, submit,
};
use crate::pages::icons::{WARNING, icon};
use crate::pages::texts::Texts;
use gatepost_protocol::authorize::authorize_request::{AuthorizeRequest, Ending};
use gatepost_protocol::authorize::interaction::is_required;
use gatepost_protocol::words::catalogue::{Catalogue, RegisteredScope};
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::redirect_uri::RedirectTarget;
use gatepost_protocol::words::scope::ScopeKind;
use gatepost_protocol::words::web_url::WebUrl;

/// What is asked of a person: the request, who made it, and the scopes that there are.
pub struct Asked<'a> {
    pub request: &'a AuthorizeRequest,
    pub client: &'a Client,
    pub catalogue: &'a Catalogue,
    pub account: Account<'a>,
    /// Whether they may have their answer remembered.
    pub may_remember: bool,
}

/// The consent page. The main form posts `form_token`, `scope` for each ticked scope (never the
/// required ones), `remember=true` and `decision` as `allow` or `deny`; the small one `form_token`
/// and `decision=another`.
pub fn page(form: &PageForm<'_>, asked: Asked<'_>, drawn_again: bool) -> Markup {
    let Asked {
        request,
        client,
        catalogue,
        account,
        may_remember,
    } = asked;
    let chrome = form.chrome;
    let texts = chrome.texts;
    let name = chrome.name_of(client);
    let user_code = match &request.ending {
        Ending::Device(user_code) => Some(user_code.to_string()),
        Ending::Client(_) | Ending::Account { .. } => None,
    };
    let (title, heading) = match user_code {
        Some(_) => (texts.device_title, texts.device_asks_for_access),
        None => (texts.consent_title, texts.client_asks_for_access),
    };
    let scopes = request
        .scope
        .iter()
        .filter_map(|name| catalogue.scopes.get(name))
        .enumerate();
    let claims = request.claims.names();
    let card = html! {
        @if user_code.is_none() { (client_logo(chrome, client)) }
        h1 { (about(heading, name)) }
        // A form of its own: Enter in the main one must not press its button.
        form .account method="post" action=(form.action) {
            (form.token())
            p { (about_account(texts.signed_in_as, account)) }
            button .link type="submit" name="decision" value="another" { (texts.not_you) }
        }
        (session_changed(texts, drawn_again))
        @if client.metadata_document && let Ending::Client(path) = &request.ending {
            (parties(texts, client, &path.to))
        }
        @if let Some(user_code) = &user_code {
            div .notice .warning {
                h2 { (icon(WARNING)) (texts.device_warning_title) }
                p { (about(texts.device_must_show, user_code)) }
                p { (texts.device_warning) }
            }
        }
        (form.of(&html! {
            fieldset {
                legend { (texts.scopes_legend) }
                ul .scopes {
                    @for (index, scope) in scopes {
                        li {
                            (scope_choice(texts, scope, is_required(&scope.name, catalogue), index))
                        }
                    }
                }
            }
            @if !claims.is_empty() {
                h2 { (texts.claims_heading) }
                ul .claims {
                    @for claim in &claims {
                        li { bdi { (texts.standard_claim(claim).unwrap_or(claim)) } }
                    }
                }
            }
            p .hint { (about(texts.consent_hint, name)) }
            @if may_remember {
                div .choice .remember {
                    input #remember type="checkbox" name="remember" value="true" checked
                        aria-describedby="remember-hint";
                    div {
                        label for="remember" { (texts.remember) }
                        p #remember-hint .hint { (texts.remember_hint) }
                    }
                }
            }
            div .actions {
                (primary_button("allow", texts.allow))
                (button("deny", texts.deny))
            }
        }))
        (client_links(chrome, client))
    };
    document_with(chrome, drawn_again, title, card)
}

/// Whom the person deals with, in our words: the application chose its name itself.
fn parties(texts: &Texts, client: &Client, to: &RedirectTarget) -> Markup {
    let host = |address| WebUrl::parse(address).map_or(address, |url| url.host);
    html! {
        p { (about(texts.client_belongs_to, host(client.client_id.as_str()))) }
        p { (about(texts.answer_goes_to, host(to.uri()))) }
        @if to.is_loopback() {
            div .notice .warning { p { (texts.answer_goes_to_program) } }
        }
    }
}

/// One that is required cannot be left out. Its checkbox is disabled, so browsers do not send it:
/// the server adds it.
fn scope_choice(texts: &Texts, scope: &RegisteredScope, required: bool, index: usize) -> Markup {
    let id = format!("scope-{index}");
    let hint = format!("scope-{index}-hint");
    let (name, description) = wording(texts, scope);
    let explained = required || !description.is_empty();
    html! {
        div .choice .emphasized[scope.emphasize] {
            input id=(id) type="checkbox" name="scope" value=(scope.name) checked disabled[required]
                aria-describedby=[explained.then_some(&hint)];
            div {
                label for=(id) {
                    bdi { (name) }
                    @if scope.emphasize { " " span .badge .warning { (texts.scope_emphasized) } }
                    @if required { " " span .badge { (texts.scope_required) } }
                }
                @if explained {
                    p .hint id=(hint) {
                        bdi { (description) }
                        @if required { " " (texts.scope_required_hint) }
                    }
                }
            }
        }
    }
}

/// Name and description to show: the registered ones; the language's own words where there are
/// none, and for the built-in scopes. These words are about users, not about an API of that name.
pub(crate) fn wording<'a>(texts: &'a Texts, scope: &'a RegisteredScope) -> (&'a str, &'a str) {
    let own = texts
        .standard_scope(&scope.name)
        .filter(|_| scope.kind == ScopeKind::Identity)
        .map_or((scope.name.as_str(), ""), |text| {
            (text.name, text.description)
        });
    if scope.is_built_in {
        return own;
    }
    let name = texts.language.of(&scope.display_name);
    let description = texts.language.of(&scope.description);
    (
        if name.is_empty() { own.0 } else { name },
        if description.is_empty() {
            own.1
        } else {
            description
        },
    )
}

/// Asks for the code. The form posts `form_token` and `user_code`; one that came with the address
/// must be held against the device.
pub fn user_code_page(
    form: &PageForm<'_>,
    user_code: &str,
    problem: Option<FormProblem>,
) -> Markup {
    let texts = form.chrome.texts;
    let to_be_compared = !user_code.is_empty() && problem.is_none();
    let card = html! {
        p .lead { @if to_be_compared { (texts.device_compare) } @else { (texts.device_hint) } }
        (told(texts, problem))
        (form.of(&html! {
            (user_code_field(texts, user_code, problem))
            (submit(texts.device_continue))
        }))
    };
    headed(form.chrome, problem.is_some(), texts.device_title, &card)
}

fn user_code_field(texts: &Texts, typed: &str, problem: Option<FormProblem>) -> Markup {
    let is_wrong = problem.and_then(FormProblem::field) == Some("user-code");
    html! {
        div .field {
            label for="user-code" { (texts.device_code) }
            input #user-code .user-code type="text" name="user_code" value=(typed) required
                autocomplete="off" autocapitalize="characters" autocorrect="off"
                spellcheck="false" dir="ltr"
                aria-invalid=[is_wrong.then_some("true")]
                aria-describedby=[is_wrong.then_some("problem")]
                autofocus[typed.is_empty()];
        }
    }
}

/// What became of a device.
pub fn decided_page(chrome: Chrome<'_>, client: &Client, allowed: bool) -> Markup {
    let texts = chrome.texts;
    let (title, hint) = if allowed {
        (texts.device_connected_title, texts.device_connected_hint)
    } else {
        (texts.device_denied_title, texts.device_denied_hint)
    };
    let card = html! { p .lead { (about(hint, chrome.name_of(client))) } };
    headed(chrome, false, title, &card)
}
