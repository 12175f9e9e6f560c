//! `users`: people who sign in. A user name is unique within its tenant by
//! `lower(normalize(username, NFKC))`; people whom only an identity provider knows have none. A
//! subject is never given to anybody else, also after its user was removed.

use postgres::Row;
use postgres::types::Json;
use serde_json::json;

use super::Store;
use super::audit_event::AuditEvent;
use super::audit_events;
use super::session_clients::call_late;
use super::session_endings::{others, with_endings};
use super::statement::bind;
use super::values::{column, read, tenant, tenant_text};
use crate::Result;
use gatepost_protocol::login::imported_hash::ImportedHash;
use gatepost_protocol::login::password::SignInWith;
use gatepost_protocol::login::password_link::LinkUser;
use gatepost_protocol::words::epochs::{Epochs, SessionEpochs};
use gatepost_protocol::words::identifiers::{ClientId, Subject, TenantName};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::{JsonObject, Members};
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::session::{Session, User};
use gatepost_protocol::words::strength::Strength;

/// A user as stored, or to be: the epoch is drawn by the database.
#[derive(Clone, Debug, PartialEq)]
pub struct UserRow {
    /// Made by the caller: 128 random bits, or as imported.
    pub sub: Subject,
    /// As written when it was given; `None` for people whom only an identity provider knows.
    pub username: Option<String>,
    pub tenant: Option<TenantName>,
    /// PHC string; `None` for those who sign in elsewhere.
    pub password_hash: Option<SecretText>,
    pub enabled: bool,
    /// `None`: without an end.
    pub valid_until: Option<Instant>,
    /// Whether that was over by the database's clock when the row was read.
    pub has_ended: bool,
    pub claims: JsonObject,
    pub epoch: i64,
    /// Raised whenever a factor is added or removed.
    pub factors: i64,
    /// What those reach beside the password; one factor where there is none.
    pub strongest_acr: Strength,
}

/// What a person with these claims is called who is called `otherwise` without a name.
pub fn called<'a>(claims: &'a JsonObject, otherwise: &'a str) -> &'a str {
    let name = claims.text("name");
    name.filter(|name| !name.trim().is_empty())
        .unwrap_or(otherwise)
}

impl UserRow {
    /// Whether they may sign in, and what they gave stands.
    pub fn may_act(&self) -> bool {
        self.enabled && !self.has_ended
    }

    /// What operators call them: the user name, else the subject.
    pub fn designation(&self) -> &str {
        self.username.as_deref().unwrap_or(self.sub.as_str())
    }

    /// What the person is called: the name, else as operators call them.
    pub fn called(&self) -> &str {
        called(&self.claims, self.designation())
    }

    /// Whether they sign in with something of ours: a password, or a passkey alone.
    pub fn has_own_way_in(&self) -> bool {
        self.password_hash.is_some() || self.strongest_acr == Strength::PhishingResistant
    }

    /// Whom a link is for that is made now.
    pub fn of_link(&self, installation_epoch: i64) -> LinkUser {
        LinkUser {
            subject: self.sub.clone(),
            epoch: self.epoch,
            installation_epoch,
        }
    }

    /// As the core sees a user: without the password.
    pub fn into_core(self) -> User {
        let enabled = self.may_act();
        let UserRow {
            sub: subject,
            username,
            tenant,
            valid_until,
            claims,
            epoch,
            ..
        } = self;
        User {
            subject,
            username,
            tenant,
            enabled,
            valid_until,
            claims,
            epoch,
        }
    }
}

/// A user, and the epochs that tokens issued now stand on, read in one statement.
#[derive(Debug, PartialEq)]
pub struct CurrentUser {
    pub user: UserRow,
    pub installation_epoch: i64,
    /// Of their consent to the client that was named.
    pub consent_epoch: i64,
    /// Their user name in its canonical form: failures are counted by it.
    pub username_key: Option<String>,
}

impl CurrentUser {
    pub fn session_epochs(&self) -> SessionEpochs {
        SessionEpochs {
            installation: self.installation_epoch,
            user: self.user.epoch,
        }
    }

    pub fn epochs(&self, client_epoch: i64) -> Epochs {
        self.session_epochs()
            .at_client(client_epoch, self.consent_epoch)
    }
}

pub struct SignInAccount {
    /// What was typed, in its canonical form, whether or not a user has it: failures are counted by
    /// it.
    pub typed_key: String,
    pub user: Option<CurrentUser>,
}

// A user name wins over an address. Both are looked for each time: no visitor can tell from the
// time which of them was found. An address that two have signs in neither of them.
const FIND_FOR_SIGN_IN: &str = "
SELECT t.typed_key, u.*, {has ended}, i.epoch AS installation_epoch,
       coalesce(k.epoch, 0) AS consent_epoch
FROM (SELECT lower(normalize(:username::text, NFKC)) AS typed_key) AS t
CROSS JOIN installation i
LEFT JOIN users n ON n.tenant = :tenant::text AND n.username_key = t.typed_key
LEFT JOIN LATERAL (
    SELECT min(a.sub) AS sub FROM (
        SELECT h.sub FROM users h
        WHERE h.tenant = :tenant::text AND h.claims ? 'email'
          AND left(lower(normalize(h.claims ->> 'email', NFKC)), 254) = t.typed_key COLLATE \"C\"
          AND h.enabled AND {in time} AND h.password_hash IS NOT NULL AND {address counts}
        LIMIT 2
    ) AS a HAVING count(*) = 1
) AS a ON :by_address::bool
LEFT JOIN users u ON u.sub = coalesce(n.sub, a.sub)
LEFT JOIN consents k ON k.sub = u.sub AND k.client_id = :client_id::text";

/// Looks for the user of that name in that tenant (or without one), for that client where there is
/// one; or for the one user who can sign in by that address. The name must be free of NUL.
pub fn find_for_sign_in(
    store: &Store,
    tenant: Option<&TenantName>,
    username: &str,
    by: SignInWith,
    client_id: Option<&ClientId>,
) -> Result<SignInAccount> {
    let tenant = tenant_text(tenant);
    let by_address = by == SignInWith::UsernameOrAddress;
    let bound = bind!(FIND_FOR_SIGN_IN, tenant, username, by_address, client_id);
    let row = store.one(bound)?;
    Ok(SignInAccount {
        typed_key: column(&row, "typed_key")?,
        user: if_there(&row, current)?,
    })
}

// By name and by address, each by its index. Only those whose address counts are among the hundred:
// accounts of strangers, who may write any address into theirs, take nobody's place.
const FIND_BY_NAME_OR_ADDRESS: &str = "
SELECT h.*, false AS has_ended, i.epoch AS installation_epoch, 0::int8 AS consent_epoch
FROM (SELECT n.sub FROM users n
      WHERE n.tenant = :tenant::text AND n.username_key = lower(normalize(:typed::text, NFKC))
      UNION
      (SELECT h.sub FROM users h
       WHERE h.tenant = :tenant::text AND h.claims ? 'email'
         AND left(lower(normalize(h.claims->>'email', NFKC)), 254) COLLATE \"C\"
             = left(lower(normalize(:typed::text, NFKC)), 254)
         AND h.enabled AND {in time} AND {address counts}
       LIMIT 100)) AS f
JOIN users h ON h.sub = f.sub
CROSS JOIN installation i
WHERE h.enabled AND {in time} AND {address counts}
ORDER BY h.sub";

/// The enabled users in that tenant (or without one) who are called so, or have this address, and
/// whose address counts; a hundred of an address at most. What was typed must be free of NUL.
pub fn find_by_name_or_address(
    store: &Store,
    tenant: Option<&TenantName>,
    typed: &str,
) -> Result<Vec<CurrentUser>> {
    let tenant = tenant_text(tenant);
    store.list(bind!(FIND_BY_NAME_OR_ADDRESS, tenant, typed), current)
}

const ADDRESS_COUNTS: &str = "
SELECT {address counts} AS counts
FROM (SELECT :sub::text AS sub,
             jsonb_build_object('email', :address::text,
                                'email_verified', :address::text IS NOT NULL) AS claims) AS h";

/// Whether letters may go to an address that the claims of this user call verified: not where only
/// an identity provider without `trust_email` called it so.
pub fn address_counts(store: &Store, sub: &Subject, address: Option<&str>) -> Result<bool> {
    column(&store.one(bind!(ADDRESS_COUNTS, sub, address))?, "counts")
}

const FIND_FOR_CLIENT: &str = "
SELECT u.*, {has ended}, i.epoch AS installation_epoch, coalesce(k.epoch, 0) AS consent_epoch
FROM users u
CROSS JOIN installation i
LEFT JOIN consents k ON k.sub = u.sub AND k.client_id = :client_id::text
WHERE u.sub = :sub::text";

/// Reads one user, for what that client gets; without one, for what they get here.
pub fn find_for_client(
    store: &Store,
    sub: &Subject,
    client_id: Option<&ClientId>,
) -> Result<Option<CurrentUser>> {
    store.find(bind!(FIND_FOR_CLIENT, sub, client_id), current)
}

pub const FIND: &str = "SELECT u.*, {has ended} FROM users u WHERE u.sub = :sub::text";

/// Reads one user.
pub fn find(store: &Store, sub: &Subject) -> Result<Option<UserRow>> {
    store.find(bind!(FIND, sub), user)
}

pub const FIND_SHARING: &str = "
SELECT h.sub FROM users u
JOIN users h ON h.tenant = u.tenant AND h.claims ? 'email' AND h.sub <> u.sub
  AND left(lower(normalize(h.claims ->> 'email', NFKC)), 254)
      = left(lower(normalize(u.claims ->> 'email', NFKC)), 254) COLLATE \"C\"
WHERE u.sub = :sub::text AND u.claims -> 'email_verified' = 'true' AND {address counts} LIMIT 1";

/// Another user of the tenant who has the same verified address.
fn find_sharing(store: &Store, sub: &Subject) -> Result<Option<Subject>> {
    store.find(bind!(FIND_SHARING, sub), |row| column(row, "sub"))
}

/// Tells the audit log where somebody else has the verified address of a user, too: it signs in
/// neither of them. `audit` is of the change that gave them the address, made by whom.
pub fn note_shared_address(
    store: &Store,
    sub: &Subject,
    by: &str,
    audit: &AuditEvent<'_>,
) -> Result {
    let Some(other) = find_sharing(store, sub)? else {
        return Ok(());
    };
    let event = AuditEvent {
        detail: json!({"by": by, "with": other}),
        ..audit.as_event("address_shared")
    };
    audit_events::insert(store, &event)
}

// A password that a link or an operator sets. The new epoch ends all that was signed in before,
// sessions too. A person's own change, which keeps the session it is made in, is `CHANGE_PASSWORD`.
const SET_PASSWORD: &str = "
WITH keys AS (
    SELECT u.tenant, :verified::text AS name, true AS is_alone FROM users u
    WHERE u.sub = :sub::text AND :verified::text IS NOT NULL
), {names taken}, verified AS (
    SELECT k.name FROM keys k WHERE {names are free}
), changed AS (
    UPDATE users
    SET password_hash = :password_hash::text, updated_at = clock_timestamp(), epoch = new_epoch(),
        claims = CASE WHEN EXISTS (SELECT FROM verified)
                      THEN claims || '{\"email_verified\": true}' ELSE claims END
    WHERE sub = :sub::text AND (:verified::text IS NULL OR claims->>'email' = :verified::text)
      AND (:user_epoch::int8 IS NULL
           OR (enabled AND {in time} AND epoch = :user_epoch::int8
               AND (SELECT i.epoch FROM installation i) = :installation_epoch::int8))
    RETURNING sub
), proved AS (
    UPDATE linked_identities l SET verified_email = ''
    FROM changed, verified WHERE l.sub = changed.sub
), {user called}, {audited changed} FROM changed";

/// Gives a user another password, ends everything that was signed in with the old one, and calls
/// the clients of their sessions. `false` when there is no such user, or when they no longer have
/// the epochs given. `verified` is the address that the link came by, which must still be theirs.
/// It is verified with it, unless it counts as that of another user of the tenant, or comes to.
pub fn set_password(
    store: &Store,
    sub: &Subject,
    epochs: Option<SessionEpochs>,
    hash: &SecretText,
    verified: Option<&str>,
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    let bound = bind!(
        SET_PASSWORD,
        sub,
        password_hash = hash.expose(),
        user_epoch = epochs.map(|epochs| epochs.user),
        installation_epoch = epochs.map(|epochs| epochs.installation),
        verified,
    );
    store.change(bound, audit)
}

const CHANGE_ADDRESS: &str = "
WITH {own session}, keys AS (
    SELECT u.tenant, :new::text AS name, true AS is_alone FROM users u WHERE u.sub = :sub::text
), {names taken}, changed AS (
    UPDATE users
    SET claims = claims || jsonb_build_object('email', :new::text, 'email_verified', true),
        updated_at = clock_timestamp()
    FROM own
    WHERE users.sub = :sub::text AND enabled AND {in time} AND epoch = :epoch::int8
      AND claims->>'email' IS NOT DISTINCT FROM :old::text AND {names are free}
    RETURNING users.sub
), proved AS (
    UPDATE linked_identities l SET verified_email = '' FROM changed WHERE l.sub = changed.sub
), {audited changed} FROM changed";

/// Gives a user another address, which they have shown to be theirs, in a session that lives.
/// `false` when session, user or address are no longer as they were, or the new address counts as
/// that of another user of the tenant. Ends nothing.
pub fn change_address(
    store: &Store,
    user: &UserRow,
    session: &Session,
    old: Option<&str>,
    new: &str,
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    let bound = bind!(
        CHANGE_ADDRESS,
        ..user { sub, epoch },
        ..session { day, sid },
        old,
        new
    );
    store.change(bound, audit)
}

const CHANGE_NAME: &str = "
WITH {own session}, changed AS (
    UPDATE users
    SET claims = claims || jsonb_build_object('name', :new::text), updated_at = clock_timestamp()
    FROM own
    WHERE users.sub = :sub::text AND enabled AND {in time} AND epoch = :epoch::int8
    RETURNING users.sub
), {audited changed} FROM changed";

/// Gives a user the name that they wrote, in a session that lives. `false` when session or user are
/// no longer as they were.
pub fn change_name(
    store: &Store,
    user: &UserRow,
    session: &Session,
    new: &str,
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    store.change(
        bind!(
            CHANGE_NAME,
            ..user { sub, epoch },
            ..session { day, sid },
            new
        ),
        audit,
    )
}

const REHASH: &str = "
UPDATE users SET password_hash = :new::text
WHERE sub = :sub::text AND password_hash = :old::text";

/// Stores the same password under newer parameters, unless somebody changed it meanwhile. Ends
/// nothing.
pub fn rehash(store: &Store, sub: &Subject, old: &SecretText, new: &SecretText) -> Result {
    let bound = bind!(REHASH, sub, old = old.expose(), new = new.expose());
    store.execute(bound).map(drop)
}

// By indexes that have these users alone. A beginning of bcrypt's is counted up to ten
// thousand; of two with as many, the dearer counts.
const USUAL_IMPORTED_HASH: &str = "
SELECT cost FROM (
    SELECT pbkdf2 AS cost, count(*) AS people FROM users WHERE pbkdf2 IS NOT NULL GROUP BY pbkdf2
    UNION ALL
    SELECT b.cost, (SELECT count(*) FROM (
        SELECT FROM users WHERE password_hash LIKE '$2%' AND left(password_hash, 7) = b.cost
        LIMIT 10000) AS c)
    FROM unnest('{a,b,y}'::text[]) AS version CROSS JOIN generate_series(4, 14) AS rounds
    CROSS JOIN LATERAL (
        SELECT '$2' || version || '$' || lpad(rounds::text, 2, '0') || '$' AS cost) AS b
) AS kinds
WHERE people > 0 ORDER BY people DESC, cost DESC LIMIT 1";

/// A hash that costs what most imported ones do; `None` where there are none.
pub fn usual_imported_hash(store: &Store) -> Result<Option<ImportedHash>> {
    let cost = |row: &Row| column::<String>(row, "cost");
    let found = store.find(bind!(USUAL_IMPORTED_HASH), cost)?;
    Ok(found.as_deref().and_then(ImportedHash::dummy))
}

/// The user of a row, with the epochs that a sign-in stands on.
pub fn current(row: &Row) -> Result<CurrentUser> {
    read!(row, CurrentUser { installation_epoch, consent_epoch, username_key; user: user(row)? })
}

/// The user of a row where there may be none.
pub(super) fn if_there<T>(row: &Row, of: fn(&Row) -> Result<T>) -> Result<Option<T>> {
    let sub: Option<&str> = column(row, "sub")?;
    sub.map(|_| of(row)).transpose()
}

/// What tokens tell of the user of a row.
pub(super) fn person(row: &Row) -> Result<User> {
    read!(row, User { username, enabled, valid_until, epoch;
        subject: column(row, "sub")?,
        tenant: tenant(row, "tenant")?,
        claims: column::<Json<JsonObject>>(row, "claims")?.0,
    })
}

/// The user of a row of `users`.
pub fn user(row: &Row) -> Result<UserRow> {
    read!(row, UserRow {
        sub, username, enabled, valid_until, has_ended, epoch, factors, strongest_acr;
        tenant: tenant(row, "tenant")?,
        password_hash: column::<Option<String>>(row, "password_hash")?.map(SecretText::new),
        claims: column::<Json<JsonObject>>(row, "claims")?.0,
    })
}

// A person's own change of password: one statement that stores the new hash, ends what hung on the
// old password, has the clients of the sessions that end with it called, and keeps the session it
// was changed in, under a new handle.

/// Nothing happens unless the session lives: a user who was signed out meanwhile changes nothing.
const CHANGE_PASSWORD: &str = "
WITH {own session}, changed AS (
    UPDATE users
    SET password_hash = :password_hash::text, updated_at = clock_timestamp(), epoch = new_epoch()
    FROM own
    WHERE sub = :sub::text AND enabled AND {in time} AND epoch = :epoch::int8
    RETURNING sub, epoch
), kept AS (
    UPDATE sessions s SET handle_hash = :handle_hash::bytea, user_epoch = changed.epoch
    FROM changed WHERE s.day = :day::int4 AND s.sid = :sid::text
    RETURNING s.user_epoch
), ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM changed
    WHERE s.sub = changed.sub AND s.sid <> :sid::text
      AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
    RETURNING s.day, s.sid
), {called}, {audited changed}, user_epoch FROM kept";

/// Changes the password of a user whose present one was checked. Nothing must have been revoked
/// since they were read. The session stays, under a new handle. Answers the user's new epoch, which
/// that session has; `None` when session or user no longer stood.
pub fn change_password(
    store: &Store,
    user: &UserRow,
    password_hash: &SecretText,
    session: &Session,
    handle_hash: &[u8; 32],
    audit: &AuditEvent<'_>,
) -> Result<Option<i64>> {
    let others = others(store, &user.sub, &session.sid)?;
    let events = with_endings(audit, &others);
    let bound = bind!(
        CHANGE_PASSWORD,
        ..user { sub, epoch },
        ..session { day, sid },
        password_hash = password_hash.expose(),
        handle_hash = &handle_hash[..]
    );
    let rows = store.write_all_audited(bound, &events)?;
    call_late(store, &others);
    rows.first()
        .map(|row| column(row, "user_epoch"))
        .transpose()
}
