//! Users as operators list and revoke them.

use gatepost_protocol::words::identifiers::Subject;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::users::{UserRow, user};
use gatepost_store::{Result, Store, bind, column};

const LIST: &str = "
SELECT u.*, {has ended} FROM users u
WHERE u.sub > :after::text ORDER BY u.sub LIMIT :limit::int8";

/// Users by subject, at most `limit` behind `after` (empty: from the beginning).
pub fn list(store: &Store, after: &str, limit: i64) -> Result<Vec<UserRow>> {
    store.list(bind!(LIST, after, limit), user)
}

const DORMANT: &str = "
SELECT u.*, {has ended} FROM users u
WHERE u.sub > :after::text AND {may act}
  AND {last use} < clock_timestamp() - :seconds::int8 * interval '1 second'
ORDER BY u.sub LIMIT :limit::int8";

/// The same of those who may sign in, and have not for so many seconds. Looks at everybody.
pub fn dormant(store: &Store, seconds: i64, after: &str, limit: i64) -> Result<Vec<UserRow>> {
    store.list(bind!(DORMANT, seconds, after, limit), user)
}

// Nobody who signed in meanwhile, or became an administrator.
const DISABLE: &str = "
WITH taken AS MATERIALIZED (
    SELECT u.sub FROM users u
    WHERE u.sub = ANY(:subs::text[]) AND {may act}
      AND {last use} < clock_timestamp() - :seconds::int8 * interval '1 second'
      AND NOT EXISTS (SELECT FROM role_members m
                      WHERE m.sub = u.sub
                        AND starts_with(m.role || ':', :admin_role::text || ':'))
    FOR UPDATE
), changed AS (
    UPDATE users u
    SET enabled = false, updated_at = clock_timestamp(), epoch = new_epoch()
    FROM taken
    WHERE u.sub = taken.sub AND (SELECT count(*) FROM taken) = cardinality(:subs::text[])
    RETURNING u.sub
), called AS (
    UPDATE session_clients s SET due_at = clock_timestamp()
    FROM changed WHERE s.sub = changed.sub AND s.due_at IS NULL AND s.tries = 0
), done AS (
    SELECT count(*) AS people FROM changed HAVING count(*) > 0
), {audited done} FROM done";

/// Disables all of them, with an event for each; nobody, and `false`, where one of them has signed
/// in meanwhile. `admin_role` is empty where there are no administrators.
pub fn disable_dormant(
    store: &Store,
    seconds: i64,
    subs: &[&Subject],
    admin_role: &str,
    events: &[AuditEvent<'_>],
) -> Result<bool> {
    let bound = bind!(DISABLE, seconds, subs, admin_role);
    Ok(!store.write_all_audited(bound, events)?.is_empty())
}

const COUNT_SHARED: &str = "
SELECT count(*) AS shared FROM (
    SELECT FROM users h WHERE h.claims ? 'email' AND {address counts}
    GROUP BY h.tenant, left(lower(normalize(h.claims ->> 'email', NFKC)), 254) COLLATE \"C\"
    HAVING count(*) > 1
) AS s";

/// How many verified addresses more than one user of a tenant has. Reads all users.
pub fn count_shared(store: &Store) -> Result<i64> {
    column(&store.one(bind!(COUNT_SHARED))?, "shared")
}

const REVOKE: &str = "
WITH revoked AS (
    UPDATE users SET epoch = new_epoch() WHERE sub = :sub::text RETURNING sub
), {user called}, {audited revoked} FROM revoked";

/// Ends all that was signed in, granted or issued for this user until now, the clients of their
/// sessions called; `false` when there is no such user.
pub fn revoke(store: &Store, sub: &Subject, audit: &AuditEvent<'_>) -> Result<bool> {
    store.change(bind!(REVOKE, sub), audit)
}
