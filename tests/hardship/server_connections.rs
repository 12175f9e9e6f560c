//! What is remembered about a connection: nothing that outlives it, and nothing that touches
//! another. Against the running service, from one source port.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::serving::{Service, Wire, connect};
use crate::support::http::free_port;
use crate::support::waiting::{OverAtLast, await_that, threads_of};

const GOOD: &str = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects from this port. When it is dropped, the connection is reset, and the port is free at
/// once; but another program of this machine may have been given it for a connection of its own.
fn connect_from_port(port: u16, address: SocketAddr) -> TcpStream {
    let began = Instant::now();
    loop {
        match try_from_port(port, address) {
            Err(error)
                if error.kind() == ErrorKind::AddrNotAvailable && began.elapsed() < PATIENCE =>
            {
                sleep(Duration::from_millis(10));
            }
            stream => return stream.unwrap(),
        }
    }
}

fn try_from_port(port: u16, address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.set_linger(Some(Duration::ZERO)).unwrap();
    // What does not read its answers shall have little room for them.
    socket.set_recv_buffer_size(2_048).unwrap();
    socket
        .bind(&SocketAddr::from(([127, 0, 0, 1], port)).into())
        .unwrap();
    socket.connect(&address.into())?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Ok(stream)
}

/// How often the thread that looks for connections without a thread has gone to sleep. It takes a
/// moment until that thread has its name.
fn rounds_of_knocking(process: u32) -> Option<u64> {
    let mut statuses = threads_of(process, "status").into_iter();
    let knocking = statuses.find(|status| status.starts_with("Name:\tknock\n"))?;
    let mut lines = knocking.lines();
    let slept = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    slept?.trim().parse().ok()
}

#[test]
fn an_idle_process_knocks_at_its_listener_four_times_a_second() {
    let service = Service::start("idle");
    assert!(service.is_healthy());
    let process = service.server_process();
    await_that("the thread is there", PATIENCE, || {
        rounds_of_knocking(process).is_some()
    });
    // A look at the connections that took long, as on a busy machine, is not repeated for a while.
    await_that("it is calm", PATIENCE * 6, || {
        let before = rounds_of_knocking(process).unwrap();
        let began = Instant::now();
        sleep(Duration::from_secs(3));
        let rounds = (rounds_of_knocking(process).unwrap() - before) as f64;
        let seconds = began.elapsed().as_secs_f64();
        assert!(rounds > 1.0, "it still does: {rounds} in {seconds} s");
        rounds < 10.0 * seconds
    });
}

fn statuses(wire: &mut Wire<TcpStream>, count: usize) -> Vec<u16> {
    (0..count).map(|_| wire.answer().status).collect()
}

/// Sends, reads so many answers, and resets the connection.
fn end_by(service: &Service, port: u16, requests: &str, answers: &[u16]) {
    let mut wire = Wire::over(connect_from_port(port, service.address));
    wire.send(requests);
    assert_eq!(
        statuses(&mut wire, answers.len()),
        answers,
        "{:.80}",
        requests
    );
}

#[test]
fn from_the_port_of_an_ended_connection_a_new_one_is_answered_at_once() {
    let service = Service::start("one-port");
    let port = free_port();
    let post = |fields: &str| format!("POST /x HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let ways = [
        (
            String::from("GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n"),
            vec![400],
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n{}",
                GOOD.repeat(20)
            ),
            vec![400],
        ),
        (post("Content-Length: +34\r\n") + GOOD, vec![400]),
        (post("Transfer-Encoding: chunked\r\n"), vec![411]),
        (post("Content-Length: 2000000\r\n"), vec![413]),
        (post("Content-Length: 3000\r\n") + "a", vec![]),
        (GOOD.repeat(500), vec![200]),
        (GOOD.repeat(500), vec![]),
        (String::from("nonsense\r\n\r\n"), vec![400]),
        (
            String::from("GET /healthz HTTP/1.1\r\nHost: a\r\nX: \u{e4}\r\n\r\n"),
            vec![],
        ),
    ];
    for _ in 0..3 {
        for (requests, answers) in &ways {
            end_by(&service, port, requests, answers);
            end_by(&service, port, &GOOD.repeat(3), &[200, 200, 200]);
        }
    }
}

/// CVE-2026-66752: where the end of a body is in doubt, what follows it is no request.
#[test]
fn nothing_behind_a_transfer_encoding_is_taken_for_a_request() {
    let service = Service::start("encodings");
    let encodings = [
        "chunked",
        "Chunked",
        "xchunked",
        "gzip, chunked",
        "chunked,",
        "chunked, identity",
        "identity",
        "\tchunked",
        "\"chunked\"",
    ];
    let lengths = ["", "Content-Length: 5\r\n", "Content-Length: 0\r\n"];
    let mut asked = Vec::new();
    for encoding in encodings {
        for length in lengths {
            let mut stream = TcpStream::connect(service.address).unwrap();
            let head = format!("POST /x HTTP/1.1\r\nHost: a\r\n{length}");
            let rest = format!("Transfer-Encoding: {encoding}\r\n\r\n0\r\n\r\n{GOOD}");
            stream
                .write_all(format!("{head}{rest}").as_bytes())
                .unwrap();
            asked.push((format!("{encoding:?} {length:?}"), stream));
        }
    }
    // Time enough for a second answer.
    sleep(Duration::from_secs(2));
    for (case, mut stream) in asked {
        let soon = Some(Duration::from_millis(50));
        stream.set_read_timeout(soon).unwrap();
        let mut answers = Vec::new();
        // The connection is left open for a while, and then reset.
        let _ = stream.read_to_end(&mut answers);
        let answers = String::from_utf8_lossy(&answers);
        let statuses: Vec<&str> = answers
            .lines()
            .filter_map(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3))
            .collect();
        assert!(
            matches!(statuses[..], ["400" | "411"]),
            "{case}: {statuses:?}"
        );
    }
}

#[test]
fn from_the_port_of_one_that_read_nothing_a_new_one_is_answered_at_once() {
    let service = Service::start_with("one-port-unread", &[("GATEPOST_WORKERS", "5")]);
    let port = free_port();
    for _ in 0..3 {
        let mut stream = connect_from_port(port, service.address);
        let css = "GET /static/app.css HTTP/1.1\r\nHost: a\r\n\r\n";
        // Pipelined, then one after the other: also when the server has long given up writing.
        stream.write_all(css.repeat(300).as_bytes()).unwrap();
        for _ in 0..30 {
            sleep(Duration::from_millis(20));
            let _ = stream.write_all(css.as_bytes());
        }
        drop(stream);
        end_by(&service, port, GOOD, &[200]);
    }
}

#[test]
fn those_that_read_nothing_do_not_hold_up_the_port_of_another() {
    const SILENT: usize = 60;
    let service = Service::start_with("many-unread", &[("GATEPOST_WORKERS", "16")]);
    let css = "GET /static/app.css HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut silent: Vec<_> = (0..SILENT)
        .map(|_| connect_from_port(0, service.address))
        .collect();
    silent
        .iter_mut()
        .for_each(|stream| stream.write_all(css.repeat(300).as_bytes()).unwrap());
    let is_over = AtomicBool::new(false);
    let took = scope(|scope| {
        let _over_at_last = OverAtLast(&is_over);
        // They go on asking, so that each of them is looked at again and again.
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                silent
                    .iter_mut()
                    .for_each(|stream| drop(stream.write_all(css.as_bytes())));
                sleep(Duration::from_millis(10));
            }
        });
        sleep(Duration::from_secs(3));
        let (port, begun) = (free_port(), Instant::now());
        for _ in 0..10 {
            end_by(
                &service,
                port,
                "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n",
                &[400],
            );
        }
        begun.elapsed()
    });
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn what_follows_the_end_on_the_same_connection_is_never_answered() {
    let service = Service::start("follows");
    let mut wire = Wire::over(connect_from_port(free_port(), service.address));
    wire.send(format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n{GOOD}"
    ));
    assert_eq!(wire.answer().status, 400);
    for _ in 0..30 {
        wire.send(GOOD);
        wire.read_nothing_for(Duration::from_millis(50));
    }
    assert!(service.is_healthy());
}

#[test]
fn what_is_refused_and_what_is_not_answered_is_counted() {
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let service = Service::start_with("counted", &[("GATEPOST_ADMIN_LISTEN", &admin.to_string())]);
    let count = |name: &str| {
        let text = Wire::over(connect(admin)).get("/metrics").text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .to_owned();
        line.trim().parse::<u64>().unwrap()
    };
    let names = [
        "gatepost_requests_refused_total",
        "gatepost_requests_unanswered_total",
    ];
    let before = names.map(count);
    let mut wire = service.connect();
    wire.send(format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n{GOOD}{GOOD}"
    ));
    assert_eq!(wire.answer().status, 400);
    await_that("both are counted", PATIENCE, || {
        names.map(count) == [before[0] + 1, before[1] + 2]
    });
}
