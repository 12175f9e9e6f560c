//! What SCIM reads of users and writes to them. `version` is Postgres' `xmin`: the transaction that
//! wrote the row. No statement raises the registry's version: no process reads the registry anew
//! when a user changes.

use postgres::Row;
use postgres::types::Json;
use serde_json::json;

use gatepost_protocol::login::letters::verified_address;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::users::{self, CurrentUser, UserRow};
use gatepost_store::{Result, Store, StoreError, bind, column, read, tenant_text};

/// A user as stored, and what SCIM alone asks of them.
#[derive(Clone, PartialEq)]
pub struct ScimUser {
    pub row: UserRow,
    pub external_id: Option<String>,
    pub created_at: Instant,
    pub updated_at: Instant,
    /// Another one after each change.
    pub version: String,
}

/// Who is asked for: all that is there must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserFilter {
    /// The subject.
    pub id: Option<String>,
    pub user_name: Option<String>,
    pub external_id: Option<String>,
    pub email: Option<String>,
    pub active: Option<bool>,
}

/// Whom a SCIM client reaches: the users of these tenants. An empty name stands for no tenant.
pub type Reach<'a> = &'a [String];

const FIND_SCIM: &str = "
SELECT u.*, {has ended}, u.xmin::text AS version FROM users u
WHERE u.sub = :sub::text AND u.tenant = ANY(:reach::text[])";

/// One user, within reach.
pub fn find(store: &Store, reach: Reach<'_>, sub: &Subject) -> Result<Option<ScimUser>> {
    store.find(bind!(FIND_SCIM, sub, reach), scim_user)
}

// Each way to a user by an index of its own; what is not asked for finds nobody.
const LOOK_UP: &str = "
WITH found AS (
    SELECT a.sub FROM users a WHERE a.sub = :id::text
    UNION
    SELECT a.sub FROM users a
    WHERE a.tenant = ANY(:reach::text[])
      AND a.username_key = lower(normalize(:user_name::text, NFKC))
    UNION
    SELECT a.sub FROM users a WHERE a.sub = :user_name::text AND a.username IS NULL
    UNION
    SELECT a.sub FROM users a
    WHERE a.tenant = ANY(:reach::text[]) AND a.external_id = :external_id::text
    UNION
    SELECT a.sub FROM users a
    WHERE a.tenant = ANY(:reach::text[]) AND a.claims ? 'email'
      AND (left(lower(normalize(a.claims->>'email', NFKC)), 254)) COLLATE \"C\"
          = left(lower(normalize(:email::text, NFKC)), 254)
)
SELECT u.*, {has ended}, u.xmin::text AS version
FROM found f JOIN users u ON u.sub = f.sub
WHERE u.tenant = ANY(:reach::text[])
  AND (:id::text IS NULL OR u.sub = :id::text)
  AND (:user_name::text IS NULL OR u.username_key = lower(normalize(:user_name::text, NFKC))
       OR (u.username IS NULL AND u.sub = :user_name::text))
  AND (:external_id::text IS NULL OR u.external_id = :external_id::text)
  AND (:email::text IS NULL OR left(lower(normalize(u.claims->>'email', NFKC)), 254)
                               = left(lower(normalize(:email::text, NFKC)), 254))
  AND (:active::bool IS NULL OR u.enabled = :active::bool)
ORDER BY u.tenant, u.sub LIMIT :most::int8";

/// Users whom all of the filter fits; it must name one of them by something else than `active`.
pub fn look_up(
    store: &Store,
    reach: Reach<'_>,
    filter: &UserFilter,
    most: i64,
) -> Result<Vec<ScimUser>> {
    let bound = bind!(
        LOOK_UP,
        ..filter {
            id,
            user_name,
            external_id,
            email,
            active
        },
        reach,
        most
    );
    store.list(bound, scim_user)
}

const COUNT: &str = "SELECT count(*) AS users FROM users u WHERE u.tenant = ANY(:reach::text[])";

/// How many users are within reach.
pub fn count(store: &Store, reach: Reach<'_>) -> Result<i64> {
    column(&store.one(bind!(COUNT, reach))?, "users")
}

const PAGE: &str = "
SELECT u.*, {has ended}, u.xmin::text AS version FROM users u
WHERE u.tenant = ANY(:reach::text[]) AND (u.tenant, u.sub) > (:tenant::text, :sub::text)
ORDER BY u.tenant, u.sub OFFSET :skipped::int8 LIMIT :most::int8";

/// Where a page begins: behind this user, and so many more.
#[derive(Default)]
pub struct PageStart {
    pub tenant: String,
    pub sub: String,
    pub skipped: i64,
}

/// Users within reach, by tenant and subject.
pub fn page(
    store: &Store,
    reach: Reach<'_>,
    start: &PageStart,
    most: i64,
) -> Result<Vec<ScimUser>> {
    let bound = bind!(
        PAGE,
        ..start {
            tenant,
            sub,
            skipped
        },
        reach,
        most
    );
    store.list(bound, scim_user)
}

// Nobody is called by the address of somebody else. Two may have one address.
const INSERT_SCIM: &str = "
WITH keys AS (
    SELECT :tenant::text AS tenant, n.name, n.is_alone
    FROM (VALUES (:username::text, true), (:address::text, false)) AS n (name, is_alone)
    WHERE n.name IS NOT NULL
), {names taken}, added AS (
    INSERT INTO users (sub, tenant, username, username_key, password_hash, enabled, valid_until,
                       claims, external_id)
    SELECT :sub::text, :tenant::text, :username::text, lower(normalize(:username::text, NFKC)),
           :password_hash::text, :enabled::bool, :valid_until::timestamptz, :claims::jsonb,
           :external_id::text
    WHERE NOT EXISTS (SELECT FROM removed_subjects r WHERE r.sub = :sub::text)
      AND NOT EXISTS (SELECT FROM clients c WHERE c.client_id = :sub::text)
      AND NOT EXISTS (SELECT FROM users n
                      WHERE n.sub = :username::text AND n.username IS NULL
                        AND n.tenant = :tenant::text)
      AND {names are free}
    RETURNING *, (valid_until <= clock_timestamp()) IS TRUE AS has_ended,
              xmin::text AS version
), {audited added}, added.*, i.epoch AS installation_epoch, 0::int8 AS consent_epoch
FROM added CROSS JOIN installation i";

/// Adds a user. Answers them as stored, and what a link for them stands on: a read that followed
/// could fail when they are there already. `Taken` when the user name is somebody's, or the address
/// of somebody that counts.
pub fn insert(
    store: &Store,
    new: &UserRow,
    external_id: Option<&str>,
    events: &[AuditEvent<'_>],
) -> Result<(ScimUser, CurrentUser)> {
    let bound = bind!(
        INSERT_SCIM,
        ..new {
            sub,
            username,
            enabled,
            valid_until
        },
        external_id,
        tenant = tenant_text(new.tenant.as_ref()),
        password_hash = new.password_hash.as_ref().map(SecretText::expose),
        claims = Json(&new.claims),
        address = verified_address(&new.claims),
    );
    let added = store.write_all_audited(bound, events)?;
    let Some(row) = added.first() else {
        return Err(StoreError::Taken(String::from("removed_subjects")));
    };
    Ok((scim_user(row)?, users::current(row)?))
}

const SHARING: &str = "
SELECT h.sub FROM users h
WHERE h.tenant = :tenant::text AND h.sub <> :sub::text AND h.claims ? 'email'
  AND left(lower(normalize(h.claims ->> 'email', NFKC)), 254)
      = left(lower(normalize(:address::text, NFKC)), 254) COLLATE \"C\"
  AND {address counts} LIMIT 1";

/// The event of a change, and one more where the change gives a user a verified address that
/// somebody else of the tenant has: it signs in neither of them any more. This looks before the
/// change, so that one statement writes it all. Of two who get an address at once the second is
/// refused; where it tries again, this looks again.
pub fn with_sharing<'a>(
    store: &Store,
    user: &UserRow,
    event: AuditEvent<'a>,
) -> Result<Vec<AuditEvent<'a>>> {
    let Some(address) = verified_address(&user.claims) else {
        return Ok(vec![event]);
    };
    let other = find_sharing(store, user, address)?;
    let told = other.map(|other| AuditEvent {
        detail: json!({"by": "scim", "with": other}),
        ..event.as_event("address_shared")
    });
    Ok([event].into_iter().chain(told).collect())
}

/// Somebody else of the tenant whose address counts, and reads like this.
pub fn find_sharing(store: &Store, user: &UserRow, address: &str) -> Result<Option<Subject>> {
    let tenant = tenant_text(user.tenant.as_ref());
    let bound = bind!(SHARING, ..user { sub }, tenant, address);
    store.find(bound, |row| column(row, "sub"))
}

const UPDATE_SCIM: &str = "
WITH keys AS (
    SELECT u.tenant, n.name, n.is_alone
    FROM users u CROSS JOIN LATERAL (VALUES
        (:username::text, true, u.username),
        (:address::text, false, CASE WHEN u.claims -> 'email_verified' = 'true'
                                     THEN u.claims ->> 'email' END)
    ) AS n (name, is_alone, before)
    WHERE u.sub = :sub::text AND n.name <> coalesce(n.before, '')
), {names taken}, before AS (
    SELECT u.sub, u.enabled FROM users u
    WHERE u.sub = :sub::text AND u.tenant = ANY(:reach::text[]) AND u.xmin::text = :version::text
      AND (:password_hash::text IS NULL OR u.strongest_acr = '1')
      AND NOT EXISTS (SELECT FROM users n
                      WHERE n.sub = :username::text AND n.username IS NULL
                        AND n.sub <> u.sub AND n.tenant = u.tenant)
      AND {names are free}
    FOR UPDATE
), changed AS (
    UPDATE users u
    SET username = :username::text, username_key = lower(normalize(:username::text, NFKC)),
        enabled = :enabled::bool, valid_until = :valid_until::timestamptz,
        claims = :claims::jsonb, external_id = :external_id::text,
        password_hash = coalesce(:password_hash::text, u.password_hash),
        updated_at = clock_timestamp(),
        epoch = CASE WHEN (b.enabled AND NOT :enabled::bool) OR :password_hash::text IS NOT NULL
                     THEN new_epoch() ELSE u.epoch END
    FROM before b WHERE u.sub = b.sub
    RETURNING u.sub, u.xmin::text AS version, u.updated_at,
              (b.enabled AND NOT :enabled::bool) OR :password_hash::text IS NOT NULL AS ended
), called AS (
    UPDATE session_clients s SET due_at = clock_timestamp()
    FROM changed WHERE s.sub = changed.sub AND changed.ended AND s.due_at IS NULL AND s.tries = 0
), {audited changed}, version, updated_at FROM changed";

/// Changes a user to this, as long as the row is the one that was read. Disabling and another
/// password end what was signed in before, and have the clients of the sessions called. Answers the
/// user as stored; `None` when the row is another by now.
pub fn update(
    store: &Store,
    reach: Reach<'_>,
    user: &ScimUser,
    password_hash: Option<&SecretText>,
    events: &[AuditEvent<'_>],
) -> Result<Option<ScimUser>> {
    let row = &user.row;
    let bound = bind!(
        UPDATE_SCIM,
        ..row {
            sub,
            username,
            enabled,
            valid_until
        },
        ..user {
            version,
            external_id
        },
        reach,
        password_hash = password_hash.map(SecretText::expose),
        claims = Json(&row.claims),
        address = verified_address(&row.claims),
    );
    let changed = store.write_all_audited(bound, events)?;
    let Some(row) = changed.first() else {
        return Ok(None);
    };
    Ok(Some(ScimUser {
        version: column(row, "version")?,
        updated_at: column(row, "updated_at")?,
        ..user.clone()
    }))
}

const REMOVE_SCIM: &str = "
WITH removed AS (
    DELETE FROM users u
    WHERE u.sub = :sub::text AND u.tenant = ANY(:reach::text[])
      AND (:version::text IS NULL OR u.xmin::text = :version::text)
    RETURNING u.sub
), kept AS (
    INSERT INTO removed_subjects (sub) SELECT sub FROM removed ON CONFLICT DO NOTHING
), called AS (
    UPDATE session_clients s SET due_at = clock_timestamp()
    FROM removed WHERE s.sub = removed.sub AND s.due_at IS NULL AND s.tries = 0
), {audited removed} FROM removed";

/// Removes a user with their consents; the subject is never given again. `false` when there was
/// none of that version.
pub fn remove(
    store: &Store,
    reach: Reach<'_>,
    sub: &Subject,
    version: Option<&str>,
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    store.change(bind!(REMOVE_SCIM, sub, reach, version), audit)
}

fn scim_user(row: &Row) -> Result<ScimUser> {
    read!(row, ScimUser { external_id, created_at, updated_at, version; row: users::user(row)? })
}
