//! The demo's pages.

use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

use super::super::caught_mail::CaughtMail;
use super::super::demo_data::DemoUser;
use super::app_code::AppCode;
use super::json_web_token::UnverifiedToken;
use super::visitors::SignedIn;
use super::{RelyingParty, Setback};

const VARIATIONS: [(&str, &str); 6] = [
    ("scope=all", "Ask for everything that it may have"),
    ("prompt=login", "Ask for the password even when signed in"),
    ("prompt=consent", "Ask for consent even when it was given"),
    ("prompt=select_account", "Ask which account to use"),
    (
        "prompt=none",
        "Without any page: an error unless everything is settled",
    ),
    (
        "response_mode=form_post",
        "Take the answer as a form post instead of a redirect",
    ),
];

/// Somebody who can sign in, and what their app shows now.
pub(super) struct Person<'a> {
    pub(super) user: &'a DemoUser,
    pub(super) app_code: Option<AppCode>,
}

pub(super) fn welcome(
    relying_party: &RelyingParty,
    people: &[Person<'_>],
    applications: &[RelyingParty],
) -> Markup {
    let admin = format!("{}/admin", relying_party.issuer);
    frame(
        "Demo application",
        html! {
            h1 { "Demo application" }
            p {
                "A relying party of the provider at "
                a href=(relying_party.issuer) { (relying_party.issuer) }
                ". It signs you in with the authorization code flow and PKCE, and shows what it \
                 was told."
            }
            p { a class="button" href="/sign-in" { "Sign in" } }
            div class="wide" {
                table {
                    thead { tr {
                        th scope="col" { "User name" }
                        th scope="col" { "Password" }
                        th scope="col" { "Code of their app" }
                    } }
                    tbody {
                        @for person in people {
                            tr {
                                td { code { (person.user.username) } }
                                td { code { (person.user.password()) } }
                                td { (shown_code(person.app_code.as_ref())) }
                            }
                        }
                    }
                }
            }
            section {
                h2 { "Look after people" }
                p {
                    "Olivia is the office manager: she signs in at "
                    a href=(admin) { (admin) }
                    " with her password and a code. A code is good once: reload this page for the \
                     next one. She looks after twelve people and says who may open these \
                     applications:"
                }
                ul {
                    @for application in applications {
                        li { a href=(format!("/{}", application.client_id)) { (application.client_name) } }
                    }
                }
                p { "E-mails go nowhere: " a href="/e-mails" { "read them here" } "." }
            }
            (variations())
        },
    )
}

pub(super) fn signed_in(signed_in: &SignedIn) -> Markup {
    let name = signed_in
        .claims
        .get("name")
        .or(signed_in.claims.get("sub"))
        .map(shown)
        .unwrap_or_default();
    frame(
        "Signed in · Demo application",
        html! {
            h1 { "Signed in as " (name) }
            p { "To: " (signed_in.client_name) }
            div class="actions" {
                form method="post" action="/sign-out" { button type="submit" { "Sign out" } }
                form method="post" action="/sign-out-everywhere" {
                    button type="submit" { "Sign out at the provider" }
                }
            }
            (claims(&signed_in.claims))
            section {
                h2 { "Granted" }
                p id="scope" { @for scope in signed_in.scope.split(' ') { code { (scope) } " " } }
                @if let Some(seconds) = signed_in.expires_in {
                    p { "The access token is valid for " (seconds) " seconds." }
                }
            }
            (token("ID token", "id_token", signed_in.id_token.as_ref()))
            (token("Access token", "access_token", signed_in.access_token.as_ref()))
            (variations())
        },
    )
}

pub(super) fn setback(setback: &Setback) -> Markup {
    frame(
        "Demo application",
        html! {
            h1 { (setback.heading) }
            @if !setback.detail.is_empty() { p class="detail" { (setback.detail) } }
            p { a class="button" href="/" { "Back to the start" } }
        },
    )
}

/// The first page of an application that the demo plays.
pub(super) fn application(application: &RelyingParty) -> Markup {
    let sign_in = format!("/sign-in?client_id={}", application.client_id);
    frame(
        &application.client_name,
        html! {
            h1 { (application.client_name) }
            p { "An application of the company in this demo." }
            p {
                "For those who have the role "
                @for (index, role) in application.allowed_roles.iter().enumerate() {
                    @if index > 0 { " or " }
                    code { (role) }
                }
                "."
            }
            div class="actions" {
                a class="button" href=(sign_in) { "Sign in" }
                a href="/" { "All applications" }
            }
        },
    )
}

pub(super) fn caught_mails(mails: &[CaughtMail]) -> Markup {
    frame(
        "E-mails · Demo application",
        html! {
            h1 { "E-mails" }
            p {
                "What Gatepost would have sent, the newest first. It is gone when "
                code { "gatepost-dev" } " ends."
            }
            @if mails.is_empty() { p { "There is none yet." } }
            @for mail in mails {
                section class="mail" {
                    h2 { (mail.subject) }
                    p class="detail" { "To " (mail.to) ", " (mail.date) }
                    pre { (with_links(&mail.text)) }
                }
            }
            p { a href="/e-mails" { "Look again" } " · " a href="/" { "Back to the start" } }
        },
    )
}

pub(super) fn mails_elsewhere() -> Markup {
    frame(
        "E-mails · Demo application",
        html! {
            h1 { "E-mails" }
            p { "They go to the server of " code { "GATEPOST_SMTP_URL" } "." }
            p { a href="/" { "Back to the start" } }
        },
    )
}

/// The addresses in a text can be followed.
fn with_links(text: &str) -> Markup {
    html! {
        @for part in text.split_inclusive(char::is_whitespace) {
            @let address = part.trim_end();
            @if address.starts_with("http://") || address.starts_with("https://") {
                a href=(address) { (address) } (part.trim_start_matches(address))
            } @else {
                (part)
            }
        }
    }
}

fn shown_code(code: Option<&AppCode>) -> Markup {
    html! {
        @if let Some(code) = code {
            code { (code.digits) } " for " (code.seconds_left) " more seconds"
        } @else {
            "none"
        }
    }
}

fn frame(title: &str, content: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href="/demo.css";
            }
            body { main { (content) } }
        }
    }
}

fn claims(claims: &Value) -> Markup {
    html! {
        section {
            h2 { "Claims from UserInfo" }
            div class="wide" {
                table id="claims" {
                    thead { tr { th scope="col" { "Claim" } th scope="col" { "Value" } } }
                    tbody {
                        @for (name, value) in claims.as_object().into_iter().flatten() {
                            tr { th scope="row" { code { (name) } } td { (shown(value)) } }
                        }
                    }
                }
            }
        }
    }
}

fn token(heading: &str, id: &str, token: Option<&UnverifiedToken>) -> Markup {
    html! {
        section id=(id) {
            h2 { (heading) }
            @match token {
                Some(token) => {
                    h3 { "Header" }
                    pre tabindex="0" { (pretty(&token.header)) }
                    h3 { "Payload" }
                    pre tabindex="0" { (pretty(&token.payload)) }
                }
                None => p {
                    "A reference token: it says nothing by itself, the provider knows what it \
                     stands for."
                },
            }
        }
    }
}

fn variations() -> Markup {
    html! {
        details {
            summary { "Other ways to sign in" }
            ul {
                @for (query, meaning) in VARIATIONS {
                    li { a href=(format!("/sign-in?{query}")) { code { (query) } } " " (meaning) }
                }
            }
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => pretty(value),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_provider_said_is_escaped() {
        let setback = Setback::new("<script>alert(1)</script>", "a \"quoted\" <b>word</b>");
        let page = super::setback(&setback).into_string();
        assert!(
            !page.contains("<script>") && !page.contains("<b>"),
            "{page}"
        );
    }

    #[test]
    fn roles_are_shown_as_words() {
        assert_eq!(shown(&json!(["admin", "editor"])), "admin, editor");
        assert_eq!(shown(&json!(true)), "true");
    }
}
