//! `audit_events`: who did what, when, from where. An event is written by the very statement that does the deed, so
//! that neither is there without the other and no second commit is paid.

use std::net::IpAddr;

use postgres::types::Json;
use serde_json::{Value, json};

use super::error::StoreError;
use super::{NamedQuery, Store};
use crate::protocol::identifiers::{ClientId, Sid, Subject};

/// One event. Nothing secret: no token, code, cookie, password or key, nor a hash of one.
#[derive(Clone, Debug, Default)]
pub struct AuditEvent<'a> {
    /// What happened, in snake_case: `signed_in`, `client_changed`.
    pub event: &'a str,
    /// The client concerned.
    pub client_id: Option<&'a ClientId>,
    /// The user concerned.
    pub sub: Option<&'a Subject>,
    /// The session concerned.
    pub sid: Option<&'a Sid>,
    /// Where the request came from; none for commands.
    pub source: Option<IpAddr>,
    /// The request's id, as in its log line.
    pub request_id: Option<&'a str>,
    /// More, as an object; `Null` for nothing.
    pub detail: Value,
}

impl AuditEvent<'_> {
    /// The one parameter that a statement's `audited` part takes: its members are the columns, `day` counts from today.
    pub(super) fn parameter(&self, process: &str, audit_days: i32) -> Json<Value> {
        let detail = if self.detail.is_null() { json!({}) } else { self.detail.clone() };
        Json(json!({
            "day": audit_days,
            "process": process,
            "event": self.event,
            "client_id": self.client_id.map(ClientId::as_str),
            "sub": self.sub.map(Subject::as_str),
            "sid": self.sid.map(Sid::as_str),
            "source": self.source.map(|address| address.to_string()),
            "request_id": self.request_id,
            "detail": detail,
        }))
    }

    /// The same for a statement run on the store's own pool.
    pub(super) fn parameter_of(&self, store: &Store) -> Json<Value> {
        self.parameter(store.process(), store.audit_days())
    }
}

/// The shape every statement's `audited` part has.
pub(super) const INSERT: &str = "
INSERT INTO audit_events (day, process, event, client_id, sub, sid, source, request_id, detail)
SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 + a.day,
       a.process, a.event, a.client_id, a.sub, a.sid, a.source, a.request_id, a.detail
FROM jsonb_populate_record(NULL::audit_events, $1::jsonb) AS a";

/// Writes an event that goes with no other statement.
pub fn insert(store: &Store, event: &AuditEvent<'_>) -> Result<(), StoreError> {
    let parameter = event.parameter_of(store);
    store.write(|connection| connection.execute(INSERT, &[&parameter])).map(drop)
}

pub(super) const QUERIES: &[NamedQuery] = &[("audit_events::INSERT", INSERT)];
