//! The pages below `/admin`: what is around them.

pub mod applications;
pub mod audit;
mod audit_week;
pub mod audit_words;
pub mod explanation;
pub mod invitations;
pub mod people;
pub mod person;
pub mod roles;

use std::ops::Deref;

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::joined::joined;
use gatepost_server::pages::frame::{
    Chrome, brand_mark, button_to, framed, hidden, problem_notice, script, submit, title_with,
};
use gatepost_server::pages::texts::Texts;

/// The page of somebody or something, below `/admin/`.
pub fn page_of(kind: &str, name: &str) -> String {
    format!("{kind}/{}", utf8_percent_encode(name, NON_ALPHANUMERIC))
}

/// A notice of what was done, or a sentence about what was not, and why.
pub type Told = Result<Markup, Markup>;

/// That it was not done.
pub fn not_done(sentence: &str) -> Told {
    Err(html! { (sentence) })
}

pub fn notice(texts: &Texts, told: Option<&Told>) -> Markup {
    match told {
        Some(Ok(done)) => html! { (done) },
        Some(Err(sentence)) => problem_notice(texts, &html! { p { (sentence) } }),
        None => html! {},
    }
}

/// A table with these heads.
pub fn table(heads: &[&str], rows: &Markup) -> Markup {
    html! {
        table .people {
            thead { tr { @for head in heads { th scope="col" { (head) } } } }
            tbody { (rows) }
        }
    }
}

/// A field for what is looked for.
pub fn typed_field(name: &str, label: &str, typed: &str, hint: &str) -> Markup {
    let hint_id = format!("{name}-hint");
    let described = Some(&hint_id).filter(|_| !hint.is_empty());
    html! {
        div .field {
            label for=(name) { (label) }
            input id=(name) type="search" name=(name) value=(typed) maxlength="256" dir="auto"
                autocapitalize="none" spellcheck="false" aria-describedby=[described];
            @if !hint.is_empty() { p id=(hint_id) .hint { (hint) } }
        }
    }
}

/// A choice among values, each with the words for it.
pub fn choice<'a>(
    name: &str,
    label: &str,
    chosen: &str,
    values: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Markup {
    html! {
        div .field {
            label for=(name) { (label) }
            select id=(name) name=(name) {
                @for (value, words) in values {
                    option value=(value) selected[value == chosen] { (words) }
                }
            }
        }
    }
}

/// What is around each of these pages.
#[derive(Clone, Copy)]
pub struct AdminChrome<'a> {
    pub chrome: Chrome<'a>,
    /// Which one of the navigation the page belongs to.
    pub section: &'a str,
    /// What the administrator is called.
    pub administrator: &'a str,
    /// The language that was asked for by address; empty for that of the browser.
    pub ui_locales: &'a str,
    pub catalogue: &'a Catalogue,
    /// The tenants whose people the administrator looks after; an empty name stands for no tenant.
    pub reach: &'a [&'a str],
    /// The roles that the administrator may give.
    pub roles_to_give: &'a [String],
    /// Whether links go by letter.
    pub by_letter: bool,
}

impl<'a> Deref for AdminChrome<'a> {
    type Target = Chrome<'a>;

    fn deref(&self) -> &Chrome<'a> {
        &self.chrome
    }
}

impl<'a> AdminChrome<'a> {
    /// What a role is called: as it is registered, else by its name.
    pub fn role_name(&self, role: &'a str) -> &'a str {
        let registered = self.catalogue.roles.get(role);
        registered.map_or(role, |registered| {
            self.texts.language.of(&registered.display_name)
        })
    }

    pub fn role_description(&self, role: &str) -> Markup {
        let registered = self.catalogue.roles.get(role);
        let description = registered.map_or("", |registered| {
            self.texts.language.of(&registered.description)
        });
        html! { @if !description.is_empty() { p .hint { bdi { (description) } } } }
    }

    /// The address of another of these pages, in the language of this one.
    pub fn address(&self, page: &str) -> String {
        self.own_address(&format!("admin/{page}"))
    }

    /// A link to the page of somebody or something, by its name.
    pub fn link_to(&self, kind: &str, id: &str, name: &str) -> Markup {
        html! { a href=(self.address(&page_of(kind, id))) { bdi { (name) } } }
    }

    /// The same of any page of ours.
    fn own_address(&self, page: &str) -> String {
        let base_path = self.base_path;
        match self.ui_locales {
            "" => format!("{base_path}/{page}"),
            _ => {
                let joint = if page.contains('?') { '&' } else { '?' };
                let language = self.texts.language.tag();
                format!("{base_path}/{page}{joint}ui_locales={language}")
            }
        }
    }

    /// The same with what is asked for there. Empty texts ask for nothing.
    pub fn address_with(&self, page: &str, asked: &[(&str, &str)]) -> String {
        let asked = asked.iter().filter(|(_, value)| !value.is_empty());
        let encoded = asked.map(|(name, value)| {
            format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))
        });
        let query = joined("&", encoded);
        let joint = if query.is_empty() { "" } else { "?" };
        self.address(&format!("{page}{joint}{query}"))
    }

    /// A form that looks for something, by the address of the page.
    pub fn search_form(&self, page: &str, fields: &Markup) -> Markup {
        let texts = self.texts;
        html! {
            form method="get" action={ (self.base_path) "/admin/" (page) } role="search" {
                @if !self.ui_locales.is_empty() {
                    (hidden("ui_locales", texts.language.tag()))
                }
                (fields)
                (submit(texts.search))
            }
        }
    }

    /// The way to what comes behind `after` in a list; nothing without one.
    pub fn next_page(&self, page: &str, after: Option<&str>) -> Markup {
        html! {
            @if let Some(after) = after {
                (button_to(&self.address_with(page, &[("after", after)]), self.texts.next_page))
            }
        }
    }

    /// A whole page: the bar, and `card` below it.
    pub fn document(&self, is_error: bool, title: &str, card: &Markup) -> Markup {
        self.document_beside(is_error, title, &html! {}, card)
    }

    /// The same with something at the end of the line of the title.
    pub fn document_beside(
        &self,
        is_error: bool,
        title: &str,
        beside: &Markup,
        card: &Markup,
    ) -> Markup {
        let card = html! {
            div .title { h1 { bdi { (title) } } (beside) }
            (card)
            (script(self.chrome, "times.js"))
        };
        let title = title_with(self.texts, is_error, title);
        framed(self.chrome, &title, &self.bar(), &card)
    }

    /// The brand, the sections, who is signed in, and the way out.
    fn bar(&self) -> Markup {
        let texts = self.texts;
        let sections = [
            ("people", texts.people),
            ("roles", texts.roles),
            ("applications", texts.applications),
            ("audit", texts.audit_log),
        ];
        html! {
            header .bar {
                (brand_mark(self.chrome))
                nav aria-label=(texts.admin_title) {
                    ul .tabs {
                        @for (page, name) in sections {
                            @let current = (page == self.section).then_some("page");
                            li { a href=(self.address(page)) aria-current=[current] { (name) } }
                        }
                    }
                }
                ul .links {
                    li { a href=(self.own_address("account")) { bdi { (self.administrator) } } }
                    li { a href=(self.own_address("logout")) { (texts.sign_out) } }
                }
            }
        }
    }
}
