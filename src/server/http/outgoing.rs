//! From our response to the bytes of an answer: the one place where header bytes are checked. What
//! cannot be written safely is refused as a whole.

use std::fmt::Write as _;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use super::incoming::is_field_value;
use super::{Method, Persistence, Response};
use gatepost_protocol::registration::timestamp;

/// It would not arrive as the field it was meant to be. Carries the name only where it is harmless.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnsafeHeader(pub &'static str);

/// In one piece (RFC 9112 §2.1). Fails when a header has bytes outside printable ASCII, space and
/// tab, or is one the server writes itself.
pub fn serialise(
    response: &Response,
    method: Method,
    persistence: Persistence,
    now: SystemTime,
) -> Result<Vec<u8>, UnsafeHeader> {
    let has_body = !matches!(response.status, 204 | 304);
    let body = if has_body { response.body.bytes() } else { b"" };
    let phrase = tiny_http::StatusCode(response.status).default_reason_phrase();
    let mut head = String::with_capacity(1_024 + body.len());
    // Writing to memory does not fail.
    let _ = write!(head, "HTTP/1.1 {} {phrase}\r\nDate: ", response.status);
    write_imf_fixdate(&mut head, now);
    head.push_str("\r\n");
    // RFC 9110 §8.6: a 204 must not announce a length; a 304's would be that of the representation
    // it spares.
    if has_body {
        let _ = write!(head, "Content-Length: {}\r\n", body.len());
    }
    head.push_str(match persistence {
        Persistence::Open => "",
        Persistence::KeepAlive => "Connection: keep-alive\r\n",
        Persistence::Close => "Connection: close\r\n",
    });
    for (name, value) in &response.headers {
        check_field(name, value)?;
        head.extend([name, ": ", value.as_ref(), "\r\n"]);
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    if method != Method::Head {
        bytes.extend_from_slice(body);
    }
    Ok(bytes)
}

/// Answers over a connection that must not be read any further, and forgets it. tiny_http reads an
/// unread body to its end before it lets go of a request, allocating the announced length at once;
/// only `upgrade` hands out the connection as it is. That writes a head of its own, without a
/// length: the rest of ours travels in the value of a field that tiny_http passes on as it stands,
/// and was checked by [`serialise`]'s rules. Two descriptors and a thread stay behind until the
/// process ends, so whoever calls this counts.
pub fn abandon(request: tiny_http::Request, response: &Response, now: SystemTime) {
    let mut refusal = response.clone();
    if refusal
        .headers
        .iter()
        .any(|(name, value)| check_field(name, value).is_err())
    {
        refusal = Response::empty(500);
    }
    let body = refusal.body.bytes();
    let is_head = *request.method() == tiny_http::Method::Head;
    let mut connection = request.upgrade("HTTP/1.1", bare_head(&refusal, now));
    if !is_head {
        // Whoever does not read it loses it.
        let _ = connection.write_all(body).and_then(|()| connection.flush());
    }
    std::mem::forget(connection);
}

/// The head for tiny_http: the value of `Server` has all other lines in it.
fn bare_head(refusal: &Response, now: SystemTime) -> tiny_http::Response<std::io::Empty> {
    let length = refusal.body.bytes().len();
    let mut rest = format!("gatepost\r\nContent-Length: {length}\r\nConnection: close");
    for (name, value) in &refusal.headers {
        rest.extend(["\r\n", name, ": ", value.as_ref()]);
    }
    let mut date = String::new();
    write_imf_fixdate(&mut date, now);
    let date = tiny_http::Header::from_bytes("Date", date);
    let rest = tiny_http::Header::from_bytes("Server", rest);
    tiny_http::Response::new(
        tiny_http::StatusCode(refusal.status),
        date.into_iter().chain(rest).collect(),
        std::io::empty(),
        Some(0),
        None,
    )
}

/// RFC 9110 §5.5 and §5.6.2, and the fields that belong to the server.
fn check_field(name: &'static str, value: &str) -> Result<(), UnsafeHeader> {
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_ours = [
        "date",
        "content-length",
        "connection",
        "transfer-encoding",
        "server",
        "upgrade",
    ]
    .iter()
    .any(|own| own.eq_ignore_ascii_case(name));
    if is_name && is_field_value(value) && !is_ours {
        Ok(())
    } else {
        Err(UnsafeHeader(if is_name {
            name
        } else {
            "(a name that is no token)"
        }))
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
fn write_imf_fixdate(text: &mut String, now: SystemTime) {
    let seconds = now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0));
    let days = seconds / 86_400;
    let second_of_day = seconds % 86_400;
    let (year, month, day) = timestamp::civil(days);
    // 1970-01-01 was a Thursday.
    let weekday = name_at("ThuFriSatSunMonTueWed", days % 7);
    let month = name_at("JanFebMarAprMayJunJulAugSepOctNovDec", month - 1);
    let hour = second_of_day / 3_600;
    let minute = second_of_day / 60 % 60;
    let second = second_of_day % 60;
    // Writing to memory does not fail.
    let _ = write!(
        text,
        "{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT"
    );
}

#[allow(clippy::expect_used, reason = "a day of seven, and a month of twelve")]
fn name_at(names: &'static str, index: i64) -> &'static str {
    let start = usize::try_from(index).unwrap_or(0) * 3;
    let name = names.get(start..start + 3);
    name.expect("seven weekdays and twelve months have names")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::http::Body;

    fn text_of(response: &Response, method: Method, persistence: Persistence) -> String {
        String::from_utf8(serialise(response, method, persistence, UNIX_EPOCH).unwrap()).unwrap()
    }

    #[test]
    fn no_content_has_neither_body_nor_length() {
        for status in [204, 304] {
            let response = Response {
                body: Body::Static(b"x"),
                ..Response::empty(status)
            };
            let text = text_of(&response, Method::Get, Persistence::Open);
            assert!(
                !text.contains("Content-Length") && text.ends_with("\r\n\r\n"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_servers_own_fields_cannot_be_set() {
        for name in [
            "Content-Length",
            "connection",
            "Transfer-Encoding",
            "DATE",
            "Server",
            "Upgrade",
        ] {
            let response = Response::empty(200).header(name, "1");
            assert_eq!(
                serialise(&response, Method::Get, Persistence::Open, UNIX_EPOCH),
                Err(UnsafeHeader(name))
            );
        }
    }

    #[test]
    fn names_that_are_no_tokens_are_refused_and_not_repeated() {
        for name in ["", "A B", "A:", "A\r\nB", "Ä"] {
            let response = Response::empty(200).header(name, "1");
            let refused = serialise(&response, Method::Get, Persistence::Open, UNIX_EPOCH);
            assert_eq!(refused, Err(UnsafeHeader("(a name that is no token)")));
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        #[rustfmt::skip]
        let table = [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"), (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (2_147_483_648, "Tue, 19 Jan 2038 03:14:08 GMT"), (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ];
        for (seconds, text) in table {
            let mut written = String::new();
            write_imf_fixdate(&mut written, UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!(written, text);
        }
    }

    proptest! {
        #[test]
        fn no_value_makes_a_second_line(value in any::<String>()) {
            let response = Response::empty(200).header("Location", value.clone());
            if let Ok(bytes) = serialise(&response, Method::Get, Persistence::Open, UNIX_EPOCH) {
                let text = String::from_utf8(bytes).unwrap();
                prop_assert_eq!(text.matches(['\r', '\n']).count(), 10);
                prop_assert!(value.is_ascii());
            }
        }
    }
}
