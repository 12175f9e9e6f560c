//! The provider is the `gatepost` beside this program, run as an operator runs it: `migrate`,
//! `apply -`, `serve`. So what a newcomer sees is the product, and nothing here is a second way in.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gatepost::config::Source;

use super::listeners::Listening;
use super::postgres::PrivatePostgres;
use super::project::{Project, trouble_with};
use super::{Trouble, is_provided, say};

const PID_FILE: &str = "serve.pid";
const ENV_FILE: &str = "env";

const START_PATIENCE: Duration = Duration::from_secs(60);
/// `serve` drains for up to 10 s.
const STOP_PATIENCE: Duration = Duration::from_secs(12);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Longer: each question stands in the log that the newcomer reads.
const READY_INTERVAL: Duration = Duration::from_millis(400);

#[derive(Debug)]
pub(super) struct Provider {
    binary: PathBuf,
    settings: Vec<(&'static str, OsString)>,
}

impl Provider {
    /// What the environment provides is left as it is.
    pub(super) fn new(
        project: &Project,
        socket: &Listening,
        database: Option<&PrivatePostgres>,
        provided: &Source,
        mail_server: Option<SocketAddr>,
    ) -> Result<Provider, Trouble> {
        let binary = binary()?;
        let mut settings = vec![
            ("GATEPOST_BASE_URL", OsString::from(&socket.base_url)),
            (
                "GATEPOST_LISTEN",
                OsString::from(socket.address.to_string()),
            ),
            // Off: two projects side by side would fight over its port.
            ("GATEPOST_ADMIN_LISTEN", OsString::new()),
        ];
        if let Some(postgres) = database {
            settings.push((
                "GATEPOST_DATABASE_URL",
                OsString::from(postgres.connection_string()),
            ));
        }
        if !is_provided(provided, &["GATEPOST_SECRET_FILE"], "gatepost-secret") {
            settings.push((
                "GATEPOST_SECRET_FILE",
                project.secret_file()?.into_os_string(),
            ));
        }
        for (name, value) in [
            ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8,::1/128"),
            ("GATEPOST_ERROR_DETAILS", "on"),
            ("GATEPOST_ADMIN_ROLE", "office"),
            ("GATEPOST_ADMIN_ROLES", "bookkeeper,storekeeper,planner"),
            ("GATEPOST_PEOPLE_MAY_CHANGE", "name"),
        ] {
            if provided.given(name).is_none() {
                settings.push((name, OsString::from(value)));
            }
        }
        if let Some(address) = mail_server {
            for (name, value) in [
                ("GATEPOST_SMTP_URL", format!("smtp://{address}")),
                ("GATEPOST_MAIL_FROM", String::from("gatepost@example.com")),
            ] {
                settings.push((name, OsString::from(value)));
            }
        }
        Ok(Provider { binary, settings })
    }

    /// How one types it here.
    pub(super) fn typed(&self) -> String {
        let here = std::env::current_dir().and_then(fs::canonicalize).ok();
        let binary = here.and_then(|here| self.binary.strip_prefix(here).ok());
        let binary = binary.unwrap_or(&self.binary);
        binary.display().to_string()
    }

    pub(super) fn migrate(&self) -> Result<(), Trouble> {
        self.complete("migrate", &["migrate"], "")
    }

    pub(super) fn apply(&self, document: &str) -> Result<(), Trouble> {
        self.complete("apply", &["apply", "-"], document)
    }

    /// Starts `serve` on the socket that is bound already: it becomes its standard input, as under
    /// systemd. In a process group of its own: Ctrl-C reaches us alone, and we end it in order.
    pub(super) fn serve(
        &self,
        project: &Project,
        socket: &Listening,
    ) -> Result<ServeProcess, Trouble> {
        let pid_file = project.directory.join(PID_FILE);
        let listener = socket
            .listener
            .try_clone()
            .map_err(|error| cannot_start("serve", &error))?;
        let mut command = self.command(&["serve"]);
        command
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .stdout(Stdio::null())
            .process_group(0);
        let child = command
            .spawn()
            .map_err(|error| cannot_start("serve", &error))?;
        let process = ServeProcess { child, pid_file };
        fs::write(&process.pid_file, process.child.id().to_string())
            .map_err(|error| trouble_with(&process.pid_file, &error))?;
        Ok(process)
    }

    /// So that the other commands work on this database.
    pub(super) fn write_env_file(&self, project: &Project) -> Result<PathBuf, Trouble> {
        let path = project.directory.join(ENV_FILE);
        let lines = self
            .settings
            .iter()
            .map(|(name, value)| format!("{name}={}\n", value.to_string_lossy()));
        let mut file = OpenOptions::new();
        let file = file
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path);
        file.and_then(|mut file| file.write_all(lines.collect::<String>().as_bytes()))
            .map_err(|error| trouble_with(&path, &error))?;
        // Short where the person stands beside it.
        let short = Path::new(".gatepost").join(ENV_FILE);
        Ok(
            if fs::canonicalize(&short).ok() == fs::canonicalize(&path).ok() {
                short
            } else {
                path
            },
        )
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What it printed is shown only when it failed.
    fn complete(&self, name: &str, arguments: &[&str], input: &str) -> Result<(), Trouble> {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| cannot_start(name, &error))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read its input says why in its output.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child
            .wait_with_output()
            .map_err(|error| cannot_start(name, &error))?;
        if output.status.success() {
            return Ok(());
        }
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Err(Trouble::new(format!(
            "`gatepost {name}` failed:\n{}",
            said.trim_end()
        )))
    }
}

/// Dropping it lets it drain, and ends it.
#[derive(Debug)]
pub(super) struct ServeProcess {
    child: Child,
    pid_file: PathBuf,
}

impl ServeProcess {
    /// An error when it has ended by itself; what it had to say stands above, in its log.
    pub(super) fn still_running(&mut self) -> Result<(), Trouble> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Trouble::new(format!(
                "`gatepost serve` ended by itself ({status})"
            ))),
            Err(error) => Err(Trouble::new(format!(
                "`gatepost serve` cannot be watched: {error}"
            ))),
        }
    }

    pub(super) fn wait_until_ready(
        &mut self,
        base_url: &str,
        interrupted: &AtomicBool,
    ) -> Result<(), Trouble> {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(2)))
            .build()
            .new_agent();
        let discovery = format!("{base_url}/.well-known/openid-configuration");
        let deadline = Instant::now() + START_PATIENCE;
        while !interrupted.load(Ordering::Relaxed) {
            thread::sleep(READY_INTERVAL);
            if agent.get(&discovery).call().is_ok() {
                break;
            }
            self.still_running()?;
            if Instant::now() > deadline {
                return Err(Trouble::new("`gatepost serve` did not get ready"));
            }
        }
        Ok(())
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        terminate(self.child.id());
        let deadline = Instant::now() + STOP_PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
            }
            thread::sleep(POLL_INTERVAL);
        }
        let _ = fs::remove_file(&self.pid_file);
    }
}

/// Asks a process to end. The standard library knows only SIGKILL; the shell's `kill` is
/// everywhere.
fn terminate(pid: u32) {
    let _ = Command::new("/bin/sh")
        .args(["-c", "kill -TERM \"$1\"", "sh", &pid.to_string()])
        .status();
}

/// Ends the `serve` of an earlier run that was killed, when the number still belongs to it: it
/// holds the port.
pub(super) fn end_left_over(project: &Project) -> Result<(), Trouble> {
    let binary = binary()?;
    let recorded = fs::read_to_string(project.directory.join(PID_FILE)).unwrap_or_default();
    let Ok(pid) = recorded.trim().parse::<u32>() else {
        return Ok(());
    };
    if !is_serving(pid, &binary) {
        return Ok(());
    }
    say("Stopping the server that an earlier run left behind.");
    terminate(pid);
    let deadline = Instant::now() + STOP_PATIENCE;
    while is_serving(pid, &binary) && Instant::now() < deadline {
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// `gatepost`, where this program lies: cargo builds both into one directory.
fn binary() -> Result<PathBuf, Trouble> {
    let own = std::env::current_exe();
    let own = own.map_err(|error| {
        Trouble::new(format!("this program's own path cannot be read: {error}"))
    })?;
    let binary = own.with_file_name("gatepost");
    let missing = || {
        Trouble::new(format!(
            "{} is missing; build it with `cargo build`",
            binary.display()
        ))
    };
    if binary.is_file() {
        Ok(binary)
    } else {
        Err(missing())
    }
}

fn is_serving(pid: u32, binary: &Path) -> bool {
    let Ok(command_line) = fs::read(format!("/proc/{pid}/cmdline")) else {
        return false;
    };
    // `gatepost serve` becomes this.
    let server = binary.with_file_name("gatepostd");
    let mut words = command_line.split(|byte| *byte == 0);
    words.next() == Some(server.as_os_str().as_encoded_bytes()) && words.next() == Some(b"serve")
}

fn cannot_start(name: &str, error: &io::Error) -> Trouble {
    Trouble::new(format!("`gatepost {name}` could not be started: {error}"))
}
