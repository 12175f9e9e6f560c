//! The audit log: who did what, in the language of the page. Details are in English.

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::audit_week::week_picture;
use super::audit_words::{KINDS, sentence, word};
use crate::pages::admin::AdminChrome;
use crate::statements::audit_log::{AuditSearch, SeenEvent};
use crate::statements::hourly_counts::HourlyCounts;
use gatepost_protocol::audit::audit_chain::EVENTS;
use gatepost_server::pages::frame::button_to;
use gatepost_server::pages::moment::at;
use gatepost_server::pages::texts::Template;

/// What was asked for, and what was found.
#[derive(Clone, Copy, Debug)]
pub struct AuditPage<'a> {
    pub search: AuditSearch<'a>,
    pub found: &'a [SeenEvent],
    /// Whether there may be older ones.
    pub has_more: bool,
    /// Those of the picture that are over.
    pub hours: &'a [HourlyCounts],
}

impl AuditPage<'_> {
    /// The page with the events before the last of these.
    fn older(&self) -> Option<String> {
        let last = &self.found.last().filter(|_| self.has_more)?.row;
        let before = format!("{}/{}/{}", last.at.micros(), last.seq, last.chain);
        let values = [
            ("event", self.search.event),
            ("person", self.search.person),
            ("day", self.search.day),
            ("reference", self.search.reference),
            ("before", &before),
        ];
        let encoded = |(name, value): &(&str, &str)| {
            format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))
        };
        let query: Vec<String> = values.iter().map(encoded).collect();
        Some(format!("audit?{}", query.join("&")))
    }
}

pub fn audit_page(around: AdminChrome<'_>, page: AuditPage<'_>) -> Markup {
    let texts = around.chrome.texts;
    let card = html! {
        (week_picture(around, page.hours))
        (around.search_form("audit", &search_fields(around, page.search)))
        @if page.found.is_empty() {
            p role="status" { (texts.nothing_found) }
        } @else {
            ul .items .log { @for event in page.found { li { (one(around, event)) } } }
            @if let Some(older) = page.older() {
                (button_to(&around.address(&older), texts.next_page))
            }
        }
    };
    around.document(false, texts.audit_log, &card)
}

fn search_fields(around: AdminChrome<'_>, search: AuditSearch<'_>) -> Markup {
    let texts = around.chrome.texts;
    let kinds = KINDS.lines().filter_map(|line| line.split(' ').next());
    html! {
        div .field {
            label for="event" { (word(around, "kind")) }
            select #event name="event" {
                option value="" { (word(around, "usual")) }
                @for kind in kinds {
                    option value=(kind) selected[kind == search.event] { (word(around, kind)) }
                }
                @if EVENTS.contains(&search.event) {
                    option selected { (search.event) }
                }
            }
        }
        div .field {
            label for="person" { (texts.person) }
            input #person name="person" value=(search.person) maxlength="256" dir="auto"
                autocapitalize="none" spellcheck="false";
        }
        div .field {
            label for="day" { (texts.day_in_utc) }
            input #day type="date" name="day" value=(search.day);
        }
        div .field {
            label for="reference" { (word(around, "reference")) }
            input #reference name="reference" value=(search.reference) maxlength="100"
                autocapitalize="none" spellcheck="false" aria-describedby="reference-hint";
            p #reference-hint .hint { (word(around, "reference-hint")) }
        }
    }
}

fn one(around: AdminChrome<'_>, event: &SeenEvent) -> Markup {
    let row = &event.row;
    let detail: Value = serde_json::from_str(&row.detail).unwrap_or_default();
    let reason = detail.get("reason").and_then(Value::as_str);
    let others = [&row.sub, &row.client_id, &row.source, &row.request_id];
    html! {
        p { (sentence(around, event, &detail)) }
        p .hint { (at(around.chrome.texts, Template("{}"), row.at)) }
        details .hint {
            summary { (word(around, "details")) }
            p { strong lang="en" { (row.event) } }
            p { @for text in others.into_iter().flatten() { bdi { (text) } " " } }
            @if row.detail != "{}" { p { code { bdi { (row.detail) } } } }
            @if let Some(reason) = reason {
                @let code = utf8_percent_encode(reason, NON_ALPHANUMERIC);
                p { a href=(around.address(&format!("explain?what={code}"))) { (reason) } }
            }
        }
    }
}
