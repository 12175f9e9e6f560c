//! What administrators read of people and write to them. Each statement that writes asks itself
//! whether the administrator reaches the person, whether these have only roles that administrators
//! may give, and whether the row is the one that was read. No statement raises the registry's
//! version.

use super::Store;
use super::error::StoreError;
use super::statement::bind;
use super::users::{UserRow, user};

/// The tenants whose people an administrator looks after; an empty name stands for no tenant.
pub type AdminReach<'a> = &'a [&'a str];

// Each way by an index of its own. chr(1114111) sorts behind every other character.
const SEARCH: &str = "
WITH typed AS MATERIALIZED (SELECT lower(normalize(:typed::text, NFKC)) COLLATE \"C\" AS first),
found AS (
    (SELECT a.sub FROM users a WHERE a.tenant = ANY(:reach::text[])
       AND a.username_key COLLATE \"C\" BETWEEN (SELECT first FROM typed) AND (SELECT first || chr(1114111) FROM typed) LIMIT :most::int8)
    UNION
    (SELECT a.sub FROM users a WHERE a.tenant = ANY(:reach::text[]) AND a.claims ? 'email'
       AND (left(lower(normalize(a.claims->>'email', NFKC)), 254)) COLLATE \"C\"
           BETWEEN (SELECT first FROM typed) AND (SELECT first || chr(1114111) FROM typed) LIMIT :most::int8)
    UNION
    SELECT a.sub FROM users a WHERE a.sub = :typed::text
)
SELECT u.* FROM found f JOIN users u ON u.sub = f.sub
WHERE u.tenant = ANY(:reach::text[])
ORDER BY u.username_key COLLATE \"C\" NULLS LAST, u.sub LIMIT :most::int8";

/// People within reach whose user name or address begins so, or whose subject this is.
pub fn search(
    store: &Store,
    reach: AdminReach<'_>,
    typed: &str,
    most: i64,
) -> Result<Vec<UserRow>, StoreError> {
    store.list(bind!(SEARCH, reach, typed, most), user)
}
