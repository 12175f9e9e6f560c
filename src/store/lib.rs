//! Postgres: what must survive. One file per table; each query is a const above the one function
//! that runs it. A function takes the [`Store`], runs one statement on a connection of the pool,
//! and gives plain values back: what the rows mean is for `protocol` to judge. A name in braces in
//! a query is a piece that several have: [`written_out`] knows it.
//!
//! Here stand the statements of a server. Most that only a change of the registry, administrators
//! or commands need stand in the folders `statements` of `registrar`, `manage` and `tool`, written
//! with [`bind!`] and [`read!`] as these are. No other file binds values to a statement.
//!
//! `sql/*.sql` holds the schema, [`migrate`] knows its levels, [`partitions`] keeps room for what
//! expires.

pub mod clock;
pub mod mutex;
pub mod named_thread;
pub mod worker;

mod audit_chain;
mod audit_event;
mod connecting;
mod connection;
mod database_url;
mod endings;
mod error;
mod pool;
mod session_endings;
mod statement;
mod supply;
mod values;
mod watchdog;

pub mod applications;
pub mod audit_events;
pub mod authenticators;
pub mod catalogue;
pub mod clients;
pub mod consents;
pub mod device_authorizations;
pub mod disowned_sign_ins;
pub mod flow_uses;
pub mod folds;
pub mod grants;
pub mod installation;
pub mod linked_identities;
pub mod migrate;
pub mod partitions;
pub mod registry_writer;
mod seen_partitions;
pub mod session_clients;
pub mod sessions;
pub mod sign_in_failures;
pub mod sign_up_links;
pub mod signing_keys;
pub mod tokens;
pub mod upstream_sessions;
pub mod user_ends;
pub mod users;

pub use connecting::START_UP;
pub use connection::PROOF_OF_LIFE;
pub use error::{AWAY_TARGET, FunctionAnswer, Result, StoreError};
pub use pool::{DatabaseSettings, LEAST_FOR_A_WRITE, Store};
pub use statement::{Bound, names_of_events, written_out};
pub use values::{column, each, tenant, tenant_text};
pub use watchdog::Interruption;
