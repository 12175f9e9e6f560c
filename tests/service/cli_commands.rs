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
    let acme = json!({"tenants": [{"name": "acme"}]});
    assert_eq!(installation.apply(&acme).code, 0);
    let named = ["user", "add", "alice", "--claims", r#"{"name": "Alice"}"#];
    let added = installation.done(&named, PASSWORD);
    assert!(added.starts_with("added alice with sub "), "{added}");
    installation.line("user add alice --tenant acme --sub a-2 --no-password");
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
    let listed = installation.line("user list");
    assert!(listed.starts_with("USERNAME  TENANT  SUB"), "{listed}");
}

#[test]
fn unfit_users_and_passwords_are_refused_with_the_rule() {
    let installation = Installation::migrated();
    installation.done(&["user", "add", "alice"], PASSWORD);
    let short = "the password must be at least 8 characters";
    for (line, input, rule) in [
        ("add bob", "short", short),
        ("add bob", "Password1", "most guessed"),
        ("add bob", &"x".repeat(2_000), "at most 1024 bytes"),
        ("add bob", "", "at least 8"),
        ("add AL\u{ff29}CE", PASSWORD, "that user name is taken"),
        ("add b\u{200b}ob", PASSWORD, "zero-width"),
        (
            "add bob --claims {\"sub\":\"x\"}",
            PASSWORD,
            "claims.sub: is a reserved",
        ),
        (
            "add bob --tenant nowhere",
            PASSWORD,
            "there is no tenant nowhere",
        ),
        ("password nobody", PASSWORD, "there is no user"),
        ("password alice", "1234", "at least 8"),
    ] {
        let arguments: Vec<&str> = ["user"].into_iter().chain(line.split(' ')).collect();
        let answer = installation.run_with(&arguments, input);
        answer.assert_refused(1, rule);
        let is_told = !input.is_empty() && answer.stderr.contains(input);
        assert!(!is_told, "{answer:?}");
    }
    assert_eq!(installation.list("user").len(), 1);
    let cut = ["user", "add", "bob", "--claims", "{"];
    assert_eq!(installation.run_with(&cut, PASSWORD).code, 2);
}

#[test]
fn single_claims_are_changed_and_the_others_stay() {
    let installation = Installation::migrated();
    let claims = r#"{"name": "Alice", "role": ["admin"], "nickname": "Al", "level": 1}"#;
    installation.done(&["user", "add", "alice", "--claims", claims], PASSWORD);
    let set = |changes: &[&str]| installation.run(&[&["user", "set", "alice"], changes].concat());
    let changes = "email=alice@example.com email_verified=true phone_number=4930901820 \
                   nickname= level={\"a\":2}";
    let changes: Vec<&str> = changes.split(' ').collect();
    let answer = set(&changes);
    assert_eq!(answer.code, 0, "{answer:?}");
    let told = "changed email, email_verified, phone_number, nickname, level of alice\n";
    assert_eq!(answer.stdout, told);
    let expected = json!({"name": "Alice", "role": ["admin"], "email": "alice@example.com", "email_verified": true,
                          "phone_number": "4930901820", "level": {"a": 2}});
    assert_eq!(installation.list("user")[0]["claims"], expected);
    assert_eq!(set(&changes).stdout, "alice has these claims already\n");
    let no_flag = "claims.email_verified: must be true or false";
    let no_language = "claims.locale: must be a language tag, such as de-DE";
    for (change, code, rule) in [
        ("email", 2, "\"email\" is no CLAIM=VALUE"),
        ("email_verified=yes", 1, no_flag),
        ("locale=de_DE.UTF-8", 1, no_language),
        ("sub=x", 1, "claims.sub: is a reserved claim"),
        ("a b=x", 1, "must be 1 to 200 printable"),
    ] {
        let answer = set(&[change, "website=https://a.example"]);
        answer.assert_refused(code, rule);
    }
    set(&[]).stderr.assert_says("needs CLAIM=VALUE...");
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
    let program = own.get_program().to_str().unwrap();
    let line = format!("{program} {}", arguments.join(" "));
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
    let typing = |line: &str, typed: &str| {
        at_terminal(&installation, &line.split(' ').collect::<Vec<_>>(), typed)
    };
    for (line, question) in [
        ("user remove alice", "This removes alice for good; sub "),
        ("client remove web", "This removes web for good"),
        (
            "revoke --everything",
            "everybody signs in again. Type yes to go on:",
        ),
    ] {
        for typed in ["no\n", "\n"] {
            let answer = typing(line, typed);
            assert!(answer.stdout.contains(question), "{answer:?}");
            answer.stdout.assert_says("nothing was changed");
            assert_eq!(answer.code, 1, "{answer:?}");
        }
    }
    assert_eq!(state(), before);
    assert_eq!(typing("user remove alice", "yes\n").code, 0);
    let answer = typing("user remove bob --yes", "");
    assert!(answer.code == 0, "{answer:?}");
    answer.stdout.assert_says_not("Type yes");
    assert_eq!(typing("revoke --everything --yes", "").code, 0);
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
    let second = installation.line("client secret web --expires-at 2031-01-01T00:00:00Z");
    assert!(first.starts_with("gps_"), "{first}");
    assert!(first.trim().len() == 47, "{first}");
    assert!(first != second, "{first}");
    assert_eq!(installation.database.count("client_secrets"), 2);
    let version = installation.registry_version();
    let third = installation.done(&["client", "secret", "web", "--replace"], "");
    assert_eq!(installation.database.count("client_secrets"), 1);
    assert!(installation.registry_version() > version);
    let dump = installation.dump();
    for secret in [first, second, third] {
        assert!(!dump.contains(secret.trim()));
    }
    // What was made here stays.
    installation
        .apply(&clients)
        .stdout
        .assert_says("2 unchanged");
    for (line, code, rule) in [
        ("client secret spa", 1, "this client is public"),
        ("client secret nobody", 1, "there is no client \"nobody\""),
        (
            "client secret web --expires-at soon",
            2,
            "--expires-at must be a time",
        ),
    ] {
        let answer = installation.run_line(line);
        answer.assert_refused(code, rule);
        assert!(answer.stdout.is_empty(), "{answer:?}");
    }
}

#[test]
fn the_next_key_is_announced_and_the_old_one_signs_until_then() {
    let installation = Installation::migrated();
    let of = |alg: &str| -> Vec<Value> {
        let keys = installation.list("key").into_iter();
        keys.filter(|key| key["alg"] == alg).collect()
    };
    assert_eq!(of("ES256").len(), 1);
    let rotated = installation.done(&["key", "rotate", "--algorithm", "ES256"], "");
    let keys = of("ES256");
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert_eq!(
        [&keys[0]["state"], &keys[1]["state"]],
        ["signing", "announced"]
    );
    assert_eq!(keys[0]["retires_at"], keys[1]["activates_at"]);
    assert!(rotated.contains(keys[1]["kid"].as_str().unwrap()));
    installation
        .line("key rotate --algorithm ES256")
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
    let states = |alg: &str| -> Vec<&Value> {
        let of_it = keys.iter().filter(|key| key["alg"] == alg);
        of_it.map(|key| &key["state"]).collect()
    };
    for alg in ["RS256", "ES256", "EdDSA"] {
        assert_eq!(states(alg), ["published", "signing"], "{alg}");
    }
    // The announced EdDSA key took over.
    assert_eq!(keys.len(), before.len() + 2);
    let erased = "SELECT count(*) FROM signing_keys WHERE wrapped_private IS NULL";
    assert_eq!(installation.database.value::<i64>(erased, &[]), 3);
    assert_eq!(
        installation.run_line("key rotate --algorithm HS256").code,
        2
    );
}

#[test]
fn keys_do_not_open_under_another_master_secret() {
    let installation = Installation::migrated();
    let other = installation.run(&["secret"]).stdout;
    let file = installation.write_private("other", &other);
    let readable = installation.write_private("readable", &other);
    let by_all = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&readable, by_all).unwrap();
    for file in [&readable, &file] {
        let mut command = installation.command(&["key", "rotate"]);
        command.env("GATEPOST_SECRET_FILE", file);
        let answer = answer(command, "");
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
    let counts = "SELECT json_object_agg(event, count) FROM (
                  SELECT event, count(*) FROM audit_events WHERE event <> 'chain_opened' GROUP BY 1) AS counted";
    let events: Value = installation.database.value(counts, &[]);
    let expected = json!({
        "client_changed": 1, "client_secret_made": 1, "password_changed": 1, "registration_changed": 1,
        "signing_key_made": 3, "signing_key_rotated": 1, "user_added": 2,
    });
    assert_eq!(events, expected);
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
    let told = |line: &str, input: &str| {
        let before = events().len();
        installation.done(&line.split(' ').collect::<Vec<_>>(), input);
        let mut new = events().split_off(before);
        assert_eq!(new.len(), 1, "{line}: {new:?}");
        new.remove(0)
    };
    let (event, detail) = told("apply -", &document("New").to_string());
    assert_eq!(event, "client_changed");
    let changed = json!([{"key": "client_name", "old": "Old", "new": "New"}]);
    assert_eq!(detail["fields"], changed, "{detail}");
    let (event, detail) = told("user role alice --add editor", "");
    assert_eq!(event.as_str(), "user_changed", "{detail}");
    assert_ne!(detail["old"], detail["new"], "{detail}");
    let of_partner = format!("alice --issuer {issuer} --subject p-1");
    for (command, event) in [("link", "identity_linked"), ("unlink", "identity_unlinked")] {
        assert_eq!(told(&format!("user {command} {of_partner}"), "").0, event);
    }
    for list in [r#"{"tenants": []}"#, r#"{"assertion_issuers": []}"#] {
        assert_eq!(told("apply - --prune", list).0, "registration_removed");
    }
    let mut openssl = Command::new("openssl");
    openssl.args(["genpkey", "-algorithm", "ED25519"]);
    let key = String::from_utf8(openssl.output().unwrap().stdout).unwrap();
    assert_eq!(told("key import -", &key).0, "signing_key_imported");
    let keys = installation.list("key");
    let waiting = keys.iter().find(|key| key["state"] == "announced").unwrap();
    let kid = waiting["kid"].as_str().unwrap();
    assert_eq!(
        told(&format!("key retire {kid}"), "").0,
        "signing_key_retired"
    );
    let file = installation.directory.join("secret");
    let old = std::fs::read_to_string(&file).unwrap();
    let new = installation.line("secret");
    std::fs::write(&file, format!("{new}{old}")).unwrap();
    assert_eq!(told("secret rotate", "").0, "master_secret_rotated");
    let renamed = "--base-url https://id.example/moved";
    let (event, detail) = told(&format!("migrate --rename-issuer {renamed}"), "");
    assert_eq!(event.as_str(), "issuer_renamed", "{detail}");
    assert_eq!(detail["new"], "https://id.example/moved", "{detail}");
    let (event, _) = told(&format!("client remove web {renamed}"), "");
    assert_eq!(event, "client_removed");
    std::fs::write(&file, installation.line("secret")).unwrap();
    let before = events().len();
    installation.line(&format!("key reset {renamed}"));
    let is_reset = |(event, _): &(String, Value)| event == "keys_reset";
    assert!(events()[before..].iter().any(is_reset));
    installation.line(&format!("audit verify {renamed}"));
    let everything = installation.dump();
    assert!(!everything.contains(old.trim()) && !everything.contains(new.trim()));
}

#[test]
fn configuration_mistakes_end_with_78_and_name_every_variable() {
    let installation = Installation::empty();
    let nonsense = (
        "GATEPOST_DATABASE_URL",
        "postgres://u:hunter2@localhost/x?sslmode=nonsense",
    );
    let issuer = ("GATEPOST_BASE_URL", "http://id.example");
    let asked = |arguments: &[&str], settings: &[(&str, &str)]| {
        let mut command = installation.command(arguments);
        command.envs(settings.iter().copied());
        answer(command, "")
    };
    let wrong = [
        nonsense,
        issuer,
        ("GATEPOST_WORKERS", "many"),
        ("GATEPOST_LISTENS", "x"),
    ];
    let nearest = "GATEPOST_LISTENS is not a setting; the nearest is GATEPOST_LISTEN";
    asked(&["migrate"], &wrong).assert_refused(78, nearest);
    let answer = asked(&["migrate", "--workers", "many"], &[issuer]);
    assert!(answer.code == 78, "{answer:?}");
    assert!(answer.stderr.lines().count() == 2, "{answer:?}");
    let answer = asked(&["user", "list"], &[nonsense]);
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
        command.env_remove("GATEPOST_BASE_URL");
        command.env_remove("GATEPOST_DATABASE_URL");
        answer(command, "")
    };
    let elsewhere = run(&["user", "list"]);
    elsewhere.stderr.assert_says("https://elsewhere.example");
    let by_flag = run(&["user", "list", "--base-url", "https://id.example"]);
    assert_eq!(by_flag.code, 0, "{by_flag:?}");
    let broken = installation.write_private("broken.env", "GATEPOST_LISTEN_ON=x\nhunter2\n");
    let answer = installation.run(&["user", "list", "--env-file", broken.to_str().unwrap()]);
    answer.assert_refused(78, "line 2");
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
        answer.assert_refused(2, nearest);
        assert!(answer.stdout.is_empty(), "{answer:?}");
    }
    for line in [
        "--help",
        "user --help",
        "apply --help",
        "serve --help",
        "-h",
    ] {
        let help = installation.line(line);
        help.assert_says("Example:");
        help.assert_says_not("server-process");
    }
    let version = concat!("gatepost ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(installation.line("--version"), version);
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
        let mut rows = table.lines();
        let row = rows.find(|line| line.starts_with(client_id)).unwrap();
        let shown = row.split_ascii_whitespace().nth(3);
        assert_eq!(shown, Some(grant_types), "{table}");
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
    let mut writing = std::fs::OpenOptions::new();
    writing.write(true);
    let full = || Stdio::from(writing.open("/dev/full").unwrap());
    let replace = "client secret web --replace";
    let reset = format!("key reset --secret-file {}", lost.display());
    for (line, output) in [
        (replace, full()),
        (replace, Stdio::from(nobody_reads)),
        (&reset, full()),
    ] {
        let mut command = installation.command(&line.split(' ').collect::<Vec<_>>());
        let said = command
            .stdin(Stdio::null())
            .stdout(output)
            .output()
            .unwrap();
        assert_eq!(said.status.code(), Some(1), "{line}");
        let stderr = String::from_utf8(said.stderr).unwrap();
        stderr.assert_says_for(line, "gatepost: standard output cannot be written: ");
        assert_eq!(installation.dump(), before, "{line}");
    }
    let secret = installation.line(replace);
    assert!(secret.starts_with("gps_"));
    assert_eq!(installation.database.count("client_secrets"), 1);
}

/// Answers one request with that status line and text.
fn serve_once(mut stream: impl Read + Write, status: &str, text: &str) -> String {
    let mut request = [0; 1_024];
    let length = stream.read(&mut request).unwrap();
    let length_of_text = text.len();
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length_of_text}\r\n\r\n{text}");
    stream.write_all(answer.as_bytes()).unwrap();
    String::from_utf8_lossy(&request[..length]).into_owned()
}

#[test]
fn healthcheck_asks_the_admin_listener() {
    let installation = Installation::empty();
    const BUSY: &str = "503 Service Unavailable";
    const DEGRADED: &str = "degraded: the database does not answer\n";
    let waiting = "gatepost: not ready: waiting: http://";
    for (status, text, code, said) in [
        ("200 OK", "ready\n", 0, "ready\n"),
        ("200 OK", DEGRADED, 0, DEGRADED),
        (BUSY, "not ready: waiting\n", 1, waiting),
        (BUSY, "<html>", 1, "gatepost: not ready: http://"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || serve_once(listener.accept().unwrap().0, status, text));
        let answer = installation.run(&["healthcheck", "--admin-listen", &address]);
        assert_eq!(answer.code, code);
        assert!((answer.stdout + &answer.stderr).starts_with(said), "{text}");
        let asked = server.join().unwrap();
        assert!(asked.starts_with("GET /readyz HTTP/1.1\r\n"), "{asked}");
    }
}

#[test]
fn healthcheck_asks_the_main_listener_where_there_is_no_other() {
    let installation = Installation::empty();
    let path = installation.directory.join("http.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || serve_once(listener.accept().unwrap().0, "200 OK", "ok\n"));
    let socket = format!("unix:{}", path.display());
    let healthcheck = ["healthcheck", "--admin-listen", "", "--listen", &socket];
    installation.done(&healthcheck, "");
    let asked = server.join().unwrap();
    assert!(asked.starts_with("GET /healthz HTTP/1.1\r\n"), "{asked}");
    let nobody = installation.run(&healthcheck);
    assert_eq!(nobody.code, 1);
    let told = format!(
        "gatepost: not alive: /healthz over {socket}: Connection refused: is `gatepost serve` running?\n"
    );
    assert_eq!(nobody.stderr, told);
}

#[test]
fn users_are_shown_given_roles_disabled_enabled_and_removed_for_good() {
    let installation = Installation::migrated();
    let claims = r#"{"role": "reader", "name": "A"}"#;
    let add = [
        "user", "add", "alice", "--sub", "alice-1", "--claims", claims,
    ];
    installation.done(&add, PASSWORD);
    let role = |changes: &str| -> Vec<String> {
        let line = format!("user role alice --json{changes}");
        serde_json::from_str(&installation.line(&line)).unwrap()
    };
    assert_eq!(role(""), ["reader"]);
    let roles = role(" --add admin --add editor --remove reader");
    assert_eq!(roles, ["admin", "editor"]);
    assert_eq!(role(" --add admin"), ["admin", "editor"]);
    let without = installation.run_line("user role alice --remove nobody");
    without.assert_refused(0, "alice has no role \"nobody\"");
    let roles = role(" --remove admin --remove editor --remove nobody");
    assert_eq!(roles, [""; 0]);
    let shown =
        || -> Value { serde_json::from_str(&installation.line("user show alice --json")).unwrap() };
    assert_eq!(shown()["claims"], json!({"name": "A"}));
    assert_eq!(shown()["sub"], "alice-1");
    let told = installation.line("user show alice");
    told.assert_says("claims.name: A\nconsents: []\nenabled: true\n");
    let epoch = || -> i64 {
        let query = "SELECT epoch FROM users WHERE sub = 'alice-1'";
        installation.database.value(query, &[])
    };
    let before = epoch();
    let disabled = installation.line("user disable ALICE");
    disabled.assert_says("what was signed in is over");
    let after = epoch();
    assert!(after != before && shown()["enabled"] == false);
    let again = installation.line("user disable alice");
    again.assert_says("is disabled already");
    installation.line("user enable alice");
    assert!(epoch() == after && shown()["enabled"] == true);
    let removed = installation.line("user remove alice");
    removed.assert_says("sub alice-1 is never given again");
    let again = installation.run_with(&["user", "add", "bob", "--sub", "alice-1"], PASSWORD);
    again.assert_refused(1, "or once was");
    for command in "show role disable enable remove revoke password".split(' ') {
        let answer = installation.run_with(&["user", command, "alice"], PASSWORD);
        answer.assert_refused(1, "there is no user \"alice\" there: --tenant");
    }
    for list in ["session", "grant", "audit"] {
        let answer = installation.run(&[list, "list", "--tenant", "acme"]);
        answer.assert_refused(2, "give both");
    }
    for (event, count) in [("user_changed", 4), ("user_removed", 1)] {
        let of_alice = format!("audit_events WHERE sub = 'alice-1' AND event = '{event}'");
        installation.database.assert_count(&of_alice, count);
    }
    let no_role = installation.run(&["user", "role", "alice", "--add", ""]);
    assert_eq!(no_role.code, 2, "{no_role:?}");
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
    let shown = installation.line("client show web --json");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["metadata"]["scope"], "openid");
    assert_eq!(shown["secrets"][0]["description"], "the first");
    let told = installation.line("client show web");
    told.assert_says("client_id: web\nenabled: true\n");

    let tested = installation.done(&["client", "test", "web"], "");
    tested.assert_says("ok    secrets that are good: 1");
    assert!(tested.contains("Try: https://id.example/connect/authorize?client_id=web&response_type=code&scope=openid&redirect_uri=https%3A%2F%2Fshop.example%2Fcb&"), "{tested}");
    let with_secret = ["client", "test", "web", "--secret"];
    let right = installation.done(&with_secret, "the-right-secret-1\n");
    right.assert_says("that secret is right: \"the first\"");
    let wrong = installation.run_with(&with_secret, "hunter2\n");
    assert!(wrong.code == 1, "{wrong:?}");
    wrong.stdout.assert_says("fails that secret is wrong");
    assert!(!format!("{}{}", wrong.stdout, wrong.stderr).contains("hunter2"));
    let broken = installation.run(&["client", "test", "m2m", "--json"]);
    assert_eq!(broken.code, 1);
    let findings: Value = serde_json::from_str(&broken.stdout).unwrap();
    let fails = |finding: &Value| {
        let text = finding["text"].as_str().unwrap();
        finding["verdict"] == "fails" && text.contains("`gatepost client secret m2m`")
    };
    let mut found = findings["findings"].as_array().unwrap().iter();
    assert!(found.any(fails), "{findings}");

    let refused = installation.run(&["client", "remove", "web"]);
    refused.assert_refused(1, "still named by assertion_issuer https://sts.example");
    installation.done(&["client", "remove", "m2m"], "");
    assert_eq!(installation.list("client").len(), 1);
    let client = ["show", "test", "remove", "secret", "revoke"];
    let lines = client.map(|command| format!("client {command} m2m"));
    for line in lines
        .iter()
        .map(String::as_str)
        .chain(["grant list --client m2m"])
    {
        let answer = installation.run_line(line);
        answer.assert_refused(1, "there is no client \"m2m\"");
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
    let nonsense = "postgres://localhost/x?sslmode=nonsense";
    command.env("GATEPOST_DATABASE_URL", nonsense);
    let tried = answer(command, "");
    let names = tried.stderr.matches("GATEPOST_DATABASE_URL").count();
    assert_eq!((tried.code, names), (78, 1), "{tried:?}");
    let nobody = crate::support::http::free_address();
    let answer = installation.run(&["healthcheck", "--admin-listen", &nobody]);
    answer.assert_refused(1, &format!("http://{nobody}/readyz"));
    let answer = installation.run(&["revoke"]);
    answer.assert_refused(2, "needs --everything");
    let help = installation.line("revoke --help");
    let usage = "Usage: gatepost revoke --everything [--yes]\n";
    assert!(help.starts_with(usage), "{help}");
    let group = installation.line("user --help");
    assert!(
        group.starts_with("Usage: gatepost user COMMAND\n"),
        "{group}"
    );
    group.assert_says("Example:\n  gatepost user add alice");
    let answer = installation.run(&["migrate", "--chek"]);
    answer.assert_refused(2, "the nearest is --check");
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
    let read_only = "-c default_transaction_read_only=on";
    let url = installation.database.url_with(read_only);
    let asked = |line: &str| {
        let mut command = installation.command(&line.split(' ').collect::<Vec<_>>());
        command.env("GATEPOST_DATABASE_URL", &url);
        answer(command, PASSWORD)
    };
    for line in [
        "user add alice",
        "key rotate",
        "migrate",
        "revoke --everything",
    ] {
        asked(line).assert_refused(1, "read-only");
    }
    for line in ["user list", "audit verify", "key list"] {
        assert_eq!(asked(line).code, 0, "{line}");
    }
}

/// Every command, as the overview lists them.
fn commands(installation: &Installation) -> Vec<String> {
    let overview = installation.done(&["--help"], "");
    let (_, listed) = overview.split_once("\nCommands:\n").unwrap();
    let listed = listed.lines().take_while(|line| !line.is_empty());
    // The lines of a longer summary begin further in.
    let names = listed.map(|line| line[2..23].trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
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
    let has_request = man.lines().any(|line| line.starts_with('\''));
    assert!(!has_request, "a request in the text");
    let fits = |help: &str| help.lines().all(|line| line.chars().count() <= 80);
    assert!(fits(&installation.line("--help")));
    assert!(fits(&installation.line("key --help")));
    for name in &commands {
        let help = installation.line(&format!("{name} --help"));
        let usage = format!("Usage: gatepost {name}");
        assert!(help.starts_with(&usage), "{help}");
        help.assert_says("\nExample:\n  gatepost ");
        assert!(fits(&help), "{help}");
        let heading = format!("\n.SS gatepost {}", name.replace('-', "\\-"));
        man.assert_says_for(name, &heading);
    }
}
