//! The audit log of one day. Events and what they say of themselves are in English.

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::pages::admin::AdminChrome;
use gatepost_protocol::audit::audit_chain::{EVENTS, OPENED};
use gatepost_server::pages::frame::button_to;
use gatepost_server::pages::moment::at;
use gatepost_server::pages::texts::{Template, Texts};
use gatepost_store::audit_events::SeenEvent;

/// What was asked for, and what was found.
#[derive(Clone, Copy, Debug)]
pub struct DayOfAudit<'a> {
    pub person: &'a str,
    pub event: &'a str,
    /// As ISO 8601 writes it.
    pub day: &'a str,
    pub found: &'a [SeenEvent],
    /// Whether there may be older ones.
    pub has_more: bool,
}

impl DayOfAudit<'_> {
    /// The page with the events before the last of these.
    fn older(&self) -> Option<String> {
        let last = &self.found.last().filter(|_| self.has_more)?.row;
        let before = format!("{}/{}/{}", last.at.micros(), last.seq, last.chain);
        let values = [
            ("person", self.person),
            ("event", self.event),
            ("day", self.day),
            ("before", &before),
        ];
        let encoded = |(name, value): &(&str, &str)| {
            format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))
        };
        let query: Vec<String> = values.iter().map(encoded).collect();
        Some(format!("audit?{}", query.join("&")))
    }
}

pub fn audit_page(around: AdminChrome<'_>, asked: DayOfAudit<'_>) -> Markup {
    let texts = around.chrome.texts;
    let card = html! {
        (around.search_form("audit", &search_fields(texts, asked)))
        @if asked.found.is_empty() {
            p role="status" { (texts.nothing_found) }
        } @else {
            ul .items { @for event in asked.found { li { (one(around, event)) } } }
            @if let Some(older) = asked.older() {
                (button_to(&around.address(&older), texts.next_page))
            }
        }
    };
    around.document(false, texts.audit_log, &card)
}

fn search_fields(texts: &Texts, asked: DayOfAudit<'_>) -> Markup {
    html! {
        div .field {
            label for="person" { (texts.person) }
            input #person name="person" value=(asked.person) maxlength="256" dir="auto"
                autocapitalize="none" spellcheck="false";
        }
        div .field {
            label for="event" { (texts.event) }
            input #event name="event" value=(asked.event) list="events" maxlength="64"
                autocapitalize="none" autocomplete="off" spellcheck="false";
            datalist #events {
                @for event in EVENTS.iter().filter(|event| **event != OPENED) {
                    option value=(event) {}
                }
            }
        }
        div .field {
            label for="day" { (texts.day_in_utc) }
            input #day type="date" name="day" value=(asked.day);
        }
    }
}

fn one(around: AdminChrome<'_>, event: &SeenEvent) -> Markup {
    let texts = around.chrome.texts;
    let row = &event.row;
    let detail: Value = serde_json::from_str(&row.detail).unwrap_or_default();
    let reason = detail.get("reason").and_then(Value::as_str);
    let others = [&row.client_id, &row.source, &row.request_id];
    html! {
        p {
            strong lang="en" { (row.event) } " "
            span .hint { (at(texts, Template("{}"), row.at)) }
        }
        @if let Some(sub) = &row.sub {
            @let person = utf8_percent_encode(sub, NON_ALPHANUMERIC);
            p {
                a href=(around.address(&format!("people/{person}"))) {
                    bdi { (event.username.as_deref().unwrap_or(sub)) }
                }
            }
        }
        p .hint { @for text in others.into_iter().flatten() { bdi { (text) } " " } }
        @if row.detail != "{}" { p .hint { code { bdi { (row.detail) } } } }
        @if let Some(reason) = reason {
            @let code = utf8_percent_encode(reason, NON_ALPHANUMERIC);
            p { a href=(around.address(&format!("explain?what={code}"))) { (reason) } }
        }
    }
}
