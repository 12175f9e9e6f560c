//! The levels of the schema: applied once each, and remembered with their checksums.

use std::iter;
use std::thread::sleep;
use std::time::{Duration, Instant};

use postgres::{Client, Transaction};
use sha2::{Digest, Sha256};

use gatepost_store::migrate::{
    LEVELS, MIGRATIONS, Migration, check_compatible, check_texts, compatible_from, level,
};
use gatepost_store::{Result, Store, StoreError, column};

/// Whoever migrates holds the advisory lock of this name: a fixed number, and the schema, since a
/// database may hold several installations.
const TRY_LOCK: &str = "SELECT pg_try_advisory_lock(7307467, hashtext(current_schema())) AS taken";

const UNLOCK: &str = "SELECT pg_advisory_unlock(7307467, hashtext(current_schema()))";

/// How often it is asked for, a tenth of a second apart.
const TRIES: usize = 300;

/// Tables that stay so small that autovacuum never counts them. Postgres took the one row of
/// `installation`, which every statement joins, for 690. Nobody waits for this, and it waits for
/// nobody: it leaves out a table that is locked.
const ANALYZE: &str = "
ANALYZE (SKIP_LOCKED) installation, leader, schema_migrations, signing_keys, clients,
        client_secrets, catalogue_entries, resource_secrets";

/// How each transaction here begins. Whoever comes to a table while a statement waits for a lock on
/// it waits behind that statement: so none waits for long.
const BEGIN: &str = "
SET LOCAL lock_timeout = '500ms';
CREATE TABLE IF NOT EXISTS schema_migrations (
    level int4 PRIMARY KEY,
    name text NOT NULL,
    sha256 bytea NOT NULL,
    compatible_from int4 NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)";

const ENCODING: &str = "SELECT current_setting('server_encoding') = 'UTF8' AS fit";

/// Asked of a database in UTF-8 alone: another one cannot read it.
const FITNESS: &str = "SELECT lower('IÀÉΣЖ') = 'iàéσж' AS fit";

const INSERT: &str =
    "INSERT INTO schema_migrations (level, name, sha256, compatible_from) VALUES ($1, $2, $3, $4)";

/// How a statement of a level runs.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// It makes an index beside those who read and write.
    Concurrently,
    /// Again and again, each time in a transaction of its own. `$1` is the `last` that it answered
    /// the time before, at first an empty text; it is done once that is null.
    InBatches,
    /// In the transaction that remembers the level.
    AtOnce,
}

fn manner_of(statement: &str) -> Manner {
    if statement.contains(" INDEX CONCURRENTLY ") {
        Manner::Concurrently
    } else if statement.contains("$1") {
        Manner::InBatches
    } else {
        Manner::AtOnce
    }
}

/// The statements of a level that run in that manner.
fn statements(migration: &Migration, manner: Manner) -> impl Iterator<Item = &'static str> {
    let mut rest = migration.sql;
    let all = iter::from_fn(move || {
        let (statement, behind) = rest.split_at(end_of_statement(rest));
        rest = behind;
        (!statement.is_empty()).then_some(statement)
    });
    all.filter(move |statement| manner_of(statement) == manner)
}

/// Behind the first line that ends with a semicolon and is not in the body of a function.
fn end_of_statement(text: &str) -> usize {
    let mut ends = text.match_indices(";\n").map(|(at, end)| at + end.len());
    let is_in_no_body = |end: &usize| text[..*end].matches("$$").count().is_multiple_of(2);
    ends.find(is_in_no_body).unwrap_or(text.len())
}

/// Applies what is missing, level by level, one process at a time; answers the names of what it
/// applied. Refused when a level that was applied has another text now, or the database cannot
/// compare user names.
pub fn migrate(client: &mut Client) -> Result<Vec<&'static str>> {
    apply(client, MIGRATIONS)
}

pub fn apply(client: &mut Client, migrations: &[Migration]) -> Result<Vec<&'static str>> {
    apply_by(client, migrations, |level| Ok(level.commit()?))
}

/// As [`migrate`], each commit watched.
pub fn migrate_watched(store: &Store, client: &mut Client) -> Result<Vec<&'static str>> {
    apply_by(client, MIGRATIONS, |level| store.commit(level))
}

fn apply_by(
    client: &mut Client,
    migrations: &[Migration],
    commit: impl Fn(Transaction<'_>) -> Result,
) -> Result<Vec<&'static str>> {
    alone(client, |client| {
        // The look is taken back: a level that fails leaves nothing.
        let missing = missing(&mut client.transaction()?, migrations)?;
        for migration in &missing {
            for statement in statements(migration, Manner::Concurrently) {
                make_index(client, statement)?;
            }
            for statement in statements(migration, Manner::InBatches) {
                fill(client, statement, &commit)?;
            }
            let mut transaction = client.transaction()?;
            transaction.batch_execute(BEGIN)?;
            for statement in statements(migration, Manner::AtOnce) {
                transaction.batch_execute(statement)?;
            }
            record(&mut transaction, migration)?;
            commit(transaction)?;
        }
        Ok(missing.iter().map(|migration| migration.name).collect())
    })
    .map_err(undone)
}

/// Tells Postgres how small the small tables are, so that it plans for that.
pub fn analyze(client: &mut Client) -> Result {
    Ok(client.batch_execute(ANALYZE)?)
}

/// Does something while no other process migrates; within it, this process may migrate. The lock is
/// asked for again and again: a statement that waited for it would hold a snapshot, and whoever
/// makes an index concurrently waits for all older snapshots.
pub fn alone<T, E: From<StoreError>>(
    client: &mut Client,
    work: impl FnOnce(&mut Client) -> Result<T, E>,
) -> Result<T, E> {
    for _ in 0..TRIES {
        let tried = client.query_one(TRY_LOCK, &[]).map_err(StoreError::from)?;
        if column(&tried, "taken")? {
            let answer = work(client);
            let freed = client.execute(UNLOCK, &[]).map_err(StoreError::from);
            return answer.and_then(|answer| Ok(freed.map(|_| answer)?));
        }
        sleep(Duration::from_millis(100));
    }
    Err(StoreError::Refused(String::from(
        "another `gatepost migrate` is at work in this database, maybe making an index: wait until \
         it is done, and run this again",
    ))
    .into())
}

/// Makes an index beside those who read and write, however long that takes. What an interrupted run
/// left is dropped first; what it finished stays.
fn make_index(client: &mut Client, statement: &str) -> Result {
    client.batch_execute("SET statement_timeout = 0; SET lock_timeout = 0")?;
    for row in client.query(INDEXES, &[&statement])? {
        let name: String = column(&row, "name")?;
        if column(&row, "is_invalid")? {
            client.batch_execute(&format!("DROP INDEX CONCURRENTLY {name}"))?;
        }
        client.batch_execute(column(&row, "statement")?)?;
    }
    Ok(client.batch_execute("RESET statement_timeout; RESET lock_timeout")?)
}

/// Runs a statement until nothing is left for it. An interrupted run begins anew: each finds done
/// what was done.
fn fill(
    client: &mut Client,
    statement: &str,
    commit: impl Fn(Transaction<'_>) -> Result,
) -> Result {
    let mut last = Some(String::new());
    while let Some(done) = last {
        let mut transaction = client.transaction()?;
        transaction.batch_execute(BEGIN)?;
        last = column(&transaction.query_one(statement, &[&done])?, "last")?;
        commit(transaction)?;
    }
    Ok(())
}

/// What to make for the statement of a level. A partitioned table cannot have an index made
/// concurrently: each partition gets one of its own, and the table's takes these over at once.
const INDEXES: &str = "
WITH wanted AS (
    SELECT part[1] AS make, part[2] AS name, part[3] AS home, part[4] AS columns,
           EXISTS (SELECT FROM pg_partitioned_table
                   WHERE partrelid = to_regclass(part[3])) AS in_partitions
    FROM regexp_match(
        $1, '(CREATE (?:UNIQUE )?INDEX) CONCURRENTLY ([a-z0-9_]+) ON ([a-z0-9_]+) (.*)') AS part
), pieces AS (
    SELECT 1 AS place, make || ' CONCURRENTLY' AS make, relid::regclass || '_' || name AS name,
           relid::regclass::text AS home, columns
    FROM wanted, pg_partition_tree(to_regclass(home))
    WHERE isleaf AND to_regclass(wanted.name) IS NULL
  UNION ALL
    SELECT 2, CASE WHEN in_partitions THEN 'SET LOCAL lock_timeout = ''500ms''; ' || make
                   ELSE make || ' CONCURRENTLY' END,
           name, home, columns
    FROM wanted
)
SELECT name, make || ' IF NOT EXISTS ' || name || ' ON ' || home || ' ' || columns AS statement,
       EXISTS (SELECT FROM pg_index
               WHERE indexrelid = to_regclass(name) AND NOT indisvalid) AS is_invalid
FROM pieces ORDER BY place, name";

/// A lock that did not come in time says so in words.
fn undone(error: StoreError) -> StoreError {
    let StoreError::Conflict(cause) = error else {
        return error;
    };
    StoreError::Conflict(format!(
        "{cause}: a table was in use for longer than half a second, as by a backup; this level is \
         undone: run it again"
    ))
}

fn record(transaction: &mut Transaction<'_>, migration: &Migration) -> Result {
    let compatible_from = compatible_from(migration.sql).ok_or_else(|| {
        StoreError::Refused(format!(
            "{} does not begin with -- compatible_from: N",
            migration.name
        ))
    })?;
    let checksum = Sha256::digest(migration.sql);
    transaction.execute(
        INSERT,
        &[
            &migration.level,
            &migration.name,
            &checksum.as_slice(),
            &compatible_from,
        ],
    )?;
    Ok(())
}

#[derive(Debug, PartialEq)]
pub struct Rehearsed {
    pub name: &'static str,
    pub took: Duration,
    /// What it does to those who use the database meanwhile, and by which statement: a line each.
    pub told: Vec<String>,
}

/// Runs what is missing and takes all of it back. Holds the locks it tells of for as long as it
/// takes. Indexes that are made concurrently and what goes in batches are left out.
pub fn rehearse(client: &mut Client, migrations: &[Migration]) -> Result<Vec<Rehearsed>> {
    alone(client, |client| {
        let mut transaction = client.transaction()?;
        let present: Vec<u32> = column(&transaction.query_one(TABLES, &[])?, "present")?;
        let mut known = Vec::new();
        let mut rehearsed = Vec::new();
        for migration in missing(&mut transaction, migrations)? {
            let began = Instant::now();
            let told = rehearse_level(&mut transaction, migration, &present, &mut known)?;
            rehearsed.push(Rehearsed {
                name: migration.name,
                took: began.elapsed(),
                told,
            });
        }
        transaction.rollback()?;
        Ok(rehearsed)
    })
    .map_err(undone)
}

/// `present`: the tables that were there before. `known`: the effects on them so far, since a lock
/// lasts until the end.
fn rehearse_level(
    transaction: &mut Transaction<'_>,
    migration: &Migration,
    present: &[u32],
    known: &mut Vec<String>,
) -> Result<Vec<String>> {
    let mut told = Vec::new();
    for index in statements(migration, Manner::Concurrently) {
        told.push(format!("nobody would wait: {}", first_line(index)));
    }
    for batches in statements(migration, Manner::InBatches) {
        told.push(format!(
            "a thousand rows at a time, for whose changes others would wait: {}",
            first_line(batches)
        ));
    }
    for statement in statements(migration, Manner::AtOnce) {
        transaction.batch_execute(statement)?;
        for row in transaction.query(EFFECTS, &[&present, &*known])? {
            let effect: String = column(&row, "effect")?;
            told.push(format!("{effect}: {}", first_line(statement)));
            known.push(effect);
        }
    }
    record(transaction, migration)?;
    Ok(told)
}

fn first_line(statement: &str) -> &str {
    statement
        .lines()
        .find(|line| !line.is_empty() && !line.starts_with("--"))
        .unwrap_or_default()
}

/// All but our own table of levels, which serving processes read only when they start.
const TABLES: &str = "
SELECT coalesce(array_agg(oid), '{}') AS present FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
  AND relname <> 'schema_migrations'";

/// Locks of this transaction that others wait for, and tables that it has read from end to end:
/// that takes the longer, the more rows there are, and to rewrite a table is to read it.
const EFFECTS: &str = "
SELECT effect FROM (
    SELECT 1 AS place, l.relation::regclass || ': ' || CASE l.mode
               WHEN 'AccessExclusiveLock' THEN 'everybody'
               WHEN 'RowExclusiveLock' THEN 'who changes the same rows'
               ELSE 'writers' END || ' would wait meanwhile (' || l.mode || ')' AS effect
    FROM pg_locks l
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted
      AND l.relation = ANY($1::oid[])
      AND l.mode IN ('RowExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                     'AccessExclusiveLock')
  UNION ALL
    SELECT 2, present::regclass || ': all of it would be read' FROM unnest($1::oid[]) AS present
    WHERE pg_stat_get_xact_numscans(present) > 0
) AS found
WHERE effect <> ALL($2::text[]) ORDER BY place, effect";

/// The migrations that were not applied, in order.
fn missing<'a>(
    transaction: &mut Transaction<'_>,
    migrations: &'a [Migration],
) -> Result<Vec<&'a Migration>> {
    check_fitness(transaction)?;
    transaction.batch_execute(BEGIN)?;
    let applied = transaction
        .query(LEVELS, &[])?
        .iter()
        .map(level)
        .collect::<Result<Vec<_>, _>>()?;
    check_texts(&applied, migrations)?;
    check_compatible(
        &applied,
        migrations
            .iter()
            .map(|migration| migration.level)
            .max()
            .unwrap_or(0),
    )?;
    Ok(migrations
        .iter()
        .filter(|migration| applied.iter().all(|level| level.level != migration.level))
        .collect())
}

/// User names are told apart by `lower(normalize(.., NFKC))`, which a C or Turkish locale would do
/// differently.
fn check_fitness(transaction: &mut Transaction<'_>) -> Result {
    if column(&transaction.query_one(ENCODING, &[])?, "fit")?
        && column(&transaction.query_one(FITNESS, &[])?, "fit")?
    {
        return Ok(());
    }
    Err(StoreError::Refused(String::from(
        "the database must be created with ENCODING 'UTF8' and an LC_CTYPE that knows all letters, \
         such as C.UTF-8",
    )))
}
