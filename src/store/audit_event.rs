//! One event, as whoever makes a change says it. Who keeps the chain that it is written to is in
//! `audit_chain`.

use std::net::IpAddr;

use serde_json::Value;

use gatepost_protocol::token::grant::Grant;
use gatepost_protocol::words::identifiers::{ClientId, GrantId, Sid, Subject};
use gatepost_protocol::words::json::SetMember;

/// Events that go with no other statement.
pub const INSERT: &str = "
INSERT INTO audit_events SELECT a.* FROM unnest(:events::audit_events[]) AS a
RETURNING ARRAY[hash] AS audited";

/// One event. Nothing secret: no token, code, cookie, password or key, nor a hash of one.
#[derive(Clone, Debug, Default)]
pub struct AuditEvent<'a> {
    /// What happened, in snake_case: `signed_in`, `client_changed`.
    pub event: &'a str,
    pub client_id: Option<&'a ClientId>,
    pub sub: Option<&'a Subject>,
    pub sid: Option<&'a Sid>,
    /// Where the request came from; none for commands.
    pub source: Option<IpAddr>,
    pub request_id: Option<&'a str>,
    /// More, as an object; `Null` for nothing.
    pub detail: Value,
}

impl<'a> AuditEvent<'a> {
    pub fn of(grant: &'a Grant) -> AuditEvent<'a> {
        let user = &grant.user;
        AuditEvent {
            client_id: Some(&grant.client_id),
            sub: Some(&user.subject),
            sid: user.sid.as_ref(),
            ..AuditEvent::default()
        }
    }

    /// The same event by another name.
    pub fn as_event(&self, event: &'a str) -> AuditEvent<'a> {
        AuditEvent {
            event,
            ..self.clone()
        }
    }

    /// The same, and which grant it is about.
    pub fn about_grant(&self, id: GrantId) -> AuditEvent<'a> {
        let mut detail = self.detail.as_object().cloned().unwrap_or_default();
        detail.set("grant", id.to_text());
        AuditEvent {
            detail: Value::Object(detail),
            ..self.clone()
        }
    }

    /// The same, caused by that request.
    pub fn by(self, source: IpAddr, request_id: &'a str) -> AuditEvent<'a> {
        AuditEvent {
            source: Some(source),
            request_id: Some(request_id),
            ..self
        }
    }
}

/// Who changes what is registered and is no operator, and their request.
#[derive(Clone)]
pub struct EventAuthor {
    /// An object that tells who they are, for the detail of each event.
    pub by: Value,
    pub source: IpAddr,
    pub request_id: String,
}

impl EventAuthor {
    /// The same event, and who caused it.
    pub fn signed<'a>(&'a self, event: &AuditEvent<'a>) -> AuditEvent<'a> {
        let mut detail = event.detail.as_object().cloned().unwrap_or_default();
        detail.extend(self.by.as_object().cloned().unwrap_or_default());
        AuditEvent {
            detail: Value::Object(detail),
            ..event.clone().by(self.source, &self.request_id)
        }
    }
}
