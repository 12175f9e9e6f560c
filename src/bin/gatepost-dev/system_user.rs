//! As whom the private Postgres runs. It refuses to run as root, so for root another user of this
//! machine takes it over.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Trouble;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SystemUser {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunAs {
    Ourselves,
    Another(SystemUser),
}

impl RunAs {
    pub(super) fn for_user(uid: u32) -> Result<RunAs, Trouble> {
        if uid != 0 {
            return Ok(RunAs::Ourselves);
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        substitute_for_root(&accounts)
            .map(RunAs::Another)
            .ok_or_else(|| {
                Trouble::new(
                    "Postgres refuses to run as root, and there is no user `postgres` or `nobody` \
                     to run it as",
                )
            })
    }

    /// With no access to the terminal's input.
    pub(super) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        match self {
            RunAs::Ourselves => {}
            RunAs::Another(user) => {
                command.uid(user.uid).gid(user.gid);
            }
        }
        command
    }

    /// Whether this user can enter the directory: found out by entering it, so that whatever
    /// decides counts.
    pub(super) fn can_enter(self, directory: &Path) -> bool {
        let mut probe = self.command(Path::new("/bin/sh"));
        probe
            .args(["-c", "cd \"$1\"", "sh"])
            .arg(directory)
            .current_dir("/");
        probe
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

/// `postgres` where the distribution's package made it, else `nobody`.
fn substitute_for_root(accounts: &str) -> Option<SystemUser> {
    ["postgres", "nobody"]
        .into_iter()
        .find_map(|name| account(accounts, name))
}

/// Finds a user in the text of `/etc/passwd` (name:password:uid:gid:...).
fn account(accounts: &str, name: &str) -> Option<SystemUser> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        (uid != 0).then_some(SystemUser { uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNTS: &str = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533:nobody:/:/bin/false\npostgres:x:107:114:Postgres:/var:/bin/bash\n";

    #[test]
    fn the_packaged_user_comes_before_nobody() {
        assert_eq!(
            substitute_for_root(ACCOUNTS),
            Some(SystemUser { uid: 107, gid: 114 })
        );
        let without = ACCOUNTS.replace("postgres:x", "postgresql:x");
        assert_eq!(
            substitute_for_root(&without),
            Some(SystemUser {
                uid: 65534,
                gid: 65533
            })
        );
    }

    #[test]
    fn a_substitute_that_is_root_again_is_none() {
        assert_eq!(substitute_for_root("postgres:x:0:0::/:/bin/sh\n"), None);
        assert_eq!(substitute_for_root("postgres:x:one:two::/:/bin/sh\n"), None);
        assert_eq!(substitute_for_root(""), None);
    }

    #[test]
    fn an_ordinary_user_runs_it_themselves() {
        assert_eq!(RunAs::for_user(1000), Ok(RunAs::Ourselves));
        assert!(RunAs::Ourselves.can_enter(Path::new("/")));
        assert!(!RunAs::Ourselves.can_enter(Path::new("/nowhere/at/all")));
    }
}
