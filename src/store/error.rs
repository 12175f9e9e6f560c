//! What can go wrong between us and Postgres, in the few kinds a caller acts on. The texts are for
//! the log: they name conditions, tables, constraints and where a connection was tried, never
//! values, passwords or statements' parameters.

use std::fmt;
use std::io::{self, ErrorKind};

use postgres::error::{DbError, SqlState};
use serde_json::Value;

use gatepost_protocol::words::tls_words::tls_words;

/// The target of the log lines that say why the database is away.
pub const AWAY_TARGET: &str = "gatepost::store::away";

/// The server's routine behind PL/pgSQL's `RAISE`: what a function's author says with it is for the
/// server's log.
pub const RAISE: &str = "exec_stmt_raise";

/// The server's routine that warns, and reports success, when a commit's wait for a standby is
/// ended.
pub const WAIT_FOR_STANDBY: &str = "SyncRepWaitForLSN";

/// What Postgres answered; or what went wrong.
pub type Result<T = (), E = StoreError> = core::result::Result<T, E>;

#[derive(Clone, Debug, PartialEq)]
pub enum StoreError {
    /// No connection could be had; nothing was sent.
    Unavailable(String),
    /// The connection broke, or the server gave up, while a statement was under way: it may or may
    /// not have been done.
    Severed(String),
    /// Committed here, and lost with this server: its wait for a standby was ended.
    Unacknowledged,
    /// Ended before it was done, by a cancel request or a time-out of the server's: nothing was.
    Cancelled(String),
    /// The request's time is over, or too short for a write. Nothing was sent.
    OutOfTime,
    /// Every place in the lane of database users stayed taken for 250 ms.
    Busy,
    /// Lost against another transaction (40001, 40P01, 55P03), also the second time; nothing was
    /// done.
    Conflict(String),
    /// Something of that name is there already; the unique constraint's name.
    Taken(String),
    /// The database as it stands must not be used: wrong schema level, wrong issuer, unfit
    /// encoding, bad settings.
    Refused(String),
    /// A row does not read as this program writes it.
    Corrupt(String),
    /// The server answers but denies the work: its disk is full, it takes no writes, a right or a
    /// table is missing. Nothing was done. The store logs it, once.
    Denied(String),
    /// A statement failed: a mistake of ours.
    Query(String),
}

impl StoreError {
    /// Whether waiting may help: the answer to the client is 503, otherwise 500.
    pub fn is_passing(&self) -> bool {
        use StoreError::{Corrupt, Query, Refused, Taken};
        !matches!(self, Taken(_) | Refused(_) | Corrupt(_) | Query(_))
    }

    pub fn no_installation() -> StoreError {
        StoreError::Corrupt(String::from("no installation: run `gatepost migrate`"))
    }

    /// Whether the statement certainly did nothing and lost only by timing.
    pub fn is_conflict(&self) -> bool {
        matches!(self, StoreError::Conflict(_))
    }

    /// Whether another connection may do better: the statement may or may not have been done, or
    /// this server denied it.
    pub fn is_severed(&self) -> bool {
        matches!(
            self,
            StoreError::Severed(_)
                | StoreError::Denied(_)
                | StoreError::Unacknowledged
                | StoreError::Cancelled(_)
        )
    }

    pub fn is_conflict_or_severed(&self) -> bool {
        self.is_conflict() || self.is_severed()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Unavailable(cause) => write!(formatter, "database unavailable: {cause}"),
            StoreError::Denied(cause) => write!(formatter, "denied by the database: {cause}"),
            StoreError::Severed(cause) => write!(formatter, "database connection lost: {cause}"),
            StoreError::Unacknowledged => formatter.write_str(
                "done on this database; no standby has it, so it is gone if another takes over: \
                 repeat it once one is back",
            ),
            StoreError::Cancelled(cause) => {
                write!(formatter, "cancelled ({cause}): nothing was done")
            }
            StoreError::OutOfTime => {
                formatter.write_str("no time is left to wait for the database")
            }
            StoreError::Busy => formatter.write_str("every database connection is taken"),
            StoreError::Conflict(cause) => write!(formatter, "database conflict: {cause}"),
            StoreError::Taken(constraint) => write!(formatter, "already exists ({constraint})"),
            StoreError::Refused(cause) => formatter.write_str(cause),
            StoreError::Corrupt(cause) => write!(formatter, "unreadable row: {cause}"),
            StoreError::Query(cause) => write!(formatter, "database statement failed: {cause}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<postgres::Error> for StoreError {
    fn from(error: postgres::Error) -> StoreError {
        match error.as_db_error() {
            Some(database_error) => classify(database_error),
            None if is_conversion(&error) => {
                StoreError::Corrupt(String::from("a value of an unexpected type"))
            }
            None => StoreError::Severed(transport_cause(&error)),
        }
    }
}

/// Why connecting failed.
pub fn while_connecting(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(database_error) => match refusal_to_connect(database_error) {
            Some(words) => format!("{words}, {}", condition(database_error)),
            None => condition(database_error),
        },
        None => transport_cause(error),
    }
}

/// What a first set-up runs into, in words.
fn refusal_to_connect(error: &DbError) -> Option<&'static str> {
    match error.code().code() {
        "28P01" | "28000" => Some("it refuses the role or its password"),
        "3D000" => Some("there is no database of that name"),
        "42501" => Some("the role may not connect to it"),
        "53300" => Some("it has too many connections"),
        "57P03" => Some("it is starting or stopping"),
        "08P01" if error.message().starts_with("unsupported startup parameter") => Some(
            "a pooler refuses its options: in PgBouncer set ignore_startup_parameters = options",
        ),
        // Whatever it is: PgBouncer has this one code for it.
        "08P01" => Some("a pooler refuses it: the pooler's log says why"),
        _ => None,
    }
}

/// What a function that an operator wrote says to its arguments.
#[derive(Debug, PartialEq)]
pub enum FunctionAnswer {
    Value(Value),
    Null,
    /// `RAISE EXCEPTION` (P0001), with its message.
    Raised(String),
    /// A text in them does not read as what the function takes it for.
    Unreadable,
}

impl FunctionAnswer {
    /// What the function objects. 22P02: text that is no number, date, jsonb; 22P05 and 22021:
    /// characters that the database does not hold.
    pub fn objection(error: &postgres::Error) -> Option<FunctionAnswer> {
        let error = error.as_db_error()?;
        match error.code().code() {
            "P0001" => Some(FunctionAnswer::Raised(error.message().to_owned())),
            "22P02" | "22P05" | "22021" => Some(FunctionAnswer::Unreadable),
            _ => None,
        }
    }
}

fn classify(error: &DbError) -> StoreError {
    let condition = condition(error);
    match (error.code().code(), error.constraint()) {
        // A serialization failure, a deadlock, a lock that was not had in time.
        ("40001" | "40P01" | "55P03", _) => StoreError::Conflict(condition),
        // A check that has no name is that of a partition.
        ("23514", None) => StoreError::Denied("there is no partition for this day yet".to_owned()),
        ("23505", constraint) => StoreError::Taken(constraint.unwrap_or("unnamed").to_owned()),
        ("57014", _) => StoreError::Cancelled(condition),
        (code, _) => match denial(code) {
            Some(words) => StoreError::Denied(format!("{words}, {condition}")),
            None if ends_connection(error.code()) => StoreError::Severed(condition),
            None => StoreError::Query(condition),
        },
    }
}

/// Ours are not on this connection any more (26000), or those of another time are (42P05).
pub fn loses_statements(code: &SqlState) -> bool {
    matches!(code.code(), "26000" | "42P05")
}

/// Why the server does not do a statement that another time, or another server, may do.
fn denial(sqlstate: &str) -> Option<&'static str> {
    match sqlstate {
        "25006" => Some("the database is read-only, a standby or set so"),
        "42501" => Some(
            "the role may not do that: make it the owner of the database, and of its schema and \
             tables where others made them",
        ),
        "3F000" => Some("no schema of search_path is there"),
        "42P01" => Some("a table is missing from the schemas of search_path"),
        "53100" => Some("its disk is full"),
        "53200" => Some("it is out of memory"),
        "58030" => Some("its disk fails"),
        "26000" | "42P05" => Some(
            "a pooler gave it another connection than its statements were prepared on: in \
             PgBouncer set pool_mode = session, or from 1.21 on max_prepared_statements = 200",
        ),
        _ => None,
    }
}

/// Conditions after which a connection is not used again: a read-only server (25006), the server
/// going down (57P0x), a broken connection (08xxx), a cached plan that no longer fits the schema
/// (0A000).
pub fn ends_connection(code: &SqlState) -> bool {
    let code = code.code();
    matches!(code, "25006" | "0A000") || code.starts_with("57P0") || code.starts_with("08")
}

/// SQLSTATE and the names in it. The server's message only where it can hold nothing but
/// identifiers (class 42), so not where a function raised it.
fn condition(error: &DbError) -> String {
    let mut text = format!("SQLSTATE {}", error.code().code());
    for (kind, name) in [
        ("table", error.table()),
        ("column", error.column()),
        ("constraint", error.constraint()),
    ] {
        if let Some(name) = name {
            text.push_str(&format!(", {kind} {name}"));
        }
    }
    let names_only = error.code().code().starts_with("42")
        && *error.code() != SqlState::INVALID_TEXT_REPRESENTATION;
    if names_only && error.routine() != Some(RAISE) {
        let message = error
            .message()
            .escape_debug()
            .to_string()
            .replace("\\\"", "\"");
        text.push_str(&format!(": {message}"));
    }
    text
}

fn is_conversion(error: &postgres::Error) -> bool {
    let text = error.to_string();
    text.starts_with("error serializing")
        || text.starts_with("error deserializing")
        || text.contains("invalid column")
}

/// The kind of a failure below the protocol.
fn transport_cause(error: &postgres::Error) -> String {
    use std::error::Error as _;
    // What it is about is told by the crate's own fixed texts alone.
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    if error.to_string() == "error performing TLS handshake" {
        if let Some(words) = tls_words(&cause) {
            return format!("TLS: {words}");
        }
        // The library's one word for it.
        let cause = cause.replace(
            "UnknownIssuer",
            "of no authority that is trusted here; sslrootcert can name one",
        );
        return format!("TLS: {}", cause.escape_debug());
    }
    if cause == "password missing" {
        return String::from("it asks for a password, and the URL has none");
    }
    if cause == "server did not use channel binding" {
        return String::from(
            "channel_binding=require, and there is none: it needs a password by SCRAM over TLS, \
             and a certificate that is signed with RSA or ECDSA, not with Ed25519",
        );
    }
    let source = error.source();
    match source.and_then(|source| source.downcast_ref()) {
        Some(source) => not_reached(source),
        None if error.is_closed() => String::from("connection closed"),
        None => String::from("connection failed"),
    }
}

/// Why a host did not answer.
pub fn not_reached(error: &io::Error) -> String {
    let text = error.to_string();
    match text.strip_prefix("failed to lookup address information") {
        Some(why) => format!("DNS{why}"),
        None => String::from(io_cause(error)),
    }
}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "ErrorKind is the standard library's and non-exhaustive"
)]
fn io_cause(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused: start Postgres there",
        ErrorKind::NotFound => "socket not found: start Postgres on this machine",
        // The postgres crate's own way to say that the host was not fit.
        ErrorKind::PermissionDenied if error.raw_os_error().is_none() => "it takes no writes",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::TimedOut => "timed out",
        _ => "connection broken",
    }
}
