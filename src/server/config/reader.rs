//! Reads typed values out of a [`Source`], collecting every problem instead of stopping at the
//! first.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::settings::{Default, Kind, Setting};
use crate::config::source::Source;
use crate::config::{Color, ListenAddress, Problem, cause};
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::forwarded::Cidr;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::web_url::WebUrl;

pub(super) const IS_REQUIRED: &str = "is required";

pub(super) struct Reader<'a> {
    source: &'a Source,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a Source) -> Reader<'a> {
        Reader {
            source,
            problems: Vec::new(),
        }
    }

    /// The given text, or the default's. Empty means absent, where empty is no value of its own.
    fn text(&self, setting: &'static Setting) -> Option<&'a str> {
        let counts = |text: &&str| !text.is_empty() || matches!(setting.kind, Kind::TextOrEmpty);
        let given = self.source.given(setting.name).filter(counts);
        given.or(setting.usual())
    }

    /// The typed value; `None` when absent, or when refused (then a problem is noted).
    pub(super) fn parsed<T>(
        &mut self,
        setting: &'static Setting,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        let Some(text) = self.text(setting) else {
            return self.absent(setting);
        };
        match parse(text) {
            Ok(value) => Some(value),
            Err(rule) => {
                self.refuse(setting, rule, text);
                None
            }
        }
    }

    /// One of the named choices, or `fallback` after a problem.
    pub(super) fn choice<T: Copy>(
        &mut self,
        setting: &'static Setting,
        choices: &[(&str, T)],
        fallback: T,
    ) -> T {
        let text = self.text(setting).unwrap_or_default();
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
            return *value;
        }
        let names = joined(", ", choices.iter().map(|(name, _)| name));
        self.refuse(setting, &format!("must be one of {names}"), text);
        fallback
    }

    pub(super) fn is_on(&mut self, setting: &'static Setting) -> bool {
        self.choice(setting, &[("on", true), ("off", false)], false)
    }

    pub(super) fn number(&mut self, setting: &'static Setting) -> u32 {
        self.number_or(setting, setting.usual_number())
    }

    /// The same, where the default is computed.
    pub(super) fn number_or(&mut self, setting: &'static Setting, default: u32) -> u32 {
        self.within(setting, default, digits, "")
    }

    fn within(
        &mut self,
        setting: &'static Setting,
        default: u32,
        read: impl Fn(&str) -> Option<u32>,
        otherwise: &str,
    ) -> u32 {
        let Some(text) = self.text(setting) else {
            return default;
        };
        let Kind::Number(min, max) = setting.kind else {
            return default;
        };
        if let Some(number) = read(text)
            && (min..=max).contains(&number)
        {
            return number;
        }
        let rule = format!("must be a whole number from {min} to {max}{otherwise}");
        self.refuse(setting, &rule, text);
        default
    }

    /// None where there is no default.
    pub(super) fn seconds(&mut self, setting: &'static Setting) -> Duration {
        let read = |text: &str| digits(text).or_else(|| timestamp::seconds(text)?.try_into().ok());
        let otherwise = ", or a time as 90s, 15m, 12h or 30d";
        let seconds = self.within(setting, setting.usual_number(), read, otherwise);
        Duration::from_secs(u64::from(seconds))
    }

    /// A secret from its variable, or from the file another variable names, or else from a systemd
    /// credential.
    pub(super) fn secret(
        &mut self,
        setting: &'static Setting,
        file_setting: &'static Setting,
        credential: Option<&str>,
    ) -> Option<SecretText> {
        let file = self.parsed(file_setting, path);
        match (self.text(setting), file) {
            (Some(_), Some(_)) => {
                let rule = format!("must not stand beside {}", file_setting.name);
                self.problem(setting.name, rule);
                None
            }
            (Some(text), None) => Some(SecretText::new(text)),
            (None, Some(file)) => self.secret_file(file_setting.name, &file),
            (None, None) => match credential.and_then(|name| self.source.credential(name)) {
                Some(file) => self.secret_file(setting.name, &file),
                None => self.absent(setting),
            },
        }
    }

    /// The path a setting names, or else that of a systemd credential.
    pub(super) fn path_or_credential(
        &mut self,
        setting: &'static Setting,
        credential: &str,
    ) -> Option<PathBuf> {
        self.parsed(setting, path)
            .or_else(|| self.source.credential(credential))
    }

    /// A secret from the file that a setting names, or else from a systemd credential.
    pub(super) fn secret_file_or_credential(
        &mut self,
        setting: &'static Setting,
        credential: &str,
    ) -> Option<SecretText> {
        let file = self.path_or_credential(setting, credential)?;
        self.secret_file(setting.name, &file)
    }

    /// What `read` finds; a problem where it finds nothing, for something else needs it.
    pub(super) fn needed<T>(
        &mut self,
        setting: &'static Setting,
        rule: &str,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let before = self.problems.len();
        let found = read(self);
        if found.is_none() && self.problems.len() == before {
            self.problem(setting.name, rule);
        }
        found
    }

    pub(super) fn problem(&mut self, name: &str, rule: impl Into<String>) {
        self.problems.push(Problem::new(name, rule));
    }

    fn absent<T>(&mut self, setting: &'static Setting) -> Option<T> {
        if matches!(setting.default, Default::Required) {
            self.problem(setting.name, IS_REQUIRED);
        }
        None
    }

    fn secret_file(&mut self, name: &str, file: &Path) -> Option<SecretText> {
        let rule = match std::fs::read_to_string(file) {
            Ok(text) if text.trim().is_empty() => {
                format!("names {}, which is empty", file.display())
            }
            Ok(text) => return Some(SecretText::new(text.trim_end_matches(['\r', '\n']))),
            Err(error) => format!(
                "names {}, which cannot be read: {}",
                file.display(),
                cause(&error)
            ),
        };
        self.problem(name, rule);
        None
    }

    fn refuse(&mut self, setting: &'static Setting, rule: &str, text: &str) {
        let shown: String = text.chars().take(80).collect();
        // An address with a user may have a password in it.
        let may_have_password = text.contains("://") && text.contains('@');
        let is_secret = matches!(setting.kind, Kind::Secret);
        let told = if is_secret || may_have_password {
            String::new()
        } else {
            format!("; it is \"{}\"", shown.escape_debug())
        };
        self.problem(setting.name, format!("{rule}{told}"));
    }
}

fn digits(text: &str) -> Option<u32> {
    text.parse()
        .ok()
        .filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

type Parsed<T> = Result<T, &'static str>;

/// `127.0.0.1:8080`, `[::1]:8080` or `unix:/run/gatepost/http.sock`.
pub(super) fn listen_address(text: &str) -> Parsed<ListenAddress> {
    match text.strip_prefix("unix:") {
        Some(path) => absolute_path(path)
            .map(ListenAddress::Unix)
            .map_err(|_| "must have an absolute path after unix:"),
        None => socket_address(text).map(ListenAddress::Tcp),
    }
}

pub(super) fn socket_address(text: &str) -> Parsed<SocketAddr> {
    text.parse()
        .map_err(|_| "must be an IP address and a port, as 127.0.0.1:8080 or [::1]:8080")
}

/// The empty text is "off".
pub(super) fn socket_address_or_off(text: &str) -> Parsed<Option<SocketAddr>> {
    if text.is_empty() {
        Ok(None)
    } else {
        socket_address(text).map(Some)
    }
}

/// Address blocks separated by commas; spaces around them do not count.
pub(super) fn cidr_list(text: &str) -> Parsed<Vec<Cidr>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|block| Cidr::parse(block.trim()))
        .collect()
}

/// A role, which may stand in a list.
pub(super) fn role(text: &str) -> Parsed<String> {
    let is_role = !text.is_empty() && text.trim() == text && !text.chars().any(char::is_control);
    if is_role && !text.contains(',') {
        Ok(text.to_owned())
    } else {
        Err("must be a role, without commas")
    }
}

pub(super) fn role_list(text: &str) -> Parsed<Vec<String>> {
    text.split(',').map(|text| role(text.trim())).collect()
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
    if text.contains('\0') {
        Err("must be a path")
    } else {
        Ok(PathBuf::from(text))
    }
}

pub(super) fn image_path(text: &str) -> Parsed<PathBuf> {
    let known = [".svg", ".png", ".jpg", ".webp"]
        .iter()
        .any(|ending| text.ends_with(ending));
    if known {
        absolute_path(text)
    } else {
        Err("must end in .svg, .png, .jpg or .webp")
    }
}

pub(super) fn link(text: &str) -> Parsed<String> {
    WebUrl::parse(text).map(|_| text.to_owned())
}

/// Where help is: on the web, or a mailbox.
pub(super) fn help_link(text: &str) -> Parsed<String> {
    match text.strip_prefix("mailto:") {
        Some(address) => MailAddress::parse(address).map(|_| text.to_owned()),
        None => link(text),
    }
}

pub(super) fn color(text: &str) -> Parsed<Color> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
    let valid = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let number = valid
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or("must be a colour such as #1a2b3c")?;
    let [_, red, green, blue] = number.to_be_bytes();
    Ok(Color([red, green, blue]))
}

/// What stands on the pages: short, one line.
pub(super) fn brand_name(text: &str) -> Parsed<String> {
    if text.chars().count() > 60 || text.chars().any(char::is_control) || text.trim().is_empty() {
        return Err("must be 1 to 60 printable characters");
    }
    Ok(text.to_owned())
}

/// The issuer: https, or http on loopback; no trailing slash, query, fragment or user info.
#[derive(Debug)]
pub struct BaseUrl {
    text: String,
    origin_length: usize,
}

impl BaseUrl {
    /// Reads a base URL; the error is the rule that was broken. What can be spelt in two ways is
    /// refused: clients compare the issuer byte for byte (OpenID Connect Discovery §4.3), browsers
    /// its origin with their own spelling.
    pub fn parse(text: &str) -> Result<BaseUrl, &'static str> {
        let url = WebUrl::parse(text)?;
        if !url.is_protected() {
            return Err("must be https; plain http is for 127.0.0.1, [::1] and localhost only");
        }
        if url.query.is_some() {
            return Err("must not have a query");
        }
        if url.port == Some(if url.https { 443 } else { 80 }) {
            return Err("must leave out the scheme's own port, as browsers do");
        }
        if url.path.ends_with('/') {
            return Err("must not end with a slash");
        }
        if !url.path.split('/').skip(1).all(is_plain_segment) {
            return Err(
                "must have a path of plain segments: letters, digits, - . _ ~, no // and no dot \
                 segments",
            );
        }
        Ok(BaseUrl {
            text: text.to_owned(),
            origin_length: url.origin.len(),
        })
    }

    /// Stands in while problems are still being collected; a configuration that holds it is never
    /// handed out.
    pub(super) fn placeholder() -> BaseUrl {
        BaseUrl {
            text: String::new(),
            origin_length: 0,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Scheme, host and port, as browsers send them in `Origin`.
    pub fn origin(&self) -> &str {
        self.text
            .split_at_checked(self.origin_length)
            .map_or(&self.text, |(origin, _)| origin)
    }

    /// The path in front of every path of ours; empty or beginning with `/`.
    pub fn path(&self) -> &str {
        self.text
            .split_at_checked(self.origin_length)
            .map_or("", |(_, path)| path)
    }

    /// The path of a page of ours, as `/login`.
    pub fn path_of(&self, page: &str) -> String {
        format!("{}{page}", self.path())
    }

    /// Whether cookies can be `Secure` and carry the `__Host-` prefix.
    pub fn is_https(&self) -> bool {
        self.text.starts_with("https://")
    }
}

fn is_plain_segment(segment: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    !matches!(segment, "" | "." | "..") && segment.bytes().all(allowed)
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

    mod base_url {
        use super::super::*;

        #[test]
        fn origin_and_path_are_told_apart() {
            let url = BaseUrl::parse("https://login.example.com:8443/id/v1").unwrap();
            assert_eq!(
                (url.origin(), url.path()),
                ("https://login.example.com:8443", "/id/v1")
            );
            let url = BaseUrl::parse("http://localhost:8080").unwrap();
            assert_eq!(
                (url.origin(), url.path(), url.is_https()),
                ("http://localhost:8080", "", false)
            );
        }

        #[test]
        fn issuers_that_could_be_spelt_in_two_ways_are_refused() {
            for text in
                "http://login.example.com https://login.example.com/ https://login.example.com/a/ https://a.example//b \
                https://a.example/../b https://a.example/./b https://a.example/b?c https://a.example/b? \
                https://a.example#b https://u:p@a.example https://A.example https://a.example:443 \
                http://localhost:80 https://a.example/%41 login.example.com https:// http://127.0.0.2:8080"
                    .split(' ')
            {
                assert!(BaseUrl::parse(text).is_err(), "{text}");
            }
        }
    }
}
