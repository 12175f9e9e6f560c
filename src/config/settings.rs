//! Every setting there is, in the order in which the README lists them.

use super::setting::Default::{Described, Required, Text};
use super::setting::{Kind, Setting};

/// Ten years: nothing that ends lives longer.
pub const LONGEST_LIFETIME: u32 = 315_360_000;
const LIFETIME: (u32, u32) = (1, LONGEST_LIFETIME);
const COUNT: (u32, u32) = (1, 1_000_000);

pub(super) const DATABASE_URL: Setting = Setting::secret(
    "GATEPOST_DATABASE_URL",
    Required,
    "Postgres, as a URL or key/value string; also `sslmode=verify-ca` or `verify-full` with `sslrootcert`; several hosts \
     allowed. Or in a file (next line), or the systemd credential `gatepost-database-url`",
);
pub(super) const DATABASE_URL_FILE: Setting = Setting::text(
    "GATEPOST_DATABASE_URL_FILE",
    Described("the systemd credential `gatepost-database-url`"),
    "file that holds the database URL",
);
pub(super) const DATABASE_CONNECTIONS: Setting = Setting {
    name: "GATEPOST_DATABASE_CONNECTIONS",
    default: Described("as many as workers, at most 24"),
    meaning: "connections in the pool",
    kind: Kind::Number { min: 1, max: 1_000 },
};
pub(super) const GRANTS_DATABASE_URL: Setting = Setting::secret(
    "GATEPOST_GRANTS_DATABASE_URL",
    Described("none: the main connection"),
    "connection for SQL-function grants, with a role that may only execute them",
);
pub(super) const GRANTS_DATABASE_URL_FILE: Setting = Setting::text(
    "GATEPOST_GRANTS_DATABASE_URL_FILE",
    Described("none"),
    "file that holds the URL of the connection for SQL-function grants",
);
pub(super) const BASE_URL: Setting = Setting::text(
    "GATEPOST_BASE_URL",
    Required,
    "the issuer, byte for byte; may have a path; https, or http on `127.0.0.1`, `[::1]` or `localhost`. Frozen in the \
     database at the first start; `gatepost migrate --rename-issuer` moves it",
);
pub(super) const LISTEN: Setting = Setting::text(
    "GATEPOST_LISTEN",
    Text("127.0.0.1:8080"),
    "where requests come in: an address and port, or `unix:` and an absolute path",
);
pub(super) const ADMIN_LISTEN: Setting = Setting::text_or_empty(
    "GATEPOST_ADMIN_LISTEN",
    Text("127.0.0.1:9464"),
    "address and port of `/healthz`, `/readyz` and `/metrics`; off when empty. Of one service alone",
);
pub(super) const WORKERS: Setting = Setting {
    name: "GATEPOST_WORKERS",
    default: Described("4 x cores, at least 16"),
    meaning: "worker threads",
    kind: Kind::Number { min: 5, max: 1_024 },
};
pub(super) const SECRET_FILE: Setting = Setting::text(
    "GATEPOST_SECRET_FILE",
    Described("the systemd credential `gatepost-secret`"),
    "file that holds the master secret (`gatepost secret` makes one)",
);
pub(super) const TRUSTED_PROXIES: Setting = Setting::text_or_empty(
    "GATEPOST_TRUSTED_PROXIES",
    Text("127.0.0.0/8,::1/128"),
    "address blocks whose `X-Forwarded-For` is believed, separated by commas",
);
pub(super) const LOG: Setting = Setting::text(
    "GATEPOST_LOG",
    Text("info"),
    "least level that is logged: `off`, `error`, `warn`, `info` or `debug`; heads of the audit log always are",
);
pub(super) const LOG_FORMAT: Setting = Setting::text("GATEPOST_LOG_FORMAT", Text("text"), "`text` or `json`");
pub(super) const OUTBOUND_ALLOW: Setting = Setting::text(
    "GATEPOST_OUTBOUND_ALLOW",
    Described("none"),
    "address blocks that our own requests may reach although they are not the open internet's: loopback, link-local, \
     private, NAT64 (`64:ff9b::/96`), separated by commas",
);
pub(super) const CA_FILE: Setting = Setting::text(
    "GATEPOST_CA_FILE",
    Described("the system's store alone"),
    "CA certificates (PEM) that our own requests trust besides the system's",
);
pub(super) const COOKIE_SAMESITE: Setting = Setting::text(
    "GATEPOST_COOKIE_SAMESITE",
    Text("lax"),
    "`lax`, or `none` where silent renewal in iframes of other sites is needed",
);
pub(super) const INVALID_CLIENT_STATUS: Setting = Setting::text(
    "GATEPOST_INVALID_CLIENT_STATUS",
    Text("standard"),
    "status of `invalid_client`: `standard` (401 when the header was used, else 400) or `400`",
);
pub(super) const SCOPE_CLAIM: Setting = Setting::text(
    "GATEPOST_SCOPE_CLAIM",
    Text("string"),
    "`scope` in JWT access tokens: `string` (RFC 9068) or `array`",
);
pub(super) const ACCESS_TOKEN_TYP: Setting = Setting::text(
    "GATEPOST_ACCESS_TOKEN_TYP",
    Text("at+jwt"),
    "`typ` of JWT access tokens, for clients that register none: `at+jwt` (RFC 9068) or `JWT`",
);
pub(super) const AUDIT_DAYS: Setting =
    Setting::number("GATEPOST_AUDIT_DAYS", 400, (1, 3_650), "days that audit events are kept");

pub(super) const BRAND_NAME: Setting =
    Setting::text("GATEPOST_BRAND_NAME", Text("Gatepost"), "name on the pages, at most 60 characters");
pub(super) const BRAND_LOGO: Setting = Setting::text(
    "GATEPOST_BRAND_LOGO",
    Described("none"),
    "file with the logo on the pages: `.svg`, `.png`, `.jpg` or `.webp`, at an absolute path",
);
pub(super) const BRAND_COLOR: Setting =
    Setting::text("GATEPOST_BRAND_COLOR", Described("the pages' own"), "colour of buttons and links, as `#rrggbb`");
pub(super) const BRAND_PRIVACY_URL: Setting =
    Setting::text("GATEPOST_BRAND_PRIVACY_URL", Described("none"), "privacy policy linked from the pages");
pub(super) const BRAND_TERMS_URL: Setting =
    Setting::text("GATEPOST_BRAND_TERMS_URL", Described("none"), "terms of service linked from the pages");

pub(super) const KEY_ANNOUNCE_DAYS: Setting =
    Setting::number("GATEPOST_KEY_ANNOUNCE_DAYS", 14, (1, 365), "days that a signing key is published before it signs");
pub(super) const KEY_USE_DAYS: Setting =
    Setting::number("GATEPOST_KEY_USE_DAYS", 90, (1, 3_650), "days that a signing key signs");
pub(super) const KEY_PUBLISH_DAYS: Setting = Setting::number(
    "GATEPOST_KEY_PUBLISH_DAYS",
    14,
    (1, 3_650),
    "days that a signing key stays published after its last signature",
);
pub(super) const KEY_HINT_DAYS: Setting = Setting::number(
    "GATEPOST_KEY_HINT_DAYS",
    90,
    (1, 3_650),
    "days more that its public part is kept to check `id_token_hint`",
);

pub(super) const ARGON2_MEMORY_KIB: Setting = Setting::number(
    "GATEPOST_ARGON2_MEMORY_KIB",
    19_456,
    (7_168, 1_048_576),
    "memory of one password hash, KiB (Argon2id)",
);
pub(super) const ARGON2_PASSES: Setting =
    Setting::number("GATEPOST_ARGON2_PASSES", 2, (1, 20), "passes of a password hash");
pub(super) const ARGON2_LANES: Setting =
    Setting::number("GATEPOST_ARGON2_LANES", 1, (1, 16), "lanes of a password hash");

pub(super) const AUTHORIZATION_REQUEST_LIFETIME: Setting = Setting::number(
    "GATEPOST_AUTHORIZATION_REQUEST_LIFETIME",
    3_600,
    (60, 86_400),
    "seconds that a person may take from the authorization request to its answer",
);
pub(super) const SESSION_LIFETIME: Setting =
    Setting::number("GATEPOST_SESSION_LIFETIME", 36_000, LIFETIME, "seconds that a sign-in lasts, from its beginning");
pub(super) const AUTHORIZATION_CODE_LIFETIME: Setting = Setting::number(
    "GATEPOST_AUTHORIZATION_CODE_LIFETIME",
    60,
    (1, 600),
    "seconds, for clients that register none (so the lines below)",
);
pub(super) const ID_TOKEN_LIFETIME: Setting = Setting::number("GATEPOST_ID_TOKEN_LIFETIME", 300, LIFETIME, "seconds");
pub(super) const ACCESS_TOKEN_LIFETIME: Setting =
    Setting::number("GATEPOST_ACCESS_TOKEN_LIFETIME", 3_600, LIFETIME, "seconds");
pub(super) const REFRESH_TOKEN_LIFETIME: Setting =
    Setting::number("GATEPOST_REFRESH_TOKEN_LIFETIME", 2_592_000, LIFETIME, "seconds, from the beginning of the grant");
pub(super) const REFRESH_TOKEN_IDLE_LIFETIME: Setting =
    Setting::number("GATEPOST_REFRESH_TOKEN_IDLE_LIFETIME", 1_296_000, LIFETIME, "seconds, from the last use");
pub(super) const REFRESH_TOKEN_RETRY_WINDOW: Setting = Setting::number(
    "GATEPOST_REFRESH_TOKEN_RETRY_WINDOW",
    30,
    (0, 600),
    "seconds in which a confidential client may repeat a refresh whose answer was lost",
);
pub(super) const REFRESH_TOKEN_RETRY_WINDOW_PUBLIC: Setting =
    Setting::number("GATEPOST_REFRESH_TOKEN_RETRY_WINDOW_PUBLIC", 10, (0, 600), "the same for public clients");
pub(super) const DEVICE_CODE_LIFETIME: Setting =
    Setting::number("GATEPOST_DEVICE_CODE_LIFETIME", 600, (1, 86_400), "seconds");
pub(super) const DEVICE_INTERVAL: Setting =
    Setting::number("GATEPOST_DEVICE_INTERVAL", 5, (1, 300), "seconds between two polls of a device");

pub(super) const LIMIT_CLIENT_FAILURES_PER_MINUTE: Setting = Setting::number(
    "GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE",
    20,
    // A Basic header that reads two ways is two guesses.
    (2, 1_000_000),
    "wrong secrets per client and source, and per source of all names that no client has",
);
pub(super) const LIMIT_PASSWORD_WINDOW: Setting = Setting::number(
    "GATEPOST_LIMIT_PASSWORD_WINDOW",
    600,
    (1, 86_400),
    "seconds over which wrong passwords are counted (next two lines)",
);
pub(super) const LIMIT_PASSWORD_FAILURES_PER_ACCOUNT: Setting = Setting::number(
    "GATEPOST_LIMIT_PASSWORD_FAILURES_PER_ACCOUNT",
    10,
    COUNT,
    "wrong passwords per account and source",
);
pub(super) const LIMIT_PASSWORD_FAILURES_PER_SOURCE: Setting =
    Setting::number("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_SOURCE", 50, COUNT, "wrong passwords per source");
pub(super) const LIMIT_PASSWORD_FAILURES_PER_HOUR: Setting = Setting::number(
    "GATEPOST_LIMIT_PASSWORD_FAILURES_PER_HOUR",
    300,
    COUNT,
    "wrong passwords for one account from everywhere, after which each new source waits",
);
pub(super) const LIMIT_PASSWORD_NEW_SOURCE_WAIT: Setting =
    Setting::number("GATEPOST_LIMIT_PASSWORD_NEW_SOURCE_WAIT", 60, (1, 3_600), "seconds that such a source waits");
pub(super) const LIMIT_DEVICE_AUTHORIZATIONS_PER_MINUTE: Setting = Setting::number(
    "GATEPOST_LIMIT_DEVICE_AUTHORIZATIONS_PER_MINUTE",
    60,
    COUNT,
    "device authorizations per client and source",
);
pub(super) const LIMIT_DEVICE_PENDING: Setting =
    Setting::number("GATEPOST_LIMIT_DEVICE_PENDING", 10_000, COUNT, "undecided device authorizations per client");
pub(super) const LIMIT_USER_CODE_FAILURES_PER_MINUTE: Setting =
    Setting::number("GATEPOST_LIMIT_USER_CODE_FAILURES_PER_MINUTE", 10, COUNT, "wrong user codes per source");
pub(super) const LIMIT_USER_CODE_FAILURES_PER_MINUTE_OVERALL: Setting =
    Setting::number("GATEPOST_LIMIT_USER_CODE_FAILURES_PER_MINUTE_OVERALL", 1_000, COUNT, "wrong user codes in all");
pub(super) const LIMIT_EXTENSION_FAILURES_PER_MINUTE: Setting = Setting::number(
    "GATEPOST_LIMIT_EXTENSION_FAILURES_PER_MINUTE",
    20,
    COUNT,
    "what extension grants refuse, per client and source",
);
pub(super) const LIMIT_LOGOUT_TOKEN_FAILURES_PER_MINUTE: Setting = Setting::number(
    "GATEPOST_LIMIT_LOGOUT_TOKEN_FAILURES_PER_MINUTE",
    60,
    COUNT,
    "logout tokens that are not believed, per source",
);
pub(super) const LIMIT_TRACKED: Setting = Setting::number(
    "GATEPOST_LIMIT_TRACKED",
    100_000,
    (1_000, 10_000_000),
    "counters of each kind held in memory at once; the oldest give way",
);

pub const SETTINGS: &[&Setting] = &[
    &DATABASE_URL,
    &DATABASE_URL_FILE,
    &DATABASE_CONNECTIONS,
    &BASE_URL,
    &LISTEN,
    &ADMIN_LISTEN,
    &WORKERS,
    &SECRET_FILE,
    &TRUSTED_PROXIES,
    &LOG,
    &LOG_FORMAT,
    &OUTBOUND_ALLOW,
    &CA_FILE,
    &COOKIE_SAMESITE,
    &INVALID_CLIENT_STATUS,
    &SCOPE_CLAIM,
    &ACCESS_TOKEN_TYP,
    &GRANTS_DATABASE_URL,
    &GRANTS_DATABASE_URL_FILE,
    &AUDIT_DAYS,
    &BRAND_NAME,
    &BRAND_LOGO,
    &BRAND_COLOR,
    &BRAND_PRIVACY_URL,
    &BRAND_TERMS_URL,
    &KEY_ANNOUNCE_DAYS,
    &KEY_USE_DAYS,
    &KEY_PUBLISH_DAYS,
    &KEY_HINT_DAYS,
    &ARGON2_MEMORY_KIB,
    &ARGON2_PASSES,
    &ARGON2_LANES,
    &AUTHORIZATION_REQUEST_LIFETIME,
    &SESSION_LIFETIME,
    &AUTHORIZATION_CODE_LIFETIME,
    &ID_TOKEN_LIFETIME,
    &ACCESS_TOKEN_LIFETIME,
    &REFRESH_TOKEN_LIFETIME,
    &REFRESH_TOKEN_IDLE_LIFETIME,
    &REFRESH_TOKEN_RETRY_WINDOW,
    &REFRESH_TOKEN_RETRY_WINDOW_PUBLIC,
    &DEVICE_CODE_LIFETIME,
    &DEVICE_INTERVAL,
    &LIMIT_CLIENT_FAILURES_PER_MINUTE,
    &LIMIT_PASSWORD_WINDOW,
    &LIMIT_PASSWORD_FAILURES_PER_ACCOUNT,
    &LIMIT_PASSWORD_FAILURES_PER_SOURCE,
    &LIMIT_PASSWORD_FAILURES_PER_HOUR,
    &LIMIT_PASSWORD_NEW_SOURCE_WAIT,
    &LIMIT_DEVICE_AUTHORIZATIONS_PER_MINUTE,
    &LIMIT_DEVICE_PENDING,
    &LIMIT_USER_CODE_FAILURES_PER_MINUTE,
    &LIMIT_USER_CODE_FAILURES_PER_MINUTE_OVERALL,
    &LIMIT_EXTENSION_FAILURES_PER_MINUTE,
    &LIMIT_LOGOUT_TOKEN_FAILURES_PER_MINUTE,
    &LIMIT_TRACKED,
];

pub fn by_flag(flag: &str) -> Option<&'static Setting> {
    SETTINGS.iter().copied().find(|setting| setting.flag().as_deref() == Some(flag))
}

/// The README's table of settings, in Markdown; a test compares the two.
pub fn settings_table() -> String {
    let mut table = String::from("| variable | meaning | default |\n|---|---|---|\n");
    for setting in SETTINGS {
        table.push_str(&format!("| `{}` | {} | {} |\n", setting.name, setting.meaning, setting.default_text()));
    }
    table
}
