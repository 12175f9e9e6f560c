//! Lists of people in the order of their names: everybody within reach, or those who have the words
//! and the role that were asked for.

use postgres::Row;

use gatepost_protocol::words::identifiers::Subject;
use gatepost_store::{Result, Store, bind, column, read};

use super::admin_people::AdminReach;

/// How many people are looked at for one page, whoever of them is what was asked for.
pub const MOST_LOOKED_AT: i64 = 2_000;

/// What is asked for. Texts are free of NUL, and empty where nothing is asked.
#[derive(Clone, Copy, Default)]
pub struct PeopleAsked<'a> {
    pub tenants: AdminReach<'a>,
    /// Beginnings of words of the name, the user name or the address.
    pub typed: &'a str,
    /// One of these.
    pub roles: Option<&'a [&'a str]>,
    /// `enabled`, `invited`, `disabled`, `no-second-factor` or `not-signed-in` (for 90 days);
    /// `locked` is for the caller to look up.
    pub state: &'a str,
}

/// Somebody who was looked at.
pub struct LookedAt {
    pub sub: Subject,
    pub is_asked_for: bool,
    /// Whether there may be more people than those who were looked at.
    pub is_cut: bool,
}

fn looked_at(row: &Row) -> Result<LookedAt> {
    read!(row, LookedAt { sub, is_asked_for, is_cut; })
}

/// Where a page begins: behind a person, or before them with `is_backward`, the nearest first.
#[derive(Clone, Copy)]
pub struct PeopleCursor<'a> {
    /// The person's subject; empty for those from the first person on.
    pub sub: &'a str,
    pub is_backward: bool,
}

// Of each tenant its own part of the index `users_by_name`. Without the person whose subject the
// cursor is, it begins at the first.
const EVERYBODY_BEHIND: &str = "
WITH cursor AS MATERIALIZED (
    (SELECT {name key} AS name_key, u.sub FROM users u
     WHERE u.sub = :cursor::text AND u.tenant = ANY(:reach::text[]))
    UNION ALL SELECT '', '' LIMIT 1
)
SELECT {looked at}
FROM unnest(:reach::text[]) AS t (name)
CROSS JOIN LATERAL (
    SELECT u.*, {name key} AS name_key FROM users u
    WHERE u.tenant = t.name
      AND ({name key}, u.sub) > ((SELECT name_key FROM cursor), (SELECT sub FROM cursor))
    ORDER BY {name key}, u.sub LIMIT :most::int8
) AS u
ORDER BY u.name_key, u.sub LIMIT :most::int8";

const EVERYBODY_BEFORE: &str = "
WITH cursor AS MATERIALIZED (
    SELECT {name key} AS name_key, u.sub FROM users u
    WHERE u.sub = :cursor::text AND u.tenant = ANY(:reach::text[])
)
SELECT {looked at}
FROM unnest(:reach::text[]) AS t (name)
CROSS JOIN LATERAL (
    SELECT u.*, {name key} AS name_key FROM users u
    WHERE u.tenant = t.name
      AND ({name key}, u.sub) < ((SELECT name_key FROM cursor), (SELECT sub FROM cursor))
    ORDER BY {name key} DESC, u.sub DESC LIMIT :most::int8
) AS u
ORDER BY u.name_key DESC, u.sub DESC LIMIT :most::int8";

/// People within reach behind the one of that subject, or from the first on; or before that person,
/// the nearest first, and nobody where that person is not there. Words and roles count for nothing.
pub fn everybody(
    store: &Store,
    reach: AdminReach<'_>,
    cursor: PeopleCursor<'_>,
    state: &str,
    most: i64,
) -> Result<Vec<LookedAt>> {
    let mut bound = bind!(EVERYBODY_BEHIND, reach, cursor = cursor.sub, state, most);
    if cursor.is_backward {
        bound.sql = EVERYBODY_BEFORE;
    }
    store.list(bound, looked_at)
}

// Whoever has the rarest of the words is asked for the others. chr(1114111)
// sorts behind every other character. Each limit stands with its order in a subselect of one
// tenant: otherwise the whole table is read.
const FIND: &str = "
WITH asked AS MATERIALIZED (
    SELECT w.word, w.word || chr(1114111) AS last,
           (SELECT count(*) FROM unnest(:tenants::text[]) AS t (name)
            CROSS JOIN LATERAL (
                SELECT FROM user_words o
                WHERE o.tenant = t.name AND o.word BETWEEN w.word AND w.word || chr(1114111)
                ORDER BY o.word LIMIT :most::int8
            ) AS c) AS people
    FROM unnest(words_of(:typed::text)) AS w (word)
    ORDER BY length(w.word) DESC LIMIT 8
), rarest AS MATERIALIZED (
    SELECT word, last FROM asked ORDER BY people, word LIMIT 1
), found AS MATERIALIZED (
    (SELECT o.sub FROM rarest l CROSS JOIN unnest(:tenants::text[]) AS t (name)
     CROSS JOIN LATERAL (
         SELECT o.sub FROM user_words o
         WHERE o.tenant = t.name AND o.word BETWEEN l.word AND l.last
         ORDER BY o.word LIMIT :most::int8
     ) AS o
     LIMIT :most::int8)
    UNION ALL
    (SELECT m.sub FROM {roles asked for}
     CROSS JOIN LATERAL (
         {members of role}
         ORDER BY m.sub LIMIT :most::int8
     ) AS m
     WHERE NOT EXISTS (SELECT FROM asked) LIMIT :most::int8)
    UNION ALL
    SELECT :typed::text
)
SELECT u.sub, (SELECT count(*) FROM found) > :most::int8 AS is_cut, {in state} AS is_asked_for
FROM (SELECT DISTINCT sub FROM found) AS f JOIN users u ON u.sub = f.sub
WHERE u.tenant = ANY(:tenants::text[])
  AND (u.sub = :typed::text OR NOT EXISTS (
      SELECT FROM asked a WHERE a.word <> (SELECT word FROM rarest) AND NOT EXISTS (
          SELECT FROM user_words o WHERE o.sub = u.sub AND o.word BETWEEN a.word AND a.last)))
  AND (:roles::text[] IS NULL OR EXISTS (
      SELECT FROM role_members m
      WHERE m.tenant = u.tenant AND m.role = ANY(:roles::text[]) AND m.sub = u.sub))
ORDER BY {name key}, u.sub";

/// The people of these tenants who have one of the roles and a word that begins so for each word
/// that was typed; or whose subject was typed.
pub fn find(store: &Store, asked: PeopleAsked<'_>) -> Result<Vec<LookedAt>> {
    let bound = bind!(
        FIND,
        ..asked {
            tenants,
            typed,
            roles,
            state
        },
        most = MOST_LOOKED_AT
    );
    store.list(bound, looked_at)
}

// As many as there may be cannot be sorted by their names for each page.
const MEMBERS_BEHIND: &str = "
SELECT {looked at}
FROM (
    SELECT DISTINCT m.sub FROM {roles asked for}
    CROSS JOIN LATERAL (
        {members of role} AND m.sub > :cursor::text
        ORDER BY m.sub LIMIT :most::int8
    ) AS m
    ORDER BY m.sub LIMIT :most::int8
) AS f JOIN users u ON u.sub = f.sub
ORDER BY u.sub";

const MEMBERS_BEFORE: &str = "
SELECT {looked at}
FROM (
    SELECT DISTINCT m.sub FROM {roles asked for}
    CROSS JOIN LATERAL (
        {members of role} AND m.sub < :cursor::text
        ORDER BY m.sub DESC LIMIT :most::int8
    ) AS m
    ORDER BY m.sub DESC LIMIT :most::int8
) AS f JOIN users u ON u.sub = f.sub
ORDER BY u.sub DESC";

/// Those who have one of the roles, in the order of their subjects, behind that one or before it,
/// the nearest first. Words count for nothing.
pub fn members(
    store: &Store,
    asked: PeopleAsked<'_>,
    cursor: PeopleCursor<'_>,
    most: i64,
) -> Result<Vec<LookedAt>> {
    let mut bound = bind!(
        MEMBERS_BEHIND,
        ..asked {
            tenants,
            roles,
            state
        },
        cursor = cursor.sub,
        most
    );
    if cursor.is_backward {
        bound.sql = MEMBERS_BEFORE;
    }
    store.list(bound, looked_at)
}

const COUNT_MEMBERS: &str = "
SELECT count(DISTINCT m.sub) AS people FROM {roles asked for}
CROSS JOIN LATERAL (
    {members of role}
    ORDER BY m.sub LIMIT :most::int8
) AS m";

/// How many people have one of the roles; more than `most` may be told as any number above it.
pub fn count_members(store: &Store, asked: PeopleAsked<'_>, most: i64) -> Result<i64> {
    column(
        &store.one(bind!(COUNT_MEMBERS, ..asked { tenants, roles }, most))?,
        "people",
    )
}

const COUNT: &str = "
SELECT count(*) AS people FROM (
    SELECT FROM unnest(:reach::text[]) AS t (name)
    CROSS JOIN LATERAL (
        SELECT FROM users u WHERE u.tenant = t.name LIMIT :most::int8
    ) AS u
    LIMIT :most::int8
) AS c";

/// How many people there are within reach, up to `most`.
pub fn count(store: &Store, reach: AdminReach<'_>, most: i64) -> Result<i64> {
    column(&store.one(bind!(COUNT, reach, most))?, "people")
}
