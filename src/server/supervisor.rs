//! The supervisor: owns the listening socket, starts the server process, watches it, replaces it,
//! and speaks to systemd. It knows neither HTTP nor the database, so that there is little that
//! could end it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

mod process;
mod sockets;

pub use sockets::Listen;

use process::{Pace, STEADY, ServerProcess, Stage};
use sockets::{Listening, claim_admin, notify};

use crate::server::control::Report;

use gatepost_store::named_thread;

const TICK: Duration = Duration::from_millis(100);
/// `EX_CONFIG` of sysexits.h: a server process that ends with it would end so again.
const EXIT_CONFIGURATION: u8 = 78;

pub struct SupervisorSettings {
    /// Where to listen, unless standard input is a listening socket.
    pub listen: Listen,
    /// Where the server processes serve the admin pages, if anywhere.
    pub admin_listen: Option<SocketAddr>,
    /// The server process's binary, by the path it will be replaced at.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// A further argument, where another process serves until this one is ready.
    pub successor_argument: OsString,
    /// Variables it gets beside the supervisor's own.
    pub environment: Vec<(OsString, OsString)>,
    pub notify_socket: Option<OsString>,
    pub watchdog: Option<Duration>,
}

pub enum Event {
    Signal(i32),
    Report(u64, Report),
    Hangup,
}

/// Serves until SIGTERM or SIGINT; SIGHUP starts the server process anew, then drains the old one.
/// Exit codes: 0 after a drain, 1 without a listening socket or admin address, 78 when the
/// configuration is refused and nobody is serving.
pub fn run(settings: SupervisorSettings) -> ExitCode {
    let _claim = match settings.admin_listen.map(claim_admin).transpose() {
        Ok(claim) => claim,
        Err(error) => {
            let taken = error.kind() == ErrorKind::AddrInUse;
            let cause = if taken {
                "another service of Gatepost has this port"
            } else {
                "it cannot be claimed"
            };
            log::error!("GATEPOST_ADMIN_LISTEN: {cause}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let listening = match Listening::open(&settings.listen) {
        Ok(listening) => listening,
        Err(error) => {
            log::error!("cannot listen on {}: {error}", settings.listen);
            return ExitCode::FAILURE;
        }
    };
    log::info!("listening on {}", listening.describe(&settings.listen));
    let (sender, events) = mpsc::channel();
    if let Err(error) = forward_signals(sender.clone()) {
        log::error!("signals cannot be caught: {error}");
        return ExitCode::FAILURE;
    }
    Supervisor::new(settings, listening, sender).supervise(&events)
}

fn forward_signals(events: Sender<Event>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGCHLD])?;
    let forward = move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    };
    named_thread::spawn("signals", forward).map(drop)
}

struct Supervisor {
    settings: SupervisorSettings,
    listening: Listening,
    sender: Sender<Event>,
    processes: Vec<ServerProcess>,
    started_count: u64,
    /// When the next server process is to be started, if one is wanted.
    start_at: Option<Instant>,
    pace: Pace,
    is_stopping: bool,
    configuration_refused: bool,
    watchdog_at: Instant,
}

impl Supervisor {
    fn new(
        settings: SupervisorSettings,
        listening: Listening,
        sender: Sender<Event>,
    ) -> Supervisor {
        let now = Instant::now();
        Supervisor {
            settings,
            listening,
            sender,
            processes: Vec::new(),
            started_count: 0,
            start_at: Some(now),
            pace: Pace::default(),
            is_stopping: false,
            configuration_refused: false,
            watchdog_at: now,
        }
    }

    fn supervise(mut self, events: &Receiver<Event>) -> ExitCode {
        loop {
            self.start_if_due();
            match events.recv_timeout(TICK) {
                Ok(event) => self.heed(event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.reap();
            if self.start_at.is_none() && self.processes.iter().any(ServerProcess::is_silent) {
                self.want_start(Instant::now());
            }
            self.relieve_orphans();
            self.processes
                .iter_mut()
                .for_each(ServerProcess::kill_if_overdue);
            self.feed_watchdog();
            if self.processes.is_empty() && self.is_stopping {
                return ExitCode::SUCCESS;
            }
            if self.processes.is_empty() && self.configuration_refused && self.start_at.is_none() {
                self.listening.remove_path();
                return ExitCode::from(EXIT_CONFIGURATION);
            }
        }
    }

    fn heed(&mut self, event: Event) {
        match event {
            Event::Signal(SIGTERM | SIGINT) => self.stop(),
            Event::Signal(SIGHUP) if !self.is_stopping => {
                self.tell_systemd("RELOADING=1");
                self.start_at = Some(Instant::now());
            }
            // A child ended, which the next reaping finds.
            Event::Signal(_) | Event::Hangup => {}
            Event::Report(number, report) => self.hear(number, report),
        }
    }

    fn reap(&mut self) {
        while let Some((index, status)) = self
            .processes
            .iter_mut()
            .enumerate()
            .find_map(|(index, process)| Some((index, process.ended()?)))
        {
            let process = self.processes.remove(index);
            self.bury(&process, status);
        }
    }

    /// systemd wants a sign at least every `watchdog`; it gets one twice as often.
    fn feed_watchdog(&mut self) {
        if let Some(interval) = self.settings.watchdog
            && Instant::now() >= self.watchdog_at
        {
            self.tell_systemd("WATCHDOG=1");
            self.watchdog_at = Instant::now() + interval / 2;
        }
    }

    fn tell_systemd(&self, notice: &str) {
        notify(self.settings.notify_socket.as_ref(), notice);
    }

    fn hear(&mut self, number: u64, report: Report) {
        let Some(process) = self
            .processes
            .iter_mut()
            .find(|process| process.number == number)
        else {
            return;
        };
        match report {
            Report::Beat => process.last_beat = Instant::now(),
            Report::Open => process.is_open = true,
            Report::Ready if process.stage == Stage::Starting => self.install(number),
            Report::Recycle if process.stage == Stage::Serving => {
                self.want_start(self.pace.earliest_recycling(Instant::now()));
            }
            // It will never be ready; its end leads to the next attempt.
            Report::Deaf if process.stage == Stage::Starting => process.kill(),
            Report::Deaf if process.stage == Stage::Serving => {
                log::error!("server process {} is deaf", process.id());
                process.is_deaf = true;
                self.want_start(Instant::now());
            }
            Report::Ready | Report::Recycle | Report::Deaf => {}
        }
    }

    /// The newest process serves: the others may go.
    fn install(&mut self, number: u64) {
        for process in &mut self.processes {
            if process.number == number {
                process.last_beat = Instant::now();
                process.enter(Stage::Serving);
                log::info!("server process {} serves", process.id());
            } else if process.number < number {
                process.make_way();
            }
        }
        if !self.is_stopping {
            self.tell_systemd("READY=1");
        }
    }

    /// Drains everything; a second signal ends everything.
    fn stop(&mut self) {
        if self.is_stopping {
            self.processes.iter_mut().for_each(ServerProcess::kill);
            return;
        }
        log::info!("stopping");
        self.is_stopping = true;
        self.start_at = None;
        self.tell_systemd("STOPPING=1");
        self.listening.remove_path();
        self.processes.iter_mut().for_each(ServerProcess::drain);
    }

    /// A successor at `moment`, unless one is starting or will sooner.
    fn want_start(&mut self, moment: Instant) {
        if self.is_stopping || self.has_one(Stage::Starting) {
            return;
        }
        self.start_at = Some(self.start_at.map_or(moment, |planned| planned.min(moment)));
    }

    fn start_if_due(&mut self) {
        if self.start_at.is_none_or(|moment| moment > Instant::now()) {
            return;
        }
        self.start_at = None;
        self.configuration_refused = false;
        self.started_count += 1;
        self.pace.last_start = Some(Instant::now());
        let is_successor = self.processes.iter().any(ServerProcess::is_well);
        let listener = self.listening.handle();
        let started = listener.and_then(|listener| {
            ServerProcess::start(
                &self.settings,
                self.started_count,
                is_successor,
                listener,
                self.sender.clone(),
            )
        });
        match started {
            Ok(process) => self.processes.push(process),
            Err(error) => {
                log::error!(
                    "the server process {} cannot be started: {error}",
                    self.settings.program.display()
                );
                self.start_failed();
            }
        }
    }

    fn bury(&mut self, process: &ServerProcess, status: ExitStatus) {
        if self.is_stopping || process.stage == Stage::Draining {
            return;
        }
        log::error!("server process {} ended: {status}", process.id());
        // Also after it began to serve: without its database it answers before it knows whether it
        // can.
        if status.code() == Some(i32::from(EXIT_CONFIGURATION)) {
            self.configuration_refused = true;
            self.stay_with_the_old();
        } else if process.has_served_for(STEADY) {
            self.pace.failures = 0;
            self.want_start(Instant::now());
        } else {
            self.start_failed();
        }
    }

    fn start_failed(&mut self) {
        let delay = self.pace.next_delay();
        self.want_start(Instant::now() + delay);
        self.stay_with_the_old();
    }

    /// An upgrade that failed leaves the old process serving, which is as ready as it was.
    fn stay_with_the_old(&self) {
        if self.has_one(Stage::Serving) {
            self.tell_systemd("READY=1");
        }
    }

    fn has_one(&self, stage: Stage) -> bool {
        self.processes.iter().any(|process| process.stage == stage)
    }

    /// A successor may take long to start. If no process serves meanwhile, an ordinary one is
    /// started in its place.
    fn relieve_orphans(&mut self) {
        if self.is_stopping || self.processes.iter().any(ServerProcess::is_well) {
            return;
        }
        for process in &mut self.processes {
            if process.stage == Stage::Starting && process.is_successor {
                log::warn!("server process {} lost its predecessor", process.id());
                process.kill();
                process.is_successor = false;
                self.start_at = Some(Instant::now());
            }
        }
    }
}
