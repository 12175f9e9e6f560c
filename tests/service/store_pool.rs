//! Connections: lost, frozen, slow and scarce ones, and what the callers see of it.

use std::time::Duration;

use gatepost::protocol::words::catalogue::SqlGrant;
use gatepost::protocol::words::identifiers::Subject;
use gatepost::store::{
    DatabaseSettings, FunctionAnswer, Store, StoreError, catalogue, installation, users,
};
use serde_json::{Map, json};

use crate::support::claims::Says;
use crate::support::http::free_port;
use crate::support::postgres::{TestDatabase, settings};
use crate::support::proxy::Proxy;
use crate::support::waiting::await_that;

const PATIENCE: Duration = Duration::from_secs(10);

fn find(store: &Store) -> Result<(), StoreError> {
    users::find(store, &Subject::new("nobody")).map(|user| assert_eq!(user, None))
}

#[test]
fn the_store_opens_while_the_database_is_away_and_fails_fast() {
    let free = free_port();
    let store = Store::open(&settings(&format!(
        "postgres://gatepost:canary@127.0.0.1:{free}/login"
    )))
    .unwrap();
    let first = find(&store).unwrap_err();
    assert!(matches!(first, StoreError::Unavailable(_)), "{first:?}");
    // The second does not wait for a connection at all: its text says so.
    assert_eq!(
        find(&store).unwrap_err().to_string(),
        "database unavailable: away a moment ago"
    );
    let told = format!(
        "database unavailable: 127.0.0.1:{free}, database login, role gatepost: connection refused: start Postgres there"
    );
    assert_eq!(first.to_string(), told, "where and why, and no password");
}

#[test]
fn a_terminated_connection_is_replaced_without_the_reader_noticing() {
    let database = TestDatabase::migrated();
    let store = database.store();
    find(&store).unwrap();
    let terminate = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{}' AND pid <> pg_backend_pid()",
        database.schema
    );
    for _ in 0..5 {
        database.run(&terminate);
        find(&store).unwrap();
    }
}

#[test]
fn a_statement_is_prepared_once_per_connection() {
    let database = TestDatabase::migrated();
    let store = Store::open(&DatabaseSettings {
        connections: 1,
        ..settings(&database.url)
    })
    .unwrap();
    for _ in 0..50 {
        find(&store).unwrap();
    }
    // Postgres tells a connection's own statements to that connection alone: there an operator's
    // function is run.
    database.run(
        "CREATE FUNCTION prepared(jsonb, jsonb) RETURNS jsonb LANGUAGE sql AS
         'SELECT jsonb_build_array(count(*), sum(generic_plans + custom_plans)) FROM pg_prepared_statements
          WHERE statement LIKE ''%FROM users u WHERE u.sub = $1%'''",
    );
    let [schema, function] = [database.schema.as_str(), "prepared"].map(str::to_owned);
    let grant = SqlGrant {
        name: function.clone(),
        schema,
        function,
    };
    let prepared = catalogue::call_function(&store, &grant, &Map::new(), &Map::new()).unwrap();
    // One statement, run 50 times.
    assert_eq!(prepared, FunctionAnswer::Value(json!([1, 50])));
}

#[test]
fn a_connection_that_lost_its_statements_is_replaced() {
    let database = TestDatabase::migrated();
    let store = Store::open(&DatabaseSettings {
        connections: 1,
        ..settings(&database.url)
    })
    .unwrap();
    find(&store).unwrap();
    // As behind a pooler that gives each transaction another connection.
    database.run(
        "CREATE FUNCTION forget(jsonb, jsonb) RETURNS jsonb LANGUAGE plpgsql AS
         $$ BEGIN EXECUTE 'DEALLOCATE ALL'; RETURN '{}'; END $$",
    );
    let [schema, function] = [database.schema.as_str(), "forget"].map(str::to_owned);
    let grant = SqlGrant {
        name: function.clone(),
        schema,
        function,
    };
    let answer = catalogue::call_function(&store, &grant, &Map::new(), &Map::new()).unwrap();
    assert_eq!(answer, FunctionAnswer::Value(json!({})));
    find(&store).unwrap();
}

#[test]
fn all_that_is_denied_lately_is_told_not_the_last_alone() {
    let database = TestDatabase::migrated();
    let store = database.store();
    database.run("ALTER TABLE users RENAME TO lent_users; ALTER TABLE installation RENAME TO lent_installation");
    for _ in 0..2 {
        assert!(matches!(find(&store), Err(StoreError::Denied(_))));
        assert!(matches!(
            installation::find(&store),
            Err(StoreError::Denied(_))
        ));
    }
    let denied = store.denied_lately();
    let is_told = |table: &str| denied.iter().any(|cause| cause.contains(table));
    assert!(denied.len() == 2, "{denied:?}");
    assert!(is_told("users"), "{denied:?}");
    assert!(is_told("installation"), "{denied:?}");
}

#[test]
fn a_statement_that_hangs_is_cancelled_by_the_watchdog() {
    let database = TestDatabase::migrated();
    let url = database.url_with("-c lock_timeout=0 -c statement_timeout=0");
    let quick = DatabaseSettings {
        cancel_after: Duration::from_secs(1),
        ..settings(&url)
    };
    let store = Store::open(&quick).unwrap();
    find(&store).unwrap();
    let mut blocker = database.client();
    let mut lock = blocker.transaction().unwrap();
    lock.batch_execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let error = find(&store).unwrap_err();
    assert_eq!(error, StoreError::Cancelled(String::from("SQLSTATE 57014")));
    lock.rollback().unwrap();
    // What was cancelled is not used again, so no late cancel request hits somebody else.
    for _ in 0..50 {
        find(&store).unwrap();
    }
    assert!(!store.is_stuck());
}

#[test]
fn a_lock_that_is_not_had_in_time_is_a_conflict() {
    let database = TestDatabase::migrated();
    let store = Store::open(&settings(&database.url_with("-c lock_timeout=50"))).unwrap();
    let mut blocker = database.client();
    let mut lock = blocker.transaction().unwrap();
    lock.batch_execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let error = find(&store).unwrap_err();
    assert!(matches!(error, StoreError::Conflict(_)), "{error:?}");
    assert!(error.is_passing(), "{error:?}");
}

#[test]
fn a_frozen_server_makes_the_process_ask_for_its_replacement() {
    let database = TestDatabase::migrated();
    let proxy = Proxy::start();
    let url = database.url_through("127.0.0.1", proxy.port, "");
    let quick = DatabaseSettings {
        cancel_after: Duration::from_secs(1),
        stuck_after: Duration::from_secs(2),
        ..settings(&url)
    };
    let store = Store::open(&quick).unwrap();
    find(&store).unwrap();
    assert!(!store.is_stuck());
    proxy.freeze(true);
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| find(&store));
        await_that("the watchdog notices", PATIENCE, || store.is_stuck());
        proxy.freeze(false);
        // Thawed, it ends one way or the other, and what comes next is served.
        drop(hanging.join().unwrap());
    });
    await_that("served again", PATIENCE, || find(&store).is_ok());
}

#[test]
fn connections_that_went_bad_while_idle_are_dropped_before_they_are_used() {
    let database = TestDatabase::migrated();
    let proxy = Proxy::start();
    let store = Store::open(&settings(&database.url_through(
        "127.0.0.1",
        proxy.port,
        "",
    )))
    .unwrap();
    find(&store).unwrap();
    // Longer than a connection may be idle without proving that it lives.
    std::thread::sleep(Duration::from_millis(2_500));
    proxy.freeze(true);
    let error = find(&store).unwrap_err();
    assert!(
        matches!(error, StoreError::Unavailable(_)),
        "found dead, not used: {error:?}"
    );
    proxy.freeze(false);
    await_that("served again", PATIENCE, || find(&store).is_ok());
}

#[test]
fn the_lane_turns_away_whom_it_cannot_serve() {
    let database = TestDatabase::migrated();
    // One place in the lane: five workers less four.
    let url = database.url_with("-c lock_timeout=0");
    let store = Store::open(&DatabaseSettings {
        workers: 5,
        ..settings(&url)
    })
    .unwrap();
    find(&store).unwrap();
    let mut blocker = database.client();
    let mut lock = blocker.transaction().unwrap();
    lock.batch_execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| find(&store));
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
        let mut observer = database.client();
        await_that("the first one waits for the lock", PATIENCE, || {
            observer
                .query_one(waits, &[&database.schema])
                .unwrap()
                .get::<_, i64>(0)
                == 1
        });
        assert_eq!(installation::read(&store).unwrap_err(), StoreError::Busy);
        lock.rollback().unwrap();
        assert!(waiting.join().unwrap().is_ok());
    });
    assert!(installation::read(&store).is_ok());
}

#[test]
fn a_warning_of_the_server_s_about_anything_but_a_standby_is_no_failure() {
    let database = TestDatabase::migrated();
    let store = database.store();
    database.run(
        "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_cancel_backend(0); RETURN NEW; END $$;
         CREATE TRIGGER warn BEFORE INSERT ON sign_in_failures FOR EACH ROW EXECUTE FUNCTION warn()",
    );
    let bucket = gatepost::store::sign_in_failures::FailureBucket {
        bucket: [1; 32],
        window: Duration::from_secs(60),
    };
    gatepost::store::sign_in_failures::record(&store, &[bucket]).unwrap();
}

#[test]
fn errors_of_statements_hold_no_values() {
    let database = TestDatabase::migrated();
    let store = database.store();
    database.run("ALTER TABLE revoked_tokens ADD CHECK (octet_length(jti) < 4)");
    let audit = gatepost::store::audit_events::AuditEvent {
        event: "x",
        ..Default::default()
    };
    let error = gatepost::store::tokens::revoke(&store, database.today(), b"canary", &audit)
        .unwrap_err()
        .to_string();
    error.assert_says("23514");
    error.assert_says_not("canary");
    error.assert_says_not("63616e617279");
}
