//! `authenticators`: what people prove who they are with, besides their password. Each that is
//! added or removed raises the user's `factors`, and is judged by what that was when they were
//! read: so no two at once both are the first, or the last.

use postgres::Row;
use serde_json::json;

use super::Store;
use super::audit_event::AuditEvent;
use super::session_clients::call_late;
use super::session_endings::{others, with_endings};
use super::statement::bind;
use super::users::UserRow;
use super::values::{column, read, unreadable};
use crate::Result;
use gatepost_protocol::login::second_factor::FactorKind;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_protocol::words::session::Session;
use gatepost_protocol::words::strength::Strength;

#[derive(Clone)]
pub struct Authenticator {
    pub kind: FactorKind,
    /// A passkey's credential id; empty for the app that shows codes; 16 random bytes for a
    /// recovery code.
    pub id: Vec<u8>,
    pub name: Option<String>,
    /// Sealed.
    pub secret: Option<SecretBytes>,
    pub public_key: Option<Vec<u8>>,
    pub sign_count: Option<i64>,
    pub last_step: Option<i64>,
    pub backup_eligible: Option<bool>,
    /// The make of a passkey's authenticator, as its browser said.
    pub aaguid: Option<Vec<u8>>,
    pub created_at: Instant,
    pub used_at: Option<Instant>,
}

impl Authenticator {
    /// One that is to be added now.
    pub fn new(
        kind: FactorKind,
        id: Vec<u8>,
        secret: Option<Vec<u8>>,
        now: Instant,
    ) -> Authenticator {
        Authenticator {
            kind,
            id,
            name: None,
            secret: secret.map(SecretBytes::new),
            public_key: None,
            sign_count: None,
            last_step: None,
            backup_eligible: None,
            aaguid: None,
            created_at: now,
            used_at: None,
        }
    }
}

/// What these reach beside a password.
pub fn strongest(factors: &[Authenticator]) -> Strength {
    factors
        .iter()
        .map(|one| one.kind.reaches())
        .max()
        .unwrap_or(Strength::SignedIn)
}

const LIST: &str = "
SELECT a.* FROM authenticators a
WHERE a.sub = :sub::text AND (a.kind <> 'recovery_code' OR :with_codes::bool)
ORDER BY a.created_at, a.id";

/// A user's factors, the oldest first; with their recovery codes where asked for.
pub fn list(store: &Store, sub: &Subject, with_codes: bool) -> Result<Vec<Authenticator>> {
    store.list(bind!(LIST, sub, with_codes), authenticator)
}

const USE_STEP: &str = "
WITH used AS (
    UPDATE authenticators SET last_step = :step::int8, used_at = clock_timestamp()
    WHERE sub = :sub::text AND kind = 'totp' AND last_step < :step::int8 RETURNING sub
), {audited used} FROM used";

/// Takes a code of the app; `false` when that step, or a later one, was taken before.
pub fn use_step(store: &Store, sub: &Subject, step: i64, audit: &AuditEvent<'_>) -> Result<bool> {
    let event = AuditEvent {
        detail: json!({"factor": "totp"}),
        ..audit.as_event("factor_used")
    };
    store.change(bind!(USE_STEP, sub, step), &event)
}

const USE_RECOVERY_CODE: &str = "
WITH used AS (
    DELETE FROM authenticators
    WHERE sub = :sub::text AND kind = 'recovery_code' AND id = :id::bytea
    RETURNING sub
), {audited used} FROM used";

/// Takes a recovery code; `false` when it was taken before.
pub fn use_recovery_code(
    store: &Store,
    sub: &Subject,
    id: &[u8],
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    store.change(
        bind!(USE_RECOVERY_CODE, sub, id),
        &audit.as_event("recovery_code_used"),
    )
}

/// New recovery codes replace the old ones, and an app replaces the one there was. A passkey
/// replaces nothing: one that is known, to this user or to another, adds nothing (WebAuthn L3 §7.1,
/// step 26). A new password, which comes with a link from the operator, removes every earlier
/// factor; so does a passkey that replaces all, and it removes the password. With it, and with a
/// user's first factor, everything ends that was signed in without it, but for the session given.
const ADD: &str = "
WITH {own session}, changed AS (
    UPDATE users
    SET factors = factors + 1, strongest_acr = :strongest::text,
        password_hash = CASE WHEN :replaces_all::bool THEN NULL
                             ELSE coalesce(:password_hash::text, password_hash) END,
        user_handle = coalesce(user_handle, :user_handle::bytea),
        epoch = CASE WHEN :ends_all_else::bool THEN new_epoch() ELSE epoch END,
        updated_at = clock_timestamp()
    WHERE sub = :sub::text AND enabled AND {in time}
      AND epoch = :epoch::int8 AND factors = :factors::int8
      AND (:sid::text IS NULL OR EXISTS (SELECT FROM own))
      AND NOT EXISTS (SELECT FROM authenticators known
                      WHERE known.kind = 'passkey' AND known.id = ANY (:ids::bytea[]))
    RETURNING sub, epoch
), dropped AS (
    DELETE FROM authenticators a USING changed
    WHERE a.sub = changed.sub AND NOT (a.kind = 'totp' AND 'totp' = ANY (:kinds::text[]))
      AND (:password_hash::text IS NOT NULL OR :replaces_all::bool
           OR (a.kind = 'recovery_code' AND 'recovery_code' = ANY (:kinds::text[])))
), added AS (
    INSERT INTO authenticators (sub, kind, id, name, secret, public_key, sign_count, last_step,
                                backup_eligible, aaguid)
    SELECT changed.sub, n.* FROM changed, unnest(
        :kinds::text[], :ids::bytea[], :names::text[], :secrets::bytea[], :public_keys::bytea[],
        :sign_counts::int8[], :last_steps::int8[], :backups::bool[],
        :aaguids::bytea[]) AS n
    ON CONFLICT (sub, kind, id) DO UPDATE
    SET name = excluded.name, secret = excluded.secret, public_key = excluded.public_key,
        sign_count = excluded.sign_count, last_step = excluded.last_step,
        backup_eligible = excluded.backup_eligible, aaguid = excluded.aaguid,
        created_at = clock_timestamp(), used_at = NULL
), raised AS (
    UPDATE sessions s
    SET acr = :acr::text, amr = :amr::text[], user_epoch = changed.epoch,
        handle_hash = coalesce(:handle_hash::bytea, s.handle_hash)
    FROM changed WHERE s.day = :day::int4 AND s.sid = :sid::text
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM changed
    WHERE :ends_all_else::bool AND s.sub = changed.sub AND s.sid IS DISTINCT FROM :sid::text
      AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
    RETURNING s.day, s.sid
), {called}, {audited changed} FROM changed";

/// The session in which a factor is added, as it is from then on.
#[derive(Clone, Copy)]
pub struct KeptSession<'a> {
    pub session: &'a Session,
    /// Of its new handle, where it gets one.
    pub handle_hash: Option<&'a [u8; 32]>,
}

/// What is added.
pub struct NewFactors<'a> {
    pub factors: &'a [Authenticator],
    /// What all factors of the user reach then.
    pub strongest: Strength,
    /// What the user's passkeys call them, where they have none yet.
    pub user_handle: Option<&'a [u8]>,
    /// Whether they take the place of the password and of all factors.
    pub replaces_all: bool,
    /// The new password that a link sets with them.
    pub password_hash: Option<&'a SecretText>,
}

/// Adds factors to a user as they were read, in a live session or by a link. `false` when user or
/// session are no longer as they were, or where a passkey is known already.
pub fn add(
    store: &Store,
    user: &UserRow,
    new: &NewFactors<'_>,
    kept: Option<KeptSession<'_>>,
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    let ends_all_else =
        new.password_hash.is_some() || new.replaces_all || user.strongest_acr == Strength::SignedIn;
    let others = match kept {
        Some(kept) if ends_all_else => others(store, &user.sub, &kept.session.sid)?,
        _ => Vec::new(),
    };
    let events = with_endings(audit, &others);
    let session = kept.map(|kept| kept.session);
    let factors = new.factors;
    let bound = bind!(
        ADD,
        ..user {
            sub,
            epoch,
            factors
        },
        ..new {
            strongest,
            user_handle,
            replaces_all
        },
        day = session.map(|session| session.day),
        sid = session.map(|session| &session.sid),
        acr = session.map(|session| &session.acr),
        amr = session.map(|session| &session.amr),
        handle_hash = kept.and_then(|kept| kept.handle_hash).map(|hash| &hash[..]),
        password_hash = new.password_hash.map(SecretText::expose),
        ends_all_else,
        kinds = of_each(factors, |one| one.kind.as_str()),
        ids = of_each(factors, |one| &one.id),
        names = of_each(factors, |one| &one.name),
        secrets = of_each(factors, secret),
        public_keys = of_each(factors, |one| &one.public_key),
        sign_counts = of_each(factors, |one| one.sign_count),
        last_steps = of_each(factors, |one| one.last_step),
        backups = of_each(factors, |one| one.backup_eligible),
        aaguids = of_each(factors, |one| &one.aaguid)
    );
    let rows = store.write_all_audited(bound, &events)?;
    call_late(store, &others);
    Ok(!rows.is_empty())
}

/// One field of each, for an array that a statement is given.
pub fn of_each<'a, F, T>(all: &'a [F], field: fn(&'a F) -> T) -> Vec<T> {
    all.iter().map(field).collect()
}

/// The sealed secret; a passkey has none.
pub fn secret(factor: &Authenticator) -> Option<&[u8]> {
    factor.secret.as_ref().map(SecretBytes::expose)
}

/// With the last factor the recovery codes go.
const REMOVE: &str = "
WITH {own session}, changed AS (
    UPDATE users
    SET factors = factors + 1, strongest_acr = :strongest::text, epoch = new_epoch(),
        updated_at = clock_timestamp()
    WHERE sub = :sub::text AND epoch = :epoch::int8 AND factors = :factors::int8
      AND (:sid::text IS NULL OR EXISTS (SELECT FROM own))
    RETURNING sub, epoch
), removed AS (
    DELETE FROM authenticators a USING changed
    WHERE a.sub = changed.sub
      AND (:strongest::text = '1' OR (a.kind = :kind::text AND a.id = :id::bytea))
), kept AS (
    UPDATE sessions s SET user_epoch = changed.epoch
    FROM changed WHERE s.day = :day::int4 AND s.sid = :sid::text
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM changed
    WHERE s.sub = changed.sub AND s.sid IS DISTINCT FROM :sid::text
      AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
    RETURNING s.day, s.sid
), {called}, {audited changed} FROM changed";

/// What is removed.
pub struct RemovedFactors<'a> {
    /// The one; `None` for all.
    pub factor: Option<&'a Authenticator>,
    /// What those that are left reach. The recovery codes go where that is one factor.
    pub strongest: Strength,
}

/// Removes factors of a user as they were read. Every session ends but the one given. `false` when
/// user or session are no longer as they were.
pub fn remove(
    store: &Store,
    user: &UserRow,
    removed: RemovedFactors<'_>,
    session: Option<&Session>,
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    let sid = session.map(|session| &session.sid);
    let others = sid
        .map(|sid| others(store, &user.sub, sid))
        .transpose()?
        .unwrap_or_default();
    let events = with_endings(audit, &others);
    let bound = bind!(
        REMOVE,
        ..user {
            sub,
            epoch,
            factors
        },
        day = session.map(|session| session.day),
        sid,
        strongest = removed.strongest,
        kind = removed.factor.map(|one| one.kind.as_str()),
        id = removed.factor.map(|one| &one.id)
    );
    let rows = store.write_all_audited(bound, &events)?;
    call_late(store, &others);
    Ok(!rows.is_empty())
}

const FIND_PASSKEY: &str =
    "SELECT a.* FROM authenticators a WHERE a.kind = 'passkey' AND a.id = :id::bytea";

/// The user of a passkey.
pub fn find_passkey(store: &Store, id: &[u8]) -> Result<Option<(Subject, Authenticator)>> {
    store.find(bind!(FIND_PASSKEY, id), |row| {
        Ok((column(row, "sub")?, authenticator(row)?))
    })
}

const USE_PASSKEY: &str = "
WITH used AS (
    UPDATE authenticators SET sign_count = :next_sign_count::int8, used_at = clock_timestamp()
    WHERE sub = :sub::text AND kind = 'passkey' AND id = :id::bytea
      AND sign_count = :sign_count::int8
    RETURNING sub
), forgotten AS (
    DELETE FROM sign_in_failures
    WHERE bucket = ANY(:forgotten::bytea[]) AND EXISTS (SELECT FROM used)
), {audited used} FROM used";

/// Moves a passkey's counter on, and forgets the failures of those buckets of `sign_in_failures`;
/// `false` when somebody else did meanwhile.
pub fn use_passkey(
    store: &Store,
    sub: &Subject,
    row: &Authenticator,
    sign_count: i64,
    forgotten: &[[u8; 32]],
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    let event = AuditEvent {
        detail: json!({"factor": "passkey"}),
        ..audit.as_event("factor_used")
    };
    let bound = bind!(
        USE_PASSKEY,
        ..row { id, sign_count },
        sub,
        next_sign_count = sign_count,
        forgotten = of_each(forgotten, |bucket| &bucket[..])
    );
    store.change(bound, &event)
}

const USER_HANDLE: &str = "SELECT u.user_handle FROM users u WHERE u.sub = :sub::text";

/// What a user's passkeys call them, once they have had one.
pub fn user_handle(store: &Store, sub: &Subject) -> Result<Option<Vec<u8>>> {
    Ok(store
        .find(bind!(USER_HANDLE, sub), |row| column(row, "user_handle"))?
        .flatten())
}

/// The factor of a row of `authenticators`.
pub fn authenticator(row: &Row) -> Result<Authenticator> {
    let kind = FactorKind::from_name(column(row, "kind")?);
    read!(row, Authenticator {
        id, name, public_key, sign_count, last_step, backup_eligible, aaguid, created_at, used_at;
        kind: kind.ok_or_else(|| unreadable("kind"))?,
        secret: column::<Option<Vec<u8>>>(row, "secret")?.map(SecretBytes::new),
    })
}
