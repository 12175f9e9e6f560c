//! `gatepost serve` becomes `gatepostd`, which lies beside it: the same process, with what was
//! typed.

use std::env;
use std::io::{Error, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::arguments::Invocation;
use super::output::{CommandResult, Failure};
use gatepost_server::config::cause;
use gatepost_server::serve::started_by;

const SERVER: &str = "gatepostd";

/// Returns only where that fails, with exit code 1: a service manager tries again, and heals the
/// moment in which an upgrade has written one of the two programs.
pub fn run(invocation: &Invocation) -> CommandResult<ExitCode> {
    let mut told = None;
    for program in candidates() {
        let failed = Command::new(&program).args(&invocation.arguments).exec();
        if failed.kind() != ErrorKind::NotFound {
            return Err(unstarted(&program, &failed));
        }
        told.get_or_insert(unstarted(&program, &failed));
    }
    Err(told.unwrap_or_else(|| Failure::refused("this program's own path cannot be told")))
}

/// Beside the path that this program was started by, where after an upgrade the new one lies, and
/// links are as somebody has set them now; else beside its file.
fn candidates() -> Vec<PathBuf> {
    let ours = [started_by(), env::current_exe().ok()];
    let beside = |path: PathBuf| path.with_file_name(SERVER);
    ours.into_iter().flatten().map(beside).collect()
}

/// What `gatepostd` says when it is asked for its version; nothing where none can be started.
pub fn version_beside() -> Option<String> {
    for program in candidates() {
        if let Ok(answer) = Command::new(program).arg("--version").output() {
            return Some(String::from_utf8_lossy(&answer.stdout).trim().to_owned());
        }
    }
    None
}

fn unstarted(program: &Path, error: &Error) -> Failure {
    Failure::Refused(format!(
        "{} cannot be started: {}: install both, gatepost and {SERVER}",
        program.display(),
        cause(error)
    ))
}
