//! The commands of the operator's day on a real database, and what is no command.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::cli_support::{Answer, Installation, answer};
use crate::support::claims::Says;

const PASSWORD: &str = "correct horse battery staple";

#[test]
fn users_are_added_listed_and_given_passwords() {
    let installation = Installation::migrated();
    assert_eq!(
        installation
            .apply(&json!({"tenants": [{"name": "acme"}]}))
            .code,
        0
    );
    let added = installation.done(
        &["user", "add", "alice", "--claims", r#"{"name": "Alice"}"#],
        PASSWORD,
    );
    assert!(added.starts_with("added alice with sub "), "{added}");
    installation.done(
        &[
            "user",
            "add",
            "alice",
            "--tenant",
            "acme",
            "--sub",
            "a-2",
            "--no-password",
        ],
        "",
    );
    let users = installation.list("user");
    assert_eq!(users.len(), 2);
    assert_eq!(&users[0]["tenant"], &Value::Null);
    assert_eq!(users[0]["has_password"], true);
    assert_eq!(users[0]["claims"]["name"], "Alice");
    assert_eq!(users[1]["tenant"], "acme");
    assert_eq!(users[1]["has_password"], false);
    assert_eq!(users[1]["sub"], "a-2");
    assert_eq!(users[0]["sub"].as_str().unwrap().len(), 22);
    let hash = || -> String {
        let query = "SELECT password_hash FROM users WHERE tenant = ''";
        installation.database.value(query, &[])
    };
    let before = hash();
    assert!(
        before.starts_with("$argon2id$v=19$m=7168,t=1,p=1$"),
        "{before}"
    );
    installation.done(&["user", "password", "ALICE"], "another long password\n");
    assert_ne!(hash(), before);
    assert!(
        installation
            .done(&["user", "list"], "")
            .starts_with("USERNAME  TENANT  SUB")
    );
}

#[test]
fn unfit_users_and_passwords_are_refused_with_the_rule() {
    let installation = Installation::migrated();
    installation.done(&["user", "add", "alice"], PASSWORD);
    for (arguments, input, rule) in [
        (
            &["user", "add", "bob"][..],
            "short",
            "the password must be at least 8 characters",
        ),
        (&["user", "add", "bob"], "Password1", "most guessed"),
        (
            &["user", "add", "bob"],
            &"x".repeat(2_000),
            "at most 1024 bytes",
        ),
        (&["user", "add", "bob"], "", "at least 8"),
        (
            &["user", "add", "AL\u{ff29}CE"],
            PASSWORD,
            "that user name is taken",
        ),
        (&["user", "add", "b\u{200b}ob"], PASSWORD, "zero-width"),
        (
            &["user", "add", "bob", "--claims", r#"{"sub": "x"}"#],
            PASSWORD,
            "claims.sub: is a reserved claim",
        ),
        (
            &["user", "add", "bob", "--tenant", "nowhere"],
            PASSWORD,
            "there is no tenant nowhere",
        ),
        (
            &["user", "password", "nobody"],
            PASSWORD,
            "there is no user",
        ),
        (&["user", "password", "alice"], "1234", "at least 8"),
    ] {
        let answer = installation.run_with(arguments, input);
        assert!(answer.code == 1, "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(rule), "{arguments:?}: {answer:?}");
        assert!(
            input.is_empty() || !answer.stderr.contains(input),
            "{answer:?}"
        );
    }
    assert_eq!(installation.list("user").len(), 1);
    assert_eq!(
        installation
            .run_with(&["user", "add", "bob", "--claims", "{"], PASSWORD)
            .code,
        2
    );
}

#[test]
fn single_claims_are_changed_and_the_others_stay() {
    let installation = Installation::migrated();
    let claims = r#"{"name": "Alice", "role": ["admin"], "nickname": "Al", "level": 1}"#;
    installation.done(&["user", "add", "alice", "--claims", claims], PASSWORD);
    let set = |changes: &[&str]| installation.run(&[&["user", "set", "alice"], changes].concat());
    let changes = [
        "email=alice@example.com",
        "email_verified=true",
        "phone_number=4930901820",
        "nickname=",
        "level={\"a\":2}",
    ];
    let answer = set(&changes);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(
        answer.stdout,
        "changed email, email_verified, phone_number, nickname, level of alice\n"
    );
    let expected = json!({"name": "Alice", "role": ["admin"], "email": "alice@example.com", "email_verified": true,
                          "phone_number": "4930901820", "level": {"a": 2}});
    assert_eq!(installation.list("user")[0]["claims"], expected);
    assert_eq!(set(&changes).stdout, "alice has these claims already\n");
    for (change, code, rule) in [
        ("email", 2, "\"email\" is no CLAIM=VALUE"),
        (
            "email_verified=yes",
            1,
            "claims.email_verified: must be true or false",
        ),
        (
            "locale=de_DE.UTF-8",
            1,
            "claims.locale: must be a language tag, such as de-DE",
        ),
        ("sub=x", 1, "claims.sub: is a reserved claim"),
        ("a b=x", 1, "must be 1 to 200 printable"),
    ] {
        let answer = set(&[change, "website=https://a.example"]);
        assert!(answer.code == code, "{answer:?}");
        assert!(answer.stderr.contains(rule), "{answer:?}");
    }
    installation
        .run(&["user", "set", "alice"])
        .stderr
        .assert_says("needs CLAIM=VALUE...");
    assert_eq!(installation.list("user")[0]["claims"], expected);
    // What says who somebody is stands in no event.
    let detail = "SELECT detail::text FROM audit_events WHERE event = 'user_changed'";
    let rows = installation.database.client().query(detail, &[]).unwrap();
    let detail: String = rows[0].get(0);
    assert!(rows.len() == 1, "{detail}");
    detail.assert_says("claims.level");
    detail.assert_says_not("alice@example.com");
}

/// Runs a command at a terminal at which somebody types that.
fn at_terminal(installation: &Installation, arguments: &[&str], typed: &str) -> Answer {
    let own = installation.command(arguments);
    let line = format!(
        "{} {}",
        own.get_program().to_str().unwrap(),
        arguments.join(" ")
    );
    // `script` (util-linux) gives it a terminal of its own.
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    answer(command, typed)
}

#[test]
fn what_cannot_be_undone_is_asked_at_a_terminal() {
    let installation = Installation::migrated();
    let client =
        json!({"clients": [{"client_id": "web", "redirect_uris": ["https://a.example/cb"]}]});
    assert_eq!(installation.apply(&client).code, 0);
    for name in ["alice", "bob", "carol"] {
        installation.done(&["user", "add", name, "--no-password"], "");
    }
    let state = || -> (usize, usize, String) {
        let epoch = "SELECT epoch::text FROM installation";
        let epoch = installation.database.value(epoch, &[]);
        (
            installation.list("user").len(),
            installation.list("client").len(),
            epoch,
        )
    };
    let before = state();
    for (arguments, question) in [
        (
            &["user", "remove", "alice"][..],
            "This removes alice for good; sub ",
        ),
        (&["client", "remove", "web"], "This removes web for good"),
        (
            &["revoke", "--everything"],
            "everybody signs in again. Type yes to go on:",
        ),
    ] {
        for typed in ["no\n", "\n"] {
            let answer = at_terminal(&installation, arguments, typed);
            assert!(answer.stdout.contains(question), "{answer:?}");
            answer.stdout.assert_says("nothing was changed");
            assert_eq!(answer.code, 1, "{answer:?}");
        }
    }
    assert_eq!(state(), before);
    assert_eq!(
        at_terminal(&installation, &["user", "remove", "alice"], "yes\n").code,
        0
    );
    let answer = at_terminal(&installation, &["user", "remove", "bob", "--yes"], "");
    assert!(answer.code == 0, "{answer:?}");
    answer.stdout.assert_says_not("Type yes");
    assert_eq!(
        at_terminal(&installation, &["revoke", "--everything", "--yes"], "").code,
        0
    );
    // A script has nobody to ask.
    installation.done(&["user", "remove", "carol"], "");
    installation.done(&["client", "remove", "web"], "");
    let after = state();
    assert!(after.0 == 0, "{after:?}");
    assert!(after.1 == 0, "{after:?}");
    assert!(after.2 != before.2, "{after:?}");
}

#[test]
fn a_client_secret_is_shown_once_and_stored_sealed() {
    let installation = Installation::migrated();
    let clients = json!({"clients": [
        {"client_id": "web", "redirect_uris": ["https://a.example/cb"], "token_endpoint_auth_method": "client_secret_basic"},
        {"client_id": "spa", "redirect_uris": ["https://a.example/cb"]},
    ]});
    assert_eq!(installation.apply(&clients).code, 0);
    let first = installation.done(&["client", "secret", "web", "--description", "blue"], "");
    let second = installation.done(
        &[
            "client",
            "secret",
            "web",
            "--expires-at",
            "2031-01-01T00:00:00Z",
        ],
        "",
    );
    assert!(first.starts_with("gps_"), "{first}");
    assert!(first.trim().len() == 47, "{first}");
    assert!(first != second, "{first}");
    assert_eq!(installation.database.count("client_secrets"), 2);
    let version = installation.registry_version();
    let third = installation.done(&["client", "secret", "web", "--replace"], "");
    assert_eq!(installation.database.count("client_secrets"), 1);
    assert!(installation.registry_version() > version);
    let dump = installation.dump();
    assert!(
        [first, second, third]
            .iter()
            .all(|secret| !dump.contains(secret.trim()))
    );
    assert!(
        installation.apply(&clients).stdout.contains("2 unchanged"),
        "what was made here stays"
    );
    for (arguments, code, rule) in [
        (&["client", "secret", "spa"][..], 1, "this client is public"),
        (
            &["client", "secret", "nobody"],
            1,
            "there is no client \"nobody\"",
        ),
        (
            &["client", "secret", "web", "--expires-at", "soon"],
            2,
            "--expires-at must be a time",
        ),
    ] {
        let answer = installation.run(arguments);
        assert!(answer.code == code, "{answer:?}");
        assert!(answer.stderr.contains(rule), "{answer:?}");
        assert!(answer.stdout.is_empty(), "{answer:?}");
    }
}

#[test]
fn the_next_key_is_announced_and_the_old_one_signs_until_then() {
    let installation = Installation::migrated();
    let of = |alg: &str| -> Vec<Value> {
        installation
            .list("key")
            .into_iter()
            .filter(|key| key["alg"] == alg)
            .collect()
    };
    assert_eq!(of("ES256").len(), 1);
    let rotated = installation.done(&["key", "rotate", "--algorithm", "ES256"], "");
    let keys = of("ES256");
    assert_eq!(
        keys.iter()
            .map(|key| key["state"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["signing", "announced"]
    );
    assert_eq!(keys[0]["retires_at"], keys[1]["activates_at"]);
    assert!(rotated.contains(keys[1]["kid"].as_str().unwrap()));
    installation
        .done(&["key", "rotate", "--algorithm", "ES256"], "")
        .assert_says("is announced already");
    assert_eq!((of("ES256").len(), of("RS256").len()), (2, 1));
}

#[test]
fn rotating_at_once_signs_with_the_new_key_and_erases_the_old() {
    let installation = Installation::migrated();
    installation.done(&["key", "rotate", "--algorithm", "EdDSA"], "");
    let before = installation.list("key");
    installation.done(&["key", "rotate", "--now"], "");
    let keys = installation.list("key");
    let states = |alg: &str| -> Vec<&str> {
        keys.iter()
            .filter(|key| key["alg"] == alg)
            .map(|key| key["state"].as_str().unwrap())
            .collect()
    };
    for alg in ["RS256", "ES256", "EdDSA"] {
        assert_eq!(states(alg), ["published", "signing"], "{alg}");
    }
    assert_eq!(
        keys.len(),
        before.len() + 2,
        "the announced EdDSA key took over"
    );
    let erased = "SELECT count(*) FROM signing_keys WHERE wrapped_private IS NULL";
    assert_eq!(installation.database.value::<i64>(erased, &[]), 3);
    assert_eq!(
        installation
            .run(&["key", "rotate", "--algorithm", "HS256"])
            .code,
        2
    );
}

#[test]
fn keys_do_not_open_under_another_master_secret() {
    let installation = Installation::migrated();
    let other = installation.run(&["secret"]).stdout;
    let file = installation.write_private("other", &other);
    let readable = installation.write_private("readable", &other);
    std::fs::set_permissions(
        &readable,
        std::os::unix::fs::PermissionsExt::from_mode(0o644),
    )
    .unwrap();
    for file in [&readable, &file] {
        let mut command = installation.command(&["key", "rotate"]);
        command.env("GATEPOST_SECRET_FILE", file);
        let answer = crate::cli_support::answer(command, "");
        assert_eq!(answer.code, 78, "{answer:?}");
        assert!(!answer.stderr.contains(other.trim()));
    }
}

#[test]
fn every_command_leaves_its_audit_event() {
    let installation = Installation::migrated();
    let document = json!({"clients": [{"client_id": "web", "grant_types": [], "token_endpoint_auth_method": "client_secret_post"}],
                          "tenants": [{"name": "t"}], "users": [{"username": "u"}]});
    assert_eq!(installation.apply(&document).code, 0);
    installation.done(&["client", "secret", "web"], "");
    installation.done(&["user", "add", "alice"], PASSWORD);
    installation.done(&["user", "password", "alice"], PASSWORD);
    installation.done(&["key", "rotate", "--algorithm", "ES256"], "");
    let rows = installation
        .database
        .client()
        .query("SELECT event, count(*) FROM audit_events WHERE event <> 'chain_opened' GROUP BY 1 ORDER BY 1", &[]);
    let events: Vec<(String, i64)> = rows
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    let expected = [
        ("client_changed", 1),
        ("client_secret_made", 1),
        ("password_changed", 1),
        ("registration_changed", 1),
        ("signing_key_made", 3),
        ("signing_key_rotated", 1),
        ("user_added", 2),
    ];
    assert_eq!(
        events,
        expected.map(|(event, count)| (event.to_owned(), count))
    );
}

#[test]
fn every_further_change_of_an_operator_is_told_with_what_was_and_what_is() {
    let installation = Installation::migrated();
    let issuer = "https://partner.example";
    let client = |name: &str| {
        json!({"client_id": "web", "client_name": name, "scope": "openid", "secrets": [{"value": "a secret of the web shop"}],
               "response_types": [], "grant_types": ["urn:ietf:params:oauth:grant-type:jwt-bearer"]})
    };
    let document = |name: &str| {
        json!({"clients": [client(name)], "tenants": [{"name": "t"}], "users": [{"username": "alice"}],
               "assertion_issuers": [{"issuer": issuer, "jwks_uri": "https://partner.example/keys", "algs": ["RS256"],
                                      "clients": ["web"], "scope": "openid", "subject": "link"}]})
    };
    let applied = installation.apply(&document("Old"));
    assert_eq!(applied.code, 0, "{applied:?}");
    let events = || -> Vec<(String, Value)> {
        let query = "SELECT event, detail::text FROM audit_events WHERE event <> 'chain_opened' ORDER BY at, chain, seq";
        let rows = installation.database.client().query(query, &[]).unwrap();
        rows.iter()
            .map(|row| (row.get(0), serde_json::from_str(row.get(1)).unwrap()))
            .collect()
    };
    let told = |arguments: &[&str], input: &str| {
        let before = events().len();
        installation.done(arguments, input);
        let mut new = events().split_off(before);
        assert_eq!(new.len(), 1, "{arguments:?}: {new:?}");
        new.remove(0)
    };
    let (event, detail) = told(&["apply", "-"], &document("New").to_string());
    assert_eq!(event, "client_changed");
    assert_eq!(
        detail["fields"],
        json!([{"key": "client_name", "old": "Old", "new": "New"}]),
        "{detail}"
    );
    let (event, detail) = told(&["user", "role", "alice", "--add", "editor"], "");
    assert_eq!(event.as_str(), "user_changed", "{detail}");
    assert_ne!(detail["old"], detail["new"], "{detail}");
    let link = [
        "user",
        "link",
        "alice",
        "--issuer",
        issuer,
        "--subject",
        "p-1",
    ];
    assert_eq!(told(&link, "").0, "identity_linked");
    let unlink = [
        "user",
        "unlink",
        "alice",
        "--issuer",
        issuer,
        "--subject",
        "p-1",
    ];
    assert_eq!(told(&unlink, "").0, "identity_unlinked");
    for list in [r#"{"tenants": []}"#, r#"{"assertion_issuers": []}"#] {
        assert_eq!(
            told(&["apply", "-", "--prune"], list).0,
            "registration_removed"
        );
    }
    let key = std::process::Command::new("openssl")
        .args(["genpkey", "-algorithm", "ED25519"])
        .output()
        .unwrap();
    let imported = told(
        &["key", "import", "-"],
        std::str::from_utf8(&key.stdout).unwrap(),
    );
    assert_eq!(imported.0, "signing_key_imported");
    let keys = installation.list("key");
    let waiting = keys.iter().find(|key| key["state"] == "announced").unwrap();
    assert_eq!(
        told(&["key", "retire", waiting["kid"].as_str().unwrap()], "").0,
        "signing_key_retired"
    );
    let old = std::fs::read_to_string(installation.directory.join("secret")).unwrap();
    let new = installation.run(&["secret"]).stdout;
    std::fs::write(installation.directory.join("secret"), format!("{new}{old}")).unwrap();
    assert_eq!(told(&["secret", "rotate"], "").0, "master_secret_rotated");
    let (event, detail) = told(
        &[
            "migrate",
            "--rename-issuer",
            "--base-url",
            "https://id.example/moved",
        ],
        "",
    );
    assert_eq!(event.as_str(), "issuer_renamed", "{detail}");
    assert_eq!(detail["new"], "https://id.example/moved", "{detail}");
    let renamed = ["--base-url", "https://id.example/moved"];
    assert_eq!(
        told(&[&["client", "remove", "web"][..], &renamed].concat(), "").0,
        "client_removed"
    );
    std::fs::write(
        installation.directory.join("secret"),
        installation.run(&["secret"]).stdout,
    )
    .unwrap();
    let before = events().len();
    installation.done(&[&["key", "reset"][..], &renamed].concat(), "");
    assert!(
        events()[before..]
            .iter()
            .any(|(event, _)| event == "keys_reset")
    );
    installation.done(&[&["audit", "verify"][..], &renamed].concat(), "");
    let everything = installation.dump();
    assert!(!everything.contains(old.trim()) && !everything.contains(new.trim()));
}

#[test]
fn configuration_mistakes_end_with_78_and_name_every_variable() {
    let installation = Installation::empty();
    let mut command = installation.command(&["migrate"]);
    command
        .env(
            "GATEPOST_DATABASE_URL",
            "postgres://u:hunter2@localhost/x?sslmode=nonsense",
        )
        .env("GATEPOST_BASE_URL", "http://id.example")
        .env("GATEPOST_WORKERS", "many")
        .env("GATEPOST_LISTENS", "x");
    let answer = crate::cli_support::answer(command, "");
    assert_eq!(answer.code, 78);
    answer
        .stderr
        .assert_says("GATEPOST_LISTENS is not a setting; the nearest is GATEPOST_LISTEN");
    let mut command = installation.command(&["migrate", "--workers", "many"]);
    command.env("GATEPOST_BASE_URL", "http://id.example");
    let answer = crate::cli_support::answer(command, "");
    assert!(answer.code == 78, "{answer:?}");
    assert!(answer.stderr.lines().count() == 2, "{answer:?}");
    let mut command = installation.command(&["user", "list"]);
    command.env(
        "GATEPOST_DATABASE_URL",
        "postgres://u:hunter2@localhost/x?sslmode=nonsense",
    );
    let answer = crate::cli_support::answer(command, "");
    assert!(answer.code == 78, "{answer:?}");
    answer.stderr.assert_says_not("hunter2");
}

#[test]
fn settings_come_from_a_file_and_flags_and_the_flag_wins() {
    let installation = Installation::migrated();
    let text = format!(
        "# settings\nGATEPOST_BASE_URL=\"https://elsewhere.example\"\nGATEPOST_DATABASE_URL='{}'\n",
        installation.database.url
    );
    let file = installation.write_private("gatepost.env", &text);
    let run = |arguments: &[&str]| {
        let all = [arguments, &["--env-file", file.to_str().unwrap()]].concat();
        let mut command = installation.command(&all);
        command
            .env_remove("GATEPOST_BASE_URL")
            .env_remove("GATEPOST_DATABASE_URL");
        crate::cli_support::answer(command, "")
    };
    run(&["user", "list"])
        .stderr
        .assert_says("https://elsewhere.example");
    assert_eq!(
        run(&["user", "list", "--base-url", "https://id.example"]).code,
        0
    );
    let broken = installation.write_private("broken.env", "GATEPOST_LISTEN_ON=x\nhunter2\n");
    let answer = installation.run(&["user", "list", "--env-file", broken.to_str().unwrap()]);
    assert!(answer.code == 78, "{answer:?}");
    answer.stderr.assert_says("line 2");
    answer.stderr.assert_says_not("hunter2");
}

#[test]
fn usage_errors_end_with_2_and_help_with_0() {
    let installation = Installation::empty();
    for (arguments, nearest) in [
        (&["aply", "x"][..], "apply"),
        (&["key", "rotat"], "key rotate"),
        (&["secret", "--verison"], "--version"),
        (&[], "--help"),
    ] {
        let answer = installation.run(arguments);
        assert!(answer.code == 2, "{answer:?}");
        assert!(answer.stderr.contains(nearest), "{answer:?}");
        assert!(answer.stdout.is_empty(), "{answer:?}");
    }
    for arguments in [
        &["--help"][..],
        &["user", "--help"],
        &["apply", "--help"],
        &["serve", "--help"],
        &["-h"],
    ] {
        let answer = installation.run(arguments);
        assert!(answer.code == 0, "{answer:?}");
        answer.stdout.assert_says("Example:");
        answer.stdout.assert_says_not("server-process");
    }
    assert_eq!(
        installation.done(&["--version"], ""),
        concat!("gatepost ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn a_list_of_clients_shows_the_grant_types_in_force() {
    let installation = Installation::migrated();
    let clients = json!({"clients": [
        {"client_id": "plain", "redirect_uris": ["https://a.example/cb"]},
        {"client_id": "said", "grant_types": ["urn:ietf:params:oauth:grant-type:device_code"]},
        {"client_id": "tokens", "redirect_uris": ["https://a.example/cb"], "response_types": ["id_token"]},
    ]});
    assert_eq!(installation.apply(&clients).code, 0);
    let table = installation.done(&["client", "list"], "");
    for (client_id, grant_types) in [
        ("plain", "authorization_code"),
        ("said", "urn:ietf:params:oauth:grant-type:device_code"),
        ("tokens", "implicit"),
    ] {
        let row = table
            .lines()
            .find(|line| line.starts_with(client_id))
            .unwrap();
        assert_eq!(
            row.split_ascii_whitespace().nth(3),
            Some(grant_types),
            "{table}"
        );
    }
}

#[test]
fn a_secret_that_cannot_be_shown_is_not_made_and_the_old_one_stays() {
    let installation = Installation::migrated();
    let clients = json!({"clients": [{
        "client_id": "web", "redirect_uris": ["https://a.example/cb"], "token_endpoint_auth_method": "client_secret_basic",
    }]});
    assert_eq!(installation.apply(&clients).code, 0);
    installation.done(&["client", "secret", "web"], "");
    let lost = installation.directory.join("lost");
    std::fs::write(&lost, installation.run(&["secret"]).stdout).unwrap();
    std::fs::set_permissions(&lost, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let before = installation.dump();
    let (reader, nobody_reads) = std::io::pipe().unwrap();
    drop(reader);
    let full = || {
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let other_secret = ["--secret-file", lost.to_str().unwrap()];
    for (arguments, output) in [
        (
            vec!["client", "secret", "web", "--replace"],
            Stdio::from(full()),
        ),
        (
            vec!["client", "secret", "web", "--replace"],
            Stdio::from(nobody_reads),
        ),
        (
            [&["key", "reset"][..], &other_secret].concat(),
            Stdio::from(full()),
        ),
    ] {
        let said = installation
            .command(&arguments)
            .stdin(Stdio::null())
            .stdout(output)
            .output()
            .unwrap();
        let stderr = String::from_utf8(said.stderr).unwrap();
        assert!(
            said.status.code() == Some(1)
                && stderr.contains("gatepost: standard output cannot be written: "),
            "{arguments:?}: {stderr}"
        );
        assert_eq!(installation.dump(), before, "{arguments:?}");
    }
    assert!(
        installation
            .done(&["client", "secret", "web", "--replace"], "")
            .starts_with("gps_")
    );
    assert_eq!(installation.database.count("client_secrets"), 1);
}

/// Answers one request with that status line and text.
fn serve_once(mut stream: impl Read + Write, status: &str, text: &str) -> String {
    let mut request = [0; 1_024];
    let length = stream.read(&mut request).unwrap();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    stream
        .write_all([head.as_str(), text].concat().as_bytes())
        .unwrap();
    String::from_utf8_lossy(&request[..length]).into_owned()
}

#[test]
fn healthcheck_asks_the_admin_listener() {
    let installation = Installation::empty();
    for (status, text, code, said) in [
        ("200 OK", "ready\n", 0, "ready\n"),
        (
            "200 OK",
            "degraded: the database does not answer\n",
            0,
            "degraded: the database does not answer\n",
        ),
        (
            "503 Service Unavailable",
            "not ready: waiting\n",
            1,
            "gatepost: not ready: waiting: http://",
        ),
        (
            "503 Service Unavailable",
            "<html>",
            1,
            "gatepost: not ready: http://",
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || serve_once(listener.accept().unwrap().0, status, text));
        let answer = installation.run(&["healthcheck", "--admin-listen", &address]);
        assert_eq!(answer.code, code);
        assert!((answer.stdout + &answer.stderr).starts_with(said), "{text}");
        assert!(
            server
                .join()
                .unwrap()
                .starts_with("GET /readyz HTTP/1.1\r\n")
        );
    }
}

#[test]
fn healthcheck_asks_the_main_listener_where_there_is_no_other() {
    let installation = Installation::empty();
    let path = installation.directory.join("http.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || serve_once(listener.accept().unwrap().0, "200 OK", "ok\n"));
    let socket = format!("unix:{}", path.display());
    assert_eq!(
        installation
            .run(&["healthcheck", "--admin-listen", "", "--listen", &socket])
            .code,
        0
    );
    assert!(
        server
            .join()
            .unwrap()
            .starts_with("GET /healthz HTTP/1.1\r\n")
    );
    let nobody = installation.run(&["healthcheck", "--admin-listen", "", "--listen", &socket]);
    assert_eq!(nobody.code, 1);
    let told = format!(
        "gatepost: not alive: /healthz over {socket}: Connection refused: is `gatepost serve` running?\n"
    );
    assert_eq!(nobody.stderr, told);
}

#[test]
fn users_are_shown_given_roles_disabled_enabled_and_removed_for_good() {
    let installation = Installation::migrated();
    installation.done(
        &[
            "user",
            "add",
            "alice",
            "--sub",
            "alice-1",
            "--claims",
            r#"{"role": "reader", "name": "A"}"#,
        ],
        PASSWORD,
    );
    let role = |arguments: &[&str]| -> Vec<String> {
        let arguments = [&["user", "role", "alice", "--json"], arguments].concat();
        serde_json::from_str(&installation.done(&arguments, "")).unwrap()
    };
    assert_eq!(role(&[]), ["reader"]);
    assert_eq!(
        role(&["--add", "admin", "--add", "editor", "--remove", "reader"]),
        ["admin", "editor"]
    );
    assert_eq!(role(&["--add", "admin"]), ["admin", "editor"]);
    let without = installation.run(&["user", "role", "alice", "--remove", "nobody"]);
    assert!(without.code == 0, "{without:?}");
    without.stderr.assert_says("alice has no role \"nobody\"");
    assert_eq!(
        role(&[
            "--remove", "admin", "--remove", "editor", "--remove", "nobody"
        ]),
        [""; 0]
    );
    let shown = |installation: &Installation| -> Value {
        serde_json::from_str(&installation.done(&["user", "show", "alice", "--json"], "")).unwrap()
    };
    assert_eq!(shown(&installation)["claims"], json!({"name": "A"}));
    assert_eq!(shown(&installation)["sub"], "alice-1");
    installation
        .done(&["user", "show", "alice"], "")
        .assert_says("claims.name: A\nconsents: []\nenabled: true\n");
    let epoch = || -> i64 {
        let query = "SELECT epoch FROM users WHERE sub = 'alice-1'";
        installation.database.value(query, &[])
    };
    let before = epoch();
    installation
        .done(&["user", "disable", "ALICE"], "")
        .assert_says("what was signed in is over");
    let after = epoch();
    assert!(after != before && shown(&installation)["enabled"] == false);
    installation
        .done(&["user", "disable", "alice"], "")
        .assert_says("is disabled already");
    installation.done(&["user", "enable", "alice"], "");
    assert!(epoch() == after && shown(&installation)["enabled"] == true);
    installation
        .done(&["user", "remove", "alice"], "")
        .assert_says("sub alice-1 is never given again");
    let again = installation.run_with(&["user", "add", "bob", "--sub", "alice-1"], PASSWORD);
    assert!(again.code == 1, "{again:?}");
    again.stderr.assert_says("or once was");
    for command in [
        "show", "role", "disable", "enable", "remove", "revoke", "password",
    ] {
        let answer = installation.run_with(&["user", command, "alice"], PASSWORD);
        assert!(answer.code == 1, "{command}: {answer:?}");
        assert!(
            answer
                .stderr
                .contains("there is no user \"alice\" there: --tenant"),
            "{command}: {answer:?}"
        );
    }
    for list in ["session", "grant", "audit"] {
        let answer = installation.run(&[list, "list", "--tenant", "acme"]);
        assert!(
            answer.code == 2 && answer.stderr.contains("give both"),
            "the tenant alone chooses nobody: {answer:?}"
        );
    }
    let count = |event: &str| {
        let query = format!(
            "SELECT count(*) FROM audit_events WHERE sub = 'alice-1' AND event = '{event}'"
        );
        installation.database.value::<i64>(&query, &[])
    };
    assert_eq!((count("user_changed"), count("user_removed")), (4, 1));
    assert_eq!(
        installation
            .run(&["user", "role", "alice", "--add", ""])
            .code,
        2
    );
}

#[test]
fn a_client_is_shown_tested_and_removed_unless_something_names_it() {
    let installation = Installation::migrated();
    let document = json!({
        "clients": [
            {"client_id": "web", "redirect_uris": ["https://shop.example/cb"], "scope": "openid", "secrets": [{"value": "the-right-secret-1", "description": "the first"}]},
            {"client_id": "m2m", "grant_types": ["client_credentials"], "token_endpoint_auth_method": "client_secret_basic"}
        ],
        "resource_scopes": [{"name": "orders.read"}],
        "assertion_issuers": [{"issuer": "https://sts.example", "jwks_uri": "https://sts.example/jwks", "clients": ["web"], "scope": "orders.read"}],
    });
    assert_eq!(installation.apply(&document).code, 0);
    let shown: Value =
        serde_json::from_str(&installation.done(&["client", "show", "web", "--json"], "")).unwrap();
    assert_eq!(shown["metadata"]["scope"], "openid");
    assert_eq!(shown["secrets"][0]["description"], "the first");
    installation
        .done(&["client", "show", "web"], "")
        .assert_says("client_id: web\nenabled: true\n");

    let tested = installation.done(&["client", "test", "web"], "");
    tested.assert_says("ok    secrets that are good: 1");
    assert!(tested.contains("Try: https://id.example/connect/authorize?client_id=web&response_type=code&scope=openid&redirect_uri=https%3A%2F%2Fshop.example%2Fcb&"), "{tested}");
    installation
        .done(
            &["client", "test", "web", "--secret"],
            "the-right-secret-1\n",
        )
        .assert_says("that secret is right: \"the first\"");
    let wrong = installation.run_with(&["client", "test", "web", "--secret"], "hunter2\n");
    assert!(wrong.code == 1, "{wrong:?}");
    wrong.stdout.assert_says("fails that secret is wrong");
    assert!(!format!("{}{}", wrong.stdout, wrong.stderr).contains("hunter2"));
    let broken = installation.run(&["client", "test", "m2m", "--json"]);
    assert_eq!(broken.code, 1);
    let findings: Value = serde_json::from_str(&broken.stdout).unwrap();
    let fails = |finding: &Value| {
        finding["verdict"] == "fails"
            && finding["text"]
                .as_str()
                .unwrap()
                .contains("`gatepost client secret m2m`")
    };
    assert!(
        findings["findings"].as_array().unwrap().iter().any(fails),
        "{findings}"
    );

    let refused = installation.run(&["client", "remove", "web"]);
    assert!(refused.code == 1, "{refused:?}");
    refused
        .stderr
        .assert_says("still named by assertion_issuer https://sts.example");
    installation.done(&["client", "remove", "m2m"], "");
    assert_eq!(installation.list("client").len(), 1);
    for command in [
        &["client", "show", "m2m"][..],
        &["client", "test", "m2m"],
        &["client", "remove", "m2m"],
        &["client", "secret", "m2m"],
        &["client", "revoke", "m2m"],
        &["grant", "list", "--client", "m2m"],
    ] {
        let answer = installation.run(command);
        assert!(
            answer.code == 1 && answer.stderr.contains("there is no client \"m2m\""),
            "{command:?}: {answer:?}"
        );
    }
}

#[test]
fn a_client_whose_every_request_is_refused_for_its_scope_is_told() {
    let installation = Installation::migrated();
    let uris = ["https://shop.example/cb"];
    let document = json!({
        "resource_scopes": [{"name": "orders.read"}],
        "clients": [
            {"client_id": "job", "grant_types": ["client_credentials"], "scope": "openid profile", "secrets": [{"value": "the-right-secret-1"}]},
            {"client_id": "web", "redirect_uris": uris, "scope": "profile email"},
            {"client_id": "page", "redirect_uris": uris, "scope": "profile", "response_types": ["id_token"]},
            {"client_id": "old", "redirect_uris": uris, "scope": "openid", "response_types": ["token"], "allow_access_tokens_via_browser": true},
            {"client_id": "api", "redirect_uris": uris, "scope": "orders.read"}
        ],
    });
    assert_eq!(installation.apply(&document).code, 0);
    for (client_id, flow) in [
        ("job", "client_credentials"),
        ("web", "response_type=code"),
        ("page", "response_type=id_token"),
        ("old", "response_type=token"),
    ] {
        let tested = installation.run(&["client", "test", client_id]);
        let told = format!("fails {flow} is always refused: add ");
        assert!(tested.code == 1, "{client_id}: {tested:?}");
        assert!(tested.stdout.contains(&told), "{client_id}: {tested:?}");
    }
    let tested = installation.done(&["client", "test", "api"], "");
    assert!(!tested.contains("always refused"), "{tested}");
}

#[test]
fn what_to_try_is_what_the_registration_allows() {
    let installation = Installation::migrated();
    let page = json!({"client_id": "page", "redirect_uris": ["https://shop.example/cb"], "scope": "openid orders.read",
        "response_types": ["id_token"]});
    let document = json!({"resource_scopes": [{"name": "orders.read"}], "clients": [page]});
    assert_eq!(installation.apply(&document).code, 0);
    let tested = installation.done(&["client", "test", "page"], "");
    let address = "Try: https://id.example/connect/authorize?client_id=page&response_type=id_token\
        &scope=openid&redirect_uri=https%3A%2F%2Fshop.example%2Fcb&";
    assert!(tested.contains(address), "{tested}");
    tested.assert_says_not("code_challenge");
}

#[test]
fn errors_name_what_was_tried_once_and_what_is_needed() {
    let installation = Installation::empty();
    let mut command = installation.command(&["user", "list"]);
    command.env(
        "GATEPOST_DATABASE_URL",
        "postgres://localhost/x?sslmode=nonsense",
    );
    let answer = crate::cli_support::answer(command, "");
    assert!(
        answer.code == 78 && answer.stderr.matches("GATEPOST_DATABASE_URL").count() == 1,
        "{answer:?}"
    );
    let nobody = crate::support::http::free_address();
    let answer = installation.run(&["healthcheck", "--admin-listen", &nobody]);
    assert!(answer.code == 1, "{answer:?}");
    answer
        .stderr
        .assert_says(&format!("http://{nobody}/readyz"));
    let answer = installation.run(&["revoke"]);
    assert!(answer.code == 2, "{answer:?}");
    answer.stderr.assert_says("needs --everything");
    assert!(
        installation
            .done(&["revoke", "--help"], "")
            .starts_with("Usage: gatepost revoke --everything [--yes]\n")
    );
    let group = installation.done(&["user", "--help"], "");
    assert!(
        group.starts_with("Usage: gatepost user COMMAND\n")
            && group.contains("Example:\n  gatepost user add alice"),
        "{group}"
    );
    let answer = installation.run(&["migrate", "--chek"]);
    assert!(answer.code == 2, "{answer:?}");
    answer.stderr.assert_says("the nearest is --check");
    let answer = installation.run(&["user", "list", "--chek"]);
    assert!(answer.code == 2, "{answer:?}");
    answer
        .stderr
        .assert_says("\"--chek\" is not a flag; try --help");
    let answer = installation.run(&["frobnicate"]);
    assert!(answer.code == 2, "{answer:?}");
    answer.stderr.assert_says_not("nearest");
}

#[test]
fn a_database_that_takes_no_writes_is_named_as_that() {
    let installation = Installation::migrated();
    let url = installation
        .database
        .url_with("-c default_transaction_read_only=on");
    let asked = |arguments: &[&str]| {
        let mut command = installation.command(arguments);
        command.env("GATEPOST_DATABASE_URL", &url);
        crate::cli_support::answer(command, PASSWORD)
    };
    for arguments in [
        &["user", "add", "alice"][..],
        &["key", "rotate"],
        &["migrate"],
        &["revoke", "--everything"],
    ] {
        let answer = asked(arguments);
        assert!(
            answer.code == 1 && answer.stderr.contains("read-only"),
            "{arguments:?}: {answer:?}"
        );
    }
    for arguments in [
        &["user", "list"][..],
        &["audit", "verify"],
        &["key", "list"],
    ] {
        assert_eq!(asked(arguments).code, 0, "{arguments:?}");
    }
}

/// Every command, as the overview lists them.
fn commands(installation: &Installation) -> Vec<String> {
    let overview = installation.done(&["--help"], "");
    let listed = overview
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    // The lines of a longer summary begin further in.
    listed
        .map(|line| line[2..23].trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn every_command_stands_in_the_help_and_the_man_page() {
    let installation = Installation::empty();
    let commands = commands(&installation);
    assert!(commands.len() >= 30, "{commands:?}");
    assert!(commands.contains(&String::from("user add")), "{commands:?}");
    let man = installation.done(&["man"], "");
    assert!(man.starts_with(".TH GATEPOST 1 "));
    man.assert_says("\n.SH SETTINGS\n");
    assert!(man.contains("GATEPOST_BASE_URL"));
    assert!(
        man.lines().all(|line| !line.starts_with('\'')),
        "a request in the text"
    );
    let fits = |help: &str| help.lines().all(|line| line.chars().count() <= 80);
    assert!(fits(&installation.done(&["--help"], "")));
    assert!(fits(&installation.done(&["key", "--help"], "")));
    for name in &commands {
        let words: Vec<&str> = name.split(' ').collect();
        let help = installation.done(&[words.as_slice(), &["--help"]].concat(), "");
        assert!(
            help.starts_with(&format!("Usage: gatepost {name}"))
                && help.contains("\nExample:\n  gatepost "),
            "{help}"
        );
        assert!(fits(&help), "{help}");
        man.assert_says_for(
            name,
            &format!("\n.SS gatepost {}", name.replace('-', "\\-")),
        );
    }
}
