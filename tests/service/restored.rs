//! What a restored backup brings back, found and ended by the commands of docs/operate/backup.md,
//! run as they stand there.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::signed_in;
use crate::support::gatepost::{Gatepost, document};
use crate::support::phone::add_app;
use crate::support::postgres::TestDatabase;

/// The commands of the page, a block each.
fn blocks() -> Vec<String> {
    let page = fs::read_to_string("docs/operate/backup.md").unwrap();
    page.split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

fn run(command: &mut Command, input: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The database as it is now, in another schema.
fn restored(from: &TestDatabase) -> TestDatabase {
    restored_into(TestDatabase::empty(), from)
}

/// The database as it is now, in place of an empty schema.
pub fn restored_into(copy: TestDatabase, from: &TestDatabase) -> TestDatabase {
    let dump = run(
        Command::new("pg_dump").args(["-n", &from.schema, "-d", &from.url]),
        "",
    );
    copy.run(&format!("DROP SCHEMA {}", copy.schema));
    let quietly = ["-q", "-v", "ON_ERROR_STOP=1", "-d", &copy.url];
    run(
        Command::new("psql").args(quietly),
        &dump.replace(&from.schema, &copy.schema),
    );
    copy
}

/// A machine on which an installation's settings lie at `/etc/gatepost`, and where `sudo` finds
/// them there.
struct Machine {
    directory: PathBuf,
}

impl Machine {
    fn of(gatepost: &Gatepost) -> Machine {
        let directory = gatepost
            .private_file("here", "")
            .parent()
            .unwrap()
            .to_owned();
        for name in ["etc", "bin"] {
            fs::create_dir(directory.join(name)).unwrap();
            fs::set_permissions(directory.join(name), Permissions::from_mode(0o755)).unwrap();
        }
        gatepost.private_file("etc/database-url", &gatepost.database.url);
        let mut settings = String::from("GATEPOST_DATABASE_URL_FILE=/etc/gatepost/database-url\n");
        for (name, value) in gatepost.command().get_envs() {
            let name = name.to_str().unwrap();
            if name.starts_with("GATEPOST_") && name != "GATEPOST_DATABASE_URL" {
                settings.push_str(&format!("{name}='{}'\n", value.unwrap().to_str().unwrap()));
            }
        }
        gatepost.private_file("etc/env", &settings);
        let here = std::env::current_dir().unwrap();
        let sudo = format!(
            "#!/bin/sh\nif [ \"$1\" = -u ]; then shift 4; exec psql '{}' \"$@\"; fi\n\
             exec {}/tests/with-installation {}/etc \"$@\"\n",
            gatepost.database.url,
            here.display(),
            directory.display()
        );
        fs::write(directory.join("bin/sudo"), sudo).unwrap();
        fs::set_permissions(directory.join("bin/sudo"), Permissions::from_mode(0o755)).unwrap();
        symlink(
            env!("CARGO_BIN_EXE_gatepost"),
            directory.join("bin/gatepost"),
        )
        .unwrap();
        Machine { directory }
    }

    /// Runs a block; what it printed.
    fn type_in(&self, block: &str) -> String {
        let mut shell = Command::new("bash");
        shell
            .args(["-euo", "pipefail", "-c", block])
            .current_dir(&self.directory)
            .env_clear();
        let bin = self.directory.join("bin");
        run(
            shell.env(
                "PATH",
                format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", bin.display()),
            ),
            "",
        )
    }
}

/// The lines of `audit list --follow --json` so far, until one with that event.
fn followed(gatepost: &Gatepost, until: &str, file: &Path) {
    let mut command = gatepost.command();
    let mut child = command
        .args(["audit", "list", "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = String::new();
    for line in BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
    {
        lines.push_str(&line);
        lines.push('\n');
        if line.contains(&format!("\"event\":\"{until}\"")) {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(file, lines).unwrap();
}

fn users(gatepost: &Gatepost) -> Vec<Value> {
    serde_json::from_str(&gatepost.run_well(&["user", "list", "--json"], "")).unwrap()
}

#[test]
fn what_changed_since_a_backup_is_named_and_what_was_then_is_ended_by_the_commands_of_the_page() {
    let mut registered = document();
    let chloe = json!({"username": "chloe", "password": "quite another password"});
    registered["users"].as_array_mut().unwrap().push(chloe);
    // Sign-up links want a mail server; none is asked.
    let mail = [
        ("GATEPOST_SMTP_URL", "smtp://localhost:9"),
        ("GATEPOST_MAIL_FROM", "login@example.com"),
    ];
    let before = Gatepost::start_with(&registered, &mail);
    add_app(&mut signed_in(&before), 0);
    let made = ["signup", "make", "--uses", "2", "--for", "1d", "--json"];
    let made: Value = serde_json::from_str(&before.run_well(&made, "")).unwrap();
    let copy = restored(&before.database);
    // `--since` goes by whole seconds.
    sleep(Duration::from_millis(1_100));
    let now =
        "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')";
    let time: String = before.database.value(now, &[]);
    before.run_well(&["user", "factors", "alice", "--remove-all", "--yes"], "");
    before.run_well(&["user", "disable", "bob"], "");
    let link = made["id"].as_str().unwrap();
    before.run_well(&["signup", "end", link], "");
    before.run_well(
        &["user", "password", "bob"],
        "a password that nobody had learned\n",
    );

    let after = Gatepost::unprepared(
        copy,
        &[mail[0], mail[1], ("GATEPOST_BASE_URL", &before.base_url)],
    );
    let machine = Machine::of(&after);
    after.private_file("before", &before.database.url);
    followed(
        &before,
        "password_changed",
        &machine.directory.join("audit.jsonl"),
    );
    let [taken, by_copy, by_lines, for_each, without_copy]: [String; 5] =
        blocks().try_into().unwrap();

    let all = users(&after);
    let sub = |name: &str| {
        all.iter().find(|user| user["username"] == name).unwrap()["sub"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let own_file = machine.directory.join("before").display().to_string();
    let ask_copy = |block: &str| {
        assert!(block.contains("2027-01-31T03:00:00Z") && block.contains("/root/before"));
        let block = block.replace("2027-01-31T03:00:00Z", &time);
        machine.type_in(&block.replace("/root/before", &own_file))
    };
    let listed = ask_copy(&taken);
    listed.assert_says("user_changed");
    assert!(listed.contains(&sub("bob")), "{listed}");
    listed.assert_says("sign_up_link_ended");
    assert!(listed.contains(link), "{listed}");
    let open = machine.type_in("sudo gatepost signup list");
    assert!(open.contains(link), "it works again: {open}");
    let found = ask_copy(&by_copy);
    let lines = machine.type_in(&by_lines);
    for told in [&found, &lines] {
        let names = |name: &str, event: &str| {
            told.lines()
                .any(|line| line.contains(&sub(name)) && line.contains(event))
        };
        assert!(names("alice", "factor_removed"), "{told}");
        assert!(names("bob", "password_changed"), "{told}");
        assert!(!told.contains(&sub("chloe")), "{told}");
    }
    assert!(!found.contains("factor_added"), "that was before: {found}");
    let who = machine.type_in(&format!("sudo gatepost user list {}", sub("alice")));
    assert!(who.contains("alice") && !who.contains("bob"), "{who}");

    assert_eq!(machine.type_in(&without_copy), "alice\n");
    let hash = "SELECT password_hash FROM users WHERE username = 'alice'";
    let of_alice = || after.database.value::<String>(hash, &[]);
    let hash_of_then = of_alice();
    let printed = machine.type_in(&for_each);
    printed.assert_says(&format!("{}/account/link?l=", before.base_url));
    assert_ne!(of_alice(), hash_of_then, "the password of then is over");
    assert_eq!(machine.type_in(&without_copy), "", "and so is her app");
}
