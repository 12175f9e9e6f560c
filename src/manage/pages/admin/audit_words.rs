//! The words of the audit log's page: `static/texts/events/<tag>.txt`, a name and a text a line.

use maud::{Markup, html};
use serde_json::Value;

use crate::pages::admin::AdminChrome;
use crate::statements::audit_log::SeenEvent;
use gatepost_protocol::words::json::Members;

/// What can be asked for in words, and the events that each stands for. `administrators` and
/// `everything` are asked for otherwise.
pub const KINDS: &str = include_str!("../../../../static/texts/events/kinds.txt");

/// The text of that name among lines.
pub fn text(lines: &'static str, name: &str) -> Option<&'static str> {
    let mut lines = lines.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))
}

/// What the page says in its language. The name begins with `@` in the file.
pub fn word(around: AdminChrome<'_>, name: &str) -> &'static str {
    let language = around.texts.language;
    text(language.events(), &format!("@{name}")).unwrap_or_default()
}

/// An event as a sentence, with links to whom and what it names.
pub fn sentence(around: AdminChrome<'_>, event: &SeenEvent, detail: &Value) -> Markup {
    let by = detail.text("by").unwrap_or_default();
    let name = sentence_name(&event.row.event, detail);
    let lines = around.texts.language.events();
    let of_whom = text(lines, &format!("{name}/{by}"));
    let sentence = of_whom.or_else(|| text(lines, name)).unwrap_or(name);
    let mut pieces = sentence.split('{');
    html! {
        (pieces.next().unwrap_or_default())
        @for piece in pieces {
            @let (place, words) = piece.split_once('}').unwrap_or_default();
            (in_place(around, event, detail, place)) (words)
        }
        @let whose = word(around, &format!("by-{by}"));
        @if !whose.is_empty() { " " span .hint { (whose) } }
    }
}

/// An event's own name, but for what has no event of its own.
fn sentence_name<'a>(event: &'a str, detail: &Value) -> &'a str {
    let enabled = ["/old/enabled", "/new/enabled"].map(|when| detail.pointer(when)?.as_bool());
    match (event, enabled) {
        ("user_changed", [Some(true), Some(false)]) => "user_disabled",
        ("user_changed", [Some(false), Some(true)]) => "user_enabled",
        ("factor_added", _) if detail["factor"] == "recovery_code" => "recovery_codes_made",
        _ => event,
    }
}

fn in_place(around: AdminChrome<'_>, event: &SeenEvent, detail: &Value, place: &str) -> Markup {
    let SeenEvent { row, .. } = event;
    let (page, id, name) = match place {
        "person" => ("people", &row.sub, &event.person),
        "administrator" => ("people", &event.admin, &event.administrator),
        "client" => ("applications", &row.client_id, &event.client),
        _ => {
            let member = detail.get(place).unwrap_or_default();
            let text = member.as_str().map(str::to_owned);
            return html! { bdi { (text.unwrap_or_else(|| member.to_string())) } };
        }
    };
    html! {
        @match (id, name) {
            (Some(id), Some(name)) => (around.link_to(page, id, name)),
            (Some(id), None) => bdi { (id) },
            (None, _) => (word(around, &format!("no-{place}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use gatepost_protocol::audit::audit_chain::{EVENTS, OPENED};
    use gatepost_server::pages::language::Language;

    fn names(lines: &'static str) -> Vec<&'static str> {
        let texts = lines
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        texts
            .map(|line| line.split_once(" = ").expect(line).0)
            .collect()
    }

    fn places(sentence: &str) -> BTreeSet<&str> {
        let pieces = sentence.split('{').skip(1);
        pieces
            .map(|piece| piece.split_once('}').unwrap().0)
            .collect()
    }

    #[test]
    fn every_event_has_a_sentence_in_every_language_with_the_same_places() {
        let english = Language::English.events();
        for language in Language::ALL {
            let lines = language.events();
            assert_eq!(names(lines), names(english), "{language:?}");
            for event in EVENTS.into_iter().filter(|event| *event != OPENED) {
                assert!(text(lines, event).is_some(), "{language:?}: {event}");
            }
            for kind in names(KINDS) {
                assert!(text(lines, &format!("@{kind}")).is_some(), "{kind}");
            }
            for name in names(english) {
                let [own, first] = [lines, english].map(|lines| text(lines, name).unwrap());
                assert!(!own.trim().is_empty(), "{language:?}: {name}");
                assert_eq!(places(own), places(first), "{language:?}: {name}");
                assert!(
                    language == Language::English || own != first || own.len() < 20,
                    "{language:?}: {name} was left in English"
                );
            }
        }
    }

    #[test]
    fn each_event_is_of_a_kind_and_each_kind_has_events_alone() {
        let of_kinds: Vec<&str> = names(KINDS)
            .into_iter()
            .flat_map(|kind| text(KINDS, kind).unwrap().split_whitespace())
            .collect();
        for event in EVENTS.into_iter().filter(|event| *event != OPENED) {
            assert!(of_kinds.contains(&event), "{event}");
        }
        assert!(of_kinds.iter().all(|event| EVENTS.contains(event)));
    }
}
