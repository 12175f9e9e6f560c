//! The log's line about a request: what was asked, by whom as far as that is known, and how it went.

use std::fmt::{self, Write};
use std::time::Instant;

use log::kv::Value;
use log::{Level, Record};

use crate::http::{Note, Request, Response};

/// What a query or a body held never gets here, a path only in escaped form. The fields stand in the record as well,
/// for logs in JSON.
pub(super) fn write(request: &Request, response: &Response, started: Instant) {
    if !log::log_enabled!(target: "gatepost::request", Level::Info) {
        return;
    }
    let Note { client_id, grant, reason, detail } = &response.note;
    let (method, source) = (request.method.as_str(), request.source.to_string());
    let path = Escaped { text: &request.path, most: 200 }.to_string();
    let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let named = [
        ("client_id", client_id.as_deref()),
        ("grant", grant.as_deref()),
        ("reason", *reason),
        ("detail", detail.as_deref()),
    ];
    let named =
        named.into_iter().filter_map(|(name, value)| Some((name, Escaped { text: value?, most: 300 }.to_string())));
    let named: Vec<(&str, String)> = named.collect();
    let mut fields: Vec<(&str, Value<'_>)> = vec![
        ("id", request.id.as_str().into()),
        ("method", method.into()),
        ("path", path.as_str().into()),
        ("status", response.status.into()),
        ("ms", milliseconds.into()),
        ("source", source.as_str().into()),
    ];
    fields.extend(named.iter().map(|(name, value)| (*name, Value::from(value.as_str()))));
    let quoted: String = named.iter().map(|(name, value)| format!(" {name}=\"{value}\"")).collect();
    log::logger().log(
        &Record::builder()
            .level(Level::Info)
            .target("gatepost::request")
            .key_values(&fields)
            .args(format_args!(
                "id={} method={method} path={path} status={} ms={milliseconds} source={source}{quoted}",
                request.id, response.status
            ))
            .build(),
    );
}

struct Escaped<'a> {
    text: &'a str,
    most: usize,
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\'' | b'\\');
        if self.text.len() <= self.most && self.text.bytes().all(is_plain) {
            return formatter.write_str(self.text);
        }
        self.text.chars().take(self.most).flat_map(char::escape_default).try_for_each(|part| formatter.write_char(part))
    }
}
