//! Who did what, as administrators see it: one day at a time.

use super::Administrator;
use crate::pages::admin::AdminSection;
use crate::pages::admin::audit::{DayOfAudit, audit_page};
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::instant::{Day, Instant};
use gatepost_protocol::words::parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_server::app::failure::Failure;
use gatepost_server::http::Response;
use gatepost_store::audit_events::{self, DayFilter, EventPlace};

/// How many events one page shows.
const MOST: usize = 200;

impl Administrator<'_> {
    pub(super) fn show_audit_log(&self) -> Result<Response, Failure> {
        let app = self.context.app;
        let query = self.query()?;
        let now = app.now();
        let today = &timestamp::format_day(now.day());
        let day = query.bounded("day", 10)?.unwrap_or(today);
        let since = timestamp::parse_day(day);
        let since = since.ok_or_else(|| Failure::bad_request(Reason::NoSuchDay))?;
        let person = query.bounded("person", parameters::USERNAME)?;
        let event = query.bounded("event", parameters::OTHER)?;
        let end = EventPlace {
            at: Day(since.0 + 1).start().min(now),
            chain: "",
            seq: 0,
        };
        let before = match query.bounded("before", parameters::OTHER)? {
            Some(text) => {
                place(text).ok_or_else(|| Failure::bad_request(Reason::UnknownPageAction))?
            }
            None => end,
        };
        let filter = DayFilter {
            since: since.start(),
            before: if (since.start()..end.at).contains(&before.at) {
                before
            } else {
                end
            },
            event: event.map(str::trim),
            person: person.map(str::trim),
            reach: self.reach,
        };
        let _permit = self.survey()?;
        let mut found = audit_events::of_day(&app.store, filter, MOST + 1)?;
        let has_more = found.len() > MOST;
        found.truncate(MOST);
        let asked = DayOfAudit {
            person: person.unwrap_or_default(),
            event: event.unwrap_or_default(),
            day,
            found: &found,
            has_more,
        };
        Ok(self.shown(AdminSection::Audit, |around| audit_page(around, asked)))
    }
}

/// Reads what [`DayOfAudit`] writes.
fn place(text: &str) -> Option<EventPlace<'_>> {
    let (at, rest) = text.split_once('/')?;
    let (seq, chain) = rest.split_once('/')?;
    Some(EventPlace {
        at: Instant::from_micros(at.parse().ok()?),
        chain,
        seq: seq.parse().ok()?,
    })
}
