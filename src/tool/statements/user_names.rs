//! Users by their names, and the keys that names are compared by.

use super::installation_changes::keep_lowered;
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_store::registry_writer::{RegistryReader, RegistryWriter};
use gatepost_store::users::{self, UserRow};
use gatepost_store::{Result, bind, read, tenant_text};

const FIND_USER_BY_NAME: &str = "
SELECT u.*, {has ended} FROM users u
WHERE u.tenant = :tenant::text
  AND (u.username_key = lower(normalize(:username::text, NFKC))
       OR (u.username IS NULL AND u.sub = :username::text))
ORDER BY u.username IS NULL LIMIT 1 FOR UPDATE";

/// Reads a user by canonical name within a tenant, or one without a name by subject, who then
/// stays so until this change is done.
pub fn user_by_name(
    writer: &mut RegistryWriter<'_>,
    tenant: Option<&TenantName>,
    username: &str,
) -> Result<Option<UserRow>> {
    let tenant = tenant_text(tenant);
    let rows = writer
        .reader
        .read(bind!(FIND_USER_BY_NAME, tenant, username))?;
    rows.first().map(users::user).transpose()
}

/// Users of one tenant whose names are the same in this database.
pub struct Clash {
    pub subs: Vec<Subject>,
    pub usernames: Vec<String>,
}

const CLASHES: &str = "
SELECT array_agg(u.sub ORDER BY u.sub) AS subs, array_agg(u.username ORDER BY u.sub) AS usernames
FROM users u WHERE u.username IS NOT NULL
GROUP BY u.tenant, lower(normalize(u.username, NFKC)) HAVING count(*) > 1
ORDER BY subs LIMIT 100";

/// Who would have one key, as this database turns capitals into small letters; the first
/// hundred of them. Reads all users, however long that takes.
pub fn clashes(reader: &mut RegistryReader<'_>) -> Result<Vec<Clash>> {
    reader.run("SET LOCAL statement_timeout = 0")?;
    reader.list(bind!(CLASHES), |row| read!(row, Clash { subs, usernames; }))
}

// First to what nobody else has: a key that one gives up may become another's.
const FREE_KEYS: &str = "
UPDATE users SET username_key = ' ' || sub
WHERE username_key <> lower(normalize(username, NFKC))";

const KEY_NAMES: &str = "
UPDATE users SET username_key = lower(normalize(username, NFKC))
WHERE username_key <> lower(normalize(username, NFKC))";

/// Makes the keys of all user names anew; answers how many changed.
pub fn key_names(writer: &mut RegistryWriter<'_>) -> Result<u64> {
    writer.execute(bind!(FREE_KEYS))?;
    let changed = writer.execute(bind!(KEY_NAMES))?;
    keep_lowered(writer)?;
    Ok(changed)
}

/// Makes the indexes of users anew, among them that of addresses, which keeps them in small
/// letters. Nobody can use them meanwhile.
pub fn index_users(writer: &mut RegistryWriter<'_>) -> Result {
    writer.reader.run("REINDEX TABLE users")
}
