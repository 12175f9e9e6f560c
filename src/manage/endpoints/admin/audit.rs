//! Who did what, as administrators see it: on one day, or in the last seven.

use super::Administrator;
use crate::pages::admin::audit::{AuditPage, audit_page};
use crate::pages::admin::audit_words::{KINDS, text};
use crate::statements::audit_log::{self, AuditSearch, EventPlace, EventsAsked};
use crate::statements::hourly_counts;
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::instant::{Day, Instant};
use gatepost_protocol::words::parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_server::app::failure::Result;
use gatepost_server::endpoints::answers::scripted_page;
use gatepost_server::http::Response;

/// How many events one page shows.
const MOST: usize = 50;

impl Administrator<'_> {
    pub fn show_audit_log(&self) -> Result<Response> {
        let query = self.query()?;
        let now = self.context.app.now();
        let asked = |name, most| Ok::<_, Reason>(query.bounded(name, most)?.unwrap_or_default());
        let search = AuditSearch {
            event: asked("event", parameters::OTHER)?.trim(),
            person: asked("person", parameters::USERNAME)?.trim(),
            day: asked("day", 10)?,
            reference: asked("reference", parameters::OTHER)?,
        };
        let first_day = Day(now.day().0 - 6);
        let mut days = first_day..now.day();
        if !search.day.is_empty() {
            let day = timestamp::parse_day(search.day);
            let day = day.ok_or(Reason::NoSuchDay)?;
            days = day..day;
        }
        let since = days.start.start();
        let end = Day(days.end.0 + 1).start().min(now);
        let mut before = EventPlace {
            at: end,
            chain: "",
            seq: 0,
        };
        if let Some(text) = query.bounded("before", parameters::OTHER)? {
            let place = place(text);
            let place = place.ok_or(Reason::UnknownPageAction)?;
            if (since..end).contains(&place.at) {
                before = place;
            }
        }
        let is_usual = search.event.is_empty() && search.reference.is_empty();
        let kind = if is_usual { "background" } else { search.event };
        let named = text(KINDS, kind).unwrap_or(kind).split_terminator(' ');
        let named: Vec<&str> = named.collect();
        let asked = EventsAsked {
            since,
            before,
            are_others: is_usual || named.is_empty(),
            named: &named,
            reach: self.acting.reach,
        };
        let _permit = self.survey()?;
        let most = i64::try_from(MOST + 1).unwrap_or(i64::MAX);
        let mut found = audit_log::list(self.acting.store, &search, asked, most)?;
        let has_more = found.len() > MOST;
        found.truncate(MOST);
        let hours = first_day.0 * 24..now.hour();
        let page = AuditPage {
            search,
            found: &found,
            has_more,
            hours: &hourly_counts::counts(
                self.acting.store,
                self.acting.reach,
                hours.start,
                hours.end - 1,
            )?,
        };
        Ok(scripted_page(200, audit_page(self.around, page)))
    }
}

/// Reads what [`AuditPage`] writes.
fn place(text: &str) -> Option<EventPlace<'_>> {
    let (at, rest) = text.split_once('/')?;
    let (seq, chain) = rest.split_once('/')?;
    Some(EventPlace {
        at: Instant::from_micros(at.parse().ok()?),
        chain,
        seq: seq.parse().ok()?,
    })
}
