//! A role that goes: who asks for it, who has it, and taking it from them.

use postgres::Row;
use postgres::types::Json;
use serde_json::Value;

use gatepost_protocol::words::identifiers::Subject;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::{Result, Store, bind, column, read};

const CLIENTS_THAT_ASK: &str = "
SELECT client_id FROM clients
WHERE jsonb_path_exists(metadata, '$.**.allowed_roles[*] ? (@ == $role)',
                        jsonb_build_object('role', :role::text))
ORDER BY client_id";

/// The `client_id`s that name the role in `allowed_roles`.
pub fn clients_that_ask(writer: &mut RegistryWriter<'_>, role: &str) -> Result<Vec<String>> {
    let bound = bind!(CLIENTS_THAT_ASK, role);
    writer.reader.list(bound, |row| column(row, "client_id"))
}

/// Of all tenants, through each one's part of the key.
const MEMBERS: &str = "
SELECT count(*) AS members
FROM (SELECT '' AS name UNION ALL SELECT name FROM catalogue_entries WHERE kind = 'tenant') AS t
JOIN role_members m ON m.tenant = t.name AND m.role = :role::text";

pub fn count_members(store: &Store, role: &str) -> Result<i64> {
    column(&store.one(bind!(MEMBERS, role))?, "members")
}

/// Somebody who lost the role.
pub struct FormerMember {
    pub sub: Subject,
    /// The claim `role`, as it was.
    pub before: Value,
    /// As it is; `None` where it was the only one.
    pub after: Option<Value>,
}

const TAKE_FROM_SOME: &str = "
WITH batch AS (
    SELECT u.sub, u.claims -> 'role' AS before
    FROM (SELECT '' AS name UNION ALL SELECT name FROM catalogue_entries WHERE kind = 'tenant') AS t
    JOIN role_members m ON m.tenant = t.name AND m.role = :role::text
    JOIN users u ON u.sub = m.sub
    LIMIT 500 FOR UPDATE OF u
)
UPDATE users u
SET claims = CASE WHEN jsonb_typeof(b.before) = 'array' AND b.before - :role::text <> '[]'
                  THEN jsonb_set(u.claims, '{role}', b.before - :role::text)
                  ELSE u.claims - 'role' END,
    updated_at = clock_timestamp()
FROM batch b WHERE u.sub = b.sub
RETURNING u.sub, b.before, u.claims -> 'role' AS after";

/// Takes the role from 500 people who have it, or fewer; from nobody, once nobody has it.
pub fn take_from_some(writer: &mut RegistryWriter<'_>, role: &str) -> Result<Vec<FormerMember>> {
    let rows = writer.query(bind!(TAKE_FROM_SOME, role))?;
    rows.iter().map(former_member).collect()
}

fn former_member(row: &Row) -> Result<FormerMember> {
    let before = column::<Json<Value>>(row, "before")?.0;
    let after = column::<Option<Json<Value>>>(row, "after")?.map(|Json(after)| after);
    read!(row, FormerMember { sub; before, after })
}
