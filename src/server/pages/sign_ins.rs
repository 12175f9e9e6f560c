//! The part of the account page about where the person is signed in. A sign-in has two lines. The
//! rest shows when they are opened.

use maud::{Markup, html};

use crate::pages::frame::{PageForm, about, button, hidden, link_button};
use crate::pages::icons::{DEVICE, icon};
use crate::pages::moment::at;
use crate::pages::texts::Texts;
use crate::pages::user_agent::browser;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::session::{LOCAL, PASSWORD, Session};

pub struct SignIns<'a> {
    pub catalogue: &'a Catalogue,
    pub has_password: bool,
    /// The session of this browser.
    pub current_session: &'a Session,
    pub sessions: &'a [Session],
    /// Whether keys of browsers count.
    pub bound_sessions: bool,
}

impl SignIns<'_> {
    /// The forms post `decision` as `end_session` with `session`, or as `end_others`.
    pub(super) fn draw(&self, texts: &Texts, form: &PageForm<'_>) -> Markup {
        html! {
            section aria-labelledby="sessions" {
                h2 #sessions { (texts.sessions_heading) }
                p .hint {
                    @if self.has_password {
                        (texts.sessions_hint)
                    } @else {
                        (texts.sessions_hint_without_password)
                    }
                }
                ul .items .sign-ins {
                    @for (index, session) in self.sessions.iter().enumerate() {
                        @let id = format!("session-{index}");
                        li {
                            @if session.sid != self.current_session.sid {
                                (form.of(&ending(texts, session, &id)))
                            }
                            (self.one(texts, session, &id))
                        }
                    }
                }
                @if self.sessions.iter().any(|session| session.sid != self.current_session.sid) {
                    (form.of(&button("end_others", texts.end_other_sessions)))
                }
            }
        }
    }

    /// The browser and when it was last used; behind that, from where, since when, how and until
    /// when.
    pub fn one(&self, texts: &Texts, session: &Session, id: &str) -> Markup {
        html! {
            details {
                summary id=(id) {
                    (icon(DEVICE))
                    bdi { (browser(texts, session.user_agent.as_deref())) }
                    @if session.sid == self.current_session.sid {
                        " " span .badge { (texts.this_browser) }
                    }
                    br;
                    span .hint { (at(texts, texts.last_used_on, session.used_at)) }
                }
                @if let Some(source) = session.source {
                    p .hint { (about(texts.address, &source.to_string())) }
                }
                p .hint { (at(texts, texts.signed_in_on, session.created_at)) }
                p .hint { (self.way(texts, session)) }
                @if self.bound_sessions && session.bound_to.is_some() {
                    p .hint { (texts.bound_to_device) }
                }
                p .hint { (at(texts, texts.signed_in_until, session.expires_at)) }
            }
        }
    }

    /// How they signed in.
    fn way(&self, texts: &Texts, session: &Session) -> Markup {
        let provider = session.identity_provider();
        if provider == LOCAL {
            let has_shown_password = session.amr.iter().any(|method| method == PASSWORD);
            return html! {
                @if has_shown_password {
                    (texts.signed_in_with_password)
                } @else {
                    (texts.passkey_factor)
                }
            };
        }
        let registered = self.catalogue.identity_providers.get(provider);
        let name = registered.map_or(provider, |one| &one.display_name);
        about(texts.signed_in_through, name)
    }
}

/// What the form that ends a session posts.
pub fn ending(texts: &Texts, session: &Session, id: &str) -> Markup {
    html! {
        (hidden("session", session.sid.as_str()))
        (link_button("end_session", id, texts.end_session))
    }
}
