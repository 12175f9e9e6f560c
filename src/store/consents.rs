//! `consents`: what a user allowed a client. A withdrawal keeps the row: its epoch is what kills
//! codes in flight. No row is one of epoch 0.

use postgres::Row;

use super::Store;
use super::audit_event::AuditEvent;
use super::statement::bind;
use super::values::column;
use crate::Result;
use gatepost_protocol::authorize::consent::Consent;
use gatepost_protocol::words::identifiers::{ClientId, Subject};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::scope::ScopeSet;

#[derive(Clone, Debug, PartialEq)]
pub struct ConsentRow {
    pub consent: Consent,
    /// When it lapses; `None` is never.
    pub expires_at: Option<Instant>,
    pub epoch: i64,
}

impl ConsentRow {
    pub fn has_lapsed(&self, now: Instant) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

const FIND: &str = "
SELECT {consent} FROM consents k WHERE k.sub = :sub::text AND k.client_id = :client_id::text";

/// Reads what the user allowed the client.
pub fn find(store: &Store, sub: &Subject, client_id: &ClientId) -> Result<Option<ConsentRow>> {
    store.find(bind!(FIND, sub, client_id), consent)
}

const LIST_OF_USER: &str = "
SELECT k.client_id, {consent}
FROM consents k WHERE k.sub = :sub::text AND cardinality(k.scopes) > 0 ORDER BY k.client_id";

/// All that a user has remembered here, lapsed or not, by client. As many as there are clients at
/// most.
pub fn list_of_user(store: &Store, sub: &Subject) -> Result<Vec<(ClientId, ConsentRow)>> {
    store.list(bind!(LIST_OF_USER, sub), |row| {
        Ok((column(row, "client_id")?, consent(row)?))
    })
}

fn consent(row: &Row) -> Result<ConsentRow> {
    let claims = column::<Vec<String>>(row, "consented_claims")?;
    let consent = Consent {
        scope: column(row, "consented_scopes")?,
        claims: claims.into_iter().collect(),
        given_at: column(row, "consented_at")?,
    };
    Ok(ConsentRow {
        consent,
        expires_at: column(row, "consent_expires_at")?,
        epoch: column(row, "consent_epoch")?,
    })
}

/// The consent of a row where there may be none.
pub(super) fn consent_if_there(row: &Row) -> Result<Option<ConsentRow>> {
    match column::<Option<i64>>(row, "consent_epoch")? {
        Some(_) => consent(row).map(Some),
        None => Ok(None),
    }
}

/// What stood on a consent that has lapsed does not come back with the next one. Of what is
/// remembered, what was not asked about now is kept; but only at the epoch that was read, since a
/// withdrawal that came in between drew another.
const GIVE: &str = "
WITH given AS (
    INSERT INTO consents (sub, client_id, scopes, claims, expires_at)
    VALUES (:sub::text, :client_id::text, :scopes::text[], :claims::text[],
            :expires_at::timestamptz)
    ON CONFLICT (sub, client_id) DO UPDATE
    SET scopes = array(SELECT kept FROM unnest(consents.scopes) AS kept
                       WHERE consents.epoch = :kept_epoch::int8
                         AND kept <> ALL (:asked_scopes::text[])) || excluded.scopes,
        claims = array(SELECT kept FROM unnest(consents.claims) AS kept
                       WHERE consents.epoch = :kept_epoch::int8
                         AND kept <> ALL (excluded.claims)) || excluded.claims,
        expires_at = excluded.expires_at, granted_at = clock_timestamp(),
        epoch = CASE WHEN :is_required::bool AND consents.expires_at <= clock_timestamp()
                     THEN new_epoch() ELSE consents.epoch END
)
INSERT INTO audit_events SELECT a.* FROM unnest(:events::audit_events[]) AS a
RETURNING ARRAY[hash] AS audited";

/// What a user allows a client, of what they were asked about.
pub struct GivenConsent<'a> {
    pub sub: &'a Subject,
    pub client_id: &'a ClientId,
    pub asked_scopes: &'a ScopeSet,
    pub scopes: &'a ScopeSet,
    pub claims: &'a [String],
    /// The epoch of the consent before, as it was read; `None` where none of it stands.
    pub kept_epoch: Option<i64>,
    /// When it lapses; `None` is never.
    pub expires_at: Option<Instant>,
    /// Whether the client needs a consent, so that what stood on one that has lapsed is over.
    pub is_required: bool,
}

/// Remembers a consent.
pub fn give(store: &Store, given: &GivenConsent<'_>, audit: &AuditEvent<'_>) -> Result {
    let bound = bind!(
        GIVE,
        ..given {
            sub,
            client_id,
            asked_scopes,
            scopes,
            claims,
            kept_epoch,
            expires_at,
            is_required
        }
    );
    store.write_audited(bound, audit).map(drop)
}

const END_LAPSED: &str = "
UPDATE consents SET scopes = '{}', claims = '{}', expires_at = NULL, epoch = new_epoch()
WHERE sub = :sub::text AND client_id = :client_id::text AND expires_at <= clock_timestamp()
RETURNING epoch";

/// Ends a consent that has lapsed, with all that stood on it, where the user consents anew without
/// remembering. Answers the new epoch; `None` where no consent has lapsed.
pub fn end_lapsed(store: &Store, sub: &Subject, client_id: &ClientId) -> Result<Option<i64>> {
    let bound = bind!(END_LAPSED, sub, client_id);
    let rows = store.write_rows(bound)?;
    rows.first().map(|row| column(row, "epoch")).transpose()
}

const WITHDRAW: &str = "
WITH withdrawn AS (
    INSERT INTO consents (sub, client_id, scopes, claims, epoch)
    VALUES (:sub::text, :client_id::text, '{}', '{}', new_epoch())
    ON CONFLICT (sub, client_id) DO UPDATE
    SET scopes = '{}', claims = '{}', expires_at = NULL, epoch = excluded.epoch
)
INSERT INTO audit_events SELECT a.* FROM unnest(:events::audit_events[]) AS a
RETURNING ARRAY[hash] AS audited";

/// Takes everything back: remembered scopes, grants, tokens and codes in flight of the pair,
/// remembered before or not.
pub fn withdraw(
    store: &Store,
    sub: &Subject,
    client_id: &ClientId,
    audit: &AuditEvent<'_>,
) -> Result {
    store
        .write_audited(bind!(WITHDRAW, sub, client_id), audit)
        .map(drop)
}
