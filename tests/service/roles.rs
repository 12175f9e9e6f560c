//! Registered roles: who has them, who gives them, and how they go.

use std::thread::spawn;

use serde_json::{Value, json};

use crate::cli_support::Installation;
use crate::support::postgres::TestDatabase;
use gatepost::store::migrate::MIGRATIONS;
use gatepost::tool::statements::schema;

fn role(name: &str, given: bool) -> Value {
    json!({
        "name": name, "display_name": format!("The {name}"), "display_name#de": format!("Die {name}"),
        "description": "What it is for", "given_by_administrators": given,
    })
}

fn user(name: &str, role: &Value) -> Value {
    json!({"username": name, "sub": format!("sub|{name}"), "claims": {"name": format!("{name} Brandt"), "role": role}})
}

/// Who has which role, as `role sub`.
fn members(installation: &Installation) -> Vec<String> {
    let mut client = installation.database.client();
    let rows = client.query(
        "SELECT tenant, role, sub FROM role_members ORDER BY 1, 2, 3",
        &[],
    );
    let rows = rows.unwrap();
    let told = rows.iter().map(|row| {
        let [tenant, role, sub] = [0, 1, 2].map(|column| row.get::<_, String>(column));
        format!("{tenant} {role} {sub}").trim().to_owned()
    });
    told.collect()
}

#[test]
fn a_role_is_registered_exported_and_not_pruned() {
    let installation = Installation::migrated();
    let document = json!({"roles": [role("books", true), role("stock", false)]});
    assert_eq!(installation.apply(&document).code, 0);
    let exported: Value = serde_json::from_str(&installation.done(&["export"], "")).unwrap();
    assert_eq!(exported["roles"], document["roles"]);
    let again = installation.apply(&document);
    assert!(again.stdout.contains("2 unchanged"), "{again:?}");
    let fewer = json!({"roles": [role("books", true)]}).to_string();
    let pruned = installation.run_with(&["apply", "-", "--prune", "--yes"], &fewer);
    pruned.assert_refused(1, "`gatepost role remove \"stock\"`");
    for (wrong, rule) in [
        (json!({"name": "a\u{202e}b"}), "bidi"),
        (json!({"name": "a".repeat(201)}), "200"),
        (
            json!({"name": "a", "given_by_administrators": "yes"}),
            "given_by_administrators",
        ),
        (json!({"display_name": "x"}), "name"),
    ] {
        let refused = installation.apply(&json!({"roles": [wrong]}));
        refused.assert_refused(1, rule);
    }
}

#[test]
fn who_has_a_role_follows_every_way_in_which_people_change() {
    let installation = Installation::migrated();
    let document = json!({"tenants": [{"name": "acme"}], "users": [
        user("one", &json!("books")),
        user("two", &json!(["books", "stock", "books"])),
        user("odd", &json!("stock")),
    ]});
    assert_eq!(installation.apply(&document).code, 0);
    // What no document may have, and a database can.
    installation.database.run(
        r#"UPDATE users SET claims = '{"role": ["", "  ", 7, {"a": "books"}, "stock"]}' WHERE sub = 'sub|odd'"#,
    );
    let all = [
        "books sub|one",
        "books sub|two",
        "stock sub|odd",
        "stock sub|two",
    ];
    assert_eq!(members(&installation), all);
    let since = || -> String {
        let asked = "SELECT since::text FROM role_members WHERE role = 'books' AND sub = 'sub|two'";
        installation.database.value(asked, &[])
    };
    let before = since();
    installation.done(&["user", "role", "two", "--remove", "stock"], "");
    assert_eq!(since(), before, "what stays keeps its moment");
    installation.done(&["user", "role", "one", "--add", "stock"], "");
    installation
        .database
        .run("UPDATE users SET tenant = 'acme' WHERE sub = 'sub|two'");
    installation.done(&["user", "remove", "odd", "--yes"], "");
    let all = ["books sub|one", "stock sub|one", "acme books sub|two"];
    assert_eq!(members(&installation), all);
    // Too long for the key: nobody's write fails for that.
    installation.database.run(
        "UPDATE users SET claims = jsonb_build_object('role', repeat('ä', 3000)) WHERE sub = 'sub|one'",
    );
    assert_eq!(members(&installation), ["acme books sub|two"]);
}

#[test]
fn a_role_that_is_removed_is_taken_from_everybody_and_ends_nothing_else() {
    let installation = Installation::migrated();
    let users = Vec::from_iter((0..1_203).map(|number| {
        let roles = if number % 2 == 0 {
            json!(["books", "stock"])
        } else {
            json!("books")
        };
        user(&format!("u{number:04}"), &roles)
    }));
    let document = json!({"roles": [role("books", true)], "users": users});
    assert_eq!(installation.apply(&document).code, 0);
    let epochs = "SELECT string_agg(epoch::text, ' ' ORDER BY sub) FROM users";
    let before: String = installation.database.value(epochs, &[]);
    let told = installation.done(&["role", "remove", "books", "--yes"], "");
    assert!(told.contains("1203 people had it"), "{told}");
    assert_eq!(installation.database.count("role_members"), 602);
    assert_eq!(installation.database.value::<String>(epochs, &[]), before);
    let left = "SELECT count(*) FROM users WHERE claims -> 'role' = '[\"stock\"]'";
    assert_eq!(installation.database.value::<i64>(left, &[]), 602);
    let without = "SELECT count(*) FROM users WHERE NOT claims ? 'role'";
    assert_eq!(installation.database.value::<i64>(without, &[]), 601);
    let events = "SELECT count(*) FROM audit_events WHERE event = 'user_changed'";
    assert_eq!(installation.database.value::<i64>(events, &[]), 1_203);
    let gone = installation.run(&["role", "remove", "books", "--yes"]);
    gone.assert_refused(1, "nobody has the role");
}

#[test]
fn a_role_that_something_asks_for_is_not_removed() {
    let installation = Installation::migrated();
    let shop = client("shop", &json!({"allowed_roles": ["books"]}));
    let one = user("one", &json!(["books", "office"]));
    installation.apply(&json!({"clients": [shop], "users": [one]}));
    let refused = installation.run(&["role", "remove", "books", "--yes"]);
    refused.assert_refused(1, "shop");
    let administered = ["--admin-role", "office", "--admin-roles", "books"];
    for (name, setting) in [
        ("office", "GATEPOST_ADMIN_ROLE "),
        ("books", "GATEPOST_ADMIN_ROLES "),
    ] {
        let command = [&["role", "remove", name, "--yes"][..], &administered].concat();
        installation.run(&command).assert_refused(1, setting);
    }
    assert_eq!(members(&installation), ["books sub|one", "office sub|one"]);
    // Registered by mistake, and nobody has it.
    installation.apply(&json!({"roles": [role("office:acme", false)]}));
    let command = [
        &["role", "remove", "office:acme", "--yes"][..],
        &administered,
    ]
    .concat();
    let told = installation.done(&command, "");
    assert!(told.contains("0 people had it"), "{told}");
    assert_eq!(installation.database.count("roles"), 0);
}

/// What the build before wrote counts, while it writes and afterwards; what an interrupted run did
/// is done.
#[test]
fn people_of_before_get_their_roles_and_words_in_batches() {
    let database = TestDatabase::empty();
    let (mut client, filling) = (database.client(), 11);
    schema::apply(&mut client, &MIGRATIONS[..filling - 1]).unwrap();
    let insert = |from: i32, to: i32| {
        format!(
            "INSERT INTO users (sub, username, username_key, claims) \
             SELECT 'u' || n, 'u' || n, 'u' || n, '{{\"name\": \"Bea Brandt\", \"role\": \"staff\"}}' \
             FROM generate_series({from}, {to}) AS n"
        )
    };
    database.run(&insert(1, 3_500));
    schema::apply(&mut client, &MIGRATIONS[..filling]).unwrap();
    assert_eq!(database.count("role_members"), 0);
    // The trigger is there: whoever writes meanwhile is noted.
    database.run(&insert(3_501, 3_502));
    database.run("UPDATE users SET claims = '{\"role\": \"sales\"}' WHERE sub = 'u7'");
    let url = database.client();
    let fill = |mut client: postgres::Client| {
        spawn(move || {
            schema::apply(&mut client, &MIGRATIONS[..=filling]).map(|applied| applied.len())
        })
    };
    let both = [fill(url), fill(database.client())].map(|one| one.join().unwrap().unwrap());
    assert_eq!(
        both.iter().sum::<usize>(),
        1,
        "one of them did it: {both:?}"
    );
    assert_eq!(database.count("role_members"), 3_502);
    let words = "SELECT count(*) FROM user_words WHERE word = 'brandt'";
    assert_eq!(database.value::<i64>(words, &[]), 3_501);
    let known = "SELECT count(*) FROM role_members WHERE since IS NOT NULL";
    // Of those who were written since.
    assert_eq!(database.value::<i64>(known, &[]), 3);
}

fn client(client_id: &str, more: &Value) -> Value {
    let mut client = json!({
        "client_id": client_id, "redirect_uris": ["https://shop.example/cb"], "scope": "openid",
        "grant_types": ["authorization_code"], "token_endpoint_auth_method": "none",
    });
    let members = client.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    client
}

#[test]
fn the_report_of_whoever_is_not_there_is_refused_and_runs_nothing_in_a_spreadsheet() {
    let installation = Installation::migrated();
    let mut document = json!({
        "clients": [client("shop", &json!({"allowed_roles": ["books"]}))],
        "tenants": [{"name": "acme"}],
        "users": [user("one", &json!("books")), user("two", &json!("books")), user("three", &json!("books"))],
    });
    document["users"][0]["password"] = json!("a password of one");
    document["users"][0]["tenant"] = json!("acme");
    let claims = json!({"name": "\u{7}\u{1b}=1", "role": "books", "email": "one@example.com", "email_verified": true});
    document["users"][0]["claims"] = claims;
    document["users"][1]["claims"]["name"] = json!("\n=1");
    let applied = installation.apply(&document);
    assert_eq!(applied.code, 0, "{applied:?}");
    for (arguments, rule) in [
        (["--client", "shp"], "there is no client \"shp\""),
        (["--user", "won"], "there is no user \"won\""),
        (["--user", "two@example.com"], "there is no user"),
    ] {
        let refused = installation.run(&[&["access", "--csv"][..], &arguments].concat());
        assert_eq!(refused.code, 1, "{refused:?}");
        assert_eq!(refused.stdout, "");
        assert!(refused.stderr.contains(rule), "{refused:?}");
    }
    for name in ["ONE", "sub|one", "One@example.com"] {
        let report = installation.done(&["access", "--csv", "--user", name], "");
        let rows = Vec::from_iter(report.lines().skip(1));
        let [row] = rows.as_slice() else {
            panic!("{name}: {report}")
        };
        assert!(
            row.starts_with("shop,shop,one,'=1,sub|one,books,"),
            "{name}: {row}"
        );
    }
    let two = installation.done(&["access", "--csv", "--user", "two"], "");
    assert!(two.contains(",\"'\n=1\",sub|two,"), "{two}");
}
