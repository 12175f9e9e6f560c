//! The demo's pages.

use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

use super::super::demo_data::DemoUser;
use super::json_web_token::UnverifiedToken;
use super::visitors::SignedIn;
use super::{RelyingParty, Setback};

const VARIATIONS: [(&str, &str); 5] = [
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

pub(super) fn welcome(relying_party: &RelyingParty, users: &[DemoUser]) -> Markup {
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
            p {
                "As "
                @for (index, user) in users.iter().enumerate() {
                    @if index > 0 { ", or as " }
                    code { (user.username) } " with the password " code { (user.password) }
                }
                "."
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
