//! Where Postgres's own programs are installed.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::super::Trouble;

/// Where Debian's packages and common others put one directory per major version.
const VERSIONED_DIRECTORIES: [&str; 4] = [
    "/usr/lib/postgresql",
    "/usr/local/lib/postgresql",
    "/opt/homebrew/opt",
    "/usr/local/opt",
];

/// The directory of `initdb`, `postgres` and `pg_ctl`; empty when they are found on the search
/// path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Programs(PathBuf);

impl Programs {
    /// Those of `major`, where a cluster made by that version exists already.
    pub(super) fn find(major: Option<&str>) -> Result<Programs, Trouble> {
        let mut candidates = installed(&VERSIONED_DIRECTORIES.map(PathBuf::from));
        candidates.extend(on_search_path());
        choose(candidates, major)
    }

    pub(super) fn path(&self, program: &str) -> PathBuf {
        self.0.join(program)
    }
}

/// Newest first.
fn installed(roots: &[PathBuf]) -> Vec<(u32, Programs)> {
    let entries = roots
        .iter()
        .filter_map(|root| fs::read_dir(root).ok())
        .flatten()
        .flatten();
    let mut found: Vec<(u32, Programs)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let major = name
                .strip_prefix("postgresql@")
                .unwrap_or(&name)
                .parse()
                .ok()?;
            let directory = entry.path().join("bin");
            directory
                .join("initdb")
                .is_file()
                .then_some((major, Programs(directory)))
        })
        .collect();
    found.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    found
}

fn on_search_path() -> Option<(u32, Programs)> {
    let output = Command::new("initdb")
        .arg("--version")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let major = major_version(&String::from_utf8_lossy(&output.stdout))?;
    Some((major, Programs(PathBuf::new())))
}

/// Reads `initdb (PostgreSQL) 15.18 (Debian ...)`.
fn major_version(text: &str) -> Option<u32> {
    let version = text.split(')').nth(1)?.split_whitespace().next()?;
    version
        .split(|character: char| !character.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

fn choose(candidates: Vec<(u32, Programs)>, major: Option<&str>) -> Result<Programs, Trouble> {
    let fits =
        |(version, _): &(u32, Programs)| major.is_none_or(|wanted| wanted == version.to_string());
    let some_installed = !candidates.is_empty();
    match (candidates.into_iter().find(fits), major) {
        (Some((_, programs)), _) => Ok(programs),
        (None, Some(wanted)) if some_installed => Err(Trouble::new(format!(
            "the data in .gatepost was made by Postgres {wanted}, which is not installed any more; \
             install it, or remove .gatepost to start afresh"
        ))),
        (None, _) => Err(Trouble::new(
            "Postgres is not installed. On Debian or Ubuntu: `apt-get install postgresql`; \
             elsewhere your package manager's `postgresql`, 14 or newer. Or set \
             GATEPOST_DATABASE_URL to a database",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(path: &str) -> Programs {
        Programs(PathBuf::from(path))
    }

    #[test]
    fn the_version_that_made_the_data_is_taken_even_when_a_newer_one_is_there() {
        let candidates = vec![(17, programs("/17")), (15, programs("/15"))];
        assert_eq!(choose(candidates.clone(), Some("15")), Ok(programs("/15")));
        assert_eq!(choose(candidates, None), Ok(programs("/17")));
    }

    #[test]
    fn what_is_missing_is_said_with_the_way_out() {
        let none = choose(Vec::new(), None).unwrap_err().to_string();
        assert!(none.contains("apt-get install postgresql"), "{none}");
        let other = choose(vec![(17, programs("/17"))], Some("15"))
            .unwrap_err()
            .to_string();
        assert!(
            other.contains("Postgres 15") && other.contains("remove .gatepost"),
            "{other}"
        );
    }

    #[test]
    fn versions_are_read_as_the_programs_print_them() {
        assert_eq!(
            major_version("initdb (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"),
            Some(15)
        );
        assert_eq!(major_version("initdb (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(major_version("something else"), None);
    }
}
