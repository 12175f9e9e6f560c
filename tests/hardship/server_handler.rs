//! What a handler sees and what becomes of its answer. This test binary is its own server process:
//! started again with `SERVER_PROCESS` set, one of its tests serves and never returns.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use gatepost::http::{Body, Refused, Request, Response};
use gatepost::protocol::words::forwarded::Cidr;
use gatepost::server::{ServerSettings, ServerStats, run};

use crate::serving::{Wire, connect, wait_for};
use crate::support::waiting::{OverAtLast, all_at_once};

#[test]
fn server_process() {
    if std::env::var_os("SERVER_PROCESS").is_none() {
        return;
    }
    let stats = Arc::new(ServerStats::default());
    let seen = Arc::clone(&stats);
    let settings = ServerSettings {
        waiting: 0,
        workers: 4,
        trusted_proxies: vec![Cidr::v4([127, 0, 0, 0], 8)],
        takes_long_body: Box::new(|_| false),
        admin_listen: None,
        is_open: Arc::new(AtomicBool::new(true)),
    };
    let handler = move |arrived: Result<&Request, Refused>| match arrived {
        Ok(request) => answer(request, &seen),
        Err(refused) => Response::empty(refused.status)
            .header("X-Refused", "yes")
            .header("X-Path", refused.request.path),
    };
    run(settings, stats, handler, |_| Response::empty(404), |_| ());
}

fn answer(request: &Request, stats: &ServerStats) -> Response {
    let text = match request.path.as_str() {
        "/panic" => panic!("secret {}", request.query),
        "/inject" => {
            return Response::empty(302)
                .header("Location", Cow::Owned(String::from("/\r\nSet-Cookie: a=b")));
        }
        "/slow" => {
            sleep(Duration::from_millis(300));
            String::from("slow")
        }
        "/slower" => {
            sleep(Duration::from_secs(2));
            String::from("slower")
        }
        "/source" => request.source.to_string(),
        "/id" => request.id.clone(),
        "/length" => request.body.len().to_string(),
        "/restless" => {
            thread::spawn(open_and_close_files);
            String::from("restless")
        }
        "/in-flight" => stats.in_flight.get().to_string(),
        "/large" => "a".repeat(200_000),
        other => format!(
            "{:?} {other} {} {:?}",
            request.method,
            request.query,
            request.headers.first("x-test")
        ),
    };
    Response::with_body(200, "text/plain", Body::Owned(text.into_bytes()))
}

/// As connections to the database do while it fails over.
fn open_and_close_files() {
    loop {
        let files = [File::open("/dev/null"), File::open("/dev/null")];
        sleep(Duration::from_micros(200));
        drop(files);
        sleep(Duration::from_micros(50));
    }
}

struct ServerProcess {
    child: Child,
    control: BufReader<UnixStream>,
    address: SocketAddr,
}

impl ServerProcess {
    fn start() -> ServerProcess {
        ServerProcess::start_on(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn start_on(listener: TcpListener) -> ServerProcess {
        let address = listener.local_addr().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "server_handler::server_process", "--nocapture"])
            .env("SERVER_PROCESS", "1")
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut process = ServerProcess {
            child,
            control: BufReader::new(ours),
            address,
        };
        process.await_report("ready");
        process
    }

    fn await_report(&mut self, wanted: &str) {
        let mut line = String::new();
        // The test harness's own lines come first.
        while line.trim_end() != wanted {
            line.clear();
            assert_ne!(
                self.control.read_line(&mut line).unwrap(),
                0,
                "the server process ended"
            );
        }
    }

    fn connect(&self) -> Wire<std::net::TcpStream> {
        Wire::over(connect(self.address))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_panic_is_answered_500_and_the_worker_lives_on() {
    let mut process = ServerProcess::start();
    let mut wire = process.connect();
    for _ in 0..20 {
        let answer = wire.get("/panic?canary");
        assert!(answer.status == 500);
        assert!(answer.header("x-refused") == Some("yes"));
        assert!(answer.body.is_empty());
    }
    assert_eq!(wire.get("/length").status, 200);
    process.child.kill().unwrap();
    let mut log = String::new();
    std::io::Read::read_to_string(process.child.stderr.as_mut().unwrap(), &mut log).unwrap();
    assert!(!log.contains("canary"), "{log}");
}

#[test]
fn a_header_with_a_line_break_is_never_sent() {
    let process = ServerProcess::start();
    let answer = process.connect().get("/inject");
    assert_eq!(answer.status, 500);
    assert_eq!(answer.header("x-refused"), Some("yes"));
    assert!(answer.header("set-cookie").is_none() && answer.header("location").is_none());
}

#[test]
fn bodies_of_every_length_arrive_whole() {
    let process = ServerProcess::start();
    let mut wire = process.connect();
    for length in [0, 1, 1_023, 1_024, 1_025, 8_192, 8_193, 65_535, 65_536] {
        assert_eq!(
            wire.post("/length", &vec![b'a'; length]).text(),
            length.to_string()
        );
    }
    let upgrading = "POST /length HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nContent-Length: 5\r\n\r\nhello, world";
    wire.send(upgrading);
    assert_eq!(wire.answer().text(), "5");
}

#[test]
fn long_answers_arrive_whole_on_a_kept_connection() {
    let process = ServerProcess::start();
    let mut wire = process.connect();
    for _ in 0..20 {
        assert_eq!(wire.get("/large").body.len(), 200_000);
    }
}

#[test]
fn refusals_look_as_the_caller_wants_also_where_the_connection_is_given_up() {
    let process = ServerProcess::start();
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n",
            413,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            411,
        ),
    ] {
        let mut wire = process.connect();
        wire.send(request);
        let answer = wire.answer();
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("x-refused"), Some("yes"));
    }
}

#[test]
fn a_handler_sees_method_path_query_and_headers() {
    let process = ServerProcess::start();
    let mut wire = process.connect();
    wire.send("GET /a%20b?c=%41&d HTTP/1.1\r\nHost: a\r\nX-Test: 1\r\n\r\n");
    assert_eq!(wire.answer().text(), "Get /a%20b c=%41&d Some(\"1\")");
    for (token, method) in [
        ("OPTIONS", "Options"),
        ("DELETE", "Delete"),
        ("PATCH", "Patch"),
        ("get", "Other"),
        ("TRACE", "Other"),
    ] {
        wire.send(format!("{token} /x HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(wire.answer().text().starts_with(&format!("{method} /x ")));
    }
    let first = wire.get("/id").text();
    assert!(first.len() == 16 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_ne!(wire.get("/id").text(), first);
}

#[test]
fn the_source_is_what_a_trusted_proxy_says() {
    let process = ServerProcess::start();
    let mut wire = process.connect();
    assert_eq!(wire.get("/source").text(), "127.0.0.1");
    for (value, source) in [
        ("198.51.100.7", "198.51.100.7"),
        ("192.0.2.1, 198.51.100.7", "198.51.100.7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("192.0.2.1, unknown", "127.0.0.1"),
    ] {
        wire.send(format!(
            "GET /source HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {value}\r\n\r\n"
        ));
        assert_eq!(wire.answer().text(), source);
    }
}

#[test]
fn pipelined_answers_keep_their_order_behind_a_slow_one() {
    let process = ServerProcess::start();
    let mut wire = process.connect();
    wire.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /length HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(wire.answer().text(), "slow");
    assert_eq!(wire.answer().text(), "0");
}

/// Each has a body of another length than the one before.
#[test]
fn a_thousand_pipelined_requests_on_each_of_eight_connections_are_answered_in_order() {
    let process = ServerProcess::start();
    let request = |length: usize| {
        let body = "a".repeat(length);
        format!("POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let all: String = (0..1_000).map(|number| request(number % 50)).collect();
    all_at_once(8, |_| {
        let mut wire = process.connect();
        // Never more than may wait.
        for (number, sent) in all.as_bytes().chunks(all.len() / 2).enumerate() {
            let answered = number * 500..(number + 1) * 500;
            wire.send(sent);
            for number in answered {
                assert_eq!(wire.answer().text(), (number % 50).to_string());
            }
        }
    });
}

#[test]
fn requests_in_flight_are_counted_down_again() {
    let process = ServerProcess::start();
    let mut wire = process.connect();
    for path in ["/panic", "/inject", "/length"] {
        wire.get(path);
    }
    // Only this request, and perhaps a probe.
    crate::support::waiting::await_that(
        "nothing else is in flight",
        Duration::from_secs(10),
        || wire.get("/in-flight").text() == "1",
    );
}

#[test]
fn a_drained_process_finishes_its_request_and_ends() {
    let mut process = ServerProcess::start();
    let mut wire = process.connect();
    wire.send("GET /slower HTTP/1.1\r\nHost: a\r\n\r\n");
    sleep(Duration::from_millis(100));
    process.control.get_mut().write_all(b"drain\n").unwrap();
    let answer = wire.answer();
    assert!(answer.text() == "slower" && answer.says_close());
    drop(wire);
    assert_eq!(wait_for(&mut process.child).code(), Some(0));
}

#[test]
fn nobody_is_cut_off_where_a_process_ends_whatever_else_it_opens_meanwhile() {
    for _ in 0..10 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // As the supervisor and the successor do, this holds whoever comes too late.
        let queue = listener.try_clone().unwrap();
        let mut process = ServerProcess::start_on(listener);
        process.connect().get("/restless");
        process.control.get_mut().write_all(b"drain\n").unwrap();
        let address = process.address;
        let is_over = AtomicBool::new(false);
        let [asked, answered] = [(); 2].map(|()| AtomicUsize::new(0));
        let mut waiting = 0;
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        asked.fetch_add(1, Ordering::SeqCst);
                        let mut wire = Wire::over(connect(address));
                        wire.send("GET /length HTTP/1.1\r\nHost: a\r\n\r\n");
                        let answer = wire.read_answer(true);
                        answered.fetch_add(usize::from(answer.is_some()), Ordering::SeqCst);
                        sleep(Duration::from_millis(3));
                    }
                });
            }
            let at_last = OverAtLast(&is_over);
            wait_for(&mut process.child);
            drop(at_last);
            sleep(Duration::from_millis(100));
            queue.set_nonblocking(true).unwrap();
            // The process knocks at its own socket, too, and says nothing.
            waiting = std::iter::from_fn(|| queue.accept().ok())
                .filter(|(stream, _)| stream.peek(&mut [0]).is_ok_and(|count| count > 0))
                .count();
        });
        let [asked, answered] = [asked, answered].map(AtomicUsize::into_inner);
        assert!(answered > 0, "nobody came meanwhile");
        assert_eq!(answered + waiting, asked, "{waiting} waited in the queue");
    }
}

#[test]
fn a_process_that_beats_goes_on_beating() {
    let mut process = ServerProcess::start();
    for _ in 0..3 {
        process.await_report("beat");
    }
}
