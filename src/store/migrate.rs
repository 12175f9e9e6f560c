//! The schema's levels: `sql/*.sql`, embedded, forward only, each applied once and remembered with its checksum.

use std::time::{Duration, Instant};

use postgres::{Client, Row, Transaction};
use sha2::{Digest, Sha256};

use super::Store;
use super::error::StoreError;
use super::values::{column, read};

#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its number: 1 and up, without gaps.
    pub level: i32,
    pub name: &'static str,
    /// Its text; the first line reads `-- compatible_from: N`, N being the oldest level whose binary works with this one.
    pub sql: &'static str,
}

pub const MIGRATIONS: &[Migration] =
    &[Migration { level: 1, name: "0001_foundation.sql", sql: include_str!("../../sql/0001_foundation.sql") }];

/// A migration holds the advisory lock of this name (a fixed number, and the schema, since a database may hold several
/// installations) for the length of its transaction.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(7307467, hashtext(current_schema()))";

const CREATE_TABLE: &str = "
CREATE TABLE IF NOT EXISTS schema_migrations (
    level int4 PRIMARY KEY,
    name text NOT NULL,
    sha256 bytea NOT NULL,
    compatible_from int4 NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)";

const FITNESS: &str = "SELECT current_setting('server_encoding') = 'UTF8' AND lower('IÀÉΣЖ') = 'iàéσж' AS fit";

const INSERT: &str = "INSERT INTO schema_migrations (level, name, sha256, compatible_from) VALUES ($1, $2, $3, $4)";

/// Applies what is missing, all in one transaction, one process at a time; answers the names of what it applied.
/// Refused when a level that was applied has another text now, or the database cannot compare user names.
pub fn migrate(client: &mut Client) -> Result<Vec<&'static str>, StoreError> {
    apply(client, MIGRATIONS)
}

pub fn apply(client: &mut Client, migrations: &[Migration]) -> Result<Vec<&'static str>, StoreError> {
    let mut transaction = client.transaction()?;
    let missing = missing(&mut transaction, migrations)?;
    let names =
        missing.into_iter().map(|migration| apply_one(&mut transaction, migration)).collect::<Result<_, _>>()?;
    transaction.commit()?;
    Ok(names)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsed {
    pub name: &'static str,
    pub took: Duration,
    /// Tables with rows in use that others had to wait for meanwhile, each with the strongest lock's name.
    pub locks: Vec<(String, String)>,
}

/// Runs what is missing and takes all of it back. Holds the locks it tells of for as long as it takes.
pub fn rehearse(client: &mut Client, migrations: &[Migration]) -> Result<Vec<Rehearsed>, StoreError> {
    let mut transaction = client.transaction()?;
    let present = transaction.query(RELATIONS, &[])?;
    let present = present.iter().map(|row| column(row, "oid")).collect::<Result<Vec<u32>, _>>()?;
    let mut rehearsed = Vec::new();
    for migration in missing(&mut transaction, migrations)? {
        let started = Instant::now();
        let name = apply_one(&mut transaction, migration)?;
        let took = started.elapsed();
        let locks = transaction.query(LOCKS, &[&present])?;
        let locks = locks.iter().map(|row| Ok((column(row, "name")?, column(row, "mode")?)));
        rehearsed.push(Rehearsed { name, took, locks: locks.collect::<Result<_, StoreError>>()? });
    }
    transaction.rollback()?;
    Ok(rehearsed)
}

const RELATIONS: &str =
    "SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')";

/// Locks of this transaction that keep others from writing, on tables that were there before.
const LOCKS: &str = "
SELECT l.relation::regclass::text AS name, max(l.mode) AS mode
FROM pg_locks l
WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted AND l.relation = ANY($1::oid[])
  AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
GROUP BY l.relation
ORDER BY 1";

/// The migrations that were not applied, in order. Takes the lock, so no other process migrates until the transaction ends.
fn missing<'a>(
    transaction: &mut Transaction<'_>,
    migrations: &'a [Migration],
) -> Result<Vec<&'a Migration>, StoreError> {
    transaction.batch_execute(MIGRATION_LOCK)?;
    check_fitness(transaction)?;
    transaction.batch_execute(CREATE_TABLE)?;
    let applied = transaction.query(LEVELS, &[])?.iter().map(level).collect::<Result<Vec<_>, _>>()?;
    check_texts(&applied, migrations)?;
    check_compatible(&applied, migrations.iter().map(|migration| migration.level).max().unwrap_or(0))?;
    Ok(migrations.iter().filter(|migration| applied.iter().all(|level| level.level != migration.level)).collect())
}

fn apply_one(transaction: &mut Transaction<'_>, migration: &Migration) -> Result<&'static str, StoreError> {
    let compatible_from = compatible_from(migration.sql)
        .ok_or_else(|| StoreError::Refused(format!("{} does not begin with -- compatible_from: N", migration.name)))?;
    transaction.batch_execute(migration.sql)?;
    let checksum = Sha256::digest(migration.sql);
    transaction.execute(INSERT, &[&migration.level, &migration.name, &checksum.as_slice(), &compatible_from])?;
    Ok(migration.name)
}

/// User names are told apart by `lower(normalize(.., NFKC))`, which a C or Turkish locale would do differently.
fn check_fitness(transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
    let fit: bool = column(&transaction.query_one(FITNESS, &[])?, "fit")?;
    if fit {
        return Ok(());
    }
    Err(StoreError::Refused(String::from(
        "the database must be created with ENCODING 'UTF8' and an LC_CTYPE that knows all letters, such as C.UTF-8",
    )))
}

const LEVELS: &str = "SELECT level, sha256, compatible_from FROM schema_migrations ORDER BY level";

struct AppliedLevel {
    level: i32,
    sha256: Vec<u8>,
    compatible_from: i32,
}

fn level(row: &Row) -> Result<AppliedLevel, StoreError> {
    read!(row, AppliedLevel { level, sha256, compatible_from; })
}

const HAS_TABLE: &str = "SELECT to_regclass('schema_migrations') IS NOT NULL AS present";

/// Whether this binary may serve with the schema as it stands; the refusal says what to do.
pub fn check_level(store: &Store) -> Result<(), StoreError> {
    let present: bool = column(&store.one(HAS_TABLE, &[])?, "present")?;
    let applied: Vec<AppliedLevel> = if present { store.list(LEVELS, &[], level)? } else { Vec::new() };
    check_texts(&applied, MIGRATIONS)?;
    let own = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    let newest = applied.last().map_or(0, |newest| newest.level);
    if newest < own {
        let cause = format!("the database stands at schema level {newest} of {own}: run `gatepost migrate`");
        return Err(StoreError::Refused(cause));
    }
    check_compatible(&applied, own)
}

/// A later program's schema may be one that this one must not touch.
fn check_compatible(applied: &[AppliedLevel], own_level: i32) -> Result<(), StoreError> {
    match applied.last() {
        Some(newest) if newest.compatible_from > own_level => Err(StoreError::Refused(format!(
            "the database stands at schema level {}, which needs a gatepost that knows level {}; \
             this one knows {own_level}: put the newer one in its place",
            newest.level, newest.compatible_from
        ))),
        Some(_) | None => Ok(()),
    }
}

/// A released file is never edited: the applied text must equal the embedded one.
fn check_texts(applied: &[AppliedLevel], migrations: &[Migration]) -> Result<(), StoreError> {
    for level in applied {
        let known = migrations.iter().find(|migration| migration.level == level.level);
        if known.is_some_and(|migration| Sha256::digest(migration.sql).as_slice() != level.sha256) {
            return Err(StoreError::Refused(format!(
                "schema level {} was applied with another text than this gatepost has: it comes from another build; use that one",
                level.level
            )));
        }
    }
    Ok(())
}

fn compatible_from(sql: &str) -> Option<i32> {
    sql.lines().next()?.strip_prefix("-- compatible_from: ")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_numbered_without_gaps_and_name_what_they_work_with() {
        for (index, migration) in MIGRATIONS.iter().enumerate() {
            assert_eq!(usize::try_from(migration.level).unwrap(), index + 1);
            assert!(migration.name.starts_with(&format!("{:04}_", migration.level)));
            assert!(compatible_from(migration.sql).unwrap() <= migration.level);
        }
    }

    #[test]
    fn every_file_of_the_sql_directory_is_embedded() {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sql")).unwrap();
        assert_eq!(files.count(), MIGRATIONS.len());
    }
}
