//! Supervisor and server process: death, upgrade, drain, sockets, systemd. Against the running
//! service.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::serving::{
    Notices, PROGRAM, SERVER, Service, Wire, install, is_alive, kill, scratch, send_signal,
    serve_command, wait_for,
};
use crate::support::http::free_address;
use crate::support::waiting::await_that;

/// Whatever is waited for takes a moment, and no longer than this on a machine that is busy with
/// other things.
const SOON: Duration = Duration::from_secs(20);

/// A user who owns nothing.
const NOBODY: u32 = 65_534;

fn is_succeeded(service: &Service, old: u32) -> bool {
    let processes = service.server_processes();
    processes.len() == 1 && processes[0] != old
}

pub fn await_successor(service: &Service, old: u32) {
    await_that("only a successor is left", SOON, || {
        is_succeeded(service, old)
    });
}

#[test]
fn a_killed_server_process_is_replaced_and_connections_wait() {
    let service = Service::start("kill");
    for _ in 0..3 {
        let process = service.server_process();
        sleep(Duration::from_millis(1_100));
        send_signal(process, "KILL");
        let killed = Instant::now();
        let mut waiting: Vec<_> = (0..20).map(|_| service.connect()).collect();
        for wire in &mut waiting {
            // A connection the dying process had already accepted ends with it.
            if wire.try_send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n") {
                assert!(
                    wire.read_answer(true)
                        .is_none_or(|answer| answer.status == 200)
                );
            }
        }
        assert!(service.is_healthy());
        assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
    }
}

#[test]
fn a_process_killed_again_and_again_still_comes_back() {
    let service = Service::start("again");
    for _ in 0..3 {
        kill(service.server_process());
        await_that("it serves again", SOON, || service.is_healthy());
    }
}

#[test]
fn a_frozen_server_process_is_replaced() {
    let service = Service::start("frozen");
    let process = service.server_process();
    // It answers a moment before its supervisor hears of it; one that freezes in between has not
    // started.
    await_that("its supervisor knows it", SOON, || {
        service.log().matches("serves").count() == 1
    });
    send_signal(process, "STOP");
    await_that("a successor serves", SOON, || {
        service.log().matches("serves").count() == 2
    });
    // Dying, it may still take a connection.
    await_that("the frozen one is killed", SOON, || !is_alive(process));
    assert!(service.is_healthy());
}

#[test]
fn hangup_starts_a_successor_and_requests_in_flight_are_answered() {
    let service = Service::start("upgrade");
    let old = service.server_process();
    let mut slow = service.connect();
    slow.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n");
    slow.send([b'a'; 1_000]);
    sleep(Duration::from_millis(100));
    service.signal("HUP");
    await_that("a successor serves", SOON, || {
        service.log().matches("serves").count() == 2
    });
    for _ in 0..20 {
        assert!(service.is_healthy());
    }
    assert!(
        service.server_processes().contains(&old),
        "it still has a request in flight"
    );
    slow.send([b'a'; 1_000]);
    assert!(slow.answer().says_close());
    drop(slow);
    await_successor(&service, old);
}

#[test]
fn no_request_is_lost_while_one_process_follows_another() {
    let service = Service::start("handover");
    let old = service.server_process();
    service.signal("HUP");
    let begun = Instant::now();
    let (mut asked, mut answered, mut lost) = (0, 0, 0);
    // To look who is there takes longer than to ask.
    while asked % 5 != 0 || !is_succeeded(&service, old) {
        assert!(
            begun.elapsed() < SOON,
            "no successor after {asked} requests"
        );
        asked += 1;
        let mut wire = service.connect();
        let is_sent =
            wire.try_send("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        match is_sent.then(|| wire.read_answer(true)).flatten() {
            Some(answer) => answered += u32::from(answer.status == 200),
            None => lost += 1,
        }
    }
    assert!(answered > 20, "{answered} answered, {lost} lost");
    assert!(lost == 0, "{answered} answered, {lost} lost");
    assert!(service.is_healthy());
}

/// Something is in flight at every moment, so no moment is quiet.
#[test]
fn a_busy_process_is_followed_in_time_and_cuts_nobody() {
    let service = Service::start("busy-handover");
    let old = service.server_process();
    let is_over = AtomicBool::new(false);
    let ask = || {
        let mut lost = 0;
        while !is_over.load(Ordering::Relaxed) {
            let mut wire = service.connect();
            let head = "POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2000";
            let is_sent = wire.try_send(format!("{head}\r\n\r\n"));
            sleep(Duration::from_millis(300));
            let is_sent = is_sent && wire.try_send([b'a'; 2_000]);
            lost += u32::from(!is_sent || wire.read_answer(true).is_none());
        }
        lost
    };
    let lost: u32 = thread::scope(|scope| {
        let busy: Vec<_> = (0..12).map(|_| scope.spawn(ask)).collect();
        sleep(Duration::from_millis(500));
        service.signal("HUP");
        let begun = Instant::now();
        while is_alive(old) && begun.elapsed() < SOON {
            sleep(Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(
            begun.elapsed() < Duration::from_secs(9),
            "{:?}",
            begun.elapsed()
        );
        busy.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(lost, 0, "were cut");
    assert!(service.is_healthy());
}

#[test]
fn a_replaced_binary_is_what_an_upgrade_starts() {
    let directory = scratch("replaced");
    let program = directory.join("gatepostd");
    install(SERVER, &program);
    let files = scratch("replaced-files");
    let service = Service::start_command(serve_command(program.to_str().unwrap(), &files), files);
    let old = service.server_process();
    install(SERVER, &program);
    service.signal("HUP");
    await_successor(&service, old);
    let running = fs::read_link(format!("/proc/{}/exe", service.server_process())).unwrap();
    assert_eq!(
        running, program,
        "the file of the old process is marked as deleted"
    );
    assert!(service.is_healthy());
    drop(service);
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn an_upgrade_that_cannot_start_leaves_the_old_process_serving() {
    let directory = scratch("broken");
    let program = directory.join("gatepostd");
    install(SERVER, &program);
    let files = scratch("broken-files");
    let service = Service::start_command(serve_command(program.to_str().unwrap(), &files), files);
    let old = service.server_process();
    fs::remove_file(&program).unwrap();
    fs::write(&program, "#!/bin/sh\nexit 78\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    service.signal("HUP");
    await_that("the failure is logged", SOON, || {
        service.log().contains("exit status: 78")
    });
    sleep(Duration::from_millis(500));
    assert_eq!(service.server_processes(), [old]);
    assert!(service.is_healthy());
    drop(service);
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn terminate_drains_and_every_answer_says_so() {
    let mut service = Service::start("drain");
    let process = service.server_process();
    let mut slow = service.connect();
    slow.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n");
    slow.send([b'a'; 1_000]);
    let mut kept = service.connect();
    assert!(!kept.get("/healthz").says_close());
    service.signal("TERM");
    await_that("draining began", SOON, || {
        service.log().contains("stopping")
    });
    await_that("an answer says so", SOON, || {
        kept.get("/healthz").says_close()
    });
    drop(kept);
    sleep(Duration::from_millis(500));
    assert!(is_alive(process), "a request is still in flight");
    slow.send([b'a'; 1_000]);
    assert!(slow.answer().says_close());
    drop(slow);
    assert_eq!(service.wait().code(), Some(0));
    assert!(!is_alive(process));
}

#[test]
fn a_connection_that_is_kept_for_nothing_does_not_keep_the_service_from_ending() {
    let mut service = Service::start("clinging");
    let mut kept = service.connect();
    assert_eq!(kept.get("/healthz").status, 200);
    service.signal("TERM");
    let told = Instant::now();
    assert_eq!(service.wait().code(), Some(0));
    // Less than the ten seconds after which the connection would have ended by itself.
    assert!(
        told.elapsed() < Duration::from_secs(8),
        "{:?}",
        told.elapsed()
    );
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut service = Service::start("second");
    let mut kept = service.connect();
    assert_eq!(kept.get("/healthz").status, 200);
    service.signal("TERM");
    await_that("draining began", SOON, || {
        service.log().contains("stopping")
    });
    service.signal("INT");
    assert_eq!(service.wait().code(), Some(0));
}

#[test]
fn a_signal_to_the_server_process_alone_gets_it_a_successor() {
    let service = Service::start("alone");
    let old = service.server_process();
    // What it asks of its supervisor before that knows it is not heard.
    await_that("its supervisor knows it", SOON, || {
        service.log().contains("serves")
    });
    send_signal(old, "HUP");
    send_signal(old, "TERM");
    await_successor(&service, old);
    assert!(service.is_healthy());
}

#[test]
fn the_server_process_ends_with_its_supervisor() {
    let mut service = Service::start("orphan");
    let process = service.server_process();
    service.signal("KILL");
    service.wait();
    await_that("the server process ends", SOON, || !is_alive(process));
}

#[test]
fn settings_that_are_refused_end_the_service_with_78() {
    let directory = scratch("refused");
    let mut command = serve_command(PROGRAM, &directory);
    command.env("GATEPOST_LISTEN", free_address());
    command.env("GATEPOST_WORKERS", "many");
    assert_eq!(wait_for(&mut command.spawn().unwrap()).code(), Some(78));
    let mut command = serve_command(PROGRAM, &directory);
    command.env("GATEPOST_LISTEN", "localhost");
    assert_eq!(wait_for(&mut command.spawn().unwrap()).code(), Some(78));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_server_process_without_supervisor_refuses_to_run() {
    let directory = scratch("alone-process");
    let mut command = serve_command(PROGRAM, &directory);
    command.args(["--server-process"]);
    let mut direct = Command::new(PROGRAM);
    direct
        .args(["serve", "--server-process"])
        .stdin(std::process::Stdio::null());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            direct.env(name, value);
        }
    }
    assert_eq!(wait_for(&mut direct.spawn().unwrap()).code(), Some(78));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_taken_tcp_address_is_an_error() {
    let directory = scratch("taken");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = serve_command(PROGRAM, &directory);
    command.env("GATEPOST_LISTEN", taken.local_addr().unwrap().to_string());
    assert_eq!(wait_for(&mut command.spawn().unwrap()).code(), Some(1));
    fs::remove_dir_all(directory).unwrap();
}

/// A service on a Unix socket that it binds itself.
struct OnUnixSocket(std::process::Child);

impl OnUnixSocket {
    fn start(directory: &Path, socket: &Path) -> OnUnixSocket {
        let mut command = serve_command(PROGRAM, directory);
        command.env("GATEPOST_LISTEN", format!("unix:{}", socket.display()));
        OnUnixSocket(command.spawn().unwrap())
    }
}

impl Drop for OnUnixSocket {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_served(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok_and(|stream| Wire::over(stream).get("/healthz").status == 200)
}

#[test]
fn a_unix_socket_serves_the_group_survives_a_crash_and_is_removed_at_the_end() {
    let directory = scratch("unix");
    let socket = directory.join("http.sock");
    let mut service = OnUnixSocket::start(&directory, &socket);
    await_that("the socket is served", SOON, || is_served(&socket));
    assert_eq!(
        fs::metadata(&socket).unwrap().permissions().mode() & 0o777,
        0o660
    );
    let process = crate::serving::children_of(service.0.id())[0];
    kill(process);
    assert!(
        is_served(&socket),
        "the connection waits for the next process"
    );
    send_signal(service.0.id(), "TERM");
    await_that("the path is gone", SOON, || !socket.exists());
    assert_eq!(wait_for(&mut service.0).code(), Some(0));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_stale_socket_path_is_replaced() {
    let directory = scratch("stale");
    let socket = directory.join("http.sock");
    drop(UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let _service = OnUnixSocket::start(&directory, &socket);
    await_that("the socket is served", SOON, || is_served(&socket));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_socket_somebody_answers_on_is_left_to_them() {
    let directory = scratch("living");
    let socket = directory.join("http.sock");
    let living = UnixListener::bind(&socket).unwrap();
    let mut service = OnUnixSocket::start(&directory, &socket);
    assert_eq!(wait_for(&mut service.0).code(), Some(1));
    assert!(living.accept().is_ok() && UnixStream::connect(&socket).is_ok());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let directory = scratch("file");
    let path = directory.join("http.sock");
    fs::write(&path, "precious").unwrap();
    let mut service = OnUnixSocket::start(&directory, &path);
    assert_eq!(wait_for(&mut service.0).code(), Some(1));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_unix_socket_handed_over_is_served_and_its_path_stays() {
    let directory = scratch("handed");
    let socket = directory.join("http.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    // As systemd makes them.
    listener.set_nonblocking(true).unwrap();
    let mut command = serve_command(PROGRAM, &directory);
    command.stdin(std::process::Stdio::from(std::os::fd::OwnedFd::from(
        listener,
    )));
    let mut service = OnUnixSocket(command.spawn().unwrap());
    drop(command);
    await_that("the socket is served", SOON, || is_served(&socket));
    sleep(Duration::from_millis(500));
    assert!(is_served(&socket));
    send_signal(service.0.id(), "TERM");
    assert_eq!(wait_for(&mut service.0).code(), Some(0));
    assert!(socket.exists());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_service_kept_out_of_its_own_socket_says_what_to_do_and_ends() {
    let directory = scratch("kept-out");
    let socket = directory.join("http.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o0)).unwrap();
    // Modes do not keep root out.
    let program = directory.join("gatepostd");
    install(SERVER, &program);
    let mut command = serve_command(program.to_str().unwrap(), &directory);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
        std::os::unix::fs::chown(directory.join("secret"), Some(NOBODY), None).unwrap();
    }
    command.stdin(std::process::Stdio::from(std::os::fd::OwnedFd::from(
        listener,
    )));
    let mut service = command.spawn().unwrap();
    assert_eq!(wait_for(&mut service).code(), Some(78));
    let log = fs::read_to_string(directory.join("log")).unwrap();
    assert!(log.contains("SupplementaryGroups="), "{log}");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_lane_jammed_by_silent_senders_on_a_unix_socket_costs_a_process() {
    let directory = scratch("jam");
    let socket = directory.join("http.sock");
    let mut command = serve_command(PROGRAM, &directory);
    // Nothing limits how long a read on a Unix socket waits, and two threads read bodies.
    command
        .env("GATEPOST_LISTEN", format!("unix:{}", socket.display()))
        .env("GATEPOST_WORKERS", "5");
    let service = OnUnixSocket(command.spawn().unwrap());
    await_that("the socket is served", SOON, || is_served(&socket));
    let process = crate::serving::children_of(service.0.id())[0];
    let begin = |source: u8| {
        let mut wire = Wire::over(UnixStream::connect(&socket).unwrap());
        let forwarded = format!("X-Forwarded-For: 192.0.2.{source}\r\nContent-Length: 2000");
        wire.send(format!(
            "POST /x HTTP/1.1\r\nHost: a\r\n{forwarded}\r\n\r\n"
        ));
        wire
    };
    // One visitor holds one of the two threads, and everybody else the other.
    let mut silent: Vec<_> = (0..3).map(|_| begin(1)).collect();
    let mut other = begin(2);
    other.send([b'a'; 2_000]);
    assert_eq!(other.answer().status, 404);
    silent.push(begin(3));
    sleep(Duration::from_secs(20));
    assert!(is_served(&socket) && is_alive(process));
    await_that("the jammed process ends", Duration::from_secs(30), || {
        !is_alive(process)
    });
    assert!(is_served(&socket));
    drop(silent);
    drop(service);
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn systemd_is_told_ready_reloading_stopping_and_alive() {
    let directory = scratch("notify");
    let path = directory.join("notify");
    let notices = Notices::at(UnixDatagram::bind(&path).unwrap());
    let mut command = serve_command(PROGRAM, &directory);
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "400000");
    let mut service = Service::start_command(command, directory);
    notices.await_one("READY=1");
    notices.await_one("WATCHDOG=1");
    notices.await_one("WATCHDOG=1");
    service.signal("HUP");
    notices.await_one("RELOADING=1");
    notices.await_one("READY=1");
    // Its predecessor may still be there.
    let successor = *service.server_processes().last().unwrap();
    let environment = fs::read(format!("/proc/{successor}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("NOTIFY_SOCKET"));
    service.signal("TERM");
    notices.await_one("STOPPING=1");
    assert_eq!(service.wait().code(), Some(0));
}

#[test]
fn systemd_is_found_in_the_abstract_namespace() {
    let directory = scratch("abstract");
    let name = format!("gatepost-test-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let notices = Notices::at(socket);
    let mut command = serve_command(PROGRAM, &directory);
    command.env("NOTIFY_SOCKET", format!("@{name}"));
    let _service = Service::start_command(command, directory);
    assert_eq!(notices.next(), "READY=1");
}
