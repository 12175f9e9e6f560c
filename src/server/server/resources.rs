//! What this process holds, read from `/proc`, because tiny_http does not tell. Without `/proc`
//! nothing is known, and the process is never recycled.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::RawFd;
use std::path::Path;

use nix::sys::stat::{SFlag, fstat};

/// tiny_http's threads have this name.
pub const HTTP_THREAD: &str = "http";

/// The sockets of the connections that are open, by their inodes.
///
/// tiny_http holds each connection in two descriptors, one to read and one to write. No other
/// socket of this process has two, except for standard streams, of which we keep a second handle.
pub fn open_connections() -> Option<HashSet<u64>> {
    let mut handles: HashMap<u64, usize> = HashMap::new();
    for entry in fs::read_dir("/proc/self/fd").ok()?.flatten() {
        let descriptor: RawFd = entry.file_name().to_str()?.parse().ok()?;
        // It may be closed meanwhile.
        let Ok(file) = fstat(descriptor) else {
            continue;
        };
        if SFlag::from_bits_truncate(file.st_mode) & SFlag::S_IFMT != SFlag::S_IFSOCK {
            continue;
        }
        // A standard stream's socket never counts as held exactly twice.
        *handles.entry(file.st_ino).or_default() += if descriptor <= 2 { 3 } else { 1 };
    }
    handles.retain(|_, count| *count == 2);
    Some(handles.into_keys().collect())
}

/// tiny_http needs one for each connection.
pub fn connection_threads() -> Option<usize> {
    let tasks = fs::read_dir("/proc/self/task").ok()?.flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let threads = names.filter(|name| name.trim_end() == HTTP_THREAD).count();
    // One of them accepts.
    Some(threads.saturating_sub(1))
}

/// The limits that leaked connections run into.
#[derive(Clone, Copy)]
pub struct Limits {
    descriptors: Option<u64>,
    threads: Option<u64>,
}

impl Limits {
    pub fn read() -> Limits {
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let threads = [
            soft_limit(&limits, "Max processes"),
            cgroup_task_limit(&cgroup),
        ];
        Limits {
            descriptors: soft_limit(&limits, "Max open files"),
            threads: threads.into_iter().flatten().min(),
        }
    }

    /// The name of a limit that is used up by more than 80 %.
    pub fn nearly_reached(&self) -> Option<&'static str> {
        if is_near(entries("/proc/self/fd"), self.descriptors) {
            Some("descriptors")
        } else if is_near(entries("/proc/self/task"), self.threads) {
            Some("threads")
        } else {
            None
        }
    }
}

fn is_near(used: Option<u64>, limit: Option<u64>) -> bool {
    match (used, limit) {
        (Some(used), Some(limit)) => used.saturating_mul(5) > limit.saturating_mul(4),
        (None, _) | (_, None) => false,
    }
}

fn entries(directory: &str) -> Option<u64> {
    u64::try_from(fs::read_dir(directory).ok()?.count()).ok()
}

/// A limit in `/proc/self/limits`; `None` for `unlimited`.
fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// systemd's `TasksMax=` is `pids.max` of the cgroup (version 2) this process is in.
fn cgroup_task_limit(cgroup: &str) -> Option<u64> {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let file = Path::new("/sys/fs/cgroup").join(path).join("pids.max");
    let most = fs::read_to_string(file).ok()?;
    most.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_the_kernels_table() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max processes             unlimited            96365                processes \n\
                     Max open files            1024                 524288               files     \n";
        assert_eq!(soft_limit(table, "Max open files"), Some(1024));
        assert_eq!(soft_limit(table, "Max processes"), None);
        assert_eq!(soft_limit(table, "Max locked memory"), None);
    }

    #[test]
    fn four_fifths_are_near_and_an_unknown_limit_never_is() {
        let limits = |descriptors| Limits {
            descriptors,
            threads: None,
        };
        assert_eq!(limits(Some(1)).nearly_reached(), Some("descriptors"));
        assert_eq!(limits(Some(1_000_000)).nearly_reached(), None);
        assert_eq!(limits(None).nearly_reached(), None);
        assert_eq!(
            Limits {
                descriptors: None,
                threads: Some(1)
            }
            .nearly_reached(),
            Some("threads")
        );
    }

    #[test]
    fn a_socket_held_twice_is_a_connection() {
        // In a process of its own: other tests hold sockets, too.
        const ALONE: &str = "TEST_OF_SOCKETS_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
            alone
                .args([
                    "--exact",
                    "server::resources::tests::a_socket_held_twice_is_a_connection",
                ])
                .env(ALONE, "yes");
            let told = alone.output().unwrap();
            assert!(
                String::from_utf8_lossy(&told.stdout).contains("1 passed"),
                "{told:?}"
            );
            return;
        }
        let before = open_connections().unwrap().len();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(open_connections().unwrap().len(), before);
        let second_handle = stream.try_clone().unwrap();
        assert_eq!(open_connections().unwrap().len(), before + 1);
        drop(second_handle);
    }
}
