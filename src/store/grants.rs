//! `grants`: one row per redeemed authorization. The row is the proof that a code was used: whoever makes it has
//! redeemed the code, whoever finds it there presents a replay.

use std::slice;

use postgres::Row;
use postgres::types::{Json, ToSql};
use serde_json::{Map, Value};

use super::Store;
use super::audit_chain::Together;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::users::{UserRow, user};
use super::values::{client_id, column, epochs, id, sign_in, tenant_text};
use crate::protocol::token::claims::ClaimNames;
use crate::protocol::words::grant::Grant;
use crate::protocol::words::identifiers::{ClientId, GrantId, Subject};
use crate::protocol::words::instant::Day;

/// What became of a redemption.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum Redemption {
    /// The first use of the code; everything stands. The user's row is as current as the decision.
    Issued(Box<UserRow>),
    /// The code was used or burnt before; what it gave is revoked, and that is told.
    Replayed,
    /// The same again, with nothing left to revoke: no event, for whoever sends a code does so as often as they like.
    ReplayedAgain,
    /// The first use, but user, client, session or consent no longer stand. The code is spent, nothing may be issued.
    NoLongerStands,
}

/// A code whose user, client, session or consent is gone is entered all the same, revoked from the start: the code is
/// then spent in every case, and the insert has one source row whatever the joins find, so that the conflict branch is
/// always reached. A consent that lapsed since, where the client needs one, is gone too. `DO UPDATE` waits for a redemption
/// that runs beside it and then revokes what that one made; where nothing lives any more it changes and tells nothing.
/// The statement's own `attempt` on the row means that our answer was lost, not that somebody else was here; found there
/// beforehand, it has told its event.
const REDEEM: &str = "
WITH standing AS (
    SELECT u.enabled AND u.epoch = $22::int8 AND c.enabled AND c.epoch = $21::int8 AND i.epoch = $20::int8
           AND coalesce(k.epoch, 0) = $23::int8
           AND ($9::text IS NULL OR (s.sid IS NOT NULL AND s.ended_at IS NULL))
           AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp() OR $14::timestamptz >= k.expires_at
                OR (c.metadata ->> 'require_consent')::bool IS NOT TRUE) AS stands,
           u.sub, u.username, u.tenant, u.password_hash, u.enabled, u.claims, u.epoch
    FROM installation i
    LEFT JOIN users u ON u.sub = $5::text
    LEFT JOIN clients c ON c.client_id = $4::text
    LEFT JOIN sessions s ON s.day = $8::int4 AND s.sid = $9::text AND s.sub = $5::text
    LEFT JOIN consents k ON k.sub = $5::text AND k.client_id = $4::text
), redeemed AS (
    INSERT INTO grants (day, id, attempt, client_id, sub, scopes, resources, session_day, sid, tenant, auth_time, amr, acr,
                        issued_at, expires_at, offline, claims, identity_provider, token_claims,
                        installation_epoch, client_epoch, user_epoch, consent_epoch, revoked_at)
    SELECT $1::int4, $2::bytea, $3::bytea, $4::text, $5::text, $6::text[], $7::text[], $8::int4, $9::text, $10::text,
           $11::timestamptz, $12::text[], $13::text, $14::timestamptz, $15::timestamptz, $16::bool, $17::jsonb, $18::text,
           $24::jsonb, $20::int8, $21::int8, $22::int8, $23::int8, CASE WHEN $19::bool OR standing.stands IS NOT TRUE THEN clock_timestamp() END
    FROM standing
    ON CONFLICT (day, id) DO UPDATE
    SET revoked_at = CASE WHEN grants.attempt = excluded.attempt THEN grants.revoked_at ELSE clock_timestamp() END
    WHERE grants.attempt = excluded.attempt OR grants.revoked_at IS NULL
    RETURNING attempt = $3::bytea AS own, revoked_at IS NULL AS issued
), audited AS (
    INSERT INTO audit_events
    SELECT a.* FROM redeemed, json_populate_recordset(NULL::audit_events, $25::json) AS a
    WHERE CASE WHEN redeemed.issued THEN a.event NOT IN ('grant_refused', 'code_refused', 'code_replayed')
               WHEN redeemed.own THEN a.event IN ('chain_opened', 'grant_refused', 'code_refused')
               ELSE a.event IN ('chain_opened', 'grant_refused', 'code_replayed') END
          AND NOT EXISTS (SELECT FROM grants g WHERE g.day = $1::int4 AND g.id = $2::bytea AND g.attempt = $3::bytea)
    RETURNING hash
)
SELECT redeemed.own, redeemed.issued, array(SELECT hash FROM audited) AS audited, standing.*
FROM standing LEFT JOIN redeemed ON true";

/// Redeems a code: at most one caller ever gets `Issued` for one grant id. When the connection breaks before the answer,
/// the same attempt is made once more. The event's client, user and session are the statement's own, and so is its name,
/// unless the grant begins without a code and brings one.
pub fn redeem(store: &Store, new: &Grant, attempt: [u8; 16], audit: &AuditEvent<'_>) -> Result<Redemption, StoreError> {
    let row = enter(store, new, attempt, false, audit)?;
    let stands = column::<Option<bool>>(&row, "stands")?.unwrap_or(false);
    match (column(&row, "own")?, is_issued(&row)?) {
        (Some(true), true) => Ok(Redemption::Issued(Box::new(user(&row)?))),
        // Ours and revoked although everything stands: replayed by another between our lost answer and the retry.
        (Some(true), false) if stands => Ok(Redemption::Replayed),
        (Some(true), false) => Ok(Redemption::NoLongerStands),
        (Some(false), _) => Ok(Redemption::Replayed),
        (None, _) => Ok(Redemption::ReplayedAgain),
    }
}

/// Enters a grant that no code promised, under an id drawn for it just now. `None` when user, client or consent do not
/// stand: then nothing may be issued. The event has the name it is given, unless nothing is issued.
pub fn begin(
    store: &Store,
    new: &Grant,
    attempt: [u8; 16],
    audit: &AuditEvent<'_>,
) -> Result<Option<Box<UserRow>>, StoreError> {
    let row = enter(store, new, attempt, false, audit)?;
    if is_issued(&row)? { Ok(Some(Box::new(user(&row)?))) } else { Ok(None) }
}

fn is_issued(row: &Row) -> Result<bool, StoreError> {
    Ok(column::<Option<bool>>(row, "issued")?.unwrap_or(false))
}

/// Spends a code for nothing, because its own client failed to prove that it may use it; what an earlier redemption
/// gave is revoked. The same statement as [`redeem`], so neither can slip past the other. `false` when there was nothing to
/// spend or revoke any more, and so nothing told.
pub fn burn(store: &Store, new: &Grant, attempt: [u8; 16], audit: &AuditEvent<'_>) -> Result<bool, StoreError> {
    Ok(column::<Option<bool>>(&enter(store, new, attempt, true, audit)?, "own")?.is_some())
}

fn enter(store: &Store, new: &Grant, attempt: [u8; 16], burn: bool, audit: &AuditEvent<'_>) -> Result<Row, StoreError> {
    let of_code = ["code_redeemed", "code_refused", "code_replayed"];
    let named = [audit.event, "grant_refused"];
    let names = if audit.event.is_empty() { &of_code[..] } else { &named[..] };
    let sign_in = &new.user;
    let session = sign_in.sid.as_ref().and_then(|sid| Some((sid.day()?, sid)));
    let own = AuditEvent {
        client_id: Some(&new.client_id),
        sub: Some(&sign_in.subject),
        sid: session.map(|(_, sid)| sid),
        detail: with_grant(&audit.detail, new.id),
        ..audit.clone()
    };
    let events: Vec<_> = names.iter().map(|event| AuditEvent { event, ..own.clone() }).collect();
    let values: [&(dyn ToSql + Sync); 24] = [
        &new.id.day,
        &&new.id.random[..],
        &&attempt[..],
        &new.client_id.as_str(),
        &sign_in.subject.as_str(),
        &new.scope.iter().collect::<Vec<_>>(),
        &new.resources,
        &session.map(|(day, _)| day),
        &session.map(|(_, sid)| sid.as_str()),
        &tenant_text(sign_in.tenant.as_ref()),
        &sign_in.auth_time,
        &sign_in.amr,
        &sign_in.acr,
        &new.issued_at,
        &new.expires_at,
        &new.is_offline(),
        &Json(&new.claims),
        &sign_in.identity_provider,
        &burn,
        &new.epochs.installation,
        &new.epochs.client,
        &new.epochs.user,
        &new.epochs.consent,
        &Json(&new.token_claims),
    ];
    let rows =
        store.write_once_more(|connection| connection.audited(REDEEM, &values, &events, Together::Alternatives))?;
    rows.into_iter().next().ok_or_else(|| StoreError::Corrupt(String::from("no installation: run `gatepost migrate`")))
}

/// What an event says, and which grant it is about.
pub(super) fn with_grant(detail: &Value, id: GrantId) -> Value {
    let mut detail = detail.as_object().cloned().unwrap_or_default();
    detail.insert(String::from("grant"), Value::String(id.to_text()));
    Value::Object(detail)
}

const REVOKE: &str = "
WITH revoked AS (
    UPDATE grants SET revoked_at = clock_timestamp()
    WHERE day = $1::int4 AND id = $2::bytea AND ($3::text IS NULL OR client_id = $3::text) AND revoked_at IS NULL
    RETURNING id
), audited AS (
    INSERT INTO audit_events SELECT a.* FROM revoked, json_populate_recordset(NULL::audit_events, $4::json) AS a
    RETURNING hash
)
SELECT array(SELECT hash FROM audited) AS audited, EXISTS (SELECT FROM revoked) AS ended
FROM grants WHERE day = $1::int4 AND id = $2::bytea AND ($3::text IS NULL OR client_id = $3::text)";

/// Revokes a grant: of this client, or of whichever. `true` when there was one that lived. Whose it is, the event says.
pub fn revoke(
    store: &Store,
    id: GrantId,
    client_id: Option<&ClientId>,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let client_id = client_id.map(ClientId::as_str);
    let event = AuditEvent { detail: with_grant(&audit.detail, id), ..audit.clone() };
    let values: [&(dyn ToSql + Sync); 3] = [&id.day, &&id.random[..], &client_id];
    store.end(Some(id.to_text().as_bytes()), REVOKE, &values, slice::from_ref(&event))
}

/// A code that may no longer be redeemed came back: revokes what it gave, if it gave anything. `true` when it had. The answer
/// is a refusal, which need not wait for what was revoked before.
pub fn revoke_replayed(
    store: &Store,
    id: GrantId,
    client_id: &ClientId,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let event = AuditEvent { event: "code_replayed", detail: with_grant(&audit.detail, id), ..audit.clone() };
    let rows = store.write_audited(REVOKE, &[&id.day, &&id.random[..], &Some(client_id.as_str())], &event)?;
    rows.first().map_or(Ok(false), |row| column(row, "ended"))
}

/// What [`grant`] reads, of `grants g`.
macro_rules! columns {
    () => {
        "
SELECT g.day, g.id, g.client_id, g.sub, g.scopes, g.resources, g.claims, g.token_claims, g.sid, g.tenant,
       g.identity_provider, g.auth_time, g.amr, g.acr, g.installation_epoch, g.client_epoch, g.user_epoch,
       g.consent_epoch, g.generation, g.issued_at, coalesce(g.used_at, g.moved_at, g.redeemed_at) AS last_used_at,
       g.expires_at, g.revoked_at
FROM grants g"
    };
}

const FIND: &str =
    concat!(columns!(), " WHERE day = $1::int4 AND id = $2::bytea AND ($3::text IS NULL OR client_id = $3::text)");

/// Reads a grant of this client; somebody else's counts as absent.
pub fn find(store: &Store, id: GrantId, client_id: &ClientId) -> Result<Option<Grant>, StoreError> {
    find_of(store, id, Some(client_id))
}

/// Reads a grant of whichever client.
pub fn find_of_any(store: &Store, id: GrantId) -> Result<Option<Grant>, StoreError> {
    find_of(store, id, None)
}

fn find_of(store: &Store, id: GrantId, client_id: Option<&ClientId>) -> Result<Option<Grant>, StoreError> {
    let client_id = client_id.map(ClientId::as_str);
    let found = store.read(|connection| connection.query_opt(FIND, &[&id.day, &&id.random[..], &client_id]))?;
    found.as_ref().map(grant).transpose()
}

const LIST_OFFLINE_OF_USER: &str = concat!(
    columns!(),
    "
JOIN installation i ON i.epoch = g.installation_epoch
JOIN users u ON u.sub = g.sub AND u.epoch = g.user_epoch
JOIN clients c ON c.client_id = g.client_id AND c.epoch = g.client_epoch
LEFT JOIN consents k ON k.sub = g.sub AND k.client_id = g.client_id
WHERE g.offline AND g.sub = $1::text
  AND g.revoked_at IS NULL AND g.expires_at > clock_timestamp()
  AND coalesce(k.epoch, 0) = g.consent_epoch
ORDER BY g.issued_at DESC LIMIT $2::int8"
);

/// Grants of one user that outlive their sessions and live, the latest first, at most `limit`. Whether they were left unused
/// for too long is for the core to judge.
pub fn list_offline_of_user(store: &Store, sub: &Subject, limit: i64) -> Result<Vec<Grant>, StoreError> {
    let rows = store.read(|connection| connection.query(LIST_OFFLINE_OF_USER, &[&sub.as_str(), &limit]))?;
    rows.iter().map(grant).collect()
}

const LIST: &str = concat!(
    columns!(),
    "
JOIN installation i ON i.epoch = g.installation_epoch
JOIN users u ON u.sub = g.sub AND u.enabled AND u.epoch = g.user_epoch
JOIN clients c ON c.client_id = g.client_id AND c.enabled AND c.epoch = g.client_epoch
LEFT JOIN sessions s ON s.day = g.session_day AND s.sid = g.sid
LEFT JOIN consents k ON k.sub = g.sub AND k.client_id = g.client_id
WHERE (g.day, g.id) > ($1::int4, $2::bytea)
  AND ($3::text IS NULL OR g.sub = $3::text) AND ($4::text IS NULL OR g.client_id = $4::text)
  AND g.revoked_at IS NULL AND g.expires_at > clock_timestamp()
  AND (g.offline OR g.sid IS NULL OR (s.sid IS NOT NULL AND s.ended_at IS NULL))
  AND coalesce(k.epoch, 0) = g.consent_epoch
ORDER BY g.day, g.id LIMIT $5::int8"
);

/// Grants that live, by id, at most `limit` behind `after`; of one user, of one client, or all.
pub fn list(
    store: &Store,
    after: Option<GrantId>,
    sub: Option<&Subject>,
    client_id: Option<&ClientId>,
    limit: i64,
) -> Result<Vec<Grant>, StoreError> {
    let day = after.map_or(Day(i32::MIN), |after| after.day);
    let random = after.map(|after| after.random).unwrap_or_default();
    let (sub, client_id) = (sub.map(Subject::as_str), client_id.map(ClientId::as_str));
    let rows = store.read(|connection| connection.query(LIST, &[&day, &&random[..], &sub, &client_id, &limit]))?;
    rows.iter().map(grant).collect()
}

fn grant(row: &Row) -> Result<Grant, StoreError> {
    let scopes: Vec<&str> = column(row, "scopes")?;
    Ok(Grant {
        id: GrantId { day: column(row, "day")?, random: id(row, "id")? },
        client_id: client_id(row, "client_id")?,
        user: sign_in(row)?,
        scope: scopes.into_iter().collect(),
        resources: column(row, "resources")?,
        claims: column::<Json<ClaimNames>>(row, "claims")?.0,
        token_claims: column::<Json<Map<String, Value>>>(row, "token_claims")?.0,
        epochs: epochs(row)?,
        generation: column(row, "generation")?,
        issued_at: column(row, "issued_at")?,
        last_used_at: column(row, "last_used_at")?,
        expires_at: column(row, "expires_at")?,
        revoked_at: column(row, "revoked_at")?,
    })
}
