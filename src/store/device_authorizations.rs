//! `device_authorizations`: devices that wait for their users, from the request to its expiry. Both
//! codes are known here by keyed hashes alone, made by the caller under every line of the master
//! secret.

use std::time::Duration;

use postgres::Row;

use super::Store;
use super::audit_chain::Alternatives;
use super::audit_event::AuditEvent;
use super::statement::bind;
use super::users::person;
use super::values::{column, epochs, key_bytes, read, sign_in, tenant_text};
use crate::Result;
use gatepost_protocol::device::device_code::{DeviceDecision, PollFacts};
use gatepost_protocol::token::grant::Grant;
use gatepost_protocol::words::epochs::{Epochs, SessionEpochs};
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_protocol::words::session::{SignIn, User};

#[derive(Clone)]
pub struct NewDevice<'a> {
    pub device_code_hash: [u8; 32],
    pub user_code_hash: [u8; 32],
    pub client_id: &'a ClientId,
    pub scopes: &'a ScopeSet,
    /// RFC 8707
    pub resources: &'a [String],
    pub acr_values: Option<&'a str>,
    pub interval: Duration,
    pub lifetime: Duration,
    /// Undecided ones that the client may have at once.
    pub most_pending: u32,
}

#[must_use]
#[derive(Debug, PartialEq)]
pub enum Entered {
    Waiting,
    /// Somebody else's device has that user code: draw another.
    CodeTaken,
    TooManyPending,
}

const INSERT: &str = "
WITH pending AS (
    SELECT count(*) AS devices FROM (
        SELECT FROM device_authorizations
        WHERE client_id = :client_id::text AND decided_at IS NULL
          AND expires_at > clock_timestamp()
        LIMIT :most::int8) AS waiting
), entered AS (
    INSERT INTO device_authorizations (device_code_hash, user_code_hash, client_id, scopes,
                                       resources, acr_values, poll_interval, expires_at)
    SELECT :device_code_hash::bytea, :user_code_hash::bytea, :client_id::text, :scopes::text[],
           :resources::text[], :acr_values::text, :interval::int4,
           clock_timestamp() + :lifetime::int4 * interval '1 second'
    FROM pending WHERE pending.devices < :most::int8
    ON CONFLICT DO NOTHING
    RETURNING client_id
)
SELECT pending.devices < :most::int8 AS has_room, entered.client_id IS NOT NULL AS entered
FROM pending LEFT JOIN entered ON true";

/// Enters a device.
pub fn insert(store: &Store, new: &NewDevice<'_>) -> Result<Entered> {
    let seconds = |duration: Duration| i32::try_from(duration.as_secs()).unwrap_or(i32::MAX);
    let bound = bind!(
        INSERT,
        ..new {
            client_id,
            scopes,
            resources,
            acr_values
        },
        device_code_hash = &new.device_code_hash[..],
        user_code_hash = &new.user_code_hash[..],
        interval = seconds(new.interval),
        lifetime = seconds(new.lifetime),
        most = i64::from(new.most_pending)
    );
    let row = store.write(|connection| connection.query_one(bound))?;
    if column(&row, "entered")? {
        return Ok(Entered::Waiting);
    }
    if column(&row, "has_room")? {
        return Ok(Entered::CodeTaken);
    }
    Ok(Entered::TooManyPending)
}

pub struct WaitingDevice {
    pub client_id: ClientId,
    pub scope: ScopeSet,
    pub acr_values: Option<String>,
}

const FIND_WAITING: &str = "
SELECT client_id, scopes, acr_values FROM device_authorizations
WHERE user_code_hash = ANY(:user_code_hashes::bytea[])
  AND decided_at IS NULL AND expires_at > clock_timestamp()";

/// Finds the device behind a user code, while it waits.
pub fn find_waiting(store: &Store, user_code_hashes: &[[u8; 32]]) -> Result<Option<WaitingDevice>> {
    store.find(
        bind!(FIND_WAITING, user_code_hashes = slices(user_code_hashes)),
        |row| read!(row, WaitingDevice { client_id, acr_values; scope: column(row, "scopes")? }),
    )
}

pub struct NewDecision<'a> {
    pub decision: DeviceDecision,
    pub user: &'a SignIn,
    /// What they granted; nothing when they denied.
    pub scopes: &'a ScopeSet,
    pub session_epochs: SessionEpochs,
    pub client_epoch: i64,
    /// Whether the client needs a consent, so that what stood on one that has lapsed is over.
    pub ends_lapsed_consent: bool,
}

const DECIDE: &str = "
WITH lapsed AS (
    UPDATE consents k SET scopes = '{}', claims = '{}', expires_at = NULL, epoch = new_epoch()
    FROM device_authorizations d
    WHERE d.user_code_hash = ANY(:user_code_hashes::bytea[]) AND d.decided_at IS NULL
      AND d.expires_at > clock_timestamp() AND :ends_lapsed_consent::bool
      AND k.sub = :sub::text AND k.client_id = d.client_id AND k.expires_at <= clock_timestamp()
    RETURNING k.epoch
), decided AS (
    UPDATE device_authorizations d
    SET decided_at = clock_timestamp(), allowed = :allowed::bool, sub = :sub::text,
        granted_scopes = :scopes::text[], tenant = :tenant::text,
        identity_provider = :identity_provider::text, auth_time = :auth_time::timestamptz,
        amr = :amr::text[], acr = :acr::text, installation_epoch = :installation_epoch::int8,
        client_epoch = :client_epoch::int8, user_epoch = :user_epoch::int8,
        consent_epoch = coalesce((SELECT epoch FROM lapsed),
                                 (SELECT k.epoch FROM consents k
                                  WHERE k.sub = :sub::text AND k.client_id = d.client_id), 0)
    WHERE user_code_hash = ANY(:user_code_hashes::bytea[])
      AND decided_at IS NULL AND expires_at > clock_timestamp()
    RETURNING client_id
), {audited decided} FROM decided";

/// Decides, once: `false` when it was decided before, has expired, or never was.
pub fn decide(
    store: &Store,
    user_code_hashes: &[[u8; 32]],
    new: &NewDecision<'_>,
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    let user = new.user;
    let bound = bind!(
        DECIDE,
        ..new {
            scopes,
            client_epoch,
            ends_lapsed_consent
        },
        ..user {
            identity_provider,
            auth_time,
            amr,
            acr
        },
        user_code_hashes = slices(user_code_hashes),
        allowed = new.decision == DeviceDecision::Allowed,
        sub = user.subject,
        tenant = tenant_text(user.tenant.as_ref()),
        installation_epoch = new.session_epochs.installation,
        user_epoch = new.session_epochs.user
    );
    store.change(bound, audit)
}

pub struct PolledDevice {
    pub facts: PollFacts,
    /// What its user granted, once they did.
    pub granted: Option<GrantedDevice>,
}

pub struct GrantedDevice {
    pub user: SignIn,
    pub scope: ScopeSet,
    pub resources: Vec<String>,
    pub epochs: Epochs,
}

/// The one statement of a poll: the row it leaves says whether it came too early, and until when
/// the next one will.
const POLL: &str = "
UPDATE device_authorizations
SET polled_at = clock_timestamp(),
    polled_early = (decided_at IS NULL
        AND polled_at > clock_timestamp() - poll_interval * interval '1 second') IS TRUE,
    poll_interval = CASE WHEN decided_at IS NULL
                           AND polled_at > clock_timestamp() - poll_interval * interval '1 second'
                         THEN least(poll_interval + 5, 86400) ELSE poll_interval END
WHERE device_code_hash = ANY(:device_code_hashes::bytea[]) AND client_id = :client_id::text
RETURNING redeemed_by IS NOT NULL AS redeemed, expires_at <= clock_timestamp() AS expired,
          allowed, polled_early, sub, NULL::text AS sid, granted_scopes, resources, tenant,
          identity_provider, auth_time, amr, acr,
          installation_epoch, client_epoch, user_epoch, consent_epoch";

/// Polls as this client; somebody else's device counts as absent.
pub fn poll(
    store: &Store,
    device_code_hashes: &[[u8; 32]],
    client_id: &ClientId,
) -> Result<Option<PolledDevice>> {
    let device_code_hashes = slices(device_code_hashes);
    let bound = bind!(POLL, device_code_hashes, client_id);
    let rows = store.write_rows(bound)?;
    rows.first().map(polled).transpose()
}

fn polled(row: &Row) -> Result<PolledDevice> {
    let decision = match column(row, "allowed")? {
        Some(true) => Some(DeviceDecision::Allowed),
        Some(false) => Some(DeviceDecision::Denied),
        None => None,
    };
    let granted = match decision {
        Some(DeviceDecision::Allowed) => Some(GrantedDevice {
            user: sign_in(row, "tenant")?,
            scope: column(row, "granted_scopes")?,
            resources: column(row, "resources")?,
            epochs: epochs(row)?,
        }),
        Some(DeviceDecision::Denied) | None => None,
    };
    let facts = PollFacts {
        redeemed: column(row, "redeemed")?,
        expired: column(row, "expired")?,
        decision,
        early: column(row, "polled_early")?,
    };
    Ok(PolledDevice { facts, granted })
}

/// Of all that redeem at once one finds the row unspent; the others wait for it and then find it
/// spent. The statement's own `attempt` means that our answer was lost. Where user, client or
/// consent do not stand the grant is revoked from the start.
const REDEEM: &str = "
WITH standing AS (
    SELECT g.device_code_hash, {stands} AS stands, g.redeemed_by = :attempt::bytea AS told, {person}
    FROM (SELECT d.*, d.decided_at AS issued_at FROM device_authorizations d) g {grounds}
    WHERE g.device_code_hash = ANY(:device_code_hashes::bytea[]) AND g.client_id = :client_id::text
), spent AS (
    UPDATE device_authorizations d SET redeemed_by = :attempt::bytea
    FROM standing
    WHERE d.device_code_hash = standing.device_code_hash AND d.allowed
      AND (d.redeemed_by IS NULL OR d.redeemed_by = :attempt::bytea)
    RETURNING d.*, standing.stands
), redeemed AS (
    INSERT INTO grants (day, id, attempt, client_id, sub, scopes, resources, tenant,
                        auth_time, amr, acr, issued_at, expires_at,
                        offline, claims, identity_provider,
                        installation_epoch, client_epoch, user_epoch, consent_epoch,
                        confirmation, revoked_at)
    SELECT :day::int4, :id::bytea, :attempt::bytea, spent.client_id, spent.sub,
           spent.granted_scopes, spent.resources, spent.tenant,
           spent.auth_time, spent.amr, spent.acr, spent.decided_at, :expires_at::timestamptz,
           :offline::bool, '{}'::jsonb, spent.identity_provider,
           spent.installation_epoch, spent.client_epoch, spent.user_epoch, spent.consent_epoch,
           :confirmation::bytea, CASE WHEN spent.stands IS NOT TRUE THEN clock_timestamp() END
    FROM spent
    ON CONFLICT (day, id) DO UPDATE SET attempt = grants.attempt
    RETURNING revoked_at IS NULL AS issued
), audited AS (
    INSERT INTO audit_events
    SELECT {event} FROM (
        SELECT CASE WHEN redeemed.issued THEN 1 ELSE 2 END AS n FROM redeemed, standing
        WHERE standing.told IS NOT TRUE) AS a
    RETURNING hash
)
SELECT redeemed.issued, (SELECT hash FROM audited) AS audited, standing.*
FROM redeemed, standing";

#[must_use]
pub enum DeviceRedemption {
    /// The first and only one; everything stands. The user is as current as the decision.
    Issued(Box<User>),
    Spent,
    /// The first, but user, client or consent no longer stand: spent, and nothing may be issued.
    NoLongerStands,
}

/// Redeems what a user granted: at most one caller ever gets `Issued`. When the connection breaks
/// before the answer, the same attempt is made once more. The event's name is the statement's own.
pub fn redeem(
    store: &Store,
    device_code_hashes: &[[u8; 32]],
    new: &Grant,
    attempt: [u8; 16],
    audit: &AuditEvent<'_>,
) -> Result<DeviceRedemption> {
    let own = audit.about_grant(new.id);
    let events = Alternatives {
        event: &own,
        names: &["device_code_redeemed", "grant_refused"],
        finds_user: false,
    };
    let bound = bind!(
        REDEEM,
        ..new {
            client_id,
            expires_at
        },
        device_code_hashes = slices(device_code_hashes),
        attempt = &attempt[..],
        day = new.id.day,
        id = &new.id.random[..],
        offline = new.is_offline(),
        confirmation = key_bytes(&new.confirmation)
    );
    let rows = store.write_once_more(bound, &events)?;
    match rows.first() {
        None => Ok(DeviceRedemption::Spent),
        Some(row) if column(row, "issued")? => Ok(DeviceRedemption::Issued(Box::new(person(row)?))),
        Some(_) => Ok(DeviceRedemption::NoLongerStands),
    }
}

/// Kept for an hour beyond the end: until then a device is told that it came too late, and not that
/// it is unknown.
const CLEAN: &str = "
DELETE FROM device_authorizations WHERE device_code_hash IN (
    SELECT device_code_hash FROM device_authorizations
    WHERE expires_at <= clock_timestamp() - interval '1 hour'
    ORDER BY expires_at LIMIT 500
    FOR UPDATE SKIP LOCKED)";

/// Removes up to 500 that are long over; answers how many. Called until it answers less than 500.
pub fn clean(store: &Store) -> Result<u64> {
    store.execute(bind!(CLEAN))
}

fn slices(hashes: &[[u8; 32]]) -> Vec<&[u8]> {
    hashes.iter().map(|hash| &hash[..]).collect()
}
