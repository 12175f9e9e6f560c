//! The files of the private Postgres: where they lie, whose they are, and the tools that work on
//! them.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};

use gatepost::protocol::words::identifiers;
use sha2::{Digest, Sha256};

use super::super::project::{Project, let_others_pass, trouble_with};
use super::super::system_user::RunAs;
use super::super::{Trouble, say};
use super::programs::Programs;
use super::{ROLE, complete, tail};

/// A socket's path holds 107 bytes, of which the file's own name takes 15.
const LONGEST_SOCKET_DIRECTORY: usize = 90;

/// With lower-casing beyond ASCII where the system has it; `C` is everywhere.
const LOCALES: [&str; 2] = ["C.UTF-8", "C"];

#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) home: PathBuf,
    pub(super) run_as: RunAs,
}

impl Cluster {
    /// The project's cluster: under `.gatepost/` where Postgres can work there, else in a directory
    /// of the system's temporary space that is named after the project.
    pub(super) fn of(project: &Project) -> Result<Cluster, Trouble> {
        let run_as = RunAs::for_user(project.owner)?;
        let cluster = Cluster {
            home: project.directory.clone(),
            run_as,
        };
        if cluster.is_usable()? {
            return Ok(cluster);
        }
        let home = elsewhere(project)?;
        // Whoever clears up the project finds the rest by it.
        let link = project.directory.join("elsewhere");
        match symlink(&home, &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(trouble_with(&link, &error));
            }
            Ok(()) | Err(_) => {}
        }
        let cluster = Cluster { home, run_as };
        if !cluster.is_usable()? {
            return Err(Trouble::new(format!(
                "Postgres's user cannot work in {}",
                cluster.home.display()
            )));
        }
        if cluster.major_version().is_none() {
            say(&format!(
                "Postgres cannot work in {}: its data goes elsewhere.",
                project.directory.display()
            ));
        }
        Ok(cluster)
    }

    pub(super) fn data_directory(&self) -> PathBuf {
        self.home.join("postgres")
    }

    pub(super) fn socket_directory(&self) -> PathBuf {
        self.home.join("run")
    }

    pub(super) fn log_file(&self) -> PathBuf {
        self.home.join("postgres.log")
    }

    /// `None` when there is no complete cluster yet.
    pub(super) fn major_version(&self) -> Option<String> {
        // initdb writes this file early, and the control file last.
        let data = self.data_directory();
        fs::metadata(data.join("global/pg_control")).ok()?;
        fs::read_to_string(data.join("PG_VERSION"))
            .ok()
            .map(|text| text.trim().to_owned())
    }

    pub(super) fn initialise(&self, programs: &Programs) -> Result<(), Trouble> {
        let data = self.data_directory();
        let mut outcome = Ok(());
        for locale in LOCALES {
            // What an interrupted attempt left behind would be refused.
            match fs::remove_dir_all(&data) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(trouble_with(&data, &error));
                }
                Ok(()) | Err(_) => {}
            }
            self.make_owned_directory(&data)?;
            let mut initdb = self.run_as.command(&programs.path("initdb"));
            // A power cut loses nothing here yet, and waiting for the disk takes seconds.
            initdb
                .arg("-D")
                .arg(&data)
                .args(["-U", ROLE, "-A", "trust", "-E", "UTF8"])
                .arg("--no-sync")
                .arg(format!("--locale={locale}"))
                .current_dir(&self.home);
            outcome = complete(initdb, "initdb");
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// Stops a server that an earlier run of this command left behind, and forgets one that is
    /// gone.
    pub(super) fn stop_left_over(&self, programs: &Programs) -> Result<(), Trouble> {
        let pid_file = self.data_directory().join("postmaster.pid");
        let Ok(text) = fs::read_to_string(&pid_file) else {
            return Ok(());
        };
        if serves(
            text.lines().next().unwrap_or_default(),
            &self.data_directory(),
        ) {
            say("Stopping the Postgres that an earlier run left behind.");
            return self.stop(programs, "fast");
        }
        if !Path::new("/proc/self/cwd").exists() {
            // Without /proc only Postgres itself can tell, and does when it starts.
            return Ok(());
        }
        fs::remove_file(&pid_file).map_err(|error| trouble_with(&pid_file, &error))
    }

    /// Waits for its end. Modes are those of `pg_ctl`.
    pub(super) fn stop(&self, programs: &Programs, mode: &str) -> Result<(), Trouble> {
        let mut pg_ctl = self.run_as.command(&programs.path("pg_ctl"));
        pg_ctl
            .arg("-D")
            .arg(self.data_directory())
            .args(["-m", mode, "-w", "-t", "20", "stop"])
            .current_dir(&self.home);
        complete(pg_ctl, "stopping Postgres")
    }

    pub(super) fn told_by_log(&self, what: &str) -> Trouble {
        let log = self.log_file();
        Trouble::new(format!(
            "{what}; the end of {}:\n{}",
            log.display(),
            tail(&log)
        ))
    }

    /// Whether Postgres's user can reach this place and the socket's path is short enough. Makes
    /// the socket's directory.
    fn is_usable(&self) -> Result<bool, Trouble> {
        if self.socket_directory().as_os_str().len() > LONGEST_SOCKET_DIRECTORY {
            return Ok(false);
        }
        match self.run_as {
            RunAs::Ourselves => {}
            RunAs::Another(_) => let_others_pass(&self.home)?,
        }
        if !self.run_as.can_enter(&self.home) {
            return Ok(false);
        }
        self.make_owned_directory(&self.socket_directory())?;
        Ok(true)
    }

    /// Postgres's user owns it and nobody else can enter.
    fn make_owned_directory(&self, path: &Path) -> Result<(), Trouble> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            Err(error) => return Err(trouble_with(path, &error)),
            Ok(()) => {}
        }
        match self.run_as {
            RunAs::Ourselves => Ok(()),
            RunAs::Another(user) => chown(path, Some(user.uid), Some(user.gid))
                .map_err(|error| trouble_with(path, &error)),
        }
    }
}

/// A directory under /var/tmp, which outlives a reboot, that is ours and nobody else's: its name
/// can be guessed, so one that another user made first is refused.
fn elsewhere(project: &Project) -> Result<PathBuf, Trouble> {
    let digest = Sha256::digest(project.directory.as_os_str().as_encoded_bytes());
    let fingerprint: String = identifiers::encode(&digest).chars().take(16).collect();
    let name = project
        .directory
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy();
    let readable: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(24)
        .collect();
    let base = ["/var/tmp", "/tmp"]
        .into_iter()
        .map(Path::new)
        .find(|path| path.is_dir())
        .unwrap_or(Path::new("/tmp"));
    let home = base.join(format!("gatepost-{readable}-{fingerprint}"));
    match DirBuilder::new().mode(0o700).create(&home) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(trouble_with(&home, &error));
        }
        Ok(()) | Err(_) => {}
    }
    let metadata = fs::symlink_metadata(&home).map_err(|error| trouble_with(&home, &error))?;
    if !metadata.is_dir() || metadata.uid() != project.owner {
        return Err(Trouble::new(format!(
            "{} belongs to another user; remove it",
            home.display()
        )));
    }
    Ok(home)
}

/// Whether the process is a Postgres on this data: it works in its data directory. A number alone
/// proves nothing; after a crash or a reboot it may be anybody's.
fn serves(pid: &str, data_directory: &Path) -> bool {
    if pid.is_empty() || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    match (
        fs::read_link(format!("/proc/{pid}/cwd")),
        fs::canonicalize(data_directory),
    ) {
        (Ok(working), Ok(data)) => working == data,
        (Err(_), _) | (_, Err(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::project::tests::Scratch;
    use super::*;

    #[test]
    fn a_path_too_long_for_a_socket_moves_the_data_elsewhere() {
        let scratch = Scratch::new("long");
        let deep = scratch.0.join("a".repeat(60));
        fs::create_dir(&deep).unwrap();
        let project = Project::open_in(&deep).unwrap();
        let cluster = Cluster::of(&project).unwrap();
        assert!(
            !cluster.home.starts_with(&scratch.0),
            "{}",
            cluster.home.display()
        );
        assert_eq!(Cluster::of(&project).unwrap().home, cluster.home);
        assert_eq!(
            fs::read_link(project.directory.join("elsewhere")).unwrap(),
            cluster.home
        );
        fs::remove_dir_all(&cluster.home).unwrap();
    }

    #[test]
    fn a_directory_that_somebody_else_put_there_is_refused() {
        let scratch = Scratch::new("planted");
        let mut project = scratch.project();
        let home = elsewhere(&project).unwrap();
        project.owner += 1;
        let refusal = elsewhere(&project).unwrap_err().to_string();
        fs::remove_dir_all(&home).unwrap();
        assert!(refusal.contains("belongs to another user"), "{refusal}");
    }

    #[test]
    fn a_process_elsewhere_is_not_taken_for_our_postgres() {
        let here = std::env::current_dir().unwrap();
        let this = std::process::id().to_string();
        assert!(serves(&this, &here));
        assert!(!serves(&this, Path::new("/usr")));
        assert!(!serves("1/../self", &here));
        assert!(!serves("", &here));
    }
}
