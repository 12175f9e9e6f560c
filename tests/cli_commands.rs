//! The commands of the operator's day on a real database, and what is no command.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic here is a failed test")]

mod cli_support;
mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread;

use cli_support::Installation;
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse battery staple";

#[test]
fn users_are_added_listed_and_given_passwords() {
    let installation = Installation::migrated();
    assert_eq!(installation.apply(&json!({"tenants": [{"name": "acme"}]})).code, 0);
    let added = installation.done(&["user", "add", "alice", "--claims", r#"{"name": "Alice"}"#], PASSWORD);
    assert!(added.starts_with("added alice with sub "), "{added}");
    installation.done(&["user", "add", "alice", "--tenant", "acme", "--sub", "a-2", "--no-password"], "");
    let users = installation.list("user");
    assert_eq!(users.len(), 2);
    assert_eq!(
        (&users[0]["tenant"], &users[0]["has_password"], &users[0]["claims"]["name"]),
        (&Value::Null, &json!(true), &json!("Alice"))
    );
    assert_eq!(
        (&users[1]["tenant"], &users[1]["has_password"], &users[1]["sub"]),
        (&json!("acme"), &json!(false), &json!("a-2"))
    );
    assert_eq!(users[0]["sub"].as_str().unwrap().len(), 22);
    let hash = || -> String {
        let query = "SELECT password_hash FROM users WHERE tenant = ''";
        installation.database.client().query_one(query, &[]).unwrap().get(0)
    };
    let before = hash();
    assert!(before.starts_with("$argon2id$v=19$m=7168,t=1,p=1$"), "{before}");
    installation.done(&["user", "password", "ALICE"], "another long password\n");
    assert_ne!(hash(), before);
    assert!(installation.done(&["user", "list"], "").starts_with("USERNAME  TENANT  SUB"));
}

#[test]
fn unfit_users_and_passwords_are_refused_with_the_rule() {
    let installation = Installation::migrated();
    installation.done(&["user", "add", "alice"], PASSWORD);
    for (arguments, input, rule) in [
        (&["user", "add", "bob"][..], "short", "the password must be at least 8 characters"),
        (&["user", "add", "bob"], "Password1", "most guessed"),
        (&["user", "add", "bob"], &"x".repeat(2_000), "at most 1024 bytes"),
        (&["user", "add", "bob"], "", "at least 8"),
        (&["user", "add", "AL\u{ff29}CE"], PASSWORD, "that user name is taken"),
        (&["user", "add", "b\u{200b}ob"], PASSWORD, "zero-width"),
        (&["user", "add", "bob", "--claims", r#"{"sub": "x"}"#], PASSWORD, "claims.sub: is a reserved claim"),
        (&["user", "add", "bob", "--tenant", "nowhere"], PASSWORD, "there is no tenant nowhere"),
        (&["user", "password", "nobody"], PASSWORD, "there is no user"),
        (&["user", "password", "alice"], "1234", "at least 8"),
    ] {
        let answer = installation.run_with(arguments, input);
        assert!(answer.code == 1 && answer.stderr.contains(rule), "{arguments:?}: {answer:?}");
        assert!(input.is_empty() || !answer.stderr.contains(input), "{answer:?}");
    }
    assert_eq!(installation.list("user").len(), 1);
    assert_eq!(installation.run_with(&["user", "add", "bob", "--claims", "{"], PASSWORD).code, 2);
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
    let second = installation.done(&["client", "secret", "web", "--expires-at", "2031-01-01T00:00:00Z"], "");
    assert!(first.starts_with("gps_") && first.trim().len() == 47 && first != second, "{first}");
    assert_eq!(installation.database.count("client_secrets"), 2);
    let version = installation.registry_version();
    let third = installation.done(&["client", "secret", "web", "--replace"], "");
    assert_eq!(installation.database.count("client_secrets"), 1);
    assert!(installation.registry_version() > version);
    let dump = installation.dump();
    assert!([first, second, third].iter().all(|secret| !dump.contains(secret.trim())));
    assert!(installation.apply(&clients).stdout.contains("2 unchanged"), "what was made here stays");
    for (arguments, code, rule) in [
        (&["client", "secret", "spa"][..], 1, "this client is public"),
        (&["client", "secret", "nobody"], 1, "there is no client \"nobody\""),
        (&["client", "secret", "web", "--expires-at", "soon"], 2, "--expires-at must be a time"),
    ] {
        let answer = installation.run(arguments);
        assert!(answer.code == code && answer.stderr.contains(rule) && answer.stdout.is_empty(), "{answer:?}");
    }
}

#[test]
fn the_next_key_is_announced_and_the_old_one_signs_until_then() {
    let installation = Installation::migrated();
    let of =
        |alg: &str| -> Vec<Value> { installation.list("key").into_iter().filter(|key| key["alg"] == alg).collect() };
    assert_eq!(of("ES256").len(), 1);
    let rotated = installation.done(&["key", "rotate", "--algorithm", "ES256"], "");
    let keys = of("ES256");
    assert_eq!(keys.iter().map(|key| key["state"].as_str().unwrap()).collect::<Vec<_>>(), ["signing", "announced"]);
    assert_eq!(keys[0]["retires_at"], keys[1]["activates_at"]);
    assert!(rotated.contains(keys[1]["kid"].as_str().unwrap()));
    assert!(installation.done(&["key", "rotate", "--algorithm", "ES256"], "").contains("is announced already"));
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
        keys.iter().filter(|key| key["alg"] == alg).map(|key| key["state"].as_str().unwrap()).collect()
    };
    for alg in ["RS256", "ES256", "EdDSA"] {
        assert_eq!(states(alg), ["published", "signing"], "{alg}");
    }
    assert_eq!(keys.len(), before.len() + 2, "the announced EdDSA key took over");
    let erased = "SELECT count(*) FROM signing_keys WHERE wrapped_private IS NULL";
    assert_eq!(installation.database.client().query_one(erased, &[]).unwrap().get::<_, i64>(0), 3);
    assert_eq!(installation.run(&["key", "rotate", "--algorithm", "HS256"]).code, 2);
}

#[test]
fn keys_do_not_open_under_another_master_secret() {
    let installation = Installation::migrated();
    let other = installation.run(&["secret"]).stdout;
    let file = installation.write_private("other", &other);
    let readable = installation.write_private("readable", &other);
    std::fs::set_permissions(&readable, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    for file in [&readable, &file] {
        let mut command = installation.command(&["key", "rotate"]);
        command.env("GATEPOST_SECRET_FILE", file);
        let answer = cli_support::answer(command, "");
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
    let rows =
        installation.database.client().query("SELECT event, count(*) FROM audit_events GROUP BY 1 ORDER BY 1", &[]);
    let events: Vec<(String, i64)> = rows.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    let expected = [
        ("client_changed", 1),
        ("client_secret_made", 1),
        ("password_changed", 1),
        ("registration_changed", 1),
        ("signing_key_made", 3),
        ("signing_key_rotated", 1),
        ("user_added", 2),
    ];
    assert_eq!(events, expected.map(|(event, count)| (event.to_owned(), count)));
}

#[test]
fn configuration_mistakes_end_with_78_and_name_every_variable() {
    let installation = Installation::empty();
    let mut command = installation.command(&["migrate"]);
    command
        .env("GATEPOST_DATABASE_URL", "postgres://u:hunter2@localhost/x?sslmode=nonsense")
        .env("GATEPOST_BASE_URL", "http://id.example")
        .env("GATEPOST_WORKERS", "many")
        .env("GATEPOST_LISTENS", "x");
    let answer = cli_support::answer(command, "");
    assert_eq!(answer.code, 78);
    assert!(answer.stderr.contains("GATEPOST_LISTENS is not a setting; the nearest is GATEPOST_LISTEN"), "{answer:?}");
    let mut command = installation.command(&["migrate", "--workers", "many"]);
    command.env("GATEPOST_BASE_URL", "http://id.example");
    let answer = cli_support::answer(command, "");
    assert!(answer.code == 78 && answer.stderr.lines().count() == 2, "{answer:?}");
    let mut command = installation.command(&["user", "list"]);
    command.env("GATEPOST_DATABASE_URL", "postgres://u:hunter2@localhost/x?sslmode=nonsense");
    let answer = cli_support::answer(command, "");
    assert!(answer.code == 78 && !answer.stderr.contains("hunter2"), "{answer:?}");
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
        command.env_remove("GATEPOST_BASE_URL").env_remove("GATEPOST_DATABASE_URL");
        cli_support::answer(command, "")
    };
    assert!(run(&["user", "list"]).stderr.contains("https://elsewhere.example"));
    assert_eq!(run(&["user", "list", "--base-url", "https://id.example"]).code, 0);
    let broken = installation.write_private("broken.env", "GATEPOST_LISTEN_ON=x\nhunter2\n");
    let answer = installation.run(&["user", "list", "--env-file", broken.to_str().unwrap()]);
    assert!(answer.code == 78 && answer.stderr.contains("line 2") && !answer.stderr.contains("hunter2"), "{answer:?}");
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
        assert!(answer.code == 2 && answer.stderr.contains(nearest) && answer.stdout.is_empty(), "{answer:?}");
    }
    for arguments in [&["--help"][..], &["user", "--help"], &["apply", "--help"], &["serve", "--help"], &["-h"]] {
        let answer = installation.run(arguments);
        assert!(
            answer.code == 0 && answer.stdout.contains("Example:") && !answer.stdout.contains("server-process"),
            "{answer:?}"
        );
    }
    assert_eq!(installation.done(&["--version"], ""), concat!("gatepost ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// Answers one request with that status line.
fn serve_once(mut stream: impl Read + Write, status: &str) -> String {
    let mut request = [0; 1_024];
    let length = stream.read(&mut request).unwrap();
    stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).unwrap();
    String::from_utf8_lossy(&request[..length]).into_owned()
}

#[test]
fn healthcheck_asks_the_admin_listener() {
    let installation = Installation::empty();
    for (status, code) in [("200 OK", 0), ("503 Service Unavailable", 1)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || serve_once(listener.accept().unwrap().0, status));
        assert_eq!(installation.run(&["healthcheck", "--admin-listen", &address]).code, code);
        assert!(server.join().unwrap().starts_with("GET /readyz HTTP/1.1\r\n"));
    }
}

#[test]
fn healthcheck_asks_the_main_listener_where_there_is_no_other() {
    let installation = Installation::empty();
    let path = installation.directory.join("http.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || serve_once(listener.accept().unwrap().0, "200 OK"));
    let socket = format!("unix:{}", path.display());
    assert_eq!(installation.run(&["healthcheck", "--admin-listen", "", "--listen", &socket]).code, 0);
    assert!(server.join().unwrap().starts_with("GET /healthz HTTP/1.1\r\n"));
    assert_eq!(installation.run(&["healthcheck", "--admin-listen", "", "--listen", &socket]).code, 1);
}

#[test]
fn users_are_shown_given_roles_disabled_enabled_and_removed_for_good() {
    let installation = Installation::migrated();
    installation.done(
        &["user", "add", "alice", "--sub", "alice-1", "--claims", r#"{"role": "reader", "name": "A"}"#],
        PASSWORD,
    );
    let role = |arguments: &[&str]| -> Vec<String> {
        let arguments = [&["user", "role", "alice", "--json"], arguments].concat();
        serde_json::from_str(&installation.done(&arguments, "")).unwrap()
    };
    assert_eq!(role(&[]), ["reader"]);
    assert_eq!(role(&["--add", "admin", "--add", "editor", "--remove", "reader"]), ["admin", "editor"]);
    assert_eq!(role(&["--add", "admin"]), ["admin", "editor"]);
    assert_eq!(role(&["--remove", "admin", "--remove", "editor", "--remove", "nobody"]), [""; 0]);
    let shown = |installation: &Installation| -> Value {
        serde_json::from_str(&installation.done(&["user", "show", "alice", "--json"], "")).unwrap()
    };
    assert_eq!(
        (&shown(&installation)["claims"], &shown(&installation)["sub"]),
        (&json!({"name": "A"}), &json!("alice-1"))
    );
    assert!(installation.done(&["user", "show", "alice"], "").contains("claims.name: A\nenabled: true\n"));
    let mark = || -> i64 {
        let query = "SELECT (extract(epoch FROM tokens_valid_after) * 1000)::int8 FROM users WHERE sub = 'alice-1'";
        installation.database.client().query_one(query, &[]).unwrap().get(0)
    };
    let before = mark();
    assert!(installation.done(&["user", "disable", "ALICE"], "").contains("what was signed in is over"));
    let after = mark();
    assert!(after > before && shown(&installation)["enabled"] == false);
    assert!(installation.done(&["user", "disable", "alice"], "").contains("is disabled already"));
    installation.done(&["user", "enable", "alice"], "");
    assert!(mark() >= after && shown(&installation)["enabled"] == true);
    assert!(installation.done(&["user", "remove", "alice"], "").contains("sub alice-1 is never given again"));
    let again = installation.run_with(&["user", "add", "bob", "--sub", "alice-1"], PASSWORD);
    assert!(again.code == 1 && again.stderr.contains("or once was"), "{again:?}");
    for command in ["show", "role", "disable", "enable", "remove", "revoke", "password"] {
        let answer = installation.run_with(&["user", command, "alice"], PASSWORD);
        assert!(
            answer.code == 1 && answer.stderr.contains("there is no user \"alice\" there"),
            "{command}: {answer:?}"
        );
    }
    let count = |event: &str| {
        let query = format!("SELECT count(*) FROM audit_events WHERE sub = 'alice-1' AND event = '{event}'");
        installation.database.client().query_one(&query, &[]).unwrap().get::<_, i64>(0)
    };
    assert_eq!((count("user_changed"), count("user_removed")), (4, 1));
    assert_eq!(installation.run(&["user", "role", "alice", "--add", ""]).code, 2);
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
    let shown: Value = serde_json::from_str(&installation.done(&["client", "show", "web", "--json"], "")).unwrap();
    assert_eq!(
        (&shown["metadata"]["scope"], &shown["secrets"][0]["description"]),
        (&json!("openid"), &json!("the first"))
    );
    assert!(installation.done(&["client", "show", "web"], "").contains("client_id: web\nenabled: true\n"));

    let tested = installation.done(&["client", "test", "web"], "");
    assert!(tested.contains("ok    secrets that are good: 1"), "{tested}");
    assert!(tested.contains("Try: https://id.example/connect/authorize?client_id=web&response_type=code&scope=openid&redirect_uri=https%3A%2F%2Fshop.example%2Fcb&"), "{tested}");
    assert!(
        installation
            .done(&["client", "test", "web", "--secret"], "the-right-secret-1\n")
            .contains("that secret is right: \"the first\"")
    );
    let wrong = installation.run_with(&["client", "test", "web", "--secret"], "hunter2\n");
    assert!(wrong.code == 1 && wrong.stdout.contains("fails that secret is wrong"), "{wrong:?}");
    assert!(!format!("{}{}", wrong.stdout, wrong.stderr).contains("hunter2"));
    let broken = installation.run(&["client", "test", "m2m", "--json"]);
    assert_eq!(broken.code, 1);
    let findings: Value = serde_json::from_str(&broken.stdout).unwrap();
    let fails = |finding: &Value| {
        finding["verdict"] == "fails" && finding["text"].as_str().unwrap().contains("`gatepost client secret m2m`")
    };
    assert!(findings["findings"].as_array().unwrap().iter().any(fails), "{findings}");

    let refused = installation.run(&["client", "remove", "web"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("still named by assertion_issuer https://sts.example"),
        "{refused:?}"
    );
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
        assert!(answer.code == 1 && answer.stderr.contains("there is no client \"m2m\""), "{command:?}: {answer:?}");
    }
}

#[test]
fn errors_name_what_was_tried_once_and_what_is_needed() {
    let installation = Installation::empty();
    let mut command = installation.command(&["user", "list"]);
    command.env("GATEPOST_DATABASE_URL", "postgres://localhost/x?sslmode=nonsense");
    let answer = cli_support::answer(command, "");
    assert!(answer.code == 78 && answer.stderr.matches("GATEPOST_DATABASE_URL").count() == 1, "{answer:?}");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let answer = installation.run(&["healthcheck", "--admin-listen", &nobody]);
    assert!(answer.code == 1 && answer.stderr.contains(&format!("http://{nobody}/readyz")), "{answer:?}");
    let answer = installation.run(&["revoke"]);
    assert!(answer.code == 2 && answer.stderr.contains("needs --everything"), "{answer:?}");
    assert!(installation.done(&["revoke", "--help"], "").starts_with("Usage: gatepost revoke --everything\n"));
    let group = installation.done(&["user", "--help"], "");
    assert!(
        group.starts_with("Usage: gatepost user COMMAND\n") && group.contains("Example:\n  gatepost user add alice"),
        "{group}"
    );
    let answer = installation.run(&["user", "list", "--chek"]);
    assert!(answer.code == 2 && answer.stderr.contains("the nearest is --check"), "{answer:?}");
    let answer = installation.run(&["frobnicate"]);
    assert!(answer.code == 2 && !answer.stderr.contains("nearest"), "{answer:?}");
}

/// Every command, as the overview lists them.
fn commands(installation: &Installation) -> Vec<String> {
    let overview = installation.done(&["--help"], "");
    let listed = overview.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    listed.map(|line| line[2..20].trim().to_owned()).collect()
}

#[test]
fn every_command_stands_in_the_help_the_man_page_and_the_completions() {
    let installation = Installation::empty();
    let commands = commands(&installation);
    assert!(commands.len() >= 30 && commands.contains(&String::from("user add")), "{commands:?}");
    let man = installation.done(&["man"], "");
    let (zsh, fish) = (installation.done(&["completions", "zsh"], ""), installation.done(&["completions", "fish"], ""));
    assert!(
        man.starts_with(".TH GATEPOST 1 ") && man.contains("\n.SH SETTINGS\n") && man.contains("GATEPOST_BASE_URL")
    );
    assert!(man.lines().all(|line| !line.starts_with('\'')), "a request in the text");
    for name in &commands {
        let words: Vec<&str> = name.split(' ').collect();
        let help = installation.done(&[words.as_slice(), &["--help"]].concat(), "");
        assert!(
            help.starts_with(&format!("Usage: gatepost {name}")) && help.contains("\nExample:\n  gatepost "),
            "{help}"
        );
        assert!(man.contains(&format!("\n.SS gatepost {}", name.replace('-', "\\-"))), "{name}");
        let (before, last) = name.rsplit_once(' ').unwrap_or(("", name));
        assert!(
            zsh.contains(&format!("        ('{before}') offered=(")) && zsh.contains(&format!("'{last}:")),
            "{name}"
        );
        assert!(fish.contains(&format!("complete -c gatepost -n '__gatepost_at {before}' -a '{last}' -d '")), "{name}");
    }
    // As many ends as beginnings, and all quotes in pairs.
    let count = |script: &str, holds: &dyn Fn(&str) -> bool| script.lines().filter(|line| holds(line.trim())).count();
    assert_eq!(count(&zsh, &|line| line.starts_with("case ")), count(&zsh, &|line| line == "esac"));
    let loops = count(&zsh, &|line| line.starts_with("for "));
    assert_eq!(loops, count(&zsh, &|line| line == "done"));
    let begins = |line: &str| ["function ", "for ", "if ", "switch "].iter().any(|word| line.starts_with(word));
    assert_eq!(count(&fish, &begins), count(&fish, &|line| line == "end"));
    for script in [&zsh, &fish] {
        let unescaped = script.replace("'\\''", "");
        assert!(unescaped.lines().all(|line| line.starts_with('#') || line.matches('\'').count() % 2 == 0));
    }
    assert_eq!(installation.run(&["completions", "tcsh"]).code, 2);
    // Where these shells are installed they read the scripts themselves.
    for (shell, script) in [("zsh", &zsh), ("fish", &fish)] {
        let file = installation.write_private(&format!("script.{shell}"), script);
        match std::process::Command::new(shell).arg("-n").arg(&file).status() {
            Ok(status) => assert!(status.success(), "{shell}"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{shell}"),
        }
    }
}

#[test]
fn bash_completes_commands_options_and_files() {
    let installation = Installation::empty();
    let script = installation.done(&["completions", "bash"], "");
    let file = installation.write_private("gatepost.bash", &script);
    installation.write_private("registration.json", "{}");
    let bash = |line: &str| {
        let output =
            std::process::Command::new("bash").arg("-c").arg(line).current_dir(&installation.directory).output();
        let output = output.unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    bash(&format!("bash -n {}", file.display()));
    let completed = |words: &str| {
        let count = words.split(' ').count() - 1;
        let last = if words.ends_with(' ') { " ''" } else { "" };
        let line = format!(
            "source {}; complete -p gatepost >/dev/null || exit 1; COMP_WORDS=({words}{last}) COMP_CWORD={count}; \
             _gatepost; echo \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        bash(&line).trim().to_owned()
    };
    for (words, offered) in [
        ("gatepost us", "user"),
        ("gatepost user r", "role remove revoke"),
        ("gatepost user add --te", "--tenant"),
        ("gatepost --env-file x user add --no", "--no-password"),
        ("gatepost plan --p", "--prune"),
        ("gatepost plan reg", "registration.json"),
        ("gatepost plan --prune reg", "registration.json"),
        ("gatepost serve --env-file reg", "registration.json"),
        ("gatepost serve --env", "--env-file"),
        ("gatepost revoke --ev", "--everything"),
        ("gatepost user add --tenant a", ""),
        ("gatepost nonsense a", ""),
    ] {
        assert_eq!(completed(words), offered, "{words}");
    }
    let all = completed("gatepost ");
    for command in commands(&installation) {
        let first = command.split(' ').next().unwrap();
        assert!(all.split(' ').any(|word| word == first), "{first}: {all}");
    }
}
