//! Gatepost: an OpenID Connect and OAuth 2.0 provider. Two programs, one Postgres database, no
//! async code of its own. `gatepostd` is the server: what systemd starts, what faces the internet,
//! and what an auditor reads. `gatepost` is what people type: its command `serve` becomes
//! `gatepostd`, every other one does its work and ends.
//!
//! Each folder here, but `bin`, is a crate, and uses those below it: its `Cargo.toml` names them,
//! so the compiler holds that; `USES` in `tests/architecture.rs` is the list. This crate joins them
//! under the names that tests and your own grants know.
//!
//! ```text
//!   bin/gatepost                      bin/gatepostd
//!        |                                 |
//!   tool    the commands              manage      if built with the feature `manage`: pages of
//!        |                                 |      administrators, SCIM, documents over HTTP
//!        +---------------+-----------------+
//!        |               |                 |
//!   import          registrar              |      what a document says beside what is
//!   documents of         |                 |      registered: compared, applied, explained
//!   what other           |                 |
//!   products        +----+-----------------+
//!   export          |                 server      socket, routes, pages, endpoints, keys
//!        |          |                      |
//!        registration                  store      Postgres, one file a table; clock, worker
//!        documents, read                   |      (bounded lanes, and how long a request
//!        and planned                       |      waits)
//!             |                            |
//!             +----------------------- protocol   the pure core: types, parsers, decisions. No
//!                                                 I/O, clock, randomness or logging
//! ```
//!
//! `protocol`, from the top floor down: sealed_request, upstream, registration (one object each, as
//! it is stored) and audit, discovery, logout, login, authorize, device, token, keys, words. The
//! crates `registration` (whole documents) and `import` are as pure.
//!
//! `server`, from the street to the cellar; a module uses what stands below it
//! (`tests/architecture/layers.rs` holds that):
//!
//! ```text
//! serve         starts it: as the supervisor, or as the server process of one
//! arguments, logging
//!               what is typed behind `gatepostd`; where log lines go
//! supervisor    owns the listening socket; starts, watches and replaces the server process
//! server        tiny_http over the inherited socket, worker threads, lanes, self-probe, drain
//! dispatch      (method, path) -> handler, by the tables of routes that `bin/gatepostd` hands in;
//!               failures -> responses; one log line per request
//! endpoints     shell, a room a feature: load, ask the core, write, answer;
//!               `token/grants/issue.rs` makes every token
//! pages         pure: values of the core in, HTML out
//! app           what a handler may touch, passed by reference
//! registry      clients, scopes, tenants, providers: cached, refreshed when the database says so
//! keys, outbound
//!               keys, sealing, password hashing; the one client for requests of our own
//! config, http, metrics
//!               every setting; our Request and Response; counters
//! ```
//!
//! Four walks for a first visit. Files of endpoints, pages and the like are in `server`.
//!
//! A token request: `server/server/workers.rs` takes it from tiny_http, `http/incoming.rs` makes a
//! `Request` of it, `serve.rs` is where the server meets `dispatch.rs`, which picks
//! `endpoints/token.rs`; `endpoints/token/client_authentication.rs`, then
//! `protocol/token/token_request/` reads the form, `endpoints/token/grants/authorization_code.rs`
//! opens the code, `protocol/authorize/authorization_code.rs` judges it, `store/grants.rs` enters
//! it, `endpoints/token/grants/issue.rs` makes the tokens, and `http/outgoing.rs` writes them out.
//! What ends a refresh token is listed in `protocol/token/refresh_token.rs`.
//!
//! A sign-in: `endpoints/conversation.rs` opens each page and goes on to the next one; its head
//! tells the four requests of a sign-in one by one. It begins with `endpoints/transaction.rs`,
//! which seals the request for the addresses of the pages, validates it, and asks
//! `protocol/authorize/interaction.rs` what the request needs; `endpoints/login.rs` shows its page
//! and takes the form, `endpoints/login/password.rs` tries the password,
//! `endpoints/login/second_factor.rs` asks for a code where the user has a second factor, and
//! `endpoints/answer.rs` begins the session and grants.
//!
//! A sign-in elsewhere: from `endpoints/conversation.rs` to `endpoints/upstream/departure.rs`,
//! which seals the round trip and sends the browser upstream; back at
//! `endpoints/upstream/callback.rs`, `provider.rs` beside it exchanges the code and has
//! `protocol/upstream/` judge what came, `callback.rs` finds the account, and the conversation goes
//! on as for a password.
//!
//! Postgres hangs: the head of `store/worker.rs` says what happens. `server/server/workers.rs`
//! gives each request its budget, and another thread answers 503 when that is spent.
//! `store/pool.rs` hands out connections; `store/watchdog.rs` cancels the statement, or abandons
//! what cannot be cancelled and gives its places to others, and `store/supply.rs` makes another
//! pool. Where that does not help, `watch` in `serve.rs` sends its own process SIGTERM, which
//! makes that ask the supervisor for a successor.

pub use gatepost_protocol as protocol;
pub use gatepost_server::*;
pub use gatepost_store as store;
pub use gatepost_store::{clock, worker};

#[cfg(feature = "tools")]
pub use gatepost_import as import;
#[cfg(feature = "manage")]
pub use gatepost_manage as manage;
#[cfg(feature = "tools")]
pub use gatepost_registrar as registrar;
#[cfg(feature = "tools")]
pub use gatepost_registration as registration;
#[cfg(feature = "tools")]
pub use gatepost_tool as tool;

/// The examples of the documentation compile.
#[cfg(doctest)]
#[doc = include_str!("../docs/operate/own-grants-rust.md")]
struct Documentation;
