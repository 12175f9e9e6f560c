//! Every setting there is, in the order of `docs/reference/settings.md`.

use self::Default::{Described, Is, Required};
use self::Kind::{Number, Secret, Text, TextOrEmpty};
use gatepost_protocol::login::password::SHORTEST_PASSWORD;

/// Ten years: nothing that ends lives longer.
pub const LONGEST_LIFETIME: u32 = 315_360_000;
const LIFETIME: Kind = Number(1, LONGEST_LIFETIME);
const COUNT: Kind = Number(1, 1_000_000);

/// A row is the name without `GATEPOST_`, what values it takes, the default, and the meaning.
macro_rules! settings {
    ($($name:ident: $kind:expr, $default:expr, $meaning:expr;)+) => {
        $(pub(super) const $name: Setting = Setting {
            name: concat!("GATEPOST_", stringify!($name)),
            default: $default,
            meaning: $meaning,
            kind: $kind,
        };)+

        pub const SETTINGS: &[&Setting] = &[$(&$name),+];
    };
}

settings! {
    DATABASE_URL: Secret, Required,
        "Postgres, as a URL or key/value string. It may have several hosts, and \
         `sslmode=verify-ca` or `verify-full` with `sslrootcert`. Or keep it in a file: \
         `GATEPOST_DATABASE_URL_FILE`, or the systemd credential `gatepost-database-url`";
    DATABASE_URL_FILE: Text, Described("the systemd credential `gatepost-database-url`"),
        "file that holds the database URL";
    DATABASE_CONNECTIONS: Number(1, 1_000), Described("as many as workers, at most 24"),
        "connections in the pool";
    BASE_URL: Text, Required,
        "the issuer, byte for byte: https, or http on `127.0.0.1`, `[::1]` or `localhost`; it may \
         have a path. The first `gatepost migrate` stores it in the database; its \
         `--rename-issuer` changes it";
    LISTEN: Text, Is("127.0.0.1:8080"),
        "where requests come in: an address and port, or `unix:` and an absolute path";
    ADMIN_LISTEN: TextOrEmpty, Is("127.0.0.1:9464"),
        "address and port of `/healthz`, `/readyz` and `/metrics`; empty turns it off. Only one \
         service can have it";
    WORKERS: Number(5, 1_024), Described("4 x cores, at least 16"), "worker threads";
    UPSTREAM_PLACES: Number(1, 1_000), Is("24"),
        "requests that may wait for other servers at once (identity providers; keys, logos and \
         metadata documents of clients), \
         three quarters of them for one server; as many more may wait for their turn. Each has a \
         thread of its own, besides the workers";
    CLIENT_CACHE_MIB: Number(1, 65_536), Is("64"),
        "memory for clients in use, in MiB, about 2 kB each. Others are read from the database \
         when they come";
    SECRET_FILE: Text, Described("the systemd credential `gatepost-secret`"),
        "file that holds the master secret (`gatepost secret` makes one)";
    TRUSTED_PROXIES: TextOrEmpty, Is("127.0.0.0/8,::1/128"),
        "address blocks whose `X-Forwarded-For` and `X-Request-Id` are believed, separated by \
         commas; whoever may open a Unix socket is believed always";
    LOG: Text, Is("info"),
        "the lowest level that is logged: `off`, `error`, `warn`, `info` or `debug`. Heads of the \
         audit log always are";
    LOG_FORMAT: Text, Is("text"), "`text` or `json`";
    ERROR_DETAILS: Text, Is("off"),
        "`on` adds the code, and what was received and registered, to `error_description` and \
         error pages. For development only";
    OUTBOUND_ALLOW: Text, Described("none"),
        "address blocks, separated by commas, that requests of Gatepost may reach although they \
         are not public: loopback, link-local, private, NAT64 (`64:ff9b::/96`)";
    CA_FILE: Text, Described("the system's store alone"),
        "CA certificates (PEM) that requests of Gatepost trust, besides the system's";
    COOKIE_SAMESITE: Text, Is("lax"),
        "`lax`; or `none`, if clients renew tokens silently in iframes on other sites";
    INVALID_CLIENT_STATUS: Text, Is("standard"),
        "status of `invalid_client`: `standard` (401 when the header was used, else 400) or `400`";
    SCOPE_CLAIM: Text, Is("string"), "`scope` in JWT access tokens: `string` (RFC 9068) or `array`";
    ACCESS_TOKEN_TYP: Text, Is("at+jwt"),
        "`typ` of JWT access tokens, for clients that register none: `at+jwt` (RFC 9068) or `JWT`";
    GRANTS_DATABASE_URL: Secret, Described("none: the main connection"),
        "connection for SQL-function grants, with a role that may only execute them";
    GRANTS_DATABASE_URL_FILE: Text, Described("none"),
        "file that holds the URL of the connection for SQL-function grants";
    AUDIT_DAYS: Number(1, 3_650), Is("400"), "days that audit events are kept";
    BRAND_NAME: Text, Is("Gatepost"), "name on the pages, at most 60 characters";
    BRAND_LOGO: Text, Described("none"),
        "file with the logo on the pages: `.svg`, `.png`, `.jpg` or `.webp`, at an absolute path";
    BRAND_COLOR: Text, Described("the pages' own"), "colour of buttons and links, as `#rrggbb`";
    BRAND_PRIVACY_URL: Text, Described("none"), "privacy policy linked from the pages";
    BRAND_TERMS_URL: Text, Described("none"), "terms of service linked from the pages";
    BRAND_HELP_URL: Text, Described("none"),
        "where people get help who cannot sign in, linked from the pages about signing in: a web \
         address, or `mailto:` and an e-mail address";
    LANGUAGE: Text, Is("en"),
        "language of pages and e-mails for those who ask for none that there is: `en`, `de`, \
         `fr`, `es`, `it`, `pt`, `nl`, `pl`, `ja` or `zh-Hans`";
    SMTP_URL: Text, Described("none: no e-mail at all"),
        "the mail server: `smtps://user@host:465`, `smtp://user@host:587` (STARTTLS or nothing), \
         or `smtp://localhost:25` without a user, in the clear, for this machine alone";
    SMTP_PASSWORD_FILE: Text, Described("the systemd credential `gatepost-smtp-password`"),
        "file that holds the password of that user";
    MAIL_FROM: Text, Described("required with `GATEPOST_SMTP_URL`"),
        "the address that e-mails come from";
    NEW_BROWSER_MAIL: Text, Is("on"),
        "`off`: people get no e-mail when somebody signs in with their password in a browser that \
         was not used for it before";
    KEY_ANNOUNCE_DAYS: Number(1, 365), Is("14"),
        "days that a signing key is published before it signs";
    KEY_USE_DAYS: Number(1, 3_650), Is("90"), "days that a signing key signs";
    KEY_PUBLISH_DAYS: Number(1, 3_650), Is("14"),
        "days that a signing key stays published after its last signature";
    KEY_HINT_DAYS: Number(1, 3_650), Is("90"),
        "days after that in which it still checks `id_token_hint`";
    ARGON2_MEMORY_KIB: Number(7_168, 1_048_576), Is("19456"),
        "memory of one password hash, KiB (Argon2id)";
    ARGON2_PASSES: Number(1, 20), Is("2"), "passes of a password hash";
    ARGON2_LANES: Number(1, 16), Is("1"), "lanes of a password hash";
    PASSWORD_MIN_LENGTH: Number(SHORTEST_PASSWORD, 64), Is("8"),
        "characters that a new password must have";
    PASSWORD_BLOCKLIST_FILE: Text, Described("none"),
        "file with passwords that nobody may choose, at an absolute path: Pwned Passwords, a line \
         for each as `SHA1:count`, sorted";
    AUTHORIZATION_REQUEST_LIFETIME: Number(60, 86_400), Is("3600"),
        "seconds that a person has to answer an authorization request";
    SESSION_LIFETIME: LIFETIME, Is("36000"), "seconds that a sign-in lasts, from its beginning";
    REMEMBER_SESSION_LIFETIME: LIFETIME, Described("none: the page does not offer it"),
        "seconds that a sign-in lasts on a device that the person lets Gatepost remember; longer \
         than `GATEPOST_SESSION_LIFETIME`";
    SIGN_IN_WITH: Text, Is("username"),
        "what people type to sign in: `username`, or `username,email`: also the verified e-mail \
         address that no other user of the tenant has";
    PUSHED_REQUESTS: Text, Is("on"),
        "`off`: clients cannot push their requests (RFC 9126), and discovery does not name the \
         endpoint; for an upgrade with several machines";
    ID_JAG: Text, Is("off"),
        "`on`: clients may redeem and get ID-JAGs (identity assertion authorization grants), as \
         far as the registration says";
    CLIENT_ASSERTION_AUDIENCE: Text, Is("any"),
        "`aud` of the JWTs that clients authenticate with: `issuer` (RFC 10070), or `any`: also \
         the token endpoint's URL";
    BOUND_SESSIONS: Text, Is("off"),
        "`on`: browsers that can bind their session to a key of the device (DBSC), and its cookie \
         alone is worth nothing elsewhere. Needs a base URL with https and without a path";
    SCIM: Text, Is("off"),
        "`on`: programs may look after users over SCIM, at `/scim/v2/`";
    ADMIN_API: Text, Is("off"),
        "`on`: programs may plan and apply a registration over HTTP, at `/admin/`";
    ADMIN_ROLE: Text, Described("none: there is no `/admin`"),
        "the role of those who look after people at `/admin`. With `:TENANT` behind it, the role \
         gives somebody of no tenant the people of that one";
    ADMIN_ROLES: Text, Described("none"),
        "roles that they may give, separated by commas. They change only people who have no others";
    ADMIN_MINIMUM_ACR: Text, Is("2"),
        "the weakest sign-in that `/admin` accepts: `2` (two factors) or `phr` (a passkey)";
    ADMIN_BOUND_SESSION: Text, Is("off"),
        "`on`: `/admin` opens only in a browser that has bound its session to a key. Needs \
         `GATEPOST_BOUND_SESSIONS`";
    MINIMUM_ACR: Text, Is("1"),
        "the weakest sign-in that clients and the account page accept: `1`, `2` (two factors) or \
         `phr` (a passkey)";
    ENROLMENT: Text, Is("sign-in"),
        "where people add their first second factor: `sign-in` (at the sign-in, and on the account \
         page) or `link` (only with a link from you)";
    PEOPLE_MAY_CHANGE: Text, Is("nothing"),
        "what people may change about themselves on the account page, besides how they sign in: \
         `nothing` or `name`";
    AUTHORIZATION_CODE_LIFETIME: Number(1, 600), Is("60"),
        "seconds that a code is valid, unless its client registers another lifetime";
    ID_TOKEN_LIFETIME: LIFETIME, Is("300"), "the same for ID tokens";
    ACCESS_TOKEN_LIFETIME: LIFETIME, Is("3600"), "the same for access tokens";
    REFRESH_TOKEN_LIFETIME: LIFETIME, Is("2592000"),
        "the same for refresh tokens, from the beginning of the grant";
    REFRESH_TOKEN_IDLE_LIFETIME: LIFETIME, Is("1296000"),
        "the same for refresh tokens, from their last use";
    REFRESH_TOKEN_RETRY_WINDOW: Number(0, 600), Is("30"),
        "seconds in which a confidential client may repeat a refresh if the answer was lost";
    REFRESH_TOKEN_RETRY_WINDOW_PUBLIC: Number(0, 600), Is("10"), "the same for public clients";
    DEVICE_CODE_LIFETIME: Number(1, 86_400), Is("600"),
        "seconds that a device code is valid, unless its client registers another lifetime";
    DEVICE_INTERVAL: Number(1, 300), Is("5"), "seconds between two polls of a device";
    // A Basic header that reads two ways is two guesses.
    LIMIT_CLIENT_FAILURES_PER_MINUTE: Number(2, 1_000_000), Is("20"),
        "wrong client secrets, for each client and source; and for each source, of all unknown \
         clients together";
    LIMIT_PASSWORD_WINDOW: Number(1, 86_400), Is("600"),
        "seconds over which wrong passwords are counted, for each account and for each source";
    LIMIT_PASSWORD_FAILURES_PER_ACCOUNT: COUNT, Is("10"),
        "wrong passwords in that time, for each account and source";
    LIMIT_PASSWORD_FAILURES_PER_SOURCE: COUNT, Is("50"),
        "wrong passwords in that time, for each source";
    LIMIT_PASSWORD_FAILURES_PER_HOUR: COUNT, Is("300"),
        "wrong passwords for one account from all sources, after which a new source has to wait";
    LIMIT_PASSWORD_NEW_SOURCE_WAIT: Number(1, 3_600), Is("60"),
        "seconds that such a new source waits";
    LIMIT_DEVICE_AUTHORIZATIONS_PER_MINUTE: COUNT, Is("60"),
        "device authorizations per client and source";
    LIMIT_DEVICE_PENDING: COUNT, Is("10000"), "undecided device authorizations per client";
    LIMIT_USER_CODE_FAILURES_PER_MINUTE: COUNT, Is("10"), "wrong user codes per source";
    LIMIT_USER_CODE_FAILURES_PER_MINUTE_OVERALL: COUNT, Is("1000"), "wrong user codes in all";
    LIMIT_EXTENSION_FAILURES_PER_MINUTE: COUNT, Is("20"),
        "refused assertions and grants of your own, for each client and source";
    LIMIT_LOGOUT_TOKEN_FAILURES_PER_MINUTE: COUNT, Is("60"),
        "refused logout tokens, for each source";
    LIMIT_LETTERS_PER_HOUR: COUNT, Is("300"),
        "e-mails in all to people who forgot their password, or sign up. See \
         [mail](../operate/mail.md)";
    LIMIT_TRACKED: Number(1_000, 10_000_000), Is("100000"),
        "counters of each kind, in memory and of wrong passwords, codes and e-mails in the \
         database; the oldest beyond that are dropped";
}

pub fn by_flag(flag: &str) -> Option<&'static Setting> {
    SETTINGS
        .iter()
        .copied()
        .find(|setting| setting.flag().as_deref() == Some(flag))
}

pub fn flags() -> Vec<String> {
    let flags = SETTINGS.iter().map(|setting| setting.flag());
    flags.flatten().collect()
}

/// One setting. The constants in `settings` are the only ones.
pub struct Setting {
    pub name: &'static str,
    pub default: Default,
    /// What it means, with its unit, as `docs/reference/settings.md` prints it.
    pub meaning: &'static str,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub enum Default {
    Required,
    Is(&'static str),
    Described(&'static str),
}

pub enum Kind {
    Text,
    /// A text in which empty is a value of its own, not absence.
    TextOrEmpty,
    /// A whole number from the first to the second.
    Number(u32, u32),
    /// Never printed, and no flag: arguments can be read by every user of the machine.
    Secret,
}

impl Setting {
    /// The flag that overrides the variable, as `--listen`; none for secrets.
    pub fn flag(&self) -> Option<String> {
        let name = self.name.strip_prefix("GATEPOST_").unwrap_or(self.name);
        let flag = format!("--{}", name.to_ascii_lowercase().replace('_', "-"));
        (!matches!(self.kind, Kind::Secret)).then_some(flag)
    }

    /// The text that stands for it where none is given.
    pub(super) fn usual(&self) -> Option<&'static str> {
        match self.default {
            Default::Is(text) => Some(text),
            Default::Required | Default::Described(_) => None,
        }
    }

    /// The same as a number; 0 where there is none.
    pub(super) fn usual_number(&self) -> u32 {
        let number = self.usual().and_then(|text| text.parse().ok());
        number.unwrap_or_default()
    }

    pub fn default_text(&self) -> String {
        match self.default {
            Default::Required => String::from("required"),
            Default::Is(text) => format!("`{text}`"),
            Default::Described(text) => text.to_owned(),
        }
    }
}
