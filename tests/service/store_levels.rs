//! What `migrate` does beside serving processes: levels that no program has yet, over a schema in
//! use.

use std::collections::BTreeSet;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use gatepost::store::StoreError;
use gatepost::store::migrate::{self, MIGRATIONS, Migration};
use gatepost::tool::statements::schema::{self, Rehearsed};
use postgres::Client;

use crate::support::claims::Says;
use crate::support::postgres::TestDatabase;
use crate::support::tables::rows_of;
use crate::support::waiting::{SOON, await_that};

/// The levels of today, and one more of that text.
fn levels_with(sql: &'static str) -> Vec<Migration> {
    let level = i32::try_from(MIGRATIONS.len() + 1).unwrap();
    let next = Migration {
        level,
        name: "9999_next.sql",
        sql,
    };
    [MIGRATIONS, &[next]].concat()
}

/// The text of a level with those statements.
fn level_of(sql: &str) -> &'static str {
    format!("-- compatible_from: 1\n{sql};\n").leak()
}

fn apply(database: &TestDatabase, levels: &[Migration]) -> Vec<&'static str> {
    schema::apply(&mut database.client(), levels).unwrap()
}

/// Applies them on a connection of its own, as a program beside would.
fn applying(
    database: &TestDatabase,
    levels: &[Migration],
) -> JoinHandle<Result<Vec<&'static str>, StoreError>> {
    let (mut client, levels) = (database.client(), levels.to_vec());
    spawn(move || schema::apply(&mut client, &levels))
}

/// Whether an index of that name is valid; `None` where there is none.
fn validity(client: &mut Client, name: &str) -> Option<bool> {
    let asked = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)";
    let found = client.query_opt(asked, &[&name]).unwrap();
    found.map(|row| row.get(0))
}

fn await_begun(client: &mut Client, name: &str) {
    await_that("the index is begun", SOON, || {
        validity(client, name) == Some(false)
    });
}

const BY_SCORE: &str = "-- compatible_from: 1
CREATE INDEX CONCURRENTLY sign_in_failures_by_score ON sign_in_failures (failures);
ALTER TABLE users ADD COLUMN score int4;
";
const NAME: &str = "sign_in_failures_by_score";
const WRITE: &str = "INSERT INTO sign_in_failures (bucket, failures, last_at, expires_at)
                     VALUES (uuid_send(gen_random_uuid()), 1, now(), now())";

#[test]
fn an_index_is_made_while_others_write() {
    let database = TestDatabase::migrated();
    let (mut long, mut writer) = (database.client(), database.client());
    let mut slow = long.transaction().unwrap();
    slow.batch_execute(WRITE).unwrap();
    let migration = applying(&database, &levels_with(BY_SCORE));
    // It waits for whoever has written; others need not wait for it.
    await_begun(&mut writer, NAME);
    writer.batch_execute("SET lock_timeout = '100ms'").unwrap();
    for _ in 0..20 {
        writer.batch_execute(WRITE).unwrap();
    }
    assert!(!migration.is_finished(), "written meanwhile");
    // The level itself comes after its index.
    assert!(writer.query("SELECT score FROM users", &[]).is_err());
    slow.commit().unwrap();
    assert_eq!(migration.join().unwrap().unwrap(), ["9999_next.sql"]);
    assert_eq!(validity(&mut writer, NAME), Some(true));
    assert!(writer.query("SELECT score FROM users", &[]).is_ok());
    let counted = "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM sign_in_failures WHERE failures = 1";
    let rows = writer.simple_query(counted).unwrap();
    let count = rows.iter().find_map(|message| {
        let postgres::SimpleQueryMessage::Row(row) = message else {
            return None;
        };
        row.get(0).map(str::to_owned)
    });
    assert_eq!(count.as_deref(), Some("21"), "all of them by the index");
}

#[test]
fn an_index_that_an_interrupted_run_left_invalid_is_made_anew() {
    let database = TestDatabase::migrated();
    let (mut long, mut operator) = (database.client(), database.client());
    let mut slow = long.transaction().unwrap();
    slow.batch_execute(WRITE).unwrap();
    let levels = levels_with(BY_SCORE);
    let migration = applying(&database, &levels);
    await_begun(&mut operator, NAME);
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
                  WHERE application_name = current_setting('application_name') AND query LIKE 'CREATE INDEX CONCURRENTLY%'";
    assert_eq!(operator.query(cancel, &[]).unwrap().len(), 1);
    assert!(migration.join().unwrap().is_err());
    // It is of use to nobody.
    assert_eq!(validity(&mut operator, NAME), Some(false));
    assert!(operator.query("SELECT score FROM users", &[]).is_err());
    slow.commit().unwrap();
    assert_eq!(apply(&database, &levels), ["9999_next.sql"]);
    assert_eq!(validity(&mut operator, NAME), Some(true));
    // Interrupted between the index and the level: the index stays as it is.
    let oid = |client: &mut Client| -> u32 {
        let row = client.query_one("SELECT to_regclass($1)::oid", &[&NAME]);
        row.unwrap().get(0)
    };
    let before = oid(&mut operator);
    database.run("DELETE FROM schema_migrations WHERE name = '9999_next.sql'; ALTER TABLE users DROP COLUMN score");
    assert_eq!(apply(&database, &levels), ["9999_next.sql"]);
    assert_eq!(oid(&mut operator), before);
}

/// Whoever waits for the other must not hold what the other waits for.
#[test]
fn two_migrations_at_once_make_an_index_once() {
    let database = TestDatabase::migrated();
    let (mut long, mut watcher) = (database.client(), database.client());
    let mut slow = long.transaction().unwrap();
    slow.batch_execute(WRITE).unwrap();
    let levels = levels_with(BY_SCORE);
    let migrations = [applying(&database, &levels), applying(&database, &levels)];
    await_begun(&mut watcher, NAME);
    // Postgres looks for a deadlock after a second.
    sleep(Duration::from_millis(1_500));
    slow.commit().unwrap();
    let mut applied = migrations.map(|thread| thread.join().unwrap().unwrap().len());
    applied.sort_unstable();
    assert_eq!(applied, [0, 1]);
    assert_eq!(validity(&mut watcher, NAME), Some(true));
}

#[test]
fn each_partition_gets_its_index_and_the_next_one_too() {
    const BY_CLIENT: &str = "-- compatible_from: 1
-- For a list that does not exist.
CREATE INDEX CONCURRENTLY grants_by_client ON grants (client_id)
    WHERE NOT offline;
";
    let database = TestDatabase::migrated();
    let mut client = database.client();
    let partitions = "SELECT relid::regclass::text FROM pg_partition_tree('grants') WHERE isleaf";
    let partitions = client.query(partitions, &[]).unwrap();
    let partitions: Vec<String> = partitions.iter().map(|row| row.get(0)).collect();
    assert!(partitions.len() > 3, "{partitions:?}");
    let mut writer = database.client();
    let mut slow = writer.transaction().unwrap();
    let lock = format!("LOCK TABLE {} IN ROW EXCLUSIVE MODE", partitions[1]);
    slow.batch_execute(&lock).unwrap();
    let first = format!("{}_grants_by_client", partitions[0]);
    let migration = applying(&database, &levels_with(BY_CLIENT));
    await_that("the first index is made", SOON, || {
        validity(&mut client, &first) == Some(true)
    });
    assert!(!migration.is_finished());
    slow.commit().unwrap();
    migration.join().unwrap().unwrap();
    assert_eq!(validity(&mut client, "grants_by_client"), Some(true));
    let attached = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'grants_by_client'::regclass";
    let attached = client.query(attached, &[]).unwrap();
    let attached: BTreeSet<String> = attached.iter().map(|row| row.get(0)).collect();
    let expected = partitions
        .iter()
        .map(|name| format!("{name}_grants_by_client"));
    let expected: BTreeSet<String> = expected.collect();
    assert_eq!(attached, expected, "none was made a second time");
    database
        .run("CREATE TABLE grants_later PARTITION OF grants FOR VALUES FROM (90000) TO (90001)");
    // Its rest failed, and it is run again.
    database.run("DELETE FROM schema_migrations WHERE name = '9999_next.sql'");
    apply(&database, &levels_with(BY_CLIENT));
    let indexed = "SELECT count(*) FROM pg_index WHERE indrelid = 'grants_later'::regclass AND indpred IS NOT NULL";
    assert_eq!(client.query_one(indexed, &[]).unwrap().get::<_, i64>(0), 2);
}

#[test]
fn an_index_that_is_written_otherwise_is_refused_and_not_left_out() {
    for [sql, what] in rows_of(
        "
        CREATE INDEX CONCURRENTLY ON users (username)             | without a name
        CREATE INDEX CONCURRENTLY \"By name\" ON users (username) | a quoted name
        DROP INDEX CONCURRENTLY grants_offline_by_sub             | not to be made
        ",
    ) {
        let database = TestDatabase::migrated();
        let applied = schema::apply(&mut database.client(), &levels_with(level_of(sql)));
        assert!(applied.is_err(), "{what}");
        assert!(migrate::check_level(&database.store()).is_ok(), "{what}");
        let levels = usize::try_from(database.count("schema_migrations")).unwrap();
        assert_eq!(levels, MIGRATIONS.len(), "{what}");
    }
}

#[test]
fn a_level_that_fails_leaves_nothing_of_itself_and_the_next_run_goes_on() {
    const FAILING: &str =
        "-- compatible_from: 1\nCREATE TABLE b (x int4);\nSELECT 1 / (SELECT count(*) FROM a);\n";
    let database = TestDatabase::empty();
    let relations = || {
        let asked = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'";
        database.value::<i64>(asked, &[&database.schema])
    };
    let level = |level, name, sql| Migration { level, name, sql };
    let table = |name, more| level_of(&format!("CREATE TABLE {name} (x int4){more}"));
    let first = level(1, "0001_a.sql", table("a", ""));
    let second = level(2, "0002_b.sql", FAILING);
    let alone = level(1, "0001_b.sql", table("b", ";\nSELECT 1/0"));
    assert!(schema::apply(&mut database.client(), &[alone]).is_err());
    assert_eq!(relations(), 0);
    assert!(schema::apply(&mut database.client(), &[first, second]).is_err());
    // The table of the first level, and that of levels.
    assert_eq!(relations(), 2);
    database.run("INSERT INTO a VALUES (1)");
    assert_eq!(apply(&database, &[first, second]), ["0002_b.sql"]);
}

#[test]
fn a_level_does_not_wait_for_long_before_a_table_in_use() {
    const LOCKING: &str = "-- compatible_from: 1\nALTER TABLE users ADD COLUMN shoe_size int4;\n";
    let database = TestDatabase::migrated();
    let mut backup = database.client();
    let mut dump = backup.transaction().unwrap();
    let lock = "LOCK TABLE users IN ACCESS SHARE MODE";
    dump.batch_execute(lock).unwrap();
    let levels = levels_with(LOCKING);
    let began = Instant::now();
    let refused = schema::apply(&mut database.client(), &levels).unwrap_err();
    let rehearsed = schema::rehearse(&mut database.client(), &levels).unwrap_err();
    // Without a limit of its own each would wait for the five seconds of a command.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    for text in [refused.to_string(), rehearsed.to_string()] {
        text.assert_says("55P03");
        text.assert_says("a table was in use");
    }
    dump.rollback().unwrap();
    assert_eq!(apply(&database, &levels), ["9999_next.sql"]);
}

fn rehearsed(database: &TestDatabase, levels: &[Migration]) -> Vec<Rehearsed> {
    schema::rehearse(&mut database.client(), levels).unwrap()
}

#[test]
fn a_rehearsal_tells_of_time_and_locks_by_statement_and_leaves_nothing_behind() {
    const NEXT: &str = "-- compatible_from: 1
CREATE UNIQUE INDEX CONCURRENTLY users_by_shoe ON users (username);
CREATE TABLE novelty (x int4);
-- Known to few.
ALTER TABLE users
    ADD COLUMN shoe_size int4;
CREATE INDEX ON consents (granted_at);
UPDATE users SET shoe_size = 42;
ALTER TABLE users ALTER COLUMN shoe_size SET DEFAULT 42;
SELECT pg_sleep(0.02);
";
    let database = TestDatabase::migrated();
    let levels = levels_with(NEXT);
    let rehearsed = rehearsed(&database, &levels);
    let [level] = rehearsed.as_slice() else {
        panic!("{rehearsed:?}")
    };
    assert_eq!(level.name, "9999_next.sql");
    assert!(level.took.as_millis() >= 20);
    let told = [
        "nobody would wait: CREATE UNIQUE INDEX CONCURRENTLY users_by_shoe ON users (username);",
        "users: everybody would wait meanwhile (AccessExclusiveLock): ALTER TABLE users",
        "consents: writers would wait meanwhile (ShareLock): CREATE INDEX ON consents (granted_at);",
        "consents: all of it would be read: CREATE INDEX ON consents (granted_at);",
        "users: who changes the same rows would wait meanwhile (RowExclusiveLock): UPDATE users SET shoe_size = 42;",
        "users: all of it would be read: UPDATE users SET shoe_size = 42;",
    ];
    assert_eq!(level.told, told);
    let mut client = database.client();
    assert!(client.query("SELECT shoe_size FROM users", &[]).is_err());
    assert_eq!(validity(&mut client, "users_by_shoe"), None);
    assert_eq!(schema::rehearse(&mut client, MIGRATIONS).unwrap(), []);
    // The binary of before goes on serving what the next one made.
    schema::apply(&mut client, &levels).unwrap();
    assert!(migrate::check_level(&database.store()).is_ok());
}

/// Whether somebody would wait for as long as it takes to read a table in use.
fn keeps_waiting(level: &Rehearsed) -> bool {
    let tells = |words: &str| level.told.iter().any(|line| line.contains(words));
    tells("would wait meanwhile") && tells("all of it would be read")
}

#[test]
fn no_level_keeps_anybody_waiting_for_as_long_as_a_table_takes() {
    for known in 1..MIGRATIONS.len() {
        let database = TestDatabase::empty();
        schema::apply(&mut database.client(), &MIGRATIONS[..known]).unwrap();
        let rehearsed = rehearsed(&database, &MIGRATIONS[..=known]);
        let level = rehearsed.first().unwrap();
        let advice = "make indexes CONCURRENTLY, constraints NOT VALID, and fill in by steps";
        assert!(!keeps_waiting(level), "{level:?}: {advice}");
    }
}

#[test]
fn a_level_that_would_keep_people_waiting_is_known_by_what_it_reads() {
    const WAITS: &str = "
        CREATE INDEX ON users (claims)
        ALTER TABLE users ADD COLUMN drawn uuid NOT NULL DEFAULT gen_random_uuid()
        ALTER TABLE linked_identities ALTER COLUMN claims TYPE json USING claims::json
        ALTER TABLE users ADD CHECK (length(username) > 0)
        ALTER TABLE consents ALTER COLUMN expires_at SET NOT NULL
        UPDATE users SET username = username
        ALTER TABLE clients ADD COLUMN x int4; DELETE FROM users WHERE NOT enabled";
    const DOES_NOT: &str = "
        ALTER TABLE users ADD COLUMN x int4 NOT NULL DEFAULT 7
        ALTER TABLE users ADD CHECK (length(username) > 0) NOT VALID
        CREATE TABLE x (sub text REFERENCES users (sub))
        CREATE TABLE x AS SELECT sub FROM users
        INSERT INTO sign_in_failures (bucket, failures, last_at, expires_at) VALUES ('x', 1, now(), now())";
    let waiting = WAITS.trim().lines().map(|sql| (sql.trim(), true));
    let others = DOES_NOT.trim().lines().map(|sql| (sql.trim(), false));
    for (sql, waits) in waiting.chain(others) {
        let database = TestDatabase::migrated();
        let rehearsed = rehearsed(&database, &levels_with(level_of(&sql.replace("; ", ";\n"))));
        let found = keeps_waiting(&rehearsed[0]);
        assert_eq!(found, waits, "{sql}: {:?}", rehearsed[0].told);
    }
}
