//! Partitions come ahead of need and go when everything in them has expired.

use std::thread;
use std::time::Duration;

use gatepost::clock::time_of_day;
use gatepost::protocol::words::instant::Day;
use gatepost::store::audit_events::{self, AuditEvent};
use gatepost::store::partitions::{self, Horizons};
use gatepost::store::{Store, StoreError};
use gatepost::store::{sessions, tokens};
use gatepost::tool::statements::audit_pages;

use crate::support::gatepost::Gatepost;
use crate::support::postgres::{HORIZONS, TestDatabase};

fn event() -> AuditEvent<'static> {
    AuditEvent {
        event: "tested",
        ..AuditEvent::default()
    }
}

fn partitions_of(database: &TestDatabase, table: &str) -> i64 {
    let counted = "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass($1)";
    database.value(counted, &[&table])
}

#[test]
fn a_fresh_installation_has_room_for_everything_and_few_partitions() {
    let database = TestDatabase::migrated();
    assert!(partitions::are_ahead(&database.store(), &HORIZONS, database.today()).unwrap());
    let tables = "grants sessions session_clients revoked_tokens used_assertions audit_events";
    for table in tables.split(' ') {
        assert!(
            (1..=4).contains(&partitions_of(&database, table)),
            "{table}"
        );
    }
    audit_events::insert(&database.store(), &event()).unwrap();
    // And the row that opens the chain.
    assert_eq!(database.count("audit_events"), 2);
}

#[test]
fn five_migrations_that_begin_at_once_on_an_empty_database_all_succeed() {
    let gatepost = Gatepost::unprepared(TestDatabase::empty(), &[]);
    thread::scope(|scope| {
        let begun: Vec<_> = (0..5)
            .map(|_| scope.spawn(|| gatepost.run(&["migrate"], "")))
            .collect();
        for migration in begun {
            let output = migration.join().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    });
    let database = &gatepost.database;
    assert!(partitions::are_ahead(&database.store(), &HORIZONS, database.today()).unwrap());
    assert_eq!(database.count("signing_keys"), 3);
}

#[test]
fn a_migration_waits_for_a_maintenance_that_is_under_way() {
    let database = TestDatabase::migrated();
    let mut maintaining = database.client();
    let mut leading = maintaining.transaction().unwrap();
    leading
        .query("SELECT only_row FROM leader FOR UPDATE", &[])
        .unwrap();
    let later = Day(database.today().0 + 30);
    let made = thread::scope(|scope| {
        let making =
            scope.spawn(|| partitions::make_as_leader(&mut database.client(), &HORIZONS, later));
        thread::sleep(Duration::from_millis(300));
        assert!(!making.is_finished(), "it did not wait");
        leading.rollback().unwrap();
        making.join().unwrap().unwrap()
    });
    assert!(!made.is_empty());
}

#[test]
fn without_partitions_nothing_is_ready() {
    let database = TestDatabase::empty();
    gatepost::tool::statements::schema::migrate(&mut database.client()).unwrap();
    assert!(!partitions::are_ahead(&database.store(), &HORIZONS, database.today()).unwrap());
}

#[test]
fn as_days_pass_new_ones_come_and_old_ones_go() {
    let database = TestDatabase::migrated();
    let (store, today) = (database.store(), database.today());
    tokens::revoke(&store, today, b"old", &event()).unwrap();
    tokens::revoke(&store, Day(today.0 + 2), b"new", &event()).unwrap();
    let unchanged = partitions::maintain(&store, &HORIZONS, today).unwrap();
    assert!(unchanged.made.is_empty(), "{unchanged:?}");
    assert!(unchanged.dropped.is_empty(), "{unchanged:?}");
    let later = Day(today.0 + 2);
    let maintained = partitions::maintain(&store, &HORIZONS, later).unwrap();
    assert!(
        maintained
            .made
            .iter()
            .any(|name| name.starts_with("revoked_tokens_")),
        "{maintained:?}"
    );
    assert!(
        maintained
            .dropped
            .contains(&format!("revoked_tokens_{}_{}", today.0 - 1, today.0 + 1)),
        "{maintained:?}"
    );
    assert_eq!(database.count("revoked_tokens"), 1);
    assert!(partitions::are_ahead(&store, &HORIZONS, later).unwrap());
    // Long after, everything old is gone and there is room again.
    let much_later = Day(today.0 + 500);
    partitions::maintain(&store, &HORIZONS, much_later).unwrap();
    assert!(partitions::are_ahead(&store, &HORIZONS, much_later).unwrap());
    assert_eq!(database.count("revoked_tokens"), 0);
}

#[test]
fn a_table_whose_partitions_another_process_dropped_is_looked_in_all_the_same() {
    let database = TestDatabase::migrated();
    let (store, today) = (database.store(), database.today());
    let find = || sessions::find(&store, today, &[0; 32], None);
    // Which there are is seen by the way.
    assert!(partitions::are_ahead(&store, &HORIZONS, today).unwrap());
    assert_eq!(find(), Ok(None));
    database.run(
        "DO $$ DECLARE name text; BEGIN
         FOR name IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'sessions'::regclass
         LOOP EXECUTE 'DROP TABLE ' || name; END LOOP; END $$",
    );
    assert_eq!(find(), Ok(None));
}

/// Sets the clock that this process follows to so many days from now.
fn set_clock(store: &Store, days: u64) {
    let time = time_of_day().plus(Duration::from_secs(days * 86_400));
    store.clock().adjust(time, Duration::ZERO);
}

#[test]
fn a_database_clock_that_jumped_ahead_drops_nothing_for_as_long_as_it_is_in_doubt() {
    let database = TestDatabase::migrated();
    let (store, today) = (database.store(), database.today());
    tokens::revoke(&store, today, b"still revoked", &event()).unwrap();
    let ahead = Day(today.0 + 40);
    set_clock(&store, 40);
    let doubted = partitions::maintain(&store, &HORIZONS, ahead).unwrap();
    assert!(doubted.dropped.is_empty(), "{doubted:?}");
    assert!(!doubted.made.is_empty(), "{doubted:?}");
    assert_eq!(database.count("revoked_tokens"), 1);
    // Back again: there is room for every day.
    set_clock(&store, 0);
    partitions::maintain(&store, &HORIZONS, today).unwrap();
    assert!(partitions::are_ahead(&store, &HORIZONS, today).unwrap());
}

#[test]
fn a_gap_that_a_clock_ahead_left_is_no_room_and_is_filled() {
    let database = TestDatabase::migrated();
    let (store, today) = (database.store(), database.today());
    // Both clocks went ahead together, so that nobody doubted.
    let ahead = Day(today.0 + 400);
    partitions::maintain(&store, &HORIZONS, ahead).unwrap();
    assert!(partitions::are_ahead(&store, &HORIZONS, ahead).unwrap());
    assert!(!partitions::are_ahead(&store, &HORIZONS, today).unwrap());
    assert!(tokens::revoke(&store, today, b"no room", &event()).is_err());
    partitions::maintain(&store, &HORIZONS, today).unwrap();
    assert!(partitions::are_ahead(&store, &HORIZONS, today).unwrap());
    tokens::revoke(&store, today, b"has room", &event()).unwrap();
    assert_eq!(database.count("revoked_tokens"), 1);
}

#[test]
fn one_process_at_a_time_looks_after_them() {
    let database = TestDatabase::migrated();
    let mut other = database.client();
    let mut leading = other.transaction().unwrap();
    leading
        .query("SELECT only_row FROM leader FOR UPDATE", &[])
        .unwrap();
    let later = Day(database.today().0 + 30);
    let left = partitions::maintain(&database.store(), &HORIZONS, later).unwrap();
    assert!(left.left_to_another, "{left:?}");
    assert!(left.made.is_empty(), "{left:?}");
    assert!(left.dropped.is_empty(), "{left:?}");
    leading.rollback().unwrap();
    assert!(
        !partitions::maintain(&database.store(), &HORIZONS, later)
            .unwrap()
            .made
            .is_empty()
    );
}

#[test]
fn a_detachment_that_was_interrupted_is_finished_later() {
    let database = TestDatabase::migrated();
    let (store, today) = (database.store(), database.today());
    // Somebody reads the table in a long transaction: detaching waits for them, longer than it may.
    let mut reader = database.client();
    let mut reading = reader.transaction().unwrap();
    reading.query("SELECT * FROM revoked_tokens", &[]).unwrap();
    let later = Day(today.0 + 2);
    let maintained = partitions::maintain(&store, &HORIZONS, later).unwrap();
    let name = format!("revoked_tokens_{}_{}", today.0 - 1, today.0 + 1);
    assert!(maintained.postponed.contains(&name), "{maintained:?}");
    reading.rollback().unwrap();
    // Other tests' snapshots may be in the way for a moment.
    let dropped = |_| {
        partitions::maintain(&store, &HORIZONS, later)
            .unwrap()
            .dropped
            .contains(&name)
    };
    assert!((0..50).any(dropped));
}

#[test]
fn a_lengthened_lifetime_brings_its_room_along() {
    let database = TestDatabase::migrated();
    let (store, today) = (database.store(), database.today());
    let longer = Horizons {
        grants: Duration::from_secs(365 * 86_400),
        ..HORIZONS
    };
    assert!(!partitions::are_ahead(&store, &longer, today).unwrap());
    let failed: Result<(), StoreError> = store.change_registry(|writer| {
        writer.make_partitions(&longer, today)?;
        Err(StoreError::Refused(String::from("changed our mind")))
    });
    assert!(failed.is_err());
    assert!(!partitions::are_ahead(&store, &longer, today).unwrap());
    store
        .change_registry(|writer| writer.make_partitions(&longer, today))
        .unwrap();
    assert!(partitions::are_ahead(&store, &longer, today).unwrap());
    assert!(partitions_of(&database, "grants") <= 10);
}

#[test]
fn events_are_read_through_as_of_one_moment() {
    let database = TestDatabase::migrated();
    let store = database.store();
    audit_events::insert(&store, &event()).unwrap();
    // More than are read at once, and a chain that comes meanwhile and sorts behind them.
    let copy = |chain: &str, upto: i64| {
        database.run(&format!(
            "INSERT INTO audit_events (day, at, chain, seq, previous, hash, event, detail)
             SELECT day, at, '{chain}', n, previous, hash, event, detail FROM audit_events, generate_series(1, {upto}) n
             WHERE seq = 0 AND chain <> '{chain}'"
        ));
    };
    copy("8", 5_000);
    let mut seen = 0;
    audit_pages::read_through(&store, |_| {
        if seen == 0 {
            copy("9", 1);
        }
        seen += 1;
    })
    .unwrap();
    assert_eq!(seen, 5_002);
}
