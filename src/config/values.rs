//! From the text of a setting to its type. Each error is the rule, without the value.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::protocol::words::forwarded::Cidr;
use crate::protocol::words::web_url::WebUrl;

use super::{Color, ListenAddress};

type Parsed<T> = Result<T, &'static str>;

/// `127.0.0.1:8080`, `[::1]:8080` or `unix:/run/gatepost/http.sock`.
pub(super) fn listen_address(text: &str) -> Parsed<ListenAddress> {
    match text.strip_prefix("unix:") {
        Some(path) => {
            absolute_path(path).map(ListenAddress::Unix).map_err(|_| "must have an absolute path after unix:")
        }
        None => socket_address(text).map(ListenAddress::Tcp),
    }
}

pub(super) fn socket_address(text: &str) -> Parsed<SocketAddr> {
    text.parse().map_err(|_| "must be an IP address and a port, as 127.0.0.1:8080 or [::1]:8080")
}

/// The empty text is "off".
pub(super) fn socket_address_or_off(text: &str) -> Parsed<Option<SocketAddr>> {
    if text.is_empty() { Ok(None) } else { socket_address(text).map(Some) }
}

/// Address blocks separated by commas; spaces around them do not count.
pub(super) fn cidr_list(text: &str) -> Parsed<Vec<Cidr>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(|block| Cidr::parse(block.trim())).collect()
}

/// A path that does not depend on where the process was started.
pub(super) fn absolute_path(text: &str) -> Parsed<PathBuf> {
    if text.starts_with('/') && !text.contains('\0') {
        Ok(PathBuf::from(text))
    } else {
        Err("must be an absolute path")
    }
}

/// A path to an existing kind of file; relative ones count from the working directory.
pub(super) fn path(text: &str) -> Parsed<PathBuf> {
    if text.contains('\0') { Err("must be a path") } else { Ok(PathBuf::from(text)) }
}

pub(super) fn image_path(text: &str) -> Parsed<PathBuf> {
    let known = [".svg", ".png", ".jpg", ".webp"].iter().any(|ending| text.ends_with(ending));
    if known { absolute_path(text) } else { Err("must end in .svg, .png, .jpg or .webp") }
}

pub(super) fn link(text: &str) -> Parsed<String> {
    WebUrl::parse(text).map(|_| text.to_owned())
}

pub(super) fn color(text: &str) -> Parsed<Color> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
    let valid = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let number =
        valid.and_then(|digits| u32::from_str_radix(digits, 16).ok()).ok_or("must be a colour such as #1a2b3c")?;
    let [_, red, green, blue] = number.to_be_bytes();
    Ok(Color { red, green, blue })
}

/// What stands on the pages: short, one line.
pub(super) fn brand_name(text: &str) -> Parsed<String> {
    if text.chars().count() > 60 || text.chars().any(char::is_control) || text.trim().is_empty() {
        return Err("must be 1 to 60 printable characters");
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_list_is_a_list() {
        assert_eq!(cidr_list(" "), Ok(Vec::new()));
        assert_eq!(cidr_list("10.0.0.0/8, ::1").map(|list| list.len()), Ok(2));
        assert!(cidr_list("10.0.0.0/8,").is_err());
    }
}
