//! Gatepost: an OpenID Connect and OAuth 2.0 provider. One binary, one Postgres database, no async code of its own.
//!
//! The map of the house, from the street to the cellar. A module may use what stands below it, never what stands
//! above or beside it; `tests/house.rs` holds every `use` line to that.
//!
//! ```text
//! main          argv -> command -> exit code
//! cli           one file per command
//! supervisor    owns the listening socket; starts, watches and replaces the server process
//! server        tiny_http over the inherited socket, worker threads, lanes, self-probe, drain
//! dispatch      (method, path) -> handler; failures -> responses; one log line per request
//! endpoints     shell: one file per endpoint or page: load, ask the core, write, answer
//! grants        shell: one plain function per grant type; `issue` makes every token
//! pages         pure: a view in, HTML out
//! app           what a handler may touch, passed by reference
//! registry      clients, scopes, tenants: cached, refreshed when the database says so
//! store, crypto Postgres, one file per table; keys, sealing, password hashing
//! http, config, clock, permits
//!               our Request and Response; every setting; the one clock; bounded lanes
//! protocol      pure core: types, parsers, decisions. No I/O, no clock, no randomness, no logging
//! ```
//!
//! Reading order for a first visit: `dispatch`, `endpoints/token.rs`, `grants/authorization_code.rs`,
//! `protocol/authorization_code.rs`, `store/grants.rs`, `grants/issue.rs`. That is one token request from socket to answer.

pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod crypto;
pub mod dispatch;
pub mod endpoints;
pub mod grants;
pub mod http;
pub mod pages;
pub mod permits;
pub mod protocol;
pub mod registry;
pub mod server;
pub mod store;
pub mod supervisor;
