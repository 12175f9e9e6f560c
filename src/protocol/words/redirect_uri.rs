//! Redirect URIs: where authorization responses go, and where browsers go after a sign-out. A URI
//! is checked when it is registered and again when a request names it. Only a comparison that
//! matched makes a [`RedirectTarget`], so code that forgets to compare does not compile. URIs are
//! compared byte for byte (RFC 9700 §2.1). Nothing is normalised, so the parser below only has to
//! be strict.

#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

use super::client::Client;
use crate::words::parameters;
use crate::words::rule::RuleKept;

/// Schemes that are never a redirect target: they run code, read files or start other programs.
const FORBIDDEN_SCHEMES: [&str; 16] = [
    "javascript",
    "data",
    "vbscript",
    "file",
    "blob",
    "about",
    "filesystem",
    "view-source",
    "ws",
    "wss",
    "ftp",
    "mailto",
    "tel",
    "sms",
    "intent",
    "chrome",
];

/// Hosts on the user's own machine. Nobody else can listen in there, so http is allowed (RFC 8252
/// §8.3).
const LOOPBACK_HOSTS: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// Those that are addresses. `localhost` is a name that may be resolved to another machine.
const LOOPBACK_ADDRESSES: [&str; 2] = ["127.0.0.1", "[::1]"];

/// A URI that is registered. Only the two `match_` functions make one.
#[derive(Clone, Debug, PartialEq)]
pub struct RedirectTarget {
    uri: String,
}

impl RedirectTarget {
    pub fn match_registered(sent: &str, client: &Client) -> Option<RedirectTarget> {
        check_registered(sent, !client.is_confidential()).ok()?;
        // A program on the person's own machine takes whatever port is free (RFC 8252 §7.3). Many
        // say `localhost`. People consent there each time.
        let any_port = if client.metadata_document || !client.is_confidential() {
            &LOOPBACK_HOSTS[..]
        } else {
            &LOOPBACK_ADDRESSES[..]
        };
        let known = client
            .redirect_uris
            .iter()
            .any(|registered| registered == sent || is_same_but_port(registered, sent, any_port));
        known.then(|| RedirectTarget {
            uri: sent.to_owned(),
        })
    }

    /// Exactly one of the client's registered `post_logout_redirect_uris`.
    pub fn match_post_logout(sent: &str, client: &Client) -> Option<RedirectTarget> {
        check_registered(sent, !client.is_confidential()).ok()?;
        let known = client
            .post_logout_redirect_uris
            .iter()
            .any(|registered| registered == sent);
        known.then(|| RedirectTarget {
            uri: sent.to_owned(),
        })
    }

    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The origin as browsers write it; `None` for custom schemes, which have no origin.
    pub fn origin(&self) -> Option<String> {
        origin_of(&self.uri)
    }

    pub fn is_custom_scheme(&self) -> bool {
        split(&self.uri).is_none_or(|parts| !is_web(parts.scheme))
    }

    pub fn is_loopback(&self) -> bool {
        let authority = split(&self.uri)
            .filter(|parts| is_web(parts.scheme))
            .and_then(|parts| parts.authority);
        authority
            .and_then(split_authority)
            .is_some_and(|(host, _)| LOOPBACK_HOSTS.contains(&host))
    }
}

/// Checks a URI that is to be registered. The error names the rule that it breaks.
pub fn check_registered(uri: &str, public_client: bool) -> RuleKept {
    check_characters(uri)?;
    let parts = split(uri).ok_or("must be an absolute URI whose scheme is in lower case")?;
    match parts.scheme {
        "https" => check_web(&parts).map(drop),
        "http" => check_loopback(check_web(&parts)?),
        scheme if FORBIDDEN_SCHEMES.contains(&scheme) => {
            Err("this scheme is never a redirect target")
        }
        _ if !public_client => Err("a scheme other than https is only for public clients"),
        _ => check_custom(&parts),
    }
}

/// The origin of an http or https URI as browsers write it: lower case, no default port (RFC 6454
/// §6.2).
pub fn origin_of(uri: &str) -> Option<String> {
    let parts = split(uri).filter(|parts| is_web(parts.scheme))?;
    let (host, port) = split_authority(parts.authority?)?;
    let host = host.to_ascii_lowercase();
    match (parts.scheme, port) {
        (scheme, None) | (scheme @ "https", Some("443")) | (scheme @ "http", Some("80")) => {
            Some([scheme, "://", &host].concat())
        }
        (scheme, Some(port)) => Some([scheme, "://", &host, ":", port].concat()),
    }
}

/// Whether `text` is an absolute URI without a fragment (RFC 3986 §4.3), as a `resource` must be
/// (RFC 8707 §2).
pub fn is_absolute_uri(text: &str) -> bool {
    text.bytes().all(is_uri_byte)
        && split(text).is_some_and(|parts| parts.authority.is_some() || !parts.rest.is_empty())
}

struct Parts<'a> {
    scheme: &'a str,
    authority: Option<&'a str>,
    rest: &'a str,
}

fn split(uri: &str) -> Option<Parts<'_>> {
    let (scheme, after) = uri.split_once(':')?;
    if !is_scheme(scheme) {
        return None;
    }
    let Some(hierarchy) = after.strip_prefix("//") else {
        return Some(Parts {
            scheme,
            authority: None,
            rest: after,
        });
    };
    let end = hierarchy.find(['/', '?']).unwrap_or(hierarchy.len());
    let (authority, rest) = hierarchy.split_at(end);
    Some(Parts {
        scheme,
        authority: Some(authority),
        rest,
    })
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte)
        })
}

fn is_web(scheme: &str) -> bool {
    scheme == "https" || scheme == "http"
}

/// Host and port; `None` when either is not well-formed, or when there is user info.
fn split_authority(authority: &str) -> Option<(&str, Option<&str>)> {
    let host_end = if authority.starts_with('[') {
        authority.find(']')?.checked_add(1)?
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, after) = authority.split_at_checked(host_end)?;
    let port = if after.is_empty() {
        None
    } else {
        Some(after.strip_prefix(':')?)
    };
    (is_host(host) && port.is_none_or(is_port)).then_some((host, port))
}

fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.bytes().all(allowed)
    };
    is_spelt_as_browsers_do(host) && (host.starts_with('[') || host.split('.').all(is_label))
}

/// Whether browsers spell this host so, but for its case. `127.1` and `0x7f.0.0.1` are 127.0.0.1 to
/// them, and an IPv6 address has one spelling.
pub fn is_spelt_as_browsers_do(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    if let Some(literal) = host.strip_prefix('[') {
        let address = literal.strip_suffix(']').unwrap_or_default();
        let parsed: Result<Ipv6Addr, _> = address.parse();
        // They write no IPv4 address within one.
        return !address.contains('.') && parsed.is_ok_and(|ip| ip.to_string() == address);
    }
    let labels = host.strip_suffix('.').unwrap_or(&host);
    let last = labels.rsplit('.').next().unwrap_or_default();
    let is_hex = |digits: &str| digits.as_bytes().iter().all(u8::is_ascii_hexdigit);
    let is_number = last.as_bytes().iter().all(u8::is_ascii_digit)
        || last.strip_prefix("0x").is_some_and(is_hex);
    !is_number || host.parse::<Ipv4Addr>().is_ok()
}

/// A port has one spelling: no sign, no leading zero, and not 0.
fn is_port(port: &str) -> bool {
    !port.starts_with('0')
        && port.as_bytes().iter().all(u8::is_ascii_digit)
        && port.parse::<u16>().is_ok()
}

fn check_characters(uri: &str) -> RuleKept {
    if uri.len() > parameters::REDIRECT_URI {
        return Err("must be at most 2000 characters long");
    }
    if uri.contains('#') {
        return Err("must not have a fragment");
    }
    if uri.contains('\\') {
        return Err("must not have a backslash");
    }
    if uri.contains('*') {
        return Err("must not have a wildcard: register each URI in full");
    }
    if !uri.bytes().all(is_uri_byte) {
        return Err("must have only characters of a URI, without spaces; encode others with %");
    }
    let whole = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if uri.split('%').skip(1).all(whole) {
        Ok(())
    } else {
        Err("has a % that is not followed by two hexadecimal digits")
    }
}

/// The characters of RFC 3986 §2, without `#`.
fn is_uri_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?[]@!$&'()*+,;=%".contains(&byte)
}

fn check_web<'a>(parts: &Parts<'a>) -> Result<&'a str, &'static str> {
    let authority = parts
        .authority
        .filter(|authority| !authority.is_empty())
        .ok_or("must have a host after //")?;
    check_rest(parts)?;
    let (host, _) =
        split_authority(authority).ok_or("has a host or port that is not well-formed")?;
    Ok(host)
}

fn check_loopback(host: &str) -> RuleKept {
    if LOOPBACK_HOSTS.contains(&host) {
        Ok(())
    } else {
        Err("http is only for 127.0.0.1, [::1] and localhost: use https")
    }
}

fn check_custom(parts: &Parts<'_>) -> RuleKept {
    // Otherwise `localhost:8080` would pass as the scheme `localhost`.
    if parts.authority.is_none() && !parts.rest.starts_with('/') {
        return Err("a custom scheme must be followed by :/");
    }
    check_rest(parts)
}

fn check_rest(parts: &Parts<'_>) -> RuleKept {
    if parts
        .authority
        .is_some_and(|authority| authority.contains('@'))
    {
        return Err("must not have user info before the host");
    }
    if parts.rest.contains(['[', ']']) {
        Err("must encode [ and ] outside the host with %")
    } else {
        Ok(())
    }
}

/// The one exception to byte equality: a URI that was registered without a port on one of these
/// hosts matches with any port (RFC 8252 §7.3).
fn is_same_but_port(registered: &str, sent: &str, hosts: &[&str]) -> bool {
    let (Some(registered), Some(sent)) = (split(registered), split(sent)) else {
        return false;
    };
    let any_port = registered
        .authority
        .filter(|authority| hosts.contains(authority));
    let sent_host = sent
        .authority
        .and_then(split_authority)
        .map(|(host, _)| host);
    any_port.is_some()
        && any_port == sent_host
        && is_web(sent.scheme)
        && registered.scheme == sent.scheme
        && registered.rest == sent.rest
}
