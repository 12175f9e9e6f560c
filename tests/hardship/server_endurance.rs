//! What wears tiny_http down, and that the service goes on: bursts, slow and idle clients, leaks, a
//! dead listener. Against the running service.

use std::io::Write;
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::serving::{Service, Wire, connect_from, is_alive};
use crate::support::waiting::{SOON, await_that};

/// A listener that no longer accepts is replaced within this.
const AFTER_DEAFNESS: Duration = Duration::from_secs(20);
/// What is not asked on for ten seconds ends; meanwhile others are served for so long.
const A_WHILE: Duration = Duration::from_secs(6);
/// A process asks for a successor after five seconds of life at the earliest.
const AFTER_A_LEAK: Duration = Duration::from_secs(20);

fn open_descriptors(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

/// So many turns, or as many as a slow machine makes in a while: enough to tell.
fn for_a_while(turns: usize, mut turn: impl FnMut()) {
    let begun = Instant::now();
    let mut made = 0;
    while made < turns && begun.elapsed() < A_WHILE {
        turn();
        made += 1;
    }
    assert!(made >= 20, "{made} turns in {A_WHILE:?}");
}

fn begin_slow_post(service: &Service) -> Wire<TcpStream> {
    let mut wire = service.connect();
    wire.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n");
    wire.send([b'a'; 1_000]);
    wire
}

#[test]
fn every_connection_of_a_burst_is_answered_while_all_are_kept() {
    let service = Service::start("burst");
    for size in [16, 64] {
        let mut wires: Vec<_> = (0..size).map(|_| service.connect()).collect();
        wires
            .iter_mut()
            .for_each(|wire| wire.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"));
        for wire in &mut wires {
            assert_eq!(wire.answer().status, 200);
        }
        for wire in &mut wires {
            assert_eq!(wire.get("/healthz").status, 200);
        }
    }
}

#[test]
fn idle_connections_do_not_keep_others_from_being_served() {
    let service = Service::start("idle");
    let process = service.server_process();
    let mut idle: Vec<_> = (0..150).map(|_| service.connect()).collect();
    for_a_while(50, || assert!(service.is_healthy()));
    for wire in idle.iter_mut().step_by(10) {
        assert_eq!(wire.get("/healthz").status, 200);
    }
    assert_eq!(service.server_process(), process);
}

#[test]
fn half_sent_heads_do_not_keep_others_from_being_served() {
    let service = Service::start("half");
    let mut half: Vec<_> = (0..100).map(|_| service.connect()).collect();
    half.iter_mut()
        .for_each(|wire| wire.send("GET /healthz HTTP/1.1\r\nHost: a\r\nX-"));
    for_a_while(50, || assert!(service.is_healthy()));
    for wire in &mut half {
        wire.send("Y: z\r\n\r\n");
        assert_eq!(wire.answer().status, 200);
    }
}

#[test]
fn slow_bodies_fill_their_lane_and_nothing_else() {
    let service = Service::start("lane");
    let process = service.server_process();
    // Sixteen workers read bodies in eight threads; the others wait in line.
    let mut slow: Vec<_> = (0..24).map(|_| begin_slow_post(&service)).collect();
    sleep(Duration::from_millis(200));
    let mut kept = service.connect();
    for_a_while(200, || {
        assert_eq!(kept.get("/healthz").status, 200);
        assert_ne!(kept.post("/x", b"short").status, 408);
    });
    for wire in &mut slow {
        wire.send([b'a'; 2_000]);
    }
    for wire in &mut slow {
        assert_ne!(wire.answer().status, 408);
        assert_eq!(wire.get("/healthz").status, 200);
    }
    assert_eq!(service.server_process(), process);
}

#[test]
fn one_source_fills_its_half_of_the_lane_and_another_is_served() {
    let service = Service::start_with("full", &[("GATEPOST_WORKERS", "5")]);
    // Two threads and sixteen places, of which one source gets half.
    let mut slow = vec![begin_slow_post(&service)];
    // It has its thread, and no place in line, when the others come.
    sleep(Duration::from_millis(200));
    slow.extend((0..11).map(|_| begin_slow_post(&service)));
    let refused = || service.log().matches("status=503").count();
    await_that("three are turned away", SOON, || refused() == 3);
    let begun = Instant::now();
    for _ in 0..5 {
        let mut other = Wire::over(connect_from([127, 0, 0, 2], service.address));
        other.post("/connect/userinfo", &[b'a'; 2_000]);
    }
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "it waited for the slow ones: {:?}",
        begun.elapsed()
    );
    slow.iter_mut().for_each(|wire| wire.send([b'a'; 2_000]));
    let answers: Vec<_> = slow.iter_mut().map(Wire::answer).collect();
    let (refused, served): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == 503);
    assert!(
        refused.len() == 3 && served.iter().all(|answer| !answer.says_close()),
        "{answers:?}"
    );
    assert!(
        refused
            .iter()
            .all(|answer| answer.says_close() && answer.header("retry-after") == Some("2"))
    );
}

#[test]
fn a_body_that_takes_too_long_is_given_up() {
    let service = Service::start("slow");
    let mut dribbling = begin_slow_post(&service);
    let mut silent = begin_slow_post(&service);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(11) && dribbling.try_send("a") {
        sleep(Duration::from_millis(100));
    }
    for wire in [&mut dribbling, &mut silent] {
        let answer = wire.answer();
        assert!(answer.status == 408 && answer.says_close(), "{answer:?}");
    }
    assert!(service.is_healthy());
}

#[test]
fn a_client_that_ends_in_the_middle_of_its_body_leaves_nothing_behind() {
    let service = Service::start("left-in-the-middle");
    let process = service.server_process();
    assert!(service.is_healthy());
    let before = open_descriptors(process);
    // One after the other: of many at once some are turned away, and the connection of such a one
    // is given up on purpose.
    for number in 1..=50 {
        drop(begin_slow_post(&service));
        let is_answered = || service.log().matches("path=/x ").count() == number;
        await_that("it is answered", SOON, is_answered);
    }
    await_that(
        "all connections are closed",
        Duration::from_secs(10),
        || open_descriptors(process) <= before + 4,
    );
    assert!(!service.log().contains("status=503"));
    assert!(service.is_healthy());
}

#[test]
fn versions_that_dead_lock_their_connection_cost_a_process_not_the_service() {
    let service = Service::start_with("http2", &[("DESCRIPTORS", "256")]);
    let leaking = service.server_process();
    let mut stuck = Vec::new();
    for _ in 0..100 {
        let mut wire = service.connect();
        wire.send("GET / HTTP/2.0\r\nHost: a\r\n\r\n");
        stuck.push(wire);
        assert!(service.is_healthy());
    }
    await_that("a successor serves", AFTER_A_LEAK, || {
        service.log().matches("serves").count() >= 2
    });
    assert!(service.is_healthy());
    await_that("the leaking process ends", AFTER_A_LEAK, || {
        !is_alive(leaking)
    });
    assert!(service.is_healthy());
}

#[test]
fn connections_given_up_are_counted_and_end_with_their_process() {
    let service = Service::start("abandoned");
    let process = service.server_process();
    for _ in 0..255 {
        let mut wire = service.connect();
        wire.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
        assert_eq!(wire.answer().status, 413);
    }
    sleep(Duration::from_secs(7));
    assert_eq!(service.server_process(), process, "255 are borne");
    let mut wire = service.connect();
    wire.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
    assert_eq!(wire.answer().status, 413);
    await_that("a successor serves", AFTER_A_LEAK, || {
        service.log().matches("serves").count() >= 2
    });
    await_that("the old process ends", AFTER_A_LEAK, || !is_alive(process));
    assert!(service.is_healthy());
}

#[test]
fn a_listener_that_stops_accepting_is_replaced_and_connections_wait() {
    outlive_a_crowd("deaf", "128");
}

#[test]
fn a_listener_that_dies_without_a_word_is_replaced_and_connections_wait() {
    // A connection takes two descriptors: with one left, tiny_http's accepting thread panics on the
    // second.
    outlive_a_crowd("mute", "127");
}

fn outlive_a_crowd(name: &str, descriptors: &str) {
    let service = Service::start_with(name, &[("DESCRIPTORS", descriptors)]);
    let deaf = service.server_process();
    // More at once than there are descriptors: accepting fails, with a word or without, and is
    // never tried again.
    let crowd: Vec<_> = (0..70).map(|_| service.connect()).collect();
    await_that("accepting fails", AFTER_DEAFNESS, || {
        let log = service.log();
        log.contains("connections are no longer accepted") || log.contains("panic at")
    });
    drop(crowd);
    let begun = Instant::now();
    let mut waiting: Vec<_> = (0..10).map(|_| service.connect()).collect();
    for wire in &mut waiting {
        assert_eq!(wire.get("/healthz").status, 200);
    }
    assert!(begun.elapsed() < AFTER_DEAFNESS, "{:?}", begun.elapsed());
    await_that("the deaf process ends", AFTER_A_LEAK, || !is_alive(deaf));
}

/// A connection with a small window.
fn unreading(service: &Service) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(2_048).unwrap();
    socket.connect(&service.address.into()).unwrap();
    TcpStream::from(socket)
}

/// The same, full of requests whose answers nobody reads.
fn unread(service: &Service) -> TcpStream {
    let mut stream = unreading(service);
    stream
        .write_all(
            "GET /static/app.css HTTP/1.1\r\nHost: a\r\n\r\n"
                .repeat(300)
                .as_bytes(),
        )
        .unwrap();
    stream
}

#[test]
fn clients_that_do_not_read_their_answers_stop_nobody() {
    let service = Service::start_with("unread", &[("GATEPOST_WORKERS", "5")]);
    let process = service.server_process();
    let unread: Vec<_> = (0..24).map(|_| unread(&service)).collect();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(8) {
        assert!(service.is_healthy());
        sleep(Duration::from_millis(5));
    }
    assert_eq!(service.server_process(), process);
    drop(unread);
    assert!(service.is_healthy());
}

#[test]
fn a_client_that_never_has_many_requests_waiting_and_reads_nothing_is_dropped() {
    let service = Service::start_with("paced", &[("GATEPOST_WORKERS", "5")]);
    let process = service.server_process();
    let mut paced: Vec<_> = (0..10).map(|_| unreading(&service)).collect();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(8) {
        for stream in &mut paced {
            // Refused writes are the end that this is about.
            let _ = stream.write_all(
                "GET /static/app.css HTTP/1.1\r\nHost: a\r\n\r\n"
                    .repeat(4)
                    .as_bytes(),
            );
        }
        assert!(service.is_healthy());
    }
    assert_eq!(service.server_process(), process);
}
