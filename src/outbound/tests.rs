//! Against real servers on this machine, which misbehave in every way that matters.

mod servers;

use std::io::Write;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::*;
use servers::{Authority, PlainServer, TlsServer};

fn loopback() -> Vec<Cidr> {
    Cidr::parse_list("127.0.0.0/8,::1").unwrap()
}

fn client() -> Outbound {
    Outbound::new(&loopback(), None, 4).unwrap()
}

fn answering(status: &'static str, headers: &'static str, body: &'static str) -> PlainServer {
    PlainServer::start(move |stream, _| {
        let length = body.len();
        let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
    })
}

#[test]
fn what_is_sent_is_what_was_asked_for_and_no_more() {
    let server = answering("200 OK", "Set-Cookie: a=b\r\n", "");
    let client = client();
    client.send(&OutboundRequest::get(&server.url("/a")).header("Authorization", "Bearer x")).unwrap();
    client.send(&OutboundRequest::post_form(&server.url("/b"), &[("code", "a b&c"), ("é", "")])).unwrap();
    client.send(&OutboundRequest::post_json(&server.url("/c"), &json!({"a": true}))).unwrap();
    let requests = server.requests();
    let [get, form, json] = &requests[..] else { panic!("{requests:?}") };
    assert!(get.starts_with("GET /a HTTP/1.1\r\n") && get.contains("\r\nauthorization: Bearer x\r\n"), "{get}");
    assert!(
        form.contains("application/x-www-form-urlencoded") && form.ends_with("\r\n\r\ncode=a+b%26c&%C3%A9="),
        "{form}"
    );
    assert!(
        json.contains("\r\ncontent-type: application/json\r\n") && json.ends_with("\r\n\r\n{\"a\":true}"),
        "{json}"
    );
    for request in &requests {
        assert!(request.contains("\r\nuser-agent: Gatepost\r\n"), "{request}");
        assert!(!request.contains("cookie:") && !request.contains("accept-encoding"), "{request}");
    }
}

#[test]
fn no_redirect_is_followed() {
    let elsewhere = answering("200 OK", "", "loot");
    let target: &'static str = Box::leak(format!("Location: {}\r\n", elsewhere.url("/")).into_boxed_str());
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let server = answering(status, target, "");
        let answer = client().send(&OutboundRequest::get(&server.url("/"))).unwrap();
        assert!((300..400).contains(&answer.status), "{status}");
        let posted = client().send(&OutboundRequest::post_form(&server.url("/"), &[("secret", "s")])).unwrap();
        assert!((300..400).contains(&posted.status), "{status}");
    }
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
}

#[test]
fn an_answer_that_is_too_long_is_not_read_to_its_end() {
    let declared = PlainServer::start(|stream, _| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n");
        while stream.write_all(&[b'x'; 65_536]).is_ok() {}
    });
    let endless = PlainServer::start(|stream, _| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while write!(stream, "4000\r\n{}\r\n", "x".repeat(0x4000)).is_ok() {}
    });
    let unframed = PlainServer::start(|stream, _| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 65_536]).is_ok() {}
    });
    for server in [declared, endless, unframed] {
        assert_eq!(client().send(&OutboundRequest::get(&server.url("/"))), Err(OutboundError::TooLong));
    }
    let exact = answering("200 OK", "", "0123456789");
    let url = exact.url("/");
    assert!(client().send(&OutboundRequest::get(&url).at_most(10)).is_ok());
    assert_eq!(client().send(&OutboundRequest::get(&url).at_most(9)), Err(OutboundError::TooLong));
    let header = PlainServer::start(|stream, _| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\n");
        while write!(stream, "X-Filler: {}\r\n", "x".repeat(1_000)).is_ok() {}
    });
    assert!(matches!(client().send(&OutboundRequest::get(&header.url("/"))), Err(OutboundError::Failed(_))));
}

#[test]
fn a_server_that_breaks_off_or_speaks_something_else_is_a_failure() {
    let cut = PlainServer::start(|stream, _| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
    });
    let other = PlainServer::start(|stream, _| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
    });
    let mute = PlainServer::start(|_, _| ());
    for server in [cut, other, mute] {
        assert!(matches!(client().send(&OutboundRequest::get(&server.url("/"))), Err(OutboundError::Failed(_))));
    }
    let closed = answering("200 OK", "", "").into_unused_url();
    assert!(matches!(client().send(&OutboundRequest::get(&closed)), Err(OutboundError::Failed(_))));
}

#[test]
fn addresses_that_are_not_allowed_are_never_dialled() {
    let server = answering("200 OK", "", "loot");
    let closed = Outbound::new(&[], None, 4).unwrap();
    let port = server.port();
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{port}/");
        assert_eq!(closed.send(&OutboundRequest::get(&url)), Err(OutboundError::AddressRefused), "{url}");
    }
    // What a resolver makes of a name counts, also of names that look like none.
    for host in ["localhost", "127.1", "2130706433", "0x7f.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"] {
        let url = format!("https://{host}:{port}/");
        let refused = closed.send(&OutboundRequest::get(&url)).unwrap_err();
        let never_found = matches!(refused, OutboundError::NameNotFound | OutboundError::Url(_));
        assert!(refused == OutboundError::AddressRefused || never_found, "{url}: {refused}");
    }
    let elsewhere = Outbound::new(&Cidr::parse_list("10.0.0.0/8").unwrap(), None, 4).unwrap();
    assert_eq!(elsewhere.send(&OutboundRequest::get(&server.url("/"))), Err(OutboundError::AddressRefused));
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[test]
fn without_tls_only_this_machine_is_asked() {
    let everything = Outbound::new(&Cidr::parse_list("0.0.0.0/0,::/0").unwrap(), None, 4).unwrap();
    let odd = "http://10.0.0.1/|http://example.com/|ftp://127.0.0.1/|https://user@127.0.0.1/|https://127.0.0.1/#x|\
        https://127.0.0.1/\r\nX: y|https://|/keys|";
    for url in odd.split('|') {
        assert!(matches!(everything.send(&OutboundRequest::get(url)), Err(OutboundError::Url(_))), "{url}");
    }
}

#[test]
fn an_authority_that_the_operator_names_is_trusted_and_no_other() {
    let (ours, foreign) = (Authority::new(), Authority::new());
    let server = TlsServer::start(&ours.certificate("DNS:localhost,IP:127.0.0.1"));
    let trusting = Outbound::new(&loopback(), Some(ours.file()), 4).unwrap();
    for host in ["localhost", "127.0.0.1"] {
        let answer = trusting.send(&OutboundRequest::get(&server.url(host))).unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"sealed"[..]));
    }
    for distrusting in [client(), Outbound::new(&loopback(), Some(foreign.file()), 4).unwrap()] {
        let refused = distrusting.send(&OutboundRequest::get(&server.url("localhost")));
        assert_eq!(refused, Err(OutboundError::NotTrusted));
    }
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let authority = Authority::new();
    let trusting = Outbound::new(&loopback(), Some(authority.file()), 4).unwrap();
    let server = TlsServer::start(&authority.certificate("DNS:elsewhere.example"));
    let refused = trusting.send(&OutboundRequest::get(&server.url("localhost")));
    assert!(matches!(&refused, Err(OutboundError::Failed(cause)) if cause.contains("certificate")), "{refused:?}");
    let plain = PlainServer::greeting("220 mail.example ESMTP\r\n");
    let url = plain.url("/").replace("http://", "https://");
    assert!(matches!(trusting.send(&OutboundRequest::get(&url)), Err(OutboundError::Failed(_))));
}

#[test]
fn a_ca_file_that_is_none_is_said_at_once() {
    for path in ["/nonexistent/ca.pem", "/dev/null", "Cargo.toml"] {
        let problem = Outbound::new(&[], Some(Path::new(path)), 1).unwrap_err();
        assert!(problem.starts_with("GATEPOST_CA_FILE: ") && problem.ends_with(path), "{problem}");
    }
}

#[test]
fn no_more_wait_at_once_than_there_are_places() {
    let server = PlainServer::start(|_, open| while open.load(Ordering::Relaxed) {});
    let narrow = Outbound::new(&loopback(), None, 1).unwrap();
    let url = server.url("/");
    thread::scope(|scope| {
        scope.spawn(|| narrow.send(&OutboundRequest::get(&url).within(Duration::from_secs(3))));
        while server.requests().is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(narrow.send(&OutboundRequest::get(&url)), Err(OutboundError::Busy));
        // A thread of our own takes nobody's place.
        let late = OutboundRequest::get(&url).within(Duration::ZERO);
        assert_eq!(narrow.send_from_background(&late), Err(OutboundError::TooSlow));
        let short = OutboundRequest::get(&url).within(Duration::from_millis(100));
        assert_eq!(narrow.send_from_background(&short), Err(OutboundError::TooSlow));
        server.close();
    });
    assert_eq!(narrow.free_places(), 1, "a place was lost");
}

#[test]
fn nothing_secret_is_printed() {
    let request = OutboundRequest::post_form("https://a.example/", &[("client_secret", "hunter2")]);
    let printed = format!("{:?}", request.header("Authorization", "Bearer hunter2"));
    assert!(printed.contains("a.example") && !printed.contains("hunter2"), "{printed}");
    let bad = client().send(&OutboundRequest::get("http://127.0.0.1/").header("Authorization", "hunter2\r\nX: y"));
    assert!(matches!(&bad, Err(OutboundError::Failed(cause)) if !cause.contains("hunter2")), "{bad:?}");
}

#[test]
fn the_checked_address_is_the_dialled_one() {
    let resolver = CheckedResolver::new(Cidr::parse_list("127.0.0.0/8").unwrap());
    let config = ureq::config::Config::builder().build();
    let timeout = ureq::unversioned::transport::NextTimeout::default();
    let uri = "https://localhost/".parse().unwrap();
    let found = ureq::unversioned::resolver::Resolver::resolve(&resolver, &uri, &config, timeout).unwrap();
    // `localhost` is ::1 as well on most machines; what is not allowed is left out.
    assert!(found.iter().all(|address| address.ip() == IpAddr::from([127, 0, 0, 1]) && address.port() == 443));
}
