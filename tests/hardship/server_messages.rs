//! What may come in over one connection, and what goes out: framing, limits, persistence. Against
//! the running service.

use std::net::SocketAddr;
use std::time::Duration;

use crate::serving::Service;
use crate::support::http::free_port;
use crate::support::waiting::{SOON, await_that};

/// Sends `request` over a connection of its own; answers the status.
fn status_of(service: &Service, request: &str) -> u16 {
    let mut wire = service.connect();
    wire.send(request);
    wire.answer().status
}

fn with_headers(fields: &str) -> String {
    format!("POST /x HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn answers_carry_length_and_date_and_no_banner() {
    let service = Service::start("banner");
    let answer = service.connect().get("/healthz");
    let length = answer.header("content-length").unwrap();
    assert_eq!(length, answer.body.len().to_string());
    let date = answer.header("date").unwrap();
    assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
    assert!(answer.header("server").is_none() && answer.header("connection").is_none());
    assert!(answer.header("transfer-encoding").is_none());
}

#[test]
fn a_connection_serves_many_requests_and_pipelined_ones_in_order() {
    let service = Service::start("pipeline");
    let mut wire = service.connect();
    for _ in 0..50 {
        assert_eq!(wire.get("/healthz").status, 200);
    }
    let pair = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nPOST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    for _ in 0..10 {
        wire.send(pair.repeat(4));
        for _ in 0..4 {
            assert_eq!(wire.answer().status, 200);
            assert_ne!(wire.answer().status, 200);
        }
    }
}

#[test]
fn more_pipelined_requests_than_may_wait_are_told_that_there_is_an_end() {
    let service = Service::start("too-many");
    let mut wire = service.connect();
    wire.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".repeat(10_000));
    let mut answered = 1;
    while !wire.answer().says_close() {
        answered += 1;
    }
    assert!((1..10_000).contains(&answered), "{answered}");
    wire.read_nothing_for(Duration::from_millis(500));
    assert!(service.is_healthy());
}

#[test]
fn after_ambiguous_framing_nothing_is_served_and_the_connection_ends() {
    let service = Service::start("smuggled");
    let smuggled = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    let ambiguous = [
        "Content-Length: 0\r\nContent-Length: 34\r\n",
        "Content-Length: +34\r\n",
        "Content-Length: 34, 34\r\n",
        "X: a\nContent-Length: 34\r\n",
    ];
    let mut wires: Vec<_> = ambiguous.iter().map(|_| service.connect()).collect();
    for (wire, fields) in wires.iter_mut().zip(ambiguous) {
        wire.send(with_headers(fields) + smuggled);
        let answer = wire.answer();
        assert!(answer.status == 400, "{fields}: {answer:?}");
        assert!(answer.says_close(), "{fields}: {answer:?}");
        // Nor is what comes later.
        wire.send(smuggled);
    }
    for wire in &mut wires {
        assert!(wire.ends(), "the smuggled request was answered");
    }
    let crowded = format!("Content-Length: +34\r\n{}", "X: 1\r\n".repeat(100));
    let mut wire = service.connect();
    wire.send(with_headers(&crowded) + smuggled);
    assert_eq!(wire.answer().status, 431);
    wire.read_nothing_for(Duration::from_millis(500));
}

#[test]
fn what_the_server_refuses_itself_is_logged_without_its_query_and_programs_get_json() {
    let service = Service::start("refused-log");
    for (path, fields, status, is_json) in [
        ("/connect/token", "Content-Length: 2000000", 413, true),
        ("/connect/userinfo", "Transfer-Encoding: chunked", 411, true),
        ("/connect/token", "Content-Length: 1, 1", 400, true),
        ("/login", "Content-Length: 2000000", 413, false),
    ] {
        let mut wire = service.connect();
        wire.send(format!(
            "POST {path}?secret HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n"
        ));
        let answer = wire.answer();
        assert_eq!((answer.status, answer.says_close()), (status, true));
        let text = answer.text();
        let said_json = text.starts_with("{\"error\":\"invalid_request\"");
        assert_eq!(said_json, is_json, "{text}");
        let line = format!("method=POST path={path} status={status} ");
        await_that("the log has it", SOON, || service.log().contains(&line));
    }
    let mut wire = service.connect();
    wire.send("GET nowhere?secret HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(wire.answer().status, 400);
    await_that("the log has it", SOON, || {
        service.log().contains("method=GET path= status=400 ")
    });
    assert!(!service.log().contains("secret "), "{}", service.log());
    assert!(!service.log().contains("?"), "{}", service.log());
}

#[test]
fn close_is_said_and_done() {
    let service = Service::start("close");
    let mut wire = service.connect();
    wire.send("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let answer = wire.answer();
    assert!(answer.status == 200 && answer.says_close());
    assert!(wire.ends());
}

#[test]
fn http_1_0_clients_are_served_once_or_kept_when_they_ask() {
    let service = Service::start("old");
    let mut wire = service.connect();
    wire.send("GET /healthz HTTP/1.0\r\n\r\n");
    let answer = wire.answer();
    assert!(answer.status == 200 && answer.says_close());
    assert!(wire.ends());
    let mut wire = service.connect();
    for _ in 0..2 {
        wire.send("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(wire.answer().header("connection"), Some("keep-alive"));
    }
}

#[test]
fn head_gets_the_length_and_no_body() {
    let service = Service::start("head");
    let mut wire = service.connect();
    let length = wire.get("/healthz").body.len().to_string();
    for path in ["/healthz", "/nowhere"] {
        wire.send(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let answer = wire.answer_without_body();
        assert!(path != "/healthz" || answer.header("content-length") == Some(&length));
    }
    // A body after HEAD would be read as the next answer's head.
    assert_eq!(wire.get("/healthz").status, 200);
    wire.send("HEAD http:// HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(wire.answer_without_body().status, 400);
    wire.read_nothing_for(Duration::from_millis(200));
}

#[test]
fn transfer_encodings_are_refused_and_their_bytes_are_never_a_request() {
    let service = Service::start("chunked");
    let hidden = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = hidden.len();
    let chunked = format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{hidden}\r\n0\r\n");
    for (fields, status) in [
        (chunked.clone(), 411),
        (format!("Content-Length: 4\r\n{chunked}"), 400),
    ] {
        let mut wire = service.connect();
        wire.send(with_headers(&fields));
        wire.send(hidden);
        let answer = wire.answer();
        assert_eq!(answer.status, status);
        assert!(answer.says_close(), "{}", answer.text());
        let text = answer.text();
        assert!(text.ends_with("</html>"), "{text}");
        let says_how = text.contains("send it with a Content-Length");
        assert_eq!(says_how, status == 411, "{text}");
        wire.read_nothing_for(Duration::from_millis(200));
    }
    assert!(service.is_healthy());
}

#[test]
fn a_length_that_is_none_is_refused() {
    let service = Service::start("length");
    for length in "abc|-1|+5|1, 1|0x1|99999999999999999999|5 5".split('|') {
        let request = with_headers(&format!("Content-Length: {length}\r\n"));
        let status = status_of(&service, &format!("{request}hello"));
        assert_eq!(status, 400, "{length}");
    }
    for pair in [
        "Content-Length: 0\r\nContent-Length: 1\r\n",
        "Content-Length: 2\r\nContent-Length: 02\r\n",
    ] {
        let mut wire = service.connect();
        wire.send(with_headers(pair));
        wire.send("ab");
        assert_eq!(wire.answer().status, 400, "{pair}");
    }
    assert!(service.is_healthy());
}

#[test]
fn an_enormous_length_is_refused_and_nothing_dies_of_it() {
    let service = Service::start("enormous");
    let process = service.server_process();
    for length in "1048577 1000000000000000 18446744073709551615 9223372036854775807".split(' ') {
        let mut wire = service.connect();
        wire.send(with_headers(&format!("Content-Length: {length}\r\n")));
        let answer = wire.answer();
        assert_eq!(answer.status, 413, "{length}");
        assert!(answer.says_close(), "{}", answer.text());
        assert!(answer.text().ends_with("</html>"), "{}", answer.text());
        // The client lost interest; that must not free what cannot be freed.
        drop(wire);
        assert!(service.is_healthy());
    }
    assert_eq!(service.server_process(), process);
}

#[test]
fn a_body_over_64_kib_is_refused_and_the_connection_goes_on() {
    let service = Service::start("body");
    let mut wire = service.connect();
    assert_eq!(wire.post("/x", &vec![b'a'; 64 * 1_024 + 1]).status, 413);
    assert_eq!(wire.post("/x", &vec![b'a'; 1_024 * 1_024]).status, 413);
    assert_ne!(wire.post("/x", &vec![b'a'; 64 * 1_024]).status, 413);
    assert_ne!(wire.post("/x", &[b'a'; 1_025]).status, 413);
    assert_eq!(wire.get("/healthz").status, 200);
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on_or_refused() {
    let service = Service::start("expect");
    let mut wire = service.connect();
    let short = "Expect: 100-continue\r\nContent-Length: 5\r\n";
    wire.send(with_headers(short));
    assert_eq!(wire.answer().status, 100);
    wire.send("hello");
    assert!(wire.answer().status >= 200);
    assert_eq!(wire.get("/healthz").status, 200);
    let long = "Expect: 100-continue\r\nContent-Length: 70000\r\n";
    wire.send(with_headers(long));
    assert_eq!(wire.answer().status, 413);
    let unexpected = with_headers("Expect: the-unexpected\r\n");
    assert_eq!(status_of(&service, &unexpected), 417);
}

#[test]
fn what_is_too_long_is_refused() {
    let service = Service::start("long");
    let long = "a".repeat(32 * 1_024);
    let (within, above) = (format!("/healthz?{long}"), format!("/healthz?{long}a"));
    let two_long = format!("X: {long}\r\nY: {long}\r\n");
    let many_hops = format!("X-Forwarded-For: {}\r\n", "a,".repeat(5_120));
    for (case, target, fields, status) in [
        ("a query", &*within, "", 200),
        ("a longer query", &above, "", 414),
        ("a path", &format!("/{long}"), "", 414),
        ("two long fields", "/healthz", &*two_long, 431),
        ("99 fields", "/healthz", &"X: 1\r\n".repeat(99), 200),
        ("100 fields", "/healthz", &"X: 1\r\n".repeat(100), 431),
        ("many hops", "/healthz", &many_hops, 200),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        assert_eq!(status_of(&service, &request), status, "{case}");
    }
}

#[test]
fn heads_outside_the_grammar_are_refused() {
    let service = Service::start("grammar");
    for request in [
        "GET /healthz HTTP/1.1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\nY: b\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n",
        "GET /healthz#x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /health\x01z HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        "G\x01T /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET  /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /healthz HTTP/1.2\r\nHost: a\r\n\r\n",
        "nonsense\r\n\r\n",
    ] {
        assert_eq!(status_of(&service, request), 400, "{request:?}");
    }
    let absolute = "GET http://a/healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(status_of(&service, absolute), 200);
}

#[test]
fn bytes_above_ascii_end_their_connection_and_no_other() {
    let service = Service::start("ascii");
    let process = service.server_process();
    let mut bystander = service.connect();
    assert_eq!(bystander.get("/healthz").status, 200);
    let mut wire = service.connect();
    wire.send("GET /healthz HTTP/1.1\r\nHost: a\r\nX: \u{e4}\r\n\r\n");
    assert!(wire.ends());
    assert_eq!(bystander.get("/healthz").status, 200);
    assert_eq!(service.server_process(), process);
}

#[test]
fn the_probe_field_means_nothing_without_the_nonce() {
    let service = Service::start("nonce");
    let mut wire = service.connect();
    wire.send("GET /healthz HTTP/1.1\r\nHost: a\r\nGatepost-Probe: 00000000000000000000000000000000\r\n\r\n");
    let answer = wire.answer();
    assert!(answer.status == 200 && answer.header("gatepost-probe").is_none());
}

#[test]
fn the_admin_address_serves_one_request_per_connection_and_no_bodies() {
    let port = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let service = Service::start_with("admin", &[("GATEPOST_ADMIN_LISTEN", &port.to_string())]);
    let mut wire = crate::serving::Wire::over(crate::serving::connect(port));
    let answer = wire.get("/healthz");
    assert!(answer.status == 200 && answer.says_close());
    let mut wire = crate::serving::Wire::over(crate::serving::connect(port));
    wire.send(with_headers("Content-Length: 5000\r\n"));
    assert_eq!(wire.answer().status, 413);
    // Two processes share the address while one follows the other.
    let old = service.server_process();
    service.signal("HUP");
    await_that("another process serves", SOON, || {
        let mut processes = service.server_processes().into_iter();
        processes.all(|process| process != old)
    });
    let mut wire = crate::serving::Wire::over(crate::serving::connect(port));
    assert_eq!(wire.get("/healthz").status, 200);
}
