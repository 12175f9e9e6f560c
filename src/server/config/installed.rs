//! The settings of the installation on this machine, for commands that are told nothing else.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::ConfigError;

const DIRECTORY: &str = "/etc/gatepost";
/// The file that the set-up makes, and the unit reads.
pub const FILE: &str = "/etc/gatepost/env";

/// The file, if it is there. Whoever could change it could have root send secrets to a database of
/// theirs, so it counts only where root alone can.
pub fn find() -> Result<Option<&'static Path>, ConfigError> {
    match is_roots_alone() {
        Ok(false) => Err(ConfigError::new(
            FILE,
            "must belong to root, as must its directory, nobody else may write to either, and \
             neither may be a link: mend that, or name a file with --env-file",
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // What cannot be looked at cannot be read either, and whoever reads it says so.
        Ok(true) | Err(_) => Ok(Some(Path::new(FILE))),
    }
}

fn is_roots_alone() -> io::Result<bool> {
    for path in [DIRECTORY, FILE] {
        let found = fs::symlink_metadata(path)?;
        let is_open = found.mode() & 0o022 != 0;
        if found.is_symlink() || found.uid() != 0 || is_open {
            return Ok(false);
        }
    }
    Ok(true)
}
