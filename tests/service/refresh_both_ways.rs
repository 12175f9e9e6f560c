//! A refresh has two ways to its grant: the statement that does the usual case alone, and the one
//! behind a grant that was read and judged. From every state that a grant can be in, and from pairs
//! of what ends one, both give the same answer, and leave the same row and the same event.

use std::thread;
use std::time::Duration;

use gatepost::keys::random;
use postgres::Client;
use serde_json::Value;

use crate::support::flow::signed_in;
use crate::support::gatepost::Gatepost;
use crate::support::offline::{self, REUSE, refresh};
use crate::what_ends_what::{CHANGES, Change, WIDE};

/// How far the row is, when the token of generation 1 comes.
const PLACES: [&str; 7] = [
    "generation = 1",
    "generation = 1, used_at = NULL, moved_at = clock_timestamp() - interval '1 day'",
    "generation = 2, used_at = NULL, moved_at = clock_timestamp()",
    "generation = 2, used_at = NULL, moved_at = clock_timestamp() - interval '1 day'",
    "generation = 2, used_at = clock_timestamp(), moved_at = NULL",
    "generation = 3, used_at = NULL, moved_at = clock_timestamp()",
    "generation = 0",
];

const USAGES: [&str; 2] = ["rotate", "reuse"];

/// What a refresh left. Instants are as they were, or new.
#[derive(Debug, PartialEq)]
struct Outcome {
    status: u16,
    row: Value,
    events: Value,
}

struct Scene {
    gatepost: Gatepost,
    /// One connection, since there are thousands of statements.
    database: Client,
    token: String,
}

const ROW: &str = "
SELECT to_jsonb(g) - '{attempt,moved_at,used_at,revoked_at}'::text[] || jsonb_build_object(
    'own', g.attempt <> kept.attempt,
    'moved', coalesce(g.moved_at::text <> kept.moved_at::text, (g.moved_at IS NULL) <> (kept.moved_at IS NULL)),
    'used', coalesce(g.used_at::text <> kept.used_at::text, (g.used_at IS NULL) <> (kept.used_at IS NULL)),
    'revoked', coalesce(g.revoked_at::text <> kept.revoked_at::text, (g.revoked_at IS NULL) <> (kept.revoked_at IS NULL)),
    'nulls', jsonb_build_array(g.moved_at IS NULL, g.used_at IS NULL, g.revoked_at IS NULL))
FROM grants g JOIN kept USING (day, id)";

const EVENTS: &str = "
SELECT coalesce(jsonb_agg(jsonb_build_array(event, client_id, sub, sid, source, detail)), '[]') FROM audit_events
WHERE event LIKE 'refresh%' AND hash NOT IN (SELECT hash FROM seen)";

impl Scene {
    /// Alice's one grant at `reuse`, whose token is of generation 1.
    fn new() -> Scene {
        let gatepost = Gatepost::start_with(&offline::document(), &[]);
        let mut browser = signed_in(&gatepost);
        gatepost.database.run(
            "INSERT INTO consents (sub, client_id, scopes, claims)
             SELECT sub, 'reuse', '{openid,profile,offline_access,orders.read}', '{}' FROM users WHERE username = 'alice'",
        );
        let mut scene = Scene {
            database: gatepost.database.client(),
            gatepost,
            token: String::new(),
        };
        scene.change(&of_usage("rotate"));
        let tokens = REUSE.tokens(&scene.gatepost, &mut browser, WIDE);
        let next = REUSE.refresh(&scene.gatepost, refresh(&tokens)).json();
        scene.run(
            "CREATE TABLE kept AS SELECT * FROM grants;
             CREATE TABLE begun AS SELECT * FROM grants;
             CREATE TABLE seen AS SELECT hash FROM audit_events",
        );
        let token = refresh(&next).to_owned();
        Scene { token, ..scene }
    }

    fn run(&mut self, sql: &str) {
        self.database.batch_execute(sql).unwrap();
    }

    fn change(&mut self, sql: &str) {
        let bump = "UPDATE installation SET registry_version = registry_version + 1";
        self.run(&format!("{sql}; {bump}"));
        self.gatepost.settle();
    }

    fn value(&mut self, sql: &str) -> Value {
        self.database.query_one(sql, &[]).unwrap().get(0)
    }

    /// From the row that was kept, which is there again.
    fn outcome(&mut self, further: &[(&str, &str)]) -> Outcome {
        self.run("DELETE FROM grants; INSERT INTO grants SELECT * FROM kept");
        let answer = REUSE.refresh_with(&self.gatepost, &self.token, further);
        let outcome = Outcome {
            status: answer.status,
            row: self.value(ROW),
            events: self.value(EVENTS),
        };
        self.run("INSERT INTO seen SELECT hash FROM audit_events");
        outcome
    }

    /// Whether a token of the present generation was taken.
    fn compare(&mut self, changes: &[&Change], usage: &str) -> bool {
        let done = changes.iter().map(|change| change.done);
        let done: String = done.map(|sql| format!("{sql};")).collect();
        self.change(&(of_usage(usage) + ";" + &done));
        let taken = PLACES.map(|place| {
            self.run(&format!(
                "DELETE FROM kept; INSERT INTO kept SELECT * FROM grants;
                 CREATE TABLE changed AS SELECT * FROM grants; UPDATE kept SET {place}"
            ));
            let at_once = self.outcome(&[]);
            let read_first = self.outcome(&[("scope", WIDE)]);
            let names: Vec<_> = changes.iter().map(|change| change.name).collect();
            assert_eq!(at_once, read_first, "{names:?}, {usage}, {place}");
            self.run(
                "DELETE FROM grants; INSERT INTO grants SELECT * FROM changed; DROP TABLE changed",
            );
            at_once.status == 200
        });
        let undone = changes.iter().rev().map(|change| change.undone);
        self.run(&undone.map(|sql| format!("{sql};")).collect::<String>());
        self.run("DELETE FROM grants; INSERT INTO grants SELECT * FROM begun");
        taken[0]
    }
}

fn of_usage(usage: &str) -> String {
    format!(
        "UPDATE clients SET metadata = metadata || '{{\"refresh_token_usage\": \"{usage}\"}}' WHERE client_id = 'reuse'"
    )
}

#[test]
fn both_ways_of_a_refresh_say_the_same_and_leave_the_same_row_and_event() {
    let mut scene = Scene::new();
    for (number, change) in CHANGES.iter().enumerate() {
        let usage = USAGES[number % 2];
        let ends = change.ends[2];
        assert_eq!(scene.compare(&[change], usage), !ends, "{}", change.name);
    }
    for usage in USAGES {
        assert!(scene.compare(&[], usage), "{usage}");
    }
    for _ in 0..12 {
        let drawn: [u8; 3] = random::bytes();
        let [one, other, usage] = drawn.map(usize::from);
        let pair = [one, other].map(|number| &CHANGES[number % CHANGES.len()]);
        let is_one = pair[0].name == pair[1].name;
        let pair = if is_one { &pair[..1] } else { &pair[..] };
        let ends = pair.iter().any(|change| change.ends[2]);
        assert_eq!(scene.compare(pair, USAGES[usage % 2]), !ends);
    }
    scene.gatepost.run_well(&["audit", "verify"], "");
}

#[test]
fn a_refresh_that_waits_for_a_revocation_finds_it() {
    let mut scene = Scene::new();
    let mut other = scene.gatepost.database.client();
    let mut revoking = other.transaction().unwrap();
    revoking
        .execute("UPDATE grants SET revoked_at = clock_timestamp()", &[])
        .unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| REUSE.refresh(&scene.gatepost, &scene.token).status);
        let waits = "pg_locks WHERE NOT granted";
        while scene.gatepost.database.count(waits) == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        revoking.commit().unwrap();
        assert_eq!(waiting.join().unwrap(), 400);
    });
    assert_eq!(scene.value("SELECT to_jsonb(generation) FROM grants"), 1);
}
