//! Sessions that end with something else of their user: who changes a password, or a factor, has an
//! event written for each.

use super::Store;
use super::audit_event::AuditEvent;
use super::statement::bind;
use super::values::column;
use crate::Result;
use gatepost_protocol::words::identifiers::{Sid, Subject};

const OTHERS: &str = "
SELECT sid FROM sessions
WHERE sub = :sub::text AND sid <> :kept::text
  AND ended_at IS NULL AND expires_at > clock_timestamp()
ORDER BY day, sid";

/// Sessions of a user that have not ended, but one: for the events that tell of their end.
pub fn others(store: &Store, sub: &Subject, kept: &Sid) -> Result<Vec<Sid>> {
    store.list(bind!(OTHERS, sub, kept), |row| column(row, "sid"))
}

/// An event, and one more for each session that ends with it.
pub fn with_endings<'a>(event: &AuditEvent<'a>, ended: &'a [Sid]) -> Vec<AuditEvent<'a>> {
    let mut events = vec![event.clone()];
    for sid in ended {
        events.push(AuditEvent {
            sid: Some(sid),
            ..event.as_event("session_ended")
        });
    }
    events
}
