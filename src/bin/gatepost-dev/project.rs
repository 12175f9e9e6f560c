//! `.gatepost/` in the current directory: what `gatepost-dev` keeps between runs (the master
//! secret, the private Postgres) and how two of them in one project are kept apart.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Trouble;

const DIRECTORY: &str = ".gatepost";

const LOCK: &str = "lock";

#[derive(Debug)]
pub(super) struct Project {
    pub(super) directory: PathBuf,
    pub(super) owner: u32,
    /// Listening as long as this process lives, whichever way it ends; nobody ever speaks through
    /// it.
    _lock: UnixListener,
}

impl Project {
    pub(super) fn open() -> Result<Project, Trouble> {
        let here = std::env::current_dir().map_err(|error| {
            Trouble::new(format!("the current directory cannot be read: {error}"))
        })?;
        Project::open_in(&here)
    }

    pub(super) fn open_in(parent: &Path) -> Result<Project, Trouble> {
        let directory = parent.join(DIRECTORY);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(trouble_with(&directory, &error));
            }
            Ok(()) | Err(_) => {}
        }
        let lock = lock(&directory)?;
        let made = fs::symlink_metadata(directory.join(LOCK))
            .map_err(|error| trouble_with(&directory, &error))?;
        let owner = made.uid();
        Ok(Project {
            directory,
            owner,
            _lock: lock,
        })
    }

    /// Made with 32 random bytes, base64, mode 0600, where there is none yet.
    pub(super) fn secret_file(&self) -> Result<PathBuf, Trouble> {
        let path = self.directory.join("secret");
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match created {
            Ok(file) => write_secret(file).map_err(|error| trouble_with(&path, &error))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(trouble_with(&path, &error)),
        }
        Ok(path)
    }
}

/// Through it, without listing it.
pub(super) fn let_others_pass(path: &Path) -> Result<(), Trouble> {
    fs::set_permissions(path, Permissions::from_mode(0o711))
        .map_err(|error| trouble_with(path, &error))
}

fn write_secret(mut file: File) -> io::Result<()> {
    let mut bytes = [0; 32];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| io::Error::other("the system gave no random bytes"))?;
    writeln!(file, "{}", STANDARD.encode(bytes))?;
    file.sync_all()
}

/// A socket is a lock that ends with its process, also when that is killed: a path nobody listens
/// on is a left-over.
fn lock(directory: &Path) -> Result<UnixListener, Trouble> {
    // A socket's path holds at most 107 bytes: a relative one where the directory lies below the
    // current one.
    let absolute = directory.join(LOCK);
    let here = std::env::current_dir().unwrap_or_default();
    let path = absolute.strip_prefix(&here).unwrap_or(&absolute);
    if UnixStream::connect(path).is_ok() {
        return Err(Trouble::new(format!(
            "another `gatepost-dev` is running in {}",
            directory.display()
        )));
    }
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {
            fs::remove_file(path).map_err(|error| trouble_with(path, &error))?;
        }
        Ok(_) | Err(_) => {}
    }
    UnixListener::bind(path).map_err(|error| trouble_with(path, &error))
}

pub(super) fn trouble_with(path: &Path, error: &io::Error) -> Trouble {
    Trouble::new(format!("{}: {error}", path.display()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A directory under the system's temporary one, removed when dropped.
    pub(crate) struct Scratch(pub(in super::super) PathBuf);

    impl Scratch {
        pub(crate) fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("gatepost-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Scratch(path)
        }

        pub(crate) fn project(&self) -> Project {
            Project::open_in(&self.0).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_secret_is_made_once_and_for_its_owner_alone() {
        let scratch = Scratch::new("secret");
        let project = scratch.project();
        let path = project.secret_file().unwrap();
        let first = fs::read_to_string(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(STANDARD.decode(first.trim_end()).unwrap().len(), 32);
        assert_eq!(project.secret_file().unwrap(), path);
        assert_eq!(fs::read_to_string(&path).unwrap(), first);
    }

    #[test]
    fn a_second_command_in_the_same_project_is_refused() {
        let scratch = Scratch::new("twice");
        let first = scratch.project();
        let refusal = Project::open_in(&scratch.0).unwrap_err().to_string();
        assert!(refusal.contains("another `gatepost-dev`"), "{refusal}");
        drop(first);
        // What a killed process leaves behind is the path with nobody listening.
        assert!(Project::open_in(&scratch.0).is_ok());
    }

    #[test]
    fn nobody_else_can_look_into_the_directory() {
        let scratch = Scratch::new("mode");
        let project = scratch.project();
        assert_eq!(
            fs::metadata(&project.directory)
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o700
        );
    }
}
