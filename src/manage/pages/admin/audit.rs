//! The audit log: who did what, in the language of the page. Details are in English.

use std::iter;

use maud::{Markup, html};
use serde_json::Value;

use super::audit_week::week_picture;
use super::audit_words::{KINDS, sentence, word};
use crate::pages::admin::{AdminChrome, choice, typed_field};
use crate::statements::audit_log::{AuditSearch, SeenEvent};
use crate::statements::hourly_counts::HourlyCounts;
use gatepost_protocol::audit::audit_chain::{AuditRow, EVENTS};
use gatepost_protocol::words::json::Members;
use gatepost_server::pages::frame::button_to;
use gatepost_server::pages::moment::at;
use gatepost_server::pages::texts::Template;

/// What was asked for, and what was found.
pub struct AuditPage<'a> {
    pub search: AuditSearch<'a>,
    pub found: &'a [SeenEvent],
    /// Whether there may be older ones.
    pub has_more: bool,
    /// Those of the picture that are over.
    pub hours: &'a [HourlyCounts],
}

pub fn audit_page(around: AdminChrome<'_>, page: AuditPage<'_>) -> Markup {
    let texts = around.texts;
    let card = html! {
        (week_picture(around, page.hours))
        (around.search_form("audit", &search_fields(around, &page.search)))
        @if page.found.is_empty() {
            p role="status" { (texts.nothing_found) }
            @if !page.search.reference.is_empty() {
                p { (word(around, "reference-unknown")) }
                p { a href=(around.address("explain")) { (texts.why_refused) } }
            }
        } @else {
            ul .items .log { @for event in page.found { li { (one(around, event)) } } }
            @if let Some(last) = page.found.last().filter(|_| page.has_more) {
                (button_to(&before(around, &page.search, last), texts.next_page))
            }
        }
    };
    around.document(false, texts.audit_log, &card)
}

/// The page with the events before this one.
fn before(around: AdminChrome<'_>, search: &AuditSearch<'_>, event: &SeenEvent) -> String {
    let AuditRow { at, seq, chain, .. } = &event.row;
    let place = format!("{}/{seq}/{chain}", at.micros());
    let asked = [
        ("event", search.event),
        ("person", search.person),
        ("day", search.day),
        ("reference", search.reference),
        ("before", &place),
    ];
    around.address_with("audit", &asked)
}

fn search_fields(around: AdminChrome<'_>, search: &AuditSearch<'_>) -> Markup {
    let texts = around.texts;
    let AuditSearch {
        event,
        person,
        day,
        reference,
    } = *search;
    let kinds = KINDS.lines().filter_map(|line| line.split(' ').next());
    let kinds = kinds.map(|kind| (kind, word(around, kind)));
    let usual = iter::once(("", word(around, "usual")));
    let of_one_event = EVENTS.contains(&event).then_some((event, event));
    let hint = word(around, "reference-hint");
    html! {
        (choice("event", word(around, "kind"), event, usual.chain(kinds).chain(of_one_event)))
        (typed_field("person", texts.person, person, ""))
        div .field {
            label for="day" { (texts.day_in_utc) }
            input #day type="date" name="day" value=(day);
        }
        (typed_field("reference", word(around, "reference"), reference, hint))
    }
}

fn one(around: AdminChrome<'_>, event: &SeenEvent) -> Markup {
    let row = &event.row;
    let detail: Value = serde_json::from_str(&row.detail).unwrap_or_default();
    let reason = detail.text("reason");
    let others = [&row.sub, &row.client_id, &row.source, &row.request_id];
    html! {
        p { (sentence(around, event, &detail)) }
        p .hint { (at(around.texts, Template("{}"), row.at)) }
        details .hint {
            summary { (word(around, "details")) }
            p { strong lang="en" { (row.event) } }
            p { @for text in others.into_iter().flatten() { bdi { (text) } " " } }
            @if row.detail != "{}" { p { code { bdi { (row.detail) } } } }
            @if let Some(reason) = reason {
                @let explained = around.address_with("explain", &[("what", reason)]);
                p { a href=(explained) { (reason) } }
            }
        }
    }
}
