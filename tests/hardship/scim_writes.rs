//! Postgres is killed again and again while programs change users over SCIM, and the server at the
//! end: what was answered is there, each with its event.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::cluster::{Cluster, signal};
use crate::support::flow::text;
use crate::support::gatepost::Gatepost;
use crate::support::http::Answer;
use crate::support::postgres::TestDatabase;
use crate::support::scim::{ON, Program, USER, registered};
use crate::support::waiting::await_that;

const WRITES: usize = 1_000;
const WRITERS: usize = 4;
/// How many were answered when Postgres is killed.
const KILLS: [usize; 4] = [150, 400, 650, 900];
const SOON: Duration = Duration::from_secs(30);

/// A user, as far as the program was told.
#[derive(Clone, Debug, Default)]
struct Told {
    id: String,
    changes: Vec<&'static str>,
    /// A write after these was not answered: it may have been made.
    in_doubt: bool,
}

#[derive(Default)]
struct Ledger {
    told: Mutex<Vec<Told>>,
    answered: AtomicUsize,
    unanswered: AtomicUsize,
}

impl Ledger {
    /// Whether a write was answered as done.
    fn is_done(&self, answer: &Answer) -> bool {
        let is_done = (200..300).contains(&answer.status);
        assert!(is_done || answer.status == 503, "{}", answer.text());
        let counter = match is_done {
            true => &self.answered,
            false => &self.unanswered,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        is_done
    }

    /// Adds, disables and removes users until enough writes were answered.
    fn write(&self, hr: &Program<'_>, writer: usize) {
        let began = Instant::now();
        let mut number = 0;
        while self.answered.load(Ordering::Relaxed) < WRITES {
            assert!(began.elapsed() < 4 * SOON, "too few writes are answered");
            number += 1;
            let user = json!({"schemas": [USER], "userName": format!("user-{writer}-{number}")});
            let answer = hr.ask("POST", "Users", &user);
            if !self.is_done(&answer) {
                sleep(Duration::from_millis(20));
                continue;
            }
            let mut told = Told {
                id: text(&answer.json(), "id").to_owned(),
                changes: vec!["user_added"],
                in_doubt: false,
            };
            let disabling = json!([{"op": "replace", "path": "active", "value": false}]);
            if self.is_done(&hr.patch(&told.id, disabling)) {
                told.changes.push("user_changed");
                let removes = number % 2 == 0;
                if removes {
                    let path = format!("Users/{}", told.id);
                    match self.is_done(&hr.ask("DELETE", &path, &Value::Null)) {
                        true => told.changes.push("user_removed"),
                        false => told.in_doubt = true,
                    }
                }
            } else {
                told.in_doubt = true;
            }
            self.told.lock().unwrap().push(told);
        }
    }
}

#[test]
fn every_write_over_scim_that_was_answered_is_there_after_kill_9() {
    let cluster = Cluster::start();
    let database = TestDatabase::empty_in(cluster.url.clone());
    let mut gatepost = Gatepost::prepare_over(database, &ON);
    gatepost.apply(&registered());
    gatepost.serve();
    let hr = Program::hr(&gatepost);
    let ledger = Ledger::default();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let ledger = &ledger;
            let hr = &hr;
            scope.spawn(move || ledger.write(hr, writer));
        }
        for answered in KILLS {
            await_that("enough writes are answered", 2 * SOON, || {
                ledger.answered.load(Ordering::Relaxed) >= answered
            });
            cluster.kill();
            sleep(Duration::from_millis(100));
            cluster.restart();
        }
    });
    let old = gatepost.server_processes();
    cluster.kill();
    signal("KILL", &old);
    cluster.restart();
    await_that("the server is back", SOON, || {
        let processes = gatepost.server_processes();
        let is_another = processes.iter().all(|process| !old.contains(process));
        !processes.is_empty() && is_another && gatepost.is_ready()
    });

    // Kills in the middle of the work leave something unanswered, or nothing was tried.
    assert!(ledger.unanswered.load(Ordering::Relaxed) > 0);
    let mut client = gatepost.database.client();
    let told = ledger.told.into_inner().unwrap();
    assert!(told.iter().any(|user| user.changes.len() == 3));
    for user in &told {
        let events = "SELECT event FROM audit_events WHERE sub = $1 ORDER BY at";
        let rows = client.query(events, &[&user.id]).unwrap();
        let events: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let row = client
            .query_opt("SELECT enabled FROM users WHERE sub = $1", &[&user.id])
            .unwrap();
        let enabled: Option<bool> = row.map(|row| row.get(0));
        let answered = user.changes.len();
        assert_eq!(events.get(..answered).unwrap(), user.changes, "{user:?}");
        let expected = match answered {
            1 => Some(true),
            2 => Some(false),
            _ => None,
        };
        // A state and its event are written together, or not at all.
        let by_events = match events.len() {
            1 => Some(true),
            2 => Some(false),
            _ => None,
        };
        assert_eq!(enabled, by_events, "{user:?}: {events:?}");
        assert!(user.in_doubt || enabled == expected, "{user:?}: {events:?}");
        let shown = hr.get(&format!("Users/{}", user.id));
        let status = if enabled.is_some() { 200 } else { 404 };
        assert_eq!(shown.status, status, "{user:?}: {}", shown.text());
    }
}
