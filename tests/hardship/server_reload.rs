//! SIGHUP and restart with a database: a successor takes over with everything loaded, or not at
//! all; and nobody who comes meanwhile is refused.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::serving::{Notices, kill, serve_for_a_while, wait_for};
use crate::support::gatepost::{Gatepost, MASTER_SECRET, document};
use crate::support::http::Connection;
use crate::support::postgres::TestDatabase;
use crate::support::waiting::OverAtLast;

const DISCOVERY: &str = "/.well-known/openid-configuration";
const SOON: Duration = Duration::from_secs(20);

fn hang_up(gatepost: &Gatepost) {
    let sent = Command::new("kill")
        .args(["-HUP", &gatepost.supervisor().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Asks until `is_over`; every answer must be 200.
fn ask_until(gatepost: &Gatepost, mut is_over: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    let mut asked = 0;
    // Processes are listed by /proc, which may miss one while others come and go: one look is not
    // believed.
    while asked <= 10 || !is_over() {
        assert!(
            Instant::now() < deadline,
            "not in time:\n{}",
            gatepost.log()
        );
        gatepost.get(DISCOVERY).assert_status(200);
        asked += 1;
    }
}

fn is_succeeded(gatepost: &Gatepost, old: &[u32]) -> bool {
    let now = gatepost.server_processes();
    now.len() == 1 && now != old
}

#[test]
fn a_successor_takes_over_with_the_house_open_and_nobody_is_turned_away() {
    let gatepost = Gatepost::start();
    serve_for_a_while();
    for _ in 0..2 {
        let old = gatepost.server_processes();
        hang_up(&gatepost);
        ask_until(&gatepost, || is_succeeded(&gatepost, &old));
        serve_for_a_while();
    }
}

#[test]
fn a_successor_that_cannot_open_its_keys_leaves_the_old_process_serving() {
    let gatepost = Gatepost::start();
    serve_for_a_while();
    let old = gatepost.server_processes();
    gatepost.private_file("secret", &STANDARD.encode([7; 32]));
    hang_up(&gatepost);
    let begun = Instant::now();
    ask_until(&gatepost, || {
        gatepost.log().contains("exit status: 78") && begun.elapsed() > Duration::from_secs(3)
    });
    assert_eq!(gatepost.server_processes(), old);
    gatepost.private_file("secret", &STANDARD.encode(MASTER_SECRET));
    hang_up(&gatepost);
    ask_until(&gatepost, || is_succeeded(&gatepost, &old));
}

#[test]
fn a_successor_waits_for_the_database_and_is_replaced_when_its_predecessor_dies() {
    let (gatepost, proxy) = Gatepost::start_behind_a_proxy();
    serve_for_a_while();
    let old = gatepost.server_processes();
    proxy.cut(true);
    hang_up(&gatepost);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        assert_eq!(gatepost.get("/healthz").status, 200);
        assert!(
            gatepost.server_processes().contains(&old[0]),
            "the one that has loaded goes on"
        );
        sleep(Duration::from_millis(20));
    }
    assert_eq!(gatepost.server_processes().len(), 2);
    kill(old[0]);
    // Without a predecessor nobody waits: a process that has loaded nothing says so.
    assert_eq!(gatepost.get("/healthz").status, 200);
    assert_eq!(gatepost.get(DISCOVERY).status, 503);
    proxy.cut(false);
    gatepost.await_ready();
}

/// The service as systemd runs it by the shipped units: a socket as standard input, that stays open
/// while no process is there; both secrets as credentials; a socket to tell how it goes.
struct Unit {
    gatepost: Gatepost,
    listener: TcpListener,
    notices: Notices,
}

impl Unit {
    fn new() -> Unit {
        let mut gatepost = Gatepost::prepare_over(TestDatabase::empty(), &[]);
        gatepost.apply(&document());
        let secret = gatepost.private_file("gatepost-secret", &STANDARD.encode(MASTER_SECRET));
        gatepost.private_file("gatepost-database-url", &gatepost.database.url);
        let credentials = secret.parent().unwrap().to_owned();
        for name in "GATEPOST_SECRET_FILE GATEPOST_DATABASE_URL GATEPOST_LISTEN".split(' ') {
            gatepost.unset(name);
        }
        let notices = Notices::at(UnixDatagram::bind(credentials.join("notify")).unwrap());
        for (name, value) in [
            ("CREDENTIALS_DIRECTORY", &credentials),
            ("NOTIFY_SOCKET", &credentials.join("notify")),
        ] {
            gatepost.set(name, &value.display().to_string());
        }
        gatepost.set("WATCHDOG_USEC", "1000000");
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket
            .bind(&SocketAddr::from(([127, 0, 0, 1], gatepost.port)).into())
            .unwrap();
        // `Backlog=` of the shipped socket unit.
        socket.listen(4_096).unwrap();
        Unit {
            gatepost,
            listener: TcpListener::from(socket),
            notices,
        }
    }

    /// Starts the service and waits until it says that it is ready.
    fn start(&self) -> Running {
        let mut command = self.gatepost.command();
        let listener = OwnedFd::from(self.listener.try_clone().unwrap());
        let running = command
            .arg("serve")
            .stdin(Stdio::from(listener))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop(command);
        self.notices.await_one("READY=1");
        Running(running)
    }
}

/// Ends with the test, however that goes.
struct Running(Child);

impl Running {
    fn signal(&self, name: &str) {
        assert!(
            Command::new("kill")
                .args([&format!("-{name}"), &self.0.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
    }

    /// `systemctl stop`
    fn stop(mut self) {
        self.signal("TERM");
        assert_eq!(wait_for(&mut self.0).code(), Some(0));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What became of new connections with one request each.
#[derive(Debug, Default)]
struct Fates {
    answered: AtomicU32,
    /// 503 with `Retry-After`.
    told_to_wait: AtomicU32,
    /// Nobody listened.
    refused: AtomicU32,
    /// Accepted, and ended without an answer.
    cut: AtomicU32,
    other: AtomicU32,
}

impl Fates {
    fn ask(&self, port: u16) {
        let asked = Connection::open(port)
            .and_then(|mut wire| wire.try_send("GET", DISCOVERY, &[("Connection", "close")], b""));
        let fate = match asked {
            Ok(answer) if answer.status == 200 => &self.answered,
            Ok(answer) if answer.status == 503 && answer.header("retry-after").is_some() => {
                &self.told_to_wait
            }
            Ok(_) => &self.other,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => &self.refused,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                ) =>
            {
                &self.cut
            }
            Err(error) if error.kind() == ErrorKind::BrokenPipe => &self.cut,
            Err(_) => &self.other,
        };
        fate.fetch_add(1, Ordering::SeqCst);
    }

    fn count(&self, of: impl Fn(&Fates) -> &AtomicU32) -> u32 {
        of(self).load(Ordering::SeqCst)
    }
}

/// 500 new connections a second, whatever became of those before, while `work` runs; all of them
/// are waited for.
fn under_load(what: &str, port: u16, work: impl FnOnce()) -> Fates {
    let (fates, over) = (Fates::default(), AtomicBool::new(false));
    let begun = Instant::now();
    let made = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut made = 0_u32;
            while !over.load(Ordering::SeqCst) {
                scope.spawn(|| fates.ask(port));
                made += 1;
                sleep(
                    (begun + Duration::from_millis(2) * made)
                        .saturating_duration_since(Instant::now()),
                );
            }
            (made, begun.elapsed())
        });
        let at_last = OverAtLast(&over);
        work();
        drop(at_last);
        load.join().unwrap()
    });
    println!("{what}: {} connections in {:?}: {fates:?}", made.0, made.1);
    fates
}

#[test]
fn upgrade_and_restart_under_500_new_connections_a_second_refuse_none() {
    let unit = Unit::new();
    let port = unit.gatepost.port;
    let running = unit.start();
    unit.gatepost.await_ready();
    unit.notices.await_one("WATCHDOG=1");
    let upgrade = under_load("upgrade", port, || {
        serve_for_a_while();
        running.signal("HUP");
        unit.notices.await_one("RELOADING=1");
        unit.notices.await_one("READY=1");
        // The old process drains.
        serve_for_a_while();
    });
    let mut running = Some(running);
    let restart = under_load("restart", port, || {
        serve_for_a_while();
        running.take().unwrap().stop();
        running = Some(unit.start());
        serve_for_a_while();
    });
    assert_eq!(
        upgrade.count(|fates| &fates.told_to_wait),
        0,
        "a successor takes over with the house open"
    );
    for fates in [upgrade, restart] {
        assert_eq!(fates.count(|fates| &fates.refused), 0, "{fates:?}");
        assert_eq!(fates.count(|fates| &fates.other), 0, "{fates:?}");
        let (answered, cut) = (
            fates.count(|fates| &fates.answered),
            fates.count(|fates| &fates.cut),
        );
        assert!(answered > 500 && cut * 100 <= answered, "{fates:?}");
    }
    running.unwrap().stop();
}
