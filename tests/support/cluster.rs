//! A Postgres of a test's own that commits honestly, and what befalls it: killed, frozen,
//! restarted.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};

use super::gatepost::children_of;
use super::http::free_port;
use super::waiting::await_that;

/// One running cluster, removed when dropped or when this process is gone, however it goes.
pub struct Cluster {
    pub url: String,
    data: PathBuf,
    binaries: PathBuf,
    keeper: Child,
    leash: Option<ChildStdin>,
}

impl Cluster {
    /// Makes and starts one as `tests/with-postgres` does, with commits that wait for the disk.
    pub fn start() -> Cluster {
        let mut keeper = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/with-postgres"));
        keeper.args(["sh", "-c", "echo \"$TEST_DATABASE_URL\"; read gone"]);
        keeper
            .env_remove("TEST_DATABASE_URL")
            .env("GATEPOST_BENCH_FSYNC", "on");
        let mut keeper = keeper
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let leash = keeper.stdin.take();
        let mut url = String::new();
        BufReader::new(keeper.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        let url = url.trim_end().to_owned();
        let mut client = Client::connect(&url, NoTls).unwrap();
        let mut shown = |setting: &str| {
            client
                .query_one(&format!("SHOW {setting}"), &[])
                .unwrap()
                .get::<_, String>(0)
        };
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            assert_eq!(shown(setting), "on", "{setting}");
        }
        let data = PathBuf::from(shown("data_directory"));
        let program = fs::read_link(format!("/proc/{}/exe", postmaster_of(&data))).unwrap();
        Cluster {
            url,
            data,
            binaries: program.parent().unwrap().to_owned(),
            keeper,
            leash,
        }
    }

    /// Kills the postmaster and all its children at once.
    pub fn kill(&self) {
        let postmaster = postmaster_of(&self.data);
        // Stopped first, it makes no child that the list does not name.
        signal("STOP", &[postmaster]);
        let all = self.processes();
        signal("KILL", &all);
        let deadline = Instant::now() + Duration::from_secs(5);
        while all.iter().any(|process| is_alive(*process)) {
            assert!(Instant::now() < deadline, "still there after kill -9");
            sleep(Duration::from_millis(5));
        }
        // Whoever inherits orphans may be slow to bury them, and to Postgres a zombie still holds
        // its lock files.
        let sockets = fs::read_dir(self.data.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let locks = sockets.filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "lock")
        });
        locks
            .chain([self.data.join("postmaster.pid")])
            .for_each(|lock| fs::remove_file(lock).unwrap());
    }

    /// Starts it with the settings it had, after an orderly stop when it runs; returns when it
    /// takes connections.
    pub fn restart(&self) {
        let owner = fs::metadata(&self.data).unwrap();
        let mut control = Command::new(self.binaries.join("pg_ctl"));
        control
            .arg("-D")
            .arg(&self.data)
            .arg("-l")
            .arg(self.data.join("log"))
            .args(["-m", "fast", "-w", "-s", "restart"]);
        control.uid(owner.uid()).gid(owner.gid()).current_dir("/");
        let status = control
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(
            status.success(),
            "{}",
            fs::read_to_string(self.data.join("log")).unwrap_or_default()
        );
    }

    /// Restarts it with TLS, as the server of a certificate.
    pub fn restart_with(&self, certificate: &Path, key: &Path) {
        let owner = fs::metadata(&self.data).unwrap();
        for (file, name) in [(certificate, "server.crt"), (key, "server.key")] {
            let own = self.data.join(name);
            fs::copy(file, &own).unwrap();
            fs::set_permissions(&own, Permissions::from_mode(0o600)).unwrap();
            chown(&own, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
        let mut client = Client::connect(&self.url, NoTls).unwrap();
        client.batch_execute("ALTER SYSTEM SET ssl = on").unwrap();
        drop(client);
        self.restart();
    }

    /// Stops all its processes where they are, until the guard is dropped.
    #[must_use]
    pub fn freeze(&self) -> Frozen {
        signal("STOP", &[postmaster_of(&self.data)]);
        let all: Vec<String> = self.processes().iter().map(u32::to_string).collect();
        // The shell thaws them also when this process is gone.
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "trap '' INT TERM; kill -STOP \"$@\"; echo frozen; read gone; kill -CONT \"$@\"",
            "sh",
        ]);
        let mut shell = shell
            .args(&all)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(shell.stdout.take().unwrap())
            .read_line(&mut String::new())
            .unwrap();
        let leash = shell.stdin.take();
        Frozen { shell, leash }
    }

    /// Has every commit wait for a standby that is not there, or for none; returns once that is so.
    pub fn await_a_standby(&self, away: bool) {
        let name = if away { "away" } else { "" };
        let mut client = Client::connect(&self.url, NoTls).unwrap();
        client
            .batch_execute(&format!(
                "ALTER SYSTEM SET synchronous_standby_names = '{name}'"
            ))
            .unwrap();
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        await_that(
            "commits wait as they shall",
            Duration::from_secs(20),
            || {
                let mut committing = Client::connect(&self.url, NoTls).unwrap();
                let cancel = committing.cancel_token();
                let commit = "SELECT pg_logical_emit_message(true, 'test', '')";
                let commit = std::thread::spawn(move || committing.batch_execute(commit));
                sleep(Duration::from_millis(300));
                let waits = !commit.is_finished();
                cancel.cancel_query(NoTls).unwrap();
                drop(commit.join());
                waits == away
            },
        );
    }

    /// A second one that follows it, in the same directory; started.
    pub fn standby(&self) -> Standby {
        let data = self.data.with_file_name("standby");
        let port = free_port();
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(self.binaries.join(program));
            let owner = fs::metadata(&self.data).unwrap();
            command
                .args(arguments)
                .uid(owner.uid())
                .gid(owner.gid())
                .current_dir("/");
            let status = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert!(status.success(), "{program}");
        };
        let data_text = data.to_str().unwrap();
        run(
            "pg_basebackup",
            &[
                "-d",
                &self.url,
                "-D",
                data_text,
                "-R",
                "-X",
                "stream",
                "-c",
                "fast",
                "--no-sync",
            ],
        );
        let sockets = data.parent().unwrap().display();
        let settings =
            format!("-c listen_addresses=127.0.0.1 -c max_connections=500 -p {port} -k {sockets}");
        let settings = format!("{settings} -c max_locks_per_transaction=512");
        let log = format!("{data_text}/log");
        run(
            "pg_ctl",
            &[
                "-D", data_text, "-s", "-w", "-l", &log, "-o", &settings, "start",
            ],
        );
        Standby { port, data }
    }

    /// The directory of its Unix socket, and its port.
    pub fn socket(&self) -> (PathBuf, u16) {
        let config: postgres::Config = self.url.parse().unwrap();
        (
            self.data.parent().unwrap().to_owned(),
            config.get_ports()[0],
        )
    }

    /// Ends every connection but the one that asks for it.
    pub fn terminate_connections(&self) {
        let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        Client::connect(&self.url, NoTls)
            .unwrap()
            .batch_execute(terminate)
            .unwrap();
    }

    fn processes(&self) -> Vec<u32> {
        let postmaster = postmaster_of(&self.data);
        [vec![postmaster], children_of(postmaster)].concat()
    }
}

/// A standby until it is promoted; ends when dropped.
pub struct Standby {
    pub port: u16,
    data: PathBuf,
}

impl Standby {
    /// Makes it take writes.
    pub fn promote(&self) {
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", self.port);
        let promoted = Client::connect(&url, NoTls)
            .unwrap()
            .query_one("SELECT pg_promote()", &[])
            .unwrap();
        assert!(promoted.get::<_, bool>(0));
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        // Immediate shutdown.
        signal("QUIT", &[postmaster_of(&self.data)]);
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.data.join("postmaster.pid").exists() && Instant::now() < deadline {
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.leash.take());
        drop(self.keeper.wait());
    }
}

/// A cluster that answers nobody, as long as this lives.
pub struct Frozen {
    shell: Child,
    leash: Option<ChildStdin>,
}

impl Drop for Frozen {
    fn drop(&mut self) {
        drop(self.leash.take());
        drop(self.shell.wait());
    }
}

/// Sends a signal to processes.
pub fn signal(name: &str, processes: &[u32]) {
    let processes: Vec<String> = processes.iter().map(u32::to_string).collect();
    // Some may have ended by themselves.
    let sent = Command::new("sh")
        .args(["-c", "kill -\"$0\" \"$@\" 2>/dev/null", name])
        .args(processes)
        .status();
    sent.unwrap();
}

fn postmaster_of(data: &std::path::Path) -> u32 {
    fs::read_to_string(data.join("postmaster.pid"))
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

fn is_alive(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status
        .lines()
        .any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
}
