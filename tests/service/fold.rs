//! What an hour of the audit log comes to, however often and by whomever it is folded.

use std::thread;
use std::time::Duration;

use gatepost::clock::time_of_day;
use gatepost::protocol::words::instant::Instant;
use gatepost::store::folds;

use crate::support::postgres::TestDatabase;
use crate::support::waiting::{SOON, await_that};

const KEPT: Duration = Duration::from_secs(400 * 86_400);

/// An installation of that hour, with two people and an application.
fn scene(hour: i32) -> TestDatabase {
    let database = TestDatabase::ready("https://id.example");
    database.run(&format!(
        "UPDATE installation SET created_at = to_timestamp({hour}::int8 * 3600);
         INSERT INTO users (sub, tenant) VALUES ('amy', 'acme'), ('ben', '');
         INSERT INTO clients (client_id, metadata, enabled, origins) VALUES ('wiki', '{{}}', true, '{{}}')"
    ));
    database
}

/// An event so many seconds after the hour began.
fn tell(database: &TestDatabase, hour: i32, second: i64, event: &str, sub: &str, more: &str) {
    let client_id = if more == "wiki" { "'wiki'" } else { "NULL" };
    let detail = if more.starts_with('{') { more } else { "{}" };
    let seq = database.count("audit_events");
    database.run(&format!(
        "INSERT INTO audit_events
         SELECT {today}, to_timestamp({hour}::int8 * 3600 + {second}), 'told', {seq}, '', '', '{event}', {client_id},
                nullif('{sub}', ''), NULL, NULL, NULL, '{detail}'",
        today = database.today().0,
    ));
}

fn fold_at(database: &TestDatabase, hour: i32, second: i64) -> usize {
    let now = Instant::from_seconds(i64::from(hour) * 3_600 + second);
    folds::fold(&database.store(), now, KEPT).unwrap()
}

fn lines(database: &TestDatabase, sql: &str) -> Vec<String> {
    let rows = database.client().query(sql, &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn counts(database: &TestDatabase, hour: i32) -> Vec<String> {
    let sql = format!(
        "SELECT concat_ws(' ', kind, n, coalesce(nullif(tenant, ''), '-')) FROM hourly_counts WHERE hour = {hour} ORDER BY 1"
    );
    lines(database, &sql)
}

const USES: &str = "SELECT sub || ' ' || day FROM user_uses UNION ALL
                    SELECT sub || ' ' || client_id || ' ' || day FROM client_user_uses ORDER BY 1";

fn full_hour(database: &TestDatabase, hour: i32) {
    for (second, event, sub, more) in [
        (0, "signed_in", "amy", ""),
        (1_800, "signed_in", "amy", ""),
        (3_599, "signed_in", "ben", ""),
        (3_600, "signed_in", "ben", ""),
        (5, "signed_in", "removed", ""),
        (5, "sign_in_failed", "amy", r#"{"reason": "GP1501"}"#),
        (5, "second_factor_failed", "", ""),
        (5, "client_authentication_failed", "", ""),
        (
            5,
            "failures_not_told",
            "",
            r#"{"event": "sign_in_failed", "count": 7}"#,
        ),
        (
            5,
            "failures_not_told",
            "",
            r#"{"event": "code_replayed", "count": 9}"#,
        ),
        (5, "more_failures", "", r#"{"count": 4, "turned_away": 6}"#),
        (5, "refreshed", "amy", "wiki"),
        (5, "code_redeemed", "ben", "wiki"),
    ] {
        tell(database, hour, second, event, sub, more);
    }
}

const FULL_HOUR: [&str; 6] = [
    "failed 1 acme",
    "failed 8 -",
    "more_failed 4 -",
    "signed_in 2 -",
    "signed_in 2 acme",
    "turned_away 6 -",
];

#[test]
fn an_hour_is_folded_ten_minutes_after_its_end_and_again_with_the_two_behind_it() {
    let now = time_of_day().hour();
    let hour = now - now % 24 - 20;
    let database = scene(hour);
    full_hour(&database, hour);
    assert_eq!(fold_at(&database, hour + 1, 599), 0, "too early");
    assert_eq!(fold_at(&database, hour + 1, 600), 1);
    assert_eq!(counts(&database, hour), FULL_HOUR);
    let day = hour / 24;
    let used = [
        format!("amy {day}"),
        format!("amy wiki {day}"),
        format!("ben {day}"),
        format!("ben wiki {day}"),
    ];
    assert_eq!(lines(&database, USES), used);
    assert_eq!(fold_at(&database, hour + 1, 3_599), 0, "it is done");
    // Events that were committed late count in two more turns; older days take nothing back.
    database.run("UPDATE user_uses SET day = day + 1 WHERE sub = 'amy'");
    for (turn, told, expected) in [(2, 2, 3), (3, 3, 4), (4, 3, 4)] {
        tell(&database, hour, 7, "signed_in", "ben", "");
        assert_eq!(fold_at(&database, hour + turn, 600), told, "turn {turn}");
        let all = counts(&database, hour);
        assert!(
            all.contains(&format!("signed_in {expected} -")),
            "{turn}: {all:?}"
        );
    }
    assert!(lines(&database, USES).contains(&format!("amy {}", day + 1)));
    // Whoever is removed takes theirs along, and so does an application.
    database.run("DELETE FROM users WHERE sub = 'ben'");
    assert_eq!(lines(&database, USES).len(), 2);
    database.run("DELETE FROM clients");
    assert_eq!(lines(&database, USES), [format!("amy {}", day + 1)]);
    // Counts go with the log, days of use stay.
    let much_later = Instant::from_seconds(i64::from(hour + 4) * 3_600 + 600);
    folds::fold(&database.store(), much_later, Duration::from_secs(3_600)).unwrap();
    assert_eq!(database.count("hourly_counts"), 0);
    assert_eq!(database.count("folds"), 1);
    assert_eq!(database.count("user_uses"), 1);
}

#[test]
fn leaders_at_once_and_a_leader_that_is_killed_count_once() {
    let now = time_of_day().hour();
    let hour = now - 20;
    let database = scene(hour);
    full_hour(&database, hour);
    // A fold is held up in the middle, and then its connection is ended.
    let mut holding = database.client();
    let mut held = holding.transaction().unwrap();
    held.batch_execute("LOCK TABLE user_uses IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE wait_event_type = 'Lock' AND query LIKE '%WITH events AS (%'";
    thread::scope(|scope| {
        let at = Instant::from_seconds(i64::from(hour + 1) * 3_600 + 600);
        let store = database.store();
        let killed = scope.spawn(move || folds::fold(&store, at, KEPT));
        await_that("it is in the middle", SOON, || {
            database.value::<i64>(waiting, &[]) > 0
        });
        database.run(&waiting.replace("count(*)", "pg_terminate_backend(pid)"));
        assert!(killed.join().unwrap().is_err());
    });
    held.rollback().unwrap();
    assert_eq!(database.count("folds") + database.count("hourly_counts"), 0);
    // The next leader, and three who believe that they lead.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| fold_at(&database, hour + 1, 600));
        }
    });
    assert_eq!(counts(&database, hour).len(), FULL_HOUR.len());
    let signed_in = "SELECT sum(n)::int8 FROM hourly_counts WHERE kind = 'signed_in'";
    assert_eq!(database.value::<i64>(signed_in, &[]), 4);
    assert_eq!(lines(&database, USES).len(), 4);
}

#[test]
fn hours_of_before_are_filled_the_newest_first_and_no_further_back_than_the_log_or_the_installation()
 {
    let now = time_of_day().hour();
    let first = now - 60;
    let database = scene(first);
    full_hour(&database, now - 2);
    full_hour(&database, first);
    tell(&database, first - 1, 5, "signed_in", "ben", "");
    assert_eq!(fold_at(&database, now, 600), 24);
    assert_eq!(counts(&database, now - 2).len(), FULL_HOUR.len());
    assert_eq!(counts(&database, first), Vec::<String>::new());
    assert_eq!(fold_at(&database, now, 660), 24);
    assert_eq!(fold_at(&database, now, 720), 12);
    assert_eq!(fold_at(&database, now, 780), 0);
    assert_eq!(counts(&database, first).len(), FULL_HOUR.len());
    assert_eq!(database.count("folds"), 60);
    let oldest = "SELECT min(hour) FROM folds";
    assert_eq!(database.value::<i32>(oldest, &[]), first);
}
