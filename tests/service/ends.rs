//! People with an end (`valid_until`), and people who do not come any more: how both are said, and
//! who is told. What an end ends is in `what_ends_what.rs`.

use serde_json::{Value, json};

use crate::admin_people::{act, boss, is_done, person_page, row, start, start_with_mail, tells};
use crate::support::gatepost::{Gatepost, document};
use crate::support::mailbox::Mailbox;
use crate::support::scim::{self, Program};

const EXTENSION: &str = "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User";

fn until(gatepost: &Gatepost, username: &str) -> Option<String> {
    let sql = "SELECT to_char(valid_until AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')
               FROM users WHERE username = $1";
    gatepost.database.value(sql, &[&username])
}

#[test]
fn each_way_to_say_an_end_reads_it_and_refuses_it_alike() {
    let gatepost = scim::start();
    let hr = Program::hr(&gatepost);
    let amy = hr.add(json!({"userName": "amy", EXTENSION: {"validUntil": "2027-01-31"}}));
    let id = amy["id"].as_str().unwrap();
    assert_eq!(amy[EXTENSION]["validUntil"], "2027-02-01T00:00:00Z");
    let path = format!("{EXTENSION}:validUntil");
    for (text, rule) in [
        ("1969-12-31T23:00:00Z", "must be a day"),
        ("12000-01-01T00:00:00Z", "must be a day"),
        ("2027-01-31T18:00:00", "must say its zone"),
    ] {
        let by_program = hr.replace(id, &path, text);
        by_program.assert_status_for(text, 400);
        by_program.assert_says(rule);
        let by_command = gatepost.refusal(&["user", "until", "amy", text], "");
        assert!(by_command.contains(rule), "{by_command}");
        let described = json!({"users": [{"username": "amy", "valid_until": text}]});
        let by_document = gatepost.apply_refused(&described);
        assert!(
            by_document.contains(&format!("users[0] (amy).valid_until: {rule}")),
            "{by_document}"
        );
    }
    let half_past = Some(String::from("2027-01-31T17:30:00Z"));
    hr.replace(id, &path, "2027-01-31T18:30:00.5+01:00")
        .assert_status(200);
    assert_eq!(until(&gatepost, "amy"), half_past);
    // A program that knows no ends leaves them; `active` is something else.
    let put = json!({"schemas": [scim::USER], "userName": "amy", "displayName": "Amy"});
    let put = hr.ask("PUT", &format!("Users/{id}"), &put).json();
    assert_eq!(
        (&put["displayName"], &put["active"]),
        (&json!("Amy"), &json!(true))
    );
    assert_eq!(until(&gatepost, "amy"), half_past);
    // What is exported is applied and changes nothing.
    let exported = gatepost.run_well(&["export"], "");
    assert!(exported.contains("\"valid_until\": \"2027-01-31T17:30:00Z\""));
    let planned = gatepost.run_well(&["plan", "-"], &exported);
    assert!(planned.contains("Nothing would change"), "{planned}");
    hr.patch(id, json!([{"op": "remove", "path": path}]))
        .assert_status(200);
    assert_eq!(until(&gatepost, "amy"), None);
    gatepost.run_well(&["user", "until", "amy", "2027-01-31"], "");
    assert_eq!(
        until(&gatepost, "amy").as_deref(),
        Some("2027-02-01T00:00:00Z")
    );
    let told = gatepost.run_well(&["user", "until", "amy", "2027-01-31"], "");
    assert!(told.contains("already"), "{told}");
}

#[test]
fn an_administrator_says_until_when_and_sees_who_ends_soon_who_ended_and_who_stays_away() {
    let gatepost = start();
    let mut boss = boss(&gatepost);
    let mut save = |day: &str| {
        let fields = [
            ("name", "Amy"),
            ("address", "amy@example.com"),
            ("until", day),
            ("decision", "save"),
        ];
        act(&mut boss, "amy", &fields)
    };
    tells(
        &save("next year"),
        "Enter the last day, such as 2027-01-31.",
    );
    is_done(&save("2999-01-31"));
    assert_eq!(
        until(&gatepost, "amy").as_deref(),
        Some("2999-02-01T00:00:00Z")
    );
    is_done(&save("2999-01-31"));
    let page = boss.get(&person_page("amy"));
    assert_eq!(
        page.attribute("name=\"until\"", "value").as_deref(),
        Some("2999-01-31")
    );
    gatepost.database.run(
        "UPDATE users SET valid_until = clock_timestamp() + interval '6 days' WHERE username = 'amy';
         UPDATE users SET valid_until = clock_timestamp() + interval '8 days' WHERE username = 'gus';
         UPDATE users SET valid_until = clock_timestamp() WHERE username = 'tess'",
    );
    let list = boss.get("/admin/people").text();
    assert_eq!(list.matches("Until <time").count(), 1, "{list}");
    let mut found = |state: &str| {
        let list = boss.get(&format!("/admin/people?state={state}")).text();
        let rows = list.split("<th scope=\"row\">").skip(1);
        let names = rows.filter_map(|row| row.split_once("sub%7C")?.1.split_once('"'));
        Vec::from_iter(names.map(|(name, _)| name.to_owned()))
    };
    assert_eq!(found("disabled"), ["tess"]);
    assert!(found("not-signed-in").is_empty());
    stay_away(&gatepost);
    assert_eq!(found("not-signed-in"), ["abe", "amy", "gina"]);
    // Pasted lines and the form for one have an end, too.
    let page = boss.get("/admin/invite-several");
    let lines = "Ann,ann@example.com,ann,,2027-01-31\nBo,bo@example.com,bo,,soon";
    let refused = boss.submit_to("/admin/invite-several", &page, &[("lines", lines)]);
    tells(&refused, "Enter the last day");
    let lines = lines.replace("soon", "");
    let done = boss.submit_to("/admin/invite-several", &refused, &[("lines", &lines)]);
    tells(&done, "People invited: 2.");
    assert_eq!(
        until(&gatepost, "ann").as_deref(),
        Some("2027-02-01T00:00:00Z")
    );
    assert_eq!(until(&gatepost, "bo"), None);
    // Their own end ends their pages.
    gatepost
        .database
        .run("UPDATE users SET valid_until = clock_timestamp() WHERE username = 'boss'");
    assert_eq!(boss.get("/admin/people").status, 303);
}

/// As if the log had been folded for a year, in which amy was not there for a hundred days, abe
/// never, gina, who is an administrator, neither. All others were there in some way.
fn stay_away(gatepost: &Gatepost) {
    gatepost.database.run(
        "UPDATE users SET created_at = created_at - interval '1 year';
         UPDATE schema_migrations SET applied_at = applied_at - interval '1 year';
         INSERT INTO folds SELECT floor(extract(epoch FROM clock_timestamp()) / 3600)::int4 - 2 ON CONFLICT DO NOTHING;
         INSERT INTO user_uses SELECT sub, floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 - 100
         FROM users WHERE username = 'amy';
         UPDATE users SET enabled = false WHERE username = 'gus';
         UPDATE users SET enabled = true WHERE username = 'gus';
         INSERT INTO user_uses SELECT sub, floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 - 80
         FROM users WHERE username NOT IN ('amy', 'abe', 'gina', 'gus', 'boss')",
    );
}

#[test]
fn who_stays_away_is_listed_and_disabled_in_one_step_but_for_administrators() {
    let gatepost = start();
    boss(&gatepost);
    let away = ["user", "list", "--not-signed-in-for", "90d"];
    let disabling = [&away[..], &["--disable", "--json"]].concat();
    let refused = gatepost.refusal(&away, "");
    assert!(refused.contains("nobody counts yet"), "{refused}");
    stay_away(&gatepost);
    let listed = |arguments: &[&str]| {
        let told: Value = serde_json::from_str(&gatepost.run_well(arguments, "")).unwrap();
        let names = told
            .as_array()
            .unwrap()
            .iter()
            .map(|user| user["username"].clone());
        Value::Array(names.collect())
    };
    let json = [&away[..], &["--json"]].concat();
    // Boss has a session, gus was enabled today.
    let mut all = listed(&json);
    all.as_array_mut().unwrap().sort_by_key(Value::to_string);
    assert_eq!(all, json!(["abe", "amy", "gina"]));
    let done = gatepost.run(&disabling, "");
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(told.contains("gina stays: an administrator"), "{told}");
    assert_eq!(listed(&disabling), json!([]), "done before");
    for (name, enabled) in [
        ("abe", false),
        ("amy", false),
        ("gina", true),
        ("gus", true),
    ] {
        assert_eq!(row(&gatepost, name)["enabled"], enabled, "{name}");
    }
    assert_eq!(gatepost.database.events("user_changed"), 2);
    for (arguments, rule) in [
        (&["user", "list", "--disable"][..], "goes with"),
        (
            &["user", "list", "--not-signed-in-for", "soon"],
            "must be a number",
        ),
        (
            &[&disabling[..], &["--limit", "1"]].concat(),
            "takes all of them",
        ),
    ] {
        let refused = gatepost.refusal(arguments, "");
        assert!(refused.contains(rule), "{refused}");
    }
}

#[test]
fn who_ends_within_a_week_is_told_once_in_their_language() {
    let mailbox = Mailbox::open();
    let mut gatepost = start_with_mail(&mailbox);
    gatepost.stop();
    gatepost.database.run(
        "UPDATE users SET valid_until = clock_timestamp() + interval '6 days',
             claims = claims || '{\"locale\": \"de\"}' WHERE username IN ('amy', 'tess');
         UPDATE users SET claims = claims || '{\"email_verified\": false}' WHERE username = 'tess';
         UPDATE users SET valid_until = clock_timestamp() + interval '8 days' WHERE username = 'gus'",
    );
    gatepost.serve();
    let letter = mailbox.letter(1);
    assert_eq!(letter.to, ["amy@example.com"]);
    assert!(letter.subject.contains("endet bald"), "{}", letter.subject);
    assert!(letter.text.contains("/account"), "{}", letter.text);
    let told = "SELECT count(*) FROM users WHERE end_told_at IS NOT NULL";
    assert_eq!(gatepost.database.value::<i64>(told, &[]), 2);
    gatepost.stop();
    gatepost.serve();
    // Another date is told anew.
    gatepost.run_well(
        &["user", "until", "amy", "2999-01-01", "--tenant", "acme"],
        "",
    );
    assert_eq!(gatepost.database.value::<i64>(told, &[]), 1);
    assert_eq!(mailbox.count(), 1);
}

#[test]
fn a_sign_up_link_says_how_long_its_accounts_are_there() {
    let mailbox = Mailbox::open();
    let gatepost = Gatepost::start_with(&document(), &mailbox.settings());
    let usual = [
        "signup",
        "make",
        "--uses",
        "1",
        "--for",
        "1d",
        "--accounts-for",
    ];
    let refused = gatepost.refusal(&[&usual[..], &["4000d"]].concat(), "");
    assert!(refused.contains("--accounts-for must be"), "{refused}");
    let link = gatepost.run_well(&[&usual[..], &["90d"]].concat(), "");
    let mut browser = gatepost.browser();
    let page = browser.visit(link.trim());
    browser
        .submit(&page, &[("address", "new@example.com")])
        .assert_status(200);
    let page = browser.visit(mailbox.letter(1).link());
    let password = "a password of their own choosing";
    let form = [
        ("username", "new"),
        ("name", "New"),
        ("new_password", password),
        ("new_password_again", password),
    ];
    browser.submit(&page, &form);
    let days = "SELECT round(extract(epoch FROM valid_until - created_at) / 86400)::int8 FROM users
                WHERE username = 'new'";
    assert_eq!(gatepost.database.value::<i64>(days, &[]), 90);
}
