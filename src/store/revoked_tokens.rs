//! `revoked_tokens`: access tokens that somebody revoked, by `jti`, until they would have expired anyway.

use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::{NamedQuery, Store};
use crate::protocol::instant::Day;

const INSERT: &str = "
WITH revoked AS (
    INSERT INTO revoked_tokens (day, jti) VALUES ($1::int4, $2::bytea) ON CONFLICT (day, jti) DO NOTHING RETURNING day
), audited AS (
    INSERT INTO audit_events (day, process, event, client_id, sub, sid, source, request_id, detail)
    SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 + a.day,
           a.process, a.event, a.client_id, a.sub, a.sid, a.source, a.request_id, a.detail
    FROM revoked, jsonb_populate_record(NULL::audit_events, $3::jsonb) AS a
)
SELECT day FROM revoked";

/// Records a revocation under the day of the token's own expiry. Doing it twice is doing it once.
pub fn insert(store: &Store, day: Day, jti: &[u8], audit: &AuditEvent<'_>) -> Result<(), StoreError> {
    let audit = audit.parameter_of(store);
    store.write(|connection| connection.query(INSERT, &[&day, &jti, &audit])).map(drop)
}

pub(super) const QUERIES: &[NamedQuery] = &[("revoked_tokens::INSERT", INSERT)];
