//! From a [`Source`] to a [`Config`].

use std::time::Duration;

use super::mail::{Mail, SmtpServer};
use super::reader::Reader;
use super::settings::*;
use super::source::Source;
use super::{
    Argon2Parameters, BaseUrl, Brand, Config, ConfigError, InvalidClientStatus, KeyDays, LANGUAGES,
    Limits, ListenAddress, Listeners, LogFormat, NewPasswords, Problem, SameSite, ScopeClaim,
    installed,
};
use crate::config::reader;
use gatepost_protocol::login::password::SignInWith;
use gatepost_protocol::registration::administration::Administration;
use gatepost_protocol::registration::client_rules::ClientDefaults;
use gatepost_protocol::words::client::AccessTokenTyp;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::named::Named;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::strength::Strength;

const SECONDS_PER_DAY: u64 = 86_400;

impl Listeners {
    /// Reads the two addresses alone: what `healthcheck` needs.
    pub fn load(source: &Source) -> Result<Listeners, ConfigError> {
        let mut reader = Reader::new(source);
        let listeners = listeners(&mut reader);
        ConfigError::unless_empty(reader.problems)?;
        Ok(listeners)
    }
}

impl Config {
    /// Why no session would be bound, where that is on.
    pub fn bound_sessions_fault(&self) -> Option<&'static str> {
        let has_own_origin = self.base_url.is_https() && self.base_url.path().is_empty();
        (self.bound_sessions && !has_own_origin).then_some(
            "GATEPOST_BOUND_SESSIONS is on, and needs a GATEPOST_BASE_URL with https and without a \
             path",
        )
    }

    /// Why nobody gets to `/admin`, where it takes bound sessions alone and no session is bound.
    pub fn administration_fault(&self) -> Option<&'static str> {
        let requires = self.administration.as_ref()?.requires_bound_session;
        (requires && !self.bound_sessions).then_some(
            "nobody gets to /admin: GATEPOST_ADMIN_BOUND_SESSION is on, and \
             GATEPOST_BOUND_SESSIONS is off",
        )
    }

    /// Reads everything; refuses with every problem there is.
    pub fn load(source: &Source) -> Result<Config, ConfigError> {
        let mut reader = Reader::new(source);
        let config = config(&mut reader, source.cores);
        let published =
            Duration::from_secs(u64::from(config.key_days.publish).saturating_mul(SECONDS_PER_DAY));
        if config.client_defaults.access_token_lifetime > published {
            let rule = format!(
                "must not outlive the key that signed: {} is shorter",
                KEY_PUBLISH_DAYS.name
            );
            reader.problem(ACCESS_TOKEN_LIFETIME.name, rule);
        }
        if config
            .remember_session_lifetime
            .is_some_and(|lifetime| lifetime <= config.session_lifetime)
        {
            let rule = format!("must be longer than {}", SESSION_LIFETIME.name);
            reader.problem(REMEMBER_SESSION_LIFETIME.name, rule);
        }
        let lacks = |problem: &Problem| problem.rule == reader::IS_REQUIRED;
        if let Some(rule) = &source.of_installed
            && reader.problems.iter().any(lacks)
        {
            reader.problem(installed::FILE, rule.as_str());
        }
        ConfigError::unless_empty(reader.problems)?;
        Ok(config)
    }
}

/// Every problem leaves a placeholder behind and a note in the reader, so that all of them are
/// found in one go.
fn config(reader: &mut Reader<'_>, cores: u32) -> Config {
    let database_url = reader.secret(
        &DATABASE_URL,
        &DATABASE_URL_FILE,
        Some("gatepost-database-url"),
    );
    let base_url = reader
        .parsed(&BASE_URL, BaseUrl::parse)
        .unwrap_or_else(BaseUrl::placeholder);
    let remember = reader.seconds(&REMEMBER_SESSION_LIFETIME);
    let workers = reader.number_or(&WORKERS, cores.saturating_mul(4).clamp(16, 1_024));
    Config {
        database_url: database_url.unwrap_or_else(|| SecretText::new("")),
        database_connections: reader.number_or(&DATABASE_CONNECTIONS, workers.min(24)),
        grants_database_url: reader.secret(&GRANTS_DATABASE_URL, &GRANTS_DATABASE_URL_FILE, None),
        client_defaults: client_defaults(reader, &base_url),
        base_url,
        listeners: listeners(reader),
        workers,
        upstream_places: reader.number(&UPSTREAM_PLACES),
        client_cache_mib: reader.number(&CLIENT_CACHE_MIB),
        secret_file: reader.path_or_credential(&SECRET_FILE, "gatepost-secret"),
        trusted_proxies: reader
            .parsed(&TRUSTED_PROXIES, reader::cidr_list)
            .unwrap_or_default(),
        log_level: log_level(reader),
        log_format: reader.choice(&LOG_FORMAT, LogFormat::CHOICES, LogFormat::Text),
        error_details: reader.choice(&ERROR_DETAILS, &[("off", false), ("on", true)], false),
        outbound_allow: reader
            .parsed(&OUTBOUND_ALLOW, reader::cidr_list)
            .unwrap_or_default(),
        ca_file: reader.parsed(&CA_FILE, reader::absolute_path),
        cookie_same_site: reader.choice(&COOKIE_SAMESITE, SameSite::CHOICES, SameSite::Lax),
        invalid_client_status: reader.choice(
            &INVALID_CLIENT_STATUS,
            InvalidClientStatus::CHOICES,
            InvalidClientStatus::Standard,
        ),
        scope_claim: reader.choice(&SCOPE_CLAIM, ScopeClaim::CHOICES, ScopeClaim::Text),
        audit_days: reader.number(&AUDIT_DAYS),
        brand: brand(reader),
        language: language(reader),
        mail: mail(reader),
        new_browser_mail: reader.is_on(&NEW_BROWSER_MAIL),
        key_days: key_days(reader),
        argon2: argon2(reader),
        passwords: passwords(reader),
        limits: limits(reader),
        authorization_request_lifetime: reader.seconds(&AUTHORIZATION_REQUEST_LIFETIME),
        session_lifetime: reader.seconds(&SESSION_LIFETIME),
        remember_session_lifetime: (!remember.is_zero()).then_some(remember),
        sign_in_with: reader.choice(&SIGN_IN_WITH, SignInWith::CHOICES, SignInWith::Username),
        pushed_requests: reader.is_on(&PUSHED_REQUESTS),
        id_jag: reader.is_on(&ID_JAG),
        client_assertions_name_issuer: reader.choice(
            &CLIENT_ASSERTION_AUDIENCE,
            &[("any", false), ("issuer", true)],
            false,
        ),
        bound_sessions: reader.is_on(&BOUND_SESSIONS),
        scim: reader.is_on(&SCIM),
        admin_api: reader.is_on(&ADMIN_API),
        administration: administration(reader),
        enrols: reader.choice(&ENROLMENT, &[("sign-in", true), ("link", false)], true),
        people_change_name: reader.choice(
            &PEOPLE_MAY_CHANGE,
            &[("nothing", false), ("name", true)],
            false,
        ),
    }
}

fn log_level(reader: &mut Reader<'_>) -> log::LevelFilter {
    let levels = [
        ("off", log::LevelFilter::Off),
        ("error", log::LevelFilter::Error),
        ("warn", log::LevelFilter::Warn),
        ("info", log::LevelFilter::Info),
        ("debug", log::LevelFilter::Debug),
    ];
    reader.choice(&LOG, &levels, log::LevelFilter::Info)
}

fn listeners(reader: &mut Reader<'_>) -> Listeners {
    let anywhere = ListenAddress::Tcp(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
    Listeners {
        main: reader
            .parsed(&LISTEN, reader::listen_address)
            .unwrap_or(anywhere),
        admin: reader
            .parsed(&ADMIN_LISTEN, reader::socket_address_or_off)
            .flatten(),
    }
}

fn brand(reader: &mut Reader<'_>) -> Brand {
    Brand {
        name: reader
            .parsed(&BRAND_NAME, reader::brand_name)
            .unwrap_or_default(),
        logo: reader.parsed(&BRAND_LOGO, reader::image_path),
        color: reader.parsed(&BRAND_COLOR, reader::color),
        privacy_url: reader.parsed(&BRAND_PRIVACY_URL, reader::link),
        terms_url: reader.parsed(&BRAND_TERMS_URL, reader::link),
        help_url: reader.parsed(&BRAND_HELP_URL, reader::help_link),
    }
}

fn language(reader: &mut Reader<'_>) -> &'static str {
    reader.choice(&LANGUAGE, &LANGUAGES.map(|tag| (tag, tag)), "en")
}

/// `None` where no server is named: then there is no e-mail at all.
fn mail(reader: &mut Reader<'_>) -> Option<Mail> {
    let Some(server) = reader.parsed(&SMTP_URL, SmtpServer::parse) else {
        // What is set for later must be right, too.
        reader.parsed(&MAIL_FROM, MailAddress::parse);
        return None;
    };
    let from = reader.needed(&MAIL_FROM, "is required with GATEPOST_SMTP_URL", |reader| {
        reader.parsed(&MAIL_FROM, MailAddress::parse)
    });
    let password = match server.user {
        Some(_) => reader.needed(
            &SMTP_PASSWORD_FILE,
            "is required: GATEPOST_SMTP_URL names a user",
            |reader| {
                let credential = "gatepost-smtp-password";
                reader.secret_file_or_credential(&SMTP_PASSWORD_FILE, credential)
            },
        ),
        None => {
            let file = reader.parsed(&SMTP_PASSWORD_FILE, reader::absolute_path);
            if file.is_some() {
                let rule = "is of no use: GATEPOST_SMTP_URL names no user";
                reader.problem(SMTP_PASSWORD_FILE.name, rule);
            }
            None
        }
    };
    Some(Mail {
        server,
        password,
        from: from?,
    })
}

fn key_days(reader: &mut Reader<'_>) -> KeyDays {
    KeyDays {
        announce: reader.number(&KEY_ANNOUNCE_DAYS),
        sign: reader.number(&KEY_USE_DAYS),
        publish: reader.number(&KEY_PUBLISH_DAYS),
        hint: reader.number(&KEY_HINT_DAYS),
    }
}

fn argon2(reader: &mut Reader<'_>) -> Argon2Parameters {
    Argon2Parameters {
        memory_kib: reader.number(&ARGON2_MEMORY_KIB),
        passes: reader.number(&ARGON2_PASSES),
        lanes: reader.number(&ARGON2_LANES),
    }
}

fn passwords(reader: &mut Reader<'_>) -> NewPasswords {
    NewPasswords {
        least: reader.number(&PASSWORD_MIN_LENGTH),
        blocklist: reader.parsed(&PASSWORD_BLOCKLIST_FILE, reader::absolute_path),
    }
}

fn administration(reader: &mut Reader<'_>) -> Option<Administration> {
    let known = [Strength::TwoFactors, Strength::PhishingResistant].map(|one| (one.as_str(), one));
    let minimum_acr = reader.choice(&ADMIN_MINIMUM_ACR, &known, Strength::TwoFactors);
    let requires_bound_session = reader.is_on(&ADMIN_BOUND_SESSION);
    let given_roles = reader.parsed(&ADMIN_ROLES, reader::role_list);
    let administration = Administration {
        role: reader.parsed(&ADMIN_ROLE, reader::role)?,
        given_roles: given_roles.unwrap_or_default(),
        minimum_acr,
        requires_bound_session,
    };
    if administration.role.contains(':') {
        let rule = "must have no colon: a tenant stands behind it";
        reader.problem(ADMIN_ROLE.name, rule);
    }
    let mut given = administration.given_roles.iter();
    if given.any(|role| administration.is_admin_role(role)) {
        let rule = format!("must not have the role of {}", ADMIN_ROLE.name);
        reader.problem(ADMIN_ROLES.name, rule);
    }
    Some(administration)
}

fn limits(reader: &mut Reader<'_>) -> Limits {
    Limits {
        client_failures_per_minute: reader.number(&LIMIT_CLIENT_FAILURES_PER_MINUTE),
        password_window: reader.seconds(&LIMIT_PASSWORD_WINDOW),
        password_failures_per_account: reader.number(&LIMIT_PASSWORD_FAILURES_PER_ACCOUNT),
        password_failures_per_source: reader.number(&LIMIT_PASSWORD_FAILURES_PER_SOURCE),
        password_failures_per_hour: reader.number(&LIMIT_PASSWORD_FAILURES_PER_HOUR),
        password_new_source_wait: reader.seconds(&LIMIT_PASSWORD_NEW_SOURCE_WAIT),
        device_authorizations_per_minute: reader.number(&LIMIT_DEVICE_AUTHORIZATIONS_PER_MINUTE),
        device_pending: reader.number(&LIMIT_DEVICE_PENDING),
        user_code_failures_per_minute: reader.number(&LIMIT_USER_CODE_FAILURES_PER_MINUTE),
        user_code_failures_per_minute_overall: reader
            .number(&LIMIT_USER_CODE_FAILURES_PER_MINUTE_OVERALL),
        extension_failures_per_minute: reader.number(&LIMIT_EXTENSION_FAILURES_PER_MINUTE),
        logout_token_failures_per_minute: reader.number(&LIMIT_LOGOUT_TOKEN_FAILURES_PER_MINUTE),
        letters_per_hour: reader.number(&LIMIT_LETTERS_PER_HOUR),
        tracked: reader.number(&LIMIT_TRACKED),
    }
}

fn client_defaults(reader: &mut Reader<'_>, base_url: &BaseUrl) -> ClientDefaults {
    ClientDefaults {
        authorization_code_lifetime: reader.seconds(&AUTHORIZATION_CODE_LIFETIME),
        id_token_lifetime: reader.seconds(&ID_TOKEN_LIFETIME),
        access_token_lifetime: reader.seconds(&ACCESS_TOKEN_LIFETIME),
        refresh_token_lifetime: reader.seconds(&REFRESH_TOKEN_LIFETIME),
        refresh_token_idle_lifetime: reader.seconds(&REFRESH_TOKEN_IDLE_LIFETIME),
        refresh_token_retry_window: reader.seconds(&REFRESH_TOKEN_RETRY_WINDOW),
        refresh_token_retry_window_public: reader.seconds(&REFRESH_TOKEN_RETRY_WINDOW_PUBLIC),
        device_code_lifetime: reader.seconds(&DEVICE_CODE_LIFETIME),
        device_interval: reader.seconds(&DEVICE_INTERVAL),
        access_token_typ: reader.choice(
            &ACCESS_TOKEN_TYP,
            AccessTokenTyp::CHOICES,
            AccessTokenTyp::AtJwt,
        ),
        minimum_acr: reader.choice(&MINIMUM_ACR, Strength::CHOICES, Strength::SignedIn),
        issuer: base_url.as_str().to_owned(),
    }
}
