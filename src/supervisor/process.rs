//! One server process, seen from outside: started with the listening socket as standard input and a socket of its own as
//! standard output, in its own process group, so that a terminal's signals reach the supervisor alone.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use super::{Event, SupervisorSettings};
use crate::server::control::{Order, Report};

/// Time for a new process to answer its first probe.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// The same for one that first loads what its predecessor has, with a little more than it gives itself.
const SUCCESSOR_START_PATIENCE: Duration = Duration::from_secs(40);
/// Silence after which a process is given up.
const SILENCE: Duration = Duration::from_secs(5);
/// Time for a process to drain, with a little more than it gives itself.
const DRAIN_PATIENCE: Duration = Duration::from_secs(12);

/// Variables that systemd meant for the supervisor.
const NOT_INHERITED: [&str; 6] =
    ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Starting,
    Serving,
    Draining,
}

#[derive(Debug)]
pub struct ServerProcess {
    pub number: u64,
    /// Where it is in its life, and since when.
    pub stage: Stage,
    /// Whether it waits to take over from one that can go on serving.
    pub is_successor: bool,
    /// Whether it answers more than refusals.
    pub is_open: bool,
    /// Whether it no longer accepts connections.
    pub is_deaf: bool,
    since: Instant,
    last_beat: Instant,
    child: Child,
    orders: UnixStream,
}

impl ServerProcess {
    /// Starts one. Its reports come in as events.
    pub fn start(
        settings: &SupervisorSettings,
        number: u64,
        is_successor: bool,
        listener: OwnedFd,
        events: Sender<Event>,
    ) -> io::Result<ServerProcess> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&settings.program);
        command.args(&settings.arguments).envs(settings.environment.iter().map(|(name, value)| (name, value)));
        command.args(is_successor.then_some(&settings.successor_argument));
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        command.stdin(Stdio::from(listener)).stdout(Stdio::from(OwnedFd::from(theirs))).process_group(0);
        let child = command.spawn()?;
        let reports = ours.try_clone()?;
        thread::Builder::new().name(String::from("reports")).spawn(move || listen_to(number, reports, &events))?;
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

    pub fn has_beaten(&mut self) {
        self.last_beat = Instant::now();
    }

    pub fn has_become_ready(&mut self) {
        self.has_beaten();
        self.enter(Stage::Serving);
    }

    /// Whether it should beat and does not.
    pub fn is_silent(&self) -> bool {
        self.stage == Stage::Serving && self.last_beat.elapsed() >= SILENCE
    }

    /// Whether it can go on serving for as long as a successor needs.
    pub fn is_well(&self) -> bool {
        self.stage == Stage::Serving && self.is_open && !self.is_deaf && !self.is_silent()
    }

    /// Whether it has served for at least `duration`.
    pub fn has_served_for(&self, duration: Duration) -> bool {
        self.stage != Stage::Starting && self.since.elapsed() >= duration
    }

    /// Ends it for a successor: by draining, or at once when it does not answer, for it may still take connections.
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
        if let Err(error) = self.orders.write_all(format!("{}\n", Order::Drain.word()).as_bytes()) {
            log::warn!("server process {} cannot be told to drain: {error}", self.id());
        }
    }

    /// Kills it when it has had its time: to start, or to drain.
    pub fn kill_if_overdue(&mut self) {
        let patience = match self.stage {
            Stage::Starting if self.is_successor => SUCCESSOR_START_PATIENCE,
            Stage::Starting => START_PATIENCE,
            Stage::Draining => DRAIN_PATIENCE,
            Stage::Serving => return,
        };
        if self.since.elapsed() >= patience {
            log::error!("server process {} took too long to {}", self.id(), self.duty());
            self.kill();
        }
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        if let Err(error) = self.child.kill() {
            log::warn!("server process {} cannot be killed: {error}", self.id());
        }
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap_or(None)
    }

    fn duty(&self) -> &'static str {
        match self.stage {
            Stage::Starting => "start",
            Stage::Serving => "serve",
            Stage::Draining => "drain",
        }
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.since = Instant::now();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The reading thread holds a second handle; this ends it.
        let _ = self.orders.shutdown(Shutdown::Both);
    }
}

fn listen_to(number: u64, reports: UnixStream, events: &Sender<Event>) {
    for line in BufReader::new(reports).lines().map_while(Result::ok) {
        let Some(report) = Report::parse(&line) else {
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
