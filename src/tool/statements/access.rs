//! Who may open which application.

use postgres::Row;

use gatepost_store::{Result, Store, bind, column};

const APPLICATIONS: &str = "
SELECT c.client_id FROM clients c
WHERE c.enabled AND {opened by people}
  AND (:client_id::text IS NULL OR c.client_id = :client_id::text)
ORDER BY c.client_id";

/// The applications that people sign in to, or the one of that name.
pub fn applications(store: &Store, client_id: Option<&str>) -> Result<Vec<String>> {
    let bound = bind!(APPLICATIONS, client_id);
    store.list(bound, |row| column(row, "client_id"))
}

const CALLED: &str = "
SELECT h.sub FROM users h
WHERE h.sub = :name::text OR h.username_key = lower(normalize(:name::text, NFKC))
   OR h.claims ? 'email' AND h.password_hash IS NOT NULL AND {address counts}
      AND left(lower(normalize(h.claims ->> 'email', NFKC)), 254) COLLATE \"C\"
          = left(lower(normalize(:name::text, NFKC)), 254)";

/// The subjects of all who are called so, in whatever tenant, or sign in by this address.
pub fn called(store: &Store, name: &str) -> Result<Vec<String>> {
    store.list(bind!(CALLED, name), |row| column(row, "sub"))
}

/// The columns of a row, and at the end the tenant, which the report does not have.
pub const COLUMNS: [&str; 9] = [
    "client_id",
    "application",
    "user_name",
    "name",
    "sub",
    "role",
    "since",
    "last_used",
    "tenant",
];

/// Rows of one answer, behind which there may be more.
pub const PART: usize = 1_000;

// By role, tenant and subject, each in its part of the key of `role_members`.
const OPENERS: &str = "
SELECT c.client_id, coalesce(c.metadata ->> 'client_name', c.client_id) AS application, p.*
FROM clients c CROSS JOIN LATERAL (
    SELECT '*' AS user_name, '' AS name, '*' AS sub, '' AS role, '' AS since,
           coalesce((SELECT to_char(DATE '1970-01-01' + o.day, 'YYYY-MM-DD')
                     FROM client_uses o WHERE o.client_id = c.client_id), '') AS last_used,
           '' AS tenant
    WHERE jsonb_typeof(c.metadata -> 'allowed_roles') IS DISTINCT FROM 'array'
      AND (:subs::text[] IS NULL OR EXISTS (
          SELECT FROM users u CROSS JOIN LATERAL (SELECT u.tenant AS name) AS t
          WHERE {may act} AND u.sub = ANY(:subs::text[]) AND {lets tenant in}))
    UNION ALL
    SELECT m.* FROM jsonb_array_elements_text(
        CASE jsonb_typeof(c.metadata -> 'allowed_roles') WHEN 'array'
        THEN c.metadata -> 'allowed_roles' ELSE '[]' END) AS r (role)
    CROSS JOIN (SELECT '' AS name
                UNION ALL SELECT name FROM catalogue_entries WHERE kind = 'tenant') AS t
    CROSS JOIN LATERAL (
        SELECT coalesce(u.username, ''), coalesce(u.claims ->> 'name', ''), u.sub, m.role,
               coalesce(to_char(m.since AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), ''),
               coalesce(to_char(DATE '1970-01-01' + o.day, 'YYYY-MM-DD'), ''), m.tenant
        FROM role_members m JOIN users u ON u.sub = m.sub
        LEFT JOIN client_user_uses o ON o.sub = m.sub AND o.client_id = c.client_id
        WHERE m.tenant = t.name AND m.role = r.role AND {may act}
          AND (:subs::text[] IS NULL OR u.sub = ANY(:subs::text[]))
          AND m.sub > CASE WHEN (r.role, t.name) = (:role::text, :tenant::text)
                           THEN :sub::text ELSE '' END
        ORDER BY m.sub LIMIT 1000
    ) AS m
    WHERE (r.role COLLATE \"C\", t.name COLLATE \"C\") >= (:role::text, :tenant::text)
      AND {lets tenant in}
) AS p
WHERE c.client_id = :client_id::text
ORDER BY p.role COLLATE \"C\", p.tenant COLLATE \"C\", p.sub LIMIT 1000";

/// Who is behind whom in the report of an application.
#[derive(Default)]
pub struct Behind {
    pub role: String,
    pub tenant: String,
    pub sub: String,
}

/// A [`PART`] of those who may open an application, or of those of them that are named, by the
/// [`COLUMNS`].
pub fn openers(
    store: &Store,
    client_id: &str,
    subs: Option<&[String]>,
    behind: &Behind,
) -> Result<Vec<[String; 9]>> {
    let bound = bind!(OPENERS, ..behind { role, tenant, sub }, client_id, subs);
    store.list(bound, cells)
}

fn cells(row: &Row) -> Result<[String; 9]> {
    let mut cells = <[String; 9]>::default();
    for (cell, name) in cells.iter_mut().zip(COLUMNS) {
        *cell = column(row, name)?;
    }
    Ok(cells)
}
