//! The head of a request, as tiny_http hands it over: a line with method and target, then a line for
//! each header. A head that is taken has a path that begins with a slash and nothing that a log, a
//! header or a page could be broken out of with; its body has one length; and who sent it is the
//! peer or stands in `X-Forwarded-For`.
#![no_main]

use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::LazyLock;

use gatepost::http::incoming::{
    can_be_released_unread, is_harmless, read_head, remains_of, request_id,
};
use gatepost::protocol::words::forwarded::Cidr;
use libfuzzer_sys::fuzz_target;
use tiny_http::{Header, Method, TestRequest};

const TRUSTED: [Cidr; 1] = [Cidr::v4([10, 0, 0, 0], 8)];

/// tiny_http reads a short body at once, so it must be there.
static BODY: LazyLock<String> = LazyLock::new(|| "a".repeat(1_024));

/// Dropped as the server does it: tiny_http makes room for as long a body as was announced.
struct Received(Option<tiny_http::Request>);

impl Drop for Received {
    fn drop(&mut self) {
        let unreadable = self
            .0
            .take()
            .filter(|request| !can_be_released_unread(request));
        mem::forget(unreadable);
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let mut lines = text.split('\n');
    let (method, target) = lines
        .next()
        .unwrap_or_default()
        .split_once(' ')
        .unwrap_or_default();
    let Ok(method) = Method::from_str(method) else {
        return;
    };
    let peer: IpAddr = [10, 0, 0, 1].into();
    let mut made = TestRequest::new()
        .with_method(method)
        .with_path(target)
        .with_body(&BODY);
    made = made.with_remote_addr(SocketAddr::new(peer, 1));
    let mut forwarded = String::new();
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        if let Ok(header) = Header::from_bytes(name, value.trim_matches([' ', '\t'])) {
            // tiny_http itself answers any other expectation, and no request comes of it.
            let is_expectation = header.field.equiv("Expect");
            if is_expectation && !header.value.as_str().eq_ignore_ascii_case("100-continue") {
                return;
            }
            if header.field.equiv("X-Forwarded-For") {
                forwarded.push_str(header.value.as_str());
                forwarded.push(',');
            }
            made = made.with_header(header);
        }
    }
    let received = Received(Some(made.into()));
    let Some(request) = &received.0 else { return };
    let id = request_id(request, &TRUSTED);
    assert!(is_harmless(&id));
    let Ok((head, body_length)) = read_head(request, &TRUSTED) else {
        remains_of(request, &id, peer);
        return;
    };
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    assert!(
        head.path.starts_with(['/', '*']) && is_plain(&head.path),
        "{:?}",
        head.path
    );
    assert!(
        !head.path.contains(['?', '#']) && is_plain(&head.query),
        "{:?}",
        head.query
    );
    assert!(!head.query.contains('#'));
    if let Some(length) = head.headers.first("content-length") {
        assert_eq!(length.parse(), Ok(body_length));
    } else {
        assert_eq!(body_length, 0);
    }
    assert!(head.headers.first("transfer-encoding").is_none());
    let is_named = forwarded.split(',').any(|entry| {
        let entry = entry.trim_matches([' ', '\t']);
        let bare = entry.trim_start_matches('[').trim_end_matches(']');
        let address: Option<IpAddr> = bare.parse().ok();
        let socket: Option<SocketAddr> = entry.parse().ok();
        let address = address.or(socket.map(|socket| socket.ip()));
        address.is_some_and(|address| address.to_canonical() == head.source)
    });
    assert!(
        head.source == peer || is_named,
        "{} of {forwarded:?}",
        head.source
    );
});
