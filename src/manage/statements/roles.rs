//! Roles, as administrators see them: which there are, what they open, and taking them. Only people
//! within reach are counted and changed.

use postgres::types::ToSql;

use gatepost_protocol::words::identifiers::{ClientId, Subject};
use gatepost_protocol::words::instant::Day;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::{Result, Store, bind, column, read};

use super::admin_people::{ActingAdmin, AdminReach};

/// Roles of one page, behind which there may be more.
pub const PAGE: usize = 100;

/// So many applications are read that some roles open.
pub const MOST_OPENED: usize = 100;

pub struct ListedRole {
    pub name: String,
    /// How many people within reach have it; 1,001 stands for more than 1,000.
    pub people: i64,
}

// From each name to the next one: each tenant's part of the key of `role_members` is asked for its
// next.
const LIST: &str = "
WITH RECURSIVE listed (name, place) AS (
    SELECT :after::text COLLATE \"C\", 0
    UNION ALL
    SELECT (SELECT min(n.name) FROM (
                SELECT (SELECT min(m.role) FROM role_members m
                        WHERE m.tenant = t.name AND m.role > l.name) AS name
                FROM unnest(:reach::text[]) AS t (name)
                UNION ALL
                SELECT r.name COLLATE \"C\" FROM roles r
                UNION ALL
                SELECT g.name COLLATE \"C\" FROM unnest(:given_roles::text[]) AS g (name)
            ) AS n WHERE n.name > l.name),
           l.place + 1
    FROM listed l WHERE l.name IS NOT NULL AND l.place < 100
)
SELECT l.name, (SELECT count(*) FROM (
    SELECT FROM unnest(:reach::text[]) AS t (name)
    CROSS JOIN LATERAL (
        SELECT FROM role_members m WHERE m.tenant = t.name AND m.role = l.name LIMIT 1001
    ) AS m
    LIMIT 1001) AS c) AS people
FROM listed l WHERE l.place > 0 AND l.name IS NOT NULL ORDER BY l.place";

impl ActingAdmin<'_> {
    /// The roles behind a name, a [`PAGE`] of them: the registered ones, those of the setting, and
    /// those that people have.
    pub fn roles(&self, after: &str) -> Result<Vec<ListedRole>> {
        let bound = bind!(LIST, ..self { reach, given_roles }, after);
        self.store
            .list(bound, |row| read!(row, ListedRole { name, people; }))
    }
}

/// An application that is open to people with one of the roles that were asked for. The first row
/// has what all have in common, also where there is no application.
pub struct Opened {
    pub role: Option<String>,
    pub client_id: Option<ClientId>,
    pub name: Option<String>,
    /// The last day on which the person used it, if one is known.
    pub used_on: Option<Day>,
    /// How many applications ask for no role; 1,001 stands for more than 1,000.
    pub to_everybody: i64,
}

const OPENED: &str = "
WITH open AS NOT MATERIALIZED (
    SELECT c.client_id, c.metadata,
           jsonb_typeof(c.metadata -> 'allowed_roles') = 'array' AS asks
    FROM clients c
    WHERE c.enabled AND {opened by people}
      AND (:sub::text IS NULL AND '' = ANY(:tenants::text[])
           OR EXISTS (SELECT FROM unnest(:tenants::text[]) AS t (name) WHERE {lets tenant in}))
)
SELECT (SELECT count(*) FROM (
            SELECT FROM open o WHERE o.asks IS NOT TRUE LIMIT 1001) AS c) AS to_everybody,
       b.role, b.client_id, b.name, u.day AS used_on
FROM (VALUES (true)) AS one LEFT JOIN (
    SELECT r.role, o.client_id, coalesce(
        o.metadata ->> ('client_name#' || :language::text), o.metadata ->> 'client_name',
        o.client_id) AS name
    FROM open o JOIN (SELECT DISTINCT unnest(:roles::text[])) AS r (role)
        ON o.asks AND o.metadata -> 'allowed_roles' ? r.role
    ORDER BY o.client_id LIMIT 100
) AS b ON true
LEFT JOIN client_user_uses u ON u.sub = :sub::text AND u.client_id = b.client_id
ORDER BY b.client_id";

/// What people of these tenants may open by these roles, the first hundred, and when somebody used
/// it last. An empty name of a tenant stands for having none, and where nobody is named for every
/// one.
pub fn opened(
    store: &Store,
    sub: Option<&Subject>,
    tenants: AdminReach<'_>,
    roles: &[&str],
    language: &str,
) -> Result<Vec<Opened>> {
    let bound = bind!(OPENED, sub, tenants, roles, language);
    store.list(
        bound,
        |row| read!(row, Opened { role, client_id, name, used_on, to_everybody; }),
    )
}

const TAKE: &str = "
WITH judged AS (
    SELECT u.sub, u.claims -> 'role' AS roles FROM users u
    WHERE u.sub = ANY(:subs::text[]) AND u.xmin::text = ANY(:versions::text[])
      AND {may be changed} AND roles_of(u.claims) @> ARRAY[:role::text]
    ORDER BY u.sub FOR UPDATE
), changed AS (
    UPDATE users u
    SET claims = CASE WHEN jsonb_typeof(j.roles) = 'array' AND j.roles - :role::text <> '[]'
                      THEN jsonb_set(u.claims, '{role}', j.roles - :role::text)
                      ELSE u.claims - 'role' END,
        updated_at = clock_timestamp()
    FROM judged j
    WHERE u.sub = j.sub AND (SELECT count(*) FROM judged) = cardinality(:subs::text[])
    RETURNING u.sub
), done AS (
    SELECT FROM changed HAVING count(*) > 0
), {audited done} FROM done";

impl ActingAdmin<'_> {
    /// Takes a role from people, as they were seen in one read, which found these `versions`.
    /// `false` when one is another now, or the administrator may not act on one, or one does not
    /// have it: then it is taken from nobody.
    pub fn take_role(
        &self,
        role: &str,
        subs: &[Subject],
        versions: &[&str],
        events: &[AuditEvent<'_>],
    ) -> Result<bool> {
        let bound = bind_acting!(TAKE, self, role, subs, versions);
        Ok(!self.store.write_all_audited(bound, events)?.is_empty())
    }
}

const HOLD: &str = "
WITH held AS (
    SELECT {may be changed} AS may_be_changed
    FROM (SELECT '' AS name UNION ALL SELECT name FROM catalogue_entries WHERE kind = 'tenant') AS t
    JOIN role_members m ON m.tenant = t.name AND m.role = :role::text
    JOIN users u ON u.sub = m.sub
    LIMIT 1001 FOR UPDATE OF u
)
SELECT CASE WHEN :role::text = ANY(:given_roles::text[]) THEN 'setting'
            WHEN '' = ANY(:reach::text[]) AND {given roles} @> to_jsonb(:role::text)
                 AND count(*) <= 1000 AND bool_and(may_be_changed) IS NOT FALSE THEN ''
            ELSE 'people' END AS hindrance
FROM held";

impl ActingAdmin<'_> {
    /// What keeps an administrator from deleting a role: a `setting` that names it, or `people`:
    /// more than 1,000 have it, or one whom they do not reach or may not change, or it is not
    /// theirs to give. Else an empty text, and the people stay as they are until the change is
    /// done.
    pub fn hold_role(&self, writer: &mut RegistryWriter<'_>, role: &str) -> Result<Vec<String>> {
        let bound = bind_acting!(HOLD, self, role);
        writer.reader.list(bound, |row| column(row, "hindrance"))
    }
}

const CAN_BE_GIVEN: &str = "SELECT {given roles} @> to_jsonb(:roles::text[]) AS can_be_given";

impl ActingAdmin<'_> {
    /// Whether an administrator may give all of these roles now.
    pub fn may_give(&self, roles: &(impl ToSql + Sync)) -> Result<bool> {
        let bound = bind!(
            CAN_BE_GIVEN,
            ..self {
                given_roles,
                admin_role
            },
            roles
        );
        column(&self.store.one(bound)?, "can_be_given")
    }
}
