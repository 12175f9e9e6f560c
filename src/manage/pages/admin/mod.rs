//! The pages below `/admin`: what is around them.

pub mod applications;
pub mod audit;
pub mod explanation;
pub mod people;
pub mod person;

use maud::{Markup, html};

use gatepost_server::pages::frame::{Chrome, document_with, hidden, script, submit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminSection {
    People,
    Applications,
    Audit,
}

/// What is around each of these pages.
#[derive(Clone, Copy, Debug)]
pub struct AdminChrome<'a> {
    pub chrome: Chrome<'a>,
    /// Which one of the navigation the page belongs to.
    pub section: AdminSection,
    /// The language that was asked for by address; empty for that of the browser.
    pub ui_locales: &'a str,
}

impl AdminChrome<'_> {
    /// The address of another of these pages, in the language of this one.
    pub(super) fn address(&self, page: &str) -> String {
        let base_path = self.chrome.base_path;
        match self.ui_locales {
            "" => format!("{base_path}/admin/{page}"),
            _ => {
                let joint = if page.contains('?') { '&' } else { '?' };
                let language = self.chrome.texts.language.tag();
                format!("{base_path}/admin/{page}{joint}ui_locales={language}")
            }
        }
    }

    /// A form that looks for something, by the address of the page.
    pub(super) fn search_form(&self, page: &str, fields: &Markup) -> Markup {
        let texts = self.chrome.texts;
        html! {
            form method="get" action={ (self.chrome.base_path) "/admin/" (page) } role="search" {
                @if !self.ui_locales.is_empty() {
                    (hidden("ui_locales", texts.language.tag()))
                }
                (fields)
                (submit(texts.search))
            }
        }
    }

    /// A whole page: the navigation, and `card` below it.
    pub(super) fn document(&self, is_error: bool, title: &str, card: &Markup) -> Markup {
        let texts = self.chrome.texts;
        let sections = [
            (AdminSection::People, "people", texts.people),
            (
                AdminSection::Applications,
                "applications",
                texts.applications,
            ),
            (AdminSection::Audit, "audit", texts.audit_log),
        ];
        let card = html! {
            nav aria-label=(texts.admin_title) {
                ul .links {
                    @for (section, page, name) in sections {
                        @let current = (section == self.section).then_some("true");
                        li { a href=(self.address(page)) aria-current=[current] { (name) } }
                    }
                    li { a href={ (self.chrome.base_path) "/account" } { (texts.account_title) } }
                }
            }
            h1 { (title) }
            (card)
            (script(self.chrome, "times.js"))
        };
        document_with(self.chrome, is_error, title, card)
    }
}
