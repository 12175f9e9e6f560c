//! Every setting, read once and typed. Nothing else reads these of the environment. A configuration
//! that does not hold is refused whole, with every problem named.

mod installed;
mod load;
pub mod mail;
pub mod reader;
pub mod settings;
mod source;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use source::{Source, cause, environment_secret};

use crate::config::mail::Mail;
pub use crate::config::reader::BaseUrl;
use gatepost_protocol::login::password::SignInWith;
use gatepost_protocol::registration::administration::Administration;
use gatepost_protocol::registration::client_rules::ClientDefaults;
use gatepost_protocol::token::access_token::ScopeClaim;
use gatepost_protocol::token::client_authentication::InvalidClientStatus;
use gatepost_protocol::words::forwarded::Cidr;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::named::named;
use gatepost_protocol::words::secret::SecretText;

/// The languages of pages and letters, by their BCP 47 tags.
pub const LANGUAGES: [&str; 10] = [
    "en", "de", "fr", "es", "it", "pt", "nl", "pl", "ja", "zh-Hans",
];

#[derive(Debug)]
pub struct Config {
    pub database_url: SecretText,
    pub database_connections: u32,
    pub grants_database_url: Option<SecretText>,
    pub base_url: BaseUrl,
    pub listeners: Listeners,
    /// `GATEPOST_WORKERS`: threads, at least 5.
    pub workers: u32,
    /// `GATEPOST_UPSTREAM_PLACES`: requests that may wait for other servers at once.
    pub upstream_places: u32,
    pub client_cache_mib: u32,
    /// `GATEPOST_SECRET_FILE`, or the systemd credential: where the master secret is. `None` when
    /// neither was given.
    pub secret_file: Option<PathBuf>,
    pub trusted_proxies: Vec<Cidr>,
    pub log_level: log::LevelFilter,
    pub log_format: LogFormat,
    /// `GATEPOST_ERROR_DETAILS`: answers say what the log is told.
    pub error_details: bool,
    pub outbound_allow: Vec<Cidr>,
    pub ca_file: Option<PathBuf>,
    pub cookie_same_site: SameSite,
    pub invalid_client_status: InvalidClientStatus,
    pub scope_claim: ScopeClaim,
    pub audit_days: u32,
    pub brand: Brand,
    /// `GATEPOST_LANGUAGE`: the one of [`LANGUAGES`] for those who ask for none of them.
    pub language: &'static str,
    /// `None`: there is no e-mail, and no trace of it.
    pub mail: Option<Mail>,
    /// `GATEPOST_NEW_BROWSER_MAIL`
    pub new_browser_mail: bool,
    pub key_days: KeyDays,
    pub argon2: Argon2Parameters,
    pub passwords: NewPasswords,
    pub limits: Limits,
    /// `GATEPOST_AUTHORIZATION_REQUEST_LIFETIME`: how long a sealed request is good.
    pub authorization_request_lifetime: Duration,
    pub session_lifetime: Duration,
    /// `GATEPOST_REMEMBER_SESSION_LIFETIME`, where the sign-in page offers it.
    pub remember_session_lifetime: Option<Duration>,
    pub sign_in_with: SignInWith,
    /// `GATEPOST_PUSHED_REQUESTS`
    pub pushed_requests: bool,
    /// `GATEPOST_ID_JAG`
    pub id_jag: bool,
    /// `GATEPOST_CLIENT_ASSERTION_AUDIENCE`: whether client assertions must name the issuer.
    pub client_assertions_name_issuer: bool,
    /// `GATEPOST_BOUND_SESSIONS`: browsers that can are asked to bind their sessions to a key.
    pub bound_sessions: bool,
    /// `GATEPOST_SCIM`
    pub scim: bool,
    /// `GATEPOST_ADMIN_API`
    pub admin_api: bool,
    /// `GATEPOST_ADMIN_ROLE` and kin; `None`: there is no `/admin`.
    pub administration: Option<Administration>,
    /// `GATEPOST_ENROLMENT`: whether people who have no second factor may add their first by
    /// themselves.
    pub enrols: bool,
    /// `GATEPOST_PEOPLE_MAY_CHANGE`: whether people may change their own names.
    pub people_change_name: bool,
    /// `GATEPOST_*_LIFETIME` and kin: what clients that register none get.
    pub client_defaults: ClientDefaults,
}

#[derive(Debug)]
pub struct Listeners {
    pub main: ListenAddress,
    /// `GATEPOST_ADMIN_LISTEN`; `None` is off.
    pub admin: Option<SocketAddr>,
}

#[derive(Debug, PartialEq)]
pub enum ListenAddress {
    /// An address and port; port 0 lets the system choose.
    Tcp(SocketAddr),
    Unix(PathBuf),
}

named! {
    pub enum LogFormat {
        Text = "text",
        Json = "json",
    }
}

named! {
    pub enum SameSite {
        /// Sent with top-level navigation only.
        Lax = "lax",
        /// Sent inside frames of other sites, too.
        None = "none",
    }
}

#[derive(Clone, Debug)]
pub struct Brand {
    pub name: String,
    pub logo: Option<PathBuf>,
    pub color: Option<Color>,
    pub privacy_url: Option<String>,
    pub terms_url: Option<String>,
    /// Where those get help who cannot sign in.
    pub help_url: Option<String>,
}

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Color(pub [u8; 3]);

impl fmt::Display for Color {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Color([red, green, blue]) = self;
        write!(formatter, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyDays {
    pub announce: u32,
    pub sign: u32,
    /// Published after its last signature.
    pub publish: u32,
    /// Public part kept after that, to check hints.
    pub hint: u32,
}

/// What may become a password.
#[derive(Debug)]
pub struct NewPasswords {
    /// `GATEPOST_PASSWORD_MIN_LENGTH`: in characters.
    pub least: u32,
    /// `GATEPOST_PASSWORD_BLOCKLIST_FILE`
    pub blocklist: Option<PathBuf>,
}

/// Argon2id parameters (RFC 9106 §3.1).
#[derive(Debug, PartialEq)]
pub struct Argon2Parameters {
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Failed client authentications a minute, per (client, source).
    pub client_failures_per_minute: u32,
    pub password_window: Duration,
    /// Wrong passwords per (account, source).
    pub password_failures_per_account: u32,
    pub password_failures_per_source: u32,
    /// Wrong passwords an hour for one account from everywhere, after which new sources wait.
    pub password_failures_per_hour: u32,
    pub password_new_source_wait: Duration,
    /// Device authorizations a minute, per (client, source).
    pub device_authorizations_per_minute: u32,
    pub device_pending: u32,
    pub user_code_failures_per_minute: u32,
    /// Wrong user codes a minute, over all.
    pub user_code_failures_per_minute_overall: u32,
    pub extension_failures_per_minute: u32,
    /// Logout tokens a minute that are not believed, per source.
    pub logout_token_failures_per_minute: u32,
    /// Letters an hour to people who forgot their password.
    pub letters_per_hour: u32,
    /// Counters held in memory at once.
    pub tracked: u32,
}

/// One thing that is wrong, never with a secret in it.
#[derive(Debug, PartialEq)]
pub struct Problem {
    pub name: String,
    /// The rule that was broken; reads on after the name.
    pub rule: String,
}

impl Problem {
    fn new(name: impl Into<String>, rule: impl Into<String>) -> Problem {
        Problem {
            name: name.into(),
            rule: rule.into(),
        }
    }
}

/// Everything that is wrong with a configuration; ends a command with exit code 78. `Display` gives
/// a line per problem.
#[derive(Debug)]
pub struct ConfigError {
    pub problems: Vec<Problem>,
}

impl ConfigError {
    pub fn new(name: impl Into<String>, rule: impl Into<String>) -> ConfigError {
        ConfigError {
            problems: vec![Problem::new(name, rule)],
        }
    }

    fn unless_empty(problems: Vec<Problem>) -> Result<(), ConfigError> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(ConfigError { problems })
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems = self.problems.iter();
        let lines = problems.map(|problem| format!("{} {}", problem.name, problem.rule));
        formatter.write_str(&joined("\n", lines))
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests;
