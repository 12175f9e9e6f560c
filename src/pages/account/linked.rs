//! The part of the account page about accounts elsewhere: those that one signs in with, and where one could link another.

use maud::{Markup, html};

use super::{AccountView, at, form};
use crate::pages::frame::about;
use crate::protocol::words::instant::Instant;

/// An account elsewhere that is linked.
#[derive(Clone, Copy, Debug)]
pub struct IdentityItem<'a> {
    pub form_name: &'a str,
    pub provider: &'a str,
    pub known_as: Option<&'a str>,
    pub subject: &'a str,
    pub since: Instant,
}

#[derive(Clone, Copy, Debug)]
pub struct ProviderItem<'a> {
    pub name: &'a str,
    pub display_name: &'a str,
}

/// The section; nothing where there is nothing to show or do.
pub(super) fn section(view: &AccountView<'_>) -> Markup {
    let texts = view.chrome.texts;
    html! {
        @if !view.identities.is_empty() || !view.linkable.is_empty() {
            section aria-labelledby="identities" {
                h2 #identities { (texts.identities_heading) }
                @if view.identities.is_empty() {
                    p .hint { (texts.no_identities) }
                } @else {
                    ul .items {
                        @for (index, identity) in view.identities.iter().enumerate() {
                            li { (identity_item(view, identity, index)) }
                        }
                    }
                }
                @if !view.linkable.is_empty() {
                    p .hint { (texts.link_hint) }
                    div .actions { @for provider in view.linkable { (link_form(view, provider)) } }
                }
            }
        }
    }
}

fn identity_item(view: &AccountView<'_>, identity: &IdentityItem<'_>, index: usize) -> Markup {
    let texts = view.chrome.texts;
    let id = format!("identity-{index}");
    html! {
        div id=(id) {
            p { strong { bdi { (identity.provider) } } }
            @match identity.known_as {
                Some(name) => p { span .hint { (texts.known_there_as) } br; bdi { (name) } },
                None => p { span .hint { (texts.identifier_there) } br; bdi { (identity.subject) } },
            }
            p .hint { (at(texts.linked_since, identity.since)) }
        }
        (form(view, html! {
            input type="hidden" name="identity" value=(identity.form_name);
            button .link type="submit" name="decision" value="unlink" aria-describedby=(id) { (texts.unlink) }
        }))
    }
}

fn link_form(view: &AccountView<'_>, provider: &ProviderItem<'_>) -> Markup {
    form(
        view,
        html! {
            input type="hidden" name="provider" value=(provider.name);
            button type="submit" name="decision" value="link" {
                (about(view.chrome.texts.link_account_at, provider.display_name))
            }
        },
    )
}
