//! From a [`Source`] to a [`Config`].

use std::time::Duration;

use crate::protocol::registration::defaults::ClientDefaults;
use crate::protocol::words::client::AccessTokenTyp;
use crate::protocol::words::secret::SecretText;

use super::reader::Reader;
use super::settings;
use super::source::Source;
use super::{
    Argon2Parameters, BaseUrl, Brand, Config, ConfigError, InvalidClientStatus, KeyDays, Limits, ListenAddress,
    Listeners, LogFormat, Problem, SameSite, ScopeClaim, values,
};

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
    /// Reads everything; refuses with every problem there is.
    pub fn load(source: &Source) -> Result<Config, ConfigError> {
        let mut reader = Reader::new(source);
        let config = config(&mut reader, source.cores);
        reader.problems.extend(contradictions(&config));
        ConfigError::unless_empty(reader.problems)?;
        Ok(config)
    }
}

/// Every problem leaves a placeholder behind and a note in the reader, so that all of them are found in one go.
fn config(reader: &mut Reader<'_>, cores: u32) -> Config {
    let database_url =
        reader.secret(&settings::DATABASE_URL, &settings::DATABASE_URL_FILE, Some("gatepost-database-url"));
    let workers = reader.number_or(&settings::WORKERS, cores.saturating_mul(4).clamp(16, 1_024));
    Config {
        database_url: database_url.unwrap_or_else(|| SecretText::new("")),
        database_connections: reader.number_or(&settings::DATABASE_CONNECTIONS, workers.min(24)),
        grants_database_url: reader.secret(&settings::GRANTS_DATABASE_URL, &settings::GRANTS_DATABASE_URL_FILE, None),
        base_url: reader.parsed(&settings::BASE_URL, BaseUrl::parse).unwrap_or_else(BaseUrl::placeholder),
        listeners: listeners(reader),
        workers,
        secret_file: reader.path_or_credential(&settings::SECRET_FILE, "gatepost-secret"),
        trusted_proxies: reader.parsed(&settings::TRUSTED_PROXIES, values::cidr_list).unwrap_or_default(),
        log_level: log_level(reader),
        log_format: reader.choice(
            &settings::LOG_FORMAT,
            &[("text", LogFormat::Text), ("json", LogFormat::Json)],
            LogFormat::Text,
        ),
        outbound_allow: reader.parsed(&settings::OUTBOUND_ALLOW, values::cidr_list).unwrap_or_default(),
        ca_file: reader.parsed(&settings::CA_FILE, values::absolute_path),
        cookie_same_site: reader.choice(
            &settings::COOKIE_SAMESITE,
            &[("lax", SameSite::Lax), ("none", SameSite::None)],
            SameSite::Lax,
        ),
        invalid_client_status: reader.choice(
            &settings::INVALID_CLIENT_STATUS,
            &[("standard", InvalidClientStatus::Standard), ("400", InvalidClientStatus::Always400)],
            InvalidClientStatus::Standard,
        ),
        scope_claim: reader.choice(
            &settings::SCOPE_CLAIM,
            &[("string", ScopeClaim::Text), ("array", ScopeClaim::Array)],
            ScopeClaim::Text,
        ),
        audit_days: reader.number(&settings::AUDIT_DAYS),
        brand: brand(reader),
        key_days: key_days(reader),
        argon2: argon2(reader),
        limits: limits(reader),
        authorization_request_lifetime: reader.seconds(&settings::AUTHORIZATION_REQUEST_LIFETIME),
        session_lifetime: reader.seconds(&settings::SESSION_LIFETIME),
        client_defaults: client_defaults(reader),
    }
}

fn listeners(reader: &mut Reader<'_>) -> Listeners {
    let anywhere = ListenAddress::Tcp(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
    Listeners {
        main: reader.parsed(&settings::LISTEN, values::listen_address).unwrap_or(anywhere),
        admin: reader.parsed(&settings::ADMIN_LISTEN, values::socket_address_or_off).flatten(),
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
    reader.choice(&settings::LOG, &levels, log::LevelFilter::Info)
}

fn brand(reader: &mut Reader<'_>) -> Brand {
    Brand {
        name: reader.parsed(&settings::BRAND_NAME, values::brand_name).unwrap_or_default(),
        logo: reader.parsed(&settings::BRAND_LOGO, values::image_path),
        color: reader.parsed(&settings::BRAND_COLOR, values::color),
        privacy_url: reader.parsed(&settings::BRAND_PRIVACY_URL, values::link),
        terms_url: reader.parsed(&settings::BRAND_TERMS_URL, values::link),
    }
}

fn key_days(reader: &mut Reader<'_>) -> KeyDays {
    KeyDays {
        announce: reader.number(&settings::KEY_ANNOUNCE_DAYS),
        sign: reader.number(&settings::KEY_USE_DAYS),
        publish: reader.number(&settings::KEY_PUBLISH_DAYS),
        hint: reader.number(&settings::KEY_HINT_DAYS),
    }
}

fn argon2(reader: &mut Reader<'_>) -> Argon2Parameters {
    Argon2Parameters {
        memory_kib: reader.number(&settings::ARGON2_MEMORY_KIB),
        passes: reader.number(&settings::ARGON2_PASSES),
        lanes: reader.number(&settings::ARGON2_LANES),
    }
}

fn limits(reader: &mut Reader<'_>) -> Limits {
    Limits {
        client_failures_per_minute: reader.number(&settings::LIMIT_CLIENT_FAILURES_PER_MINUTE),
        password_window: reader.seconds(&settings::LIMIT_PASSWORD_WINDOW),
        password_failures_per_account: reader.number(&settings::LIMIT_PASSWORD_FAILURES_PER_ACCOUNT),
        password_failures_per_source: reader.number(&settings::LIMIT_PASSWORD_FAILURES_PER_SOURCE),
        password_failures_per_hour: reader.number(&settings::LIMIT_PASSWORD_FAILURES_PER_HOUR),
        password_new_source_wait: reader.seconds(&settings::LIMIT_PASSWORD_NEW_SOURCE_WAIT),
        device_authorizations_per_minute: reader.number(&settings::LIMIT_DEVICE_AUTHORIZATIONS_PER_MINUTE),
        device_pending: reader.number(&settings::LIMIT_DEVICE_PENDING),
        user_code_failures_per_minute: reader.number(&settings::LIMIT_USER_CODE_FAILURES_PER_MINUTE),
        user_code_failures_per_minute_overall: reader.number(&settings::LIMIT_USER_CODE_FAILURES_PER_MINUTE_OVERALL),
        extension_failures_per_minute: reader.number(&settings::LIMIT_EXTENSION_FAILURES_PER_MINUTE),
        logout_token_failures_per_minute: reader.number(&settings::LIMIT_LOGOUT_TOKEN_FAILURES_PER_MINUTE),
        tracked: reader.number(&settings::LIMIT_TRACKED),
    }
}

fn client_defaults(reader: &mut Reader<'_>) -> ClientDefaults {
    ClientDefaults {
        authorization_code_lifetime: reader.seconds(&settings::AUTHORIZATION_CODE_LIFETIME),
        id_token_lifetime: reader.seconds(&settings::ID_TOKEN_LIFETIME),
        access_token_lifetime: reader.seconds(&settings::ACCESS_TOKEN_LIFETIME),
        refresh_token_lifetime: reader.seconds(&settings::REFRESH_TOKEN_LIFETIME),
        refresh_token_idle_lifetime: reader.seconds(&settings::REFRESH_TOKEN_IDLE_LIFETIME),
        refresh_token_retry_window: reader.seconds(&settings::REFRESH_TOKEN_RETRY_WINDOW),
        refresh_token_retry_window_public: reader.seconds(&settings::REFRESH_TOKEN_RETRY_WINDOW_PUBLIC),
        device_code_lifetime: reader.seconds(&settings::DEVICE_CODE_LIFETIME),
        device_interval: reader.seconds(&settings::DEVICE_INTERVAL),
        access_token_typ: reader.choice(&settings::ACCESS_TOKEN_TYP, &AccessTokenTyp::NAMED, AccessTokenTyp::AtJwt),
    }
}

fn contradictions(config: &Config) -> Vec<Problem> {
    let published = Duration::from_secs(u64::from(config.key_days.publish).saturating_mul(SECONDS_PER_DAY));
    let mut problems = Vec::new();
    if config.client_defaults.access_token_lifetime > published {
        let rule = format!("must not outlive the key that signed: {} is shorter", settings::KEY_PUBLISH_DAYS.name);
        problems.push(Problem::new(settings::ACCESS_TOKEN_LIFETIME.name, rule));
    }
    problems
}
