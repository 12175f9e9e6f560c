//! `revoked_tokens`: access tokens that somebody revoked, by `jti`, until they would have expired anyway.

use std::slice;

use super::Store;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use crate::protocol::words::instant::Day;

const INSERT: &str = "
WITH revoked AS (
    INSERT INTO revoked_tokens (day, jti) VALUES ($1::int4, $2::bytea) ON CONFLICT (day, jti) DO NOTHING RETURNING day
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM revoked, json_populate_recordset(NULL::audit_events, $3::json) AS a
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited, EXISTS (SELECT FROM revoked) AS ended";

/// Records a revocation under the day of the token's own expiry. Doing it twice is doing it once.
pub fn insert(store: &Store, day: Day, jti: &[u8], audit: &AuditEvent<'_>) -> Result<(), StoreError> {
    store.end(Some(jti), INSERT, &[&day, &jti], slice::from_ref(audit)).map(drop)
}
