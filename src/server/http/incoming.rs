//! From a tiny_http request to ours. tiny_http has already split lines and headers, leniently; the
//! rules here are those of RFC 9112, strictly. Every refusal is a status code.

use std::net::IpAddr;
use std::sync::OnceLock;

use super::{Headers, Method, Request};
use gatepost_protocol::words::forwarded::{Cidr, is_trusted, source};
use gatepost_protocol::words::parameters;

/// In bytes, as all of these but the count.
pub const PATH_LIMIT: usize = 8 * 1_024;
pub const QUERY_LIMIT: usize = parameters::QUERY_BYTES;
pub const HEADER_COUNT_LIMIT: usize = 100;
pub const HEADERS_LIMIT: usize = 48 * 1_024;

/// How a connection goes on after an answer.
#[derive(Clone, Copy, PartialEq)]
pub enum Persistence {
    /// Nothing needs to be said: the HTTP/1.1 way.
    Open,
    /// An HTTP/1.0 client must be told.
    KeepAlive,
    Close,
}

/// The request, still without its id and its body, and how long that is.
///
/// 400 for what the grammar forbids, 414 and 431 for what is too long, 411 for a
/// `Transfer-Encoding`: bodies have a known length, so that there is one way to tell where a
/// request ends (RFC 9112 §6.3).
pub fn read_head(
    request: &tiny_http::Request,
    trusted_proxies: &[Cidr],
) -> Result<(Request, u64), u16> {
    let headers = read_headers(request)?;
    let (path, query) = read_target(request.url())?;
    if *request.http_version() == (1, 1) && headers.all("host").count() != 1 {
        return Err(400);
    }
    let body_length = body_length(&headers)?;
    if !is_token(request.method().as_str()) {
        return Err(400);
    }
    Ok((
        Request {
            id: String::new(),
            method: method(request),
            path,
            query,
            parsed_query: OnceLock::new(),
            headers,
            body: Vec::new(),
            source: source_of(request, trusted_proxies),
        },
        body_length,
    ))
}

/// What the log and the answer call a request: as the proxy in front does, where that is trusted
/// and says it once, in 1 to 64 harmless characters; else 16 hex digits of our own.
pub fn request_id(request: &tiny_http::Request, trusted_proxies: &[Cidr]) -> String {
    let peer = request.remote_addr().map(|address| address.ip());
    let mut named = field_values(request, "X-Request-Id");
    match (named.next(), named.next()) {
        (Some(id), None) if is_harmless(id) && is_trusted(peer, trusted_proxies) => id.to_owned(),
        _ => format!("{:016x}", rand::random::<u64>()),
    }
}

/// Whether a request may be called that.
pub fn is_harmless(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=64).contains(&id.len()) && id.bytes().all(fits)
}

/// The trace that a request says it is part of, in the form of version 00 and no other (W3C Trace
/// Context, section 3.2): `00-TRACE-PARENT-FLAGS`.
pub fn traceparent(headers: &Headers) -> Option<&str> {
    let mut sent = headers.all("traceparent");
    let (value, None) = (sent.next()?, sent.next()) else {
        return None;
    };
    let is_hex = |part: &str, length| {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        part.len() == length && part.bytes().all(is_digit)
    };
    let is_id = |part, length| is_hex(part, length) && part.bytes().any(|byte| byte != b'0');
    let parts: Vec<&str> = value.split('-').collect();
    let ["00", trace, parent, flags] = parts[..] else {
        return None;
    };
    (is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2)).then_some(value)
}

pub fn source_of(request: &tiny_http::Request, trusted_proxies: &[Cidr]) -> IpAddr {
    let peer = request.remote_addr().map(|address| address.ip());
    source(
        peer,
        field_values(request, "X-Forwarded-For"),
        trusted_proxies,
    )
}

/// What an answer may depend on of a request that is refused, whatever is wrong with it.
pub fn remains_of(request: &tiny_http::Request, id: &str, source: IpAddr) -> Request {
    Request {
        id: id.to_owned(),
        method: method(request),
        path: read_target(request.url())
            .map(|(path, _)| path)
            .unwrap_or_default(),
        query: String::new(),
        parsed_query: OnceLock::new(),
        headers: read_headers(request).unwrap_or_default(),
        body: Vec::new(),
        source,
    }
}

/// RFC 9112 §6.3. 400 for lengths that differ or are no plain number, or beside a
/// `Transfer-Encoding`.
fn body_length(headers: &Headers) -> Result<u64, u16> {
    let mut lengths = headers.all("content-length");
    let first = lengths.next();
    if headers.first("transfer-encoding").is_some() {
        return Err(if first.is_some() { 400 } else { 411 });
    }
    let Some(first) = first else { return Ok(0) };
    if first.is_empty()
        || !first.bytes().all(|byte| byte.is_ascii_digit())
        || lengths.any(|other| other != first)
    {
        return Err(400);
    }
    first.parse().map_err(|_| 400)
}

/// Where tiny_http cannot let go of it, it allocates or waits for whatever length was announced, or
/// takes the body for the next request.
pub fn can_be_released_unread(request: &tiny_http::Request) -> bool {
    let is_encoded = field_values(request, "Transfer-Encoding").next().is_some();
    if connection_options(request).contains("upgrade") {
        return true;
    }
    let length = request.body_length().unwrap_or(0);
    (length == 0 || (length <= 1_024 && !expects_continue(request))) && !is_encoded
}

/// RFC 9110 §10.1.1
pub fn expects_continue(request: &tiny_http::Request) -> bool {
    field_values(request, "Expect").next().is_some()
}

/// tiny_http has buffered the short ones.
pub fn body_must_be_awaited(request: &tiny_http::Request, body_length: u64) -> bool {
    let is_unbuffered =
        expects_continue(request) || connection_options(request).contains("upgrade");
    body_length > 1_024 || (body_length > 0 && is_unbuffered)
}

/// What tiny_http will do; it looks at the first `Connection` field alone.
pub fn persistence(request: &tiny_http::Request) -> Persistence {
    let options = connection_options(request);
    let is_old = *request.http_version() < (1, 1);
    if options.contains("close")
        || options.contains("upgrade")
        || (is_old && !options.contains("keep-alive"))
    {
        Persistence::Close
    } else if is_old {
        Persistence::KeepAlive
    } else {
        Persistence::Open
    }
}

fn connection_options(request: &tiny_http::Request) -> String {
    let first = field_values(request, "Connection")
        .next()
        .unwrap_or_default();
    first.to_ascii_lowercase()
}

/// The values of the fields of this name.
pub fn field_values<'a>(
    request: &'a tiny_http::Request,
    name: &'static str,
) -> impl DoubleEndedIterator<Item = &'a str> {
    let fields = request.headers().iter();
    fields
        .filter(move |header| header.field.equiv(name))
        .map(|header| header.value.as_str())
}

fn read_headers(request: &tiny_http::Request) -> Result<Headers, u16> {
    let fields = request
        .headers()
        .iter()
        .map(|header| (header.field.as_str().as_str(), header.value.as_str()));
    let size: usize = fields
        .clone()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if request.headers().len() > HEADER_COUNT_LIMIT || size > HEADERS_LIMIT {
        return Err(431);
    }
    if !fields
        .clone()
        .all(|(name, value)| is_token(name) && is_field_value(value))
    {
        return Err(400);
    }
    Ok(Headers::of(fields))
}

/// Origin, absolute or asterisk form (RFC 9112 §3.2).
fn read_target(target: &str) -> Result<(String, String), u16> {
    if target.len() > PATH_LIMIT + QUERY_LIMIT {
        return Err(414);
    }
    let origin_form = origin_form(target).ok_or(400_u16)?;
    if !target
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'#')
    {
        return Err(400);
    }
    let (path, query) = origin_form.split_once('?').unwrap_or((origin_form, ""));
    if path.len() > PATH_LIMIT || query.len() > QUERY_LIMIT {
        return Err(414);
    }
    Ok((
        if path.is_empty() {
            String::from("/")
        } else {
            path.to_owned()
        },
        query.to_owned(),
    ))
}

fn origin_form(target: &str) -> Option<&str> {
    if target.starts_with('/') || target == "*" {
        return Some(target);
    }
    let (scheme, rest) = target.split_once("://")?;
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let path_at = rest.find(['/', '?']).unwrap_or(rest.len());
    if is_http && path_at > 0 {
        rest.get(path_at..)
    } else {
        None
    }
}

/// Methods differ by case (RFC 9110 §9.1).
pub fn method(request: &tiny_http::Request) -> Method {
    match request.method().as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        _ => Method::Other,
    }
}

/// RFC 9110 §5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// RFC 9110 §5.5, without the obsolete bytes above ASCII.
pub(super) fn is_field_value(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn length_of(fields: &[(&str, &str)]) -> Result<u64, u16> {
        body_length(&Headers::of(fields.iter().copied()))
    }

    #[test]
    fn a_body_has_one_plain_length_or_none() {
        assert_eq!(length_of(&[]), Ok(0));
        assert_eq!(length_of(&[("Content-Length", "17")]), Ok(17));
        assert_eq!(
            length_of(&[("Content-Length", "17"), ("content-length", "17")]),
            Ok(17)
        );
        for bad in [
            "",
            "+5",
            "-1",
            "5, 5",
            "0x10",
            "1e3",
            " 5",
            "18446744073709551616",
            "five",
        ] {
            assert_eq!(length_of(&[("Content-Length", bad)]), Err(400), "{bad}");
        }
        assert_eq!(
            length_of(&[("Content-Length", "5"), ("Content-Length", "6")]),
            Err(400)
        );
        assert_eq!(
            length_of(&[("Content-Length", "5"), ("Content-Length", "05")]),
            Err(400)
        );
    }

    #[test]
    fn targets_are_split_at_the_first_question_mark() {
        #[rustfmt::skip]
        let table = [
            ("/", "/", ""), ("/a%20b?c=d?e", "/a%20b", "c=d?e"), ("//evil.example/x", "//evil.example/x", ""),
            ("http://host.example/a?b", "/a", "b"), ("HTTPS://host.example?b", "/", "b"), ("*", "*", ""),
        ];
        for (target, path, query) in table {
            assert_eq!(
                read_target(target),
                Ok((path.to_string(), query.to_string())),
                "{target}"
            );
        }
    }

    #[test]
    fn targets_outside_the_grammar_are_refused() {
        for bad in [
            "",
            "a",
            "host.example:443",
            "ftp://host.example/",
            "http:///a",
            "/a#b",
            "/\u{1}",
            "/a\nb",
            "/\u{7f}",
        ] {
            assert_eq!(read_target(bad), Err(400), "{bad:?}");
        }
        assert_eq!(
            read_target(&format!("/{}", "a".repeat(PATH_LIMIT))),
            Err(414)
        );
        assert_eq!(
            read_target(&format!("/?{}", "a".repeat(QUERY_LIMIT + 1))),
            Err(414)
        );
        assert!(read_target(&format!("/?{}", "a".repeat(QUERY_LIMIT))).is_ok());
    }

    proptest! {
        #[test]
        fn a_path_begins_with_a_slash_and_a_target_is_kept_as_it_is(target in "(http://[a-z]{0,3})?[/*]?\\PC{0,40}") {
            if let Ok((path, query)) = read_target(&target) {
                prop_assert!(path.starts_with('/') || path == "*" || path.starts_with("*?"), "{}", path);
                prop_assert!(target.contains(&query) && (path == "/" || target.contains(&path)));
                prop_assert!(target.is_ascii() && !path.contains('?'));
            }
        }
    }
}
