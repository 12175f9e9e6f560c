//! The demo's own requests and answers, from and to tiny_http.

use std::io::Read;

use tiny_http::{Header, Request, Response};

const LONGEST_BODY: u64 = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Other,
}

#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) cookie: Option<String>,
    pub(super) body: String,
}

#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Outgoing {
    pub(super) fn page(status: u16, html: String) -> Outgoing {
        let headers = vec![("Content-Type", String::from("text/html; charset=utf-8"))];
        Outgoing {
            status,
            headers,
            body: html,
        }
    }

    pub(super) fn stylesheet(css: &str) -> Outgoing {
        let headers = vec![("Content-Type", String::from("text/css; charset=utf-8"))];
        Outgoing {
            status: 200,
            headers,
            body: css.to_owned(),
        }
    }

    pub(super) fn empty(status: u16) -> Outgoing {
        Outgoing {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub(super) fn redirect(location: &str) -> Outgoing {
        Outgoing {
            status: 303,
            headers: vec![("Location", location.to_owned())],
            body: String::new(),
        }
    }

    pub(super) fn with_cookie(mut self, name: &str, value: &str) -> Outgoing {
        self.headers.push((
            "Set-Cookie",
            format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax"),
        ));
        self
    }

    pub(super) fn without_cookie(mut self, name: &str) -> Outgoing {
        self.headers.push((
            "Set-Cookie",
            format!("{name}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"),
        ));
        self
    }
}

/// A browser that went away meanwhile is no error.
pub(super) fn answer(
    mut request: Request,
    issuer: &str,
    cookie_name: &str,
    handle: impl FnOnce(&Incoming) -> Outgoing,
) {
    // Forms to here, and by way of a redirect to the provider: signing out leads there.
    let policy = format!(
        "default-src 'none'; style-src 'self'; form-action 'self' {issuer}; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    let outgoing = match incoming(&mut request, cookie_name) {
        Some(incoming) => handle(&incoming),
        None => Outgoing::page(400, String::from("The request could not be read.")),
    };
    let mut response = Response::from_string(outgoing.body).with_status_code(outgoing.status);
    let general = [
        ("Content-Security-Policy", policy.as_str()),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "same-origin"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    let special = outgoing
        .headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()));
    for (name, value) in general.into_iter().chain(special) {
        if let Some(header) = header(name, value) {
            response.add_header(header);
        }
    }
    let _ = request.respond(response);
}

/// tiny_http sends a value as it is: one that would begin another header is left out.
fn header(name: &str, value: &str) -> Option<Header> {
    if value.bytes().any(|byte| byte.is_ascii_control()) {
        return None;
    }
    Header::from_bytes(name, value).ok()
}

fn incoming(request: &mut Request, cookie_name: &str) -> Option<Incoming> {
    let method = match request.method() {
        tiny_http::Method::Get | tiny_http::Method::Head => Method::Get,
        tiny_http::Method::Post => Method::Post,
        tiny_http::Method::Put
        | tiny_http::Method::Delete
        | tiny_http::Method::Connect
        | tiny_http::Method::Options
        | tiny_http::Method::Trace
        | tiny_http::Method::Patch
        | tiny_http::Method::NonStandard(_) => Method::Other,
    };
    let (path, query) = match request.url().split_once('?') {
        Some((path, query)) => (path.to_owned(), query.to_owned()),
        None => (request.url().to_owned(), String::new()),
    };
    let cookies = request
        .headers()
        .iter()
        .filter(|header| header.field.equiv("Cookie"));
    let cookie = cookies
        .filter_map(|header| value_of(header.value.as_str(), cookie_name))
        .next();
    let mut body = String::new();
    if method == Method::Post {
        request
            .as_reader()
            .take(LONGEST_BODY)
            .read_to_string(&mut body)
            .ok()?;
    }
    Some(Incoming {
        method,
        path,
        query,
        cookie,
        body,
    })
}

fn value_of(line: &str, name: &str) -> Option<String> {
    let pairs = line
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        assert_eq!(
            value_of("other=1; gatepost_demo_8081=abc", "gatepost_demo_8081").as_deref(),
            Some("abc")
        );
        assert_eq!(
            value_of("gatepost_demo_80810=abc", "gatepost_demo_8081"),
            None
        );
        assert_eq!(value_of("", "gatepost_demo_8081"), None);
    }

    #[test]
    fn a_line_break_cannot_begin_a_header() {
        assert!(header("Location", "/\r\nSet-Cookie: a=b").is_none());
        assert!(header("Location", "/").is_some());
    }
}
