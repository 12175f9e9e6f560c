//! One server process, seen from outside: started with the listening socket as standard input and a
//! socket of its own as standard output, in its own process group, so that a terminal's signals
//! reach the supervisor alone. And how fast such processes may follow each other.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::{Event, SupervisorSettings};
use crate::server::control::{DRAIN, Report};

use gatepost_store::named_thread;

/// Time for a new process to answer its first probe.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// The same for one that first loads what its predecessor has, with a little more than it gives
/// itself.
const SUCCESSOR_START_PATIENCE: Duration = Duration::from_secs(40);
/// Silence after which a process is given up.
const SILENCE: Duration = Duration::from_secs(5);
/// Time for a process to drain, with a little more than it gives itself.
const DRAIN_PATIENCE: Duration = Duration::from_secs(12);

/// Variables that systemd meant for the supervisor.
const NOT_INHERITED: [&str; 6] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
];

#[derive(PartialEq)]
pub enum Stage {
    Starting,
    Serving,
    Draining,
}

pub struct ServerProcess {
    pub number: u64,
    /// Where it is in its life, and since when.
    pub stage: Stage,
    /// Whether it waits to take over from one that can go on serving.
    pub is_successor: bool,
    pub is_open: bool,
    pub is_deaf: bool,
    since: Instant,
    pub last_beat: Instant,
    child: Child,
    orders: UnixStream,
}

impl ServerProcess {
    pub fn start(
        settings: &SupervisorSettings,
        number: u64,
        is_successor: bool,
        listener: OwnedFd,
        events: Sender<Event>,
    ) -> io::Result<ServerProcess> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = command(settings, is_successor)
            .stdin(Stdio::from(listener))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .process_group(0)
            .spawn()?;
        let reports = ours.try_clone()?;
        named_thread::spawn("reports", move || listen_to(number, reports, &events))?;
        let now = Instant::now();
        Ok(ServerProcess {
            number,
            stage: Stage::Starting,
            is_successor,
            is_open: false,
            is_deaf: false,
            since: now,
            last_beat: now,
            child,
            orders: ours,
        })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn is_silent(&self) -> bool {
        self.stage == Stage::Serving && self.last_beat.elapsed() >= SILENCE
    }

    /// Whether it can go on serving for as long as a successor needs.
    pub fn is_well(&self) -> bool {
        self.stage == Stage::Serving && self.is_open && !self.is_deaf && !self.is_silent()
    }

    pub fn has_served_for(&self, duration: Duration) -> bool {
        self.stage != Stage::Starting && self.since.elapsed() >= duration
    }

    /// Ends it for a successor: by draining, or at once when it does not answer, for it may still
    /// take connections.
    pub fn make_way(&mut self) {
        if self.is_silent() {
            log::error!("server process {} does not answer and is killed", self.id());
            self.kill();
        }
        self.drain();
    }

    pub fn drain(&mut self) {
        if self.stage == Stage::Draining {
            return;
        }
        if self.stage == Stage::Starting && self.is_successor {
            // It listens to no orders yet, and has nothing to finish.
            self.kill();
        }
        self.enter(Stage::Draining);
        if let Err(error) = self.orders.write_all(format!("{DRAIN}\n").as_bytes()) {
            log::warn!(
                "server process {} cannot be told to drain: {error}",
                self.id()
            );
        }
    }

    /// Kills it when it has had its time: to start, or to drain.
    pub fn kill_if_overdue(&mut self) {
        let (patience, duty) = match self.stage {
            Stage::Starting if self.is_successor => (SUCCESSOR_START_PATIENCE, "start"),
            Stage::Starting => (START_PATIENCE, "start"),
            Stage::Draining => (DRAIN_PATIENCE, "drain"),
            Stage::Serving => return,
        };
        if self.since.elapsed() >= patience {
            log::error!("server process {} took too long to {duty}", self.id());
            self.kill();
        }
    }

    pub fn kill(&mut self) {
        if let Err(error) = self.child.kill() {
            log::warn!("server process {} cannot be killed: {error}", self.id());
        }
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap_or(None)
    }

    pub fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.since = Instant::now();
    }
}

fn command(settings: &SupervisorSettings, is_successor: bool) -> Command {
    let mut command = Command::new(&settings.program);
    command.args(&settings.arguments);
    for (name, value) in &settings.environment {
        command.env(name, value);
    }
    command.args(is_successor.then_some(&settings.successor_argument));
    for name in NOT_INHERITED {
        command.env_remove(name);
    }
    command
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The reading thread holds a second handle; this ends it.
        let _ = self.orders.shutdown(Shutdown::Both);
    }
}

fn listen_to(number: u64, reports: UnixStream, events: &Sender<Event>) {
    for line in BufReader::new(reports).lines().map_while(Result::ok) {
        let Some(report) = Report::from_name(&line) else {
            log::warn!("a server process sent an unknown report");
            continue;
        };
        if events.send(Event::Report(number, report)).is_err() {
            return;
        }
    }
    // The end itself is learnt from the process table; this only wakes the supervisor.
    let _ = events.send(Event::Hangup);
}

/// A process that served this long was not a failure.
pub const STEADY: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(5);
/// Least time between two starts that a server process asked for.
const RECYCLING: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Pace {
    /// Since the last that was steady.
    pub failures: u32,
    pub last_start: Option<Instant>,
}

impl Pace {
    /// Takes note of a failure; answers how long to wait before the next start: 200 ms, doubled
    /// each time, at most 5 s.
    pub fn next_delay(&mut self) -> Duration {
        let delay = SHORTEST
            .saturating_mul(2_u32.saturating_pow(self.failures))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    pub fn earliest_recycling(&self, now: Instant) -> Instant {
        self.last_start
            .map_or(now, |last| (last + RECYCLING).max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_seconds_and_begin_anew_after_a_success() {
        let mut pace = Pace::default();
        let waits: Vec<u128> = (0..7).map(|_| pace.next_delay().as_millis()).collect();
        assert_eq!(waits, [200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert!((0..100).all(|_| pace.next_delay() <= LONGEST));
        pace.failures = 0;
        assert_eq!(pace.next_delay(), Duration::from_millis(200));
    }

    #[test]
    fn recycling_waits_for_five_seconds_after_the_last_start() {
        let mut pace = Pace::default();
        let now = Instant::now();
        assert_eq!(pace.earliest_recycling(now), now);
        pace.last_start = Some(now);
        assert_eq!(pace.earliest_recycling(now), now + RECYCLING);
        let later = now + Duration::from_secs(60);
        assert_eq!(pace.earliest_recycling(later), later);
    }
}
