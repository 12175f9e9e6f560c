//! A person's own account: where they are signed in, what applications they allowed, the accounts
//! elsewhere that they sign in with, and their password; and the question whether an account
//! elsewhere shall be a way in.

use std::sync::Arc;

use maud::{Markup, html};

use crate::pages::consent::wording;
use crate::pages::form_problem::{FormProblem, told};
use crate::pages::frame::{
    Account, PageForm, about, about_account, button, client_logo, done, headed, hidden,
    link_button, primary_button, script,
};
use crate::pages::icons::{APPLICATION, PERSON, icon};
use crate::pages::login::tenant_notice;
use crate::pages::moment::at;
use crate::pages::password_link::{PasswordField, new_password};
use crate::pages::second_factor::factors;
use crate::pages::sign_ins::SignIns;
use crate::pages::texts::Texts;
use crate::registry::RegisteredClient;
use gatepost_protocol::authorize::consent::Allowance;
use gatepost_protocol::login::letters::{stored_address, verified_address};
use gatepost_protocol::upstream::account::readable;
use gatepost_protocol::upstream::choices::provider_of;
use gatepost_protocol::upstream::claims::known_as;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identity_provider::IdentityProvider;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::session::Session;
use gatepost_store::authenticators::Authenticator;
use gatepost_store::linked_identities::LinkedIdentity;

/// What there is to see, as it is stored.
pub struct Holdings<'a> {
    pub catalogue: &'a Catalogue,
    pub account: Account<'a>,
    pub has_password: bool,
    /// A password, or a passkey alone.
    pub has_own_way_in: bool,
    /// With their address, where letters are sent.
    pub claims: Option<&'a JsonObject>,
    pub may_change_name: bool,
    /// With the recovery codes.
    pub factors: &'a [Authenticator],
    /// Whether the base URL can have passkeys.
    pub has_passkeys: bool,
    /// What the browser is told of them.
    pub signals: Option<&'a str>,
    /// Of the form that makes recovery codes anew: it is good for these factors only.
    pub recovery_codes_token: &'a str,
    /// Whether only a sign-in by a passkey of theirs can change their factors.
    pub needs_passkey: bool,
    /// The session of this browser.
    pub current_session: &'a Session,
    pub sessions: &'a [Session],
    pub bound_sessions: bool,
    pub applications: &'a [(Arc<RegisteredClient>, Allowance)],
    /// Each with what it is called in its form.
    pub identities: &'a [(LinkedIdentity, String)],
    /// Where they could link an account.
    pub linkable: &'a [&'a IdentityProvider],
}

#[derive(Clone, Copy)]
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
    FactorAdded,
    FactorRemoved,
    /// A letter to this address is on its way.
    AddressLetterSent(&'a str),
    AddressChanged,
    NameChanged,
    Problem(FormProblem),
}

/// The account page. Each of its forms posts `form_token` and `decision`: `end_session` with
/// `session`, `end_others`, `withdraw` with `client_id`, `unlink` with `identity`, `link` with
/// `provider`, `change_password` with `present_password`, `new_password` and
/// `new_password_again`, `change_address` with `new_address`, or `change_name` with `new_name`.
/// `own` gives the address of another page of ours.
pub fn page(
    form: &PageForm<'_>,
    own: impl Fn(&str) -> String,
    holdings: &Holdings<'_>,
    outcome: Option<Outcome<'_>>,
) -> Markup {
    let texts = form.chrome.texts;
    let Holdings {
        catalogue,
        account,
        has_password,
        has_own_way_in,
        current_session,
        ..
    } = *holdings;
    let problem = if let Some(Outcome::Problem(problem)) = outcome {
        Some(problem)
    } else {
        None
    };
    let has_identities = !holdings.identities.is_empty() || !holdings.linkable.is_empty();
    let sign_ins = SignIns {
        catalogue,
        has_password,
        current_session,
        sessions: holdings.sessions,
        bound_sessions: holdings.bound_sessions,
    };
    let card = html! {
        p .lead { (icon(PERSON)) (about_account(texts.signed_in_as, account)) }
        (tenant_notice(texts, catalogue, current_session.tenant.as_ref()))
        ul .links {
            li { a href=(own("/start")) { (texts.start_title) } }
            li { a href=(own("/logout")) { (texts.sign_out) } }
        }
        @if let Some(outcome) = outcome { (said(texts, outcome)) }
        div .columns {
            @if has_own_way_in || has_identities {
                div {
                    @if has_own_way_in { (factors(texts, form, holdings)) }
                    @if has_password { (password(form, account.username, problem)) }
                    @if holdings.may_change_name {
                        section { (name(texts, form, account, problem)) }
                    }
                    @if let Some(claims) = holdings.claims.filter(|_| has_password) {
                        (address(texts, form, claims, problem))
                    }
                    @if has_identities { (identities(texts, form, holdings)) }
                }
            }
            div {
                (sign_ins.draw(texts, form))
                (applications(form, holdings))
            }
        }
        (script(form.chrome, "times.js"))
        @if let Some(signals) = holdings.signals { div hidden data-signals=(signals) {} }
        @if holdings.has_passkeys { (script(form.chrome, "passkey.js")) }
    };
    headed(form.chrome, problem.is_some(), texts.account_title, &card)
}

pub(super) fn said(texts: &Texts, outcome: Outcome<'_>) -> Markup {
    match outcome {
        Outcome::SessionEnded => done(texts.session_ended),
        Outcome::OtherSessionsEnded => done(texts.other_sessions_ended),
        Outcome::AccessWithdrawn(name) => done(about(texts.access_withdrawn, name)),
        Outcome::PasswordChanged => done(texts.password_changed),
        Outcome::SignedInAnew => done(texts.signed_in_anew),
        Outcome::IdentityLinked(provider) => done(about(texts.identity_linked, provider)),
        Outcome::IdentityLinkedAlready(provider) => {
            done(about(texts.identity_linked_already, provider))
        }
        Outcome::IdentityUnlinked(provider) => done(about(texts.identity_unlinked, provider)),
        Outcome::FactorAdded => done(texts.factor_added),
        Outcome::FactorRemoved => done(texts.factor_removed),
        Outcome::AddressLetterSent(address) => done(about(texts.address_letter_sent, address)),
        Outcome::AddressChanged => done(texts.address_changed),
        Outcome::NameChanged => done(texts.name_changed),
        Outcome::Problem(problem) => told(texts, Some(problem)),
    }
}

fn applications(form: &PageForm<'_>, holdings: &Holdings<'_>) -> Markup {
    let chrome = form.chrome;
    let texts = chrome.texts;
    html! {
        section aria-labelledby="applications" {
            h2 #applications { (icon(APPLICATION)) (texts.applications_heading) }
            @if holdings.applications.is_empty() {
                p .hint { (texts.no_applications) }
            } @else {
                p .hint { (texts.withdraw_hint) }
                ul .items {
                    @for (index, (client, allowance)) in holdings.applications.iter().enumerate() {
                        @let id = format!("application-{index}");
                        li {
                            (client_logo(chrome, &client.client))
                            p id=(id) { strong { bdi { (chrome.name_of(&client.client)) } } }
                            (allowed_scopes(texts, holdings.catalogue, allowance))
                            p .hint { (at(texts, texts.allowed_since, allowance.since)) }
                            (form.of(&withdrawing(texts, &client.client, &id)))
                        }
                    }
                }
            }
        }
    }
}

/// Without scopes that are no longer registered: an application cannot use them.
fn allowed_scopes(texts: &Texts, catalogue: &Catalogue, allowance: &Allowance) -> Markup {
    let named = |name| catalogue.scopes.get(name);
    html! {
        ul .claims {
            @for scope in allowance.scope.iter().filter_map(named) {
                li { bdi { (wording(texts, scope).0) } }
            }
        }
    }
}

fn withdrawing(texts: &Texts, client: &Client, id: &str) -> Markup {
    html! {
        (hidden("client_id", client.client_id.as_str()))
        (link_button("withdraw", id, texts.withdraw))
    }
}

/// What the provider of an identity is called.
pub fn provider_name<'a>(catalogue: &'a Catalogue, identity: &'a LinkedIdentity) -> &'a str {
    match provider_of(catalogue, &identity.issuer) {
        Some(registered) => &registered.display_name,
        None => identity.provider.as_deref().unwrap_or(&identity.issuer),
    }
}

fn identities(texts: &Texts, form: &PageForm<'_>, holdings: &Holdings<'_>) -> Markup {
    let Holdings {
        catalogue,
        identities,
        linkable,
        ..
    } = *holdings;
    html! {
        section aria-labelledby="identities" {
            h2 #identities { (texts.identities_heading) }
            @if identities.is_empty() {
                p .hint { (texts.no_identities) }
            } @else {
                ul .items {
                    @for (index, (identity, form_name)) in identities.iter().enumerate() {
                        @let id = format!("identity-{index}");
                        li {
                            div id=(id) { (linked_identity(texts, catalogue, identity)) }
                            (form.of(&html! {
                                (hidden("identity", form_name))
                                (link_button("unlink", &id, texts.unlink))
                            }))
                        }
                    }
                }
            }
            @if !linkable.is_empty() {
                p .hint { (texts.link_hint) }
                div .actions {
                    @for provider in linkable { (linking(texts, form, provider)) }
                }
            }
        }
    }
}

fn linked_identity(texts: &Texts, catalogue: &Catalogue, identity: &LinkedIdentity) -> Markup {
    html! {
        p { strong { bdi { (provider_name(catalogue, identity)) } } }
        @match known_as(&identity.claims) {
            Some(name) => p { span .hint { (texts.known_there_as) } br; bdi { (name) } },
            None => p {
                span .hint { (texts.identifier_there) } br;
                bdi { (readable(&identity.upstream_subject)) }
            },
        }
        p .hint { (at(texts, texts.linked_since, identity.linked_at)) }
    }
}

fn linking(texts: &Texts, form: &PageForm<'_>, provider: &IdentityProvider) -> Markup {
    form.of(&html! {
        (hidden("provider", &provider.name))
        (button("link", about(texts.link_account_at, &provider.display_name)))
    })
}

fn password(form: &PageForm<'_>, username: &str, problem: Option<FormProblem>) -> Markup {
    let texts = form.chrome.texts;
    let wrong = problem.and_then(FormProblem::field);
    let present = PasswordField {
        name: "present_password",
        autocomplete: "current-password",
        label: texts.present_password,
        hint: None,
    };
    html! {
        section aria-labelledby="password" {
            details open[wrong.is_some()] {
                summary { h2 #password { (texts.change_password_heading) } }
                p .hint { (texts.ends_all_else) }
                (form.of(&html! {
                    // For password managers: whose password it is.
                    input type="text" name="username" value=(username) autocomplete="username"
                        hidden readonly;
                    (present.draw(wrong, None)) (new_password(form.chrome, wrong, None))
                    div .actions {
                        (primary_button("change_password", texts.change_password))
                    }
                }))
            }
        }
    }
}

fn address(
    texts: &Texts,
    form: &PageForm<'_>,
    claims: &JsonObject,
    problem: Option<FormProblem>,
) -> Markup {
    let is_wrong = problem == Some(FormProblem::AddressUnfit);
    let field = html! {
        label for="new-address" { (texts.new_address) }
        input #new-address type="email" name="new_address" required maxlength="254"
            autocomplete="email" aria-invalid=[is_wrong.then_some("true")]
            aria-describedby=[is_wrong.then_some("problem")];
    };
    html! {
        section aria-labelledby="address" {
            h2 #address { (texts.standard_claim("email").unwrap_or(texts.new_address)) }
            (present_address(texts, claims))
            (changing(form, "change_address", texts.change_address, is_wrong, &field))
        }
    }
}

fn name(
    texts: &Texts,
    form: &PageForm<'_>,
    account: Account<'_>,
    problem: Option<FormProblem>,
) -> Markup {
    let is_wrong = problem == Some(FormProblem::NameMissing);
    changing(
        form,
        "change_name",
        texts.change_name,
        is_wrong,
        &html! {
            label for="new-name" { (texts.your_name) }
            input #new-name type="text" name="new_name" value=(account.name) required
                maxlength="200" autocomplete="name" dir="auto"
                aria-invalid=[is_wrong.then_some("true")]
                aria-describedby=[is_wrong.then_some("problem")];
        },
    )
}

/// A form of one field, behind what it does.
fn changing(
    form: &PageForm<'_>,
    decision: &str,
    label: &str,
    is_wrong: bool,
    field: &Markup,
) -> Markup {
    html! {
        details open[is_wrong] {
            summary { (label) }
            (form.of(&html! {
                div .field { (field) }
                div .actions { (button(decision, label)) }
            }))
        }
    }
}

fn present_address(texts: &Texts, claims: &JsonObject) -> Markup {
    html! {
        @match stored_address(claims) {
            Some(address) => {
                p { bdi { (address) } }
                @if verified_address(claims).is_none() {
                    p .hint { (texts.address_not_confirmed) }
                }
            },
            None => p .hint { (texts.no_address) },
        }
    }
}

/// An account elsewhere that may become a way in.
pub struct OfferedLink<'a> {
    pub provider: &'a IdentityProvider,
    pub subject: &'a str,
    /// What they are called there.
    pub label: Option<&'a str>,
    pub sealed: &'a str,
}

/// Asks whether to link an account elsewhere. The form posts `form_token`, `offer` (the account
/// elsewhere, sealed) and `decision` as `confirm_link`; saying no is a link back to where the form
/// goes.
pub fn link_page(form: &PageForm<'_>, account: Account<'_>, offered: OfferedLink<'_>) -> Markup {
    let texts = form.chrome.texts;
    let card = html! {
        p .lead { (about(texts.your_account_at, &offered.provider.display_name)) }
        div .details {
            dl {
                @if let Some(label) = offered.label {
                    dt { (texts.known_there_as) }
                    dd { bdi { (label) } }
                }
                dt { (texts.identifier_there) }
                dd { bdi { (readable(offered.subject)) } }
            }
        }
        p { (about_account(texts.link_to_account, account)) }
        p .hint { (texts.link_warning) }
        (form.of(&html! {
            (hidden("offer", offered.sealed))
            div .actions {
                (primary_button("confirm_link", texts.link))
                a .button href=(form.action) { (texts.cancel) }
            }
        }))
    };
    headed(form.chrome, false, texts.link_title, &card)
}
