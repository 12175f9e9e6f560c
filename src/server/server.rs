//! The server process: tiny_http over the inherited socket, worker threads, the body lane, the
//! self-probe and the drain. Where tiny_http leaks or gets stuck, this module counts, refuses
//! requests, or asks the supervisor for a successor.

use std::convert::Infallible;
use std::fmt::Display;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::panic::{self, Location, PanicHookInfo};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use socket2::SockAddr;

pub mod control;
mod entrance;
mod lane;
mod listener;
mod probe;
mod resources;
mod turns;
mod workers;

pub use crate::metrics::ServerStats;
pub use listener::{BACKLOG, reachable};

use control::{Control, DRAIN, Report};
use entrance::Entrance;
use lane::Lane;
use listener::Inherited;
use turns::Turns;
use workers::Service;

use crate::http::{Refused, Request, Response};
use gatepost_protocol::words::forwarded::Cidr;
use gatepost_store::mutex::Mutex;
use gatepost_store::named_thread;
use gatepost_store::worker::Permits;

/// Turns every failure into a response, and answers what the server itself refuses.
pub trait Handler: Fn(Result<&Request, Refused>) -> Response + Send + Sync + 'static {}

impl<H: Fn(Result<&Request, Refused>) -> Response + Send + Sync + 'static> Handler for H {}

/// The shortest time between two requests for a successor, and before the first: otherwise clients
/// could keep us busy with nothing but successors.
const LEAST_LIFE: Duration = Duration::from_secs(5);
/// `EX_CONFIG` of sysexits.h: starting again would not help.
const EXIT_CONFIGURATION: i32 = 78;

pub struct ServerSettings {
    pub workers: usize,
    /// Requests that may wait for other servers, or for a place to do so, or to hash a password.
    /// Each has a thread beside the workers, which is started then.
    pub waiting: usize,
    /// TCP peers whose forwarding headers are believed. A peer on the Unix socket always is.
    pub trusted_proxies: Vec<Cidr>,
    pub admin_listen: Option<SocketAddr>,
    /// Whose long body is read, one at a time. It is asked before the body is there.
    pub takes_long_body: Box<dyn Fn(&Request) -> bool + Send + Sync>,
    /// Whether requests get more than refusals.
    pub is_open: Arc<AtomicBool>,
}

struct State {
    settings: ServerSettings,
    stats: Arc<ServerStats>,
    control: Control,
    nonce: String,
    /// Whether the thread that accepts may have ended without notice.
    doubtful: AtomicBool,
    draining: AtomicBool,
    /// Whether tiny_http still takes connections out of the socket's queue.
    accepting: AtomicBool,
    /// The descriptor that tiny_http accepts from.
    listening: RawFd,
    successor_not_before: Mutex<Instant>,
}

impl State {
    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    fn ask_for_successor(&self, reason: &str) {
        let mut not_before = self.successor_not_before.lock();
        if self.is_draining() || Instant::now() < *not_before {
            return;
        }
        *not_before = Instant::now() + LEAST_LIFE;
        log::warn!("asking for a successor: {reason}");
        self.stats.recycles.raise();
        self.control.report(Report::Recycle);
    }
}

/// Standard input is the listening socket, standard output the socket to the supervisor. Ends with
/// code 0 after a drain or when the supervisor is gone, 1 when something it needs cannot be had, 78
/// when it was not started by a supervisor.
pub fn run(
    settings: ServerSettings,
    stats: Arc<ServerStats>,
    handler: impl Handler,
    admin_handler: impl Handler,
    last_words: impl Fn(Instant) + Copy + Send + 'static,
) -> ! {
    let Err((code, message)) = start(settings, stats, handler, admin_handler, last_words);
    log::error!("{message}");
    log::logger().flush();
    process::exit(code)
}

const KEPT_OUT: &str = "this process may not open its own socket, by which it probes itself: give \
                        it the socket's group (SupplementaryGroups= in gatepost.service, as \
                        SocketGroup= in gatepost.socket)";

type StartFailure = (i32, String);

fn failed<E: Display>(code: i32, what: &str) -> impl FnOnce(E) -> StartFailure {
    move |error| (code, format!("{what}: {error}"))
}

fn start(
    settings: ServerSettings,
    stats: Arc<ServerStats>,
    handler: impl Handler,
    admin_handler: impl Handler,
    last_words: impl Fn(Instant) + Copy + Send + 'static,
) -> Result<Infallible, StartFailure> {
    let (control, orders) = Control::from_stdout().map_err(failed(
        EXIT_CONFIGURATION,
        "a server process needs a supervisor",
    ))?;
    let listener = Inherited::from_stdin().map_err(failed(
        EXIT_CONFIGURATION,
        "a server process inherits its listener",
    ))?;
    listener
        .try_door()
        .map_err(failed(EXIT_CONFIGURATION, KEPT_OUT))?;
    let address = listener.address.clone();
    let nonce = format!("{:032x}", rand::random::<u128>());
    let state = State {
        settings,
        stats,
        control,
        nonce,
        doubtful: AtomicBool::new(false),
        draining: AtomicBool::new(false),
        accepting: AtomicBool::new(true),
        listening: listener.descriptor(),
        successor_not_before: Mutex::new(Instant::now() + LEAST_LIFE),
    };
    let state: &'static State = Box::leak(Box::new(state));
    note_panics(state);
    // tiny_http accepts as soon as it is made, so everything else takes its descriptors first.
    catch_signals(state)?;
    if let Some(address) = state.settings.admin_listen {
        let admin = listener::bind_admin(address).map_err(failed(
            1,
            &format!("the admin address {address} cannot be bound"),
        ))?;
        let threads = Threads {
            workers: 2,
            readers: None,
            waiting: 0,
        };
        serve(
            state,
            tiny_http::Listener::Tcp(admin),
            admin_handler,
            threads,
        )?;
    }
    let workers = state.settings.workers.max(2);
    let threads = Threads {
        workers,
        readers: Some(workers / 2),
        waiting: state.settings.waiting,
    };
    serve(state, listener.into_listener(), handler, threads)?;
    let knocked = address.clone();
    let probed = address.clone();
    start_thread("knock", move || probe::keep_knocking(state, &knocked))?;
    start_thread("probe", move || probe::beat(state, &probed))?;
    obey(state, &address, orders, last_words)
}

/// The default hook prints the panic's text, which may quote what a client sent. tiny_http's
/// threads, which alone have no name, panic when descriptors or threads are short, and the one that
/// accepts may be among them.
fn note_panics(state: &'static State) {
    panic::set_hook(Box::new(|panic| note_panic(state, panic)));
}

fn note_panic(state: &State, panic: &PanicHookInfo<'_>) {
    // tiny_http asks for a connection's peer address, and panics when there is none. Only the
    // thread of that connection ends.
    let text = panic.payload().downcast_ref::<String>();
    let file = panic.location().map(Location::file);
    if text.is_some_and(|text| text.contains("NotConnected"))
        && file.is_some_and(|file| file.contains("tiny_http"))
    {
        state.stats.departed.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let place = panic
        .location()
        .map_or_else(String::new, |location| location.to_string());
    log::error!("panic at {place}");
    log::logger().flush();
    if thread::current().name().is_none() {
        state.doubtful.store(true, Ordering::Relaxed);
    }
}

/// The threads of one listener.
struct Threads {
    /// How many work at once.
    workers: usize,
    /// How many read bodies at once; `None` for the admin's listener, where nobody does.
    readers: Option<usize>,
    /// How many there may be beside those: one that waits for another server has one more work.
    waiting: usize,
}

/// The admin's listener serves one request per connection, so that no idle scraper keeps a drain
/// waiting.
fn serve<H: Handler>(
    state: &'static State,
    listener: tiny_http::Listener,
    handler: H,
    threads: Threads,
) -> Result<(), StartFailure> {
    let Threads {
        workers,
        readers,
        waiting,
    } = threads;
    let is_admin = readers.is_none();
    let is_unix = matches!(listener, tiny_http::Listener::Unix(_));
    let http = start_http(listener)?;
    let (ended, coming) = mpsc::channel();
    let service: &'static Service<H> = Box::leak(Box::new(Service {
        http,
        handler,
        state,
        turns: Turns::new(),
        ended,
        revived: Mutex::default(),
        looking: Permits::new(1),
        entrance: (!is_unix).then(Entrance::default),
        lane: readers.map(Lane::new),
        beside: Permits::new(waiting),
        long_bodies: Permits::new(1),
        is_one_shot: is_admin,
        failure: if is_admin {
            Report::Recycle
        } else {
            Report::Deaf
        },
    }));
    let [ended, worker] = if is_admin {
        ["admin-ended", "admin"]
    } else {
        ["ended", "worker"]
    };
    start_thread(ended, move || service.see_off(&coming))?;
    for _ in 0..workers {
        start_thread(worker, move || service.work())?;
    }
    for _ in 0..readers.unwrap_or_default() {
        start_thread("body", move || service.read_bodies())?;
    }
    Ok(())
}

/// tiny_http's threads inherit the name of the thread that starts it, by which they are counted.
fn start_http(listener: tiny_http::Listener) -> Result<tiny_http::Server, StartFailure> {
    let build =
        || tiny_http::Server::from_listener(listener, None).map_err(|error| error.to_string());
    let built = named_thread::spawn(resources::HTTP_THREAD, build);
    let built = built
        .map_err(failed(1, "a thread cannot be started"))?
        .join();
    built
        .unwrap_or_else(|_| Err(String::from("it panicked")))
        .map_err(failed(1, "tiny_http does not start"))
}

/// A signal to this process alone has the effect that the supervisor's order would have. A signal
/// to both reaches the supervisor, too.
fn catch_signals(state: &'static State) -> Result<(), StartFailure> {
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(failed(1, "signals cannot be caught"))?;
    start_thread("signals", move || {
        for signal in signals.forever() {
            if signal != SIGHUP {
                state.control.report(Report::Recycle);
            }
        }
    })
}

fn obey(
    state: &'static State,
    address: &SockAddr,
    orders: UnixStream,
    last_words: impl Fn(Instant) + Copy + Send + 'static,
) -> Result<Infallible, StartFailure> {
    for line in BufReader::new(orders).lines().map_while(Result::ok) {
        if line == DRAIN {
            let address = address.clone();
            start_thread("drain", move || probe::drain(state, &address, last_words))?;
        } else {
            log::warn!("the supervisor sent an unknown order");
        }
    }
    log::error!("the supervisor is gone");
    log::logger().flush();
    process::exit(0)
}

fn start_thread(name: &str, life: impl FnOnce() + Send + 'static) -> Result<(), StartFailure> {
    let started = named_thread::spawn(name, life);
    started
        .map(drop)
        .map_err(failed(1, "a thread cannot be started"))
}
