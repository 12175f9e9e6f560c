//! What the processes of a server use and how often they sleep, read from `/proc`, and what Postgres
//! commits.

use std::collections::HashMap;
use std::fs;

use postgres::{Client, NoTls};

/// Clock ticks a second in `/proc`; the same on every Linux this runs on (`getconf CLK_TCK`).
const TICKS: f64 = 100.0;

/// CPU seconds, commits, and how often a thread of the server went to sleep, up to a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub server: f64,
    pub postgres: f64,
    pub load_tool: f64,
    pub commits: u64,
    pub sleeps: u64,
}

impl Usage {
    /// What was used between two looks. Looking is a commit, too.
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            server: self.server - before.server,
            postgres: self.postgres - before.postgres,
            load_tool: self.load_tool - before.load_tool,
            commits: self.commits.saturating_sub(before.commits + 1),
            sleeps: self.sleeps.saturating_sub(before.sleeps),
        }
    }

    pub fn add(&mut self, further: Usage) {
        self.server += further.server;
        self.postgres += further.postgres;
        self.load_tool += further.load_tool;
        self.commits += further.commits;
        self.sleeps += further.sleeps;
    }
}

/// Memory in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    pub rss: u64,
    pub pss: u64,
}

/// Where to look.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    pub server: Option<u32>,
    pub postmaster: Option<u32>,
    pub database_url: Option<String>,
}

impl Watched {
    /// The server's processes, and the Postgres behind the URL if it runs on this machine.
    pub fn new(server: Option<u32>, database_url: Option<String>) -> Watched {
        let postmaster = database_url.as_deref().and_then(|url| {
            let mut client = Client::connect(url, NoTls).ok()?;
            let backend = client
                .query_one("SELECT pg_backend_pid()", &[])
                .ok()?
                .get::<_, i32>(0);
            // While the connection lives, and with it the backend.
            parents().get(&u32::try_from(backend).ok()?).copied()
        });
        Watched {
            server,
            postmaster,
            database_url,
        }
    }

    /// Everything up to now.
    pub fn usage(&self) -> Usage {
        Usage {
            server: self.server.map_or(f64::NAN, cpu_of_tree),
            postgres: self.postmaster.map_or(f64::NAN, cpu_of_tree),
            load_tool: ticks(std::process::id()).map_or(f64::NAN, |ticks| ticks.own / TICKS),
            commits: self.transactions().unwrap_or(0),
            sleeps: self.server.map_or(0, sleeps_of_tree),
        }
    }

    /// Memory of all processes of the server together.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for pid in self.server.map(tree).unwrap_or_default() {
            let rollup =
                fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            memory.rss += number(&rollup, "Rss:");
            memory.pss += number(&rollup, "Pss:");
        }
        memory
    }

    /// Transactions that wrote. Asking is one of them, so a difference is one too high.
    fn transactions(&self) -> Option<u64> {
        let mut client = Client::connect(self.database_url.as_deref()?, NoTls).ok()?;
        let row = client
            .query_one("SELECT pg_current_xact_id()::text::int8", &[])
            .ok()?;
        u64::try_from(row.get::<_, i64>(0)).ok()
    }
}

struct Ticks {
    /// Of the process itself.
    own: f64,
    /// Of children that have ended.
    ended: f64,
}

fn cpu_of_tree(root: u32) -> f64 {
    let all = tree(root).into_iter().filter_map(ticks);
    all.map(|ticks| ticks.own + ticks.ended).sum::<f64>() / TICKS
}

/// Voluntary context switches of the threads that there are.
fn sleeps_of_tree(root: u32) -> u64 {
    let tasks = |pid| {
        fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
    };
    let tasks = tree(root).into_iter().flat_map(tasks).flatten();
    let statuses = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    statuses
        .map(|status| number(&status, "voluntary_ctxt_switches:"))
        .sum()
}

/// A process and all below it.
fn tree(root: u32) -> Vec<u32> {
    let parents = parents();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(
            parents
                .iter()
                .filter(|(_, of)| **of == parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found
}

fn parents() -> HashMap<u32, u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, fields(pid)?.get(1)?.parse().ok()?)))
        .collect()
}

fn ticks(pid: u32) -> Option<Ticks> {
    let fields = fields(pid)?;
    let number = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    Some(Ticks {
        own: number(11) + number(12),
        ended: number(13) + number(14),
    })
}

/// `/proc/PID/stat` after the name, which may hold anything: state, parent, ...
fn fields(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(
        stat.rsplit_once(") ")?
            .1
            .split(' ')
            .map(str::to_owned)
            .collect(),
    )
}

fn number(rollup: &str, name: &str) -> u64 {
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
