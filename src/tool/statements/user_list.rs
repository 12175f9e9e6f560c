//! Users as operators list and revoke them.

use gatepost_protocol::words::identifiers::Subject;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::users::{UserRow, user};
use gatepost_store::{Result, Store, bind, column};

const LIST: &str =
    "SELECT u.* FROM users u WHERE u.sub > :after::text ORDER BY u.sub LIMIT :limit::int8";

/// Users by subject, at most `limit` behind `after` (empty: from the beginning).
pub fn list(store: &Store, after: &str, limit: i64) -> Result<Vec<UserRow>> {
    store.list(bind!(LIST, after, limit), user)
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
