//! The one place where registration asks whether a redirect URI may be registered.

use crate::protocol::web_url::WebUrl;

/// Schemes that run code, leave the browser for something that cannot answer, or name no place.
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

pub(super) fn of_public_client(uri: &str) -> Result<(), &'static str> {
    check_redirect_uri(uri, true)
}

pub(super) fn of_confidential_client(uri: &str) -> Result<(), &'static str> {
    check_redirect_uri(uri, false)
}

/// Whether `uri` may be registered; the error is the rule that was broken.
fn check_redirect_uri(uri: &str, public_client: bool) -> Result<(), &'static str> {
    let (scheme, rest) = uri.split_once(':').ok_or("must be an absolute URI")?;
    let scheme_is_valid = scheme.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
        && scheme.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte));
    if !scheme_is_valid {
        return Err("must begin with a scheme in lower case");
    }
    if matches!(scheme, "http" | "https") {
        return check_web(uri);
    }
    if FORBIDDEN_SCHEMES.contains(&scheme) {
        return Err("must not have this scheme: it runs code or cannot receive an answer");
    }
    if !public_client {
        return Err("must be https: custom schemes are for public clients only");
    }
    check_custom(uri, rest)
}

fn check_web(uri: &str) -> Result<(), &'static str> {
    match WebUrl::parse(uri) {
        Ok(url) if url.is_protected() => Ok(()),
        Ok(_) => Err("must be https; plain http is for 127.0.0.1, [::1] and localhost only"),
        Err(rule) => Err(rule),
    }
}

fn check_custom(uri: &str, rest: &str) -> Result<(), &'static str> {
    if uri.chars().count() > 2_000 {
        return Err("must be at most 2000 characters");
    }
    if uri.contains('#') {
        return Err("must not have a fragment");
    }
    let authority = rest.strip_prefix("//").map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    if authority.is_some_and(|authority| authority.contains('@')) {
        return Err("must not hold a user name or password");
    }
    let allowed = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}*".contains(&byte);
    if rest.is_empty() || !uri.bytes().all(allowed) {
        return Err(
            "must hold only the characters of a URI: no spaces, backslashes, wildcards or non-ASCII characters",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_schemes_are_for_public_clients() {
        for uri in ["com.example.app:/cb", "myapp://cb", "com.example.app:cb?x=y"] {
            assert_eq!(check_redirect_uri(uri, true), Ok(()), "{uri}");
            assert!(check_redirect_uri(uri, false).is_err(), "{uri}");
        }
    }

    #[test]
    fn what_a_browser_could_be_lured_with_is_refused() {
        for uri in [
            "",
            "/cb",
            "cb",
            "https://a.example/cb#x",
            "https://u@a.example/cb",
            "http://a.example/cb",
            "https://*.a.example/cb",
            "https://a.example\\@b.example/",
            "https://a.example/\u{e9}",
            "https://a.example/ x",
            "JavaScript:alert(1)",
            "myapp://u@cb",
            "myapp://cb#x",
            "myapp:",
            "my app:/cb",
            "1app:/cb",
            "https:a.example/cb",
        ] {
            assert!(check_redirect_uri(uri, true).is_err(), "{uri}");
        }
        for scheme in FORBIDDEN_SCHEMES {
            assert!(check_redirect_uri(&format!("{scheme}:x"), true).is_err(), "{scheme}");
        }
    }

    #[test]
    fn http_is_for_this_machine() {
        for uri in ["http://127.0.0.1/cb", "http://[::1]:8081/cb", "http://localhost:3000", "https://a.example/cb?x=y"]
        {
            assert_eq!(check_redirect_uri(uri, false), Ok(()), "{uri}");
        }
    }
}
