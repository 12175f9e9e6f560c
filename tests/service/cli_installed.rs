//! Commands that are told nothing work on the installation of this machine: on the settings in
//! `/etc/gatepost/env`. Each of these tests has a file of that name of its own, which nothing else
//! sees (`tests/with-installation`).

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli_support::{Answer, Installation, answer};
use crate::support::claims::Says;
use crate::support::http::{Connection, free_port};
use crate::support::postgres::ISSUER;
use crate::support::waiting::{SOON, await_that};

const FILE: &str = "/etc/gatepost/env";
/// What a command says that has no settings.
const NO_SETTINGS: &str = "GATEPOST_BASE_URL is required";
const REFUSED: &str = "/etc/gatepost/env must belong to root";
const UNREAD: &str = "cannot read /etc/gatepost/env: run this with sudo";

/// An installation as the set-up makes it.
struct Machine {
    installation: Installation,
    /// What lies at `/etc/gatepost`.
    directory: PathBuf,
    file: PathBuf,
}

impl Machine {
    fn set_up(further: &str) -> Machine {
        let installation = Installation::migrated();
        let directory = installation.directory.join("etc");
        fs::create_dir(&directory).unwrap();
        mode(&directory, 0o700);
        let secret = installation.directory.join("secret");
        let settings = format!(
            "GATEPOST_DATABASE_URL='{}'\nGATEPOST_BASE_URL={ISSUER}\nGATEPOST_SECRET_FILE={}\n{further}\n",
            installation.database.url,
            secret.display()
        );
        let file = installation.write_private("etc/env", &settings);
        Machine {
            installation,
            directory,
            file,
        }
    }

    /// `gatepost` with nothing in its environment.
    fn command(&self, arguments: &[&str]) -> Command {
        self.command_by(&[], arguments)
    }

    /// The same, started by another program.
    fn command_by(&self, starter: &[&str], arguments: &[&str]) -> Command {
        let mut command = Command::new("tests/with-installation");
        command
            .arg(&self.directory)
            .args(starter)
            .arg(env!("CARGO_BIN_EXE_gatepost"))
            .args(arguments);
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    fn run(&self, arguments: &[&str]) -> Answer {
        answer(self.command(arguments), "")
    }

    /// As somebody who may not read everything: without root's capabilities.
    fn run_without_rights(&self) -> Answer {
        let starter = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
        answer(self.command_by(&starter, &["user", "list"]), "")
    }

    fn assert_refused(&self, case: &str) {
        let answer = self.run(&["user", "list"]);
        assert!(answer.code == 78, "{case}: {answer:?}");
        answer.stderr.assert_says_for(case, REFUSED);
        assert!(!answer.stderr.contains(NO_SETTINGS), "{case}: {answer:?}");
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_command_that_is_told_nothing_works_on_what_is_installed() {
    let machine = Machine::set_up("");
    machine.installation.line("user add alice --no-password");
    let listed = machine.run(&["user", "list"]);
    assert!(listed.code == 0, "{listed:?}");
    listed.stdout.assert_says("alice");
    // A flag lies over it, as over any file.
    let elsewhere = machine.run(&["user", "list", "--base-url", "https://elsewhere.example"]);
    elsewhere.assert_refused(78, "https://elsewhere.example");
}

#[test]
fn one_that_is_told_anything_takes_nothing_from_it() {
    let machine = Machine::set_up("");
    let mut command = machine.command(&["user", "list"]);
    command.env("GATEPOST_LOG", "info");
    let by_variable = answer(command, "");
    let other = machine
        .installation
        .write_private("other.env", "GATEPOST_LOG=info\n");
    let by_file = machine.run(&["user", "list", "--env-file", other.to_str().unwrap()]);
    for told in [&by_variable, &by_file] {
        told.assert_refused(78, NO_SETTINGS);
    }
    assert!(!by_file.stderr.contains(FILE), "{by_file:?}");
    let why = "/etc/gatepost/env was not read, because GATEPOST_LOG is set: unset it";
    assert!(by_variable.stderr.contains(why), "{by_variable:?}");
}

#[test]
fn one_that_is_empty_or_no_text_is_named() {
    let machine = Machine::set_up("");
    let empty = "/etc/gatepost/env is the file that was read, and does not set what is required";
    let unreadable = "/etc/gatepost/env cannot be read: it is not text in UTF-8";
    for (bytes, why) in [(&b""[..], empty), (b"GATEPOST_LOG=\xff\n", unreadable)] {
        fs::write(&machine.file, bytes).unwrap();
        machine.run(&["user", "list"]).assert_refused(78, why);
    }
}

#[test]
fn where_it_is_absent_the_settings_that_are_missing_are_named_and_the_file_too() {
    let machine = Machine::set_up("");
    fs::remove_file(&machine.file).unwrap();
    let answer = machine.run(&["user", "list"]);
    answer.assert_refused(78, NO_SETTINGS);
    answer.stderr.assert_says("/etc/gatepost/env is not there");
}

#[test]
fn one_that_others_than_root_could_write_is_refused() {
    let machine = Machine::set_up("");
    for (path, sound, open) in [
        (&machine.file, 0o600, [0o620, 0o602]),
        (&machine.directory, 0o700, [0o770, 0o1777]),
    ] {
        for bits in open {
            mode(path, bits);
            machine.assert_refused(&format!("{path:?} with mode {bits:o}"));
        }
        mode(path, sound);
    }
    // In the namespace of another user than root only what is theirs is root's there, and they can
    // give nothing away.
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        for path in [&machine.file, &machine.directory] {
            chown(path, Some(65_534), None).unwrap();
            machine.assert_refused(&format!("{path:?} of another owner"));
            chown(path, Some(0), None).unwrap();
        }
    }
    assert_eq!(machine.run(&["user", "list"]).code, 0);
    mode(&machine.file, 0o644);
    // All may read it, none may write.
    assert_eq!(machine.run(&["user", "list"]).code, 0);
    let elsewhere = machine.installation.directory.join("elsewhere");
    fs::rename(&machine.file, &elsewhere).unwrap();
    symlink(&elsewhere, &machine.file).unwrap();
    machine.assert_refused("a link");
}

#[test]
fn who_may_not_read_it_is_told_to_use_sudo() {
    let machine = Machine::set_up("");
    for path in [&machine.file, &machine.directory] {
        mode(path, 0o000);
        let answer = machine.run_without_rights();
        assert!(answer.code == 78, "{path:?}: {answer:?}");
        answer.stderr.assert_says_for(path.display(), UNREAD);
        mode(path, 0o700);
    }
    assert_eq!(machine.run_without_rights().code, 0);
}

#[test]
fn commands_that_need_no_settings_do_not_look_at_it() {
    let machine = Machine::set_up("GATEPOST_NONSENSE=1");
    machine
        .run(&["user", "list"])
        .stderr
        .assert_says("GATEPOST_NONSENSE");
    assert_eq!(machine.run(&["secret"]).code, 0);
    assert_eq!(machine.run(&["explain", "GP1105"]).code, 0);
    let realm = machine.installation.write_private(
        "realm.json",
        r#"{"realm": "shop", "users": [], "clients": []}"#,
    );
    assert_eq!(
        machine
            .run(&["import", "keycloak", realm.to_str().unwrap()])
            .code,
        0
    );
    let healthy = machine.run(&["healthcheck"]);
    assert!(healthy.code != 78, "{healthy:?}");
    assert!(!healthy.stderr.contains("GATEPOST_NONSENSE"), "{healthy:?}");
}

#[test]
fn the_server_and_each_of_its_processes_read_it() {
    let port = free_port();
    let machine = Machine::set_up(&format!(
        "GATEPOST_LISTEN=127.0.0.1:{port}\nGATEPOST_ADMIN_LISTEN="
    ));
    let mut supervisor = machine
        .command(&["serve"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    await_that("it serves", SOON, || {
        Connection::open(port).is_ok_and(|mut open| {
            open.try_send("GET", "/.well-known/openid-configuration", &[], b"")
                .is_ok_and(|answer| answer.status == 200)
        })
    });
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
}

/// systemd 252 gives a sandboxed unit's credentials to `ExecStartPre=` and `ExecStart=` alone: to
/// what else the unit runs their directory is closed.
#[test]
fn a_credential_that_cannot_be_read_is_named_with_the_cause() {
    let machine = Machine::set_up("");
    let credentials = machine.installation.directory.join("credentials");
    fs::create_dir(&credentials).unwrap();
    mode(&credentials, 0o000);
    let starter = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
    let mut command = machine.command_by(&starter, &["user", "list"]);
    command
        .env("GATEPOST_BASE_URL", ISSUER)
        .env("CREDENTIALS_DIRECTORY", &credentials);
    let told = answer(command, "");
    mode(&credentials, 0o700);
    let file = credentials.join("gatepost-database-url");
    told.assert_refused(78, file.to_str().unwrap());
    told.stderr.assert_says("Permission denied");
    told.stderr.assert_says_not("is required");
}
