//! How letters are sent: the server, its password, and the sender's address.

use percent_encoding::percent_decode_str;

use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::secret::SecretText;

#[derive(Debug)]
pub struct Mail {
    pub server: SmtpServer,
    /// There is one where the server's URL names a user.
    pub password: Option<SecretText>,
    pub from: MailAddress,
}

/// What `GATEPOST_SMTP_URL` says.
#[derive(Debug, PartialEq)]
pub struct SmtpServer {
    pub security: SmtpSecurity,
    pub user: Option<String>,
    pub host: String,
    pub port: u16,
}

#[derive(Debug, PartialEq)]
pub enum SmtpSecurity {
    /// TLS from the first byte (RFC 8314 §3.3).
    Tls,
    /// STARTTLS (RFC 3207), or no letter.
    StartTls,
    /// None, which is for this machine alone.
    Clear,
}

impl SmtpServer {
    /// Reads a URL; the error is the rule that it breaks.
    pub(super) fn parse(text: &str) -> Result<SmtpServer, &'static str> {
        let rule = "must be smtps://USER@HOST:465 or smtp://USER@HOST:587";
        let (scheme, rest) = text.split_once("://").ok_or(rule)?;
        let is_tls = match scheme {
            "smtps" => true,
            "smtp" => false,
            _ => return Err(rule),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user_name(user)?), place),
            None => (None, rest),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, Some(port.parse().map_err(|_| rule)?))
            }
            _ => (place, None),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
        if host.is_empty() || port == Some(0) || !host.bytes().all(is_host) {
            return Err(rule);
        }
        let is_here = matches!(host, "localhost" | "127.0.0.1" | "::1");
        let security = match (is_tls, &user) {
            (true, _) => SmtpSecurity::Tls,
            (false, None) if is_here => SmtpSecurity::Clear,
            (false, _) => SmtpSecurity::StartTls,
        };
        let usual = match security {
            SmtpSecurity::Tls => 465,
            SmtpSecurity::StartTls => 587,
            SmtpSecurity::Clear => 25,
        };
        Ok(SmtpServer {
            security,
            user,
            host: host.to_owned(),
            port: port.unwrap_or(usual),
        })
    }
}

fn user_name(encoded: &str) -> Result<String, &'static str> {
    let user = percent_decode_str(encoded).decode_utf8().ok();
    let user = user.filter(|user| !user.is_empty() && !user.contains(char::is_control));
    let user = user.ok_or("must have a user before the @, percent-encoded")?;
    if user.contains(':') {
        return Err("must not have the password in it: that is for GATEPOST_SMTP_PASSWORD_FILE");
    }
    Ok(user.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_url() {
        use SmtpSecurity::{Clear, StartTls, Tls};
        for (text, security, user, host, port) in [
            (
                "smtps://u@mail.example.com",
                Tls,
                Some("u"),
                "mail.example.com",
                465,
            ),
            (
                "smtps://mail.example.com:2465/",
                Tls,
                None,
                "mail.example.com",
                2465,
            ),
            (
                "smtp://a%40b.example@h:587",
                StartTls,
                Some("a@b.example"),
                "h",
                587,
            ),
            (
                "smtp://a@b.example@h",
                StartTls,
                Some("a@b.example"),
                "h",
                587,
            ),
            (
                "smtp://mail.example.com",
                StartTls,
                None,
                "mail.example.com",
                587,
            ),
            ("smtp://localhost", Clear, None, "localhost", 25),
            ("smtp://[::1]:2525", Clear, None, "::1", 2525),
            (
                "smtp://u@localhost:2525",
                StartTls,
                Some("u"),
                "localhost",
                2525,
            ),
        ] {
            let expected = SmtpServer {
                security,
                user: user.map(str::to_owned),
                host: host.to_owned(),
                port,
            };
            assert_eq!(SmtpServer::parse(text), Ok(expected), "{text}");
        }
        for text in [
            "mail.example.com",
            "http://mail.example.com",
            "smtp://",
            "smtp://u@",
            "smtp://@h",
            "smtp://u:secret@h",
            "smtp://h:0",
            "smtp://h:x",
            "smtp://h/path",
            "smtps://h?tls=none",
            "smtp://a b",
        ] {
            assert!(SmtpServer::parse(text).is_err(), "{text}");
        }
    }
}
