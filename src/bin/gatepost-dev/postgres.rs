//! The private Postgres: found, initialised, started without a TCP port, and stopped with the
//! command. Also after a crash: what an earlier run left running is stopped first.

mod cluster;
mod programs;

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use cluster::Cluster;
use postgres::NoTls;
use programs::Programs;

use super::project::{Project, trouble_with};
use super::{Trouble, say};

const START_PATIENCE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The database role; the socket lies in a directory that only its owner and we can enter, so it
/// needs no password.
const ROLE: &str = "gatepost";

/// Dropping it stops it.
#[derive(Debug)]
pub(super) struct PrivatePostgres {
    cluster: Cluster,
    programs: Programs,
    server: Child,
    database: String,
}

impl PrivatePostgres {
    pub(super) fn start(project: &Project) -> Result<PrivatePostgres, Trouble> {
        let cluster = Cluster::of(project)?;
        let programs = Programs::find(cluster.major_version().as_deref())?;
        cluster.stop_left_over(&programs)?;
        if cluster.major_version().is_none() {
            say(&format!(
                "Making a private Postgres in {}.",
                cluster.home.display()
            ));
            cluster.initialise(&programs)?;
        }
        let server = spawn(&cluster, &programs)?;
        let mut postgres = PrivatePostgres {
            cluster,
            programs,
            server,
            database: String::from("postgres"),
        };
        postgres.wait_until_ready()?;
        Ok(postgres)
    }

    /// Makes the database unless it exists, and directs [`PrivatePostgres::connection_string`] to
    /// it. `name` must be plain lower-case letters, digits and underscores.
    pub(super) fn ensure_database(&mut self, name: &str) -> Result<(), Trouble> {
        let mut client =
            connect(&self.connection_string()).map_err(|error| failed("connect", &error))?;
        let found = client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&name]);
        if found
            .map_err(|error| failed("look for the database", &error))?
            .is_none()
        {
            client
                .batch_execute(&format!("CREATE DATABASE {name}"))
                .map_err(|error| failed("make a database", &error))?;
        }
        self.database = String::from(name);
        Ok(())
    }

    /// Key/value form of the `postgres` crate: a Unix socket, no password.
    pub(super) fn connection_string(&self) -> String {
        connection_string(&self.cluster.socket_directory(), &self.database)
    }

    /// An error when the server has ended by itself.
    pub(super) fn still_running(&mut self) -> Result<(), Trouble> {
        match self.server.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(_)) | Err(_) => Err(self
                .cluster
                .told_by_log("the private Postgres ended by itself")),
        }
    }

    fn wait_until_ready(&mut self) -> Result<(), Trouble> {
        let deadline = Instant::now() + START_PATIENCE;
        while connect(&self.connection_string()).is_err() {
            self.still_running()?;
            if Instant::now() > deadline {
                return Err(self
                    .cluster
                    .told_by_log("the private Postgres did not get ready"));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        for mode in ["fast", "immediate"] {
            if self.cluster.stop(&self.programs, mode).is_ok() {
                break;
            }
        }
        let _ = self.server.wait();
    }
}

/// Starts the server in a process group of its own: Ctrl-C reaches us alone, so that the provider
/// can finish first.
fn spawn(cluster: &Cluster, programs: &Programs) -> Result<Child, Trouble> {
    let log = cluster.log_file();
    let output = File::create(&log).map_err(|error| trouble_with(&log, &error))?;
    let mut command = cluster.run_as.command(&programs.path("postgres"));
    command
        .arg("-D")
        .arg(cluster.data_directory())
        .arg("-k")
        .arg(cluster.socket_directory())
        .args([
            "-c",
            "listen_addresses=",
            "-c",
            "unix_socket_permissions=0700",
        ])
        .current_dir(&cluster.home)
        .stdout(Stdio::null())
        .stderr(output)
        .process_group(0);
    command
        .spawn()
        .map_err(|error| Trouble::new(format!("Postgres could not be started: {error}")))
}

fn connection_string(socket_directory: &Path, database: &str) -> String {
    let host = socket_directory
        .display()
        .to_string()
        .replace('\\', "\\\\")
        .replace('\'', "\\'");
    format!("host='{host}' user={ROLE} dbname={database}")
}

fn connect(connection_string: &str) -> Result<postgres::Client, postgres::Error> {
    postgres::Client::connect(connection_string, NoTls)
}

fn failed(what: &str, error: &postgres::Error) -> Trouble {
    Trouble::new(format!("the private Postgres refused to {what}: {error}"))
}

fn complete(mut command: Command, what: &str) -> Result<(), Trouble> {
    let output: Output = command
        .output()
        .map_err(|error| Trouble::new(format!("{what} could not be started: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Trouble::new(format!("{what} failed:\n{}", said.trim_end())))
}

fn tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines
        .iter()
        .skip(lines.len().saturating_sub(10))
        .copied()
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::project::tests::Scratch;
    use super::*;

    #[test]
    fn a_private_postgres_starts_keeps_its_data_and_stops() {
        let scratch = Scratch::new("postgres");
        let project = scratch.project();
        let mut postgres = PrivatePostgres::start(&project).unwrap();
        postgres.ensure_database("gatepost_8080").unwrap();
        let connection_string = postgres.connection_string();
        let mut client = connect(&connection_string).unwrap();
        client
            .batch_execute("CREATE TABLE kept (word text); INSERT INTO kept VALUES ('here')")
            .unwrap();
        let listening: String = client
            .query_one("SHOW listen_addresses", &[])
            .unwrap()
            .get(0);
        assert_eq!(listening, "");
        drop(client);
        drop(postgres);
        assert!(connect(&connection_string).is_err(), "it went on running");

        let mut again = PrivatePostgres::start(&project).unwrap();
        again.ensure_database("gatepost_8080").unwrap();
        let word: String = connect(&again.connection_string())
            .unwrap()
            .query_one("SELECT word FROM kept", &[])
            .unwrap()
            .get(0);
        assert_eq!(word, "here");
    }

    #[test]
    fn a_project_that_only_its_owner_can_enter_is_served_too() {
        let scratch = Scratch::new("closed");
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o700)).unwrap();
        let project = scratch.project();
        let postgres = PrivatePostgres::start(&project).unwrap();
        let home = postgres.cluster.home.clone();
        // For root Postgres runs as somebody else, who cannot come here.
        assert_eq!(home == project.directory, project.owner != 0);
        drop(postgres);
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn what_a_killed_command_left_running_is_replaced() {
        let scratch = Scratch::new("left-over");
        let project = scratch.project();
        let mut left_over = PrivatePostgres::start(&project).unwrap();
        let first_pid = left_over.server.id();
        let mut second = PrivatePostgres::start(&project).unwrap();
        assert_ne!(second.server.id(), first_pid);
        assert!(left_over.server.wait().unwrap().success());
        assert!(second.still_running().is_ok());
        assert!(left_over.still_running().is_err());
        // Dropping the first one would stop the second: both go by the same cluster.
        std::mem::forget(left_over);
    }

    #[test]
    fn a_pid_file_of_a_dead_server_is_no_obstacle() {
        let scratch = Scratch::new("stale");
        let project = scratch.project();
        drop(PrivatePostgres::start(&project).unwrap());
        let cluster = Cluster::of(&project).unwrap();
        // After a reboot the number may belong to anybody: here it is this test itself.
        let stale = format!(
            "{}\n{}\n",
            std::process::id(),
            cluster.data_directory().display()
        );
        fs::write(cluster.data_directory().join("postmaster.pid"), stale).unwrap();
        let mut postgres = PrivatePostgres::start(&project).unwrap();
        assert!(postgres.still_running().is_ok());
    }

    #[test]
    fn quotes_in_the_path_do_not_end_the_host() {
        let text = connection_string(Path::new("/tmp/it's here"), "gatepost_1");
        let parsed: postgres::Config = text.parse().unwrap();
        assert_eq!(
            parsed.get_hosts(),
            [postgres::config::Host::Unix("/tmp/it's here".into())]
        );
        assert_eq!(parsed.get_dbname(), Some("gatepost_1"));
    }
}
