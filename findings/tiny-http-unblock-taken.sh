#!/usr/bin/env bash
# Guess: tiny_http's `Server::unblock` wakes a thread that waits in `recv`, whatever others do who only
# look in passing with `try_recv`; and `try_recv` says `None` only where no request has come.
# So it is: `try_recv` takes the wake-up off the queue and says `None`. The thread that then waits is not
# woken. A request that lies behind the wake-up is not told of, although it has come.
# Versions: tiny_http 0.12.0
# Seen:
#   unblock, then wait: back within half of its patience: true
#   unblock, a look (None), then wait: back within half of its patience: false
#   unblock, then a request comes: the first look finds one: false, the second: true
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cargo init --quiet --name program --vcs none .
cargo add --quiet tiny_http@=0.12.0

cat > src/main.rs <<'PROGRAM'
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tiny_http::{Response, Server};

const PATIENCE: Duration = Duration::from_secs(6);

fn waits_short(server: &Server) -> bool {
    let begun = Instant::now();
    assert!(server.recv_timeout(PATIENCE).unwrap().is_none());
    begun.elapsed() < PATIENCE / 2
}

fn main() {
    let server = Server::http("127.0.0.1:0").unwrap();
    let address = server.server_addr().to_ip().unwrap();
    let mut lines = Vec::new();

    server.unblock();
    lines.push(format!(
        "unblock, then wait: back within half of its patience: {}",
        waits_short(&server)
    ));

    server.unblock();
    assert!(server.try_recv().unwrap().is_none());
    lines.push(format!(
        "unblock, a look (None), then wait: back within half of its patience: {}",
        waits_short(&server)
    ));

    server.unblock();
    let mut client = TcpStream::connect(address).unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    sleep(Duration::from_secs(3));
    let first = server.try_recv().unwrap();
    let second = server.try_recv().unwrap();
    lines.push(format!(
        "unblock, then a request comes: the first look finds one: {}, the second: {}",
        first.is_some(),
        second.is_some()
    ));
    second.unwrap().respond(Response::empty(204)).unwrap();
    client.read_to_end(&mut Vec::new()).unwrap();

    let lines = lines.join("\n");
    println!("{lines}");
    let seen = "unblock, then wait: back within half of its patience: true
unblock, a look (None), then wait: back within half of its patience: false
unblock, then a request comes: the first look finds one: false, the second: true";
    assert_eq!(lines, seen);
}
PROGRAM

cargo run --quiet
