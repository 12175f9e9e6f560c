//! Runs the real binary against a database of its own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::support::claims::Says;
use crate::support::gatepost::MASTER_SECRET;
use crate::support::postgres::{ISSUER, TestDatabase};
use crate::support::record;

/// An installation and a directory for its files.
pub struct Installation {
    pub database: TestDatabase,
    pub directory: PathBuf,
}

/// What a command answered.
#[derive(Debug)]
pub struct Answer {
    /// The command line, and the beginning of its input.
    pub asked: String,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// It ended with this code, and says why.
    #[track_caller]
    pub fn assert_refused(&self, code: i32, words: &str) {
        assert_eq!(self.code, code, "{}: {self:?}", self.asked);
        self.stderr.assert_says_for(&self.asked, words);
    }
}

impl Installation {
    /// A database without anything in it, and a master secret.
    pub fn empty() -> Installation {
        let installation = Installation::over(TestDatabase::empty());
        let secret = installation.run(&["secret"]);
        installation.write_private("secret", &secret.stdout);
        installation
    }

    /// A database as `gatepost migrate` leaves it, and its master secret.
    pub fn migrated() -> Installation {
        let installation = Installation::over(TestDatabase::ready(ISSUER));
        installation.write_private("secret", &STANDARD.encode(MASTER_SECRET));
        installation
    }

    fn over(database: TestDatabase) -> Installation {
        let directory = std::env::temp_dir().join(format!("gatepost-cli-{}", database.schema));
        fs::create_dir(&directory).unwrap();
        Installation {
            database,
            directory,
        }
    }

    pub fn write_private(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(name);
        let mut file = fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
        path
    }

    /// The binary with the settings of this installation and nothing else of ours.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatepost"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GATEPOST_") {
                command.env_remove(name);
            }
        }
        command
            .args(arguments)
            .env("GATEPOST_DATABASE_URL", &self.database.url)
            .env("GATEPOST_BASE_URL", ISSUER)
            .env("GATEPOST_SECRET_FILE", self.directory.join("secret"))
            .env("GATEPOST_ARGON2_MEMORY_KIB", "7168")
            .env("GATEPOST_ARGON2_PASSES", "1");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Answer {
        self.run_with(arguments, "")
    }

    pub fn run_with(&self, arguments: &[&str], input: &str) -> Answer {
        answer(self.command(arguments), input)
    }

    /// Runs what must succeed; answers its standard output.
    pub fn done(&self, arguments: &[&str], input: &str) -> String {
        let answer = self.run_with(arguments, input);
        assert_eq!(answer.code, 0, "{arguments:?}: {answer:?}");
        answer.stdout
    }

    /// The same of a command that is written as a line: its words have no spaces.
    pub fn line(&self, line: &str) -> String {
        self.done(&line.split(' ').collect::<Vec<_>>(), "")
    }

    /// Runs such a command, which may fail.
    pub fn run_line(&self, line: &str) -> Answer {
        self.run(&line.split(' ').collect::<Vec<_>>())
    }

    pub fn apply(&self, document: &Value) -> Answer {
        self.run_with(&["apply", "-"], &document.to_string())
    }

    /// A list as JSON.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        serde_json::from_str(&self.done(&[kind, "list", "--json"], "")).unwrap()
    }

    pub fn registry_version(&self) -> i64 {
        self.database
            .value("SELECT registry_version FROM installation", &[])
    }

    /// Everything in the database, as text.
    pub fn dump(&self) -> String {
        let mut client = self.database.client();
        let tables = "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                      WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p')";
        let tables: Vec<String> = client
            .query(tables, &[])
            .unwrap()
            .iter()
            .map(|row| row.get(0))
            .collect();
        let mut dump = String::new();
        for table in tables {
            for row in client
                .query(&format!("SELECT t::text FROM {table} AS t"), &[])
                .unwrap()
            {
                dump.push_str(&row.get::<_, String>(0));
            }
        }
        dump
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Runs a command with that standard input.
pub fn answer(mut command: Command, input: &str) -> Answer {
    let asked = format!("gatepost {:?}", command.get_args().collect::<Vec<_>>());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A command that reads no input closes it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let answer = Answer {
        asked: format!("{asked} < {input:.200}"),
        code: status.code().expect("ended by itself"),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    };
    record::write(
        &asked,
        &format!("{}\n{}\n{}", answer.code, answer.stdout, answer.stderr),
    );
    answer
}
