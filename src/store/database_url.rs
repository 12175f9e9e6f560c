//! The database setting: a URL or a key/value string of the `postgres` crate, with
//! `sslmode=verify-ca`, `sslmode=verify-full` and `sslrootcert` beside, and our time-outs wherever
//! it names none.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use postgres::Config;
use postgres::config::{Host, SslMode, SslNegotiation, TargetSessionAttrs};

use super::error::StoreError;
use crate::Result;
use gatepost_protocol::registration::names::hint;

/// For request-serving connections: no statement, lock or open transaction outlives a request's
/// patience, and statements are planned for what they do.
pub const SERVING_OPTIONS: [(&str, &str); 11] = [
    ("statement_timeout", "3000"),
    ("lock_timeout", "1000"),
    ("idle_in_transaction_session_timeout", "5000"),
    ("default_transaction_isolation", "read\\ committed"),
    // Each statement is a look-up by keys, so one plan is as good as another; left to choose,
    // Postgres plans those over partitions anew at every execution, which takes longer than running
    // them.
    ("plan_cache_mode", "force_generic_plan"),
    // Such a plan stays as it is until the next ANALYZE. Made while a partition has a page or two,
    // it would read it from end to end, and go on doing so however long it has become.
    ("enable_seqscan", "off"),
    // Such a plan counts ten partitions as ten rows, although all but one are left out. So it would
    // rather read every consent of a client once than look one up ten times. A look-up by keys for
    // each row is what every statement here wants.
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_memoize", "off"),
    ("enable_material", "off"),
    // Such a plan counts partitions that it will not visit, so Postgres thinks it worth compiling:
    // 25 ms each time.
    ("jit", "off"),
];

/// What commands take otherwise than requests: they look for what no index leads to, in as much
/// time as an operator waits, and each statement runs once, planned for the values at hand.
pub const OPERATOR_OPTIONS: [(&str, &str); 7] = [
    ("statement_timeout", "30000"),
    ("plan_cache_mode", "force_custom_plan"),
    ("enable_seqscan", "on"),
    ("enable_hashjoin", "on"),
    ("enable_mergejoin", "on"),
    ("enable_memoize", "on"),
    ("enable_material", "on"),
];

/// For functions that operators write: one second, planned for the arguments at hand.
pub const FUNCTION_OPTIONS: [(&str, &str); 5] = [
    ("statement_timeout", "1000"),
    ("lock_timeout", "1000"),
    ("idle_in_transaction_session_timeout", "5000"),
    ("default_transaction_isolation", "read\\ committed"),
    ("jit", "off"),
];

/// For migrations, `apply` and maintenance: patient with statements, never with locks that requests
/// wait behind.
pub const ADMINISTRATIVE_OPTIONS: [(&str, &str); 4] = [
    ("statement_timeout", "60000"),
    ("lock_timeout", "5000"),
    ("idle_in_transaction_session_timeout", "60000"),
    ("default_transaction_isolation", "read\\ committed"),
];

/// For what administrators look for in many rows: as long as a request may take, planned for the
/// values at hand.
pub const SURVEY_OPTIONS: [(&str, &str); 4] = [
    ("statement_timeout", "3000"),
    ("lock_timeout", "1000"),
    ("default_transaction_read_only", "on"),
    ("jit", "off"),
];

/// For attaching and detaching partitions: a waiting DDL lock makes every request queue behind it.
pub const PARTITION_OPTIONS: [(&str, &str); 4] = [
    ("statement_timeout", "30000"),
    ("lock_timeout", "100"),
    ("idle_in_transaction_session_timeout", "60000"),
    ("default_transaction_isolation", "read\\ committed"),
];

pub struct DatabaseUrl {
    config: Config,
    /// `sslrootcert`: trust these roots and no others.
    pub root_certificates: Option<PathBuf>,
}

impl DatabaseUrl {
    /// Parses the setting. The error names what is wrong with it, never its text: it may hold a
    /// password.
    pub fn parse(text: &str) -> Result<DatabaseUrl> {
        let (rest, pairs) = if text.starts_with("postgres://") || text.starts_with("postgresql://")
        {
            refuse_bare_marks(text)?;
            split_url(text)
        } else {
            split_key_values(text)?
        };
        let mut config: Config = rest.parse().map_err(|error| refused(&fault(&error)))?;
        let is_direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
        config.ssl_mode(match named(&pairs, "sslmode") {
            None if is_direct => SslMode::Require,
            Some("disable" | "prefer") if is_direct => {
                return Err(refused(
                    "sslnegotiation=direct goes with sslmode=require, verify-ca or verify-full",
                ));
            }
            named => ssl_mode(named, &config)?,
        });
        fill_in(&mut config, |key| named(&pairs, key).is_some());
        Ok(DatabaseUrl {
            config,
            root_certificates: named(&pairs, "sslrootcert").map(PathBuf::from),
        })
    }

    /// The configuration with server settings for one kind of work; those in the URL win.
    pub fn config(&self, options: &[(&str, &str)]) -> Config {
        let mut config = self.config.clone();
        let mut all = String::new();
        for (name, value) in options {
            all.push_str(&format!("-c {name}={value} "));
        }
        // The server takes the last of two settings of one name.
        all.push_str(self.config.get_options().unwrap_or_default());
        // PgBouncer refuses a blank at the end.
        config.options(all.trim_end());
        config
    }
}

const PARAMETERS: &str = "user password dbname options application_name sslmode sslrootcert host \
                          hostaddr port connect_timeout tcp_user_timeout keepalives \
                          keepalives_idle keepalives_interval keepalives_retries \
                          target_session_attrs channel_binding sslnegotiation";

/// Those of libpq, and of what else is given URLs: Prisma, SQLAlchemy, Go, hosts of databases.
const FOREIGN: &str = "client_encoding connection_limit fallback_application_name \
                       gssdelegation gssencmode gsslib krbsrvname load_balance_hosts \
                       max_protocol_version min_protocol_version oauth_client_id \
                       oauth_client_secret oauth_issuer oauth_scope passfile pgbouncer \
                       pool_max_conns pool_min_conns pool_mode pool_size pool_timeout \
                       prepared_statements replication require_auth requirepeer schema \
                       scram_client_key scram_server_key search_path service servicefile \
                       socket_timeout ssl ssl_max_protocol_version ssl_min_protocol_version \
                       sslaccept sslcert sslcertmode sslcompression sslcrl sslcrldir \
                       sslidentity sslkey sslkeylogfile sslpassword sslsni statement_cache_size \
                       statement_timeout supa timezone";

/// Names a parameter where it is known, and else by the known one it is most like: what stands
/// there may be the rest of a password.
fn fault(error: &postgres::Error) -> String {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    if let Some(known) = cause.strip_prefix("invalid value for option ") {
        return format!("no such value of {known}");
    }
    let Some(unknown) = cause.strip_prefix("unknown option ") else {
        return String::from("it is neither a URL nor a key/value string");
    };
    let unknown = unknown.trim_matches('`');
    if let Some(foreign) = FOREIGN.split(' ').find(|foreign| *foreign == unknown) {
        return format!("{foreign} is a parameter of other software: leave it out");
    }
    let near = hint(unknown, PARAMETERS.split(' '));
    format!("a parameter of it is unknown{near}")
}

fn named<'a>(pairs: &'a [(String, String)], key: &str) -> Option<&'a str> {
    let pair = pairs.iter().find(|(name, _)| name == key);
    pair.map(|(_, value)| value.as_str())
}

fn refused(cause: &str) -> StoreError {
    StoreError::Refused(format!("GATEPOST_DATABASE_URL: {cause}"))
}

/// Our own time-outs: without them a lost server is noticed after minutes or never.
fn fill_in(config: &mut Config, names: impl Fn(&str) -> bool) {
    if !names("connect_timeout") {
        config.connect_timeout(Duration::from_secs(2));
    }
    if !names("tcp_user_timeout") {
        config.tcp_user_timeout(Duration::from_secs(3));
    }
    if !names("keepalives_idle") {
        config.keepalives_idle(Duration::from_secs(5));
    }
    if !names("keepalives_interval") {
        config.keepalives_interval(Duration::from_secs(2));
    }
    if !names("keepalives_retries") {
        config.keepalives_retries(2);
    }
    if !names("application_name") {
        config.application_name("gatepost");
    }
    if config.get_hosts().len() > 1 && !names("target_session_attrs") {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}

/// Unnamed, TLS is used where the server offers it, except on this machine. `verify-ca` checks the
/// name as well: TLS here always verifies in full.
fn ssl_mode(named: Option<&str>, config: &Config) -> Result<SslMode> {
    match named {
        None if config.get_hosts().iter().all(is_local) => Ok(SslMode::Disable),
        None | Some("prefer") => Ok(SslMode::Prefer),
        Some("disable") => Ok(SslMode::Disable),
        Some("require" | "verify-ca" | "verify-full") => Ok(SslMode::Require),
        Some(_) => Err(refused(
            "sslmode must be disable, prefer, require, verify-ca or verify-full",
        )),
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost"
                || name
                    .parse()
                    .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
        Host::Unix(_) => true,
    }
}

/// A part of the password would be taken for a host, and printed.
fn refuse_bare_marks(url: &str) -> Result {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let is_rest_of_password = |pair: &str| pair.contains('@') && !pair.contains('=');
    if base.matches('@').count() > 1 || query.split('&').any(is_rest_of_password) {
        return Err(refused(
            "write @ as %40 and ? as %3F in its user name and password",
        ));
    }
    Ok(())
}

/// Takes `sslmode` and `sslrootcert` out of a URL's query; answers the rest and every pair of the
/// query.
fn split_url(text: &str) -> (String, Vec<(String, String)>) {
    let Some((base, query)) = text.split_once('?') else {
        return (text.to_owned(), Vec::new());
    };
    let mut kept = Vec::new();
    let mut pairs = Vec::new();
    for part in query.split('&') {
        let pair = part.split_once('=');
        let pair = pair.map(|(key, value)| (decoded(key), decoded(value)));
        if !pair.as_ref().is_some_and(|(key, _)| is_ours(key)) {
            kept.push(part);
        }
        pairs.extend(pair);
    }
    let rest = if kept.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{}", kept.join("&"))
    };
    (rest, pairs)
}

fn decoded(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

const NOT_A_PAIR: &str = "write a URL, which begins with postgres://, or pairs as key=value: put a \
                          value with spaces in single quotes";

fn split_key_values(text: &str) -> Result<(String, Vec<(String, String)>)> {
    let mut pairs = Vec::new();
    let mut rest = String::new();
    let mut remaining = text.trim_start();
    while !remaining.is_empty() {
        let (key, after) = remaining
            .split_once('=')
            .filter(|(key, _)| key.trim().bytes().all(is_of_name))
            .ok_or_else(|| refused(NOT_A_PAIR))?;
        let (value, length) =
            quoted_or_bare(after.trim_start()).ok_or_else(|| refused("an unterminated quote"))?;
        let key = key.trim().to_owned();
        if !is_ours(&key) {
            rest.push_str(&format!("{key}='{}' ", escaped(&value)));
        }
        pairs.push((key, value));
        remaining = after
            .trim_start()
            .get(length..)
            .unwrap_or_default()
            .trim_start();
    }
    Ok((rest, pairs))
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\'', "\\'")
}

/// Reads one value, quoted or up to white space, with backslash escapes; answers it and the bytes
/// it took.
fn quoted_or_bare(text: &str) -> Option<(String, usize)> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.push(characters.next()?.1),
            '\'' if quoted => return Some((value, at + 1)),
            _ if !quoted && character.is_whitespace() => return Some((value, at)),
            _ => value.push(character),
        }
    }
    (!quoted).then_some((value, text.len()))
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_ours(key: &str) -> bool {
    key == "sslmode" || key == "sslrootcert"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Config {
        DatabaseUrl::parse(text).unwrap().config(&SERVING_OPTIONS)
    }

    #[test]
    fn verify_modes_and_roots_are_taken_out_of_both_forms() {
        for text in [
            "postgres://u:p@db.example/gatepost?sslmode=verify-full&sslrootcert=%2Fca.pem&connect_timeout=7",
            "host=db.example user=u password='p' dbname=gatepost sslmode = verify-full sslrootcert='/ca.pem' connect_timeout=7",
        ] {
            let url = DatabaseUrl::parse(text).unwrap();
            assert_eq!(
                url.root_certificates,
                Some(PathBuf::from("/ca.pem")),
                "{text}"
            );
            assert_eq!(url.config.get_ssl_mode(), SslMode::Require);
            assert_eq!(
                url.config.get_connect_timeout(),
                Some(&Duration::from_secs(7))
            );
            assert_eq!(
                url.config.get_tcp_user_timeout(),
                Some(&Duration::from_secs(3))
            );
            assert_eq!(url.config.get_password(), Some(&b"p"[..]));
        }
    }

    #[test]
    fn a_quoted_value_keeps_its_quotes_spaces_and_backslashes() {
        let config = parse(r"host=/run/pg password='a \'b\' \\c = d' user=x");
        assert_eq!(config.get_password(), Some(&br"a 'b' \c = d"[..]));
        assert_eq!(config.get_user(), Some("x"));
    }

    #[test]
    fn tls_is_left_out_only_on_this_machine_or_by_name() {
        for text in [
            "postgres:///g?host=/run/pg",
            "postgres://localhost/g",
            "host=127.0.0.1 user=u",
            "host=db sslmode=disable",
        ] {
            assert_eq!(parse(text).get_ssl_mode(), SslMode::Disable, "{text}");
        }
        assert_eq!(
            parse("postgres://db.example/g").get_ssl_mode(),
            SslMode::Prefer
        );
        assert_eq!(
            parse("postgres://localhost/g?sslmode=verify-ca").get_ssl_mode(),
            SslMode::Require
        );
    }

    #[test]
    fn tls_that_begins_at_once_is_never_left_out() {
        for text in [
            "postgres://localhost/g?sslnegotiation=direct",
            "host=/run/pg sslnegotiation=direct user=u",
            "postgres://db.example/g?sslnegotiation=direct&sslmode=verify-full",
        ] {
            assert_eq!(parse(text).get_ssl_mode(), SslMode::Require, "{text}");
        }
        for mode in ["disable", "prefer"] {
            let text = format!("postgres://localhost/g?sslnegotiation=direct&sslmode={mode}");
            assert!(DatabaseUrl::parse(&text).is_err(), "{mode}");
        }
    }

    #[test]
    fn settings_of_the_url_come_after_ours() {
        let config = parse("postgres://localhost/g?options=-c%20statement_timeout%3D9");
        let options = config.get_options().unwrap();
        assert!(
            options.find("statement_timeout=3000").unwrap()
                < options.find("statement_timeout=9").unwrap()
        );
    }

    #[test]
    fn options_end_without_a_blank() {
        for text in [
            "postgres://localhost/g",
            "postgres://localhost/g?options=-c%20jit%3Don%20",
        ] {
            let config = parse(text);
            assert!(
                config
                    .get_options()
                    .unwrap()
                    .ends_with(|last: char| !last.is_whitespace()),
                "{text}"
            );
        }
    }

    #[test]
    fn several_hosts_ask_for_the_writable_one() {
        assert_eq!(
            parse("postgres://a,b/g").get_target_session_attrs(),
            TargetSessionAttrs::ReadWrite
        );
        assert_eq!(
            parse("postgres://a,b/g?target_session_attrs=any").get_target_session_attrs(),
            TargetSessionAttrs::Any
        );
    }

    #[test]
    fn errors_do_not_repeat_the_setting() {
        for text in [
            "postgres://u:canary@h:port/",
            "host=h password='canary",
            "canary",
            "host=h sslmode=canary",
            "postgres://u:p@canary@h/d",
            "postgres://u:12?canary@h/d",
            "postgres://canary:12?p@h/d",
            "postgres://h/d?canary=x",
            "https://g:canary@h/d",
            "host=h password=hun canary",
            "host=h password=hun canary=2",
            "host=h password=hun canary user=x",
        ] {
            let error = DatabaseUrl::parse(text)
                .map(|_| ())
                .unwrap_err()
                .to_string();
            assert!(!error.contains("canary"), "{error}");
        }
    }
    #[test]
    fn errors_say_what_is_wrong() {
        for (text, fault) in [
            (
                "postgres://u@h/d?sslmod=require",
                "a parameter of it is unknown; the nearest is \"sslmode\"",
            ),
            (
                "postgres://u@h/d?zzzz=require",
                "a parameter of it is unknown",
            ),
            (
                "postgres://u@h/d?pgbouncer=true",
                "pgbouncer is a parameter of other software: leave it out",
            ),
            (
                "host=h schema=public",
                "schema is a parameter of other software: leave it out",
            ),
            (
                "postgres://u@h/d?sslnegotiatio=direct",
                "a parameter of it is unknown; the nearest is \"sslnegotiation\"",
            ),
            ("postgres://u@h:x/d", "no such value of `port`"),
            ("host=h port=x", "no such value of `port`"),
            ("https://g:p@h/d", NOT_A_PAIR),
            ("https://g:p@h/d?sslmode=require", NOT_A_PAIR),
            ("host=h password=hun ter2", NOT_A_PAIR),
            ("password=hun ter2 host=h", NOT_A_PAIR),
        ] {
            let error = DatabaseUrl::parse(text).map(|_| ()).unwrap_err();
            assert_eq!(error, refused(fault), "{text}");
        }
    }
}
