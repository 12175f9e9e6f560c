//! Absolute http and https URLs that operators register. A URL that browsers, servers and people
//! could read in different ways is refused (RFC 3986 §3).

use crate::words::client::Client;
use crate::words::redirect_uri::{is_spelt_as_browsers_do, origin_of};
use crate::words::rule::RuleKept;

pub struct WebUrl<'a> {
    pub https: bool,
    /// With brackets when it is an IPv6 address.
    pub host: &'a str,
    pub port: Option<u16>,
    /// Empty or beginning with `/`.
    pub path: &'a str,
    pub query: Option<&'a str>,
    /// Scheme, host and port as written.
    pub origin: &'a str,
}

impl<'a> WebUrl<'a> {
    /// Reads a URL. The error names the rule that it breaks.
    pub fn parse(text: &'a str) -> Result<WebUrl<'a>, &'static str> {
        check_characters(text)?;
        let (https, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err("must begin with https:// or http://"),
        };
        let authority_length = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(authority_length);
        let (host, port) = split_authority(authority)?;
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let origin = text.strip_suffix(rest).unwrap_or(text);
        Ok(WebUrl {
            https,
            host,
            port,
            path,
            query,
            origin,
        })
    }

    /// Whether the host is this machine, by a name that no resolver can send elsewhere.
    pub fn is_loopback(&self) -> bool {
        matches!(self.host, "127.0.0.1" | "[::1]" | "localhost")
    }

    /// Whether nobody can read or alter requests on the way: https, or this machine.
    pub fn is_protected(&self) -> bool {
        self.https || self.is_loopback()
    }
}

/// Checks the address of a metadata document, which is also the client's name
/// (draft-ietf-oauth-client-id-metadata-document §3). The error names the rule that it breaks.
pub fn check_document_url(text: &str) -> RuleKept {
    let url = WebUrl::parse(text)?;
    if !url.https {
        return Err("must begin with https://");
    }
    if url.path.len() <= 1 {
        return Err("must have a path other than /");
    }
    if url.query.is_some() {
        return Err("must not have a query");
    }
    if url.path.split('/').any(is_dots) {
        return Err("must not have a . or .. segment");
    }
    Ok(())
}

fn is_dots(segment: &str) -> bool {
    let segment = segment.to_ascii_lowercase().replace("%2e", ".");
    segment == "." || segment == ".."
}

/// Checks the name of a host, without a port.
pub fn check_host_name(text: &str) -> RuleKept {
    match WebUrl::parse(&format!("https://{text}")) {
        Ok(url) if url.host == text => Ok(()),
        Ok(_) | Err(_) => Err("must be the name of a host alone, as app.example.com"),
    }
}

fn check_characters(text: &str) -> RuleKept {
    if text.chars().count() > 2_000 {
        return Err("must be at most 2000 characters");
    }
    if text.contains('#') {
        return Err("must not have a fragment");
    }
    let allowed = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}*".contains(&byte);
    if !text.bytes().all(allowed) {
        return Err(
            "must hold only the characters of a URL: no spaces, backslashes, wildcards or \
             non-ASCII characters",
        );
    }
    let mut pieces = text.split('%');
    pieces.next();
    let encoded = |piece: &str| piece.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if pieces.all(encoded) {
        Ok(())
    } else {
        Err("has a % that is not followed by two hex digits")
    }
}

fn split_authority(authority: &str) -> Result<(&str, Option<u16>), &'static str> {
    if authority.contains('@') {
        return Err("must not hold a user name or password");
    }
    let host_length = match authority.find(']') {
        Some(bracket) => bracket + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(host_length);
    check_host(host)?;
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok((host, None)),
        Some(digits)
            if digits.as_bytes().iter().all(u8::is_ascii_digit) && !digits.starts_with('0') =>
        {
            digits
                .parse()
                .map(|port| (host, Some(port)))
                .map_err(|_| "must have a port between 1 and 65535")
        }
        None | Some(_) => Err("must have a port between 1 and 65535"),
    }
}

fn check_host(host: &str) -> RuleKept {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
    let is_name = !host.starts_with('.') && !host.contains("..") && host.bytes().all(allowed);
    let is_literal = host.starts_with('[') && !host.as_bytes().iter().any(u8::is_ascii_uppercase);
    if host.is_empty() || !(is_name || is_literal) {
        return Err("must have a host name in lower case");
    }
    if is_spelt_as_browsers_do(host) {
        Ok(())
    } else {
        Err("must have an address as browsers write it, such as 127.0.0.1 or [2001:db8::1]")
    }
}

/// Whether `origin` is the origin of one of the client's redirect URIs or one of its
/// `allowed_cors_origins`, byte for byte. The origin `null` is never allowed.
pub fn allowed_origin(client: &Client, origin: &str) -> bool {
    if origin == "null" {
        return false;
    }
    let mut redirect_uris = client.redirect_uris.iter();
    client.allowed_cors_origins.contains(origin)
        || redirect_uris.any(|uri| origin_of(uri).as_deref() == Some(origin))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_told_apart() {
        let url = WebUrl::parse("https://shop.example.com:8443/a/b?c=d?e").unwrap();
        assert_eq!(
            (url.https, url.host, url.port),
            (true, "shop.example.com", Some(8443))
        );
        assert_eq!(
            (url.path, url.query, url.origin),
            ("/a/b", Some("c=d?e"), "https://shop.example.com:8443")
        );
        let bare = WebUrl::parse("http://[::1]").unwrap();
        assert_eq!(
            (bare.host, bare.path, bare.query, bare.origin),
            ("[::1]", "", None, "http://[::1]")
        );
        assert!(bare.is_loopback() && bare.is_protected());
        assert_eq!(
            WebUrl::parse("https://a.example?x").unwrap().query,
            Some("x")
        );
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        #[rustfmt::skip]
        let rows = [
            "", "example.com", "//example.com", "HTTPS://example.com", "ftp://example.com", "https:/example.com",
            "https://", "https:///path", "https://user@example.com", "https://example.com@evil.example",
            "https://example.com#x", "https://example.com\\@evil.example", "https://exa mple.com",
            "https://example.com/\u{0}", "https://ex\u{e4}mple.com", "https://EXAMPLE.com", "https://example.com:",
            "https://example.com:0", "https://example.com:65536", "https://example.com:+1", "https://[::1",
            "https://[]", "https://::1", "https://[::1]x", "https://a..b", "https://*.a.b", "https://example.com/%",
            "https://example.com/%4", "https://example.com/%zz", "https://example.com/%e", "https://127.1/",
            "https://0x7f.0.0.1/", "https://2130706433/", "https://127.0.0.01/", "https://127.0.0.1./",
            "https://a.0x/", "https://a.1/", "https://1.2.3.4.5/", "https://[2001:DB8::1]/", "https://[2001:db8:0::1]/",
            "https://[::ffff:192.0.2.1]/", "https://[::ffff:c000:201]/", "https://./",
        ];
        for text in rows {
            assert!(WebUrl::parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_put_together_give_the_text(text in "https?://[a-z0-9.\\[\\]:@/?#%&-]{0,24}|.{0,24}") {
            if let Ok(url) = WebUrl::parse(&text) {
                let query = url.query.map(|query| format!("?{query}")).unwrap_or_default();
                prop_assert_eq!(format!("{}{}{query}", url.origin, url.path), text.as_str());
                prop_assert!(url.path.is_empty() || url.path.starts_with('/'));
                prop_assert!(url.origin.ends_with(url.host) || url.port.is_some());
            }
        }
    }

    #[test]
    fn only_three_names_are_this_machine() {
        for text in [
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
            "http://127.0.0.2",
            "http://0.0.0.0",
            "http://[2001:db8::1]",
            "http://1a.0xg.example.",
        ] {
            assert!(!WebUrl::parse(text).unwrap().is_protected(), "{text}");
        }
    }

    #[test]
    fn the_address_of_a_document_has_one_reading_and_a_path() {
        for good in [
            "https://app.example/client.json",
            "https://app.example:8443/a/b",
            "https://app.example/a.b/..c",
            "https://app.example/x/",
        ] {
            assert_eq!(check_document_url(good), Ok(()), "{good}");
        }
        let dots = "must not have a . or .. segment";
        for (bad, rule) in [
            ("http://app.example/a", "must begin with https://"),
            ("https://app.example", "must have a path other than /"),
            ("https://app.example/", "must have a path other than /"),
            ("https://app.example/a?b", "must not have a query"),
            ("https://app.example/./a", dots),
            ("https://app.example/a/..", dots),
            ("https://app.example/%2e/a", dots),
            ("https://app.example/a/.%2E/b", dots),
            ("https://app.example/a#b", "must not have a fragment"),
        ] {
            assert_eq!(check_document_url(bad), Err(rule), "{bad}");
        }
    }

    #[test]
    fn the_name_of_a_host_stands_alone() {
        for good in ["app.example", "localhost", "127.0.0.1", "[::1]"] {
            assert_eq!(check_host_name(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "app.example:443",
            "app.example/",
            "app.example?x",
            "https://app.example",
            "a@app.example",
            "APP.example",
            "*.example",
        ] {
            assert!(check_host_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn two_thousand_characters_are_read_and_no_more() {
        let of_length =
            |length: usize| format!("https://a.example/{length:0>width$}", width = length - 18);
        assert!(WebUrl::parse(&of_length(2_000)).is_ok());
        assert!(WebUrl::parse(&of_length(2_001)).is_err());
    }

    mod cors {
        use std::collections::BTreeSet;

        use super::super::*;
        use crate::authorize::authorize_request::fixtures::public_client;

        fn application() -> Client {
            let mut client = public_client(&[
                "https://rp1.example/cb",
                "http://localhost:3000/cb",
                "com.example.app:/cb",
            ]);
            client.allowed_cors_origins =
                BTreeSet::from(["https://spa.example".to_owned(), "null".to_owned()]);
            client
        }

        #[test]
        fn registered_origins_are_allowed_and_no_others() {
            for origin in [
                "https://rp1.example",
                "http://localhost:3000",
                "https://spa.example",
            ] {
                assert!(allowed_origin(&application(), origin), "{origin}");
            }
            #[rustfmt::skip]
            let rows = [
                "", "*", "null", "https://evil.example", "https://rp1.example.evil.example", "https://rp1.example/",
                "https://rp1.example/cb", "https://rp1.example:443", "https://rp1.example:8443", "http://rp1.example",
                "HTTPS://RP1.EXAMPLE", "https://sub.rp1.example", "http://localhost", "http://localhost:3001",
                "com.example.app:", "com.example.app://", "https://rp1.example https://evil.example",
            ];
            for origin in rows {
                assert!(!allowed_origin(&application(), origin), "{origin}");
            }
        }
    }
}
