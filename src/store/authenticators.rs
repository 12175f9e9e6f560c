//! `authenticators`: what people prove who they are with, besides their password. Each that is
//! added or removed raises the user's `factors`, and is judged by what that was when they were
//! read: so no two at once both are the first, or the last.

use std::slice;

use postgres::Row;
use serde_json::json;

use super::Store;
use super::audit_chain::Together;
use super::audit_events::AuditEvent;
use super::error::StoreError;
use super::registry_writer::RegistryWriter;
use super::sessions::{others, with_endings};
use super::users::UserRow;
use super::values::{Values, column, read};
use crate::protocol::login::second_factor::FactorKind;
use crate::protocol::words::identifiers::Subject;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::secret::{SecretBytes, SecretText};
use crate::protocol::words::session::Session;
use crate::protocol::words::strength::Strength;

#[derive(Clone, Debug, PartialEq)]
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
SELECT a.* FROM authenticators a WHERE a.sub = $1::text AND (a.kind <> 'recovery_code' OR $2::bool)
ORDER BY a.created_at, a.id";

/// A user's factors, the oldest first; with their recovery codes where asked for.
pub fn list(
    store: &Store,
    sub: &Subject,
    with_codes: bool,
) -> Result<Vec<Authenticator>, StoreError> {
    store.list(LIST, &[sub, &with_codes], authenticator)
}

const USE_STEP: &str = "
WITH used AS (
    UPDATE authenticators SET last_step = $2::int8, used_at = clock_timestamp()
    WHERE sub = $1::text AND kind = 'totp' AND last_step < $2::int8 RETURNING sub
), {audited used $3} FROM used";

/// Takes a code of the app; `false` when that step, or a later one, was taken before.
pub fn use_step(
    store: &Store,
    sub: &Subject,
    step: i64,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let event = AuditEvent {
        event: "factor_used",
        detail: json!({"factor": "totp"}),
        ..audit.clone()
    };
    Ok(!store
        .write_audited(USE_STEP, &[sub, &step], &event)?
        .is_empty())
}

const USE_RECOVERY_CODE: &str = "
WITH used AS (
    DELETE FROM authenticators WHERE sub = $1::text AND kind = 'recovery_code' AND id = $2::bytea RETURNING sub
), {audited used $3} FROM used";

/// Takes a recovery code; `false` when it was taken before.
pub fn use_recovery_code(
    store: &Store,
    sub: &Subject,
    id: &[u8],
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let event = AuditEvent {
        event: "recovery_code_used",
        ..audit.clone()
    };
    Ok(!store
        .write_audited(USE_RECOVERY_CODE, &[sub, &id], &event)?
        .is_empty())
}

/// New recovery codes replace the old ones, and an app replaces the one there was. A passkey
/// replaces nothing: one that is known, to this user or to another, adds nothing (WebAuthn L3 §7.1,
/// step 26). A new password, which comes with a link from the operator, removes every earlier
/// factor. With it, and with a user's first factor, everything ends that was signed in without it,
/// but for the session given.
const ADD: &str = "
WITH {own session}, changed AS (
    UPDATE users
    SET factors = factors + 1, strongest_acr = $6::text, password_hash = coalesce($7::text, password_hash),
        user_handle = coalesce(user_handle, $18::bytea),
        epoch = CASE WHEN $20::bool THEN new_epoch() ELSE epoch END, updated_at = clock_timestamp()
    WHERE sub = $1::text AND enabled AND epoch = $2::int8 AND factors = $3::int8
      AND ($5::text IS NULL OR EXISTS (SELECT FROM own))
      AND NOT EXISTS (SELECT FROM authenticators known WHERE known.kind = 'passkey' AND known.id = ANY ($11::bytea[]))
    RETURNING sub, epoch
), dropped AS (
    DELETE FROM authenticators a USING changed
    WHERE a.sub = changed.sub AND NOT (a.kind = 'totp' AND 'totp' = ANY ($10::text[]))
      AND ($7::text IS NOT NULL OR (a.kind = 'recovery_code' AND 'recovery_code' = ANY ($10::text[])))
), added AS (
    INSERT INTO authenticators (sub, kind, id, name, secret, public_key, sign_count, last_step, backup_eligible)
    SELECT changed.sub, n.* FROM changed, unnest(
        $10::text[], $11::bytea[], $12::text[], $13::bytea[], $14::bytea[], $15::int8[], $16::int8[], $17::bool[]) AS n
    ON CONFLICT (sub, kind, id) DO UPDATE
    SET name = excluded.name, secret = excluded.secret, public_key = excluded.public_key, sign_count = excluded.sign_count,
        last_step = excluded.last_step, backup_eligible = excluded.backup_eligible, created_at = clock_timestamp(), used_at = NULL
), raised AS (
    UPDATE sessions s
    SET acr = $8::text, amr = $9::text[], user_epoch = changed.epoch, handle_hash = coalesce($19::bytea, s.handle_hash)
    FROM changed WHERE s.day = $4::int4 AND s.sid = $5::text
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM changed
    WHERE $20::bool AND s.sub = changed.sub AND s.sid IS DISTINCT FROM $5::text AND s.ended_at IS NULL
      AND s.expires_at > clock_timestamp()
    RETURNING s.day, s.sid
), {called}, {audited changed $21} FROM changed";

/// The session in which a factor is added, as it is from then on.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    pub session: &'a Session,
    /// Of its new handle, where it gets one.
    pub handle_hash: Option<&'a [u8; 32]>,
}

/// Adds factors to a user as they were read, after which theirs reach `strongest`: in a live
/// session, or with the password of a link. `false` when user or session are no longer as they
/// were, or where a passkey is known already.
pub fn add(
    store: &Store,
    user: &UserRow,
    (added, strongest, user_handle): (&[Authenticator], Strength, Option<&[u8]>),
    kept: Option<Kept<'_>>,
    password_hash: Option<&SecretText>,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let ends_all_else = password_hash.is_some() || user.strongest_acr == Strength::SignedIn;
    let others = match kept {
        Some(kept) if ends_all_else => others(store, &user.sub, &kept.session.sid)?,
        Some(_) | None => Vec::new(),
    };
    let events = with_endings(audit, &others);
    let each =
        |field: fn(&Authenticator) -> Option<&[u8]>| added.iter().map(field).collect::<Vec<_>>();
    let (ids, secrets) = (
        each(|one| Some(&one.id)),
        each(|one| one.secret.as_ref().map(SecretBytes::expose)),
    );
    let keys = each(|one| one.public_key.as_deref());
    let kinds: Vec<&str> = added.iter().map(|one| one.kind.as_str()).collect();
    let names: Vec<Option<&str>> = added.iter().map(|one| one.name.as_deref()).collect();
    let (counts, steps): (Vec<_>, Vec<_>) = added
        .iter()
        .map(|one| (one.sign_count, one.last_step))
        .unzip();
    let backups: Vec<Option<bool>> = added.iter().map(|one| one.backup_eligible).collect();
    let session = kept.map(|kept| kept.session);
    let handle_hash = kept.and_then(|kept| kept.handle_hash).map(|hash| &hash[..]);
    let (day, sid) = session.map(|session| (session.day, &session.sid)).unzip();
    let (acr, amr) = session.map(|session| (&session.acr, &session.amr)).unzip();
    let hash = password_hash.map(SecretText::expose);
    let whose: Values<'_> = &[
        &user.sub,
        &user.epoch,
        &user.factors,
        &day,
        &sid,
        &strongest,
        &hash,
        &acr,
        &amr,
    ];
    let what: Values<'_> = &[
        &kinds,
        &ids,
        &names,
        &secrets,
        &keys,
        &counts,
        &steps,
        &backups,
        &user_handle,
        &handle_hash,
        &ends_all_else,
    ];
    let values = [whose, what].concat();
    let rows =
        store.write(|connection| connection.audited(ADD, &values, &events, Together::InOrder))?;
    Ok(!rows.is_empty())
}

/// With the last factor the recovery codes go.
const REMOVE: &str = "
WITH {own session}, changed AS (
    UPDATE users SET factors = factors + 1, strongest_acr = $6::text, epoch = new_epoch(), updated_at = clock_timestamp()
    WHERE sub = $1::text AND epoch = $2::int8 AND factors = $3::int8 AND ($5::text IS NULL OR EXISTS (SELECT FROM own))
    RETURNING sub, epoch
), removed AS (
    DELETE FROM authenticators a USING changed
    WHERE a.sub = changed.sub AND ($6::text = '1' OR (a.kind = $7::text AND a.id = $8::bytea))
), kept AS (
    UPDATE sessions s SET user_epoch = changed.epoch FROM changed WHERE s.day = $4::int4 AND s.sid = $5::text
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM changed
    WHERE s.sub = changed.sub AND s.sid IS DISTINCT FROM $5::text AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
    RETURNING s.day, s.sid
), {called}, {audited changed $9} FROM changed";

/// Removes a factor of a user as they were read, after which the others reach `strongest`; all
/// where that is one factor. Every session ends but the one given. `false` when user or session are
/// no longer as they were.
pub fn remove(
    store: &Store,
    user: &UserRow,
    (kind, id): (FactorKind, &[u8]),
    strongest: Strength,
    session: Option<&Session>,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let (day, sid) = session.map(|session| (session.day, &session.sid)).unzip();
    let others = sid
        .map(|sid| others(store, &user.sub, sid))
        .transpose()?
        .unwrap_or_default();
    let events = with_endings(audit, &others);
    let kind = kind.as_str();
    let values: Values<'_> = &[
        &user.sub,
        &user.epoch,
        &user.factors,
        &day,
        &sid,
        &strongest,
        &kind,
        &id,
    ];
    let rows =
        store.write(|connection| connection.audited(REMOVE, values, &events, Together::InOrder))?;
    Ok(!rows.is_empty())
}

const FIND_PASSKEY: &str =
    "SELECT a.* FROM authenticators a WHERE a.kind = 'passkey' AND a.id = $1::bytea";

/// The user of a passkey.
pub fn find_passkey(
    store: &Store,
    id: &[u8],
) -> Result<Option<(Subject, Authenticator)>, StoreError> {
    store.find(FIND_PASSKEY, &[&id], |row| {
        Ok((column(row, "sub")?, authenticator(row)?))
    })
}

const USE_PASSKEY: &str = "
WITH used AS (
    UPDATE authenticators SET sign_count = $4::int8, used_at = clock_timestamp()
    WHERE sub = $1::text AND kind = 'passkey' AND id = $2::bytea AND sign_count = $3::int8 RETURNING sub
), forgotten AS (
    DELETE FROM sign_in_failures WHERE bucket = $5::bytea AND EXISTS (SELECT FROM used)
), {audited used $6} FROM used";

/// Moves a passkey's counter on, and forgets the failures of that bucket of `sign_in_failures`;
/// `false` when somebody else did meanwhile.
pub fn use_passkey(
    store: &Store,
    sub: &Subject,
    row: &Authenticator,
    sign_count: i64,
    forgotten: Option<[u8; 32]>,
    audit: &AuditEvent<'_>,
) -> Result<bool, StoreError> {
    let forgotten = forgotten.as_ref().map(<[u8; 32]>::as_slice);
    let event = AuditEvent {
        event: "factor_used",
        detail: json!({"factor": "passkey"}),
        ..audit.clone()
    };
    let values: Values<'_> = &[sub, &row.id, &row.sign_count, &sign_count, &forgotten];
    Ok(!store.write_audited(USE_PASSKEY, values, &event)?.is_empty())
}

const USER_HANDLE: &str = "SELECT u.user_handle FROM users u WHERE u.sub = $1::text";

/// What a user's passkeys call them, once they have had one.
pub fn user_handle(store: &Store, sub: &Subject) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(store
        .find(USER_HANDLE, &[sub], |row| column(row, "user_handle"))?
        .flatten())
}

const LIST_SEALED: &str =
    "SELECT a.* FROM authenticators a WHERE a.secret IS NOT NULL ORDER BY a.sub, a.kind, a.id";

const RESEAL: &str = "
UPDATE authenticators SET secret = $4::bytea WHERE sub = $1::text AND kind = $2::text AND id = $3::bytea";

const DROP: &str =
    "DELETE FROM authenticators WHERE sub = $1::text AND kind = $2::text AND id = $3::bytea";

// No step was taken yet.
const ADD_APP: &str = "
WITH changed AS (
    UPDATE users SET factors = factors + 1, strongest_acr = '2' WHERE sub = $1::text RETURNING sub
), added AS (
    INSERT INTO authenticators (sub, kind, id, secret, last_step) SELECT changed.sub, 'totp', '', $2::bytea, 0 FROM changed
), {audited changed $3} FROM changed";

impl RegistryWriter<'_> {
    /// Gives a new user an app that shows codes.
    pub fn add_app(
        &mut self,
        sub: &Subject,
        sealed: &[u8],
        audit: &AuditEvent<'_>,
    ) -> Result<(), StoreError> {
        self.audited(ADD_APP, &[sub, &sealed], slice::from_ref(audit))
            .map(drop)
    }

    /// The sealed secrets of all factors.
    pub fn sealed_authenticators(&mut self) -> Result<Vec<(Subject, Authenticator)>, StoreError> {
        let rows = self.transaction.query(LIST_SEALED, &[])?;
        rows.iter()
            .map(|row| Ok((column(row, "sub")?, authenticator(row)?)))
            .collect()
    }

    /// Seals it anew, or drops it with `None`. The strength of the user's factors stays: a lost
    /// secret must not let them in by less.
    pub fn reseal_authenticator(
        &mut self,
        sub: &Subject,
        row: &Authenticator,
        sealed: Option<&SecretBytes>,
    ) -> Result<(), StoreError> {
        let (kind, id) = (row.kind.as_str(), row.id.as_slice());
        let done = match sealed {
            Some(sealed) => self.execute(RESEAL, &[sub, &kind, &id, &sealed.expose()]),
            None => self.execute(DROP, &[sub, &kind, &id]),
        };
        done.map(drop)
    }
}

fn authenticator(row: &Row) -> Result<Authenticator, StoreError> {
    let kind = FactorKind::from_name(column(row, "kind")?);
    read!(row, Authenticator { id, name, public_key, sign_count, last_step, backup_eligible, created_at, used_at;
        kind: kind.ok_or_else(|| StoreError::Corrupt(String::from("column kind")))?,
        secret: column::<Option<Vec<u8>>>(row, "secret")?.map(SecretBytes::new),
    })
}
