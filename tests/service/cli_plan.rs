//! `gatepost plan`, `export` and `apply` against each other on a real database: what is planned is
//! done, and nothing else; what fails is not begun.

use std::process::{Command, Stdio};
use std::slice;

use postgres::Client;
use serde_json::{Value, json};

use crate::cli_support::{Answer, Installation, answer};
use crate::support::claims::Says;
use crate::support::flow::with_members;
use crate::support::tables::rows_of;
use crate::support::waiting::{SOON, all_at_once, await_that};

const SECRET: &str = "canary-of-the-plan-17";

fn document() -> Value {
    json!({
        "tenants": [{"name": "acme"}],
        "identity_scopes": [{"name": "roles", "claims": ["role"]}],
        "resource_scopes": [{"name": "orders.read", "resources": ["orders"]}, {"name": "orders.write"}],
        "resources": [{"name": "orders", "secrets": [{"value": SECRET}]}],
        "identity_providers": [{"name": "corp", "issuer": "https://login.example", "client_id": "x", "client_secret": SECRET}],
        "assertion_issuers": [{"issuer": "https://sts.example", "jwks_uri": "https://sts.example/jwks", "clients": ["web"], "scope": "orders.read"}],
        "clients": [
            {"client_id": "web", "redirect_uris": ["https://shop.example/cb"], "scope": "openid roles orders.read",
             "secrets": [{"value": SECRET}], "access_token_lifetime": 120, "claims": {"level": 1e2}},
            {"client_id": "spa", "redirect_uris": ["https://spa.example/cb"], "scope": "openid"}
        ],
        "users": [
            {"username": "alice", "password": "a long enough password", "claims": {"name": "Alice", "role": ["admin"]}},
            {"username": "bob", "tenant": "acme", "sub": "bob-1"}
        ]
    })
}

fn plan(installation: &Installation, document: &Value, arguments: &[&str]) -> Answer {
    installation.run_with(&[&["plan", "-"], arguments].concat(), &document.to_string())
}

fn planned(installation: &Installation, document: &Value, arguments: &[&str]) -> Value {
    let answer = plan(installation, document, &[arguments, &["--json"]].concat());
    assert!(matches!(answer.code, 0 | 3), "{answer:?}");
    serde_json::from_str(&answer.stdout).unwrap()
}

fn numbers(plan: &Value) -> [u64; 4] {
    ["added", "changed", "removed", "unchanged"].map(|key| plan[key].as_u64().unwrap())
}

#[test]
fn a_plan_changes_nothing_and_apply_does_just_what_it_says() {
    let installation = Installation::migrated();
    let (version, before) = (installation.registry_version(), installation.dump());
    let answer = plan(&installation, &document(), &[]);
    assert_eq!(answer.code, 3, "{answer:?}");
    answer.stdout.assert_says("+ client web\n");
    answer.stdout.assert_says("    secrets: 1 new, 0 removed");
    let numbers = "Would add 11, change 0, remove 0; 0 unchanged.\n";
    assert!(answer.stdout.ends_with(numbers), "{answer:?}");
    assert!(!answer.stdout.contains(SECRET), "{answer:?}");
    assert!(!answer.stdout.contains('\u{1b}'), "{answer:?}");
    assert_eq!(installation.registry_version(), version);
    assert_eq!(installation.dump(), before);

    let wanted = planned(&installation, &document(), &[]);
    let done = installation.apply(&document()).stdout;
    for change in wanted["changes"].as_array().unwrap() {
        let [kind, name] = ["kind", "name"].map(|member| change[member].as_str().unwrap());
        done.assert_says(&format!("added {kind} {name}\n"));
    }
    let again = plan(&installation, &document(), &[]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(again.stdout, "Nothing would change; 11 unchanged.\n");

    let mut other = document();
    other["clients"][1]["scope"] = json!("openid roles");
    other["clients"][1]["redirect_uris"] =
        json!(["https://spa.example/cb", "https://spa.example/other"]);
    other["clients"][0]["secrets"] = json!([{"value": "another secret, longer"}]);
    other["users"][0]["claims"]["name"] = json!("Alice \u{9b}31m Smith");
    other["identity_providers"][0]["client_secret"] = json!("another secret, longer");
    let answer = plan(&installation, &other, &[]);
    for line in [
        "~ client spa\n    redirect_uris: +\"https://spa.example/other\"\n    scope: \"openid\" -> \"openid roles\"\n",
        "~ client web\n    secrets: 1 new, 1 removed\n",
        "~ identity_provider corp\n    client_secret: another one\n",
        "    claims.name: \"Alice\" -> \"Alice \\u{9b}31m Smith\"\n",
        "Would add 0, change 4, remove 0; 7 unchanged.\n",
    ] {
        answer.stdout.assert_says(line);
    }
}

#[test]
fn an_export_applied_changes_nothing_and_holds_no_secret() {
    let installation = Installation::migrated();
    assert_eq!(installation.apply(&document()).code, 0);
    installation.done(&["user", "password", "alice"], "another long password\n");
    let exported = installation.done(&["export"], "");
    assert!(!exported.contains(SECRET), "{exported}");
    exported.assert_says_not("argon2");
    let (version, before) = (installation.registry_version(), installation.dump());
    for arguments in [&["apply", "-"][..], &["apply", "-", "--prune"]] {
        let applied = installation.done(arguments, &exported);
        assert_eq!(applied, "0 added, 0 changed, 11 unchanged\n");
    }
    installation.done(&["plan", "-", "--prune"], &exported);
    assert_eq!(installation.registry_version(), version);
    assert_eq!(installation.dump(), before);

    // In an installation without those secrets the client must not become a public one.
    let elsewhere = Installation::migrated();
    assert_eq!(elsewhere.run_with(&["apply", "-"], &exported).code, 0);
    let mut clients = elsewhere.list("client").into_iter();
    let web = clients.find(|client| client["client_id"] == "web").unwrap();
    assert_eq!(web["metadata"]["confidential"], true);
    assert_eq!(web["secrets"], json!([]));
    assert_eq!(elsewhere.done(&["export"], ""), exported);
}

#[test]
fn pruning_is_announced_first_and_removes_what_the_lists_leave_out() {
    let installation = Installation::migrated();
    assert_eq!(installation.apply(&document()).code, 0);
    let mut kept = document();
    kept["clients"] = json!([kept["clients"][0]]);
    kept["users"] = json!([{"username": "alice", "claims": {"name": "Alice", "role": ["admin"]}}]);
    kept["resource_scopes"] = json!([kept["resource_scopes"][0]]);
    assert_eq!(numbers(&planned(&installation, &kept, &[])), [0, 0, 0, 8]);
    let answer = plan(&installation, &kept, &["--prune"]);
    assert_eq!(answer.code, 3);
    let first = "--prune removes 3; what is removed, its tokens and its secrets do not come back:\n\n\
                 - user bob (sub bob-1)\n- client spa\n- resource_scope orders.write\n";
    assert!(answer.stdout.starts_with(first), "{answer:?}");
    let done = installation.done(&["apply", "-", "--prune"], &kept.to_string());
    let removed = "removed user bob\nremoved client spa\nremoved resource_scope orders.write\n";
    let counted = "0 added, 0 changed, 8 unchanged, 3 removed\n";
    assert_eq!(done, format!("{removed}{counted}"));
    installation.done(&["plan", "-", "--prune"], &kept.to_string());
    let back = json!({"users": [{"username": "robert", "sub": "bob-1"}]});
    let was_removed = "users[0] (robert).sub: is the sub of a user who was removed";
    installation.apply(&back).assert_refused(1, was_removed);
    // Lists that the document does not have are not its concern.
    let nothing = installation.done(&["apply", "-", "--prune"], "{}");
    assert_eq!(nothing, "0 added, 0 changed, 0 unchanged\n");
}

#[test]
fn nothing_that_stays_is_left_pointing_at_what_goes() {
    let installation = Installation::migrated();
    assert_eq!(installation.apply(&document()).code, 0);
    let before = installation.dump();
    let names = "is not in this document and names";
    for [list, problem] in rows_of(
        r#"
        resources       | resource_scope "orders.read": NAMES resource "orders"
        identity_scopes | client "web": NAMES scope "roles"
        clients         | assertion_issuer "https://sts.example": NAMES client "web"
        tenants         | tenant "acme": would be removed, but users who stay belong to it
    "#,
    ) {
        for command in ["plan", "apply"] {
            let without = json!({list: []}).to_string();
            let answer = installation.run_with(&[command, "-", "--prune"], &without);
            answer.assert_refused(1, &problem.replace("NAMES", names));
        }
    }
    assert_eq!(installation.dump(), before);
}

/// Documents and what is said of them; `$` is the end of a line.
const MISTAKES: &str = r#"
{"clients": [{"client_id": "a", "redirect_uri": []}]}
    | clients[0] (a): unknown key "redirect_uri"; the nearest is "redirect_uris"$
{"clients": [{"client_id": "a", "wombat": 1}]} | clients[0] (a): unknown key "wombat"$
{"client": []} | the document: unknown key "client"; the nearest is "clients"$
{"clients": {}} | clients: expected an array, found an object
{"clients": [7]} | clients[0]: expected an object, found a number
{"users": [{"username": "u", "enabled": "yes"}]}
    | users[0] (u).enabled: expected true or false, found a string
{"users": [{"username": "u"}, {"username": "U"}]}
    | users[1] (U).username: is the same as that of users[0]
{"tenants": [{"name": "a"}, {"name": "a"}]} | tenants[1] (a).name: is the same as that of tenants[0]
{"clients": [{"client_id": "a", "scope": "profil", "redirect_uris": ["https://a.example/cb"]}]}
    | clients[0] (a).scope: names "profil", which is not a registered scope; the nearest is "profile"$
{"clients": [{"client_id": "a", "scope": "profil zebra", "redirect_uris": ["https://a.example/cb"]}]}
    | clients[0] (a).scope: names "zebra", which is not a registered scope$
{"users": [{"username": "u", "tenant": "t"}], "tenants": [{"nam": "t"}]}
    | tenants[0]: unknown key "nam"; the nearest is "name"$
{"users": [{"username": "u", "tenant": "t"}], "tenants": [{"nam": "t"}]} | tenants[0].name: is required
{"clients": [$  {"client_id": "a",$}]} | standard input is not JSON
{"clients": [$  {"client_id": "a",$}]} | line 3 column 1
{"clients": [{"client_id": "a", "client_id": "b"}]}
    | key "client_id" stands twice in one object at line 1
 | standard input is empty
nonsense | standard input is not JSON
[] | the document: expected an object, found an array
"#;

#[test]
fn mistakes_name_their_place_and_the_nearest_name_where_one_is_near() {
    let installation = Installation::migrated();
    let before = installation.dump();
    for [text, problem] in rows_of(MISTAKES) {
        for command in ["plan", "apply"] {
            let answer = installation.run_with(&[command, "-"], &text.replace('$', "\n"));
            assert_eq!(answer.code, 1, "{text}: {answer:?}");
            assert_eq!(answer.stdout, "", "{text}: {answer:?}");
            let problem = problem.replace('$', "\n");
            answer.stderr.assert_says_for(text, &problem);
        }
    }
    let answer = installation.run(&["plan", "/nonexistent/registration.json"]);
    answer.assert_refused(1, "/nonexistent/registration.json cannot be read");
    let directory = installation.directory.display().to_string();
    let file = format!("{directory}/document");
    let long = json!({"clients": [{"client_id": "a".repeat(5_000_000)}]}).to_string();
    let no_object = "line 1 column 1; a document is an object, and begins with {";
    let no_utf_8 = "document is not UTF-8, from line 2 on: save it as UTF-8";
    let too_long = ").client_id: must be 1 to 200 printable ASCII characters";
    for (told, bytes) in [
        (no_utf_8, &b"{\n\"caf\xe9\": 1}"[..]),
        ("document is UTF-16: save it as UTF-8", b"\xff\xfe{\0}\0"),
        ("document is empty", b"\xef\xbb\xbf \n"),
        (no_object, b"clients:\n  - client_id: a\n"),
        (too_long, long.as_bytes()),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let answer = installation.run(&["plan", &file]);
        answer.assert_refused(1, told);
        assert!(answer.stderr.len() < 1_000, "{told}: {answer:?}");
    }
    let answer = installation.run(&["apply", &directory]);
    let told = format!("gatepost: {directory} cannot be read: it is a directory\n");
    assert_eq!(answer.stderr, told);
    assert_eq!(installation.run(&["plan", ""]).code, 2);
    std::fs::write(&file, b"\xef\xbb\xbf{}").unwrap();
    // A mark of the byte order is no mistake.
    assert_eq!(installation.run(&["plan", &file]).code, 0);
    assert_eq!(installation.run(&["plan"]).code, 2);
    assert_eq!(installation.dump(), before);
}

#[test]
fn with_the_database_away_nothing_is_done_and_the_reason_told() {
    let installation = Installation::migrated();
    for arguments in [&["plan", "-"][..], &["apply", "-"], &["export"]] {
        let mut command = installation.command(arguments);
        let nowhere = "postgres://gatepost:hunter2@127.0.0.1:9/none";
        command.env("GATEPOST_DATABASE_URL", nowhere);
        let answer = answer(command, "{}");
        assert_eq!((answer.code, answer.stdout.as_str()), (1, ""), "{answer:?}");
        answer.stderr.assert_says("database unavailable");
        answer.stderr.assert_says_not("hunter2");
    }
}

fn many(clients: usize) -> Value {
    let client = |number: usize| {
        json!({"client_id": format!("client-{number:05}"), "redirect_uris": [format!("https://app-{number}.example/cb")],
               "scope": "openid", "secrets": [{"sha256": "00".repeat(32)}]})
    };
    json!({"clients": (0..clients).map(client).collect::<Vec<_>>()})
}

#[test]
fn five_thousand_clients_are_planned_applied_and_exported_whole() {
    let installation = Installation::migrated();
    let document = many(5_000);
    let plan = planned(&installation, &document, &[]);
    assert_eq!(numbers(&plan), [5_000, 0, 0, 0]);
    let done = installation.apply(&document).stdout;
    assert!(done.ends_with("5000 added, 0 changed, 0 unchanged\n"));
    assert_eq!(installation.database.count("client_secrets"), 5_000);
    let exported = installation.done(&["export"], "");
    let again = installation.run_with(&["apply", "-"], &exported).stdout;
    assert_eq!(again, "0 added, 0 changed, 5000 unchanged\n");
    // One mistake among thousands is found, and thousands of them are not all told.
    let mut broken = document;
    for client in broken["clients"].as_array_mut().unwrap() {
        client["scope"] = json!("opennid");
    }
    let answer = installation.apply(&broken);
    answer.assert_refused(1, "and 4900 more\nnothing was applied");
}

/// Counts from now on the statements that remove clients, and those that write audit rows.
const COUNT_STATEMENTS: &str = "
CREATE TABLE statements (what text NOT NULL);
CREATE FUNCTION count_statement() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO statements VALUES (tg_table_name); RETURN NULL; END $$;
CREATE TRIGGER counted AFTER DELETE ON clients FOR EACH STATEMENT EXECUTE FUNCTION count_statement();
CREATE TRIGGER counted AFTER INSERT ON audit_events FOR EACH STATEMENT EXECUTE FUNCTION count_statement()";

#[test]
fn thousands_of_clients_go_in_a_few_statements_with_an_audit_row_each() {
    let installation = Installation::migrated();
    assert_eq!(installation.apply(&many(1_201)).code, 0);
    let mut client = installation.database.client();
    client.batch_execute(COUNT_STATEMENTS).unwrap();
    let done = installation.run_with(&["apply", "-", "--prune"], &many(1).to_string());
    let counted = "0 added, 0 changed, 1 unchanged, 1200 removed\n";
    assert!(done.stdout.ends_with(counted), "{}", done.stderr);
    for table in ["clients", "client_secrets"] {
        assert_eq!(installation.database.count(table), 1, "{table}");
    }
    let statements = "SELECT what, count(*) FROM statements GROUP BY what ORDER BY what";
    let rows = client.query(statements, &[]).unwrap();
    let statements = rows.iter().map(|row| (row.get(0), row.get(1)));
    let statements: Vec<(String, i64)> = statements.collect();
    let expected = ["audit_events", "clients"].map(|table| (String::from(table), 3));
    assert_eq!(statements, expected);
    let told = "SELECT count(DISTINCT client_id), count(*) FROM audit_events WHERE event = 'client_removed' \
                AND detail -> 'old' ->> 'client_id' = client_id";
    let told = client.query_one(told, &[]).unwrap();
    assert_eq!([0, 1].map(|column| told.get::<_, i64>(column)), [1_200; 2]);
    installation.done(&["audit", "verify"], "");
}

/// Runs a command line at a terminal of its own; what stood on it.
fn at_a_terminal(installation: &Installation, line: &str) -> String {
    let mut command = Command::new("script");
    let settings = installation.command(&[]);
    command
        .args(["-qec", line, "/dev/null"])
        .stdin(Stdio::null());
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    let own = settings.get_envs();
    command.envs(own.filter_map(|(name, value)| Some((name, value?))));
    // `script` is of util-linux, which every Debian has.
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn at_a_terminal_there_are_colours_and_a_line_of_progress() {
    let installation = Installation::migrated();
    let file = installation.write_private("many.json", &many(1_200).to_string());
    let (program, file) = (env!("CARGO_BIN_EXE_gatepost"), file.display());
    let line = |command: &str| format!("{program} {command} {file}");
    let shown = at_a_terminal(&installation, &line("plan"));
    shown.assert_says("\u{1b}[32m+ client client-00000\u{1b}[0m");
    let shown = at_a_terminal(&installation, &format!("NO_COLOR=1 {}", line("plan")));
    assert!(shown.contains("+ client client-00000") && !shown.contains('\u{1b}'));
    let shown = at_a_terminal(&installation, &line("apply"));
    shown.assert_says("\r\u{1b}[K1200 of 1200 changes\r\u{1b}[K");
    shown.assert_says("1200 added");
    let piped = installation.run(&["apply", &file.to_string()]);
    assert_eq!(piped.stderr, "");
}

/// Whether nobody has the registry to themselves.
fn is_free(client: &mut Client) -> bool {
    let free = "SELECT FROM installation FOR UPDATE SKIP LOCKED";
    !client.query(free, &[]).unwrap().is_empty()
}

#[test]
fn killed_in_the_middle_apply_leaves_nothing_behind() {
    let installation = Installation::migrated();
    let file = installation.write_private("many.json", &many(5_000).to_string());
    let before = installation.dump();
    let apply = ["apply", file.to_str().unwrap()];
    let mut command = installation.command(&apply);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut client = installation.database.client();
    await_that("a change begins", SOON, || !is_free(&mut client));
    child.kill().unwrap();
    child.wait().unwrap();
    // The database notices, and rolls back.
    await_that("the transaction ends", SOON, || is_free(&mut client));
    assert_eq!(installation.dump(), before);
    let again = installation.run(&apply).stdout;
    assert!(again.ends_with("5000 added, 0 changed, 0 unchanged\n"));
}

#[test]
fn an_error_of_the_database_in_the_middle_leaves_nothing_behind() {
    let installation = Installation::migrated();
    let fault = "ALTER TABLE users ADD CONSTRAINT no_bob CHECK (username <> 'bob')";
    installation.database.run(fault);
    let before = installation.dump();
    let answer = installation.apply(&document());
    assert_eq!((answer.code, answer.stdout.as_str()), (1, ""), "{answer:?}");
    assert_eq!(installation.dump(), before);
}

#[test]
fn two_applies_at_once_come_one_after_the_other() {
    let installation = Installation::migrated();
    let many = many(200);
    let answers = all_at_once(2, |_| installation.apply(&many).stdout);
    let ends = answers.iter().map(|text| text.lines().last().unwrap());
    let mut ends: Vec<&str> = ends.collect();
    ends.sort_unstable();
    assert_eq!(
        ends,
        [
            "0 added, 0 changed, 200 unchanged",
            "200 added, 0 changed, 0 unchanged"
        ]
    );

    // Somebody who holds the registry for too long is told of, and waited for no longer.
    let mut client = installation.database.client();
    let mut transaction = client.transaction().unwrap();
    let held = "UPDATE installation SET registry_version = registry_version";
    transaction.execute(held, &[]).unwrap();
    let answer = installation.apply(&document());
    let told = "another change to the registry is under way; nothing was done, try again";
    answer.assert_refused(1, told);
}

#[test]
fn a_hundred_changes_are_listed_and_the_others_counted_unless_all_are_asked_for() {
    let installation = Installation::migrated();
    let mut document = many(150);
    document["tenants"] = json!([{"name": "acme"}]);
    let listed = |text: &str, of: &str| text.lines().filter(|line| line.starts_with(of)).count();
    let counted = "and 51 more (--verbose lists all); 1 in tenants, 150 in clients\n";
    let short = plan(&installation, &document, &[]).stdout;
    assert_eq!(listed(&short, "+ "), 100);
    short.assert_says(counted);
    let would = "Would add 151, change 0, remove 0; 0 unchanged.\n";
    assert!(short.ends_with(would), "{short}");
    let whole = plan(&installation, &document, &["--verbose"]).stdout;
    assert_eq!(listed(&whole, "+ "), 151);
    assert!(!whole.contains("more ("));
    let all = planned(&installation, &document, &[]);
    assert_eq!(all["changes"].as_array().unwrap().len(), 151);
    let done = installation.apply(&document).stdout;
    assert_eq!(listed(&done, "added "), 100);
    let end = format!("{counted}151 added, 0 changed, 0 unchanged\n");
    assert!(done.ends_with(&end), "{done}");
    for client in document["clients"].as_array_mut().unwrap() {
        client["client_name"] = json!("Another");
    }
    let verbose = ["apply", "-", "--verbose"];
    let done = installation
        .run_with(&verbose, &document.to_string())
        .stdout;
    assert_eq!(listed(&done, "changed "), 150, "{done}");
    assert!(!done.contains("more ("), "{done}");
}

#[test]
fn a_user_who_becomes_an_administrator_is_warned_of() {
    let installation = Installation::migrated();
    let with = |role: &str| json!({"users": [{"username": "alice", "claims": {"role": [role]}}]});
    let administered = ["--admin-role", "office"];
    let warnings = |role: &str, settings: &[&str]| {
        planned(&installation, &with(role), settings)["warnings"].clone()
    };
    let unregistered =
        "role \"office\": not registered (\"roles\"), so that administrators see this name alone";
    assert_eq!(warnings("office", &[]), json!([unregistered]));
    let warning = "user \"alice\" becomes an administrator (GATEPOST_ADMIN_ROLE)";
    let of_officer = unregistered.replace("office", "officer");
    for (role, told) in [
        ("office", json!([warning])),
        ("office:acme", json!([warning])),
        ("officer", json!([of_officer])),
    ] {
        assert_eq!(warnings(role, &administered), told, "{role}");
    }
    let applied = installation.run_with(&["apply", "-"], &with("office").to_string());
    assert_eq!(applied.code, 0, "{applied:?}");
    let so_before = json!([]);
    assert_eq!(warnings("office:acme", &administered), so_before);
}

#[test]
fn new_clients_whose_id_tokens_say_no_name_are_named_until_they_say_that_they_know() {
    let installation = Installation::migrated();
    let client = |name: &str, changes: Value| {
        let client = json!({
            "client_id": name, "redirect_uris": ["https://a.example/cb"], "scope": "openid email",
            "grant_types": ["authorization_code"], "secrets": [{"value": SECRET}],
        });
        with_members(client, &changes)
    };
    let warnings = |clients: &[Value]| {
        planned(&installation, &json!({"clients": clients}), &[])["warnings"].clone()
    };
    let needs = "software that does not ask UserInfo needs \"always_include_user_claims_in_id_token\": true";
    let shop = client("shop", json!({}));
    let told = json!([format!("client \"shop\": {needs}")]);
    assert_eq!(warnings(slice::from_ref(&shop)), told);
    let key = "always_include_user_claims_in_id_token";
    let public = json!({"token_endpoint_auth_method": "none", "secrets": null});
    let hybrid = json!({
        "response_types": ["code", "code id_token"],
        "grant_types": ["authorization_code", "implicit"],
    });
    for silent in [
        json!({key: true}),
        json!({key: false}),
        json!({"scope": "openid"}),
        json!({"scope": "openid", "client_name": "Your profile and email"}),
        public,
        hybrid,
    ] {
        let warnings = warnings(&[client("shop", silent.clone())]);
        assert_eq!(warnings, json!([]), "{silent}");
    }
    let many = Vec::from_iter((10..22).map(|n| client(&format!("c{n}"), json!({}))));
    let ten: Vec<String> = (10..20).map(|n| format!("\"c{n}\"")).collect();
    let told = format!("client {} and 2 more: {needs}", ten.join(", "));
    assert_eq!(warnings(&many), json!([told]));
    // Once it is so, and said, other changes are not held up by it.
    let applied = json!({"clients": [shop]}).to_string();
    let answer = installation.run_with(&["apply", "-"], &applied);
    assert_eq!(answer.code, 0, "{answer:?}");
    let renamed = client("shop", json!({"client_name": "Shop"}));
    assert_eq!(warnings(&[renamed]), json!([]));
    let shown = plan(&installation, &json!({"clients": many}), &[]);
    shown.stdout.assert_says(&format!("warning: {told}\n"));
}

#[test]
fn clients_whose_scopes_give_one_claim_from_two_places_are_warned_of() {
    let installation = Installation::migrated();
    let client = |client_id: &str, scope: &str| {
        json!({"client_id": client_id, "redirect_uris": ["https://app.example/cb"], "scope": scope,
               "always_include_user_claims_in_id_token": true, "secrets": [{"value": SECRET}]})
    };
    let document = |of_crm: &str| {
        json!({
            "identity_scopes": [{"name": "paths", "claims": {"member_of": "groups"}}],
            "clients": [client("crm", of_crm), client("shop", "openid groups")],
        })
    };
    let first = document("openid groups paths");
    let warning = |of: &str, instead_of: &str| {
        format!(
            "client \"crm\": the claim groups is that of the scope {of}, not that of {instead_of}: of two scopes the \
             first in the client's \"scope\" counts, and built-in ones count last"
        )
    };
    let told = json!([warning("paths", "groups")]);
    assert_eq!(planned(&installation, &first, &[])["warnings"], told);
    let applied = installation.run_with(&["apply", "-"], &first.to_string());
    assert_eq!(applied.code, 0, "{applied:?}");
    // Whoever upgrades looks at what is there.
    let exported = installation.run(&["export"]).stdout;
    let exported = serde_json::from_str(&exported).unwrap();
    let unchanged = planned(&installation, &exported, &[]);
    assert_eq!(unchanged["warnings"], told, "{unchanged}");
    // Another order is a change.
    let second = document("openid paths groups");
    let changes = planned(&installation, &second, &[])["changes"].clone();
    assert_eq!(changes.as_array().map(Vec::len), Some(1), "{changes}");
}

#[test]
fn a_client_that_becomes_an_operator_is_warned_of() {
    let installation = Installation::migrated();
    let with = |scope: &str| {
        json!({
            "resource_scopes": [
                {"name": "registration.write", "resources": ["urn:gatepost:admin"]},
                {"name": "registration.read", "resources": ["urn:gatepost:admin"]},
            ],
            "resources": [{"name": "urn:gatepost:admin"}],
            "clients": [{"client_id": "ci", "grant_types": ["client_credentials"], "response_types": [], "scope": scope,
                         "secrets": [{"value": SECRET}]}],
        })
    };
    let reads = with("registration.read");
    let writes = with("registration.read registration.write");
    let warnings = |document: &Value| planned(&installation, document, &[])["warnings"].clone();
    let warning = "client \"ci\" may change everything that is registered, and so is an operator (registration.write)";
    assert_eq!(warnings(&reads), json!([]));
    assert_eq!(warnings(&writes), json!([warning]));
    assert_eq!(installation.apply(&reads).code, 0);
    let answer = plan(&installation, &writes, &[]);
    answer.stdout.assert_says(&format!("warning: {warning}\n"));
    assert_eq!(installation.apply(&writes).code, 0);
    let mut renamed = writes;
    renamed["clients"][0]["client_name"] = json!("Pipeline");
    // It was so before.
    assert_eq!(warnings(&renamed), json!([]));
}
