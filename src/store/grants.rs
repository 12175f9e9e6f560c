//! `grants`: one row per authorization that was used, with a code or without. The row proves that a
//! code was used: the request that inserts it has used the code up, and another request that finds
//! it is a replay.

use std::time::Duration;

use postgres::Row;
use postgres::types::Json;

use super::Store;
use super::audit_chain::Alternatives;
use super::audit_event::AuditEvent;
use super::error::{Result, StoreError};
use super::seen_partitions::under;
use super::statement::bind;
use super::users::person;
use super::values::{column, epochs, id, key_bytes, key_thumbprint, read, sign_in, tenant_text};
use gatepost_protocol::token::claims::ClaimNames;
use gatepost_protocol::token::grant::Grant;
use gatepost_protocol::token::refresh_token::{RefreshHandle, Within};
use gatepost_protocol::words::identifiers::{ClientId, GrantId, KeyThumbprint, Sid, Subject};
use gatepost_protocol::words::instant::Day;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::session::User;

#[derive(Debug, PartialEq)]
#[must_use]
pub enum CodeRedemption {
    /// The first use of the code; everything stands. The user is as current as the decision.
    Issued(Box<User>),
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
/// start. So the code is spent in every case, and the insert has one source row whatever the joins
/// find, so that the conflict branch is always reached. `DO UPDATE` waits for a redemption that
/// runs at the same time, then revokes what that one made. Where nothing is left to revoke it
/// changes nothing and writes no event. The statement's own `attempt` on the row means that our
/// answer was lost, not that somebody else redeemed the code; then the event was written before.
const REDEEM: &str = "
WITH standing AS (
    SELECT {code stands} AS stands, {person} FROM {grounds of code}
), redeemed AS (
    {enter grant},
           CASE WHEN :burn::bool OR standing.stands IS NOT TRUE THEN statement_timestamp() END
    FROM standing
    ON CONFLICT (day, id) DO UPDATE
    SET revoked_at = CASE WHEN g.attempt = excluded.attempt THEN g.revoked_at
                          ELSE clock_timestamp() END
    WHERE g.attempt = excluded.attempt OR g.revoked_at IS NULL
    RETURNING attempt = :attempt::bytea AS own, revoked_at IS NULL AS issued
), audited AS (
    INSERT INTO {audit_events}
    SELECT {event} FROM (
        SELECT CASE WHEN redeemed.issued THEN 1 WHEN redeemed.own THEN 2 ELSE 3 END AS n
        FROM redeemed
        WHERE NOT EXISTS (SELECT FROM {grants} g WHERE g.day = :day::int4 AND g.id = :id::bytea
                            AND g.attempt = :attempt::bytea)) AS a
    RETURNING hash
)
SELECT redeemed.own, redeemed.issued, (SELECT hash FROM audited) AS audited, standing.*
FROM standing LEFT JOIN redeemed ON true";

/// The usual case and nothing else: a code that was never used, and all of it stands. No row means
/// only that it was not that; two that come at once fail at the constraint, but for one.
const REDEEM_FIRST: &str = "
WITH standing AS (
    SELECT {person} FROM {grounds of code}
    WHERE {code stands} AND NOT :burn::bool
      AND NOT EXISTS (SELECT FROM {grants} g WHERE g.day = :day::int4 AND g.id = :id::bytea)
), redeemed AS (
    {enter grant}, NULL FROM standing
), audited AS (
    INSERT INTO {audit_events} SELECT {event} FROM (SELECT 1 AS n FROM standing) AS a
)
SELECT true AS own, true AS issued, (:event_hashes::bytea[])[1] AS audited,
       true AS stands, standing.*
FROM standing";

/// Redeems a code. At most one caller ever gets `Issued` for one grant id. When the connection
/// breaks before the answer, the same attempt is made once more. The event gets the client, the
/// user and the session of the grant. The statement chooses its name: `code_redeemed`,
/// `code_refused` or `code_replayed`. A grant without a code brings the name of its event, and is
/// `grant_refused` where that cannot be.
pub fn redeem(
    store: &Store,
    new: &Grant,
    attempt: [u8; 16],
    audit: &AuditEvent<'_>,
) -> Result<CodeRedemption> {
    let row = enter(store, new, attempt, false, audit)?;
    let stands = column::<Option<bool>>(&row, "stands")? == Some(true);
    match (
        column(&row, "own")?,
        column::<Option<bool>>(&row, "issued")? == Some(true),
    ) {
        (Some(true), true) => Ok(CodeRedemption::Issued(Box::new(person(&row)?))),
        // Ours, and revoked although everything stands: another request replayed the code between
        // our lost answer and the retry.
        (Some(true), false) if stands => Ok(CodeRedemption::Replayed),
        (Some(true), false) => Ok(CodeRedemption::NoLongerStands),
        (Some(false), _) => Ok(CodeRedemption::Replayed),
        (None, _) => Ok(CodeRedemption::ReplayedAgain),
    }
}

/// Enters a grant that has no code, under an id that was drawn just now. `None` when its user,
/// client or consent does not stand: then nothing may be issued, and the event is `grant_refused`.
pub fn begin(
    store: &Store,
    new: &Grant,
    attempt: [u8; 16],
    audit: &AuditEvent<'_>,
) -> Result<Option<Box<User>>> {
    Ok(match redeem(store, new, attempt, audit)? {
        CodeRedemption::Issued(user) => Some(user),
        CodeRedemption::Replayed
        | CodeRedemption::ReplayedAgain
        | CodeRedemption::NoLongerStands => None,
    })
}

/// Spends a code and issues nothing: its own client failed to prove that it may use it, or may no
/// longer have what was granted. What an earlier redemption gave is revoked. The statement is one
/// of [`redeem`]'s, so of two requests at once one waits for the other. `false` when nothing was
/// left to spend or to revoke; then no event is written.
pub fn burn(store: &Store, new: &Grant, attempt: [u8; 16], audit: &AuditEvent<'_>) -> Result<bool> {
    Ok(column::<Option<bool>>(&enter(store, new, attempt, true, audit)?, "own")?.is_some())
}

fn enter(
    store: &Store,
    new: &Grant,
    attempt: [u8; 16],
    burn: bool,
    audit: &AuditEvent<'_>,
) -> Result<Row> {
    let names = if audit.event.is_empty() {
        ["code_redeemed", "code_refused", "code_replayed"]
    } else {
        [audit.event, "grant_refused", "grant_refused"]
    };
    let user = &new.user;
    let sid = user.sid.as_ref().filter(|sid| sid.day().is_some());
    let own = AuditEvent {
        client_id: Some(&new.client_id),
        sub: Some(&user.subject),
        sid,
        ..audit.about_grant(new.id)
    };
    let events = Alternatives {
        event: &own,
        names: &names,
        finds_user: false,
    };
    let mut bound = bind!(
        REDEEM_FIRST,
        ..new {
            client_id,
            resources,
            issued_at,
            expires_at
        },
        ..user {
            auth_time,
            amr,
            acr,
            identity_provider
        },
        day = new.id.day,
        id = &new.id.random[..],
        attempt = &attempt[..],
        sub = user.subject,
        scopes = new.scope,
        session_day = sid.and_then(Sid::day),
        sid,
        tenant = tenant_text(user.tenant.as_ref()),
        offline = new.is_offline(),
        claims = Json(&new.claims),
        token_claims = Json(&new.token_claims),
        installation_epoch = new.epochs.installation,
        client_epoch = new.epochs.client,
        user_epoch = new.epochs.user,
        consent_epoch = new.epochs.consent,
        confirmation = key_bytes(&new.confirmation),
        burn
    );
    bound.days = [
        under("sessions", sid.and_then(Sid::day)),
        under("grants", Some(new.id.day)),
        None,
    ];
    let mut rows = match store.write_once_more(bound, &events) {
        Err(StoreError::Taken(_)) => Vec::new(),
        rows => rows?,
    };
    if rows.is_empty() {
        bound.sql = REDEEM;
        rows = store.write_once_more(bound, &events)?;
    }
    rows.into_iter()
        .next()
        .ok_or_else(StoreError::no_installation)
}

const REVOKE: &str = "
WITH revoked AS (
    UPDATE grants SET revoked_at = clock_timestamp()
    WHERE day = :day::int4 AND id = :id::bytea
      AND (:client_id::text IS NULL OR client_id = :client_id::text) AND revoked_at IS NULL
    RETURNING id
), {audited revoked}, EXISTS (SELECT FROM revoked) AS ended
FROM grants
WHERE day = :day::int4 AND id = :id::bytea
  AND (:client_id::text IS NULL OR client_id = :client_id::text)";

/// Revokes a grant: of this client, or of any. `true` when there was a live one. The event names
/// its user and client.
pub fn revoke(
    store: &Store,
    id: GrantId,
    client_id: Option<&ClientId>,
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    let bound = bind!(REVOKE, day = id.day, id = &id.random[..], client_id);
    store.end(
        Some(id.to_text().as_bytes()),
        bound,
        &[audit.about_grant(id)],
    )
}

const FIND: &str = "
SELECT {grant} FROM grants g
WHERE g.day = :day::int4 AND g.id = :id::bytea
  AND (:client_id::text IS NULL OR g.client_id = :client_id::text)";

/// Reads a grant of this client, or of any. A grant of another client counts as absent.
pub fn find(store: &Store, id: GrantId, client_id: Option<&ClientId>) -> Result<Option<Grant>> {
    store.find(
        bind!(FIND, day = id.day, id = &id.random[..], client_id),
        grant,
    )
}

const LIST_OFFLINE_OF_USER: &str = "
SELECT {grant} FROM grants g
JOIN installation i ON i.epoch = g.installation_epoch
JOIN users u ON u.sub = g.sub AND u.epoch = g.user_epoch
JOIN clients c ON c.client_id = g.client_id AND c.epoch = g.client_epoch
LEFT JOIN consents k ON k.sub = g.sub AND k.client_id = g.client_id
WHERE g.offline AND g.sub = :sub::text
  AND g.revoked_at IS NULL AND g.expires_at > clock_timestamp()
  AND coalesce(k.epoch, 0) = g.consent_epoch
ORDER BY g.issued_at DESC LIMIT :limit::int8";

/// Live grants of one user that outlive their sessions, the latest first, at most `limit`. The core
/// judges whether they were unused for too long.
pub fn list_offline_of_user(store: &Store, sub: &Subject, limit: i64) -> Result<Vec<Grant>> {
    store.list(bind!(LIST_OFFLINE_OF_USER, sub, limit), grant)
}

// The user is looked up for each grant, and `consent_epoch` compared without a function: Postgres
// else expects that hardly any grant is left, and reads all of them to find a hundred.
const LIST: &str = "
SELECT {grant}, u.username FROM grants g
JOIN installation i ON i.epoch = g.installation_epoch
JOIN LATERAL (
    SELECT username FROM users
    WHERE sub = g.sub AND enabled AND {in time} AND epoch = g.user_epoch LIMIT 1
) u ON true
JOIN clients c ON c.client_id = g.client_id AND c.enabled AND c.epoch = g.client_epoch
LEFT JOIN sessions s ON s.day = g.session_day AND s.sid = g.sid
LEFT JOIN consents k ON k.sub = g.sub AND k.client_id = g.client_id
WHERE (g.day, g.id) > (:after_day::int4, :after_id::bytea)
  AND (:sub::text IS NULL OR g.sub = :sub::text)
  AND (:client_id::text IS NULL OR g.client_id = :client_id::text)
  AND g.revoked_at IS NULL AND g.expires_at > clock_timestamp()
  AND (g.offline OR g.sid IS NULL OR (s.sid IS NOT NULL AND s.ended_at IS NULL))
  AND (k.epoch = g.consent_epoch OR k.epoch IS NULL AND g.consent_epoch = 0)
ORDER BY g.day, g.id LIMIT :limit::int8";

/// Grants that live, with the names of their users, by id, at most `limit` behind `after`; of one
/// user, of one client, or all.
pub fn list(
    store: &Store,
    after: Option<GrantId>,
    sub: Option<&Subject>,
    client_id: Option<&ClientId>,
    limit: i64,
) -> Result<Vec<(Grant, Option<String>)>> {
    let after = after.unwrap_or(GrantId {
        day: Day(i32::MIN),
        random: [0; 16],
    });
    let bound = bind!(
        LIST,
        after_day = after.day,
        after_id = &after.random[..],
        sub,
        client_id,
        limit
    );
    store.list(bound, |row| Ok((grant(row)?, column(row, "username")?)))
}

fn grant(row: &Row) -> Result<Grant> {
    let id = GrantId {
        day: column(row, "day")?,
        random: id(row, "id")?,
    };
    let grant = live_grant(row, id, &column(row, "client_id")?)?;
    Ok(Grant {
        revoked_at: column(row, "revoked_at")?,
        ..grant
    })
}

/// One that was found alive by its name: the row has the columns `{granted}` and `sub`.
fn live_grant(row: &Row, id: GrantId, client_id: &ClientId) -> Result<Grant> {
    read!(row, Grant {
        resources, generation, issued_at, last_used_at, expires_at;
        id,
        client_id: client_id.clone(),
        revoked_at: None,
        user: sign_in(row, "grant_tenant")?,
        scope: column(row, "scopes")?,
        claims: column::<Json<ClaimNames>>(row, "grant_claims")?.0,
        token_claims: column::<Json<JsonObject>>(row, "token_claims")?.0,
        epochs: epochs(row)?,
        confirmation: key_thumbprint(row, "confirmation")?,
    })
}

// Refresh: `MOVE_ON` does the usual case and nothing else. What it finds no row for goes through
// `REFRESH`, which moves a grant to its next generation, or gives the same successor again, or
// finds a replay and revokes the grant. Requests that come at once wait for each other at the row.
// Each is judged by the row as the one before left it.

pub struct NewRefresh<'a> {
    pub handle: RefreshHandle,
    pub client_id: &'a ClientId,
    /// 16 random bytes of this request: tells its own commit from another's.
    pub attempt: [u8; 16],
    /// The client's tokens stay: `refresh_token_usage` is `reuse`.
    pub reuse: bool,
    /// For how long after a move its predecessor still gets the same successor.
    pub retry_window: Duration,
    /// The key that a grant of no key is bound to from now on (RFC 9449 §5).
    pub bind_to: Option<KeyThumbprint>,
}

impl<'a> NewRefresh<'a> {
    /// What is told of it.
    fn event(&self, audit: &AuditEvent<'a>) -> AuditEvent<'a> {
        AuditEvent {
            client_id: Some(self.client_id),
            ..audit.about_grant(self.handle.grant)
        }
    }
}

#[derive(Debug, PartialEq)]
#[must_use]
pub enum Refreshed {
    /// Everything stands; the user is as current as the decision.
    Issued {
        /// The generation of the refresh token to hand out.
        generation: i32,
        user: Box<User>,
    },
    /// An old token came again, or the grant was revoked meanwhile: the grant is dead.
    Revoked,
    /// User, client or consent no longer stand, or the database was restored to before this token
    /// was issued. The row is as it was.
    NoLongerStands,
}

/// The token of the row's own generation, with everything that it stands on. No row means only that
/// it was not that: another token, a grant that is not `Within`, something that no longer stands,
/// or our own move, whose answer was lost.
const MOVE_ON: &str = "
WITH moved AS (
    {move on} AND g.offline
    RETURNING {moved}
), {tell of moved}";

/// The same of a client with `refresh_token_without_offline_access`. A statement of its own: others
/// need not open the partitions of sessions.
const MOVE_ON_IN_SESSION: &str = "
WITH moved AS (
    {move on} AND {session goes on}
    RETURNING {moved}
), {tell of moved}";

/// Moves a grant on that was not read before, where it is as `within` says and everything stands.
/// Answers the grant with the generation that was presented. `None` where it is anything else: then
/// nothing happened, and [`refresh`] is to find out what it is.
pub fn move_on(
    store: &Store,
    new: &NewRefresh<'_>,
    within: &Within<'_>,
    audit: &AuditEvent<'_>,
) -> Result<Option<(Grant, Refreshed)>> {
    let id = new.handle.grant;
    let presented = new.handle.generation;
    let mut bound = bind!(
        MOVE_ON,
        ..within {
            scopes,
            tenants,
            expires_after,
            used_after,
            acrs
        },
        ..id { day },
        ..new { client_id, reuse },
        id = &id.random[..],
        presented,
        attempt = &new.attempt[..],
        confirmation = key_bytes(&within.confirmation),
        bind_to = key_bytes(&new.bind_to),
    );
    if within.in_session {
        bound.sql = MOVE_ON_IN_SESSION;
    }
    bound.days = [under("grants", Some(id.day)), None, None];
    let events = Alternatives {
        event: &new.event(audit),
        names: &["refreshed"],
        finds_user: true,
    };
    let rows = store.write_once_more(bound, &events)?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let mut grant = live_grant(row, id, new.client_id)?;
    let refreshed = Refreshed::Issued {
        generation: grant.generation,
        user: Box::new(person(row)?),
    };
    grant.generation = presented;
    Ok(Some((grant, refreshed)))
}

/// `standing` is what the grant stands on, as it was when the statement began. The row itself may
/// be held by another request; the update then waits, and judges what that one left. So a
/// revocation that comes in between is not seen here, and every use of the new tokens asks again.
///
/// The statement's own `attempt` on the row means that our answer was lost, not that somebody else
/// refreshed. What becomes of a grant that is not revoked, by the generation that was presented:
///
/// - The current one, and the grant stands: the row moves one generation on, and keeps this attempt
///   and the key that is bound now. `Issued`; the event is `refreshed`.
/// - The one before, by the same attempt: the row stays. `Issued`, without an event.
/// - The one before, within `:window` of `moved_at`: the row stays. `Issued`; the event is
///   `refresh_repeated`.
/// - The one before, later than that; or an older one: the row is revoked. `Revoked`; the event is
///   `refresh_token_replayed`.
/// - A later one, so the database was restored: the row stays. `NoLongerStands`, without an event.
///
/// Where the grant does not stand, it is `NoLongerStands` instead of `Issued`, without an event.
/// A client whose tokens stay (`:reuse`) moves no generation. Its use clears `moved_at`, and so
/// ends the time in which the predecessor of the present token may be repeated.
const REFRESH: &str = "
WITH standing AS (
    SELECT {stands} AND {session goes on} AS stands,
           g.attempt = :attempt::bytea AS told, {person}
    FROM grants g {grounds}
    WHERE g.day = :day::int4 AND g.id = :id::bytea AND g.client_id = :client_id::text
), refreshed AS (
    UPDATE grants g
    SET generation = CASE WHEN {is current} AND NOT :reuse::bool THEN g.generation + 1
                          ELSE g.generation END,
        moved_at = CASE WHEN {is current}
                        THEN CASE WHEN NOT :reuse::bool THEN clock_timestamp() END
                        ELSE g.moved_at END,
        used_at = CASE WHEN {is current}
                       THEN CASE WHEN :reuse::bool THEN clock_timestamp() END
                       ELSE g.used_at END,
        attempt = CASE WHEN {is current} THEN :attempt::bytea ELSE g.attempt END,
        confirmation = CASE WHEN {is current} THEN coalesce(g.confirmation, :bind_to::bytea)
                            ELSE g.confirmation END,
        revoked_at = CASE WHEN g.revoked_at IS NOT NULL THEN g.revoked_at
                          WHEN g.generation <= :presented::int4 THEN NULL
                          WHEN g.generation - 1 = :presented::int4
                               AND (g.attempt = :attempt::bytea
                                    OR g.moved_at > clock_timestamp()
                                                    - :window::int8 * interval '1 second')
                          THEN NULL
                          ELSE clock_timestamp() END
    FROM standing
    WHERE g.day = :day::int4 AND g.id = :id::bytea AND g.client_id = :client_id::text
    RETURNING g.generation AS now_at, g.attempt = :attempt::bytea AS own,
              g.revoked_at IS NOT NULL AS revoked, g.sub, g.sid
), audited AS (
    INSERT INTO {audit_events}
    SELECT {event of its user} FROM (
        SELECT CASE WHEN refreshed.revoked THEN 3 WHEN refreshed.own THEN 1 ELSE 2 END AS n,
               refreshed.sub, refreshed.sid
        FROM refreshed, standing
        WHERE standing.told IS NOT TRUE
          AND (refreshed.revoked
               OR (standing.stands AND refreshed.now_at >= :presented::int4))) AS a
    RETURNING hash
)
SELECT now_at, own, revoked, (SELECT hash FROM audited) AS audited, standing.*
FROM refreshed, standing";

/// Refreshes a grant that was read and judged. All requests that present one generation, at once or
/// within the window, get the same next one. When the connection breaks before the answer, the same
/// attempt is made once more. The statement chooses the event, and gives it the client, the user
/// and the session of the grant. `None` where there is no such grant any more.
pub fn refresh(
    store: &Store,
    new: &NewRefresh<'_>,
    audit: &AuditEvent<'_>,
) -> Result<Option<Refreshed>> {
    let id = new.handle.grant;
    let presented = new.handle.generation;
    let bound = bind!(
        REFRESH,
        ..id { day },
        ..new { client_id, reuse },
        id = &id.random[..],
        presented,
        attempt = &new.attempt[..],
        window = i64::try_from(new.retry_window.as_secs()).unwrap_or(i64::MAX),
        bind_to = key_bytes(&new.bind_to),
    );
    let events = Alternatives {
        event: &new.event(audit),
        names: &["refreshed", "refresh_repeated", "refresh_token_replayed"],
        finds_user: true,
    };
    let rows = store.write_once_more(bound, &events)?;
    rows.first()
        .map(|row| refreshed(row, presented))
        .transpose()
}

fn refreshed(row: &Row, presented: i32) -> Result<Refreshed> {
    let generation: i32 = column(row, "now_at")?;
    let own: bool = column(row, "own")?;
    // The database was restored to before this token was issued.
    let is_behind = !own && generation <= presented;
    let stands = column::<Option<bool>>(row, "stands")? == Some(true) && !is_behind;
    Ok(if column(row, "revoked")? {
        Refreshed::Revoked
    } else if stands {
        Refreshed::Issued {
            generation,
            user: Box::new(person(row)?),
        }
    } else {
        Refreshed::NoLongerStands
    })
}
