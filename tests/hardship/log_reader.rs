//! Whoever reads the log stops reading: the service goes on, and says afterwards what is missing.

use std::io::{BufRead, BufReader, PipeReader};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crate::serving::{PROGRAM, Service, kill, scratch, serve_command};
use crate::support::claims::Says;
use crate::support::http::{ask_alone, free_address};
use crate::support::waiting::await_that;

/// Nothing that is waited for takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);
/// More requests than a pipe holds lines.
const MORE_THAN_A_PIPE: usize = 1_000;
/// More than the process itself holds besides.
const MORE_THAN_ALL: usize = 10_000;

/// A service whose standard error is a pipe, its other end, and the address of its metrics.
fn start(name: &str) -> (Service, PipeReader, String) {
    let (directory, admin) = (scratch(name), free_address());
    let (unread, log) = std::io::pipe().unwrap();
    let mut command = serve_command(PROGRAM, &directory);
    command.env("GATEPOST_ADMIN_LISTEN", &admin).stderr(log);
    (Service::start_command(command, directory), unread, admin)
}

fn ask(service: &Service, times: usize) {
    let mut wire = service.connect();
    for _ in 0..times {
        assert_eq!(wire.get("/nowhere").status, 404);
    }
}

fn dropped(admin: &str) -> u64 {
    let (_, text) = ask_alone(admin, "GET /metrics");
    let sample = text
        .lines()
        .find_map(|line| line.strip_prefix("gatepost_log_lines_dropped_total "));
    sample.expect("the metric").parse().unwrap()
}

/// The lines, as they come.
fn read(pipe: PipeReader) -> Receiver<String> {
    let (told, lines) = channel();
    spawn(move || {
        BufReader::new(pipe)
            .lines()
            .map_while(Result::ok)
            .try_for_each(|line| told.send(line))
    });
    lines
}

fn await_line(lines: &Receiver<String>, what: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let line = lines
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            .expect(what);
        if line.contains(what) {
            return line;
        }
    }
}

#[test]
fn a_log_that_nobody_reads_stops_neither_the_server_process_nor_its_supervisor() {
    let (service, unread, admin) = start("unread");
    ask(&service, MORE_THAN_A_PIPE);
    assert_eq!(dropped(&admin), 0);
    // The supervisor says that it ended, and the next one that it begins: nobody reads that either.
    let first = service.server_process();
    kill(first);
    await_that("another process serves", PATIENCE, || {
        service.server_process() != first
    });
    ask(&service, MORE_THAN_ALL);
    // The process that has just begun has something to say of its own, a moment later.
    let mut before = dropped(&admin);
    await_that("it says nothing more", PATIENCE, || {
        sleep(Duration::from_secs(1));
        let earlier = std::mem::replace(&mut before, dropped(&admin));
        earlier == before
    });
    assert!(before > 0);
    let lines = read(unread);
    await_line(&lines, &format!("server process {first} ended"));
    let told = await_line(&lines, "log lines were dropped here");
    told.assert_says(&format!("ERROR {before} log lines were dropped here"));
    service.connect().get("/heard-again");
    await_line(&lines, "path=/heard-again");
    assert_eq!(
        dropped(&admin),
        before,
        "told once, and nothing more is dropped"
    );
}

#[test]
fn the_last_line_is_waited_for_and_a_reader_who_is_gone_for_a_second_only() {
    for is_read in [true, false] {
        let (mut service, unread, _) = start("last-line");
        ask(&service, MORE_THAN_A_PIPE);
        service.signal("TERM");
        let told = Instant::now();
        if is_read {
            let lines = read(unread);
            assert_eq!(service.wait().code(), Some(0));
            let lines: Vec<String> = lines.iter().collect();
            assert!(lines.last().unwrap().ends_with("server process ends"));
            let requests = lines.iter().filter(|line| line.contains("path=/nowhere"));
            assert_eq!(requests.count(), MORE_THAN_A_PIPE);
        } else {
            assert_eq!(service.wait().code(), Some(0));
            // Less than the twelve seconds after which the supervisor kills.
            assert!(
                told.elapsed() < Duration::from_secs(8),
                "{:?}",
                told.elapsed()
            );
        }
    }
}
