//! `grants`: one row per redeemed authorization. The row proves that a code was used: the request
//! that inserts it has redeemed the code, and a request that finds it is a replay.

use std::slice;
use std::time::Duration;

use postgres::Row;
use postgres::types::Json;
use serde_json::{Map, Value};

use super::Store;
use super::audit_chain::Together;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::users::{UserRow, user};
use super::values::{Values, column, epochs, id, read, sign_in, tenant_text};
use crate::protocol::token::claims::ClaimNames;
use crate::protocol::token::grant::Grant;
use crate::protocol::token::refresh_token::{RefreshHandle, Within};
use crate::protocol::words::client::RefreshTokenUsage;
use crate::protocol::words::identifiers::{ClientId, GrantId, Sid, Subject};
use crate::protocol::words::instant::Day;
use crate::protocol::words::session::SignIn;

#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum Redemption {
    /// The first use of the code; everything stands. The user's row is as current as the decision.
    Issued(Box<UserRow>),
    /// The code was used or burnt before; what it gave is revoked, and that is told.
    Replayed,
    /// The same again, with nothing left to revoke: no event, since a code can be sent as often as
    /// one likes.
    ReplayedAgain,
    /// The first use, but user, client, session or consent no longer stand. The code is spent,
    /// nothing may be issued.
    NoLongerStands,
}

/// A code whose user, client, session or consent is gone is entered all the same, revoked from the
/// start: the code is then spent in every case, and the insert has one source row whatever the
/// joins find, so that the conflict branch is always reached. A consent that lapsed since, where
/// the client needs one, is gone too. `DO UPDATE` waits for a redemption that runs beside it and
/// then revokes what that one made; where nothing lives any more it changes and tells nothing. The
/// statement's own `attempt` on the row means that our answer was lost, not that somebody else was
/// here; found there beforehand, it has told its event.
const REDEEM: &str = "
WITH standing AS (
    SELECT u.enabled AND {open} AND u.epoch = $22::int8 AND c.enabled AND c.epoch = $21::int8 AND i.epoch = $20::int8
           AND coalesce(k.epoch, 0) = $23::int8
           AND ($9::text IS NULL OR (s.sid IS NOT NULL AND s.ended_at IS NULL))
           AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp() OR $14::timestamptz >= k.expires_at
                OR (c.metadata ->> 'require_consent')::bool IS NOT TRUE) AS stands,
           {user}
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
    SELECT a.* FROM redeemed, unnest($25::audit_events[]) AS a
    WHERE CASE WHEN redeemed.issued THEN a.event NOT IN ('grant_refused', 'code_refused', 'code_replayed')
               WHEN redeemed.own THEN a.event IN ('chain_opened', 'grant_refused', 'code_refused')
               ELSE a.event IN ('chain_opened', 'grant_refused', 'code_replayed') END
          AND NOT EXISTS (SELECT FROM grants g WHERE g.day = $1::int4 AND g.id = $2::bytea AND g.attempt = $3::bytea)
    RETURNING hash
)
SELECT redeemed.own, redeemed.issued, array(SELECT hash FROM audited) AS audited, standing.*
FROM standing LEFT JOIN redeemed ON true";

/// Redeems a code: at most one caller ever gets `Issued` for one grant id. When the connection
/// breaks before the answer, the same attempt is made once more. The event's client, user and
/// session are the statement's own, and so is its name, unless the grant begins without a code and
/// brings one.
pub fn redeem(
    store: &Store,
    new: &Grant,
    attempt: [u8; 16],
    audit: &AuditEvent<'_>,
) -> Result<Redemption, StoreError> {
    let row = enter(store, new, attempt, false, audit)?;
    let stands = column::<Option<bool>>(&row, "stands")? == Some(true);
    match (
        column(&row, "own")?,
        column::<Option<bool>>(&row, "issued")? == Some(true),
    ) {
        (Some(true), true) => Ok(Redemption::Issued(Box::new(user(&row)?))),
        // Ours and revoked although everything stands: replayed by another between our lost answer
        // and the retry.
        (Some(true), false) if stands => Ok(Redemption::Replayed),
        (Some(true), false) => Ok(Redemption::NoLongerStands),
        (Some(false), _) => Ok(Redemption::Replayed),
        (None, _) => Ok(Redemption::ReplayedAgain),
    }
}

/// Enters a grant that no code promised, under an id drawn for it just now. `None` when user,
/// client or consent do not stand: then nothing may be issued. The event has the name it is given,
/// unless nothing is issued.
pub fn begin(
    store: &Store,
    new: &Grant,
    attempt: [u8; 16],
    audit: &AuditEvent<'_>,
) -> Result<Option<Box<UserRow>>, StoreError> {
    Ok(match redeem(store, new, attempt, audit)? {
        Redemption::Issued(user) => Some(user),
        Redemption::Replayed | Redemption::ReplayedAgain | Redemption::NoLongerStands => None,
    })
}

/// Spends a code for nothing, because its own client failed to prove that it may use it; what an
/// earlier redemption gave is revoked. The same statement as [`redeem`], so neither can slip past
/// the other. `false` when there was nothing to spend or revoke any more, and so nothing told.
pub fn burn(
    store: &Store,
    new: &Grant,
    attempt: [u8; 16],
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    Ok(column::<Option<bool>>(&enter(store, new, attempt, true, audit)?, "own")?.is_some())
}

fn enter(
    store: &Store,
    new: &Grant,
    attempt: [u8; 16],
    burn: bool,
    audit: &AuditEvent<'_>,
) -> Result<Row, StoreError> {
    let of_code = ["code_redeemed", "code_refused", "code_replayed"];
    let named = [audit.event, "grant_refused"];
    let names = if audit.event.is_empty() {
        &of_code[..]
    } else {
        &named[..]
    };
    let Grant {
        id,
        client_id,
        scope,
        resources,
        claims,
        token_claims,
        epochs,
        issued_at,
        expires_at,
        ..
    } = new;
    let SignIn {
        subject,
        sid,
        tenant,
        identity_provider,
        auth_time,
        amr,
        acr,
    } = &new.user;
    let sid = sid.as_ref().filter(|sid| sid.day().is_some());
    let detail = with_grant(&audit.detail, *id);
    let own = AuditEvent {
        client_id: Some(client_id),
        sub: Some(subject),
        sid,
        detail,
        ..audit.clone()
    };
    let events: Vec<_> = names
        .iter()
        .map(|event| AuditEvent {
            event,
            ..own.clone()
        })
        .collect();
    let (random, attempt, day) = (&id.random[..], &attempt[..], sid.and_then(Sid::day));
    let who: Values<'_> = &[
        &id.day, &random, &attempt, client_id, subject, scope, resources, &day, &sid,
    ];
    let how: Values<'_> = &[
        &tenant_text(tenant.as_ref()),
        auth_time,
        amr,
        acr,
        issued_at,
        expires_at,
    ];
    let what: Values<'_> = &[&new.is_offline(), &Json(claims), identity_provider, &burn];
    let stands_on: Values<'_> = &[
        &epochs.installation,
        &epochs.client,
        &epochs.user,
        &epochs.consent,
    ];
    let token_claims = Json(token_claims);
    let values = &[who, how, what, stands_on, &[&token_claims]].concat();
    let rows = store.write_once_more(|connection| {
        connection.audited(REDEEM, values, &events, Together::Alternatives)
    })?;
    rows.into_iter()
        .next()
        .ok_or_else(StoreError::no_installation)
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
), {audited revoked $4}, EXISTS (SELECT FROM revoked) AS ended
FROM grants WHERE day = $1::int4 AND id = $2::bytea AND ($3::text IS NULL OR client_id = $3::text)";

/// Revokes a grant: of this client, or of any. `true` when there was a live one. The event names
/// its user and client.
pub fn revoke(
    store: &Store,
    id: GrantId,
    client_id: Option<&ClientId>,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let event = AuditEvent {
        detail: with_grant(&audit.detail, id),
        ..audit.clone()
    };
    let values: Values<'_> = &[&id.day, &&id.random[..], &client_id];
    store.end(
        Some(id.to_text().as_bytes()),
        REVOKE,
        values,
        slice::from_ref(&event),
    )
}

/// A code that may no longer be redeemed came back: revokes what it gave, if it gave anything.
/// `true` when it had. The answer is a refusal, which need not wait for what was revoked before.
pub fn revoke_replayed(
    store: &Store,
    id: GrantId,
    client_id: &ClientId,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let event = AuditEvent {
        event: "code_replayed",
        detail: with_grant(&audit.detail, id),
        ..audit.clone()
    };
    let rows = store.write_audited(REVOKE, &[&id.day, &&id.random[..], &client_id], &event)?;
    rows.first().map_or(Ok(false), |row| column(row, "ended"))
}

const FIND: &str = "
SELECT {grant} FROM grants g WHERE g.day = $1::int4 AND g.id = $2::bytea AND ($3::text IS NULL OR g.client_id = $3::text)";

/// Reads a grant of this client, or of whichever; somebody else's counts as absent.
pub fn find(
    store: &Store,
    id: GrantId,
    client_id: Option<&ClientId>,
) -> Result<Option<Grant>, StoreError> {
    store.find(FIND, &[&id.day, &&id.random[..], &client_id], grant)
}

const LIST_OFFLINE_OF_USER: &str = "
SELECT {grant} FROM grants g
JOIN installation i ON i.epoch = g.installation_epoch
JOIN users u ON u.sub = g.sub AND u.epoch = g.user_epoch
JOIN clients c ON c.client_id = g.client_id AND c.epoch = g.client_epoch
LEFT JOIN consents k ON k.sub = g.sub AND k.client_id = g.client_id
WHERE g.offline AND g.sub = $1::text
  AND g.revoked_at IS NULL AND g.expires_at > clock_timestamp()
  AND coalesce(k.epoch, 0) = g.consent_epoch
ORDER BY g.issued_at DESC LIMIT $2::int8";

/// Grants of one user that outlive their sessions and live, the latest first, at most `limit`.
/// Whether they were left unused for too long is for the core to judge.
pub fn list_offline_of_user(
    store: &Store,
    sub: &Subject,
    limit: i64,
) -> Result<Vec<Grant>, StoreError> {
    store.list(LIST_OFFLINE_OF_USER, &[sub, &limit], grant)
}

const LIST: &str = "
SELECT {grant}, u.username FROM grants g
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
ORDER BY g.day, g.id LIMIT $5::int8";

/// Grants that live, with the names of their users, by id, at most `limit` behind `after`; of one
/// user, of one client, or all.
pub fn list(
    store: &Store,
    after: Option<GrantId>,
    sub: Option<&Subject>,
    client_id: Option<&ClientId>,
    limit: i64,
) -> Result<Vec<(Grant, Option<String>)>, StoreError> {
    let day = after.map_or(Day(i32::MIN), |after| after.day);
    let random = after.map(|after| after.random).unwrap_or_default();
    store.list(
        LIST,
        &[&day, &&random[..], &sub, &client_id, &limit],
        |row| Ok((grant(row)?, column(row, "username")?)),
    )
}

fn grant(row: &Row) -> Result<Grant, StoreError> {
    read!(row, Grant { client_id, resources, generation, issued_at, last_used_at, expires_at, revoked_at;
        id: GrantId { day: column(row, "day")?, random: id(row, "id")? },
        user: sign_in(row, "grant_tenant")?,
        scope: column(row, "scopes")?,
        claims: column::<Json<ClaimNames>>(row, "grant_claims")?.0,
        token_claims: column::<Json<Map<String, Value>>>(row, "token_claims")?.0,
        epochs: epochs(row)?,
    })
}

// Refresh: the one statement that moves a grant to its next generation, hands the same successor
// out again, or finds a replay and revokes the grant. All that arrive at once queue at the row, and
// each is judged by the row as it then is.

#[derive(Clone, Copy, Debug)]
pub struct NewRefresh<'a> {
    pub handle: RefreshHandle,
    pub client_id: &'a ClientId,
    /// 16 random bytes of this request: tells its own commit from another's.
    pub attempt: [u8; 16],
    pub usage: RefreshTokenUsage,
    /// For how long after a move its predecessor still gets the same successor.
    pub retry_window: Duration,
}

#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum Refreshed {
    /// Everything stands; the user's row is as current as the decision.
    Issued {
        /// The generation of the refresh token to hand out.
        generation: i32,
        user: Box<UserRow>,
    },
    /// An old token came again, or the grant was revoked meanwhile: the grant is dead.
    Revoked,
    /// User, client or consent no longer stand; the row is as it was.
    NoLongerStands,
}

/// What the grant stands on is read beside it. A row that others hold is judged once they are done,
/// by what they left, while `standing` stays as read when the statement began: hence every use of a
/// token asks again. A consent that lapsed since the grant was given, where the client needs one,
/// no longer stands. An answer that was given without being remembered is not held against one that
/// was. The statement's own `attempt` on the row means that our answer was lost, not that somebody
/// else was here. A use that moves nothing closes the window of the last move: the successor was
/// used. So a client that is registered anew for tokens that stay may still repeat what it lost
/// before, and no longer.
const REFRESH: &str = "
WITH standing AS (
    SELECT u.enabled AND {open} AND u.epoch = g.user_epoch AND c.enabled AND c.epoch = g.client_epoch AND i.epoch = g.installation_epoch
           AND coalesce(k.epoch, 0) = g.consent_epoch
           AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp() OR g.issued_at >= k.expires_at
                OR (c.metadata ->> 'require_consent')::bool IS NOT TRUE) AS stands,
           g.attempt = $5::bytea AS told,
           {grant}, {user}
    FROM grants g
    CROSS JOIN installation i
    LEFT JOIN users u ON u.sub = g.sub
    LEFT JOIN clients c ON c.client_id = g.client_id
    LEFT JOIN consents k ON k.sub = g.sub AND k.client_id = g.client_id
    WHERE g.day = $1::int4 AND g.id = $2::bytea AND g.client_id = $3::text
          AND ($8::text[] IS NULL
               OR g.generation = $4::int4 AND g.revoked_at IS NULL AND g.offline AND g.scopes <@ $8::text[]
                  AND g.tenant = ANY ($9::text[]) AND g.expires_at > $10::timestamptz
                  AND coalesce(g.used_at, g.moved_at, g.redeemed_at) > $11::timestamptz
                  AND ($12::text[] IS NULL OR g.acr = ANY ($12::text[])))
), refreshed AS (
    UPDATE grants g
    SET generation = CASE WHEN g.revoked_at IS NULL AND standing.stands AND g.generation = $4::int4 AND NOT $6::bool
                          THEN g.generation + 1 ELSE g.generation END,
        moved_at = CASE WHEN g.revoked_at IS NULL AND standing.stands AND g.generation = $4::int4
                        THEN CASE WHEN NOT $6::bool THEN clock_timestamp() END ELSE g.moved_at END,
        used_at = CASE WHEN g.revoked_at IS NULL AND standing.stands AND g.generation = $4::int4
                       THEN CASE WHEN $6::bool THEN clock_timestamp() END ELSE g.used_at END,
        attempt = CASE WHEN g.revoked_at IS NULL AND standing.stands AND g.generation = $4::int4 THEN $5::bytea
                       ELSE g.attempt END,
        revoked_at = CASE WHEN g.revoked_at IS NOT NULL THEN g.revoked_at
                          WHEN g.generation <= $4::int4 THEN NULL
                          WHEN g.generation - 1 = $4::int4
                               AND (g.attempt = $5::bytea OR g.moved_at > clock_timestamp() - $7::int8 * interval '1 second')
                          THEN NULL
                          ELSE clock_timestamp() END
    FROM standing
    WHERE g.day = $1::int4 AND g.id = $2::bytea AND g.client_id = $3::text
    RETURNING g.generation AS now_at, g.attempt = $5::bytea AS own, g.revoked_at IS NOT NULL AS revoked, g.sub, g.sid
), audited AS (
    INSERT INTO audit_events
    SELECT a.day, a.at, a.chain, a.seq, a.previous,
           CASE a.event WHEN 'chain_opened' THEN a.hash ELSE sha256(
               a.hash || hashed(refreshed.sub) || hashed(refreshed.sid) || hashed(a.source) || hashed(a.request_id)) END,
           a.event, a.client_id, CASE WHEN a.event <> 'chain_opened' THEN refreshed.sub END,
           CASE WHEN a.event <> 'chain_opened' THEN refreshed.sid END, a.source, a.request_id, a.detail
    FROM refreshed, standing, unnest($13::audit_events[]) AS a
    WHERE standing.told IS NOT TRUE AND (refreshed.revoked OR (standing.stands AND refreshed.now_at >= $4::int4))
      AND a.event IN ('chain_opened', CASE WHEN refreshed.revoked THEN 'refresh_token_replayed'
                                           WHEN refreshed.own THEN 'refreshed' ELSE 'refresh_repeated' END)
    RETURNING hash
)
SELECT refreshed.now_at, refreshed.own, refreshed.revoked, array(SELECT hash FROM audited) AS audited, standing.*
FROM refreshed, standing";

/// Refreshes: of all that present one generation, at once or within the window, each gets the same
/// next one. When the connection breaks before the answer, the same attempt is made once more. The
/// event is the statement's own, and so are its client, user and session. `within` is what a grant
/// that was not read and judged before must be within, else nothing happens. With the grant as it
/// was; `None` where there is none, or none within.
pub fn refresh(
    store: &Store,
    new: &NewRefresh<'_>,
    within: Option<&Within<'_>>,
    audit: &AuditEvent<'_>,
) -> Result<Option<(Grant, Refreshed)>, StoreError> {
    let (grant, presented) = (new.handle.grant, new.handle.generation);
    let detail = with_grant(&audit.detail, grant);
    let own = AuditEvent {
        client_id: Some(new.client_id),
        detail,
        ..audit.clone()
    };
    let events =
        ["refreshed", "refresh_repeated", "refresh_token_replayed"].map(|event| AuditEvent {
            event,
            ..own.clone()
        });
    let reuse = new.usage == RefreshTokenUsage::Reuse;
    let window = i64::try_from(new.retry_window.as_secs()).unwrap_or(i64::MAX);
    let (scopes, tenants) = within
        .map(|within| (&within.scopes, &within.tenants))
        .unzip();
    let (expires_after, used_after) = within
        .map(|within| (within.expires_after, within.used_after))
        .unzip();
    let acrs = within.and_then(|within| within.acrs.as_ref());
    let token: Values<'_> = &[
        &grant.day,
        &&grant.random[..],
        new.client_id,
        &presented,
        &&new.attempt[..],
    ];
    let values = &[
        token,
        &[
            &reuse,
            &window,
            &scopes,
            &tenants,
            &expires_after,
            &used_after,
            &acrs,
        ],
    ]
    .concat();
    let together = Together::AlternativesOfUser;
    let rows = store
        .write_once_more(|connection| connection.audited(REFRESH, values, &events, together))?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let (generation, own): (i32, bool) = (column(row, "now_at")?, column(row, "own")?);
    // Neither ours nor one ahead: the row has not come as far as what was presented.
    let stands =
        column::<Option<bool>>(row, "stands")? == Some(true) && (own || generation > presented);
    let refreshed = match column(row, "revoked")? {
        true => Refreshed::Revoked,
        false if stands => Refreshed::Issued {
            generation,
            user: Box::new(user(row)?),
        },
        false => Refreshed::NoLongerStands,
    };
    Ok(Some((self::grant(row)?, refreshed)))
}
