//! The tables.

use std::fmt::Write;
use std::fs;
use std::time::Duration;

use postgres::{Client, NoTls};

use crate::drive::Outcome;
use crate::flows::Work;
use crate::usage::{Memory, Usage};

/// What one flow cost one provider.
#[derive(Clone, Debug)]
pub struct Figures {
    rate: f64,
    percentiles: [f64; 3],
    /// Rate and p99 with a connection for each request.
    new_connections: Option<(f64, f64)>,
    /// CPU milliseconds a flow.
    server: f64,
    postgres: f64,
    load_tool: f64,
    commits: f64,
    /// How often a thread of the server went to sleep, a flow.
    sleeps: f64,
}

/// A flow and its figures, by provider; none where a provider does not have it.
pub struct Row {
    pub name: String,
    /// What it cannot do without; none where that is not counted.
    pub work: Option<Work>,
    pub figures: Vec<Option<Figures>>,
}

/// What the machine can do.
#[derive(Default)]
pub struct Limits {
    pub signatures: Option<f64>,
    pub commits: Option<f64>,
    pub look_ups: Option<f64>,
    pub bare_http: Option<Figures>,
}

/// A run.
pub struct Report {
    pub names: Vec<String>,
    pub start_to_ready: Duration,
    pub idle: Vec<Memory>,
    pub loaded: Vec<Memory>,
    pub rows: Vec<Row>,
    pub limits: Limits,
}

impl Figures {
    pub fn new((kept, spent): &(Outcome, Usage), new: Option<&Outcome>) -> Figures {
        let flows = kept.latencies.len() as f64;
        Figures {
            rate: kept.rate(),
            percentiles: [50, 95, 99].map(|hundredths| kept.percentile(hundredths)),
            new_connections: new.map(|new| (new.rate(), new.percentile(99))),
            server: spent.server * 1_000.0 / flows,
            postgres: spent.postgres * 1_000.0 / flows,
            load_tool: spent.load_tool * 1_000.0 / flows,
            commits: spent.commits as f64 / flows,
            sleeps: spent.sleeps as f64 / flows,
        }
    }
}

impl Report {
    /// Everything as Markdown.
    pub fn markdown(&self, connections: usize, duration: Duration, cluster: &str) -> String {
        let mut text = format!(
            "{}; load tool, server and Postgres on it together; {connections} connections, {} s a flow.\n\n",
            machine(cluster),
            duration.as_secs()
        );
        for (index, name) in self.names.iter().enumerate() {
            text.push_str(&self.table(index, name));
        }
        text.push_str(&self.ratios());
        text.push_str(&self.limits());
        text
    }

    fn table(&self, index: usize, name: &str) -> String {
        let mut text = format!(
            "| {name} | flows/s | p50 ms | p95 | p99 | new connections: flows/s | p99 | CPU ms a flow: server | Postgres | \
             load tool | commits a flow | sleeps |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        );
        for row in &self.rows {
            if let Some(Some(figures)) = row.figures.get(index) {
                let _ = writeln!(text, "| {} | {} |", row.name, figures.cells());
            }
        }
        if let (Some(idle), Some(loaded)) = (self.idle.get(index), self.loaded.get(index)) {
            let mib = |kib: u64| kib as f64 / 1_024.0;
            let _ = write!(
                text,
                "\nMemory of all its processes, MiB: idle PSS {:.1} (RSS {:.1}), after the load PSS {:.1} (RSS {:.1}).",
                mib(idle.pss),
                mib(idle.rss),
                mib(loaded.pss),
                mib(loaded.rss)
            );
        }
        if index == 0 {
            let _ = write!(
                text,
                " Start to ready: {} ms.",
                self.start_to_ready.as_millis()
            );
        }
        text + "\n\n"
    }

    fn ratios(&self) -> String {
        let [own, others @ ..] = self.names.as_slice() else {
            return String::new();
        };
        if others.is_empty() {
            return String::new();
        }
        let mut text = format!(
            "| flows/s, {own} : other |{}\n",
            others
                .iter()
                .map(|name| format!(" {name} |"))
                .collect::<String>()
        );
        text.push_str(&format!("|---|{}\n", "--:|".repeat(others.len())));
        for row in &self.rows {
            let [Some(own), others @ ..] = row.figures.as_slice() else {
                continue;
            };
            let ratio = |other: &Option<Figures>| {
                other.as_ref().map_or_else(
                    || String::from(" – |"),
                    |other| format!(" {:.2} |", own.rate / other.rate),
                )
            };
            let _ = writeln!(
                text,
                "| {} |{}",
                row.name,
                others.iter().map(ratio).collect::<String>()
            );
        }
        text + "\n"
    }

    fn limits(&self) -> String {
        let Limits {
            signatures,
            commits,
            look_ups,
            bare_http,
        } = &self.limits;
        let mut text = String::new();
        if signatures.is_some() || commits.is_some() {
            text.push_str("Limits of the same machine in the same run: ");
        }
        if let Some(signatures) = signatures {
            let _ = write!(
                text,
                "RSA-2048 signatures on all cores (openssl speed) {signatures:.0}/s; "
            );
        }
        if let Some(commits) = commits {
            let _ = write!(text, "commits of one row (pgbench) {commits:.0}/s; ");
        }
        if let Some(look_ups) = look_ups {
            let _ = write!(text, "look-ups of one row (pgbench) {look_ups:.0}/s; ");
        }
        if let Some(bare) = bare_http {
            let (new, _) = bare.new_connections.unwrap_or_default();
            let _ = write!(
                text,
                "tiny_http alone with a fixed answer {:.0}/s kept alive (p99 {:.2} ms, CPU {:.3} ms), {new:.0}/s with new \
                 connections.",
                bare.rate, bare.percentiles[2], bare.server
            );
        }
        text + "\n\n" + &self.parts()
    }

    /// How much of what the machine could do each flow does, were there nothing but its requests,
    /// signatures, commits and look-ups.
    fn parts(&self) -> String {
        let Limits {
            signatures: Some(signatures),
            commits: Some(commits),
            look_ups: Some(look_ups),
            bare_http: Some(bare),
        } = &self.limits
        else {
            return String::new();
        };
        let mut text = String::from(
            "| flow | requests | RSA signatures | commits | look-ups | limit of the machine, flows/s | our part of it |\n\
             |---|--:|--:|--:|--:|--:|--:|\n",
        );
        for row in &self.rows {
            let (Some(work), Some(Some(own))) = (row.work, row.figures.first()) else {
                continue;
            };
            let seconds = f64::from(work.requests) / bare.rate
                + f64::from(work.rsa_signatures) / signatures
                + f64::from(work.commits) / commits
                + f64::from(work.look_ups) / look_ups;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {:.0} | {:.2} |",
                row.name,
                work.requests,
                work.rsa_signatures,
                work.commits,
                work.look_ups,
                1.0 / seconds,
                own.rate * seconds
            );
        }
        text
    }
}

impl Figures {
    fn cells(&self) -> String {
        let [p50, p95, p99] = self.percentiles;
        let new = self.new_connections;
        let (new_rate, new_p99) = new.map_or_else(
            || (String::new(), String::new()),
            |(rate, p99)| (format!("{rate:.0}"), format!("{p99:.2}")),
        );
        let cost = |milliseconds: f64| {
            if milliseconds.is_nan() {
                String::new()
            } else {
                format!("{milliseconds:.3}")
            }
        };
        format!(
            "{:.0} | {p50:.2} | {p95:.2} | {p99:.2} | {new_rate} | {new_p99} | {} | {} | {} | {:.2} | {:.2}",
            self.rate,
            cost(self.server),
            cost(self.postgres),
            cost(self.load_tool),
            self.commits,
            self.sleeps
        )
    }
}

/// The machine, as far as it matters.
fn machine(cluster: &str) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default();
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<u64>().ok())
        .unwrap_or(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let show = |what: &str| {
        let row = Client::connect(cluster, NoTls)
            .ok()?
            .query_one(&format!("SHOW {what}"), &[])
            .ok()?;
        Some(row.get::<_, String>(0))
    };
    let version = show("server_version").unwrap_or_default();
    let version = version.split(' ').next().unwrap_or_default();
    let fsync = show("fsync").unwrap_or_default();
    format!(
        "{cores} cores ({model}), {} GiB; PostgreSQL {version}, fsync {fsync}",
        kib / 1_048_576
    )
}
