//! The server process is replaced under load, in order and by `kill -9`: whoever comes meanwhile
//! waits for the next one in the socket's queue. `GATEPOST_TEST_RESTARTS=20` restarts as often each
//! way, and prints what was found.

use std::io::{Read, Write};
use std::iter::successors;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, Scope, available_parallelism, scope, sleep};
use std::time::{Duration, Instant};

use crate::serving::{kill, send_signal};
use crate::support::flow::signed_in;
use crate::support::gatepost::Gatepost;
use crate::support::offline::{CONF1, access};
use crate::support::waiting::{OverAtLast, await_that};

/// Whatever is waited for, on a machine that is busy with other things.
const SOON: Duration = Duration::from_secs(40);
/// New connections a second, where the machine serves twice as many.
const HIGHEST_RATE: u32 = 150;
/// A machine that does not serve twice this many is too slow for any claim.
const LOWEST_RATE: u32 = 4;
/// How long it is watched whether the machine serves a rate.
const WATCHED_FOR: Duration = Duration::from_secs(3);
/// Nobody waits longer where the machine serves all who come.
const SERVED_WITHIN: Duration = Duration::from_secs(1);
/// Five seconds are promised; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(7);
/// What else runs may take the machine away after its rate was measured: then it is measured anew,
/// and half of the load comes. Those who waited for the next process come all at once, and whoever
/// finds no place at the database within 250 ms is turned away on any day.
const ATTEMPTS: usize = 3;

/// What one caller got: a status, or a connection that broke.
struct Told {
    began: Instant,
    took: Duration,
    status: Option<u16>,
}

/// A load of new connections, each with one request, which come whether those before them are
/// answered or not.
struct Load<'a> {
    /// New connections a second.
    rate: u32,
    port: u16,
    token: &'a str,
    told: Mutex<Vec<Told>>,
    asked: AtomicUsize,
    over: AtomicBool,
}

impl<'a> Load<'a> {
    fn new(scene: &Scene<'a>, rate: u32) -> Load<'a> {
        Load {
            rate,
            port: scene.gatepost.port,
            token: scene.token,
            told: Mutex::default(),
            asked: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Does `work` while the load comes and `burners` threads keep the cores busy. Afterwards every
    /// caller has been told.
    fn run_during<T>(&self, burners: usize, work: impl FnOnce() -> T) -> T {
        scope(|scope| {
            let _over_at_last = OverAtLast(&self.over);
            for _ in 0..burners {
                scope.spawn(|| {
                    while !self.over.load(Ordering::Relaxed) {
                        std::hint::spin_loop()
                    }
                });
            }
            scope.spawn(|| self.run(scope));
            work()
        })
    }

    fn run<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let begun = Instant::now();
        for number in 0.. {
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            let due = begun + Duration::from_secs(1) * number / self.rate;
            sleep(due.saturating_duration_since(Instant::now()));
            self.asked.fetch_add(1, Ordering::SeqCst);
            let caller = Builder::new().stack_size(128 * 1_024);
            caller
                .spawn_scoped(scope, move || self.call(number))
                .unwrap();
        }
    }

    fn call(&self, number: u32) {
        // A process that is killed takes along what it has in hand: the fewer wait for the
        // database, the fewer those are.
        let path = match number % 6 {
            0 => "/connect/userinfo",
            1 | 2 => "/.well-known/openid-configuration/jwks",
            _ => "/.well-known/openid-configuration",
        };
        let began = Instant::now();
        let status = self.ask(path);
        self.told.lock().unwrap().push(Told {
            began,
            took: began.elapsed(),
            status,
        });
    }

    fn ask(&self, path: &str) -> Option<u16> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n",
            self.token
        );
        stream
            .write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())
            .ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let line = String::from_utf8_lossy(&answer);
        line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
    }

    fn answered(&self) -> usize {
        self.told
            .lock()
            .unwrap()
            .iter()
            .filter(|told| told.status == Some(200))
            .count()
    }

    /// Callers that have no answer yet.
    fn waiting(&self) -> usize {
        self.asked.load(Ordering::SeqCst) - self.told.lock().unwrap().len()
    }

    fn broken_since(&self, moment: Instant) -> usize {
        let told = self.told.lock().unwrap();
        told.iter()
            .filter(|told| told.status.is_none() && told.began + told.took >= moment)
            .count()
    }

    fn serves_on(&self) {
        let enough = self.answered() + self.rate as usize;
        await_that("the load is served", SOON, || self.answered() > enough);
        await_that("nobody waits in line any more", SOON, || {
            self.waiting() <= self.rate as usize / 10
        });
        // What had waited in line is served in a burst. The next restart comes after it, at any
        // moment.
        sleep(Duration::from_secs(1));
    }
}

/// Restarts the server process so often by each signal; what broke with each restart, by
/// signal, beyond what a killed process had in hand.
fn restart(gatepost: &Gatepost, load: &Load<'_>, rounds: usize) -> [Vec<usize>; 2] {
    ["TERM", "KILL"].map(|signal| {
        let broken = (0..rounds).map(|_| {
            let [old] = gatepost.server_processes()[..] else {
                panic!("not one server process")
            };
            // A process that is killed takes along what it has in hand, and no more.
            let in_hand = load.waiting();
            let begun = Instant::now();
            match signal {
                "KILL" => kill(old),
                _ => send_signal(old, signal),
            }
            await_that("a successor alone", SOON, || {
                let now = gatepost.server_processes();
                now.len() == 1 && now[0] != old
            });
            load.serves_on();
            let broken = load.broken_since(begun);
            match signal {
                "KILL" => broken.saturating_sub(in_hand),
                _ => broken,
            }
        });
        broken.collect()
    })
}

/// A server, and what makes it slow.
struct Scene<'a> {
    name: &'static str,
    gatepost: &'a Gatepost,
    token: &'a str,
    /// Threads that keep the cores busy.
    burners: usize,
}

impl Scene<'_> {
    /// Whether all who come at this rate are served in time while no process is replaced.
    fn serves(&self, rate: u32) -> bool {
        let load = Load::new(self, rate);
        load.run_during(self.burners, || sleep(WATCHED_FOR));
        let told = load.told.into_inner().unwrap();
        told.iter()
            .all(|told| told.status == Some(200) && told.took < SERVED_WITHIN)
    }

    /// Half of what the machine serves: whoever waited for the next process comes at once with
    /// those who come then.
    fn rate(&self) -> u32 {
        let halves = successors(Some(HIGHEST_RATE), |rate| Some(rate / 2));
        let mut rates = halves.take_while(|rate| *rate >= LOWEST_RATE);
        rates
            .find(|rate| self.serves(2 * rate))
            .unwrap_or_else(|| panic!("{}: the machine is too slow", self.name))
    }

    /// Replaces the server process `rounds` times each way.
    fn replace_under_load(&self, rate: u32, rounds: usize) -> Outcome {
        let load = Load::new(self, rate);
        let [broken_by_sigterm, mut broken_by_kill] = load.run_during(self.burners, || {
            load.serves_on();
            restart(self.gatepost, &load, rounds)
        });
        broken_by_kill.sort_unstable();
        let told = load.told.into_inner().unwrap();
        let statuses = told.iter().filter_map(|told| told.status);
        Outcome {
            refused: statuses.filter(|status| *status != 200).collect(),
            longest: told.iter().map(|told| told.took).max().unwrap(),
            broken_by_sigterm,
            broken_by_kill,
        }
    }

    /// Whether nobody was turned away, waited for too long, or lost a connection at this rate.
    fn serves_all_while_replaced(&self, rate: u32, rounds: usize) -> bool {
        let outcome = self.replace_under_load(rate, rounds);
        println!("{}, {rate} a second: {outcome:?}", self.name);
        assert_eq!(outcome.broken_by_sigterm, vec![0; rounds], "{}", self.name);
        let median = outcome.broken_by_kill[(rounds - 1) / 2];
        outcome.refused.is_empty() && outcome.longest < PATIENCE && median <= 1
    }
}

/// What became of all callers while the server process was replaced again and again.
#[derive(Debug)]
struct Outcome {
    /// The statuses of those who were turned away.
    refused: Vec<u16>,
    longest: Duration,
    /// Connections that broke, by restart, beyond what a killed process had in hand.
    broken_by_sigterm: Vec<usize>,
    broken_by_kill: Vec<usize>,
}

#[test]
fn nobody_is_turned_away_while_a_server_process_is_replaced() {
    let asked_for = std::env::var("GATEPOST_TEST_RESTARTS")
        .ok()
        .and_then(|text| text.parse().ok());
    let rounds = asked_for.unwrap_or(2);
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    let mut browser = signed_in(&gatepost);
    let tokens = CONF1.tokens(&gatepost, &mut browser, "openid profile");
    for (name, away, burners) in [
        ("database 20 ms away", Duration::from_millis(10), 0),
        (
            "machine busy",
            Duration::ZERO,
            available_parallelism().unwrap().get(),
        ),
    ] {
        proxy.set_distance(away);
        let scene = Scene {
            name,
            gatepost: &gatepost,
            token: access(&tokens),
            burners,
        };
        let are_served = (0..ATTEMPTS).any(|attempt| {
            let rate = (scene.rate() >> attempt).max(1);
            scene.serves_all_while_replaced(rate, rounds)
        });
        if !are_served {
            let log = gatepost.log();
            let refusals = log.lines().filter(|line| line.contains("status=503"));
            panic!("{name}: {:#?}", Vec::from_iter(refusals));
        }
    }
}
